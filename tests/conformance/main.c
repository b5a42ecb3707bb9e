#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/conformance.h"

const struct backend *backend;

static const struct group {
    const char *name;
    int (*run)(void);
    const char *only; /* the backends that it is about; NULL: all */
} GROUPS[] = {
    {"lifecycle", test_lifecycle, NULL},
    {"cells", test_cells, NULL},
    {"leases", test_leases, NULL},
    {"recovery", test_recovery, NULL},
    {"evidence", test_evidence, NULL},
    {"contention", test_contention, NULL},
    {"races", test_races, NULL},
    {"crashes", test_crashes, NULL},
    {"publications", test_publications, NULL},
    {"place", test_sqlite, "sqlite"},
    {"faults", test_sqlite_faults, "sqlite"},
    {"schema", test_postgres_schema, "postgres"},
    {"rows", test_postgres_rows, "postgres"},
    {"rights", test_postgres_rights, "postgres"},
    {"migrations", test_postgres_migrations, "postgres"},
    {"sessions", test_postgres_sessions, "postgres pooler"},
};

static const struct backend *const BACKENDS[] = {&BACKEND_SQLITE, &BACKEND_POSTGRES, &BACKEND_POOLER};

/* conformance BACKEND [GROUP]; conformance open URL: only opens it, and exits with the result. */
int main(int argc, char **argv)
{
    int failures = 0, ran = 0;

    if (argc == 3 && strcmp(argv[1], "open") == 0)
        return (int)world_try_open(argv[2]);
    for (size_t i = 0; i < ARRAY_SIZE(BACKENDS); i++)
        if (argc > 1 && strcmp(argv[1], BACKENDS[i]->name) == 0)
            backend = BACKENDS[i];
    if (!backend) {
        fprintf(stderr, "usage: conformance BACKEND [GROUP]\n");
        return 2;
    }
    for (size_t i = 0; i < ARRAY_SIZE(GROUPS); i++) {
        if (GROUPS[i].only && !strstr(GROUPS[i].only, backend->name))
            continue;
        if (argc > 2 && strcmp(argv[2], GROUPS[i].name) != 0)
            continue;
        ran++;
        failures += GROUPS[i].run();
    }
    return failures || !ran;
}
