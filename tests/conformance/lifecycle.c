#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/conformance/conformance.h"

static void reserve_gives_what_was_asked(void **state)
{
    struct world *world = *state;
    static const char *const SUBJECTS[] = {"b", "a", "b", "\xc3\xa9"};
    struct reservation reservation = reservation_of(world, KIND_MEASURE, "a");
    _cleanup_(attempt_done) struct attempt given = {0}, read = {0};

    reservation.subjects = SUBJECTS;
    reservation.subject_count = 4;
    OK(store_reserve(world->a, &reservation, &given, NULL, NULL));
    read = found(world->b, reservation.credential.attempt_id);
    assert_int_equal(given.fence, reservation.credential.fence);
    assert_true(given.fence >= world->clock.now_wall_ms * 1000);
    assert_int_equal(read.subject_count, 3);
    assert_string_equal(read.subjects[0], "a");
    assert_string_equal(read.subjects[1], "b");
    assert_string_equal(read.subjects[2], "\xc3\xa9");
    assert_int_equal(read.kind, KIND_MEASURE);
    assert_int_equal(read.state, ATTEMPT_PLANNING);
    assert_int_equal(read.fence, given.fence);
    assert_int_equal(read.rev, given.rev);
    assert_int_equal(read.record_version, ATTEMPT_RECORD_VERSION);
    assert_memory_equal(read.token_digest, given.token_digest, TOKEN_DIGEST_BYTES);
    assert_memory_equal(&read.lease, &given.lease, sizeof read.lease);
    assert_memory_equal(&read.executor, &world->executor, sizeof read.executor);
    assert_string_equal(read.repository, "repository-1");
    assert_string_equal(read.journal_handle, "T-0000-0000");
    assert_string_equal(read.journal_path, "/journals/T-0000-0000");
    assert_null(read.cancel_by);
}

static void a_held_subject_is_reported_with_its_holder(void **state)
{
    struct world *world = *state;
    struct credential owner = reserve(world, world->a, KIND_DONE, "checkout:1");
    struct reservation other = reservation_of(world, KIND_DONE, "checkout:1");
    _cleanup_(attempt_done) struct attempt attempt = {0}, holder = {0};
    _cleanup_(error_done) struct error err = {0};

    REFUSED(world, RESULT_HELD, store_reserve(world->b, &other, &attempt, &holder, &err));
    assert_string_equal(holder.id, owner.attempt_id);
    assert_non_null(strstr(err.message, "checkout:1"));
    assert_non_null(strstr(err.message, attempt_name(&holder)));
    assert_int_equal(other.credential.fence, 0);
}

static void one_held_subject_undoes_the_whole_reserve(void **state)
{
    struct world *world = *state;
    static const char *const SUBJECTS[] = {"z", "m", "a"};
    struct credential first = reserve(world, world->a, KIND_DONE, "z");
    struct credential second = reserve(world, world->a, KIND_DONE, "m");
    struct reservation other = reservation_of(world, KIND_DONE, "a");
    _cleanup_(attempt_done) struct attempt attempt = {0}, holder = {0};

    other.subjects = SUBJECTS;
    other.subject_count = 3;
    REFUSED(world, RESULT_HELD, store_reserve(world->b, &other, &attempt, &holder, NULL));
    /* The first in order that is held, not the first asked for. */
    assert_string_equal(holder.id, second.attempt_id);
    assert_string_not_equal(holder.id, first.attempt_id);
    reserve(world, world->b, KIND_DONE, "a");
}

static void a_repeated_reserve_is_answered_by_its_own_row(void **state)
{
    struct world *world = *state;
    struct reservation reservation = reservation_of(world, KIND_DONE, "a"), stranger;
    int64_t fence = 0;

    OK(try_reserve(world->a, &reservation));
    fence = reservation.credential.fence;
    reservation.credential.fence = 0;
    REFUSED(world, RESULT_OK, try_reserve(world->b, &reservation));
    assert_int_equal(reservation.credential.fence, fence);
    stranger = reservation;
    stranger.credential.token[0] ^= 1;
    REFUSED(world, RESULT_RETIRED, try_reserve(world->b, &stranger));
    OK(settle(world->a, &reservation.credential, ATTEMPT_FAILED));
    REFUSED(world, RESULT_RETIRED, try_reserve(world->b, &reservation));
}

