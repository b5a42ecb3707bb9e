/*
 * Where we are: the repository of the work directory, if there is one, and the store that it names. For the
 * commands that look; `done` finds its own way. One thread.
 */
#ifndef CLI_HERE_H
#define CLI_HERE_H

#include "attempts/store.h"
#include "cli/cli.h"

struct here {
    bool inside;      /* of a repository with a commit */
    char *top;        /* absolute */
    char *repository; /* its name */
    char *store_url;  /* of its configuration; NULL: none named */
    char *commit, *tree;
    char *checkout; /* subject of this checkout; NULL unless asked for */
};

/* Never fails: outside of a repository, or in one without a commit, `inside` is false. */
void here_look(bool with_checkout, struct here *ret);
void here_done(struct here *here);

/* The store's URL: option or environment, then the configuration, else NULL (the default). */
const char *here_store_url(const struct cli *cli, const struct here *here);
_must_use_ enum result here_store_open(const struct cli *cli, const struct here *here,
    enum store_access access, struct store **ret, struct error *err);

#endif
