/* Whose Proofs are believed: the keys given with --key, else those of the repository and of the user. */
#ifndef CLI_TRUST_H
#define CLI_TRUST_H

#include "cli/cli.h"
#include "completion/proof/keys.h"

/* Fills the ring, which the caller owns. A file that is no key is an error: a ring that lacks one misleads.
 */
_must_use_ enum result trust_read(const struct cli *cli, struct key_ring *ret, struct error *err);

#endif
