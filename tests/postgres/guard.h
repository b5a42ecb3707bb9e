/*
 * Removable guards of the functions in SQL: a condition whose line ends in "-- guard: NAME".
 */
#ifndef TESTS_POSTGRES_GUARD_H
#define TESTS_POSTGRES_GUARD_H

#include <libpq-fe.h>

/* Writes every function anew that has the guard, its condition false. The connection is of the schema's
 * owner. The test fails when there is no such guard. */
void guard_remove(PGconn *connection, const char *guard);

#endif
