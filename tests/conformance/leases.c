#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "tests/conformance/conformance.h"

#define TTL INT64_C(60000)

static void a_lease_can_be_taken_a_millisecond_after_its_end(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");

    backend->pass(world, TTL);
    REFUSED(world, RESULT_CONFLICT, retire(world->b, credential.attempt_id, 2, false, NULL));
    backend->pass(world, 1);
    OK(retire(world->b, credential.attempt_id, 2, false, NULL));
}

static void a_step_of_the_wall_clock_changes_nothing(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");

    world->clock.now_wall_ms += INT64_C(86400000) * 365 * 30;
    REFUSED(world, RESULT_CONFLICT, retire(world->b, credential.attempt_id, 2, false, NULL));
    world->clock.now_wall_ms = 0;
    REFUSED(world, RESULT_CONFLICT, retire(world->b, credential.attempt_id, 2, false, NULL));
}

/* A renewal was held back until somebody else owned the subject: it changes nothing. */
static void the_late_renewal_changes_nothing(void **state)
{
    struct world *world = *state;
    struct credential late = run(world, world->a, KIND_DONE, "a"), next;
    struct renewal renewal = {.credential = &late};

    backend->pass(world, TTL + 1);
    next = reserve(world, world->b, KIND_DONE, "unrelated");
    OK(retire(world->b, late.attempt_id, 2, false, next.attempt_id));
    next = reserve(world, world->b, KIND_DONE, "a");
    REFUSED(world, RESULT_OK, store_renew(world->a, &renewal, 1, NULL));
    assert_int_equal(renewal.result, RESULT_RETIRED);
    assert_string_equal(renewal.reason.code, "lapsed");
    assert_non_null(renewal.reason.by_attempt);
    renewal_done(&renewal);
    REFUSED(world, RESULT_RETIRED, settle(world->a, &late, ATTEMPT_FAILED));
    REFUSED(world, RESULT_RETIRED, put_evidence(world->a, &late, "key", true));
    OK(renew(world->b, &next));
}

static void a_token_of_another_attempt_opens_nothing(void **state)
{
    struct world *world = *state;
    struct credential one = run(world, world->a, KIND_COMMAND, "a"),
                      two = run(world, world->a, KIND_COMMAND, "b");
    struct credential mixed = one;

    memcpy(mixed.token, two.token, sizeof mixed.token);
    REFUSED(world, RESULT_RETIRED, renew(world->a, &mixed));
    REFUSED(world, RESULT_RETIRED, settle(world->a, &mixed, ATTEMPT_PASSED));
    REFUSED(world, RESULT_RETIRED, put_evidence(world->a, &mixed, "key", true));
}

static void no_renewal_after_a_settlement(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_COMMAND, "a");
    struct renewal renewal = {.credential = &credential};

    OK(settle(world->a, &credential, ATTEMPT_PASSED));
    backend->pass(world, 1000);
    REFUSED(world, RESULT_OK, store_renew(world->b, &renewal, 1, NULL));
    assert_int_equal(renewal.result, RESULT_RETIRED);
    renewal_done(&renewal);
}

/* The columns that a renewal may touch. */
static bool is_of_a_renewal(const char *line, size_t length)
{
    static const char *const COLUMNS[] = {
        "attempt.renewed_at=", "attempt.expires_at=", "attempt.renewed_wall_ms=", "attempt.rev=",
        "attempt.progress_phase=", "attempt.progress_done=", "attempt.progress_total="};

    for (size_t i = 0; i < ARRAY_SIZE(COLUMNS); i++)
        if (length >= strlen(COLUMNS[i]) && strncmp(line, COLUMNS[i], strlen(COLUMNS[i])) == 0)
            return true;
    return false;
}

static char *dump_without_renewal(struct world *world)
{
    _cleanup_(mem_free) char *dump = world_dump(world);
    struct text kept = {0};

    for (const char *line = dump; *line;) {
        size_t length = strcspn(line, "\n") + 1;
        if (!is_of_a_renewal(line, length))
            text_append(&kept, line, length);
        line += length;
    }
    return text_steal(&kept);
}

