#include "cli/stored.h"

#include <stdlib.h>

#include "cli/here.h"
#include "completion/repository/candidate.h"

void stored_proof_done(struct stored_proof *stored)
{
    free(stored->commit);
    free(stored->tree);
    proof_done(&stored->proof);
    *stored = (struct stored_proof){0};
}

static enum result find(struct store *store, struct stored_proof *ret, struct error *err)
{
    struct proof_query by_commit = {.commit = ret->commit, .tree = ret->tree}, by_tree = {.tree = ret->tree};
    enum result r = store_proof_find(store, &by_commit, &ret->proof, err);
    if (r != RESULT_ABSENT)
        return r;
    error_done(err);
    return store_proof_find(store, &by_tree, &ret->proof, err);
}

enum result stored_proof_find(
    const struct cli *cli, const char *typed, struct stored_proof *ret, struct error *err)
{
    _cleanup_(here_done) struct here here = {0};
    _cleanup_(store_cleanup) struct store *store = NULL;
    enum result r = repository_resolve(collect_runner(), ".", typed, &ret->commit, &ret->tree, err);
    if (r != RESULT_OK)
        return r;
    here_look(false, &here);
    r = here_store_open(cli, &here, STORE_READ, &store, err);
    if (r == RESULT_OK)
        r = find(store, ret, err);
    if (r != RESULT_ABSENT)
        return r;
    error_set(err, RESULT_ABSENT, 0, "no Proof of %s (tree %.12s) is stored", typed, ret->tree);
    return error_remedy(err, "make one: tenure done");
}
