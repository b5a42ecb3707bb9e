#include "cli/stored.h"

#include <stdlib.h>

#include "cli/here.h"
#include "completion/proof/verify.h"
#include "completion/repository/candidate.h"

void stored_proof_done(struct stored_proof *stored)
{
    free(stored->commit);
    free(stored->tree);
    proof_done(&stored->proof);
    *stored = (struct stored_proof){0};
}

static bool proves_all(const struct proof *proof, const struct key_ring *ring)
{
    struct verify_result result = {0};
    _cleanup_(error_done) struct error ignored = {0};
    struct verify_request request = {
        .envelope = proof->envelope, .length = proof->envelope_length, .ring = ring, .tree = proof->tree};
    bool accepted = proof_verify(&request, &result, &ignored) == RESULT_OK;
    verify_result_done(&result);
    return accepted;
}

/* A newer one may be of some producers only, or by a key that nobody trusts: it takes nothing from an older.
 */
static enum result find_best(struct store *store, struct proof_query query, const struct key_ring *ring,
    struct proof *ret, struct error *err)
{
    enum result r = store_proof_find(store, &query, ret, err);
    if (r != RESULT_OK || proves_all(ret, ring))
        return r;
    struct proof older = {0};
    for (query.before_fence = ret->fence;; query.before_fence = older.fence) {
        _cleanup_(error_done) struct error none = {0};
        proof_done(&older);
        r = store_proof_find(store, &query, &older, &none);
        if (r == RESULT_ABSENT)
            return RESULT_OK;
        if (r != RESULT_OK)
            return error_move(err, &none);
        if (proves_all(&older, ring))
            break;
    }
    proof_done(ret);
    *ret = older;
    return RESULT_OK;
}

static enum result find(
    struct store *store, const struct key_ring *ring, struct stored_proof *ret, struct error *err)
{
    struct proof_query by_commit = {.commit = ret->commit, .tree = ret->tree}, by_tree = {.tree = ret->tree};
    enum result r = find_best(store, by_commit, ring, &ret->proof, err);
    if (r == RESULT_OK && proves_all(&ret->proof, ring))
        return r;
    error_done(err);
    proof_done(&ret->proof);
    return find_best(store, by_tree, ring, &ret->proof, err);
}

enum result stored_proof_find(const struct cli *cli, const char *typed, const struct key_ring *ring,
    struct stored_proof *ret, struct error *err)
{
    _cleanup_(here_done) struct here here = {0};
    _cleanup_(store_cleanup) struct store *store = NULL;
    enum result r = repository_resolve(collect_runner(), ".", typed, &ret->commit, &ret->tree, err);
    if (r != RESULT_OK)
        return r;
    here_look(false, &here);
    r = here_store_open(cli, &here, STORE_READ, &store, err);
    if (r == RESULT_OK)
        r = find(store, ring, ret, err);
    if (r != RESULT_ABSENT)
        return r;
    error_set(err, RESULT_ABSENT, 0, "no Proof of %s (tree %.12s) is stored", typed, ret->tree);
    return error_remedy(err, "make one: tenure done");
}
