#include "attempts/migrate.h"

#include <stdlib.h>
#include <string.h>

#include "generated/migrations_sql.h"

/* The version in "KIND/NNNN_name"; 0 for a file of another kind. */
static int64_t version_of(const char *name, const char *kind)
{
    size_t length = strlen(kind);

    if (strncmp(name, kind, length) != 0 || name[length] != '/')
        return 0;
    return strtoll(name + length + 1, NULL, 10);
}

int64_t migration_newest(const char *kind)
{
    int64_t newest = 0;

    for (const struct migrations_sql *file = migrations_sql; file->name; file++)
        if (version_of(file->name, kind) > newest)
            newest = version_of(file->name, kind);
    return newest;
}

const char *migration_text(const char *kind, int64_t version)
{
    for (const struct migrations_sql *file = migrations_sql; file->name; file++)
        if (version > 0 && version_of(file->name, kind) == version)
            return file->text;
    return NULL;
}
