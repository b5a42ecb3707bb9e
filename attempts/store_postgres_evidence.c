#include <string.h>

#include "attempts/store_postgres-private.h"
#include "base/memory.h"
#include "generated/attempts_sql.h"

#define NONCE_BYTES 16

/* ---- evidence ---- */

enum result postgres_evidence_put(
    struct store *base, const struct credential *credential, struct evidence_row *row, struct error *err)
{
    struct postgres_store *store = postgres_of(base);
    const char *machine_id = row->machine_id[0] ? row->machine_id : store->machine.machine_id;
    _cleanup_(result_cleanup) PGresult *result = NULL;
    struct answer answer = {.pq = store->pq, .next = 2};
    int64_t sequence = 0;
    uint8_t random[NONCE_BYTES];
    char nonce[2 * NONCE_BYTES + 1];
    enum result r = RESULT_OK;

    random_bytes(random, sizeof random);
    hex_encode(random, sizeof random, nonce);
    r = POSTGRES_WRITE("evidence", store,
        postgres_call(store, REPEATABLE, SQL_POSTGRES_EVIDENCE_PUT,
            PARAMETERS(parameter_schema(), parameter_text(credential->attempt_id),
                parameter_bytes(credential->token, TOKEN_BYTES), parameter_text(machine_id),
                parameter_text(row->producer), parameter_text(row->key), parameter_text(row->verdict),
                parameter_boolean(row->passed), parameter_boolean(row->reusable),
                parameter_text(row->repository), parameter_text(row->tree), parameter_text(row->payload),
                parameter_text(nonce)),
            &result, err),
        err);
    if (r != RESULT_OK)
        return r;
    answer.result = result;
    sequence = answer_integer(&answer);
    r = answer_check(&answer, "a row of evidence", err);
    if (r == RESULT_OK)
        row->sequence = sequence;
    return r;
}

static enum result evidence_read(struct answer *answer, struct evidence_row *ret, struct error *err)
{
    _cleanup_(evidence_row_done) struct evidence_row evidence = {0};
    enum result r = RESULT_OK;

    evidence.sequence = answer_integer(answer);
    answer_buffer(answer, evidence.attempt_id, sizeof evidence.attempt_id);
    answer_buffer(answer, evidence.machine_id, sizeof evidence.machine_id);
    evidence.repository = answer_text_or_null(answer);
    evidence.producer = answer_text(answer);
    answer_buffer(answer, evidence.key, sizeof evidence.key);
    evidence.verdict = answer_text(answer);
    evidence.passed = answer_boolean(answer);
    evidence.reusable = answer_boolean(answer);
    evidence.tree = answer_text_or_null(answer);
    evidence.payload = answer_text_or_null(answer);
    evidence.wall_ms = answer_integer(answer);
    r = answer_check(answer, "a row of evidence", err);
    if (r != RESULT_OK)
        return r;
    *ret = evidence;
    evidence = (struct evidence_row){0};
    return RESULT_OK;
}

static enum result evidence_get(struct postgres_store *store, const char *sql,
    const struct parameter *parameters, size_t count, struct evidence_row *ret, struct error *err)
{
    _cleanup_(result_cleanup) PGresult *result = NULL;
    struct answer answer = {.pq = store->pq};
    enum result r = postgres_ask(store, ASKS, sql, parameters, count, &result, err);

    if (r != RESULT_OK)
        return r;
    if (store->pq->ntuples(result) == 0)
        return error_set(err, RESULT_ABSENT, 0, "there is no such evidence");
    answer.result = result;
    return evidence_read(&answer, ret, err);
}

enum result postgres_evidence_find(
    struct store *base, const char *key, struct evidence_row *ret, struct error *err)
{
    struct postgres_store *store = postgres_of(base);

    return evidence_get(store, SQL_POSTGRES_EVIDENCE_FIND,
        PARAMETERS(parameter_schema(), parameter_text(key), parameter_text(store->machine.machine_id)), ret,
        err);
}

enum result postgres_evidence_latest(struct store *base, const char *repository, const char *producer,
    struct evidence_row *ret, struct error *err)
{
    return evidence_get(postgres_of(base), SQL_POSTGRES_EVIDENCE_LATEST,
        PARAMETERS(parameter_schema(), parameter_text(repository), parameter_text(producer)), ret, err);
}

/* ---- Proofs ---- */

static enum result proof_read(struct answer *answer, struct proof *ret, struct error *err)
{
    _cleanup_(proof_done) struct proof proof = {0};
    enum result r = RESULT_OK;

    answer_buffer(answer, proof.id, sizeof proof.id);
    answer_buffer(answer, proof.attempt_id, sizeof proof.attempt_id);
    proof.fence = answer_integer(answer);
    proof.commit = answer_text_or_null(answer);
    proof.tree = answer_text_or_null(answer);
    proof.demand = answer_text_or_null(answer);
    proof.key_id = answer_text_or_null(answer);
    proof.envelope = answer_bytes(answer, &proof.envelope_length);
    proof.wall_ms = answer_integer(answer);
    r = answer_check(answer, "a Proof", err);
    if (r != RESULT_OK)
        return r;
    *ret = proof;
    proof = (struct proof){0};
    return RESULT_OK;
}

enum result postgres_proof_find(
    struct store *base, const struct proof_query *query, struct proof *ret, struct error *err)
{
    struct postgres_store *store = postgres_of(base);
    _cleanup_(result_cleanup) PGresult *result = NULL;
    struct answer answer = {.pq = store->pq};
    enum result r = postgres_ask(store, ASKS, SQL_POSTGRES_PROOF_FIND,
        PARAMETERS(parameter_schema(), parameter_text(query->repository), parameter_text(query->tree),
            parameter_text(query->commit), parameter_text(query->demand),
            query->before_fence ? parameter_integer(query->before_fence) : parameter_text(NULL)),
        &result, err);

    if (r != RESULT_OK)
        return r;
    if (store->pq->ntuples(result) == 0)
        return error_set(err, RESULT_ABSENT, 0, "there is no such Proof");
    answer.result = result;
    return proof_read(&answer, ret, err);
}
