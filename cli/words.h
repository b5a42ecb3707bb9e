/* Commands whose first word says what to do: `key`, `journal`, `store`. */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "cli/cli.h"

struct verb {
    const char *name;
    size_t words_max; /* itself included */
    int (*run)(struct cli *cli);
};

/* Runs the verb that the first word names; `otherwise` (may be NULL) when there is none. Refuses an unknown
 * one. */
int verb_run(struct cli *cli, const struct verb *verbs, size_t count, const char *otherwise);

#endif
