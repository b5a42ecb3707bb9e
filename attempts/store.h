/*
 * The store: the authority over attempts. One interface, whatever keeps the rows.
 *
 *     struct store_options options = {.url = NULL, .clock = clock_system(), .machine = &machine};
 *     store_open(&options, STORE_WRITE, &store, err);
 *     store_reserve(store, &reservation, &attempt, &holder, err);      // OK, or HELD and nothing written
 *     store_bind(store, &credential, demand, err);                     // planning -> running
 *     store_renew(store, &renewals, ...)                               // heartbeat, on a handle of its own
 *     store_evidence_put(store, &credential, &evidence, err);
 *     store_settle(store, &credential, &settlement, err);              // ends once
 *     store_close(store);
 *
 * Every transition locks the row, then reads the clock, then decides (transition.h). A refused operation
 * changes nothing. Whoever is not the owner gets RESULT_RETIRED. Results beside those named at each function,
 * from any: BUSY (locked; retry), UNREACHABLE, DENIED, NEWER, CORRUPT.
 *
 * A handle belongs to one thread at a time; a thread that needs the store opens its own.
 */
#ifndef ATTEMPTS_STORE_H
#define ATTEMPTS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attempts/attempt.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/machine.h"

struct store;

struct store_options {
    const char *url; /* "sqlite:PATH", "postgresql://..."; NULL: sqlite in the state directory */
    const struct clock *clock;
    const struct machine *machine;
    int64_t deadline_ms; /* bound of any one statement's wait; 0: 30 s */
    int64_t patience_ms; /* a server that was there and is away is asked again for so long; 0: deadline_ms */
    bool known;          /* it was there before: so also when this handle has not reached it yet */
    /* Called about every 10 ms while the store waits for a lock or for a server. Returning false ends the
     * wait: BUSY. */
    bool (*waiting)(void *context);
    void *waiting_context;
};

enum store_access {
    STORE_READ,    /* never writes, never creates; a missing store is RESULT_ABSENT */
    STORE_WRITE,   /* creates and migrates an empty one; INVALID on a network file system or another machine's
                      store, and in a database that holds other tables or an older schema */
    STORE_MIGRATE, /* as STORE_WRITE, and asked to migrate: whatever else the database holds, however old */
};

_must_use_ enum result store_open(
    const struct store_options *options, enum store_access access, struct store **ret, struct error *err);
void store_close(struct store *store); /* NULL is allowed */
void store_cleanup(struct store **store);

/* Whether others may keep us from it by their network alone. NULL is the embedded store. */
bool store_is_server(const char *url);

/* Whether rows of the application can be claimed there, as far as the address tells: INVALID of the embedded
 * store. */
_must_use_ enum result store_check_rows(const char *url, struct error *err);

/* A URL without password, for people. Owned by the caller. */
char *store_url_printable(const char *url);

const char *store_id(const struct store *store); /* the store's random id, hex; lives as long as the handle */
_must_use_ enum result store_now(struct store *store, struct store_time *ret, struct error *err);

struct store_status {
    char *location; /* printable */
    int64_t schema_version, newest_version;
    int64_t unfinished, ended, evidence, proofs;
};
void store_status_done(struct store_status *status);
_must_use_ enum result store_status(struct store *store, struct store_status *ret, struct error *err);
/* Brings the schema to this program's version; OK when it is there. NEWER: nothing is touched. */
_must_use_ enum result store_migrate(struct store *store, struct error *err);

/* ---- the life of an attempt ---- */

/* One row of the application, which a publication claims beside its attempt. Borrowed strings. */
struct row_source {
    const char *table;       /* as in SQL: schema.table, quoted where it must be */
    const char *key;         /* name of a column that identifies the row */
    const char *value;       /* its value, as text */
    const char *soft_delete; /* column: true, or not null, means gone; NULL: rows are only ever deleted */
};

