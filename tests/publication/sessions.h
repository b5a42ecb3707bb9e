/*
 * Sessions beside each other: each is one connection, and a test says which step of which one comes next, so
 * that an interleaving is exactly what stands in the test.
 *
 *     struct claim a = claimed(&w->a, 42);
 *     STEP(&w->a, "", "BEGIN", NULL);
 *     STEP(&w->a, "t", PUBLICATION_BEGIN, &a);
 *     start(&w->b, "DELETE FROM app.source WHERE id = 42", NULL);   // does not wait for the answer
 *     assert_waits(w, &w->b);                                       // until the server says that it does
 *     STEP(&w->a, "", "COMMIT", NULL);
 *     FINISH(&w->b, "");
 *
 * In C, and not in the isolation tests' own language: a step needs the attempt and the token that an earlier
 * one was given, the clock is moved between two steps, and after a refusal everything stored is compared; a
 * file of steps with permutations would need words for all of these, and a program to read them.
 *
 * The sessions are of a role that has nothing but EXECUTE and the application's tables. The store's clock
 * stands still until a test moves it. No error that a session sees may bear a token: every step looks.
 */
#ifndef TESTS_PUBLICATION_SESSIONS_H
#define TESTS_PUBLICATION_SESSIONS_H

#include <libpq-fe.h>

#include "tests/conformance/postgres.h"

struct session {
    const char *name;
    PGconn *connection;
};

struct places {
    char *url, *role;
    PGconn *admin; /* the superuser, who looks and moves the clock */
    struct session a, b, c;
};

struct claim {
    char attempt[40];
    char token[72]; /* \x and hex */
    int64_t fence;
};

/* A database, made once for a group of tests; before each test it is as new, with three new sessions. */
int places_make(void **state);
int places_discard(void **state);
int places_setup(void **state);
int places_teardown(void **state);
void session_open(struct places *w, struct session *session);

/* ---- steps ---- */

/* What a statement says: values with '|' between them and a line for each row, or '!' and the SQLSTATE. In
 * the statement $1 is the attempt and $2 the token. Owned by the caller. */
char *outcome(struct session *session, const char *sql, const struct claim *claim);
void start(struct session *session, const char *sql, const struct claim *claim);
char *finish(struct session *session);
void assert_waits(struct places *w, struct session *session);

void assert_outcome(
    char *got, const char *expected, const char *session, const char *sql, const char *file, int line);
#define STEP(session, expected, sql, claim)                                                                  \
    assert_outcome(outcome(session, sql, claim), expected, (session)->name, sql, __FILE__, __LINE__)
#define FINISH(session, expected)                                                                            \
    assert_outcome(finish(session), expected, (session)->name, "(what it waited with)", __FILE__, __LINE__)

/* A step that must be refused, and must change nothing: of the two, what is stored is looked at first. */
#define REFUSAL(w, session, expected, sql, claim)                                                            \
    do {                                                                                                     \
        _cleanup_(mem_free) char *before_ = places_dump(w);                                                  \
        char *got_ = outcome(session, sql, claim);                                                           \
        assert_true(places_same(w, before_));                                                                \
        assert_outcome(got_, expected, (session)->name, sql, __FILE__, __LINE__);                            \
    } while (0)

/* ---- looking, and the clock ---- */

/* Every row of every table of the store and of the application, and the last fence; a line each. */
char *places_dump(struct places *w);
bool places_same(struct places *w, const char *before); /* prints what differs */
void admin(struct places *w, const char *sql);
/* One value that the superuser sees. $1 is the attempt. */
char *seen(struct places *w, const char *sql, const struct claim *claim);
#define SEEN(w, expected, sql, claim)                                                                        \
    assert_outcome(seen(w, sql, claim), expected, "admin", sql, __FILE__, __LINE__)

void clock_pass(struct places *w, int64_t seconds);
void clock_pass_us(struct places *w, int64_t us);
/* How long the store's functions wait for a lock: at first so long that no busy machine makes a test fail. */
void lock_timeouts(struct places *w, const char *timeout);

/* ---- short forms ---- */

#define WINDOW "180 s"
#define CLAIM(id)                                                                                            \
    "SELECT result FROM tenure.claim_row('app.source', 'id', '" #id "', 'deleted_at', '" WINDOW "')"
#define RENEW             "SELECT result FROM tenure.renew($1, $2)"
#define RENEW_MANY        "SELECT result FROM tenure.renew(ARRAY[$1], ARRAY[$2], NULL, NULL, NULL)"
#define RECLAIM           "SELECT result FROM tenure.reclaim($1)"
#define PUBLICATION_BEGIN "SELECT tenure.publication_begin($1, $2) > 0"
#define PUBLICATION_END   "SELECT tenure.publication_end($1, $2)"
#define FAIL              "SELECT result FROM tenure.fail($1, $2, 'why')"
#define RELEASE           "SELECT result FROM tenure.release($1, $2)"
#define STATE             "SELECT state FROM tenure.attempt WHERE id = $1"

struct claim claimed(struct session *session, int id);
/* From BEGIN to publication_begin. */
void publication_started(struct session *session, const struct claim *claim);

/* ---- the groups; each returns the number of failures ---- */
int test_claims(void);
int test_windows(void);
int test_races(void);
int test_publications(void);
int test_isolation(void);
int test_rights(void);
int test_secrets(void);

#define TEST(name)       cmocka_unit_test_setup_teardown(name, places_setup, places_teardown)
#define RUN(name, tests) cmocka_run_group_tests_name(name, tests, places_make, places_discard)

#endif
