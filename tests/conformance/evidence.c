#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/conformance/conformance.h"

static struct evidence_row row_of(const char *key, const char *verdict, bool passed, bool reusable)
{
    struct evidence_row row = {
        .producer = (char *)"build",
        .verdict = (char *)verdict,
        .passed = passed,
        .reusable = reusable,
        .tree = (char *)"7ee",
        .payload = (char *)"{\"a\":1}",
    };

    digest_hex(key, strlen(key), row.key);
    return row;
}

static enum result find(struct store *store, const char *key, struct evidence_row *ret)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(key, strlen(key), hex);
    return store_evidence_find(store, hex, ret, NULL);
}

static void evidence_comes_back_as_it_was_put(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    struct evidence_row row = row_of("key", "passed", true, true);
    _cleanup_(evidence_row_done) struct evidence_row read = {0}, latest = {0};

    row.wall_ms = world->clock.now_wall_ms;
    OK(store_evidence_put(world->a, &credential, &row, NULL));
    OK(find(world->b, "key", &read));
    assert_string_equal(read.attempt_id, credential.attempt_id);
    assert_string_equal(read.machine_id, world->machine.machine_id);
    assert_string_equal(read.repository, "repository-1");
    assert_string_equal(read.producer, "build");
    assert_string_equal(read.key, row.key);
    assert_string_equal(read.verdict, "passed");
    assert_true(read.passed);
    assert_true(read.reusable);
    assert_string_equal(read.tree, "7ee");
    assert_string_equal(read.payload, "{\"a\":1}");
    assert_true(read.wall_ms == world->clock.now_wall_ms);
    assert_true(read.sequence > 0);
    assert_int_equal(row.sequence, read.sequence);
    OK(store_evidence_latest(world->b, "repository-1", "build", &latest, NULL));
    assert_int_equal(latest.sequence, read.sequence);
}

static void the_newest_reusable_row_is_found(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    struct evidence_row passed = row_of("key", "passed", true, true),
                        failed = row_of("key", "failed", false, true),
                        cut = row_of("key", "interrupted", false, false);
    _cleanup_(evidence_row_done) struct evidence_row first = {0}, second = {0}, third = {0}, none = {0};

    assert_int_equal(find(world->b, "key", &none), RESULT_ABSENT);
    OK(store_evidence_put(world->a, &credential, &cut, NULL));
    assert_int_equal(find(world->b, "key", &none), RESULT_ABSENT);
    OK(store_evidence_put(world->a, &credential, &passed, NULL));
    OK(store_evidence_put(world->a, &credential, &cut, NULL));
    OK(find(world->b, "key", &first));
    assert_string_equal(first.verdict, "passed");
    OK(store_evidence_put(world->a, &credential, &failed, NULL));
    OK(find(world->b, "key", &second));
    assert_string_equal(second.verdict, "failed");
    assert_true(second.sequence > first.sequence);
    assert_int_equal(passed.sequence, first.sequence);
    assert_true(cut.sequence > passed.sequence);
    assert_int_equal(failed.sequence, second.sequence);
    OK(store_evidence_put(world->a, &credential, &passed, NULL));
    OK(find(world->b, "key", &third));
    assert_string_equal(third.verdict, "passed");
    assert_int_equal(find(world->b, "other key", &none), RESULT_ABSENT);
}

static void a_failure_counts_on_its_own_machine_alone(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    struct evidence_row passed = row_of("key", "passed", true, true),
                        failed = row_of("key", "failed", false, true);
    _cleanup_(evidence_row_done) struct evidence_row none = {0}, found_passed = {0}, latest = {0};

    strcpy(failed.machine_id, "fedcba9876543210fedcba9876543210");
    strcpy(passed.machine_id, "fedcba9876543210fedcba9876543210");
    OK(store_evidence_put(world->a, &credential, &failed, NULL));
    assert_int_equal(find(world->b, "key", &none), RESULT_ABSENT);
    OK(store_evidence_put(world->a, &credential, &passed, NULL));
    OK(store_evidence_put(world->a, &credential, &failed, NULL));
    OK(find(world->b, "key", &found_passed));
    assert_string_equal(found_passed.verdict, "passed");
    /* The latest of a producer is for reasons and expected times: it counts wherever it was seen. */
    OK(store_evidence_latest(world->b, "repository-1", "build", &latest, NULL));
    assert_string_equal(latest.verdict, "failed");
}

static void the_latest_belongs_to_repository_and_producer(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    struct evidence_row row = row_of("key", "passed", true, true);
    _cleanup_(evidence_row_done) struct evidence_row none = {0};

    OK(store_evidence_put(world->a, &credential, &row, NULL));
    assert_int_equal(store_evidence_latest(world->b, "repository-1", "other", &none, NULL), RESULT_ABSENT);
    assert_int_equal(store_evidence_latest(world->b, "repository-2", "build", &none, NULL), RESULT_ABSENT);
    assert_int_equal(store_evidence_latest(world->b, NULL, "build", &none, NULL), RESULT_ABSENT);
}

static void no_evidence_under_an_old_token(void **state)
{
    struct world *world = *state;
    struct credential retired = run(world, world->a, KIND_DONE, "a"),
                      settled = run(world, world->a, KIND_DONE, "b"),
                      stranger = run(world, world->a, KIND_DONE, "c");

    OK(put_evidence(world->a, &retired, "before", true));
    OK(retire(world->b, retired.attempt_id, 2, true, NULL));
    REFUSED(world, RESULT_RETIRED, put_evidence(world->a, &retired, "after", true));
    OK(settle(world->a, &settled, ATTEMPT_FAILED));
    REFUSED(world, RESULT_RETIRED, put_evidence(world->a, &settled, "after", true));
    stranger.token[0] ^= 1;
    REFUSED(world, RESULT_RETIRED, put_evidence(world->a, &stranger, "after", true));
}

static void incomplete_evidence_is_refused(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    struct evidence_row row = row_of("key", "passed", true, true);

    row.producer = NULL;
    row.sequence = 7;
    REFUSED(world, RESULT_INVALID, store_evidence_put(world->a, &credential, &row, NULL));
    assert_int_equal(row.sequence, 7);
    row = row_of("key", NULL, true, true);
    REFUSED(world, RESULT_INVALID, store_evidence_put(world->a, &credential, &row, NULL));
    row = row_of("key", "passed", true, true);
    row.key[0] = '\0';
    REFUSED(world, RESULT_INVALID, store_evidence_put(world->a, &credential, &row, NULL));
}

int test_evidence(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(evidence_comes_back_as_it_was_put),
        TEST(the_newest_reusable_row_is_found),
        TEST(a_failure_counts_on_its_own_machine_alone),
        TEST(the_latest_belongs_to_repository_and_producer),
        TEST(no_evidence_under_an_old_token),
        TEST(incomplete_evidence_is_refused),
    };

    return cmocka_run_group_tests_name("evidence", tests, NULL, NULL);
}
