/* Real process trees: frozen, thawed, ended, and nobody forgotten. */
#include "tests/unit/supervisor/processes.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/text.h"
#include "supervisor/containment.h"
#include "supervisor/proc-private.h"

#if defined(__has_feature) && !defined(__SANITIZE_THREAD__)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1 /* as gcc says it */
#endif
#endif

/* ---- helpers ---- */

/* What processes of a test tell each other. */
#define BUSY 1000

struct board {
    _Atomic pid_t first, second, third;
    _Atomic int count, go;
    _Atomic unsigned turns[BUSY];
};
static struct board *board;

static struct containment *open_well(void)
{
    struct containment *containment = NULL;
    _cleanup_(error_done) struct error err = {0};
    if (containment_open(clock_system(), &containment, &err) != RESULT_OK)
        fail_msg("%s", err.message);
    return containment;
}

static pid_t start(struct containment *containment, const char *line)
{
    struct process process = spawn_well(SHELL(line));
    containment_add(containment, process.pid);
    process_close(&process);
    return process.pid;
}

/* A producer that is a function of this program. It leads a session, as spawned ones do. */
static pid_t start_function(struct containment *containment, void (*function)(void))
{
    pid_t pid = checked_fork();
    if (pid == 0) {
        setsid();
        function();
        _exit(0);
    }
    containment_add(containment, pid);
    wait_until(getpgid(pid) == pid);
    return pid;
}

static _noreturn_ void spin(void)
{
    alarm(60); /* should the test fail, it does not spin for ever */
    for (volatile unsigned turn = 0;; turn++)
        ;
}

struct census {
    size_t living, running;
};

static void census_visit(void *context, pid_t parent _unused_, pid_t child)
{
    struct census *census = context;
    struct proc_stat stat;
    if (!proc_stat_read(child, &stat))
        return;
    if (!proc_stat_is_dead(&stat)) {
        census->living++;
        census->running += !proc_is_stopped(child, &stat);
    }
    proc_each_child(child, stat.threads, census_visit, census);
}

static struct census census_take(void)
{
    struct census census = {0};
    proc_each_child(getpid(), INT64_MAX, census_visit, &census);
    return census;
}

static char state_of(pid_t pid)
{
    struct proc_stat stat;
    return proc_stat_read(pid, &stat) ? stat.state : '-';
}

/* How often a word is among the names of what lives. */
static size_t survivors_named(struct containment *containment, const char *word)
{
    _cleanup_(text_done) struct text found = {0};
    size_t count = 0;
    containment_name_survivors(containment, &found);
    for (const char *at = found.bytes; at && (at = strstr(at, word)); at += strlen(word))
        count++;
    return count;
}

static int64_t freeze(struct containment *containment, struct containment_report *report)
{
    int64_t begin_ms = boot_ms();
    containment_freeze(containment, begin_ms + BOUND_MS, report);
    return boot_ms() - begin_ms;
}

static void reap_all(struct containment *containment)
{
    pid_t pid;
    int status;
    while (containment_reap(containment, &pid, &status))
        continue;
}

static void kill_and_reap(struct containment *containment)
{
    struct containment_report report = {0};
    containment_signal(containment, SIGKILL, &report);
    containment_report_done(&report);
    wait_until((reap_all(containment), containment_is_empty(containment)));
    containment_close(containment);
}

/* After each test, whether it failed or not. */
static int end_everything(void **state _unused_)
{
    kill_and_reap(open_well());
    memset(board, 0, sizeof(*board));
    return 0;
}

/* Nothing may run at any of many looks: one that is only slow to stop would be seen. */
static void assert_stands_still(void)
{
    for (int look = 0; look < 20; look++)
        assert_int_equal(census_take().running, 0);
}

/* ---- freezing ---- */

/* Free of their parent, whose death must not be theirs before they are killed themselves; the alarm ends them
 * should the test fail. They wait for each other: a thousand that spin from their birth leave no time for the
 * next birth. */
static void busy_tree(void)
{
    for (int i = 0; i < BUSY; i++)
        if (checked_fork_free() == 0) {
            alarm(60);
            board->count++;
            while (board->go == 0)
                nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
            while (board->go == 1)
                board->turns[i]++;
            board->turns[i]++;
            pause(); /* one turn after the thaw is enough to be seen */
        }
    for (;;)
        pause();
}

/* How many have turned since `before` was taken, which is brought up to date. */
static int busy_turned(unsigned before[BUSY])
{
    int turned = 0;
    for (int i = 0; i < BUSY; i++) {
        unsigned now = board->turns[i];
        turned += now != before[i];
        before[i] = now;
    }
    return turned;
}

