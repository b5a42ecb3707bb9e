/* What the files of this room that deal with keys share. */
#ifndef COMPLETION_PROOF_KEYS_PRIVATE_H
#define COMPLETION_PROOF_KEYS_PRIVATE_H

#include "completion/proof/keys.h"
#include "completion/proof/places-private.h"

#define PUBLIC_SUFFIX ".pub"

/* Fills the id from the bytes. */
void public_key_name(struct public_key *key);

#endif
