/*
 * Where journal/ and attempts/ meet: the verdict about the owner of a record, from its journal. Thread-safe.
 */
#ifndef SUPERVISOR_VERDICT_PRIVATE_H
#define SUPERVISOR_VERDICT_PRIVATE_H

#include "attempts/attempt.h"
#include "journal/liveness.h"

/* The question to ask about an attempt; borrows from both. */
struct liveness_question verdict_question(const struct machine *machine, const struct attempt *attempt);
struct liveness verdict_of(const struct machine *machine, const struct attempt *attempt);
/* The journal lies on this machine, as far as its record says. */
bool verdict_is_local(const struct machine *machine, const struct attempt *attempt);

#endif