struct reservation {
    struct credential
        credential; /* id and token, made by reservation_init; the fence is filled in by the store */
    enum attempt_kind kind;
    const char *repository;
    const char *const *subjects; /* any order; made unique and sorted by the store */
    size_t subject_count;
    /* KIND_PUBLICATION: the row to claim; the store names its subject itself, `subjects` stay empty. NULL:
     * none. */
    const struct row_source *row;
    const struct executor *executor;
    const char *journal_handle, *journal_path;
    int64_t ttl_ms;
    /* Also bind in the same transaction, unless leftovers of this machine and boot wait to be ended. */
    bool bind_if_clear;
};
void reservation_init(struct reservation *reservation, const struct clock *clock);

/* OK: `ret` is the record and credential.fence is set. HELD: `ret_holder` is the holder of the first held
 * subject. Repeating a reserve with the same id and token is answered OK by its own row, with no second
 * fence. With a row: ABSENT when it does not exist or is soft-deleted, INVALID where rows cannot be
 * claimed. */
_must_use_ enum result store_reserve(struct store *store, struct reservation *reservation,
    struct attempt *ret, struct attempt *ret_holder, struct error *err);

/* planning -> running; `demand` (may be NULL) is a digest fixed for good. */
_must_use_ enum result store_bind(
    struct store *store, const struct credential *credential, const char *demand, struct error *err);

struct renewal {
    const struct credential *credential; /* in */
    const struct progress *progress;     /* in; may be NULL */
    enum result
        result; /* OK: renewed. RETIRED: finished, or another token. LAPSED: strict. Else unconfirmed */
    bool cancel_requested;
    struct reason reason; /* RETIRED: why and by whom; renewal_done frees */
};
void renewal_done(struct renewal *renewal);
/* Renews all in one statement or transaction. The return value is about the round trip; each entry has its
 * own. */
_must_use_ enum result store_renew(
    struct store *store, struct renewal *renewals, size_t count, struct error *err);

struct proof_row {
    char id[DIGEST_HEX_SIZE]; /* digest of the envelope */
    const char *repository, *commit, *tree, *demand, *key_id;
    const char *envelope; /* the bytes as signed, stored and sent */
    size_t envelope_length;
};

struct settlement {
    enum attempt_state state; /* PASSED, FAILED or CANCELLED */
    const char *reason_code, *reason_text;
    char nonce[SETTLE_NONCE_SIZE]; /* made by settlement_init; the same for every repetition */
    const struct proof_row *proof; /* kind `done` and PASSED only */
};
void settlement_init(struct settlement *settlement, enum attempt_state state);

/* UNKNOWN: the commit was sent and its answer lost; go on with store_settle_ask, on a new handle. */
_must_use_ enum result store_settle(struct store *store, const struct credential *credential,
    const struct settlement *settlement, struct error *err);
/* OK: settled by this nonce. RETIRED: ended by another. CONFLICT: not settled yet; settle anew, same nonce.
 */
_must_use_ enum result store_settle_ask(struct store *store, const struct credential *credential,
    const struct settlement *settlement, struct error *err);

struct retirement {
    const char *attempt_id;
    int64_t rev;             /* as read; a renewal in between makes it CONFLICT */
    bool owner_gone;         /* proven; else the lease must have lapsed in that very write */
    const char *reason_code; /* "owner-gone" or "lapsed" */
    const char *reason_text; /* one sentence about who does it; NULL when the code says all */
    const char *by_attempt;  /* id of the attempt on whose behalf; NULL for an operator */
};
/* Ends another's attempt as `cancelled` and records its leftovers. OK, CONFLICT, RETIRED (ended already),
 * ABSENT. */
_must_use_ enum result store_retire(
    struct store *store, const struct retirement *retirement, struct error *err);

/* Asks the owner to stop; answered by its next renewal. RETIRED when it has ended, ABSENT when there is none.
 */
_must_use_ enum result store_request_cancel(
    struct store *store, const char *attempt_id, const char *by, struct error *err);

/* Who has the embedded store of this address locked, for people: "sqlite3, pid 123". Owned by the caller;
 * NULL when nobody can be seen. Opens nothing. Source: proc_locks(5). */
