/* The verdict that a journal gives is about one attempt of one incarnation, and about no other. */
#include "tests/unit/supervisor/processes.h"

#include "journal/journal.h"
#include "supervisor/verdict-private.h"

#define MINE  "0192c000-0000-7000-8000-000000000001"
#define OTHER "0192c000-0000-7000-8000-000000000002"

static void test_only_its_own_journal_speaks_for_an_attempt(void **state _unused_)
{
    struct folder folder;
    struct machine machine;
    struct attempt attempt = {.id = MINE};
    struct journal *journal = NULL;
    folder_make(&folder);
    assert_int_equal(machine_read(&machine, NULL), RESULT_OK);
    assert_int_equal(executor_self(&machine, &attempt.executor, NULL), RESULT_OK);
    struct journal_options options = {
        .root = folder.path, .clock = clock_system(), .executor = &attempt.executor, .attempt = MINE};
    assert_int_equal(journal_create(&options, &journal, NULL), RESULT_OK);

    assert_int_equal(verdict_of(&machine, &attempt).verdict, OWNER_UNKNOWN); /* it names no journal */
    attempt.journal_path = mem_string(journal_path(journal));
    assert_int_equal(verdict_of(&machine, &attempt).verdict, OWNER_RUNNING);

    memcpy(attempt.id, OTHER, sizeof(OTHER));
    assert_int_equal(verdict_of(&machine, &attempt).verdict, OWNER_UNKNOWN);
    memcpy(attempt.id, MINE, sizeof(MINE));
    attempt.executor.incarnation[0] ^= 1;
    assert_int_equal(verdict_of(&machine, &attempt).verdict, OWNER_UNKNOWN);
    attempt.executor.incarnation[0] ^= 1;

    journal_close(journal);
    assert_int_equal(verdict_of(&machine, &attempt).verdict, OWNER_GONE);
    attempt_done(&attempt);
    folder_done(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_its_own_journal_speaks_for_an_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