static void a_renewal_touches_nothing_else(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    struct progress progress = {.phase = "producers", .done = 3, .total = 7};
    struct renewal renewal = {.credential = &credential, .progress = &progress};
    _cleanup_(mem_free) char *before = dump_without_renewal(world), *after = NULL;
    _cleanup_(attempt_done) struct attempt was = found(world->b, credential.attempt_id), is = {0}, kept = {0};

    backend->pass(world, 20000);
    OK(store_renew(world->a, &renewal, 1, NULL));
    after = dump_without_renewal(world);
    assert_string_equal(before, after);
    is = found(world->b, credential.attempt_id);
    assert_int_equal(is.rev, was.rev + 1);
    assert_int_equal(lease_expiry(&is.lease), lease_expiry(&was.lease) + 20000);
    assert_int_equal(is.renewed_wall_ms, was.renewed_wall_ms + 20000);
    assert_string_equal(is.progress.phase, "producers");
    assert_int_equal(is.progress.done, 3);
    assert_int_equal(is.progress.total, 7);
    OK(renew(world->a, &credential));
    kept = found(world->b, credential.attempt_id);
    assert_string_equal(kept.progress.phase, "producers");
}

static void one_round_trip_answers_for_each(void **state)
{
    struct world *world = *state;
    struct credential mine = run(world, world->a, KIND_DONE, "a"),
                      ended = run(world, world->a, KIND_DONE, "b"),
                      other = run(world, world->b, KIND_DONE, "c"), missing = mine;
    struct renewal renewals[] = {
        {.credential = &ended}, {.credential = &mine}, {.credential = &other}, {.credential = &missing}};
    int64_t others_rev = revision(world->a, other.attempt_id), mine_rev = revision(world->a, mine.attempt_id);

    strcpy(missing.attempt_id, "0192e4a0-0000-7000-8000-000000000001");
    other.token[0] ^= 1;
    OK(retire(world->b, ended.attempt_id, 2, true, mine.attempt_id));
    OK(store_renew(world->a, renewals, ARRAY_SIZE(renewals), NULL));
    assert_int_equal(renewals[0].result, RESULT_RETIRED);
    assert_string_equal(renewals[0].reason.code, "owner-gone");
    assert_string_equal(renewals[0].reason.by_attempt, mine.attempt_id);
    assert_int_equal(renewals[1].result, RESULT_OK);
    assert_int_equal(renewals[2].result, RESULT_RETIRED);
    assert_int_equal(renewals[3].result, RESULT_ABSENT);
    assert_int_equal(revision(world->a, other.attempt_id), others_rev);
    assert_int_equal(revision(world->a, mine.attempt_id), mine_rev + 1);
    for (size_t i = 0; i < ARRAY_SIZE(renewals); i++)
        renewal_done(&renewals[i]);
}

static void a_lapsed_owner_may_go_on_unless_its_kind_is_strict(void **state)
{
    struct world *world = *state;
    struct credential lax = run(world, world->a, KIND_COMMAND, "a"),
                      strict = run(world, world->a, KIND_PUBLICATION, "b");

    backend->pass(world, TTL);
    OK(renew(world->a, &strict));
    backend->pass(world, TTL + 1);
    REFUSED(world, RESULT_LAPSED, renew(world->a, &strict));
    REFUSED(world, RESULT_LAPSED, settle(world->a, &strict, ATTEMPT_PASSED));
    OK(settle(world->a, &strict, ATTEMPT_FAILED));
    OK(renew(world->a, &lax));
    OK(settle(world->a, &lax, ATTEMPT_PASSED));
}

/* Recovery looks, the owner renews, recovery writes. */
static void a_renewal_between_look_and_write_keeps_the_claim(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    _cleanup_(attempt_done) struct attempt seen = {0};

    backend->pass(world, TTL + 1);
    seen = found(world->b, credential.attempt_id);
    OK(renew(world->a, &credential));
    REFUSED(world, RESULT_CONFLICT, retire(world->b, seen.id, seen.rev, false, NULL));
    REFUSED(world, RESULT_CONFLICT, retire(world->b, seen.id, seen.rev, true, NULL));
    OK(settle(world->a, &credential, ATTEMPT_FAILED));
}

