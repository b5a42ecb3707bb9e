#include "tests/publication/sessions.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/uuid.h"
#include "generated/migrations_sql.h"
#include "tests/postgres/guard.h"

enum { UUID_OID = 2950, BYTEA_OID = 17, WAIT_MS = 20000 };

/* ---- the database ---- */

/* The clock is a sequence: it moves at once and for everybody, also for those whose snapshot is older. */
static const char PREPARE[] =
    "CREATE SCHEMA test;"
    "CREATE SEQUENCE test.clock;"
    "CREATE OR REPLACE FUNCTION tenure.now() RETURNS timestamptz LANGUAGE sql VOLATILE AS"
    " $$ SELECT 'epoch'::timestamptz + last_value * interval '1 microsecond' FROM test.clock $$;"
    "CREATE TABLE test.shipped AS SELECT oid::regprocedure::text AS name, prosrc, proconfig FROM pg_proc"
    " WHERE pronamespace = 'tenure'::regnamespace;"
    "CREATE FUNCTION test.dump(OUT lines text) LANGUAGE plpgsql AS $$"
    " DECLARE t regclass; part text;"
    " BEGIN"
    "  SELECT 'fence ' || last_value INTO lines FROM tenure.fence;"
    "  FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace IN ('tenure'::regnamespace,"
    "   'app'::regnamespace) ORDER BY oid LOOP"
    "   EXECUTE format('SELECT string_agg(%L || r::text, E''\\n'' ORDER BY r::text) FROM %s r', t || ' ', t) "
    "INTO part;"
    "   lines := concat_ws(E'\\n', lines, part);"
    "  END LOOP;"
    " END $$;"
    "CREATE SCHEMA app;"
    "CREATE TABLE app.source (id int PRIMARY KEY, name text, deleted_at timestamptz, gone boolean);"
    "CREATE TABLE app.item (source int REFERENCES app.source ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,"
    " value text)";

static const char GRANT[] = "GRANT USAGE ON SCHEMA tenure, app TO \"%1$s\";"
                            "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tenure TO \"%1$s\";"
                            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA app TO \"%1$s\"";

static const char RESET[] =
    "TRUNCATE tenure.attempt, tenure.subject, tenure.leftover, tenure.evidence, tenure.proof, tenure.history,"
    " app.source, app.item;"
    "SELECT setval('test.clock', 1800000000000000);"
    "INSERT INTO app.source (id, name) SELECT i, 'row ' || i FROM generate_series(1, 100) i";

static void migrate(PGconn *db)
{
    for (const struct migrations_sql *file = migrations_sql; file->name; file++) {
        if (strncmp(file->name, "postgres/", strlen("postgres/")) != 0)
            continue;
        pg_run(db, "BEGIN");
        pg_run(db, file->text);
        pg_run(db, "COMMIT");
    }
}

static char *database_make(void)
{
    char id[UUID_TEXT_SIZE];
    _cleanup_(pg_close) PGconn *server = pg_connect_admin();
    _cleanup_(mem_free) char *name = NULL, *create = NULL;

    uuid_make(clock_system(), id);
    name = mem_format("Publication-%s", id);
    create = mem_format("CREATE DATABASE \"%s\"", name);
    pg_run(server, create);
    return pg_url(getenv("TENURE_TEST_POSTGRES"), "postgres", name);
}

int places_make(void **state)
{
    struct places *w = mem_alloc(sizeof *w);
    const char *guard = getenv("TENURE_MUTANT");
    _cleanup_(mem_free) char *grant = NULL;

    w->url = database_make();
    w->role = pg_role();
    w->admin = pg_connect_as(w->url, "postgres");
    pg_run(w->admin, "SET client_min_messages = error; SET datestyle = ISO; SET bytea_output = hex");
    migrate(w->admin);
    pg_run(w->admin, PREPARE);
    if (guard)
        guard_remove(w->admin, guard);
    grant = mem_format(GRANT, w->role);
    pg_run(w->admin, grant);
    lock_timeouts(w, "30s");
    *state = w;
    return 0;
}

