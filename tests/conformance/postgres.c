#include "tests/conformance/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/uuid.h"

static const char *server(void)
{
    const char *url = getenv("TENURE_TEST_POSTGRES");

    if (!url)
        fail_msg("there is no server: run this under tests/postgres/with-servers");
    return url;
}

char *pg_url(const char *through, const char *user, const char *database)
{
    return mem_format("postgresql://%s@/%s%s", user, database, strchr(through, '?'));
}

char *pg_database(const char *url)
{
    char *name = mem_string(strstr(url, "@/") + 2);

    *strchr(name, '?') = '\0';
    return name;
}

static PGconn *connected(const char *url)
{
    PGconn *connection = PQconnectdb(url);

    if (PQstatus(connection) != CONNECTION_OK)
        fail_msg("%s: %s", url, PQerrorMessage(connection));
    return connection;
}

static void be_silent(void *context _unused_, const char *message _unused_) {}

PGconn *pg_connect(const char *url)
{
    PGconn *connection = pg_connect_as(url, "postgres");

    PQsetNoticeProcessor(connection, be_silent, NULL);
    pg_run(connection, "SET search_path = tenure, pg_catalog; SET datestyle = ISO; SET timezone = 'UTC';"
                       "SET bytea_output = hex; SET lock_timeout = '20s'");
    return connection;
}

PGconn *pg_connect_admin(void)
{
    return connected(server());
}

PGconn *pg_connect_as(const char *url, const char *user)
{
    _cleanup_(mem_free) char *database = pg_database(url), *direct = pg_url(server(), user, database);

    return connected(direct);
}

void pg_close(PGconn **connection)
{
    PQfinish(*connection);
    *connection = NULL;
}

PGresult *pg_rows(PGconn *connection, const char *sql)
{
    PGresult *result = PQexec(connection, sql);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(connection));
    return result;
}

void pg_run(PGconn *connection, const char *sql)
{
    PQclear(pg_rows(connection, sql));
}

char *pg_text(PGconn *connection, const char *sql)
{
    PGresult *result = pg_rows(connection, sql);
    char *text = NULL;

    assert_true(PQntuples(result) > 0);
    if (!PQgetisnull(result, 0, 0))
        text = mem_string(PQgetvalue(result, 0, 0));
    PQclear(result);
    return text;
}

int64_t pg_number(PGconn *connection, const char *sql)
{
    _cleanup_(mem_free) char *text = pg_text(connection, sql);

    assert_non_null(text);
    return strtoll(text, NULL, 10);
}

const char *pg_state(PGconn *connection, const char *sql)
{
    static char state[6];
    PGresult *result = PQexec(connection, sql);
    const char *field = PQresultErrorField(result, PG_DIAG_SQLSTATE);

    snprintf(state, sizeof state, "%s", field ? field : "00000");
    PQclear(result);
    return state;
}

char *pg_role(void)
{
    char id[UUID_TEXT_SIZE], *role = NULL;
    _cleanup_(pg_close) PGconn *admin = pg_connect_admin();
    _cleanup_(mem_free) char *create = NULL;

    uuid_make(clock_system(), id);
    role = mem_format("role-%s", id);
    create = mem_format("CREATE ROLE \"%s\" LOGIN", role);
    pg_run(admin, create);
    return role;
}

void pg_role_drop(char **role)
{
    _cleanup_(pg_close) PGconn *admin = pg_connect_admin();
    _cleanup_(mem_free) char *drop = mem_format("DROP ROLE \"%s\"", *role);

    pg_run(admin, drop);
    free(STEAL(*role));
}

void pg_wait_for_waiter(PGconn *connection)
{
    for (int i = 0; i < 2000; i++) {
        if (pg_number(connection, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
                                  "datname = current_database()") > 0)
            return;
        usleep(5000);
    }
    fail_msg("nobody waits for a lock");
}
