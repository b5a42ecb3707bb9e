/* Holding an attempt in the embedded store: begun, held, waited for, lost, settled. */
#include "tests/unit/supervisor/holding.h"

/* ---- alone ---- */

static void test_begins_and_ends(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    for (int i = 0; i < 2; i++) {
        struct hold *hold = hold_well(&options);
        _cleanup_(mem_free) char *id = mem_string(hold_attempt(hold)->id);
        assert_int_equal(hold_attempt(hold)->state, ATTEMPT_RUNNING);
        assert_true(hold_is_confirmed(hold));
        assert_int_equal(strncmp(hold_marks(hold)[0], "TENURE_ATTEMPT=", 15), 0);
        assert_non_null(strstr(hold_marks(hold)[0], id));
        assert_null(hold_marks(hold)[3]);
        struct hold_result result = {0};
        enum attempt_state wanted = i == 0 ? ATTEMPT_PASSED : ATTEMPT_FAILED;
        assert_int_equal(end_as(hold, wanted, &result), RESULT_OK);
        assert_int_equal(result.state, wanted);
        assert_false(result.lost);
        hold_result_done(&result);
        assert_state(id, wanted, NULL);
    }
}

/* Inside work of an attempt in another store, both must find what is started now. */
static void test_nested_work_bears_the_marks_of_all_levels(void **state)
{
    (void)state;
    static const char OUTER[] = "00112233445566778899aabbccddeeff";
    struct hold_options options = holding(WAIT_NONE);
    setenv("TENURE_ATTEMPT", "outer", 1);
    setenv("TENURE_STORE", OUTER, 1);
    struct hold *hold = hold_well(&options);
    _cleanup_(mem_free) char *attempts = mem_format("TENURE_ATTEMPT=outer:%s", hold_attempt(hold)->id);
    _cleanup_(mem_free) char *stores = mem_format("TENURE_STORE=%s:%s", OUTER, store_id(hold_store(hold)));
    assert_string_equal(hold_marks(hold)[0], attempts);
    assert_string_equal(hold_marks(hold)[1], stores);
    struct hold_result result = {0};
    assert_int_equal(end_as(hold, ATTEMPT_PASSED, &result), RESULT_OK);
    hold_result_done(&result);
}

static void test_bind_later(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    options.bind_now = false;
    struct hold *hold = hold_well(&options);
    assert_int_equal(hold_attempt(hold)->state, ATTEMPT_PLANNING);
    assert_int_equal(hold_bind(hold, "0123", NULL), RESULT_OK);
    assert_state(hold_attempt(hold)->id, ATTEMPT_RUNNING, NULL);
    struct hold_result result = {0};
    assert_int_equal(end_as(hold, ATTEMPT_PASSED, &result), RESULT_OK);
    hold_result_done(&result);
}

static void test_bad_terms(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    options.terms.heartbeat_ms = options.terms.ttl_ms;
    struct hold *hold = NULL;
    assert_int_equal(try_hold(&options, &hold, NULL, NULL), RESULT_INVALID);
    assert_int_equal(journals(), 0);
}

static void test_signal_cancels(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    struct hold *hold = hold_well(&options);
    _cleanup_(mem_free) char *id = mem_string(hold_attempt(hold)->id);
    kill(getpid(), SIGINT);
    hold_until(hold, "never");
    struct hold_result result = {0};
    assert_int_equal(end_as(hold, ATTEMPT_PASSED, &result), RESULT_OK);
    assert_int_equal(result.state, ATTEMPT_CANCELLED);
    assert_int_equal(result.exit_code, 130);
    assert_false(result.lost);
    hold_result_done(&result);
    assert_state(id, ATTEMPT_CANCELLED, "signal");
}

