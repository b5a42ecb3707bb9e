/* Two processes at one record, very often. What has ended is watched by a trigger of the store itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/conformance/conformance.h"

#define TTL  INT64_C(60000)
#define MOST 2000

static struct credential contested[MOST];

struct answers {
    enum result results[MOST];
};

static void nothing_was_late(struct world *world)
{
    _cleanup_(mem_free) char *dump = world_dump(world);
    assert_null(strstr(dump, "late.attempt="));
}

/* Both processes go through the same attempts in the same order, each with its own deed. */
static struct answers *race(struct world *world, child_fn child)
{
    struct answers *answers = mem_alloc(2 * sizeof *answers);
    assert_in_range(backend->race_rounds, 1, MOST);
    for (int i = 0; i < backend->race_rounds; i++) {
        char subject[32];
        snprintf(subject, sizeof subject, "command:%d", i);
        contested[i] = run(world, world->a, KIND_COMMAND, subject);
    }
    backend->watch(world->url);
    backend->pass(world, TTL + 1);
    world_close(world);
    world_fork(world, 2, child, answers, sizeof *answers);
    world_reopen(world);
    return answers;
}

/* Busy is no answer: somebody has the row right now. */
static enum result renew_for_sure(struct store *store, const struct credential *credential)
{
    enum result r = RESULT_BUSY;
    while (r == RESULT_BUSY)
        r = renew(store, credential);
    return r;
}

static void renew_or_settle(struct world *world, int index, void *answer)
{
    struct answers *mine = answer;
    struct store *store = world_open(world);
    for (int i = 0; i < backend->race_rounds; i++) {
        if (index == 1)
            mine->results[i] = settle(store, &contested[i], ATTEMPT_FAILED);
        else
            while ((mine->results[i] = renew_for_sure(store, &contested[i])) == RESULT_OK)
                continue;
    }
    store_close(store);
}

static void renewals_against_settlements(void **state)
{
    struct world *world = *state;
    struct answers *answers = race(world, renew_or_settle);
    for (int i = 0; i < backend->race_rounds; i++) {
        _cleanup_(attempt_done) struct attempt attempt = found(world->a, contested[i].attempt_id);
        assert_int_equal(answers[0].results[i], RESULT_RETIRED);
        assert_int_equal(answers[1].results[i], RESULT_OK);
        assert_int_equal(attempt.state, ATTEMPT_FAILED);
    }
    nothing_was_late(world);
    free(answers);
}

static void cancel_or_settle(struct world *world, int index, void *answer)
{
    struct answers *mine = answer;
    struct store *store = world_open(world);
    for (int i = 0; i < backend->race_rounds; i++)
        mine->results[i] = index ? settle(store, &contested[i], ATTEMPT_PASSED)
                                 : store_request_cancel(store, contested[i].attempt_id, "me", NULL);
    store_close(store);
}

static void cancellations_against_settlements(void **state)
{
    struct world *world = *state;
    struct answers *answers = race(world, cancel_or_settle);
    for (int i = 0; i < backend->race_rounds; i++) {
        _cleanup_(attempt_done) struct attempt attempt = found(world->a, contested[i].attempt_id);
        assert_int_equal(answers[1].results[i], RESULT_OK);
        assert_int_equal(attempt.state, ATTEMPT_PASSED);
        assert_int_equal(answers[0].results[i], attempt.cancel_by ? RESULT_OK : RESULT_RETIRED);
    }
    nothing_was_late(world);
    free(answers);
}

/* All of them have lapsed; the owner renews in the moment in which another retires. */
static void renew_or_retire(struct world *world, int index, void *answer)
{
    struct answers *mine = answer;
    struct store *store = world_open(world);
    for (int i = 0; i < backend->race_rounds; i++)
        mine->results[i] = index ? retire(store, contested[i].attempt_id, 2, false, NULL)
                                 : renew_for_sure(store, &contested[i]);
    store_close(store);
}

static void late_renewals_against_retirements(void **state)
{
    struct world *world = *state;
    struct answers *answers = race(world, renew_or_retire);
    for (int i = 0; i < backend->race_rounds; i++) {
        _cleanup_(attempt_done) struct attempt attempt = found(world->a, contested[i].attempt_id);
        bool kept = answers[0].results[i] == RESULT_OK;
        assert_int_equal(answers[0].results[i], kept ? RESULT_OK : RESULT_RETIRED);
        assert_int_equal(answers[1].results[i], kept ? RESULT_CONFLICT : RESULT_OK);
        assert_int_equal(attempt.state, kept ? ATTEMPT_RUNNING : ATTEMPT_CANCELLED);
    }
    nothing_was_late(world);
    free(answers);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int test_races(void)
{
    const struct CMUnitTest tests[] = {
        TEST(renewals_against_settlements),
        TEST(cancellations_against_settlements),
        TEST(late_renewals_against_retirements),
    };
    return cmocka_run_group_tests_name("races", tests, NULL, NULL);
}
