#include <string.h>

#include "attempts/store_sqlite-private.h"
#include "attempts/transition.h"
#include "base/memory.h"
#include "generated/attempts_sql.h"

/* ---- evidence ---- */

static enum result evidence_insert(struct sqlite_store *store, const struct attempt *attempt,
    const struct evidence_row *row, int64_t wall_ms, struct error *err)
{
    const char *machine_id = row->machine_id[0] ? row->machine_id : store->machine.machine_id;
    const char *repository = row->repository ? row->repository : attempt->repository;

    return database_run(store, SQL_SQLITE_EVIDENCE_INSERT,
        VALUES(value_text(attempt->id), value_text(machine_id), value_text(repository),
            value_text(row->producer), value_text(row->key), value_text(row->verdict),
            value_integer(row->passed), value_integer(row->reusable), value_text(row->tree),
            value_text(row->payload), value_integer(row->wall_ms ? row->wall_ms : wall_ms)),
        NULL, err);
}

enum result sqlite_evidence_put(
    struct store *base, const struct credential *credential, struct evidence_row *row, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    _cleanup_(transaction_cleanup) struct sqlite_store *open = NULL;
    _cleanup_(attempt_done) struct attempt attempt = {0};
    _cleanup_(mem_free) char *detail = mem_format("%s: %s", row->producer, row->verdict);
    uint8_t digest[TOKEN_DIGEST_BYTES];
    int64_t wall_ms = 0, sequence = 0;
    enum result r = TRANSACTION_BEGIN("evidence", store, SCHEMA_THIS, &open, err);

    token_digest(credential->token, digest);
    if (r == RESULT_OK)
        r = attempt_load(store, credential->attempt_id, &attempt, err);
    if (r == RESULT_OK)
        r = transition_check_owner(&attempt, digest, err);
    wall_ms = sqlite_now(store).wall_ms;
    if (r == RESULT_OK)
        r = evidence_insert(store, &attempt, row, wall_ms, err);
    sequence = sqlite3_last_insert_rowid(store->db); /* before the history has a row of its own */
    if (r == RESULT_OK)
        r = history_add(store, credential->attempt_id, "evidence", detail, wall_ms, err);
    if (r == RESULT_OK)
        r = TRANSACTION_COMMIT("evidence", store, err);
    if (r == RESULT_OK)
        row->sequence = sequence;
    return r;
}

static enum result evidence_read(sqlite3_stmt *statement, struct evidence_row *ret, struct error *err)
{
    struct row row = {.statement = statement};
    _cleanup_(evidence_row_done) struct evidence_row evidence = {0};
    enum result r = RESULT_OK;

    evidence.sequence = row_integer(&row);
    row_buffer(&row, evidence.attempt_id, sizeof evidence.attempt_id);
    row_buffer(&row, evidence.machine_id, sizeof evidence.machine_id);
    evidence.repository = row_text_or_null(&row);
    evidence.producer = row_text(&row);
    row_buffer(&row, evidence.key, sizeof evidence.key);
    evidence.verdict = row_text(&row);
    evidence.passed = row_integer(&row) != 0;
    evidence.reusable = row_integer(&row) != 0;
    evidence.tree = row_text_or_null(&row);
    evidence.payload = row_text_or_null(&row);
    evidence.wall_ms = row_integer(&row);
    r = row_check(&row, "a row of evidence", err);
    if (r != RESULT_OK)
        return r;
    *ret = evidence;
    evidence = (struct evidence_row){0};
    return RESULT_OK;
}

static enum result evidence_get(struct sqlite_store *store, const char *sql, const struct value *values,
    size_t count, struct evidence_row *ret, struct error *err)
{
    _cleanup_(statement_cleanup) sqlite3_stmt *statement = NULL;
    bool found = false;
    enum result r = database_start(store, sql, values, count, &statement, err);

    if (r == RESULT_OK)
        r = database_next(store, statement, &found, err);
    if (r != RESULT_OK)
        return r;
    if (!found)
        return error_set(err, RESULT_ABSENT, 0, "there is no such evidence");
    return evidence_read(statement, ret, err);
}

enum result sqlite_evidence_find(
    struct store *base, const char *key, struct evidence_row *ret, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);

    return evidence_get(store, SQL_SQLITE_EVIDENCE_FIND,
        VALUES(value_text(key), value_text(store->machine.machine_id)), ret, err);
}

enum result sqlite_evidence_latest(struct store *base, const char *repository, const char *producer,
    struct evidence_row *ret, struct error *err)
{
    return evidence_get(sqlite_of(base), SQL_SQLITE_EVIDENCE_LATEST,
        VALUES(value_text(repository), value_text(producer)), ret, err);
}

/* ---- Proofs ---- */

enum result proof_add(struct sqlite_store *store, const struct attempt *attempt,
    const struct proof_row *proof, int64_t wall_ms, struct error *err)
{
    const char *repository = proof->repository ? proof->repository : attempt->repository;

    return database_run(store, SQL_SQLITE_PROOF_INSERT,
        VALUES(value_text(proof->id), value_text(attempt->id), value_integer(attempt->fence),
            value_text(repository), value_text(proof->commit), value_text(proof->tree),
            value_text(proof->demand), value_text(proof->key_id),
            value_blob(proof->envelope, proof->envelope_length), value_integer(wall_ms)),
        NULL, err);
}

static enum result proof_read(sqlite3_stmt *statement, struct proof *ret, struct error *err)
{
    struct row row = {.statement = statement};
    _cleanup_(proof_done) struct proof proof = {0};
    enum result r = RESULT_OK;

    row_buffer(&row, proof.id, sizeof proof.id);
    row_buffer(&row, proof.attempt_id, sizeof proof.attempt_id);
    proof.fence = row_integer(&row);
    proof.commit = row_text_or_null(&row);
    proof.tree = row_text_or_null(&row);
    proof.demand = row_text_or_null(&row);
    proof.key_id = row_text_or_null(&row);
    proof.envelope = row_bytes(&row, &proof.envelope_length);
    proof.wall_ms = row_integer(&row);
    r = row_check(&row, "a Proof", err);
    if (r != RESULT_OK)
        return r;
    *ret = proof;
    proof = (struct proof){0};
    return RESULT_OK;
}

enum result sqlite_proof_find(
    struct store *base, const struct proof_query *query, struct proof *ret, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    _cleanup_(statement_cleanup) sqlite3_stmt *statement = NULL;
    bool found = false;
    enum result r = database_start(store, SQL_SQLITE_PROOF_FIND,
        VALUES(value_text(query->repository), value_text(query->tree), value_text(query->commit),
            value_text(query->demand), value_integer(query->before_fence)),
        &statement, err);

    if (r == RESULT_OK)
        r = database_next(store, statement, &found, err);
    if (r != RESULT_OK)
        return r;
    if (!found)
        return error_set(err, RESULT_ABSENT, 0, "there is no such Proof");
    return proof_read(statement, ret, err);
}
