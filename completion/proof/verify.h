/*
 * Verification of a Proof, without a store: signature first, then the statement, then what it is about. Pure.
 */
#ifndef COMPLETION_PROOF_VERIFY_H
#define COMPLETION_PROOF_VERIFY_H

#include "completion/proof/dsse.h"
#include "completion/proof/statement.h"

struct verify_request {
    const char *envelope;
    size_t length;
    const struct key_ring *ring;
    const char *commit, *tree; /* what it must be about; NULL: whatever it says */
    bool partial_allowed;      /* accept a Proof of some producers only */
};

enum verify_refusal {
    VERIFY_ACCEPTED,
    VERIFY_MALFORMED,
    VERIFY_UNTRUSTED, /* not signed by a trusted key, or a byte was changed */
    VERIFY_FAILED_RESULT,
    VERIFY_OTHER_TREE,
    VERIFY_PARTIAL,
    VERIFY_REFUSAL_MAX
};
const char *verify_refusal_name(enum verify_refusal refusal); /* "untrusted", ... */

struct verify_result {
    enum verify_refusal refusal;
    struct statement statement; /* when the signature was good */
    const struct public_key *key;
    char id[65]; /* digest of the envelope */
};
void verify_result_done(struct verify_result *result);

/* OK when accepted. INVALID otherwise: the error says which tree, key or byte; `ret` is filled as far as it
 * is trusted. */
_must_use_ enum result proof_verify(
    const struct verify_request *request, struct verify_result *ret, struct error *err);

#endif