static void wrong_reservations_are_refused(void **state)
{
    struct world *world = *state;
    static const char *const BAD[] = {"", "a\nb", "a\x7f", "\xff", "\xc3"};
    static const int64_t TTL[] = {0, -1, 1999, 3600001, INT64_MAX, INT64_MIN};
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");

    for (size_t i = 0; i < ARRAY_SIZE(BAD); i++) {
        reservation.subjects = &BAD[i];
        REFUSED(world, RESULT_INVALID, try_reserve(world->a, &reservation));
    }
    reservation = reservation_of(world, KIND_DONE, "a");
    for (size_t i = 0; i < ARRAY_SIZE(TTL); i++) {
        reservation.ttl_ms = TTL[i];
        REFUSED(world, RESULT_INVALID, try_reserve(world->a, &reservation));
    }
    reservation = reservation_of(world, KIND_DONE, "a");
    reservation.executor = NULL;
    REFUSED(world, RESULT_INVALID, try_reserve(world->a, &reservation));
}

static void fences_increase_whatever_happens(void **state)
{
    struct world *world = *state;
    struct credential one = reserve(world, world->a, KIND_DONE, "a"), two, three, four, five;

    OK(settle(world->a, &one, ATTEMPT_FAILED));
    world->clock.now_wall_ms -= INT64_C(86400000) * 365;
    two = reserve(world, world->b, KIND_DONE, "a");
    assert_true(two.fence > one.fence);
    OK(retire(world->a, two.attempt_id, 1, true, NULL));
    three = reserve(world, world->a, KIND_DONE, "a");
    assert_true(three.fence > two.fence);
    backend->pass(world, 60001);
    OK(retire(world->a, three.attempt_id, 1, false, NULL));
    store_close(world->b);
    world->b = world_open(world);
    four = reserve(world, world->b, KIND_DONE, "a");
    assert_true(four.fence > three.fence);
    world->clock.now_wall_ms += INT64_C(86400000) * 365 * 31;
    backend->restart(world);
    OK(settle(world->a, &four, ATTEMPT_CANCELLED));
    five = reserve(world, world->a, KIND_DONE, "a");
    assert_true(five.fence > four.fence);
    assert_true(five.fence >= world->clock.now_wall_ms * 1000);
}

static void a_refused_reserve_draws_no_fence(void **state)
{
    struct world *world = *state;
    struct credential one = reserve(world, world->a, KIND_DONE, "a"), two;
    struct reservation refused = reservation_of(world, KIND_DONE, "a");

    world->clock.now_wall_ms -= INT64_C(86400000);
    REFUSED(world, RESULT_HELD, try_reserve(world->b, &refused));
    two = reserve(world, world->b, KIND_DONE, "b");
    assert_int_equal(two.fence, one.fence + 1);
}

static void an_end_frees_the_subjects(void **state)
{
    struct world *world = *state;
    static const enum attempt_state ENDS[] = {ATTEMPT_PASSED, ATTEMPT_FAILED, ATTEMPT_CANCELLED};

    for (size_t i = 0; i < ARRAY_SIZE(ENDS); i++) {
        struct credential credential = run(world, world->a, KIND_COMMAND, "a");
        _cleanup_(attempt_done) struct attempt ended = {0};
        OK(settle(world->a, &credential, ENDS[i]));
        ended = found(world->b, credential.attempt_id);
        assert_int_equal(ended.state, ENDS[i]);
        assert_int_equal(ended.subject_count, 1);
        assert_string_equal(ended.subjects[0], "a");
        assert_true(ended.settled_wall_ms == world->clock.now_wall_ms);
    }
}

static void binding_at_once_waits_for_leftovers(void **state)
{
    struct world *world = *state;
    struct reservation clear = reservation_of(world, KIND_DONE, "a"),
                       later = reservation_of(world, KIND_DONE, "b");
    _cleanup_(attempt_done) struct attempt first = {0}, second = {0};

    clear.bind_if_clear = later.bind_if_clear = true;
    OK(store_reserve(world->a, &clear, &first, NULL, NULL));
    assert_int_equal(first.state, ATTEMPT_RUNNING);
    OK(retire(world->a, first.id, first.rev, true, NULL));
    OK(store_reserve(world->a, &later, &second, NULL, NULL));
    assert_int_equal(second.state, ATTEMPT_PLANNING);
    OK(store_bind(world->a, &later.credential, NULL, NULL));
}

