/*
 * The supervisor with real processes and a store that answers as told. Leases of two seconds: renewed every
 * 0.6 s, own deadline 1.5 s after a confirmation was sent.
 */
#include "tests/unit/supervisor/processes.h"

#include <signal.h>

#include "journal/journal.h"
#include "supervisor/supervisor-private.h"
#include "tests/unit/supervisor/fake_store.h"

#define TTL_MS       INT64_C(2000)
#define HEARTBEAT_MS INT64_C(600)

struct fixture {
    struct folder folder;
    struct machine machine;
    struct executor executor;
    struct journal *journal;
    struct supervisor *supervisor;
    struct credential credential;
    struct store_options store;
    int kinds[JOURNAL_KIND_MAX]; /* how many of each the journal was told */
    char *last_text[JOURNAL_KIND_MAX];
    int64_t begun_boot_ms;
};

static void tap(void *context, const struct journal_event *event)
{
    struct fixture *f = context;
    f->kinds[event->kind]++;
    free(f->last_text[event->kind]);
    f->last_text[event->kind] = mem_string(event->text);
}

struct setting {
    int64_t patience_ms, grace_ms;
    enum lapse_policy on_lapse;
};

static void begin_with(struct fixture *f, struct setting setting)
{
    *f = (struct fixture){0};
    folder_make(&f->folder);
    assert_int_equal(machine_read(&f->machine, NULL), RESULT_OK);
    assert_int_equal(executor_self(&f->machine, &f->executor, NULL), RESULT_OK);
    struct journal_options journal = {
        .root = f->folder.path, .clock = clock_system(), .executor = &f->executor};
    assert_int_equal(journal_create(&journal, &f->journal, NULL), RESULT_OK);
    journal_set_tap(f->journal, tap, f);
    f->begun_boot_ms = boot_ms();
    struct supervisor_options options = {
        .clock = clock_system(),
        .spawner = spawner_system(),
        .journal = f->journal,
        .store = &f->store,
        .open_store = fake_open,
        .credential = &f->credential,
        .terms = {.ttl_ms = TTL_MS, .heartbeat_ms = HEARTBEAT_MS},
        .sent_boot_ms = f->begun_boot_ms,
        .on_lapse = setting.on_lapse,
        .lapse_patience_ms = setting.patience_ms,
        .grace_ms = setting.grace_ms,
    };
    assert_int_equal(supervisor_start(&options, &f->supervisor, NULL), RESULT_OK);
}

static void begin(struct fixture *f)
{
    begin_with(f, (struct setting){.patience_ms = 60000, .grace_ms = 5000});
}

static void end(struct fixture *f)
{
    supervisor_free(f->supervisor);
    journal_close(f->journal);
    folder_done(&f->folder);
    for (int i = 0; i < JOURNAL_KIND_MAX; i++)
        free(f->last_text[i]);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody was left behind */
}