int places_discard(void **state)
{
    struct places *w = *state;
    _cleanup_(pg_close) PGconn *server = pg_connect_admin();
    _cleanup_(mem_free) char *name = pg_database(w->url);
    _cleanup_(mem_free) char *drop = mem_format("DROP DATABASE \"%s\" WITH (FORCE)", name);

    pg_close(&w->admin);
    pg_run(server, drop);
    pg_role_drop(&w->role);
    free(w->url);
    free(w);
    return 0;
}

void session_open(struct places *w, struct session *session)
{
    PQfinish(session->connection);
    session->connection = pg_connect_as(w->url, w->role);
    pg_run(session->connection, "SET client_min_messages = warning; SET bytea_output = hex");
}

int places_setup(void **state)
{
    struct places *w = *state;

    admin(w, RESET);
    w->a.name = "a";
    w->b.name = "b";
    w->c.name = "c";
    session_open(w, &w->a);
    session_open(w, &w->b);
    session_open(w, &w->c);
    return 0;
}

int places_teardown(void **state)
{
    struct places *w = *state;

    pg_close(&w->a.connection);
    pg_close(&w->b.connection);
    pg_close(&w->c.connection);
    /* A session that is gone may still be at work: what it had open would hold the next test up. */
    admin(w, "ROLLBACK; SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
             " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client "
             "backend'");
    lock_timeouts(w, "30s");
    return 0;
}

/* ---- steps ---- */

static char *rows_text(const PGresult *result)
{
    struct text text = {0};

    for (int row = 0; row < PQntuples(result); row++)
        for (int column = 0; column < PQnfields(result); column++)
            text_addf(&text, "%s%s", column ? "|" : row ? "\n" : "", PQgetvalue(result, row, column));
    return text_steal(&text);
}

/* Tokens that any test was given: none may be seen in an error. */
static struct {
    char hex[4096][65];
    size_t count;
} given;

static void assert_no_token(const PGresult *result)
{
    char *all = PQresultVerboseErrorMessage(result, PQERRORS_VERBOSE, PQSHOW_CONTEXT_ALWAYS);

    for (size_t i = 0; i < given.count; i++)
        assert_null(strstr(all, given.hex[i]));
    PQfreemem(all);
}

static char *result_text(PGresult *result)
{
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);

    if (PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK)
        return rows_text(result);
    assert_no_token(result);
    return mem_format("!%s", code ? code : PQresultErrorMessage(result));
}

void start(struct session *session, const char *sql, const struct claim *claim)
{
    static const Oid TYPES[] = {UUID_OID, BYTEA_OID};
    const char *values[] = {claim ? claim->attempt : NULL, claim ? claim->token : NULL};
    int sent = claim ? PQsendQueryParams(session->connection, sql, 2, TYPES, values, NULL, NULL, 0)
                     : PQsendQuery(session->connection, sql);

    if (!sent)
        fail_msg("%s: %s: %s", session->name, sql, PQerrorMessage(session->connection));
}

static bool answered(struct session *session)
{
    if (!PQconsumeInput(session->connection))
        return true;
    return !PQisBusy(session->connection);
}

static void wait_for_answer(struct session *session)
{
    struct pollfd fd = {.fd = PQsocket(session->connection), .events = POLLIN};

    while (!answered(session))
        if (poll(&fd, 1, WAIT_MS) == 0)
            fail_msg("session %s: no answer", session->name);
}

char *finish(struct session *session)
{
    char *text = NULL;

    for (;;) {
        wait_for_answer(session);
        PGresult *result = PQgetResult(session->connection);
        if (!result)
            return text ? text : mem_string("no result");
        free(text);
        text = result_text(result);
        PQclear(result);
    }
}

char *outcome(struct session *session, const char *sql, const struct claim *claim)
{
    start(session, sql, claim);
    return finish(session);
}