static void a_settlement_may_be_repeated_and_asked_for(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_COMMAND, "a"), stranger = credential;
    struct settlement settlement, other;

    stranger.token[5] ^= 1;
    settlement_init(&settlement, ATTEMPT_FAILED);
    settlement_init(&other, ATTEMPT_FAILED);
    settlement.reason_code = "producer-failed";
    REFUSED(world, RESULT_CONFLICT, store_settle_ask(world->b, &credential, &settlement, NULL));
    REFUSED(world, RESULT_RETIRED, store_settle_ask(world->b, &stranger, &settlement, NULL));
    OK(store_settle(world->a, &credential, &settlement, NULL));
    REFUSED(world, RESULT_OK, store_settle(world->b, &credential, &settlement, NULL));
    REFUSED(world, RESULT_OK, store_settle_ask(world->b, &credential, &settlement, NULL));
    REFUSED(world, RESULT_RETIRED, store_settle(world->b, &credential, &other, NULL));
    REFUSED(world, RESULT_RETIRED, store_settle_ask(world->b, &credential, &other, NULL));
    REFUSED(world, RESULT_RETIRED, store_settle(world->b, &stranger, &settlement, NULL));
    REFUSED(world, RESULT_RETIRED, store_settle_ask(world->b, &stranger, &settlement, NULL));
    settlement.state = ATTEMPT_CANCELLED;
    REFUSED(world, RESULT_RETIRED, store_settle(world->b, &credential, &settlement, NULL));
    memset(settlement.nonce, 0, sizeof settlement.nonce);
    REFUSED(world, RESULT_INVALID, store_settle(world->b, &credential, &settlement, NULL));
}

static void asking_about_a_retired_attempt_says_so(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_COMMAND, "a");
    struct settlement settlement;

    settlement_init(&settlement, ATTEMPT_FAILED);
    OK(retire(world->b, credential.attempt_id, revision(world->b, credential.attempt_id), true, NULL));
    REFUSED(world, RESULT_RETIRED, store_settle_ask(world->a, &credential, &settlement, NULL));
    REFUSED(world, RESULT_RETIRED, store_settle(world->a, &credential, &settlement, NULL));
}

static void done_passes_with_its_proof_alone(void **state)
{
    struct world *world = *state;
    struct credential done = run(world, world->a, KIND_DONE, "a"),
                      trial = run(world, world->a, KIND_TRIAL, "b");
    struct proof_row proof = proof_of(world, "one");
    const struct proof_query any = {.tree = "7ee"}, none = {.tree = "other"}, all = {0};
    const struct proof_query exact = {"repository-1", "7ee", "c0ffee", "demand-digest", 0};
    _cleanup_(proof_done) struct proof read = {0}, same = {0};

    REFUSED(world, RESULT_INVALID, settle(world->a, &done, ATTEMPT_PASSED));
    REFUSED(world, RESULT_INVALID, settle_with(world->a, &done, ATTEMPT_FAILED, &proof, NULL));
    REFUSED(world, RESULT_INVALID, settle_with(world->a, &trial, ATTEMPT_PASSED, &proof, NULL));
    REFUSED(world, RESULT_ABSENT, store_proof_find(world->b, &all, &read, NULL));
    OK(settle_with(world->a, &done, ATTEMPT_PASSED, &proof, NULL));
    OK(settle(world->a, &trial, ATTEMPT_PASSED));
    OK(store_proof_find(world->b, &any, &read, NULL));
    assert_string_equal(read.id, proof.id);
    assert_string_equal(read.attempt_id, done.attempt_id);
    assert_int_equal(read.fence, done.fence);
    assert_int_equal(read.envelope_length, proof.envelope_length);
    assert_memory_equal(read.envelope, proof.envelope, proof.envelope_length);
    OK(store_proof_find(world->b, &exact, &same, NULL));
    assert_string_equal(same.id, read.id);
    REFUSED(world, RESULT_ABSENT, store_proof_find(world->b, &none, &read, NULL));
}

