#include <stdlib.h>
#include <string.h>

#include "attempts/recovery.h"
#include "base/memory.h"
#include "tests/conformance/conformance.h"

#define TTL INT64_C(60000)

/* What the probe answers, and what happens behind recovery's back while it asks. */
struct plan {
    struct world *world;
    enum owner_verdict verdict;
    const char *only; /* the attempt that the verdict is about; NULL: all */
    struct credential *renews;
    int renewals_left;
    int asked;
};

static enum owner_verdict answer(void *context, const struct attempt *attempt)
{
    struct plan *plan = context;

    plan->asked++;
    if (plan->renews && plan->renewals_left-- > 0)
        OK(renew(plan->world->a, plan->renews));
    return !plan->only || strcmp(plan->only, attempt->id) == 0 ? plan->verdict : OWNER_UNKNOWN;
}

static enum result recover(struct world *world, struct reservation *reservation, struct plan *plan,
    struct recovery_report *report, struct attempt *ret_holder)
{
    _cleanup_(attempt_done) struct attempt attempt = {0};

    plan->world = world;
    return recovery_reserve(world->b, reservation, answer, plan, report, &attempt, ret_holder, NULL);
}

static void nobody_in_the_way(void **state)
{
    struct world *world = *state;
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");
    _cleanup_(recovery_report_done) struct recovery_report report = {0};
    struct plan plan = {.verdict = OWNER_GONE};

    OK(recover(world, &reservation, &plan, &report, NULL));
    assert_int_equal(plan.asked, 0);
    assert_int_equal(report.retired.count, 0);
    assert_int_equal(report.trouble_count, 0);
}

static void a_gone_owner_is_replaced_at_once(void **state)
{
    struct world *world = *state;
    struct credential dead = run(world, world->a, KIND_DONE, "a");
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");
    _cleanup_(recovery_report_done) struct recovery_report report = {0};
    _cleanup_(attempt_done) struct attempt ended = {0};
    struct plan plan = {.verdict = OWNER_GONE};

    OK(recover(world, &reservation, &plan, &report, NULL));
    assert_int_equal(report.retired.count, 1);
    assert_string_equal(report.retired.items[0].id, dead.attempt_id);
    assert_int_equal(report.retired.items[0].state, ATTEMPT_RUNNING);
    ended = found(world->a, dead.attempt_id);
    assert_int_equal(ended.state, ATTEMPT_CANCELLED);
    assert_string_equal(ended.reason.code, "owner-gone");
    assert_string_equal(ended.reason.by_attempt, reservation.credential.attempt_id);
    assert_true(reservation.credential.fence > dead.fence);
}

static void gone_owners_of_the_whole_repository_are_retired(void **state)
{
    struct world *world = *state;
    struct credential one = run(world, world->a, KIND_DONE, "x"), two = run(world, world->a, KIND_DONE, "y");
    struct reservation elsewhere = reservation_of(world, KIND_DONE, "z");
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");
    _cleanup_(recovery_report_done) struct recovery_report report = {0};
    _cleanup_(attempt_done) struct attempt spared = {0};
    struct plan plan = {.verdict = OWNER_GONE};

    (void)one, (void)two;
    elsewhere.repository = "repository-2";
    OK(try_reserve(world->a, &elsewhere));
    OK(recover(world, &reservation, &plan, &report, NULL));
    assert_int_equal(report.retired.count, 2);
    spared = found(world->a, elsewhere.credential.attempt_id);
    assert_true(attempt_is_unfinished(&spared));
}

static void a_running_owner_within_its_lease_holds(void **state)
{
    struct world *world = *state;
    struct credential owner = run(world, world->a, KIND_DONE, "a");
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");
    _cleanup_(recovery_report_done) struct recovery_report report = {0};
    _cleanup_(attempt_done) struct attempt holder = {0};
    struct plan plan = {.verdict = OWNER_RUNNING};

    backend->pass(world, TTL);
    REFUSED(world, RESULT_HELD, recover(world, &reservation, &plan, &report, &holder));
    assert_string_equal(holder.id, owner.attempt_id);
    assert_int_equal(report.holder_verdict, OWNER_RUNNING);
}

