/* Signals to the supervisor: ended by one, stopped and continued. */
#include "tests/unit/supervisor/supervising.h"

#define JOBS 8

static void start_stubborn(struct fixture *f)
{
    for (int i = 0; i < JOBS; i++) {
        _cleanup_(mem_free) char *name = mem_format("job%d", i);
        _cleanup_(mem_free) char *line =
            mem_format("trap 'sleep 2; exit 0' TERM; echo $$ > %s; sleep 600 & wait", name);
        assert_int_equal(start(f, name, line, (struct job_request){.captured = true}), RESULT_OK);
        pid_in(f, name);
    }
}

static void take_stopped(struct fixture *f, int exit_code, int signal)
{
    for (int i = 0; i < JOBS; i++) {
        struct job_outcome outcome = next_of(f, SUPERVISOR_JOB_FINISHED);
        assert_verdict(&outcome, JOB_STOPPED);
        assert_int_equal(outcome.exit_code, exit_code);
        assert_int_equal(outcome.signal, signal);
        job_outcome_done(&outcome);
    }
    assert_int_equal(next(f).kind, SUPERVISOR_IDLE);
}

static void test_first_signal_lets_them_end(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        struct fixture f;
        begin(&f);
        start_stubborn(&f);
        int64_t sent = boot_ms();
        kill(getpid(), signals[i]);
        assert_int_equal(next(&f).kind, SUPERVISOR_STOPPING);
        assert_int_equal(supervisor_stop_of(f.supervisor)->cause, STOP_SIGNAL);
        assert_int_equal(supervisor_stop_of(f.supervisor)->signal, signals[i]);
        take_stopped(&f, 0, -1);
        assert_in_range(boot_ms() - sent, 1900, 4500);
        end(&f);
    }
}

static void test_second_signal_kills(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    start_stubborn(&f);
    int64_t sent = boot_ms();
    kill(getpid(), SIGINT);
    assert_int_equal(next(&f).kind, SUPERVISOR_STOPPING);
    while (boot_ms() < sent + 150)
        supervisor_turn(f.supervisor);
    kill(getpid(), SIGINT);
    take_stopped(&f, -1, SIGKILL);
    assert_true(boot_ms() - sent < 1500);
    end(&f);
}

static void test_ignored_stays_ignored(void **state)
{
    (void)state;
    struct fixture f;
    signal(SIGHUP, SIG_IGN);
    signal(SIGCHLD, SIG_IGN); /* would throw the status away */
    begin(&f);
    start_well(&f, "sleep 0.2; exit 5", (struct job_request){0});
    kill(getpid(), SIGHUP);
    struct job_outcome outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_verdict(&outcome, JOB_FAILED);
    assert_int_equal(outcome.exit_code, 5);
    job_outcome_done(&outcome);
    assert_int_equal(supervisor_stop_of(f.supervisor)->cause, STOP_NONE);
    end(&f);
    struct sigaction action;
    sigaction(SIGCHLD, NULL, &action);
    assert_true(action.sa_handler == SIG_IGN);
    signal(SIGHUP, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGTERM), 0);
}

/* ---- stopped and continued: a process of its own is the supervisor ---- */

enum report {
    REPORT_OK = 0,
    REPORT_NOT_THAWED = 10,
    REPORT_NOT_TOLD,
    REPORT_NOT_COUNTED,
    REPORT_NOT_PASSED,
    REPORT_NOT_CONFIRMED
};

/* Ctrl-Z freezes first, so that the stop lies in the frozen time; any other stop is a gap of its own. Whether
 * work is frozen after it is a race: the guard may wake first, or the heartbeat and have it confirmed. */
static enum report judge_records(const struct fixture *f, int stop_signal)
{
    if (f->kinds[JOURNAL_THAWED] != f->kinds[JOURNAL_FROZEN])
        return REPORT_NOT_THAWED;
    if (stop_signal == SIGTSTP && f->kinds[JOURNAL_FROZEN] == 0)
        return REPORT_NOT_THAWED;
    return f->kinds[JOURNAL_GAP] == (stop_signal == SIGTSTP ? 0 : 1) ? REPORT_OK : REPORT_NOT_TOLD;
}

static int supervise_one(const char *line, const char *ready, int stop_signal, int64_t stopped_ms)
{
    struct fixture f;
    begin(&f);
    start_well(&f, line, (struct job_request){0});
    FILE *file = fopen(ready, "w");
    fprintf(file, "1\n");
    fclose(file);
    struct job_outcome outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    enum report report = judge_records(&f, stop_signal);
    if (report != REPORT_OK)
        print_message("%d gaps, %d times frozen, %d times thawed\n", f.kinds[JOURNAL_GAP],
            f.kinds[JOURNAL_FROZEN], f.kinds[JOURNAL_THAWED]);
    else if (outcome.frozen_ms < stopped_ms)
        report = REPORT_NOT_COUNTED;
    else if (outcome.verdict != JOB_PASSED)
        report = REPORT_NOT_PASSED;
    else if (fake.confirmed == 0)
        report = REPORT_NOT_CONFIRMED;
    job_outcome_done(&outcome);
    end(&f);
    return (int)report;
}

static void stop_and_continue(int stop_signal, int64_t stopped_ms)
{
    struct folder folder;
    folder_make(&folder);
    _cleanup_(mem_free) char *ready = mem_format("%s/ready", folder.path);
    pid_t pid = checked_fork();
    if (pid == 0) {
        setpgid(0, 0);
        _exit(supervise_one(
            "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done", ready, stop_signal, stopped_ms));
    }
    wait_until(access(ready, F_OK) == 0);
    kill(pid, stop_signal);
    int status;
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    int64_t until = boot_ms() + stopped_ms;
    while (boot_ms() < until)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    kill(pid, SIGCONT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), REPORT_OK);
    folder_done(&folder);
}

static void test_longer_asleep_than_the_lease(void **state)
{
    (void)state;
    stop_and_continue(SIGSTOP, TTL_MS * 3 / 2);
}

static void test_stopped_from_the_terminal(void **state)
{
    (void)state;
    stop_and_continue(SIGTSTP, 300); /* shorter than the lease: renewed first all the same */
    stop_and_continue(SIGTSTP, TTL_MS * 3 / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_first_signal_lets_them_end, set_up),
        cmocka_unit_test_setup(test_second_signal_kills, set_up),
        cmocka_unit_test_setup(test_ignored_stays_ignored, set_up),
        cmocka_unit_test_setup(test_longer_asleep_than_the_lease, set_up),
        cmocka_unit_test_setup(test_stopped_from_the_terminal, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