static void a_proof_that_cannot_be_written_leaves_the_attempt_unfinished(void **state)
{
    struct world *world = *state;
    struct credential one = run(world, world->a, KIND_DONE, "a"), two = run(world, world->a, KIND_DONE, "b");
    struct proof_row proof = proof_of(world, "one");

    OK(settle_with(world->a, &one, ATTEMPT_PASSED, &proof, NULL));
    REFUSED(world, RESULT_CORRUPT, settle_with(world->a, &two, ATTEMPT_PASSED, &proof, NULL));
    OK(settle(world->a, &two, ATTEMPT_FAILED));
}

static void a_request_to_cancel_rides_on_the_next_renewal(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    struct renewal renewal = {.credential = &credential};
    _cleanup_(attempt_done) struct attempt attempt = {0};

    OK(store_renew(world->a, &renewal, 1, NULL));
    assert_false(renewal.cancel_requested);
    OK(store_request_cancel(world->b, credential.attempt_id, "me@there", NULL));
    REFUSED(world, RESULT_OK, store_request_cancel(world->b, credential.attempt_id, "another", NULL));
    OK(store_renew(world->a, &renewal, 1, NULL));
    assert_int_equal(renewal.result, RESULT_OK);
    assert_true(renewal.cancel_requested);
    attempt = found(world->b, credential.attempt_id);
    assert_string_equal(attempt.cancel_by, "me@there");
    assert_true(attempt.cancel_wall_ms == world->clock.now_wall_ms);
    OK(settle(world->a, &credential, ATTEMPT_CANCELLED));
    REFUSED(world, RESULT_RETIRED, store_request_cancel(world->b, credential.attempt_id, "late", NULL));
    REFUSED(world, RESULT_ABSENT,
        store_request_cancel(world->b, "0192e4a0-0000-7000-8000-000000000001", "me", NULL));
    REFUSED(world, RESULT_INVALID, store_request_cancel(world->b, "no id", "me", NULL));
}

static void history_tells_what_happened_without_renewals(void **state)
{
    struct world *world = *state;
    static const char *const WANTED[] = {"reserved", "bound", "evidence", "cancel-requested", "settled"};
    struct credential credential = run(world, world->a, KIND_COMMAND, "a");
    _cleanup_(history_done) struct history history = {0}, all = {0};

    OK(renew(world->a, &credential));
    OK(put_evidence(world->a, &credential, "key", true));
    OK(store_request_cancel(world->b, credential.attempt_id, "me", NULL));
    for (int i = 0; i < 5; i++)
        OK(renew(world->a, &credential));
    OK(settle(world->a, &credential, ATTEMPT_PASSED));
    run(world, world->a, KIND_COMMAND, "a");
    OK(store_history(world->b, credential.attempt_id, &history, NULL));
    assert_int_equal(history.count, ARRAY_SIZE(WANTED));
    for (size_t i = 0; i < history.count; i++) {
        assert_string_equal(history.items[i].event, WANTED[i]);
        assert_string_equal(history.items[i].attempt_id, credential.attempt_id);
        assert_true(i == 0 || history.items[i].sequence > history.items[i - 1].sequence);
    }
    OK(store_history(world->b, NULL, &all, NULL));
    assert_int_equal(all.count, history.count + 2);
}

static size_t count_of(struct store *store, const struct attempt_query *query, const char *first)
{
    _cleanup_(attempt_list_done) struct attempt_list list = {0};

    OK(store_list(store, query, &list, NULL));
    for (size_t i = 1; i < list.count; i++)
        assert_true(list.items[i].fence < list.items[i - 1].fence);
    if (first)
        assert_string_equal(list.items[0].id, first);
    return list.count;
}

