/*
 * The statement: in-toto Statement v1 with predicate test-result v0.1
 * (https://in-toto.io/attestation/test-result/v0.1).
 *
 * Subject: the repository with digests gitCommit and gitTree. result PASSED; configuration: descriptors of
 * tenure.json and of each evidence; passedTests: the producers. The extension field "tenure" holds attempt,
 * fence, journal chain head, version, time, and the demand: its digest, and whether the producers are all of
 * the configuration. Pure.
 *
 *     {"_type":"https://in-toto.io/Statement/v1",
 *      "subject":[{"name":REPOSITORY,"digest":{"gitCommit":HEX,"gitTree":HEX}}],
 *      "predicateType":"https://in-toto.io/attestation/test-result/v0.1",
 *      "predicate":{"result":"PASSED",
 *        "configuration":[{"name":"tenure.json","digest":{"blake2b_256":HEX}},
 *          {"name":"evidence/PRODUCER","digest":{"blake2b_256":HEX},
 *           "annotations":{"sequence":N,"reused":BOOLEAN}}, ...],
 *        "passedTests":[PRODUCER, ...],
 *        "tenure":{"version":TEXT,"time":RFC 3339 in whole seconds,"attempt":ID,"fence":N,"journal":HEX,
 *          "demand":{"blake2b_256":HEX,"complete":BOOLEAN}}}}
 *
 * on one line, always in this order. blake2b_256 is BLAKE2b with a result of 256 bits (b2sum -l 256).
 */
#ifndef COMPLETION_PROOF_STATEMENT_H
#define COMPLETION_PROOF_STATEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct statement_evidence {
    const char *producer, *key; /* key digest */
    int64_t sequence;           /* in the store's order; 0: not known, the key is left out */
    bool reused;
};

struct statement {
    const char *repository, *commit, *tree;
    const char *config_digest, *demand_digest;
    const struct statement_evidence *evidence;
    size_t evidence_count;
    bool complete; /* every producer of the configuration is demanded */
    const char *attempt_id;
    int64_t fence;
    const char *journal_head; /* NULL: none, the key is left out */
    const char *version;
    int64_t wall_ms; /* written in whole seconds */
    void *backing;   /* read side: owns the strings */
};

void statement_encode(const struct statement *statement, struct text *ret);
/* Strict. INVALID when it is not such a statement, DENIED when it is one whose result is FAILED or WARNED. */
_must_use_ enum result statement_decode(
    const char *json, size_t length, struct statement *ret, struct error *err);
void statement_done(struct statement *statement);

#endif
