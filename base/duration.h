/*
 * The one parser of durations: a whole number and one unit, "500ms", "60s", "10m", "2h", "14d". Nothing else:
 * no bare number, no fraction, no sum of units, no sign. Thread-safe.
 */
#ifndef BASE_DURATION_H
#define BASE_DURATION_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Parses `text` into milliseconds within [min_ms, max_ms]. `what` names the thing in the message ("--ttl").
 * RESULT_INVALID with one sentence that gives the accepted form and the range. */
_must_use_ enum result duration_parse(
    const char *what, const char *text, int64_t min_ms, int64_t max_ms, int64_t *ret_ms, struct error *err);

/* Short form for people: "480 ms", "3.2 s", "4 m 10 s", "2 h 5 m", "3 d 4 h". */
#define DURATION_TEXT_SIZE 32
void duration_format(int64_t ms, char ret[DURATION_TEXT_SIZE]);

#endif