/* What nobody waits for is dead before the record says that the attempt has ended. */
static void test_work_is_dead_before_settlement(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    options.grace_ms = 300;
    struct hold *hold = hold_well(&options);
    _cleanup_(mem_free) char *pid_file = sign_path("pid");
    _cleanup_(mem_free) char *line =
        mem_format("echo $$ > %s; trap '' TERM; while :; do sleep 0.05; done", pid_file);
    struct job_request request = {
        .name = "stubborn",
        .argv = (const char *const[]){"sh", "-c", line, NULL},
        .environment = ENVIRONMENT,
        .directory_fd = AT_FDCWD,
    };
    assert_int_equal(supervisor_spawn(hold_supervisor(hold), &request, NULL), RESULT_OK);
    _cleanup_(text_done) struct text text = {0};
    wait_until((text_clear(&text),
        file_read(AT_FDCWD, pid_file, false, 100, &text, NULL) == RESULT_OK && text.length > 1));
    pid_t pid = (pid_t)atoi(text.bytes);
    struct hold_result result = {0};
    assert_int_equal(end_as(hold, ATTEMPT_PASSED, &result), RESULT_OK);
    bool lives = kill(pid, 0) == 0;
    kill(pid, SIGKILL);
    assert_false(lives);
    hold_result_done(&result);
}

#ifdef TENURE_FAILPOINTS
/* Nobody can say whether the commit came through, and the store says each time that it did not: over and
 * over, but not for ever. */
static void test_an_unknown_settlement_is_given_up(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    struct hold *hold = hold_well(&options);
    _cleanup_(mem_free) char *id = mem_string(hold_attempt(hold)->id);
    setenv("TENURE_FAILPOINT", "settle-before-commit:error", 1);
    struct hold_result result = {0};
    int64_t asked = boot_ms();
    struct hold_ending ending = {.state = ATTEMPT_PASSED, .reason_code = "passed"};
    assert_int_equal(hold_end(hold, &ending, &result, NULL), RESULT_UNKNOWN);
    assert_in_range(boot_ms() - asked, 5000, BOUND_MS);
    assert_true(result.unknown);
    assert_int_equal(result.exit_code, 125);
    unsetenv("TENURE_FAILPOINT");
    hold_result_done(&result);
    assert_state(id, ATTEMPT_RUNNING, NULL);
}

/* The answer to a commit was lost: asked for, not sent again. */
static void test_a_lost_answer_is_asked_for(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    options.bind_now = false;
    struct hold *hold = hold_well(&options);
    _cleanup_(mem_free) char *id = mem_string(hold_attempt(hold)->id);
    setenv("TENURE_FAILPOINT", "bind-after-commit:error", 1);
    assert_int_equal(hold_bind(hold, "0123", NULL), RESULT_OK);
    setenv("TENURE_FAILPOINT", "settle-after-commit:error", 1);
    struct hold_result result = {0};
    assert_int_equal(end_as(hold, ATTEMPT_PASSED, &result), RESULT_OK);
    unsetenv("TENURE_FAILPOINT");
    assert_int_equal(result.state, ATTEMPT_PASSED);
    assert_false(result.unknown);
    hold_result_done(&result);
    assert_state(id, ATTEMPT_PASSED, "passed");
}
#endif

/* ---- work of earlier attempts ---- */

/* argv: inside. This process bears the mark of the retired attempt: it cannot be ended, by itself least of
 * all. */
static int inside_main(void)
{
    struct hold_options options = holding(WAIT_NONE);
    struct hold *hold = NULL;
    struct pending pending = {0};
    int signal = 0;
    _cleanup_(error_done) struct error err = {0};
    enum result r = hold_begin(&options, &hold, &pending, &signal, &err);
    return r == RESULT_DENIED && strstr(err.message, "this run itself") != NULL ? 0 : 1;
}

static enum owner_verdict is_gone(void *context _unused_, const struct attempt *attempt _unused_)
{
    return OWNER_GONE;
}

/* Retires the holder of the subject as another run would that dies right after. The id of the store, owned by
 * the caller. */
static char *retire_holder(void)
{
    struct machine machine;
    _cleanup_(store_cleanup) struct store *store = NULL;
    _cleanup_(recovery_report_done) struct recovery_report report = {0};
    assert_int_equal(machine_read(&machine, NULL), RESULT_OK);
    struct store_options options = {.clock = clock_system(), .machine = &machine};
    struct attempt_query query = {.subjects = SUBJECT, .subject_count = 1};
    assert_int_equal(store_open(&options, STORE_WRITE, &store, NULL), RESULT_OK);
    assert_int_equal(recovery_run(store, &query, NULL, is_gone, NULL, &report, NULL), RESULT_OK);
    assert_int_equal(report.retired.count, 1);
    return mem_string(store_id(store));
}

