/* Jobs: how they end, what that is called, and that nothing of them stays behind. */
#include "tests/unit/supervisor/supervising.h"

/* ---- verdicts ---- */

struct ending {
    const char *line;
    enum job_verdict verdict;
    int exit_code, signal;
    const char *words;
};

static const struct ending ENDINGS[] = {
    {"true", JOB_PASSED, 0, -1, "exited with status 0"},
    {"exit 3", JOB_FAILED, 3, -1, "status 3"},
    {"exit 137", JOB_FAILED, 137, -1, "status 137"},
    {"kill -9 $$", JOB_SIGNALLED, -1, SIGKILL, "SIGKILL"},
    {"kill -SEGV $$", JOB_SIGNALLED, -1, SIGSEGV, "SIGSEGV"},
    {"kill -TERM $$", JOB_SIGNALLED, -1, SIGTERM, "SIGTERM"},
};

static void test_ways_to_end(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    for (size_t i = 0; i < ARRAY_SIZE(ENDINGS); i++) {
        start_well(&f, ENDINGS[i].line, (struct job_request){.captured = true});
        struct job_outcome outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
        assert_verdict(&outcome, ENDINGS[i].verdict);
        assert_int_equal(outcome.exit_code, ENDINGS[i].exit_code);
        assert_int_equal(outcome.signal, ENDINGS[i].signal);
        assert_non_null(strstr(outcome.text, ENDINGS[i].words));
        assert_int_equal(outcome.leftovers, 0);
        job_outcome_done(&outcome);
    }
    assert_int_equal(next(&f).kind, SUPERVISOR_IDLE);
    assert_int_equal(f.kinds[JOURNAL_STARTED], ARRAY_SIZE(ENDINGS));
    assert_int_equal(f.kinds[JOURNAL_FINISHED], ARRAY_SIZE(ENDINGS));
    end(&f);
}

/* Exit status 0 is no pass before its caller says so; of any other end the supervisor tells itself. */
static void test_judged_by_its_caller(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    start_well(&f, "true", (struct job_request){.captured = true, .judged = true});
    struct job_outcome outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_verdict(&outcome, JOB_PASSED);
    assert_true(outcome.unjudged);
    assert_int_equal(f.kinds[JOURNAL_FINISHED], 0);
    supervisor_judge(f.supervisor, &outcome, "output-missing", "made nothing");
    assert_int_equal(f.kinds[JOURNAL_FINISHED], 1);
    assert_string_equal(f.last_text[JOURNAL_FINISHED], "made nothing");
    supervisor_judge(f.supervisor, &outcome, "passed", NULL);
    assert_int_equal(f.kinds[JOURNAL_FINISHED], 1);
    job_outcome_done(&outcome);

    start_well(&f, "exit 1", (struct job_request){.captured = true, .judged = true});
    outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_false(outcome.unjudged);
    assert_int_equal(f.kinds[JOURNAL_FINISHED], 2);
    job_outcome_done(&outcome);

    start_well(&f, "true", (struct job_request){.captured = true, .judged = true});
    wait_until((supervisor_turn(f.supervisor), supervisor_running(f.supervisor) == 0));
    assert_int_equal(f.kinds[JOURNAL_FINISHED], 2);
    assert_int_equal(supervisor_drain(f.supervisor, NULL), RESULT_OK);
    assert_int_equal(f.kinds[JOURNAL_FINISHED], 3);
    assert_non_null(strstr(f.last_text[JOURNAL_FINISHED], "before somebody looked"));
    end(&f);
}

static void test_not_started(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    struct job_request request = {
        .name = "missing",
        .argv = (const char *const[]){"no-such-program", NULL},
        .environment = ENVIRONMENT,
        .directory_fd = AT_FDCWD,
        .captured = true,
    };
    assert_int_equal(supervisor_spawn(f.supervisor, &request, NULL), RESULT_OK);
    struct job_outcome outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_verdict(&outcome, JOB_NOT_STARTED);
    assert_int_equal(outcome.failure.step, SPAWN_NOT_FOUND);
    job_outcome_done(&outcome);
    end(&f);
}

/* The loop does not turn before the job has come to where the time-out is to find it. */
static struct job_outcome time_out_at(struct fixture *f, const char *line, const char *ready)
{
    start_well(f, line, (struct job_request){.timeout_ms = 200, .captured = true});
    pid_in(f, ready);
    struct job_outcome outcome = next_of(f, SUPERVISOR_JOB_FINISHED);
    assert_verdict(&outcome, JOB_TIMED_OUT);
    return outcome;
}

