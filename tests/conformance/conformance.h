/*
 * One suite for every kind of store, written against store.h.
 *
 * A backend makes fresh stores and looks into them by a client of its own. Two or three handles in one
 * process give exact interleavings; time passes only when a test says so. After every refused operation the
 * whole store, every column of every row, is compared with what it was before.
 */
#ifndef TESTS_CONFORMANCE_H
#define TESTS_CONFORMANCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "attempts/store.h"

struct world;

struct backend {
    const char *name;
    int race_rounds;                  /* as many as take some seconds */
    char *(*make)(void);              /* a place for a store; its URL, owned by the caller */
    void (*discard)(const char *url); /* removes it */
    char *(*dump)(const char *url);   /* TABLE.COLUMN=VALUE, a line each; owned by the caller */
    void (*prepare)(
        struct world *world); /* what a test needs in a store just made: a clock, a removed guard */
    void (*execute)(const char *url, const char *sql);
    int64_t (*count)(const char *url, const char *sql); /* the one number of a query */
    const char *const *broken; /* queries of its own that must count nothing; ends with NULL */
    void (*pass)(struct world *world, int64_t ms); /* lets the store's clock go on */
    void (*restart)(
        struct world *world); /* the store is restored, or its server started, at the world's time */
    void (*damage)(const char *url, const char *id); /* makes the record of an attempt unreadable */
    void (*watch)(
        const char *url); /* from now on every change of an ended attempt is dumped as late.attempt=ID */
    /* Somebody else takes the store's write lock, and gives it back. */
    void *(*lock)(const char *url);
    void (*unlock)(void *lock);
};

extern const struct backend *backend;
extern const struct backend BACKEND_SQLITE;
extern const struct backend BACKEND_POSTGRES; /* under tests/postgres/with-servers */
extern const struct backend BACKEND_POOLER;   /* the same through pgbouncer, in transaction mode */

struct world {
    char *url;
    struct clock_manual clock;
    struct machine machine;
    struct executor executor;
    struct store *a, *b; /* two handles of one store */
    /* Called while a handle waits for a lock. */
    bool (*waiting)(struct world *world);
    void *lock;
};

int world_setup(void **state);
int world_teardown(void **state);
struct store_options world_options(struct world *world);
struct store *world_open(struct world *world);
enum result world_try_open(char *url); /* in a process that is nothing but this */

void world_close(struct world *world); /* both handles: before a fork, no connection may cross it */
void world_reopen(struct world *world);

/* Runs `child` in `count` processes that start together; each returns its answer through `answers`, an array
 * of `size_bytes` each. A child that dies answers with zeroes. */
typedef void (*child_fn)(struct world *world, int index, void *answer);
void world_fork(struct world *world, int count, child_fn child, void *answers, size_t size_bytes);

char *world_dump(struct world *world);
void world_check_invariants(struct world *world);         /* what must hold in every store at every moment */
bool world_same(struct world *world, const char *before); /* prints what differs */

/* Runs a call that must be refused with `expected` and must change nothing. */
#define REFUSED(world, expected, call)                                                                       \
    do {                                                                                                     \
        _cleanup_(mem_free) char *before_ = world_dump(world);                                               \
        enum result result_ = (call);                                                                        \
        if (result_ != (expected))                                                                           \
            print_error("%s: %s instead of %s\n", #call, result_name(result_), result_name(expected));       \
        assert_int_equal(result_, expected);                                                                 \
        assert_true(world_same(world, before_));                                                             \
    } while (0)

#define OK(call) assert_ok((call), #call, __FILE__, __LINE__)
void assert_ok(enum result result, const char *call, const char *file, int line);

/* ---- short forms; all assert success unless they return a result ---- */

struct reservation reservation_of(struct world *world, enum attempt_kind kind, const char *subject);
struct credential reserve(
    struct world *world, struct store *store, enum attempt_kind kind, const char *subject);
struct credential run(struct world *world, struct store *store, enum attempt_kind kind, const char *subject);
enum result try_reserve(struct store *store, struct reservation *reservation);
enum result renew(struct store *store, const struct credential *credential);
enum result settle(struct store *store, const struct credential *credential, enum attempt_state state);
enum result settle_with(struct store *store, const struct credential *credential, enum attempt_state state,
    const struct proof_row *proof, const char *nonce);
enum result retire(struct store *store, const char *id, int64_t rev, bool gone, const char *by);
enum result put_evidence(
    struct store *store, const struct credential *credential, const char *key, bool passed);
struct attempt found(struct store *store, const char *id);
struct proof_row proof_of(struct world *world, const char *id);
int64_t revision(struct store *store, const char *id);

/* ---- the groups; each returns the number of failures ---- */
int test_lifecycle(void);
int test_cells(void);
int test_leases(void);
int test_recovery(void);
int test_evidence(void);
int test_contention(void);
int test_races(void);
int test_crashes(void);
int test_publications(void);
int test_sqlite(void);
int test_sqlite_faults(void);
int test_postgres_schema(void);
int test_postgres_rows(void);
int test_postgres_rights(void);
int test_postgres_sessions(void);
int test_postgres_migrations(void);

#endif
