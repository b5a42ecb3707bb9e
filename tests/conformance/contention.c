/* Many processes at one store. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attempts/recovery.h"
#include "base/memory.h"
#include "tests/conformance/conformance.h"

#define TTL        INT64_C(60000)
#define CONTENDERS 30
#define STARTERS   20
#define RUNNERS    4
#define ROUNDS     25

struct claim {
    bool answered;
    enum result result;
    int64_t fence;
    char id[UUID_TEXT_SIZE], holder[UUID_TEXT_SIZE];
};

static void contend(struct world *world, int index _unused_, void *answer)
{
    struct claim *claim = answer;
    struct store *store = world_open(world);
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");
    _cleanup_(recovery_report_done) struct recovery_report report = {0};
    _cleanup_(attempt_done) struct attempt attempt = {0}, holder = {0};

    claim->result = recovery_reserve(store, &reservation, NULL, NULL, &report, &attempt, &holder, NULL);
    claim->fence = reservation.credential.fence;
    memcpy(claim->id, reservation.credential.attempt_id, sizeof claim->id);
    memcpy(claim->holder, holder.id, sizeof claim->holder);
    claim->answered = report.trouble_count == 0;
    store_close(store);
}

static const struct claim *the_winner(const struct claim *claims)
{
    const struct claim *winner = NULL;

    for (int i = 0; i < CONTENDERS; i++) {
        assert_true(claims[i].answered);
        if (claims[i].result == RESULT_OK) {
            assert_null(winner);
            winner = &claims[i];
        }
    }
    assert_non_null(winner);
    return winner;
}

static void of_thirty_contenders_one_wins_and_the_others_name_it(void **state)
{
    struct world *world = *state;
    struct credential lapsed = run(world, world->a, KIND_DONE, "a");
    struct claim claims[CONTENDERS];
    const struct claim *winner = NULL;
    _cleanup_(attempt_done) struct attempt ended = {0};
    const struct attempt_query unfinished = {.unfinished_only = true};
    _cleanup_(attempt_list_done) struct attempt_list list = {0};

    backend->pass(world, TTL + 1);
    world_close(world);
    world_fork(world, CONTENDERS, contend, claims, sizeof claims[0]);
    world_reopen(world);
    winner = the_winner(claims);
    assert_true(winner->fence > lapsed.fence);
    for (int i = 0; i < CONTENDERS; i++) {
        if (&claims[i] == winner)
            continue;
        assert_int_equal(claims[i].result, RESULT_HELD);
        assert_string_equal(claims[i].holder, winner->id);
    }
    OK(store_list(world->a, &unfinished, &list, NULL));
    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].id, winner->id);
    ended = found(world->a, lapsed.attempt_id);
    assert_string_equal(ended.reason.code, "lapsed");
}

struct start {
    enum result result;
    char id[64];
};

static void start(struct world *world, int index _unused_, void *answer)
{
    struct start *first = answer;
    struct store_options options = world_options(world);
    struct store *store = NULL;

    first->result = store_open(&options, STORE_WRITE, &store, NULL);
    if (first->result == RESULT_OK)
        strcpy(first->id, store_id(store));
    store_close(store);
}

static void of_twenty_first_starts_one_migrates(void **state)
{
    struct world *world = *state;
    struct start starts[STARTERS];

    world_close(world);
    backend->discard(world->url);
    free(world->url);
    world->url = backend->make();
    world_fork(world, STARTERS, start, starts, sizeof starts[0]);
    for (int i = 0; i < STARTERS; i++) {
        assert_int_equal(starts[i].result, RESULT_OK);
        assert_string_equal(starts[i].id, starts[0].id);
    }
    world_reopen(world);
    assert_string_equal(store_id(world->a), starts[0].id);
    OK(store_migrate(world->a, NULL));
    run(world, world->a, KIND_DONE, "a");
}

/* Reserves one subject over and over, as soon as the others let go of it. */
static void take_turns(struct world *world, int index _unused_, void *answer)
{
    struct store *store = world_open(world);

    for (int done = 0; done < ROUNDS;) {
        struct reservation reservation = reservation_of(world, KIND_COMMAND, "a");
        enum result r = try_reserve(store, &reservation);
        if (r == RESULT_HELD)
            continue;
        if (r != RESULT_OK || settle(store, &reservation.credential, ATTEMPT_FAILED) != RESULT_OK)
            return;
        done++;
    }
    *(bool *)answer = true;
    store_close(store);
}

static void a_later_holder_never_has_a_smaller_fence(void **state)
{
    struct world *world = *state;
    bool answers[RUNNERS];
    int64_t last = 0;
    size_t reserved = 0;
    _cleanup_(history_done) struct history history = {0};

    world_close(world);
    world_fork(world, RUNNERS, take_turns, answers, sizeof answers[0]);
    world_reopen(world);
    for (int i = 0; i < RUNNERS; i++)
        assert_true(answers[i]);
    OK(store_history(world->a, NULL, &history, NULL));
    for (size_t i = 0; i < history.count; i++) {
        _cleanup_(attempt_done) struct attempt attempt = found(world->a, history.items[i].attempt_id);
        if (strcmp(history.items[i].event, "reserved") != 0)
            continue;
        assert_true(attempt.fence > last);
        last = attempt.fence;
        reserved++;
    }
    assert_int_equal(reserved, RUNNERS * ROUNDS);
}

/* ---- an owner and its heartbeat, or its operator, at the same moment ---- */

struct race {
    struct credential credential;
    enum result mine, its;
};

static struct race races[ROUNDS];