char *store_locker(const char *url);

/* ---- looking ---- */

struct attempt_query {
    const char *repository;      /* NULL: any */
    const char *const *subjects; /* any of these held; ORed with the repository */
    size_t subject_count;
    bool unfinished_only;
    size_t limit; /* newest first; 0: all */
};
_must_use_ enum result store_list(
    struct store *store, const struct attempt_query *query, struct attempt_list *ret, struct error *err);
/* By id, or by journal handle. ABSENT when there is none. */
_must_use_ enum result store_find(
    struct store *store, const char *id_or_handle, struct attempt *ret, struct error *err);

/* ---- what retired attempts may have left behind ---- */

struct leftover {
    char attempt_id[UUID_TEXT_SIZE];
    struct executor executor; /* of the retired attempt */
    char *journal_path;
    char **subjects;
    size_t subject_count;
};
struct leftover_list {
    struct leftover *items;
    size_t count;
};
void leftover_list_done(struct leftover_list *list);
/* Rows of this machine and boot. Rows of this machine and an earlier boot are deleted, unless only its host's
 * name says that it is this machine. */
_must_use_ enum result store_leftovers(struct store *store, struct leftover_list *ret, struct error *err);
_must_use_ enum result store_leftover_delete(struct store *store, const char *attempt_id, struct error *err);

/* ---- evidence and Proofs ---- */

struct evidence_row {
    int64_t sequence; /* the store's own order; set by the store */
    char attempt_id[UUID_TEXT_SIZE];
    char machine_id[MACHINE_ID_SIZE];
    char *repository, *producer;
    char key[DIGEST_HEX_SIZE];
    char *verdict; /* a word of completion/evidence; the store does not judge it */
    bool passed;
    bool reusable; /* a completed outcome; interrupted ones are recorded and never found */
    char *tree;    /* of the candidate, for the reasons of a plan */
    char *payload; /* JSON, opaque to the store */
    int64_t wall_ms;
};
void evidence_row_done(struct evidence_row *row);

/* Under the token: locks the attempt, checks token and unfinished, then writes, and fills in the row's
 * sequence. RETIRED: nothing written. */
_must_use_ enum result store_evidence_put(
    struct store *store, const struct credential *credential, struct evidence_row *row, struct error *err);
/* Newest reusable row with this key: passed anywhere, or failed on this machine. ABSENT when there is none.
 */
_must_use_ enum result store_evidence_find(
    struct store *store, const char *key, struct evidence_row *ret, struct error *err);
/* Newest reusable row of a producer whatever its key, for reasons and expected times. ABSENT when none. */
_must_use_ enum result store_evidence_latest(struct store *store, const char *repository,
    const char *producer, struct evidence_row *ret, struct error *err);

struct proof {
    char id[DIGEST_HEX_SIZE];
    char attempt_id[UUID_TEXT_SIZE];
    int64_t fence;
    char *commit, *tree, *demand, *key_id;
    char *envelope;
    size_t envelope_length;
    int64_t wall_ms;
};
void proof_done(struct proof *proof);
struct proof_query {
    const char *repository; /* NULL: any */
    const char *tree;       /* NULL: any */
    const char *commit;     /* NULL: any */
    const char *demand;     /* NULL: any */
    int64_t before_fence;   /* older than this one; 0: any */
};
/* The newest that fits. ABSENT when none does. */
_must_use_ enum result store_proof_find(
    struct store *store, const struct proof_query *query, struct proof *ret, struct error *err);

/* ---- history: append-only, without renewals ---- */

struct history_event {
    int64_t sequence;
    char attempt_id[UUID_TEXT_SIZE];
    char *event; /* reserved, bound, evidence, settled, retired, cancel-requested */
    char *detail;
    int64_t wall_ms;
};
struct history {
    struct history_event *items;
    size_t count;
};
void history_done(struct history *history);
_must_use_ enum result store_history(
    struct store *store, const char *attempt_id, struct history *ret, struct error *err);

#endif