static void lists_are_newest_first_and_choose_well(void **state)
{
    struct world *world = *state;
    static const char *const SUBJECTS[] = {"b", "nobody's", "quote\"'\\"};
    struct credential ended = run(world, world->a, KIND_COMMAND, "a"), here, there, odd;
    struct reservation elsewhere = reservation_of(world, KIND_COMMAND, "b");

    OK(settle(world->a, &ended, ATTEMPT_PASSED));
    here = run(world, world->a, KIND_COMMAND, "a");
    elsewhere.repository = "repository-2";
    OK(try_reserve(world->a, &elsewhere));
    there = elsewhere.credential;
    elsewhere = reservation_of(world, KIND_COMMAND, SUBJECTS[2]);
    elsewhere.repository = NULL;
    OK(try_reserve(world->a, &elsewhere));
    odd = elsewhere.credential;
    assert_int_equal(count_of(world->b, &(struct attempt_query){0}, odd.attempt_id), 4);
    assert_int_equal(count_of(world->b, &(struct attempt_query){.limit = 2}, odd.attempt_id), 2);
    assert_int_equal(count_of(world->b, &(struct attempt_query){.unfinished_only = true}, odd.attempt_id), 3);
    assert_int_equal(
        count_of(world->b, &(struct attempt_query){.repository = "repository-1"}, here.attempt_id), 2);
    struct attempt_query query = {
        .repository = "repository-1", .subjects = SUBJECTS, .unfinished_only = true};
    query.subject_count = 2;
    assert_int_equal(count_of(world->b, &query, there.attempt_id), 2);
    query.subject_count = 3;
    assert_int_equal(count_of(world->b, &query, odd.attempt_id), 3);
    query.repository = NULL;
    query.subject_count = 1;
    assert_int_equal(count_of(world->b, &query, there.attempt_id), 1);
    query.unfinished_only = false;
    assert_int_equal(count_of(world->b, &query, there.attempt_id), 1);
}

static void attempts_are_found_by_id_and_by_handle(void **state)
{
    struct world *world = *state;
    struct reservation reservation = reservation_of(world, KIND_COMMAND, "a");
    _cleanup_(attempt_done) struct attempt attempt = {0}, none = {0};

    reservation.journal_handle = "T-7K3M-QX9D";
    OK(try_reserve(world->a, &reservation));
    attempt = found(world->b, "T-7K3M-QX9D");
    assert_string_equal(attempt.id, reservation.credential.attempt_id);
    REFUSED(world, RESULT_ABSENT, store_find(world->b, "T-0000-000X", &none, NULL));
}

static void status_counts(void **state)
{
    struct world *world = *state;
    struct credential one = run(world, world->a, KIND_DONE, "a");
    struct proof_row proof = proof_of(world, "one");
    _cleanup_(store_status_done) struct store_status status = {0};

    run(world, world->a, KIND_DONE, "b");
    OK(put_evidence(world->a, &one, "key", true));
    OK(put_evidence(world->a, &one, "key", true));
    OK(settle_with(world->a, &one, ATTEMPT_PASSED, &proof, NULL));
    OK(store_status(world->b, &status, NULL));
    assert_int_equal(status.unfinished, 1);
    assert_int_equal(status.ended, 1);
    assert_int_equal(status.evidence, 2);
    assert_int_equal(status.proofs, 1);
    assert_int_equal(status.schema_version, status.newest_version);
    assert_non_null(status.location);
}

static void both_handles_know_one_store(void **state)
{
    struct world *world = *state;

    assert_int_equal(strlen(store_id(world->a)), 32);
    assert_string_equal(store_id(world->a), store_id(world->b));
}

int test_lifecycle(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(reserve_gives_what_was_asked),
        TEST(a_held_subject_is_reported_with_its_holder),
        TEST(one_held_subject_undoes_the_whole_reserve),
        TEST(a_repeated_reserve_is_answered_by_its_own_row),
        TEST(wrong_reservations_are_refused),
        TEST(fences_increase_whatever_happens),
        TEST(a_refused_reserve_draws_no_fence),
        TEST(an_end_frees_the_subjects),
        TEST(binding_at_once_waits_for_leftovers),
        TEST(a_settlement_may_be_repeated_and_asked_for),
        TEST(asking_about_a_retired_attempt_says_so),
        TEST(done_passes_with_its_proof_alone),
        TEST(a_proof_that_cannot_be_written_leaves_the_attempt_unfinished),
        TEST(a_request_to_cancel_rides_on_the_next_renewal),
        TEST(history_tells_what_happened_without_renewals),
        TEST(lists_are_newest_first_and_choose_well),
        TEST(attempts_are_found_by_id_and_by_handle),
        TEST(status_counts),
        TEST(both_handles_know_one_store),
    };

    return cmocka_run_group_tests_name("lifecycle", tests, NULL, NULL);
}