/* A job that runs `sh -c line` in the fixture's folder. */
static enum result start(struct fixture *f, const char *name, const char *line, struct job_request extra)
{
    int directory_fd = open(f->folder.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct job_request request = extra;
    request.name = name;
    request.argv = (const char *const[]){"sh", "-c", line, NULL};
    request.environment = ENVIRONMENT;
    request.directory_fd = directory_fd;
    _cleanup_(error_done) struct error err = {0};
    enum result r = supervisor_spawn(f->supervisor, &request, &err);
    if (r != RESULT_OK && r != RESULT_BUSY && r != RESULT_INTERRUPTED)
        fail_msg("%s", err.message);
    close(directory_fd);
    return r;
}

static void start_well(struct fixture *f, const char *line, struct job_request extra)
{
    assert_int_equal(start(f, "job", line, extra), RESULT_OK);
}

static struct supervisor_event next(struct fixture *f)
{
    struct supervisor_event event = {0};
    _cleanup_(error_done) struct error err = {0};
    if (supervisor_next(f->supervisor, &event, &err) != RESULT_OK)
        fail_msg("%s", err.message);
    return event;
}

/* The next event of a kind; others are passed over, but an idle supervisor will have none. */
static struct job_outcome next_of(struct fixture *f, enum supervisor_event_kind kind)
{
    for (;;) {
        struct supervisor_event event = next(f);
        if (event.kind == kind)
            return event.outcome;
        if (event.kind == SUPERVISOR_IDLE)
            fail_msg("no event of kind %d came", (int)kind);
        job_outcome_done(&event.outcome);
    }
}

static void assert_verdict(const struct job_outcome *outcome, enum job_verdict verdict)
{
    if (outcome->verdict != verdict)
        fail_msg(
            "%s, not %s: %s", job_verdict_name(outcome->verdict), job_verdict_name(verdict), outcome->text);
}

static bool exists(const struct fixture *f, const char *name)
{
    _cleanup_(mem_free) char *path = mem_format("%s/%s", f->folder.path, name);
    return access(path, F_OK) == 0;
}

static pid_t pid_in(const struct fixture *f, const char *name)
{
    _cleanup_(mem_free) char *path = mem_format("%s/%s", f->folder.path, name);
    _cleanup_(text_done) struct text text = {0};
    wait_until((text_clear(&text), file_read(AT_FDCWD, path, false, 100, &text, NULL) == RESULT_OK &&
                                       strchr(text.bytes != NULL ? text.bytes : "", '\n') != NULL));
    return (pid_t)atoi(text.bytes);
}

static bool is_alive(pid_t pid)
{
    return kill(pid, 0) == 0;
}

static int set_up(void **state)
{
    (void)state;
    unsetenv("TENURE_FAILPOINT");
    fake_reset();
    return 0;
}

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
    start_well(&f, "trap 'exit 0' TERM; while :; do sleep 0.05; done",
        (struct job_request){.timeout_ms = 200, .captured = true});
    outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_verdict(&outcome, JOB_TIMED_OUT);
    assert_int_equal(outcome.exit_code, 0);
    job_outcome_done(&outcome);

    /* TERM is ignored: KILL after the grace */
    start_well(&f, "trap '' TERM; while :; do sleep 0.05; done",
        (struct job_request){.timeout_ms = 200, .captured = true});
    outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_verdict(&outcome, JOB_TIMED_OUT);
    assert_int_equal(outcome.signal, SIGKILL);
    job_outcome_done(&outcome);

    /* what it had started ends with it, as it was asked to: that is no news */
    start_well(&f, "setsid sleep 600 & sleep 600", (struct job_request){.timeout_ms = 200, .captured = true});
    outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_verdict(&outcome, JOB_TIMED_OUT);
    assert_int_equal(outcome.leftovers, 1);
    assert_null(strstr(outcome.text, "outlived"));
    job_outcome_done(&outcome);

    start_well(&f, "for i in 1 2 3; do echo $i; sleep 0.3; done; sleep 600",
        (struct job_request){.quiet_ms = 600, .captured = true});
    outcome = next_of(&f, SUPERVISOR_JOB_FINISHED);
    assert_verdict(&outcome, JOB_QUIET);
    assert_true(outcome.duration_ms >= 1200);
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

/* ---- the lease ---- */

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

/* ---- signals ---- */

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

/* ---- programs run for their output ---- */

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
        cmocka_unit_test_setup(test_ways_to_end, set_up),
        cmocka_unit_test_setup(test_judged_by_its_caller, set_up),
        cmocka_unit_test_setup(test_not_started, set_up),
        cmocka_unit_test_setup(test_time_outs, set_up),
        cmocka_unit_test_setup(test_stands_still, set_up),
        cmocka_unit_test_setup(test_leftovers_are_ended_and_named, set_up),
        cmocka_unit_test_setup(test_two_jobs_keep_their_own, set_up),
        cmocka_unit_test_setup(test_end_work_leaves_nothing, set_up),
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
        cmocka_unit_test_setup(test_first_signal_lets_them_end, set_up),
        cmocka_unit_test_setup(test_second_signal_kills, set_up),
        cmocka_unit_test_setup(test_ignored_stays_ignored, set_up),
        cmocka_unit_test_setup(test_longer_asleep_than_the_lease, set_up),
        cmocka_unit_test_setup(test_stopped_from_the_terminal, set_up),
        cmocka_unit_test_setup(test_a_job_that_does_not_go_is_given_up, set_up),
        cmocka_unit_test_setup(test_runner, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
