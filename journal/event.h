/*
 * What a journal tells: one record is one event.
 *
 * The same structs feed the writer, and whoever looks: the terminal of the run and an attached one on the
 * other side of the machine draw from equal events. Fields that a kind does not use are zero. Unknown kinds
 * are kept and skipped. Strings are borrowed from the caller when writing, and from `backing` when read.
 */
#ifndef JOURNAL_EVENT_H
#define JOURNAL_EVENT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

enum journal_kind {
    JOURNAL_HEADER,   /* first record; written by the journal itself */
    JOURNAL_RESERVED, /* attempt, fence, attempt_kind, repository, commit, tree, text (what runs), directory,
                         ttl_ms */
    JOURNAL_PLAN,     /* plan, total */
    JOURNAL_STARTED,  /* producer, pid, start_ticks, cgroup, log, command, expected_ms */
    JOURNAL_PROGRESS, /* phase, done, total */
    JOURNAL_OUTPUT,   /* producer, offset_bytes (written so far), dropped_bytes */
    JOURNAL_FINISHED, /* producer, verdict, exit_code, signal, duration_ms, frozen_ms, digest, ..., text */
    JOURNAL_EVIDENCE, /* producer, key, reused, verdict, text (why reused) */
    JOURNAL_RENEWAL_TROUBLE, /* text, result */
    JOURNAL_FROZEN,          /* text */
    JOURNAL_THAWED,          /* duration_ms */
    JOURNAL_GAP, /* duration_ms, text: the executor itself stood still, stopped or suspended, and looked at
                    nothing; the work was not frozen for it */
    JOURNAL_RETIRED, /* reason, text, by_attempt */
    JOURNAL_NOTE,    /* text: leftovers ended, recovered attempts, what is waited for */
    JOURNAL_SETTLED, /* last: state, reason, text, exit_code, proof, duration_ms */
    JOURNAL_UNKNOWN, /* read only: a kind of a newer version */
    JOURNAL_KIND_MAX
};

const char *journal_kind_name(enum journal_kind kind); /* "renewal-trouble", ... */

/* One line of a plan. */
struct journal_plan_step {
    const char *producer;
    const char *reason;
    bool reuse;
    int64_t expected_ms; /* from history; 0 when unknown */
};

struct journal_event {
    enum journal_kind kind;
    int64_t boot_ms, wall_ms; /* filled in by the writer */

    const char *attempt, *attempt_kind, *repository, *commit, *tree;
    const char *directory; /* where the run was started */
    int64_t fence, ttl_ms;

    const struct journal_plan_step *plan;
    size_t plan_count;

    const char *producer;
    const char *log;     /* file name below the journal's out/; NULL when output is not captured */
    const char *cgroup;  /* of the producer; NULL when it has none of its own */
    const char *command; /* what a person types to do the same; NULL when that is not known */
    int64_t pid, start_ticks, expected_ms;

    const char *phase;
    int64_t done, total;

    int64_t offset_bytes, dropped_bytes;

    const char *verdict; /* "passed", "failed", "signalled", "timed-out", "quiet", "not-started", ... */
    int64_t exit_code, signal, duration_ms, frozen_ms;
    const char *digest; /* of the output as kept */
    const char *key;
    bool reused;

    const char *result; /* word of the result vocabulary */
    const char *state, *reason, *text, *by_attempt;
    const char *proof;

    struct json_object *backing; /* read side: owns the strings above */
    struct journal_plan_step *backing_plan;
};

/* Compact JSON of an event, appended to `ret`; always valid UTF-8, no line feed, and never longer than
 * FORMAT_RECORD_LIMIT: a long text ends in a statement of what was left out, a plan with too many steps keeps
 * its first ones and says in `text` how many are not listed. */
void journal_event_encode(const struct journal_event *event, struct text *ret);

/* The reverse. CORRUPT when required fields are missing or of the wrong type. */
_must_use_ enum result journal_event_decode(
    const char *json, size_t length, struct journal_event *ret, struct error *err);
void journal_event_done(struct journal_event *event);

#endif
