/* Crashes and lost answers, at every point that the code names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/recovery.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "tests/conformance/conformance.h"

/* ---- a whole life, whose every step may be the last ---- */

struct life {
    enum result open, reserve, bind, renew, evidence, cancel, settle, ask, retire;
    struct settlement settlement;
    bool finished;
};

/* What was retired before the machine's last start is forgotten by whoever asks for leftovers. */
static void retire_of_an_earlier_boot(struct world *world, struct store *store)
{
    struct reservation reservation = reservation_of(world, KIND_DONE, "c");
    struct executor executor = world->executor;

    strcpy(executor.boot_id, "b0000000000000000000000000000000");
    reservation.executor = &executor;
    if (try_reserve(store, &reservation) == RESULT_OK)
        (void)!retire(store, reservation.credential.attempt_id, 1, true, NULL);
}

static void live(struct world *world, struct life *life)
{
    struct store_options options = world_options(world);
    struct reservation reservation = reservation_of(world, KIND_DONE, "a"),
                       victim = reservation_of(world, KIND_DONE, "b");
    struct proof_row proof = proof_of(world, "proof");
    struct leftover_list leftovers = {0};
    struct store *store = NULL;

    settlement_init(&life->settlement, ATTEMPT_PASSED);
    life->settlement.reason_code = "passed";
    life->settlement.proof = &proof;
    life->open = store_open(&options, STORE_WRITE, &store, NULL);
    if (life->open != RESULT_OK)
        return;
    life->reserve = try_reserve(store, &reservation);
    life->bind = store_bind(store, &reservation.credential, "demand", NULL);
    life->renew = renew(store, &reservation.credential);
    life->evidence = put_evidence(store, &reservation.credential, "key", true);
    life->cancel = store_request_cancel(store, reservation.credential.attempt_id, "me", NULL);
    life->settle = store_settle(store, &reservation.credential, &life->settlement, NULL);
    life->ask = store_settle_ask(store, &reservation.credential, &life->settlement, NULL);
    if (try_reserve(store, &victim) == RESULT_OK)
        life->retire = retire(store, victim.credential.attempt_id, 1, true, NULL);
    retire_of_an_earlier_boot(world, store);
    if (store_leftovers(store, &leftovers, NULL) == RESULT_OK && leftovers.count)
        (void)!store_leftover_delete(store, leftovers.items[0].attempt_id, NULL);
    leftover_list_done(&leftovers);
    store_close(store);
    life->finished = true;
}

static void live_in_a_child(struct world *world, int index _unused_, void *answer)
{
    live(world, answer);
}

/* What must hold in every store at every moment: none of these is found. */
static const char *const BROKEN[] = {
    "SELECT count(*) FROM subject LEFT JOIN attempt ON attempt.id = subject.attempt "
    "WHERE attempt.state IS NULL OR attempt.state NOT IN ('planning', 'running')",
    "SELECT count(*) FROM attempt WHERE state IN ('planning', 'running') AND "
    "NOT EXISTS (SELECT 1 FROM subject WHERE subject.attempt = attempt.id)",
    "SELECT count(*) FROM attempt LEFT JOIN proof ON proof.attempt = attempt.id "
    "WHERE kind = 'done' AND (state = 'passed') <> (proof.id IS NOT NULL)",
    "SELECT count(*) FROM attempt WHERE NOT EXISTS "
    "(SELECT 1 FROM history WHERE history.attempt = attempt.id AND event = 'reserved')",
    "SELECT count(*) FROM attempt WHERE state IN ('passed', 'failed') AND settle_nonce IS NULL",
};

void world_check_invariants(struct world *world)
{
    for (size_t i = 0; i < ARRAY_SIZE(BROKEN); i++)
        if (backend->count(world->url, BROKEN[i]) != 0)
            fail_msg("found: %s", BROKEN[i]);
    for (const char *const *broken = backend->broken; *broken; broken++)
        if (backend->count(world->url, *broken) != 0)
            fail_msg("found: %s", *broken);
}

static enum owner_verdict always_gone(void *context _unused_, const struct attempt *attempt _unused_)
{
    return OWNER_GONE;
}

static void check_next_run(struct world *world)
{
    struct store *store = world_open(world);
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");
    _cleanup_(recovery_report_done) struct recovery_report report = {0};
    _cleanup_(attempt_done) struct attempt attempt = {0};

    OK(recovery_reserve(store, &reservation, always_gone, NULL, &report, &attempt, NULL, NULL));
    assert_int_equal(report.trouble_count, 0);
    OK(settle(store, &reservation.credential, ATTEMPT_FAILED));
    store_close(store);
    world_check_invariants(world);
}

static void world_renew(struct world *world)
{
    backend->discard(world->url);
    free(world->url);
    world->url = backend->make();
}

static bool named_before(size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(failpoint_name(i), failpoint_name(index)) == 0)
            return true;
    return false;
}