static struct attempt newest_attempt(void)
{
    struct machine machine;
    struct attempt newest = {0};
    _cleanup_(store_cleanup) struct store *store = NULL;
    _cleanup_(attempt_list_done) struct attempt_list list = {0};
    assert_int_equal(machine_read(&machine, NULL), RESULT_OK);
    struct store_options options = {.clock = clock_system(), .machine = &machine};
    assert_int_equal(store_open(&options, STORE_READ, &store, NULL), RESULT_OK);
    assert_int_equal(store_list(store, &(struct attempt_query){.limit = 1}, &list, NULL), RESULT_OK);
    assert_int_equal(list.count, 1);
    attempt_copy(&list.items[0], &newest);
    return newest;
}

static void test_work_that_cannot_be_ended_cancels(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    char self[4096] = {0};
    pid_t holder = fork_holder(&options);
    struct attempt old = newest_attempt();
    kill(holder, SIGKILL);
    assert_int_equal(exit_status_of(holder), 1000 + SIGKILL);
    _cleanup_(mem_free) char *id = retire_holder();
    _cleanup_(mem_free) char *attempt = mem_format("TENURE_ATTEMPT=%s", old.id);
    _cleanup_(mem_free) char *store = mem_format("TENURE_STORE=%s", id);
    _cleanup_(mem_free) char *home = mem_format("XDG_STATE_HOME=%s", state_folder.path);
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    struct spawn_request request = *SHELL("");
    request.argv = (const char *const[]){self, "inside", NULL};
    request.environment = (const char *const[]){attempt, store, home, NULL};
    struct process inside = spawn_well(&request);
    assert_int_equal(process_wait(&inside), 0);

    struct attempt mine = newest_attempt();
    assert_string_not_equal(mine.id, old.id);
    assert_int_equal(mine.state, ATTEMPT_CANCELLED);
    assert_string_equal(mine.reason.code, "leftovers");
    attempt_done(&mine);
    attempt_done(&old);
}

/* ---- held ---- */

static void test_held_leaves_nothing_behind(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    pid_t holder = fork_holder(&options);
    assert_int_equal(journals(), 1);
    struct hold *hold = NULL;
    struct pending pending = {0};
    int signal = 0;
    int64_t asked = boot_ms();
    assert_int_equal(try_hold(&options, &hold, &pending, &signal), RESULT_HELD);
    assert_true(boot_ms() - asked < 2000);
    assert_string_equal(pending.subject, "command:test");
    assert_int_equal(pending.holder.executor.pid, holder);
    assert_int_equal(pending.verdict, OWNER_RUNNING);
    assert_in_range(pending.lapses_in_ms, 1, TTL_MS);
    pending_done(&pending);
    assert_int_equal(journals(), 1);
    sign("release", "");
    assert_int_equal(exit_status_of(holder), 0);
}

static void test_dead_owner_costs_no_time(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    options.terms = (struct lease_terms){.ttl_ms = 60000};
    pid_t holder = fork_holder(&options);
    _cleanup_(mem_free) char *held = sign_path("held");
    _cleanup_(text_done) struct text id = {0};
    assert_int_equal(file_read(AT_FDCWD, held, false, 100, &id, NULL), RESULT_OK);
    kill(holder, SIGKILL);
    assert_int_equal(exit_status_of(holder), 1000 + SIGKILL);
    int64_t asked = boot_ms();
    struct hold *hold = hold_well(&options);
    assert_true(boot_ms() - asked < 1000);
    assert_state(id.bytes, ATTEMPT_CANCELLED, "owner-gone");
    struct hold_result result = {0};
    assert_int_equal(end_as(hold, ATTEMPT_PASSED, &result), RESULT_OK);
    hold_result_done(&result);
}

