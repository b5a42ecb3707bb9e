#include "tests/postgres/guard.h"

#include "tests/conformance/postgres.h"

/* "IF ... THEN", "ELSIF ... THEN", "WHEN ... THEN": the condition stands in the line that bears the mark. */
static const char REWRITE[] =
    "SELECT regexp_replace(pg_get_functiondef(oid),"
    " '(?n)^(\\s*(?:\\|\\| CASE )?(?:IF|ELSIF|WHEN)) .* THEN(.*-- guard: %1$s)$', '\\1 false THEN\\2', 'g')"
    " FROM pg_proc WHERE pronamespace = 'tenure'::regnamespace"
    " AND prosrc ~ '(?n)^\\s*(\\|\\| CASE )?(IF|ELSIF|WHEN) .* THEN.*-- guard: %1$s$'";

void guard_remove(PGconn *connection, const char *guard)
{
    _cleanup_(mem_free) char *sql = mem_format(REWRITE, guard);
    PGresult *functions = pg_rows(connection, sql);

    if (PQntuples(functions) == 0)
        fail_msg("there is no guard \"%s\" to remove", guard);
    for (int i = 0; i < PQntuples(functions); i++)
        pg_run(connection, PQgetvalue(functions, i, 0));
    PQclear(functions);
}
