/* The work stands still while its lease is not confirmed, and ends when it is lost. */
#include "tests/unit/supervisor/supervising.h"

static void test_frozen_and_thawed(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    fake.answer = RESULT_UNREACHABLE;
    fake.broken = true;
    /* Frozen time does not count: it would be over long ago. */
    start_well(&f, "echo $$ > pid; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; echo $i; done",
        (struct job_request){.captured = true, .timeout_ms = 5000, .quiet_ms = 3000});
    pid_t pid = pid_in(&f, "pid");
    while (f.kinds[JOURNAL_FROZEN] == 0)
        supervisor_turn(f.supervisor);
    int64_t frozen_at = boot_ms();
    assert_true(frozen_at - f.begun_boot_ms >= 1500);
    assert_true(containment_is_stopped(pid));
    assert_int_equal(start(&f, "other", "touch other", (struct job_request){0}), RESULT_BUSY);
    while (boot_ms() < frozen_at + 4000) {
        supervisor_turn(f.supervisor);
        assert_true(containment_is_stopped(pid));
    }
    assert_int_equal(f.kinds[JOURNAL_RENEWAL_TROUBLE], 1);
    fake.answer = RESULT_OK;
    fake.broken = false;
    assert_int_equal(next(&f).kind, SUPERVISOR_THAWED);
    assert_int_equal(f.kinds[JOURNAL_THAWED], 1);
    struct job_outcome outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_verdict(&outcome, JOB_PASSED);
    assert_true(outcome.frozen_ms >= 4000);
    assert_true(outcome.duration_ms < 5000);
    job_outcome_done(&outcome);
    assert_int_equal(supervisor_stop_of(f.supervisor)->cause, STOP_NONE);
    end(&f);
}

/* The run is being stopped for `cause`, its one job was stopped, and nothing can be started any more. */
static void assert_stopped_with(struct fixture *f, enum stop_cause cause, const char *code)
{
    int stopping = 0, finished = 0;
    for (struct supervisor_event event = next(f); event.kind != SUPERVISOR_IDLE; event = next(f)) {
        stopping += event.kind == SUPERVISOR_STOPPING;
        finished += event.kind == SUPERVISOR_JOB_FINISHED;
        if (event.kind == SUPERVISOR_JOB_FINISHED)
            assert_verdict(&event.outcome, JOB_STOPPED);
        job_outcome_done(&event.outcome);
    }
    assert_int_equal(stopping, 1);
    assert_int_equal(finished, 1);
    assert_int_equal(supervisor_stop_of(f->supervisor)->cause, cause);
    assert_string_equal(supervisor_stop_of(f->supervisor)->reason.code, code);
    assert_int_equal(start(f, "late", "touch late", (struct job_request){0}), RESULT_INTERRUPTED);
    assert_false(exists(f, "late"));
}

static void test_patience_ends(void **state)
{
    (void)state;
    struct fixture f;
    begin_with(&f, (struct setting){.patience_ms = 500, .grace_ms = 5000});
    fake.answer = RESULT_UNREACHABLE;
    start_well(&f, "sleep 600", (struct job_request){0});
    assert_stopped_with(&f, STOP_LAPSED, "lease-lost");
    assert_in_range(boot_ms() - f.begun_boot_ms, 2000, 4000);
    end(&f);
}

static void test_retired_while_frozen(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    fake.answer = RESULT_UNREACHABLE;
    start_well(&f, "trap '' TERM; while :; do sleep 0.05; done", (struct job_request){0});
    while (f.kinds[JOURNAL_FROZEN] == 0)
        supervisor_turn(f.supervisor);
    fake.answer = RESULT_RETIRED;
    int64_t asked = boot_ms();
    assert_stopped_with(&f, STOP_RETIRED, "lapsed");
    assert_true(boot_ms() - asked < 2000);
    assert_int_equal(f.kinds[JOURNAL_RETIRED], 1);
    assert_int_equal(f.kinds[JOURNAL_THAWED], 0);
    assert_int_equal(supervisor_drain(f.supervisor, NULL), RESULT_RETIRED);
    end(&f);
}

/* A frozen nested program may hold the very lock that the renewal needs. */
static void test_busy_store_while_frozen(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    fake.answer = RESULT_BUSY;
    start_well(&f, "sleep 600", (struct job_request){0});
    assert_stopped_with(&f, STOP_LAPSED, "lease-lost");
    assert_non_null(strstr(supervisor_stop_of(f.supervisor)->reason.text, "locked"));
    assert_in_range(boot_ms() - f.begun_boot_ms, 1500 + TTL_MS, 1500 + TTL_MS + 2000);
    end(&f);
}

static void test_abort_policy(void **state)
{
    (void)state;
    struct fixture f;
    begin_with(&f, (struct setting){.patience_ms = 60000, .grace_ms = 5000, .on_lapse = LAPSE_ABORT});
    fake.answer = RESULT_UNREACHABLE;
    start_well(&f, "trap '' TERM; while :; do sleep 0.05; done", (struct job_request){0});
    assert_stopped_with(&f, STOP_LAPSED, "lease-lost");
    assert_in_range(boot_ms() - f.begun_boot_ms, 1500, 2500);
    assert_int_equal(f.kinds[JOURNAL_FROZEN], 0);
    end(&f);
}