static void test_time_outs(void **state)
{
    (void)state;
    struct fixture f;
    begin_with(&f, (struct setting){.patience_ms = 60000, .grace_ms = 300});
    start_well(&f, "sleep 600", (struct job_request){.timeout_ms = 200, .captured = true});
    struct job_outcome outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_verdict(&outcome, JOB_TIMED_OUT);
    assert_in_range(outcome.duration_ms, 200, 5000);
    job_outcome_done(&outcome);

    /* ends well on TERM, and still is no pass */
    outcome = time_out_at(&f, "trap 'exit 0' TERM; echo > polite; while :; do sleep 0.05; done", "polite");
    assert_int_equal(outcome.exit_code, 0);
    job_outcome_done(&outcome);

    /* TERM is ignored: KILL after the grace */
    outcome = time_out_at(&f, "trap '' TERM; echo > deaf; while :; do sleep 0.05; done", "deaf");
    assert_int_equal(outcome.signal, SIGKILL);
    job_outcome_done(&outcome);

    /* what it had started ends with it, as it was asked to: that is no news */
    outcome = time_out_at(&f, "setsid sh -c 'echo > apart; exec sleep 600' & wait", "apart");
    assert_int_equal(outcome.leftovers, 1);
    assert_null(strstr(outcome.text, "outlived"));
    job_outcome_done(&outcome);

    start_well(&f, "for i in 1 2 3; do echo $i; sleep 0.3; done; sleep 600",
        (struct job_request){.quiet_ms = 1500, .captured = true});
    outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_verdict(&outcome, JOB_QUIET);
    assert_true(outcome.duration_ms >= 600 + 1500); /* counted from the last output */
    assert_int_equal(outcome.output_bytes, 6);
    job_outcome_done(&outcome);
    end(&f);
}

static void test_stands_still(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    start_well(&f, "kill -STOP $$", (struct job_request){.captured = true});
    struct job_outcome outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_verdict(&outcome, JOB_STALLED);
    assert_true(outcome.duration_ms >= 10000);
    job_outcome_done(&outcome);
    assert_true(fake.confirmed >= 12);
    end(&f);
}

/* ---- leftovers ---- */

static void test_leftovers_are_ended_and_named(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "sleep 600 & echo $! > pid; echo hi",
        "setsid sleep 600 </dev/null >/dev/null 2>&1 & echo $! > pid",
        ("(setsid sh -c 'echo $$ > pid; trap \"\" TERM; while :; do sleep 0.05; done' &) ; "
         "until test -s pid; do sleep 0.01; done"),
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct fixture f;
        begin(&f);
        start_well(&f, lines[i], (struct job_request){.captured = true});
        struct job_outcome outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
        assert_verdict(&outcome, JOB_PASSED);
        assert_true(outcome.leftovers >= 1);
        pid_t pid = pid_in(&f, "pid");
        _cleanup_(mem_free) char *named = mem_format("pid %d (", pid);
        if (strstr(outcome.text, named) == NULL)
            fail_msg("%s not in: %s", named, outcome.text);
        assert_false(is_alive(pid));
        job_outcome_done(&outcome);
        end(&f);
    }
}

static void test_two_jobs_keep_their_own(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    assert_int_equal(
        start(&f, "long", "sleep 600 & echo $! > long; wait", (struct job_request){0}), RESULT_OK);
    assert_int_equal(start(&f, "short", "sleep 600 & echo $! > short", (struct job_request){0}), RESULT_OK);
    struct job_outcome outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_string_equal(outcome.name, "short");
    assert_int_equal(outcome.leftovers, 1);
    assert_false(is_alive(pid_in(&f, "short")));
    assert_true(is_alive(pid_in(&f, "long")));
    job_outcome_done(&outcome);
    supervisor_stop_job(f.supervisor, "long");
    outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_verdict(&outcome, JOB_STOPPED);
    job_outcome_done(&outcome);
    end(&f);
}

static void test_end_work_leaves_nothing(void **state)
{
    (void)state;
    struct fixture f;
    begin_with(&f, (struct setting){.patience_ms = 60000, .grace_ms = 300});
    assert_int_equal(
        start(&f, "a", "sleep 600 & echo $! > a; trap '' TERM; wait; sleep 600", (struct job_request){0}),
        RESULT_OK);
    assert_int_equal(
        start(&f, "b", "setsid sleep 600 & echo $! > b; wait", (struct job_request){0}), RESULT_OK);
    pid_t a = pid_in(&f, "a"), b = pid_in(&f, "b");
    _cleanup_(text_done) struct text named = {0};
    assert_int_equal(supervisor_end_work(f.supervisor, false, &named, NULL), RESULT_OK);
    assert_false(is_alive(a));
    assert_false(is_alive(b));
    assert_true(named.length > 0);
    end(&f);
}

/* As if its KILL had no effect: nobody can make a process hang in the kernel at will. */
static void test_a_job_that_does_not_go_is_given_up(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    start_well(&f, "exec sleep 600", (struct job_request){0});
    f.supervisor->jobs[0]->phase = JOB_KILLED;
    f.supervisor->jobs[0]->act_boot_ms = boot_ms() + 100;
    struct job_outcome outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_verdict(&outcome, JOB_STOPPED);
    assert_non_null(strstr(outcome.text, "hangs in the kernel"));
    job_outcome_done(&outcome);
    assert_int_equal(supervisor_running(f.supervisor), 0);
    struct text named = {0};
    assert_int_equal(supervisor_end_work(f.supervisor, true, &named, NULL), RESULT_OK);
    assert_non_null(strstr(named.bytes, "(sleep)")); /* it is still known as work */
    text_done(&named);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_ways_to_end, set_up),
        cmocka_unit_test_setup(test_judged_by_its_caller, set_up),
        cmocka_unit_test_setup(test_not_started, set_up),
        cmocka_unit_test_setup(test_time_outs, set_up),
        cmocka_unit_test_setup(test_stands_still, set_up),
        cmocka_unit_test_setup(test_leftovers_are_ended_and_named, set_up),
        cmocka_unit_test_setup(test_two_jobs_keep_their_own, set_up),
        cmocka_unit_test_setup(test_end_work_leaves_nothing, set_up),
        cmocka_unit_test_setup(test_a_job_that_does_not_go_is_given_up, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