static void test_taken_over_while_stopped(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    pid_t holder = fork_holder(&options);
    _cleanup_(mem_free) char *held = sign_path("held");
    _cleanup_(text_done) struct text id = {0};
    assert_int_equal(file_read(AT_FDCWD, held, false, 100, &id, NULL), RESULT_OK);
    kill(holder, SIGSTOP);
    int64_t stopped = boot_ms();
    pid_t taker = checked_fork();
    if (taker == 0) {
        struct hold_options patient = holding(WAIT_DEFAULT_MS);
        struct hold *hold = hold_well(&patient); /* the lapse is waited for */
        sign("taken", "");
        struct hold_result result = {0};
        _exit(end_as(hold, ATTEMPT_PASSED, &result) == RESULT_OK ? 0 : 1);
    }
    wait_until(signed_by("taken"));
    assert_in_range(boot_ms() - stopped, 500, TTL_MS + 1500);
    assert_int_equal(exit_status_of(taker), 0);
    assert_state(id.bytes, ATTEMPT_CANCELLED, "lapsed");
    sign("release", ""); /* continued by whoever ended its leftovers; it asked for `passed` */
    assert_int_equal(exit_status_of(holder), 124);
    assert_state(id.bytes, ATTEMPT_CANCELLED, "lapsed");
}

/* ---- waiting ---- */

static int told;

static void on_waiting(void *context, const struct attempt *holder, const struct store_time *now)
{
    (void)context, (void)now;
    assert_true(holder->fence > 0);
    told++;
    sign("waiting", "");
}

static bool not_wanted(void *context)
{
    (void)context;
    return false;
}

static void test_wakes_when_the_holder_ends(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    options.terms = (struct lease_terms){.ttl_ms = 60000};
    pid_t holder = fork_holder(&options);
    pid_t waiter = checked_fork();
    if (waiter == 0) {
        struct hold_options patient = holding(WAIT_DEFAULT_MS);
        patient.waiting = on_waiting;
        struct hold *hold = hold_well(&patient);
        sign("woken", "");
        struct hold_result result = {0};
        enum result r = end_as(hold, ATTEMPT_PASSED, &result);
        _exit(r == RESULT_OK && told == 1 ? 0 : 1);
    }
    wait_until(signed_by("waiting"));
    sign("release", "");
    assert_int_equal(exit_status_of(holder), 0);
    int64_t released = boot_ms();
    wait_until(signed_by("woken"));
    assert_true(boot_ms() - released < 1000);
    assert_int_equal(exit_status_of(waiter), 0);
}

static void test_wait_is_bounded(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    pid_t holder = fork_holder(&options);
    struct hold_options patient = holding(700);
    struct hold *hold = NULL;
    struct pending pending = {0};
    int signal = 0;
    int64_t asked = boot_ms();
    assert_int_equal(try_hold(&patient, &hold, &pending, &signal), RESULT_HELD);
    assert_in_range(boot_ms() - asked, 700, 2500);
    assert_int_equal(pending.holder.executor.pid, holder);
    pending_done(&pending);
    assert_int_equal(journals(), 1);
    sign("release", "");
    assert_int_equal(exit_status_of(holder), 0);
}

static void test_wait_ends_when_not_wanted(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    pid_t holder = fork_holder(&options);
    pid_t waiter = checked_fork();
    if (waiter == 0) {
        struct hold_options patient = holding(WAIT_DEFAULT_MS);
        patient.wanted = not_wanted;
        patient.waiting = on_waiting;
        struct hold *hold = NULL;
        struct pending pending = {0};
        int signal = 0;
        _exit(try_hold(&patient, &hold, &pending, &signal) == RESULT_ABSENT ? 0 : 1);
    }
    wait_until(signed_by("waiting"));
    sign("release", "");
    assert_int_equal(exit_status_of(waiter), 0);
    assert_int_equal(exit_status_of(holder), 0);
    assert_int_equal(journals(), 1);
}

static void test_signal_ends_the_wait(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    pid_t holder = fork_holder(&options);
    pid_t waiter = checked_fork();
    if (waiter == 0) {
        struct hold_options patient = holding(WAIT_DEFAULT_MS);
        struct hold *hold = NULL;
        struct pending pending = {0};
        int signal = 0;
        enum result r = try_hold(&patient, &hold, &pending, &signal);
        _exit(r == RESULT_INTERRUPTED && signal == SIGINT ? 0 : 1);
    }
    wait_until(journals() == 2);
    int64_t sent = boot_ms();
    kill(waiter, SIGINT);
    assert_int_equal(exit_status_of(waiter), 0);
    assert_true(boot_ms() - sent < 1000);
    assert_int_equal(journals(), 1);
    sign("release", "");
    assert_int_equal(exit_status_of(holder), 0);
}