static void cancel_and_success_in_either_order_tell_one_story(void **state)
{
    struct world *world = *state;
    struct credential first = run(world, world->a, KIND_COMMAND, "a"), second;
    _cleanup_(attempt_done) struct attempt passed = {0}, cancelled = {0};

    OK(settle(world->a, &first, ATTEMPT_PASSED));
    REFUSED(world, RESULT_RETIRED, store_request_cancel(world->b, first.attempt_id, "me", NULL));
    passed = found(world->b, first.attempt_id);
    assert_int_equal(passed.state, ATTEMPT_PASSED);
    second = run(world, world->a, KIND_COMMAND, "a");
    OK(store_request_cancel(world->b, second.attempt_id, "me", NULL));
    OK(settle(world->a, &second, ATTEMPT_CANCELLED));
    REFUSED(world, RESULT_RETIRED, settle(world->a, &second, ATTEMPT_PASSED));
    cancelled = found(world->b, second.attempt_id);
    assert_int_equal(cancelled.state, ATTEMPT_CANCELLED);
}

static void retirement_and_settlement_exclude_each_other(void **state)
{
    struct world *world = *state;
    struct credential settled = run(world, world->a, KIND_COMMAND, "a"), retired;

    OK(settle(world->a, &settled, ATTEMPT_PASSED));
    REFUSED(world, RESULT_RETIRED, retire(world->b, settled.attempt_id, 3, true, NULL));
    retired = run(world, world->a, KIND_COMMAND, "a");
    OK(retire(world->b, retired.attempt_id, 2, true, NULL));
    REFUSED(world, RESULT_RETIRED, settle(world->a, &retired, ATTEMPT_PASSED));
    REFUSED(world, RESULT_RETIRED, retire(world->b, retired.attempt_id, 3, true, NULL));
}

/* While somebody waits for the lock, the lease that he is about to judge runs out. */
static bool time_passes_and_the_lock_is_freed(struct world *world)
{
    if (world->lock) {
        backend->pass(world, TTL + 1);
        backend->unlock(STEAL(world->lock));
    }
    return true;
}

static void the_clock_is_read_behind_the_lock(void **state)
{
    struct world *world = *state;
    struct credential strict = run(world, world->a, KIND_PUBLICATION, "a");

    world->waiting = time_passes_and_the_lock_is_freed;
    world->lock = backend->lock(world->url);
    assert_int_equal(renew(world->a, &strict), RESULT_LAPSED);
    assert_null(world->lock);
    world->lock = backend->lock(world->url);
    assert_int_equal(settle(world->a, &strict, ATTEMPT_PASSED), RESULT_LAPSED);
    assert_null(world->lock);
    OK(settle(world->a, &strict, ATTEMPT_FAILED));
    strict = run(world, world->a, KIND_PUBLICATION, "a");
    world->lock = backend->lock(world->url);
    OK(retire(world->b, strict.attempt_id, 2, false, NULL));
}

static void each_record_lives_by_its_own_ttl(void **state)
{
    struct world *world = *state;
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");

    reservation.ttl_ms = 2000;
    OK(try_reserve(world->a, &reservation));
    backend->pass(world, 2000);
    REFUSED(world, RESULT_CONFLICT, retire(world->b, reservation.credential.attempt_id, 1, false, NULL));
    backend->pass(world, 1);
    OK(retire(world->b, reservation.credential.attempt_id, 1, false, NULL));
}