/* "Running" never extends a lease. */
static void a_lapsed_holder_is_replaced_whatever_its_owner_does(void **state)
{
    struct world *world = *state;
    struct credential owner = run(world, world->a, KIND_DONE, "a");
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");
    _cleanup_(recovery_report_done) struct recovery_report report = {0};
    _cleanup_(attempt_done) struct attempt ended = {0};
    struct plan plan = {.verdict = OWNER_RUNNING};

    backend->pass(world, TTL + 1);
    OK(recover(world, &reservation, &plan, &report, NULL));
    ended = found(world->a, owner.attempt_id);
    assert_string_equal(ended.reason.code, "lapsed");
}

static void lapsed_attempts_that_are_in_nobodys_way_stay(void **state)
{
    struct world *world = *state;
    static const char *const SUBJECTS[] = {"1", "2", "3", "4", "5"};
    struct credential frozen[ARRAY_SIZE(SUBJECTS)];
    struct reservation reservation = reservation_of(world, KIND_DONE, "6");
    _cleanup_(recovery_report_done) struct recovery_report report = {0};
    struct plan plan = {.verdict = OWNER_UNKNOWN};

    for (size_t i = 0; i < ARRAY_SIZE(SUBJECTS); i++)
        frozen[i] = run(world, world->a, KIND_DONE, SUBJECTS[i]);
    backend->pass(world, 10 * TTL);
    OK(recover(world, &reservation, &plan, &report, NULL));
    assert_int_equal(report.retired.count, 0);
    for (size_t i = 0; i < ARRAY_SIZE(SUBJECTS); i++)
        OK(renew(world->a, &frozen[i]));
}

static void a_renewal_in_between_is_looked_at_again(void **state)
{
    struct world *world = *state;
    struct credential owner = run(world, world->a, KIND_DONE, "a");
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");
    _cleanup_(recovery_report_done) struct recovery_report report = {0};
    struct plan plan = {.verdict = OWNER_GONE, .renews = &owner, .renewals_left = RECOVERY_TRIES - 1};

    OK(recover(world, &reservation, &plan, &report, NULL));
    assert_int_equal(report.retired.count, 1);
    assert_int_equal(plan.asked, RECOVERY_TRIES);
}

static void an_owner_that_renews_after_its_lapse_keeps_its_claim(void **state)
{
    struct world *world = *state;
    struct credential owner = run(world, world->a, KIND_DONE, "a");
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");
    _cleanup_(recovery_report_done) struct recovery_report report = {0};
    _cleanup_(attempt_done) struct attempt holder = {0};
    struct plan plan = {.verdict = OWNER_UNKNOWN, .renews = &owner, .renewals_left = 1};

    backend->pass(world, TTL + 1);
    assert_int_equal(recover(world, &reservation, &plan, &report, &holder), RESULT_HELD);
    assert_int_equal(report.retired.count, 0);
    OK(renew(world->a, &owner));
}

static void recovery_gives_up_after_its_tries_and_says_so(void **state)
{
    struct world *world = *state;
    struct credential owner = run(world, world->a, KIND_DONE, "a");
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");
    _cleanup_(recovery_report_done) struct recovery_report report = {0};
    _cleanup_(attempt_done) struct attempt holder = {0};
    struct plan plan = {.verdict = OWNER_GONE, .renews = &owner, .renewals_left = 1000};

    assert_int_equal(recover(world, &reservation, &plan, &report, &holder), RESULT_HELD);
    assert_int_equal(report.trouble_count, 1);
    assert_non_null(strstr(report.troubles[0], attempt_name(&holder)));
    assert_int_equal(plan.asked, RECOVERY_TRIES + 1);
}