/* ---- crowds ---- */

#define CROWD 100

static void test_a_hundred_start_at_once(void **state)
{
    (void)state;
    pid_t pids[CROWD];
    for (int i = 0; i < CROWD; i++) {
        pids[i] = checked_fork();
        if (pids[i] != 0)
            continue;
        struct hold_options options = holding(WAIT_NONE);
        struct hold *hold = NULL;
        struct pending pending = {0};
        int signal = 0;
        while (!signed_by("start"))
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        enum result r = try_hold(&options, &hold, &pending, &signal);
        if (r != RESULT_OK)
            _exit(r == RESULT_HELD ? 3 : 50 + (int)r);
        hold_until(hold, "release");
        struct hold_result result = {0};
        _exit(end_as(hold, ATTEMPT_PASSED, &result) == RESULT_OK ? 0 : 99);
    }
    int64_t started = boot_ms();
    sign("start", "");
    int held = 0, status;
    for (int i = 0; i < CROWD - 1; i++) {
        assert_true(waitpid(-1, &status, 0) > 0);
        assert_int_equal(WEXITSTATUS(status), 3);
        held += WEXITSTATUS(status) == 3;
    }
    print_message("%d refused in %lld ms\n", held, (long long)(boot_ms() - started));
    sign("release", "");
    assert_true(waitpid(-1, &status, 0) > 0);
    assert_int_equal(status, 0);
    assert_int_equal(journals(), 1);
}

static void on_event(void *context, const struct journal_event *event)
{
    (void)context;
    if (event->kind == JOURNAL_FROZEN)
        sign("frozen", "");
}

/* Those who wait do not keep the owner from renewing; then each gets its turn, one after the other. */
static void test_waiters_do_not_starve_the_owner(void **state)
{
    (void)state;
    enum { WAITERS = 40 };
    struct hold_options options = holding(WAIT_NONE);
    options.tap = on_event;
    pid_t holder = fork_holder(&options);
    for (int i = 0; i < WAITERS; i++) {
        if (checked_fork() != 0)
            continue;
        struct hold_options patient = holding(60000);
        struct hold *mine = hold_well(&patient);
        struct hold_result result = {0};
        _exit(end_as(mine, ATTEMPT_PASSED, &result) == RESULT_OK ? 0 : 99);
    }
    wait_until(journals() == WAITERS + 1);
    int64_t until = boot_ms() + 2 * TTL_MS;
    while (boot_ms() < until && !signed_by("frozen"))
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    assert_false(signed_by("frozen"));
    int64_t released = boot_ms();
    sign("release", "");
    assert_int_equal(exit_status_of(holder), 0);
    for (int i = 0, status; i < WAITERS; i++) {
        assert_true(waitpid(-1, &status, 0) > 0);
        assert_int_equal(status, 0);
    }
    print_message("%d waiters had their turn in %lld ms\n", WAITERS, (long long)(boot_ms() - released));
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "inside") == 0)
        return inside_main();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_begins_and_ends, state_begin, state_end),
        cmocka_unit_test_setup_teardown(
            test_nested_work_bears_the_marks_of_all_levels, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_bind_later, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_bad_terms, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_signal_cancels, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_work_is_dead_before_settlement, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_work_that_cannot_be_ended_cancels, state_begin, state_end),
#ifdef TENURE_FAILPOINTS
        cmocka_unit_test_setup_teardown(test_an_unknown_settlement_is_given_up, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_a_lost_answer_is_asked_for, state_begin, state_end),
#endif
        cmocka_unit_test_setup_teardown(test_held_leaves_nothing_behind, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_dead_owner_costs_no_time, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_taken_over_while_stopped, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_wakes_when_the_holder_ends, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_wait_is_bounded, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_wait_ends_when_not_wanted, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_signal_ends_the_wait, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_a_hundred_start_at_once, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_waiters_do_not_starve_the_owner, state_begin, state_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