static void test_cancelled(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    fake.cancel = true;
    start_well(&f, "sleep 600", (struct job_request){0});
    assert_stopped_with(&f, STOP_CANCELLED, "cancel-requested");
    end(&f);
}

/* The loop does not turn for longer than the lease: frozen meanwhile, renewed first, then thawed. */
static void test_wedged_loop(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    start_well(&f, "echo $$ > pid; sleep 0.2", (struct job_request){0});
    pid_t pid = pid_in(&f, "pid");
    (void)pid;
    while (boot_ms() < f.begun_boot_ms + 3000)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    assert_int_equal(fake.renewals, 0);
    int64_t turned = boot_ms();
    struct supervisor_event event = next(&f);
    assert_true(fake.confirmed > 0); /* before anything was given out */
    assert_true(boot_ms() - turned < 2000);
    job_outcome_done(&event.outcome);
    assert_true(f.kinds[JOURNAL_FROZEN] > 0);
    assert_int_equal(f.kinds[JOURNAL_THAWED], f.kinds[JOURNAL_FROZEN]);
    struct text named = {0};
    assert_int_equal(supervisor_end_work(f.supervisor, true, &named, NULL), RESULT_OK);
    text_done(&named);
    end(&f);
}

/* Stopped after the last look at the deadline and before the spawn: nothing of it runs. */
static void test_stopped_between_look_and_spawn(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    setenv("TENURE_FAILPOINT", "supervisor-before-spawn:delay=1800", 1);
    assert_int_equal(start(&f, "late", "touch late", (struct job_request){0}), RESULT_BUSY);
    unsetenv("TENURE_FAILPOINT");
    struct text named = {0};
    assert_int_equal(supervisor_end_work(f.supervisor, true, &named, NULL), RESULT_OK);
    text_done(&named);
    assert_false(exists(&f, "late"));
    assert_int_equal(f.kinds[JOURNAL_STARTED], 0);
    end(&f);
}

/* A program on a file system that does not answer is looked for: the guard does not wait for that. */
static void test_a_search_for_a_program_does_not_hold_up_the_guard(void **state)
{
    (void)state;
    struct fixture f;
    struct stat beats;
    struct timespec now;
    begin(&f);
    start_well(&f, "while :; do : > beats; sleep 0.02; done", (struct job_request){0});
    wait_until(exists(&f, "beats"));
    setenv("TENURE_FAILPOINT", "spawn-before-fork:delay=3500", 1);
    assert_int_equal(start(&f, "second", "exit 0", (struct job_request){0}), RESULT_BUSY);
    unsetenv("TENURE_FAILPOINT");
    _cleanup_(mem_free) char *path = mem_format("%s/beats", f.folder.path);
    assert_int_equal(stat(path, &beats), 0);
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t silent_ms =
        (now.tv_sec - beats.st_mtim.tv_sec) * MS_PER_S + (now.tv_nsec - beats.st_mtim.tv_nsec) / 1000000;
    assert_true(silent_ms > 1000); /* it was frozen long before the search ended */
    struct text named = {0};
    assert_int_equal(supervisor_end_work(f.supervisor, true, &named, NULL), RESULT_OK);
    text_done(&named);
    end(&f);
}

static void test_output_does_not_delay_the_heartbeat(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    start_well(&f, "head -c 1G /dev/zero", (struct job_request){.captured = true, .cap_bytes = 1 << 20});
    struct job_outcome outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_verdict(&outcome, JOB_PASSED);
    assert_int_equal(outcome.output_bytes, INT64_C(1) << 30);
    assert_true(outcome.dropped_bytes > 0);
    assert_int_equal(f.kinds[JOURNAL_FROZEN], 0);
    assert_true(fake.confirmed >= outcome.duration_ms / HEARTBEAT_MS - 1);
    assert_true(f.kinds[JOURNAL_OUTPUT] <= outcome.duration_ms / 500 + 1);
    print_message("1 GiB in %lld ms, %d renewals\n", (long long)outcome.duration_ms, fake.confirmed);
    job_outcome_done(&outcome);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_frozen_and_thawed, set_up),
        cmocka_unit_test_setup(test_patience_ends, set_up),
        cmocka_unit_test_setup(test_retired_while_frozen, set_up),
        cmocka_unit_test_setup(test_busy_store_while_frozen, set_up),
        cmocka_unit_test_setup(test_abort_policy, set_up),
        cmocka_unit_test_setup(test_cancelled, set_up),
        cmocka_unit_test_setup(test_wedged_loop, set_up),
        cmocka_unit_test_setup(test_stopped_between_look_and_spawn, set_up),
        cmocka_unit_test_setup(test_a_search_for_a_program_does_not_hold_up_the_guard, set_up),
        cmocka_unit_test_setup(test_output_does_not_delay_the_heartbeat, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