void assert_waits(struct places *w, struct session *session)
{
    _cleanup_(mem_free) char *sql =
        mem_format("SELECT count(*) FROM pg_stat_activity WHERE pid = %d AND wait_event_type = 'Lock'"
                   " AND cardinality(pg_blocking_pids(pid)) > 0",
            PQbackendPID(session->connection));

    for (int i = 0; i < WAIT_MS / 5; i++) {
        if (pg_number(w->admin, sql) == 1)
            return;
        if (answered(session)) {
            _cleanup_(mem_free) char *text = finish(session);
            fail_msg("session %s does not wait: %s", session->name, text);
        }
        usleep(5000);
    }
    fail_msg("session %s neither waits for a lock nor answers", session->name);
}

void assert_outcome(
    char *got, const char *expected, const char *session, const char *sql, const char *file, int line)
{
    _cleanup_(mem_free) char *text = got;

    if (strcmp(text, expected) != 0)
        print_error("session %s: %s: \"%s\" instead of \"%s\"\n", session, sql, text, expected);
    _assert_string_equal(text, expected, file, line);
}

/* ---- looking, and the clock ---- */

void admin(struct places *w, const char *sql)
{
    pg_run(w->admin, sql);
}

char *seen(struct places *w, const char *sql, const struct claim *claim)
{
    struct session session = {.name = "admin", .connection = w->admin};

    return outcome(&session, sql, claim);
}

char *places_dump(struct places *w)
{
    return pg_text(w->admin, "SELECT test.dump()");
}

bool places_same(struct places *w, const char *before)
{
    _cleanup_(mem_free) char *after = places_dump(w);
    const char *left = before, *right = after;

    while (*left || *right) {
        size_t left_length = strcspn(left, "\n"), right_length = strcspn(right, "\n");
        if (left_length != right_length || memcmp(left, right, left_length) != 0) {
            print_error("changed: %.*s -> %.*s\n", (int)left_length, left, (int)right_length, right);
            return false;
        }
        left += left_length + (left[left_length] == '\n');
        right += right_length + (right[right_length] == '\n');
    }
    return true;
}

void clock_pass_us(struct places *w, int64_t us)
{
    _cleanup_(mem_free) char *sql =
        mem_format("SELECT setval('test.clock', last_value + %" PRId64 ") FROM test.clock", us);

    admin(w, sql);
}

void clock_pass(struct places *w, int64_t seconds)
{
    clock_pass_us(w, seconds * 1000000);
}

void lock_timeouts(struct places *w, const char *timeout)
{
    _cleanup_(mem_free) char *sql =
        mem_format("DO $$ DECLARE f regprocedure; BEGIN FOR f IN SELECT oid FROM pg_proc WHERE pronamespace ="
                   " 'tenure'::regnamespace AND proconfig::text LIKE '%%lock_timeout%%' LOOP"
                   " EXECUTE format('ALTER FUNCTION %%s SET lock_timeout = %%L', f, '%s'); END LOOP; END $$",
            timeout);

    admin(w, sql);
}

/* ---- short forms ---- */

static void remember_token(const char *token)
{
    assert_true(given.count < ARRAY_SIZE(given.hex));
    assert_int_equal(strlen(token), strlen("\\x") + 64);
    memcpy(given.hex[given.count++], token + strlen("\\x"), sizeof given.hex[0]);
}

struct claim claimed(struct session *session, int id)
{
    struct claim claim = {.fence = 0};
    char result[16] = "";
    _cleanup_(mem_free) char *sql =
        mem_format("SELECT * FROM (SELECT result, attempt, token, fence FROM"
                   " tenure.claim_row('app.source', 'id', '%d', 'deleted_at', '" WINDOW "')) c",
            id);
    _cleanup_(mem_free) char *text = outcome(session, sql, NULL);

    if (sscanf(text, "%15[^|]|%39[^|]|%71[^|]|%" SCNd64, result, claim.attempt, claim.token, &claim.fence) !=
        4)
        fail_msg("session %s: claim of %d: %s", session->name, id, text);
    remember_token(claim.token);
    return claim;
}

void publication_started(struct session *session, const struct claim *claim)
{
    STEP(session, "", "BEGIN", NULL);
    STEP(session, "t", PUBLICATION_BEGIN, claim);
}
