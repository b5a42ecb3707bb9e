#include "completion/proof/verify.h"

#include <string.h>

static const char *const REFUSAL_NAMES[VERIFY_REFUSAL_MAX] = {
    [VERIFY_ACCEPTED] = "accepted",
    [VERIFY_MALFORMED] = "malformed",
    [VERIFY_UNTRUSTED] = "untrusted",
    [VERIFY_FAILED_RESULT] = "failed-result",
    [VERIFY_OTHER_TREE] = "other-tree",
    [VERIFY_PARTIAL] = "partial",
};

const char *verify_refusal_name(enum verify_refusal refusal)
{
    return refusal < VERIFY_REFUSAL_MAX ? REFUSAL_NAMES[refusal] : "unknown";
}

void verify_result_done(struct verify_result *result)
{
    statement_done(&result->statement);
    *result = (struct verify_result){0};
}

/* Every refusal leaves as INVALID, whatever the step below called it. */
static enum result refuse(
    struct verify_result *result, enum verify_refusal refusal, struct error *cause, struct error *err)
{
    result->refusal = refusal;
    cause->code = RESULT_INVALID;
    return error_move(err, cause);
}

static enum result check_name(const char *what, const char *wanted, const char *found, struct error *err)
{
    if (!wanted || strcmp(wanted, found) == 0)
        return RESULT_OK;
    return error_set(err, RESULT_INVALID, 0, "the Proof is about %s %s, not %s", what, found, wanted);
}

/* The tree first: it says more than the commit. */
static enum result check_subject(
    const struct verify_request *request, const struct statement *statement, struct error *err)
{
    enum result r = check_name("tree", request->tree, statement->tree, err);
    return r == RESULT_OK ? check_name("commit", request->commit, statement->commit, err) : r;
}

static enum result partial(const struct statement *statement, struct error *err)
{
    error_set(err, RESULT_INVALID, 0, "the Proof covers only %zu of the configuration's producers",
        statement->evidence_count);
    return error_remedy(err, "run `tenure done` without names for a Proof of all");
}

enum result proof_verify(const struct verify_request *request, struct verify_result *ret, struct error *err)
{
    _cleanup_(error_done) struct error cause = {0};
    _cleanup_(text_done) struct text payload = {0};
    *ret = (struct verify_result){.refusal = VERIFY_MALFORMED};
    digest_hex(request->envelope, request->length, ret->id);

    enum result r =
        dsse_verify(request->envelope, request->length, request->ring, &payload, &ret->key, &cause);
    if (r != RESULT_OK)
        return refuse(ret, r == RESULT_DENIED ? VERIFY_UNTRUSTED : VERIFY_MALFORMED, &cause, err);
    r = statement_decode(payload.bytes, payload.length, &ret->statement, &cause);
    if (r != RESULT_OK)
        return refuse(ret, r == RESULT_DENIED ? VERIFY_FAILED_RESULT : VERIFY_MALFORMED, &cause, err);
    if (check_subject(request, &ret->statement, &cause) != RESULT_OK)
        return refuse(ret, VERIFY_OTHER_TREE, &cause, err);
    if (!ret->statement.complete && !request->partial_allowed &&
        partial(&ret->statement, &cause) != RESULT_OK)
        return refuse(ret, VERIFY_PARTIAL, &cause, err);
    ret->refusal = VERIFY_ACCEPTED;
    return RESULT_OK;
}