/* Process 0 renews until it is told that the attempt has ended, which the settlement under way is no proof
 * of; process 1 settles. */
static void renew_against_settle(struct world *world, int index, void *answer)
{
    struct store *store = world_open(world);
    bool *fine = answer;

    *fine = true;
    for (int i = 0; i < ROUNDS; i++) {
        enum result r = RESULT_OK;
        if (index == 1)
            r = settle(store, &races[i].credential, ATTEMPT_FAILED);
        while (index == 0 && (r == RESULT_OK || r == RESULT_BUSY))
            r = renew(store, &races[i].credential);
        *fine &= r == (index ? RESULT_OK : RESULT_RETIRED);
    }
    store_close(store);
}

static void a_renewal_never_touches_a_settled_record(void **state)
{
    struct world *world = *state;
    static const char *const NAMES = "abcdefghijklmnopqrstuvwxyz";
    char subjects[ROUNDS][2] = {{0}};
    bool answers[2];

    for (int i = 0; i < ROUNDS; i++) {
        subjects[i][0] = NAMES[i];
        races[i].credential = run(world, world->a, KIND_COMMAND, subjects[i]);
    }
    world_close(world);
    world_fork(world, 2, renew_against_settle, answers, sizeof answers[0]);
    world_reopen(world);
    assert_true(answers[0]);
    assert_true(answers[1]);
    for (int i = 0; i < ROUNDS; i++) {
        _cleanup_(history_done) struct history history = {0};
        _cleanup_(attempt_done) struct attempt attempt = found(world->a, races[i].credential.attempt_id);
        assert_int_equal(attempt.state, ATTEMPT_FAILED);
        OK(store_history(world->a, attempt.id, &history, NULL));
        assert_string_equal(history.items[history.count - 1].event, "settled");
    }
}

static void cancel_against_settle(struct world *world, int index, void *answer)
{
    struct store *store = world_open(world);
    enum result *results = answer;

    for (int i = 0; i < ROUNDS; i++)
        results[i] = index ? settle(store, &races[i].credential, ATTEMPT_PASSED)
                           : store_request_cancel(store, races[i].credential.attempt_id, "me", NULL);
    store_close(store);
}

static void a_late_cancel_and_the_record_agree(void **state)
{
    struct world *world = *state;
    static const char *const NAMES = "abcdefghijklmnopqrstuvwxyz";
    char subjects[ROUNDS][2] = {{0}};
    enum result results[2][ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        subjects[i][0] = NAMES[i];
        races[i].credential = run(world, world->a, KIND_COMMAND, subjects[i]);
    }
    world_close(world);
    world_fork(world, 2, cancel_against_settle, results, sizeof results[0]);
    world_reopen(world);
    for (int i = 0; i < ROUNDS; i++) {
        _cleanup_(attempt_done) struct attempt attempt = found(world->a, races[i].credential.attempt_id);
        assert_int_equal(results[1][i], RESULT_OK);
        assert_int_equal(attempt.state, ATTEMPT_PASSED);
        assert_int_equal(results[0][i], attempt.cancel_by ? RESULT_OK : RESULT_RETIRED);
    }
}

/* ---- a lock that somebody else holds ---- */

static int64_t real_ms(void)
{
    return clock_system()->boot_ms(clock_system());
}

static void a_lock_beyond_the_deadline_is_busy(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    struct store_options options = world_options(world);
    struct store *hasty = NULL;
    _cleanup_(mem_free) char *before = world_dump(world);
    int64_t from_ms = 0, took_ms = 0;

    options.deadline_ms = 100;
    OK(store_open(&options, STORE_WRITE, &hasty, NULL));
    world->lock = backend->lock(world->url);
    from_ms = real_ms();
    assert_int_equal(renew(hasty, &credential), RESULT_BUSY);
    took_ms = real_ms() - from_ms;
    backend->unlock(STEAL(world->lock));
    assert_in_range(took_ms, 100, 5000);
    assert_true(world_same(world, before));
    OK(renew(hasty, &credential));
    store_close(hasty);
}

static bool give_up(struct world *world _unused_)
{
    return false;
}

static void a_wait_can_be_ended_from_within(void **state)
{
    struct world *world = *state;
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");
    int64_t from_ms = real_ms();

    world->waiting = give_up;
    world->lock = backend->lock(world->url);
    assert_int_equal(try_reserve(world->a, &reservation), RESULT_BUSY);
    backend->unlock(STEAL(world->lock));
    assert_true(real_ms() - from_ms < 5000);
    world->waiting = NULL;
    OK(try_reserve(world->a, &reservation));
}

static bool unlock_at_the_twentieth_look(struct world *world)
{
    static int looks;

    if (world->lock && ++looks >= 20)
        backend->unlock(STEAL(world->lock));
    return true;
}

static void whoever_waits_gets_through(void **state)
{
    struct world *world = *state;
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");

    world->waiting = unlock_at_the_twentieth_look;
    world->lock = backend->lock(world->url);
    OK(try_reserve(world->a, &reservation));
    assert_null(world->lock);
}

int test_contention(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(of_thirty_contenders_one_wins_and_the_others_name_it),
        TEST(of_twenty_first_starts_one_migrates),
        TEST(a_later_holder_never_has_a_smaller_fence),
        TEST(a_renewal_never_touches_a_settled_record),
        TEST(a_late_cancel_and_the_record_agree),
        TEST(a_lock_beyond_the_deadline_is_busy),
        TEST(a_wait_can_be_ended_from_within),
        TEST(whoever_waits_gets_through),
    };

    return cmocka_run_group_tests_name("contention", tests, NULL, NULL);
}
