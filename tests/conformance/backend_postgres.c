/* A database of its own for each test, on a server of the run's own. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/uuid.h"
#include "tests/conformance/postgres.h"
#include "tests/postgres/guard.h"

/* The name needs its quotes wherever it is written. */
static char *make(const char *variable)
{
    char id[UUID_TEXT_SIZE];
    _cleanup_(pg_close) PGconn *admin = pg_connect_admin();
    _cleanup_(mem_free) char *name = NULL, *create = NULL;

    uuid_make(clock_system(), id);
    name = mem_format("Test-%s", id);
    create = mem_format("CREATE DATABASE \"%s\"", name);
    pg_run(admin, create);
    return pg_url(getenv(variable), "postgres", name);
}

static char *postgres_make(void)
{
    return make("TENURE_TEST_POSTGRES");
}

static char *pooler_make(void)
{
    return make("TENURE_TEST_POOLER");
}

static void postgres_discard(const char *url)
{
    _cleanup_(pg_close) PGconn *admin = pg_connect_admin();
    _cleanup_(mem_free) char *name = pg_database(url);
    _cleanup_(mem_free) char *drop = mem_format("DROP DATABASE \"%s\" WITH (FORCE)", name);

    pg_run(admin, drop);
}

/* ---- looking ---- */

static void dump_rows(PGconn *db, const char *table, const char *columns, struct text *ret)
{
    _cleanup_(mem_free) char *sql = mem_format(
        "SELECT * FROM (SELECT %s FROM tenure.%s) t ORDER BY t::text COLLATE \"C\"", columns, table);
    PGresult *rows = pg_rows(db, sql);

    for (int row = 0; row < PQntuples(rows); row++)
        for (int column = 0; column < PQnfields(rows); column++)
            text_addf(ret, "%s.%s=%s\n", table, PQfname(rows, column), PQgetvalue(rows, row, column));
    PQclear(rows);
}

/* Of the sequences only the fence: the others may have gaps. */
static char *postgres_dump(const char *url)
{
    struct text dump = {0};
    _cleanup_(pg_close) PGconn *db = pg_connect(url);
    PGresult *tables = pg_rows(db,
        "SELECT c.relname, string_agg(format('quote_nullable(%I::text) AS %I', attname, attname), ', ' ORDER "
        "BY attnum)"
        " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND attnum > 0 AND NOT attisdropped"
        " WHERE relnamespace = to_regnamespace('tenure') AND relkind = 'r' GROUP BY relname"
        " ORDER BY relname");

    for (int i = 0; i < PQntuples(tables); i++)
        dump_rows(db, PQgetvalue(tables, i, 0), PQgetvalue(tables, i, 1), &dump);
    if (PQntuples(tables))
        dump_rows(db, "fence", "last_value::text, is_called::text", &dump);
    PQclear(tables);
    return text_steal(&dump);
}

static void postgres_execute(const char *url, const char *sql)
{
    _cleanup_(pg_close) PGconn *db = pg_connect(url);

    pg_run(db, sql);
}

static int64_t postgres_count(const char *url, const char *sql)
{
    _cleanup_(pg_close) PGconn *db = pg_connect(url);

    return pg_number(db, sql);
}

static const char *const POSTGRES_BROKEN[] = {
    "SELECT count(*) FROM attempt WHERE fence > (SELECT last_value FROM fence)",
    NULL,
};

/* ---- the clock ---- */

static void clock_install(PGconn *db, int64_t wall_ms)
{
    _cleanup_(mem_free) char *sql =
        mem_format("CREATE SCHEMA test_clock;"
                   "CREATE TABLE test_clock.now AS SELECT to_timestamp(%" PRId64 " / 1000.0) AS at;"
                   "GRANT USAGE ON SCHEMA test_clock TO PUBLIC;"
                   "GRANT SELECT ON test_clock.now TO PUBLIC;"
                   "CREATE OR REPLACE FUNCTION tenure.now() RETURNS timestamptz "
                   "LANGUAGE sql VOLATILE AS 'SELECT at FROM test_clock.now'",
            wall_ms);

    pg_run(db, sql);
}

static void postgres_pass(struct world *world, int64_t ms)
{
    _cleanup_(mem_free) char *sql =
        mem_format("UPDATE test_clock.now SET at = at + %" PRId64 " * interval '1 millisecond'", ms);

    postgres_execute(world->url, sql);
    world->clock.now_boot_ms += ms;
    world->clock.now_wall_ms += ms;
}

static void postgres_restart(struct world *world)
{
    _cleanup_(mem_free) char *sql =
        mem_format("UPDATE test_clock.now SET at = to_timestamp(%" PRId64 " / 1000.0);"
                   "UPDATE meta SET value = 'of another server' WHERE name = 'incarnation'",
            world->clock.now_wall_ms);

    postgres_execute(world->url, sql);
}

static void postgres_prepare(struct world *world)
{
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);
    const char *guard = getenv("TENURE_MUTANT");

    clock_install(db, world->clock.now_wall_ms);
    if (guard)
        guard_remove(db, guard);
}

/* ---- what others do to it ---- */

static void postgres_damage(const char *url, const char *id)
{
    _cleanup_(mem_free) char *sql =
        mem_format("ALTER TABLE attempt DROP CONSTRAINT IF EXISTS attempt_kind_check;"
                   "UPDATE attempt SET kind = 'sabotage' WHERE id = '%s'",
            id);

    postgres_execute(url, sql);
}

static void postgres_watch(const char *url)
{
    postgres_execute(url,
        "CREATE TABLE tenure.late (attempt text, state text);"
        "CREATE FUNCTION tenure.note_late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " INSERT INTO tenure.late VALUES (OLD.id, OLD.state); RETURN NULL; END $$;"
        "CREATE TRIGGER late AFTER UPDATE ON tenure.attempt FOR EACH ROW"
        " WHEN (OLD.state NOT IN ('planning', 'running')) EXECUTE FUNCTION tenure.note_late()");
}

static void *postgres_lock(const char *url)
{
    PGconn *db = pg_connect(url);

    pg_run(db, "BEGIN; LOCK TABLE attempt IN ACCESS EXCLUSIVE MODE");
    return db;
}

static void postgres_unlock(void *lock)
{
    pg_run(lock, "ROLLBACK");
    PQfinish(lock);
}

const struct backend BACKEND_POSTGRES = {
    .name = "postgres",
    .race_rounds = 500,
    .make = postgres_make,
    .discard = postgres_discard,
    .dump = postgres_dump,
    .prepare = postgres_prepare,
    .execute = postgres_execute,
    .count = postgres_count,
    .broken = POSTGRES_BROKEN,
    .pass = postgres_pass,
    .restart = postgres_restart,
    .damage = postgres_damage,
    .watch = postgres_watch,
    .lock = postgres_lock,
    .unlock = postgres_unlock,
};

const struct backend BACKEND_POOLER = {
    .name = "pooler",
    .race_rounds = 500,
    .make = pooler_make,
    .discard = postgres_discard,
    .dump = postgres_dump,
    .prepare = postgres_prepare,
    .execute = postgres_execute,
    .count = postgres_count,
    .broken = POSTGRES_BROKEN,
    .pass = postgres_pass,
    .restart = postgres_restart,
    .damage = postgres_damage,
    .watch = postgres_watch,
    .lock = postgres_lock,
    .unlock = postgres_unlock,
};
