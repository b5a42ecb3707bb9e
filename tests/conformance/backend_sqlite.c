#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "tests/conformance/conformance.h"

static char *sqlite_make(void)
{
    const char *base = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    char *directory = mem_format("%s/tenure-conformance-XXXXXX", base), *url = NULL;

    if (!mkdtemp(directory))
        fail_msg("cannot make %s", directory);
    url = mem_format("sqlite:%s/state/store.db", directory);
    free(directory);
    return url;
}

static const char *path_of(const char *url)
{
    return url + strlen("sqlite:");
}

static void sqlite_discard(const char *url)
{
    _cleanup_(mem_free) char *directory = mem_string(path_of(url));

    *strstr(directory, "/state/store.db") = '\0';
    OK(directory_remove(-1, directory, NULL));
}

static sqlite3 *database(const char *url)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open_v2(path_of(url), &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    return db;
}

static void sqlite_execute(const char *url, const char *sql)
{
    sqlite3 *db = database(url);
    char *message = NULL;

    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_close(db);
}

static int64_t sqlite_count(const char *url, const char *sql)
{
    sqlite3 *db = database(url);
    sqlite3_stmt *statement = NULL;
    int64_t number = -1;

    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return number;
}

static const char *const SQLITE_BROKEN[] = {
    "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
    "SELECT count(*) FROM pragma_foreign_key_check",
    "SELECT count(*) FROM attempt WHERE fence > (SELECT last FROM fence)",
    NULL,
};

struct table {
    struct text *dump;
    const char *name;
};

static int dump_row(void *context, int count, char **values, char **names)
{
    struct table *table = context;

    for (int i = 0; i < count; i++)
        text_addf(table->dump, "%s.%s=%s\n", table->name, names[i], values[i] ? values[i] : "NULL");
    return 0;
}

/* quote() tells text from numbers and shows blobs in hex. */
static char *select_all(sqlite3 *db, const char *table)
{
    _cleanup_(mem_free) char *info = mem_format("SELECT name FROM pragma_table_info('%s')", table);
    struct text sql = {0};
    sqlite3_stmt *statement = NULL;

    text_add(&sql, "SELECT ");
    assert_int_equal(sqlite3_prepare_v2(db, info, -1, &statement, NULL), SQLITE_OK);
    for (int i = 0; sqlite3_step(statement) == SQLITE_ROW; i++) {
        const char *column = (const char *)sqlite3_column_text(statement, 0);
        text_addf(&sql, "%squote(%s) AS %s", i ? ", " : "", column, column);
    }
    sqlite3_finalize(statement);
    text_addf(&sql, " FROM %s ORDER BY 1, 2", table);
    return text_steal(&sql);
}

static int dump_table(void *context, int count _unused_, char **values, char **names _unused_)
{
    sqlite3 *db = ((void **)context)[0];
    struct table table = {.dump = ((void **)context)[1], .name = values[0]};
    _cleanup_(mem_free) char *sql = select_all(db, values[0]);

    return sqlite3_exec(db, sql, dump_row, &table, NULL);
}

static char *sqlite_dump(const char *url)
{
    struct text dump = {0};
    sqlite3 *db = database(url);
    void *context[] = {db, &dump};
    struct table pragma = {.dump = &dump, .name = "pragma"};

    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version", dump_row, &pragma, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name",
                         dump_table, context, NULL),
        SQLITE_OK);
    sqlite3_close(db);
    return text_steal(&dump);
}

static void sqlite_pass(struct world *world, int64_t ms)
{
    world->clock.now_boot_ms += ms;
    world->clock.now_wall_ms += ms;
}

/* Its clock is the world's, and its guards are C. */
static void sqlite_prepare(struct world *world _unused_) {}

/* Each fence looks at the wall clock. */
static void sqlite_restart(struct world *world _unused_) {}

static void sqlite_damage(const char *url, const char *id)
{
    _cleanup_(mem_free) char *sql = mem_format("UPDATE attempt SET kind = 'sabotage' WHERE id = '%s'", id);

    sqlite_execute(url, sql);
}

static void sqlite_watch(const char *url)
{
    sqlite_execute(url, "CREATE TABLE late (attempt TEXT, state TEXT);"
                        "CREATE TRIGGER late_update AFTER UPDATE ON attempt"
                        " WHEN OLD.state NOT IN ('planning', 'running')"
                        " BEGIN INSERT INTO late VALUES (OLD.id, OLD.state); END;");
}

static void *sqlite_lock(const char *url)
{
    sqlite3 *db = database(url);

    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return db;
}

static void sqlite_unlock(void *lock)
{
    assert_int_equal(sqlite3_exec(lock, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(lock);
}

const struct backend BACKEND_SQLITE = {
    .name = "sqlite",
    .race_rounds = 2000,
    .make = sqlite_make,
    .discard = sqlite_discard,
    .dump = sqlite_dump,
    .prepare = sqlite_prepare,
    .execute = sqlite_execute,
    .count = sqlite_count,
    .broken = SQLITE_BROKEN,
    .pass = sqlite_pass,
    .restart = sqlite_restart,
    .damage = sqlite_damage,
    .watch = sqlite_watch,
    .lock = sqlite_lock,
    .unlock = sqlite_unlock,
};