/* Kills a fresh life at hit number `hit` of the point. True when that was reached. */
static bool killed_at(struct world *world, const char *name, int hit)
{
    _cleanup_(mem_free) char *plan = mem_format("%s:kill@%d", name, hit);
    struct life life;

    world_renew(world);
    setenv("TENURE_FAILPOINT", plan, 1);
    world_fork(world, 1, live_in_a_child, &life, sizeof life);
    unsetenv("TENURE_FAILPOINT");
    check_next_run(world);
    return !life.finished;
}

/* Points of this program that a store's life never comes by. */
static bool is_elsewhere(const char *name)
{
    return strncmp(name, "file-", strlen("file-")) == 0 || strncmp(name, "publish-", strlen("publish-")) == 0;
}

static void killed_anywhere_the_store_is_whole_and_the_next_run_works(void **state)
{
    struct world *world = *state;
    int points = 0, kills = 0;

    if (!failpoint_name(0)) {
        print_message("built without failpoints: not tested\n");
        skip();
    }
    world_close(world);
    for (size_t i = 0; failpoint_name(i); i++) {
        int hits = 0;
        if (named_before(i) || is_elsewhere(failpoint_name(i)))
            continue;
        while (killed_at(world, failpoint_name(i), hits + 1))
            hits++;
        if (hits == 0)
            fail_msg("%s was never reached", failpoint_name(i));
        points++;
        kills += hits;
    }
    print_message("%d points, %d kills\n", points, kills);
    assert_true(points >= 20);
}

/* ---- the answer of a commit is lost ---- */

static const struct {
    const char *name;
    size_t offset; /* of the result in struct life */
} LOSSES[] = {
    {"reserve", offsetof(struct life, reserve)},
    {"bind", offsetof(struct life, bind)},
    {"renew", offsetof(struct life, renew)},
    {"evidence", offsetof(struct life, evidence)},
    {"cancel", offsetof(struct life, cancel)},
    {"settle", offsetof(struct life, settle)},
    {"retire", offsetof(struct life, retire)},
};

static void a_lost_answer_is_unknown(void **state)
{
    struct world *world = *state;
    static const char *const WHEN[] = {"before", "after"};

    if (!failpoint_name(0))
        skip();
    world_close(world);
    for (size_t i = 0; i < ARRAY_SIZE(LOSSES); i++)
        for (size_t w = 0; w < ARRAY_SIZE(WHEN); w++) {
            _cleanup_(mem_free) char *plan = mem_format("%s-%s-commit:error@1", LOSSES[i].name, WHEN[w]);
            struct life life = {0};
            world_renew(world);
            setenv("TENURE_FAILPOINT", plan, 1);
            live(world, &life);
            unsetenv("TENURE_FAILPOINT");
            assert_int_equal(*(enum result *)((char *)&life + LOSSES[i].offset), RESULT_UNKNOWN);
            check_next_run(world);
        }
}

static void asking_tells_on_which_side_a_lost_settlement_fell(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    struct proof_row proof = proof_of(world, "proof");
    struct settlement settlement;

    if (!failpoint_name(0))
        skip();
    settlement_init(&settlement, ATTEMPT_PASSED);
    settlement.proof = &proof;
    setenv("TENURE_FAILPOINT", "settle-before-commit:error", 1);
    REFUSED(world, RESULT_UNKNOWN, store_settle(world->a, &credential, &settlement, NULL));
    unsetenv("TENURE_FAILPOINT");
    REFUSED(world, RESULT_CONFLICT, store_settle_ask(world->b, &credential, &settlement, NULL));
    setenv("TENURE_FAILPOINT", "settle-after-commit:error", 1);
    assert_int_equal(store_settle(world->a, &credential, &settlement, NULL), RESULT_UNKNOWN);
    unsetenv("TENURE_FAILPOINT");
    REFUSED(world, RESULT_OK, store_settle_ask(world->b, &credential, &settlement, NULL));
    REFUSED(world, RESULT_OK, store_settle(world->b, &credential, &settlement, NULL));
}

static void a_lost_reserve_is_answered_by_repeating_it(void **state)
{
    struct world *world = *state;
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");

    if (!failpoint_name(0))
        skip();
    setenv("TENURE_FAILPOINT", "reserve-after-commit:error", 1);
    assert_int_equal(try_reserve(world->a, &reservation), RESULT_UNKNOWN);
    unsetenv("TENURE_FAILPOINT");
    assert_int_equal(reservation.credential.fence, 0);
    REFUSED(world, RESULT_OK, try_reserve(world->b, &reservation));
    assert_true(reservation.credential.fence > 0);
}

int test_crashes(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(killed_anywhere_the_store_is_whole_and_the_next_run_works),
        TEST(a_lost_answer_is_unknown),
        TEST(asking_tells_on_which_side_a_lost_settlement_fell),
        TEST(a_lost_reserve_is_answered_by_repeating_it),
    };

    return cmocka_run_group_tests_name("crashes", tests, NULL, NULL);
}
