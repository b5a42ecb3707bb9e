/*
 * The tests' own client of the server: libpq, directly, as its superuser, whatever way the store is reached.
 * Everything asserts success but what returns an SQLSTATE.
 */
#ifndef TESTS_CONFORMANCE_POSTGRES_H
#define TESTS_CONFORMANCE_POSTGRES_H

#include <libpq-fe.h>

#include "base/attributes.h"
#include "base/memory.h"
#include "tests/conformance/conformance.h"

/* The address of a database as somebody; owned by the caller. `through`: a URL of the same server or pooler.
 */
char *pg_url(const char *through, const char *user, const char *database);
char *pg_database(const char *url); /* its name; owned by the caller */

/* To the database of `url`, and to the one in which databases are made. In sessions of the superuser the
 * tables of the store need no schema. */
PGconn *pg_connect(const char *url);
PGconn *pg_connect_admin(void);
PGconn *pg_connect_as(const char *url, const char *user); /* nothing is set in this session */
void pg_close(PGconn **connection);

void pg_run(PGconn *connection, const char *sql);
PGresult *pg_rows(PGconn *connection, const char *sql);
char *pg_text(PGconn *connection, const char *sql); /* the first value; NULL for null; owned by the caller */
int64_t pg_number(PGconn *connection, const char *sql);
const char *pg_state(
    PGconn *connection, const char *sql); /* SQLSTATE; "00000" when it went well; until the next call */

/* A role of the test's own, without any right: roles are the whole server's, so its name is random. */
char *pg_role(void);
void pg_role_drop(char **role); /* after its database is gone */

/* Waits until a session of this database waits for a lock. */
void pg_wait_for_waiter(PGconn *connection);

#endif
