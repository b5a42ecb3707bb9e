/* From evidence to a signed Proof, and back: is there one already? */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "completion/completion-private.h"
#include "completion/proof/verify.h"

void signed_proof_done(struct signed_proof *proof)
{
    text_done(&proof->envelope);
    *proof = (struct signed_proof){0};
}

/* What the Proof says of each demanded producer; how long it took, it does not say. */
static void take_proved(struct run *run, const struct statement *statement)
{
    for (size_t i = 0; i < statement->evidence_count; i++) {
        size_t index = config_producer(&run->config, statement->evidence[i].producer);
        if (index == SIZE_MAX || run->steps[index].state != STEP_WAITING)
            continue;
        struct step *step = &run->steps[index];
        step->state = STEP_ENDED;
        step->reuse = true;
        step->evidence = (struct evidence){.verdict = mem_string("passed"),
            .passed = true,
            .exit_code = -1,
            .signal = -1,
            .duration_ms = -1};
        snprintf(step->applicability.key, sizeof(step->applicability.key), "%s", statement->evidence[i].key);
    }
}

/* Is it signed by a key that the user has or trusts? The repository's own keys are not asked: whoever writes
 * the tree writes them. A ring that cannot be read is an error, and not a Proof that nobody signed. */
static enum result check_found(struct run *run, const struct proof *proof, bool *ret_good, struct error *err)
{
    struct key_ring ring = {0};
    struct verify_result verdict = {0};
    _cleanup_(error_done) struct error refused = {0};
    enum result r = key_ring_add_own(&ring, err);
    if (r == RESULT_OK) {
        struct verify_request request = {
            .envelope = proof->envelope,
            .length = proof->envelope_length,
            .ring = &ring,
            .tree = run->candidate.tree,
            .partial_allowed = run->partial,
        };
        *ret_good = proof_verify(&request, &verdict, &refused) == RESULT_OK;
    }
    if (r == RESULT_OK && *ret_good)
        take_proved(run, &verdict.statement);
    verify_result_done(&verdict);
    key_ring_done(&ring);
    return r;
}

enum result proving_find(struct run *run, struct store *store, struct proof *ret, struct error *err)
{
    struct proof_query query = {
        .repository = run->repository, .tree = run->candidate.tree, .demand = run->demand};
    struct proof found = {0};
    bool good = false;
    enum result r = store_proof_find(store, &query, &found, err);
    if (r == RESULT_OK)
        r = check_found(run, &found, &good, err);
    /* One that no trusted key signed is as good as none: the evidence is there, and a new one is soon made.
     */
    if (r == RESULT_OK && !good)
        r = error_set(err, RESULT_ABSENT, 0, "no Proof of this demand that verifies");
    if (r == RESULT_OK)
        *ret = found;
    else
        proof_done(&found);
    return r;
}

static size_t list_evidence(const struct run *run, struct statement_evidence *list)
{
    size_t count = 0;
    for (size_t n = 0; n < run->config.producer_count; n++) {
        const struct step *step = &run->steps[run->config.order[n]];
        if (step->state != STEP_ENDED)
            continue;
        list[count++] = (struct statement_evidence){.producer = step->producer->name,
            .key = step->evidence.applicability.key,
            .sequence = step->evidence.sequence,
            .reused = step->reuse};
    }
    return count;
}

static void encode_statement(struct run *run, struct text *ret)
{
    _cleanup_(mem_free) struct statement_evidence *list =
        mem_alloc((run->config.producer_count + 1) * sizeof *list);
    char head[2 * DIGEST_SHORT_BYTES + 1];
    journal_head(hold_journal(run->hold), head);
    const struct attempt *attempt = hold_attempt(run->hold);
    struct statement statement = {
        .repository = run->repository,
        .commit = run->candidate.commit,
        .tree = run->candidate.tree,
        .config_digest = run->config.digest,
        .demand_digest = run->demand,
        .evidence = list,
        .evidence_count = list_evidence(run, list),
        .complete = !run->partial,
        .attempt_id = attempt->id,
        .fence = attempt->fence,
        .journal_head = head,
        .version = TENURE_VERSION,
        .wall_ms = run->clock->wall_ms(run->clock),
    };
    statement_encode(&statement, ret);
}

enum result proving_sign(struct run *run, struct signed_proof *ret, struct error *err)
{
    struct signing_key key = {0};
    enum result r = key_load(NULL, &key, err);
    if (r != RESULT_OK)
        return r;
    _cleanup_(text_done) struct text payload = {0};
    encode_statement(run, &payload);
    dsse_sign(&key, payload.bytes, payload.length, &ret->envelope);
    run->result->key_id = mem_string(key.public.id);
    signing_key_done(&key);
    ret->row = (struct proof_row){
        .repository = run->repository,
        .commit = run->candidate.commit,
        .tree = run->candidate.tree,
        .demand = run->demand,
        .key_id = run->result->key_id,
        .envelope = ret->envelope.bytes,
        .envelope_length = ret->envelope.length,
    };
    digest_hex(ret->envelope.bytes, ret->envelope.length, ret->row.id);
    return RESULT_OK;
}
