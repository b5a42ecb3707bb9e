/* Where keys lie: directories, and the names in them. */
#ifndef COMPLETION_PROOF_PLACES_PRIVATE_H
#define COMPLETION_PROOF_PLACES_PRIVATE_H

#include <stddef.h>

#include "base/error.h"

/* "<config>/BELOW", owned by the caller. */
_must_use_ enum result config_path(const char *below, char **ret, struct error *err);

/* Names in a directory that end in `suffix` and do not begin with a dot, sorted bytewise. Missing: none. */
struct name_list {
    char **items;
    size_t count;
};
void name_list_done(struct name_list *list);
_must_use_ enum result name_list_read(
    const char *directory, const char *suffix, struct name_list *ret, struct error *err);

/* Makes a directory for keys. */
_must_use_ enum result keys_make_directory(const char *path, struct error *err);

#endif
