/*
 * The attempt record: one try, by one executor, at work on named subjects. Mutable, ends once.
 *
 * A record is a plain value that owns its strings: attempt_done() frees them, attempt_copy() duplicates. Not
 * thread-safe; give each thread its own copy.
 */
#ifndef ATTEMPTS_ATTEMPT_H
#define ATTEMPTS_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attempts/lease.h"
#include "base/executor.h"
#include "base/uuid.h"

#define TOKEN_BYTES            32
#define TOKEN_DIGEST_BYTES     32
#define SETTLE_NONCE_SIZE      33 /* 16 random bytes in hex */
#define ATTEMPT_RECORD_VERSION 2

enum attempt_state {
    ATTEMPT_PLANNING,
    ATTEMPT_RUNNING,
    ATTEMPT_PASSED,
    ATTEMPT_FAILED,
    ATTEMPT_CANCELLED,
    ATTEMPT_STATE_MAX
};

enum attempt_kind {
    KIND_DONE,
    KIND_TRIAL, /* done --dirty: never a Proof */
    KIND_MEASURE,
    KIND_COMMAND,
    KIND_PUBLICATION, /* strict: renew and settle need a living lease */
    ATTEMPT_KIND_MAX
};

const char *attempt_state_name(enum attempt_state state);
const char *attempt_kind_name(enum attempt_kind kind);
_must_use_ bool attempt_state_parse(const char *name, enum attempt_state *ret);
_must_use_ bool attempt_kind_parse(const char *name, enum attempt_kind *ret);
bool attempt_state_is_terminal(enum attempt_state state);
bool attempt_kind_is_strict(enum attempt_kind kind);

/* Why an attempt ended as it did. Codes are a fixed list, documented in attempt.c. */
struct reason {
    char *code;
    char *text;       /* one sentence; NULL when the code says all */
    char *by_attempt; /* the attempt that retired this one; NULL */
};
void reason_done(struct reason *reason);

struct progress {
    char phase[32];      /* "planning", "producers", "settling" */
    int64_t done, total; /* producers */
};

/* Proof of ownership. Only the owner has it; it is never printed, stored, or handed to a child. */
struct credential {
    char attempt_id[UUID_TEXT_SIZE];
    uint8_t token[TOKEN_BYTES];
    int64_t fence; /* safe to show */
};
void token_digest(const uint8_t token[TOKEN_BYTES], uint8_t ret[TOKEN_DIGEST_BYTES]);

struct attempt {
    char id[UUID_TEXT_SIZE];
    int64_t fence;
    uint8_t token_digest[TOKEN_DIGEST_BYTES]; /* zeros from a server, which does not give it away */
    enum attempt_kind kind;
    enum attempt_state state;
    char *repository; /* NULL for work outside a repository */
    char **subjects;  /* sorted bytewise, unique */
    size_t subject_count;
    struct executor executor;
    char *journal_handle, *journal_host, *journal_path;
    struct reason reason;
    struct lease lease;
    int64_t acquired_wall_ms, renewed_wall_ms, settled_wall_ms; /* for people; LEASE_TIME_NONE when absent */
    int64_t rev;
    int64_t record_version;
    struct progress progress;
    char *cancel_by; /* who asked for cancellation; NULL when nobody did */
    int64_t cancel_wall_ms;
    char settle_nonce[SETTLE_NONCE_SIZE]; /* empty until settled by its owner */
};

/* How every sentence names an attempt: its handle, which can be typed; its id when it has none. Borrowed. */
const char *attempt_name(const struct attempt *attempt);

void attempt_done(struct attempt *attempt);
void attempt_copy(const struct attempt *from, struct attempt *ret);
bool attempt_is_unfinished(const struct attempt *attempt);
bool attempt_holds(const struct attempt *attempt, const char *subject);

struct attempt_list {
    struct attempt *items;
    size_t count;
};
void attempt_list_done(struct attempt_list *list);

#endif
