/* The Proof that the store keeps for what a person typed. One thread. */
#ifndef CLI_STORED_H
#define CLI_STORED_H

#include "attempts/store.h"
#include "cli/cli.h"
#include "completion/proof/keys.h"

struct stored_proof {
    char *commit, *tree; /* of what was typed; set as soon as they are known, also on failure */
    struct proof proof;
};
void stored_proof_done(struct stored_proof *stored);

/* The newest Proof of that commit, else of its tree, that proves everything by a key of the ring; when there
 * is none of this kind, the newest. ABSENT when there is none, or (`tree` NULL) no such commit. */
_must_use_ enum result stored_proof_find(const struct cli *cli, const char *typed,
    const struct key_ring *ring, struct stored_proof *ret, struct error *err);

#endif