static void retirement_leaves_leftovers_for_its_machine_and_boot(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    struct reservation elsewhere = reservation_of(world, KIND_DONE, "b");
    struct executor other = world->executor;
    _cleanup_(leftover_list_done) struct leftover_list list = {0}, none = {0};

    strcpy(other.machine_id, "fedcba9876543210fedcba9876543210");
    elsewhere.executor = &other;
    OK(try_reserve(world->a, &elsewhere));
    OK(retire(world->b, credential.attempt_id, 2, true, NULL));
    OK(retire(world->b, elsewhere.credential.attempt_id, 1, true, NULL));
    OK(store_leftovers(world->b, &list, NULL));
    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].attempt_id, credential.attempt_id);
    assert_string_equal(list.items[0].journal_path, "/journals/T-0000-0000");
    assert_int_equal(list.items[0].subject_count, 1);
    assert_string_equal(list.items[0].subjects[0], "a");
    assert_memory_equal(&list.items[0].executor, &world->executor, sizeof world->executor);
    OK(store_leftover_delete(world->b, credential.attempt_id, NULL));
    OK(store_leftovers(world->b, &none, NULL));
    assert_int_equal(none.count, 0);
}

static bool dump_has(struct world *world, const char *line)
{
    _cleanup_(mem_free) char *dump = world_dump(world);

    return strstr(dump, line) != NULL;
}

static void leftovers_of_an_earlier_boot_are_forgotten_here_alone(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    struct reservation elsewhere = reservation_of(world, KIND_DONE, "b");
    struct executor other = world->executor;
    struct store *later = NULL;
    _cleanup_(leftover_list_done) struct leftover_list list = {0};

    strcpy(other.machine_id, "fedcba9876543210fedcba9876543210");
    elsewhere.executor = &other;
    OK(try_reserve(world->a, &elsewhere));
    OK(retire(world->b, credential.attempt_id, 2, true, NULL));
    OK(retire(world->b, elsewhere.credential.attempt_id, 1, true, NULL));
    strcpy(world->machine.boot_id, "b0000000000000000000000000000002");
    later = world_open(world);
    OK(store_leftovers(later, &list, NULL));
    store_close(later);
    assert_int_equal(list.count, 0);
    assert_false(dump_has(world, "leftover.machine_id='0123456789abcdef0123456789abcdef'"));
    assert_true(dump_has(world, "leftover.machine_id='fedcba9876543210fedcba9876543210'"));
}

/* The other boot may be that of another machine of this name, whose work goes on. */
static void leftovers_stay_where_only_a_host_name_tells_machines_apart(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    struct store *later = NULL;
    _cleanup_(leftover_list_done) struct leftover_list list = {0};

    OK(retire(world->b, credential.attempt_id, 2, true, NULL));
    strcpy(world->machine.boot_id, "b0000000000000000000000000000002");
    world->machine.named_by_host = true;
    later = world_open(world);
    OK(store_leftovers(later, &list, NULL));
    store_close(later);
    assert_int_equal(list.count, 0);
    assert_true(dump_has(world, "leftover.boot_id='b0000000000000000000000000000001'"));
}

int test_leases(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_lease_can_be_taken_a_millisecond_after_its_end),
        TEST(a_step_of_the_wall_clock_changes_nothing),
        TEST(the_late_renewal_changes_nothing),
        TEST(a_token_of_another_attempt_opens_nothing),
        TEST(no_renewal_after_a_settlement),
        TEST(a_renewal_touches_nothing_else),
        TEST(one_round_trip_answers_for_each),
        TEST(a_lapsed_owner_may_go_on_unless_its_kind_is_strict),
        TEST(a_renewal_between_look_and_write_keeps_the_claim),
        TEST(cancel_and_success_in_either_order_tell_one_story),
        TEST(retirement_and_settlement_exclude_each_other),
        TEST(the_clock_is_read_behind_the_lock),
        TEST(each_record_lives_by_its_own_ttl),
        TEST(retirement_leaves_leftovers_for_its_machine_and_boot),
        TEST(leftovers_of_an_earlier_boot_are_forgotten_here_alone),
        TEST(leftovers_stay_where_only_a_host_name_tells_machines_apart),
    };

    return cmocka_run_group_tests_name("leases", tests, NULL, NULL);
}