static void test_a_thousand_busy_processes_freeze_in_time(void **state _unused_)
{
    static unsigned turns[BUSY], since_thaw[BUSY];
    struct containment *containment = open_well();
    struct containment_report report = {0};
    start_function(containment, busy_tree);
    wait_until(board->count == BUSY);
    board->go = 1;
    wait_until(busy_turned((unsigned[BUSY]){0}) > BUSY / 4); /* the others wait for a processor */
    int64_t took_ms = freeze(containment, &report);
    print_message("froze %zu processes in %d ms\n", report.frozen, (int)took_ms);
    assert_int_equal(report.frozen, BUSY + 1);
    assert_int_equal(report.killed, 0);
    assert_null(report.named.bytes);
    assert_true(took_ms < 500);
    assert_true(containment_is_frozen(containment));
    busy_turned(turns);
    assert_stands_still();
    assert_int_equal(busy_turned(turns), 0);
    memcpy(since_thaw, turns, sizeof(turns));
    board->go = 2;
    containment_thaw(containment);
    assert_false(containment_is_frozen(containment));
    wait_until((memcpy(turns, since_thaw, sizeof(turns)), busy_turned(turns) == BUSY));
    containment_close(containment);
}

#define STORM 200

/* Processes that do nothing but have short children, some of which leave an orphan behind: not all, lest the
 * machine runs out of numbers before somebody reaps. */