static void trouble_with_one_does_not_stop_the_others(void **state)
{
    struct world *world = *state;
    struct credential stubborn = run(world, world->a, KIND_DONE, "x");
    struct credential dead = run(world, world->a, KIND_DONE, "a");
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");
    _cleanup_(recovery_report_done) struct recovery_report report = {0};
    struct plan plan = {.verdict = OWNER_GONE, .renews = &stubborn, .renewals_left = 1000};

    (void)dead;
    OK(recover(world, &reservation, &plan, &report, NULL));
    assert_int_equal(report.retired.count, 1);
    assert_int_equal(report.trouble_count, 1);
}

static void a_repeated_reserve_does_not_retire_itself(void **state)
{
    struct world *world = *state;
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");
    _cleanup_(recovery_report_done) struct recovery_report first = {0}, second = {0};
    struct plan plan = {.verdict = OWNER_GONE};

    OK(recover(world, &reservation, &plan, &first, NULL));
    REFUSED(world, RESULT_OK, recover(world, &reservation, &plan, &second, NULL));
    assert_int_equal(second.retired.count, 0);
}

static void recovery_on_its_own_retires_and_reserves_nothing(void **state)
{
    struct world *world = *state;
    struct credential dead = run(world, world->a, KIND_DONE, "a");
    const struct attempt_query query = {.repository = "repository-1"};
    _cleanup_(recovery_report_done) struct recovery_report report = {0}, again = {0};
    _cleanup_(attempt_done) struct attempt ended = {0};
    struct plan plan = {.world = world, .verdict = OWNER_GONE};

    OK(recovery_run(world->b, &query, NULL, answer, &plan, &report, NULL));
    assert_int_equal(report.retired.count, 1);
    ended = found(world->a, dead.attempt_id);
    assert_null(ended.reason.by_attempt);
    REFUSED(world, RESULT_OK, recovery_run(world->b, &query, NULL, answer, &plan, &again, NULL));
}

static void a_broken_record_does_not_keep_other_subjects_held(void **state)
{
    struct world *world = *state;
    struct credential dead = run(world, world->a, KIND_DONE, "a"),
                      broken = run(world, world->a, KIND_DONE, "x");
    struct reservation reservation = reservation_of(world, KIND_DONE, "a"),
                       same = reservation_of(world, KIND_DONE, "x");
    _cleanup_(recovery_report_done) struct recovery_report report = {0}, second = {0};
    struct plan plan = {.verdict = OWNER_GONE};

    backend->damage(world->url, broken.attempt_id);
    OK(recover(world, &reservation, &plan, &report, NULL));
    assert_int_equal(report.retired.count, 1);
    assert_string_equal(report.retired.items[0].id, dead.attempt_id);
    assert_int_equal(report.trouble_count, 1);
    assert_non_null(strstr(report.troubles[0], broken.attempt_id));
    REFUSED(world, RESULT_CORRUPT,
        recover(world, &same, &(struct plan){.verdict = OWNER_UNKNOWN}, &second, NULL));
    assert_int_equal(second.trouble_count, 2);
}

int test_recovery(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(nobody_in_the_way),
        TEST(a_gone_owner_is_replaced_at_once),
        TEST(gone_owners_of_the_whole_repository_are_retired),
        TEST(a_running_owner_within_its_lease_holds),
        TEST(a_lapsed_holder_is_replaced_whatever_its_owner_does),
        TEST(lapsed_attempts_that_are_in_nobodys_way_stay),
        TEST(a_renewal_in_between_is_looked_at_again),
        TEST(an_owner_that_renews_after_its_lapse_keeps_its_claim),
        TEST(recovery_gives_up_after_its_tries_and_says_so),
        TEST(trouble_with_one_does_not_stop_the_others),
        TEST(a_repeated_reserve_does_not_retire_itself),
        TEST(a_broken_record_does_not_keep_other_subjects_held),
        TEST(recovery_on_its_own_retires_and_reserves_nothing),
    };

    return cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}
