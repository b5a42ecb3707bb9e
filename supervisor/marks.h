/*
 * The mark of an attempt's work: TENURE_ATTEMPT and TENURE_STORE in the environment that a process was
 * started with, by which it is found when nobody else knows it any more.
 *
 * Both are lists joined by ':', of equal length, whose elements belong together: one pair (attempt, store)
 * per level of nesting, so that an outer attempt in another store still finds the work of an inner one. Typed
 * by a person, TENURE_STORE is the address of a store instead: that is no mark, and is never handed on.
 *
 * Loop thread only, but for the pure mark_stores_are_ids().
 */
#ifndef SUPERVISOR_MARKS_H
#define SUPERVISOR_MARKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* The values of TENURE_ATTEMPT and TENURE_STORE for the work of an attempt: the inherited lists with this
 * pair appended. Inherited values that are no pairs are dropped: they mark nothing. Owned by the caller. */
void mark_append(const char *attempts, const char *stores, const char *attempt_id, const char *store_id,
    char **ret_attempts, char **ret_stores);

/* True for a value of TENURE_STORE that lists ids of stores, and is no address. */
bool mark_stores_are_ids(const char *stores);

/* True when this process runs inside work of the given store (a nested run). */
bool mark_is_inside(const char *store_id);

/* True when this process runs inside the work of that attempt: what waits for its end would never end. */
bool mark_is_of(const char *attempt_id, const char *store_id);

/* Signals every process that bears the mark of `attempt_id` and `store_id`, once, but never this one or its
 * ancestors. Returns how many bore it; 0 only means so when it is answered twice in a row, for a process that
 * is just being born may be passed over. Appends their names to `named` (may be NULL). */
size_t mark_kill(const char *store_id, const char *attempt_id, int signal, struct text *named);

#endif