static void storm_member(int number)
{
    alarm(60);
    board->count++;
    while (board->go == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (;;) {
        pid_t child = checked_fork_free();
        if (child == 0 && number % 20 == 0 && checked_fork_free() == 0)
            setsid();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
    }
}

static void fork_storm(void)
{
    for (int i = 0; i < STORM; i++)
        if (checked_fork_free() == 0)
            storm_member(i);
    for (;;)
        pause();
}

static struct containment *start_storm(void)
{
    struct containment *containment = open_well();
    start_function(containment, fork_storm);
    wait_until(board->count == STORM);
    board->go = 1;
    wait_until((reap_all(containment), census_take().living > STORM + 1));
    return containment;
}

static void test_a_storm_of_forks_is_frozen(void **state _unused_)
{
    struct containment *containment = start_storm();
    for (int round = 0; round < 5; round++) {
        struct containment_report report = {0};
        int64_t took_ms = freeze(containment, &report);
        print_message("froze a storm of %zu in %d ms\n", report.frozen, (int)took_ms);
        assert_int_equal(report.killed, 0);
        assert_true(report.frozen > STORM);
        reap_all(containment);
        assert_stands_still();
        containment_thaw(containment);
        wait_until((reap_all(containment), census_take().running > 0));
        containment_report_done(&report);
    }
    containment_close(containment);
}

static void test_escaped_orphans_are_frozen(void **state _unused_)
{
    struct containment *containment = open_well();
    struct containment_report report = {0};
    start(containment,
        "for i in 1 2 3 4 5 6 7 8 9 10; do"
        " (setsid sh -c '(trap \"\" ALRM; setsid sleep 600) & exec sleep 600' &); done; exec sleep 600");
    wait_until(census_take().living == 21 && survivors_named(containment, "(sleep)") == 21);
    freeze(containment, &report);
    assert_int_equal(report.frozen, 21);
    assert_stands_still();
    containment_thaw(containment);
    assert_int_equal(census_take().running, 21);
    containment_report_done(&report);
    containment_close(containment);
}

/* One in the producer's group, which is stopped at once, and one outside of it. */
static void stopped_jobs(void)
{
    if (checked_fork_free() == 0) {
        board->first = getpid();
        raise(SIGSTOP);
        board->count++;
        for (;;)
            pause();
    }
    if (checked_fork_free() == 0) {
        setsid();
        board->second = getpid();
        raise(SIGSTOP);
        board->count++;
        for (;;)
            pause();
    }
    if (checked_fork_free() == 0) {
        board->third = getpid();
        spin();
    }
    for (;;)
        pause();
}

static void test_what_was_stopped_before_stays_stopped(void **state _unused_)
{
    struct containment *containment = open_well();
    pid_t leader = start_function(containment, stopped_jobs);
    wait_until(board->first && state_of(board->first) == 'T');
    wait_until(board->second && state_of(board->second) == 'T');
    wait_until(board->third && state_of(board->third) == 'R');
    assert_true(containment_is_stopped(board->first));
    assert_false(containment_is_stopped(board->third));
    for (int round = 0; round < 3; round++) {
        struct containment_report report = {0};
        freeze(containment, &report);
        assert_int_equal(report.frozen, 2);
        assert_stands_still();
        containment_thaw(containment);
        wait_until(state_of(board->third) == 'R' && state_of(leader) == 'S');
        assert_int_equal(state_of(board->first), 'T');
        assert_int_equal(state_of(board->second), 'T');
        containment_report_done(&report);
    }
    /* They were not harmed: whoever stopped them can continue them. */
    assert_int_equal(board->count, 0);
    kill(board->first, SIGCONT);
    kill(board->second, SIGCONT);
    wait_until(board->count == 2);
    containment_close(containment);
}

static void vfork_parent(void)
{
    pid_t child = vfork();
    if (child == 0) {
        board->first = getpid();
        while (!board->go)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        _exit(0);
    }
    board->count = 1;
    for (;;)
        pause();
}

/* The parent cannot stop while its child is stopped; it cannot run either, and must not be killed for it. */
static void test_the_parent_of_a_vfork_counts_as_stopped(void **state _unused_)
{
#ifdef __SANITIZE_THREAD__
    skip(); /* the sanitizer makes a fork of it */
#endif
    struct containment *containment = open_well();
    struct containment_report report = {0};
    pid_t parent = start_function(containment, vfork_parent);
    wait_until(board->first != 0);
    assert_true(freeze(containment, &report) < 5000);
    assert_int_equal(report.frozen, 2);
    assert_int_equal(report.killed, 0);
    board->go = 1;
    assert_stands_still();
    assert_int_equal(board->count, 0);
    containment_thaw(containment);
    wait_until(board->count == 1 && state_of(parent) == 'S');
    containment_report_done(&report);
    containment_close(containment);
}

static void *thread_spin(void *nothing)
{
    spin();
    return nothing;
}

static void headless_threads(void)
{
    pthread_t thread;
    for (int i = 0; i < 4; i++)
        pthread_create(&thread, NULL, thread_spin, NULL);
    pthread_exit(NULL);
}

/* Its leading thread has ended: by its stat it is a zombie, and yet it runs. */
static void test_threads_without_their_leader_are_frozen(void **state _unused_)
{
    struct containment *containment = open_well();
    struct containment_report report = {0};
    pid_t pid = start_function(containment, headless_threads);
    wait_until(state_of(pid) == 'Z');
    assert_int_equal(census_take().running, 1);
    freeze(containment, &report);
    assert_int_equal(report.frozen, 1);
    assert_stands_still();
    containment_thaw(containment);
    wait_until(census_take().running == 1);
    containment_report_done(&report);
    containment_close(containment);
}

/* A clock by which a quarter of a second passes at every look: the deadline is over at the first pass. */
static int64_t hasty_boot_ms(const struct clock *clock _unused_)
{
    static int64_t now_ms;
    return now_ms += 250;
}

static void test_what_cannot_be_frozen_in_time_is_killed_and_named(void **state _unused_)
{
    const struct clock hasty = {.boot_ms = hasty_boot_ms};
    struct containment *containment = NULL;
    struct containment_report report = {0};
    assert_int_equal(containment_open(&hasty, &containment, NULL), RESULT_OK);
    pid_t bystander = start(containment, "kill -STOP $$"); /* stands still already */
    wait_until(state_of(bystander) == 'T');
    struct process victim =
        spawn_well(SHELL("while :; do :; done")); /* in no group that is stopped at once */
    containment_freeze(containment, 1, &report);
    _cleanup_(mem_free) char *name = mem_format("pid %d (sh)", victim.pid);
    assert_int_equal(report.killed, 1);
    assert_string_equal(report.named.bytes, name);
    wait_until(state_of(victim.pid) == 'Z');
    assert_int_equal(state_of(bystander), 'T');
    process_close(&victim);
    containment_report_done(&report);
    containment_close(containment);
}

/* ---- signals ---- */

static void count_terms(int signal _unused_)
{
    board->count++;
}

static void term_counters(void)
{
    signal(SIGTERM, count_terms);
    board->first = board->second = 0;
    if (checked_fork_free() == 0) {
        if (checked_fork_free() == 0)
            setsid();
    }
    board->go++;
    for (;;)
        pause();
}

static void test_each_process_is_signalled_once(void **state _unused_)
{
    struct containment *containment = open_well();
    struct containment_report report = {0};
    start_function(containment, term_counters);
    wait_until(board->go == 3);
    containment_signal(containment, SIGTERM, &report);
    wait_until(board->count == 3);
    assert_int_equal(report.killed, 0);
    containment_signal(containment, SIGTERM, &report);
    wait_until(board->count == 6);
    containment_report_done(&report);
    containment_close(containment);
}

static void test_a_tree_that_ignores_term_is_killed_and_named(void **state _unused_)
{
    struct containment *containment = open_well();
    struct containment_report report = {0};
    start(containment, "trap '' TERM; sleep 601 & setsid sleep 602 & (sleep 603 & exec sleep 604) & wait");
    wait_until(survivors_named(containment, "(sleep)") == 4);
    containment_signal(containment, SIGTERM, &report);
    assert_int_equal(survivors_named(containment, "(sleep)"), 4);
    containment_signal(containment, SIGKILL, &report);
    assert_int_equal(report.killed, 5);
    assert_non_null(strstr(report.named.bytes, "(sh)"));
    assert_non_null(strstr(report.named.bytes, "(sleep)"));
    wait_until((reap_all(containment), containment_is_empty(containment)));
    assert_int_equal(survivors_named(containment, "pid"), 0);
    containment_report_done(&report);
    containment_close(containment);
}

static void assert_storm_is_killed(struct containment *containment)
{
    struct containment_report report = {0};
    containment_signal(containment, SIGKILL, &report);
    assert_true(report.killed > STORM);
    assert_non_null(strstr(report.named.bytes, " more"));
    wait_until((reap_all(containment), containment_is_empty(containment)));
    containment_report_done(&report);
    containment_close(containment);
}

static void test_a_frozen_storm_can_be_killed(void **state _unused_)
{
    struct containment *containment = start_storm();
    struct containment_report report = {0};
    freeze(containment, &report);
    containment_report_done(&report);
    assert_storm_is_killed(containment);
}

static void test_a_running_storm_can_be_killed(void **state _unused_)
{
    assert_storm_is_killed(start_storm());
}

/* ---- reaping ---- */

#define ORPHANS 2000

static void orphans_make(void)
{
    for (int i = 0; i < ORPHANS; i++) {
        pid_t child = checked_fork_free();
        if (child == 0) {
            if (checked_fork_free() == 0)
                _exit(7);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    _exit(42);
}

static void test_no_orphan_stays_a_zombie_and_no_status_is_mixed_up(void **state _unused_)
{
    struct containment *containment = open_well();
    pid_t leader = start_function(containment, orphans_make), pid;
    int status, orphans = 0, leaders = 0;
    for (int64_t end_ms = boot_ms() + BOUND_MS; !containment_is_empty(containment) && boot_ms() < end_ms;)
        while (containment_reap(containment, &pid, &status)) {
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), pid == leader ? 42 : 7);
            leaders += pid == leader;
            orphans += pid != leader;
        }
    assert_int_equal(leaders, 1);
    assert_int_equal(orphans, ORPHANS);
    assert_true(containment_is_empty(containment));
    containment_close(containment);
}

static void test_a_signal_is_a_status_of_its_own(void **state _unused_)
{
    struct containment *containment = open_well();
    pid_t leader = start(containment, "kill -SEGV $$"), pid;
    int status;
    wait_until(containment_reap(containment, &pid, &status));
    assert_int_equal(pid, leader);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    assert_true(containment_is_empty(containment));
    containment_close(containment);
}

/* ---- opening ---- */

static void test_a_proc_of_another_namespace_is_refused(void **state _unused_)
{
    int status;
    pid_t outer = checked_fork();
    if (outer == 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
            _exit(77);
        pid_t inner = checked_fork_free(); /* whose parent is not to be seen */
        if (inner == 0) {
            struct containment *containment;
            _cleanup_(error_done) struct error err = {0};
            enum result r = containment_open(clock_system(), &containment, &err);
            _exit(r == RESULT_SYSTEM && strstr(err.message, "another pid namespace") ? 0 : 1);
        }
        waitpid(inner, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
    }
    assert_int_equal(waitpid(outer, &status, 0), outer);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* user namespaces are not permitted here */
    assert_int_equal(status, 0);
}

#define test(function) cmocka_unit_test_teardown(function, end_everything)

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return 1;
    const struct CMUnitTest tests[] = {
        test(test_a_thousand_busy_processes_freeze_in_time),
        test(test_a_storm_of_forks_is_frozen),
        test(test_escaped_orphans_are_frozen),
        test(test_what_was_stopped_before_stays_stopped),
        test(test_the_parent_of_a_vfork_counts_as_stopped),
        test(test_threads_without_their_leader_are_frozen),
        test(test_what_cannot_be_frozen_in_time_is_killed_and_named),
        test(test_each_process_is_signalled_once),
        test(test_a_tree_that_ignores_term_is_killed_and_named),
        test(test_a_frozen_storm_can_be_killed),
        test(test_a_running_storm_can_be_killed),
        test(test_no_orphan_stays_a_zombie_and_no_status_is_mixed_up),
        test(test_a_signal_is_a_status_of_its_own),
        test(test_a_proc_of_another_namespace_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
