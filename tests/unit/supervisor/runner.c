/* Programs run for their output while the loop turns: the supervisor's runner. */
#include "tests/unit/supervisor/supervising.h"

static void test_runner(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    start_well(&f, "sleep 0.1; echo done", (struct job_request){.captured = true});
    struct collect collects[] = {
        {.argv = (const char *const[]){"sh", "-c", "cat; echo no >&2; exit 4", NULL},
            .environment = ENVIRONMENT,
            .directory_fd = AT_FDCWD,
            .input = "hello",
            .input_length = 5},
        {.argv = (const char *const[]){"sh", "-c", "sleep 600 & sleep 1; echo two", NULL},
            .environment = ENVIRONMENT,
            .directory_fd = AT_FDCWD},
    };
    struct runner *runner = supervisor_runner(f.supervisor);
    assert_int_equal(runner->run(runner, collects, 2, NULL), RESULT_OK);
    assert_string_equal(collects[0].output.bytes, "hello");
    assert_string_equal(collects[0].complaint.bytes, "no\n");
    assert_int_equal(WEXITSTATUS(collects[0].status), 4);
    assert_string_equal(collects[1].output.bytes, "two\n");
    assert_int_equal(collects[1].status, 0);
    assert_true(fake.confirmed >= 1); /* the heartbeat did not wait for them */
    text_done(&collects[0].output), text_done(&collects[0].complaint);
    text_done(&collects[1].output), text_done(&collects[1].complaint);
    struct job_outcome outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_verdict(&outcome, JOB_PASSED);
    job_outcome_done(&outcome);

    struct collect hung = {.argv = (const char *const[]){"sleep", "600", NULL},
        .environment = ENVIRONMENT,
        .directory_fd = AT_FDCWD,
        .bound_ms = 300};
    _cleanup_(error_done) struct error overdue = {0};
    int64_t asked = boot_ms();
    assert_int_equal(runner->run(runner, &hung, 1, &overdue), RESULT_SYSTEM);
    assert_in_range(boot_ms() - asked, 300, 5000);
    assert_string_equal(overdue.message, "`sleep 600` did not end within 300 ms and was ended");
    text_done(&hung.output), text_done(&hung.complaint);

    kill(getpid(), SIGTERM);
    struct collect slow = {.argv = (const char *const[]){"sleep", "600", NULL},
        .environment = ENVIRONMENT,
        .directory_fd = AT_FDCWD};
    assert_int_equal(runner->run(runner, &slow, 1, NULL), RESULT_INTERRUPTED);
    struct text named = {0};
    assert_int_equal(supervisor_end_work(f.supervisor, false, &named, NULL), RESULT_OK);
    text_done(&named);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_runner, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
