/* What retired attempts left behind is ended, all of it and nothing else: real owners with real journals,
 * killed or stopped, their work escaped into sessions of its own, and a real store that remembers them. */
#include "tests/unit/supervisor/processes.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#include "journal/journal.h"
#include "supervisor/leftovers.h"
#include "supervisor/marks.h"
#include "supervisor/proc-private.h"

#define SUBJECT "command:widget"

/* ---- the scene: a folder with a store and journals, and what its processes tell each other ---- */

struct board {
    char attempt_id[UUID_TEXT_SIZE];
    _Atomic pid_t owner, work[8];
    _Atomic int ready;
};
static struct board *board;

struct scene {
    struct folder folder;
    char *url, *journals;
    struct machine machine;
    struct store *store;
    int ticks;
};

static struct store *store_open_well(const struct scene *scene)
{
    struct store_options options = {.url = scene->url, .clock = clock_system(), .machine = &scene->machine};
    struct store *store = NULL;
    _cleanup_(error_done) struct error err = {0};
    if (store_open(&options, STORE_WRITE, &store, &err) != RESULT_OK)
        fail_msg("%s", err.message);
    return store;
}

static void scene_open(struct scene *scene)
{
    memset(board, 0, sizeof(*board));
    *scene = (struct scene){0};
    folder_make(&scene->folder);
    scene->url = mem_format("sqlite:%s/store", scene->folder.path);
    scene->journals = mem_format("%s/journals", scene->folder.path);
    assert_int_equal(machine_read(&scene->machine, NULL), RESULT_OK);
}

static void scene_done(struct scene *scene)
{
    store_close(scene->store);
    folder_done(&scene->folder);
    free(scene->url);
    free(scene->journals);
}

/* Starts `sleep 600`, or a line of shell, that bears the given marks. */
static pid_t start_marked(const char *attempts, const char *stores, const char *line)
{
    _cleanup_(mem_free) char *attempt = mem_format("TENURE_ATTEMPT=%s", attempts);
    _cleanup_(mem_free) char *store = mem_format("TENURE_STORE=%s", stores);
    struct spawn_request request = *SHELL(line);
    request.environment = (const char *const[]){"PATH=/usr/bin:/bin", attempt, store, NULL};
    struct process process = {.pidfd = -1};
    struct spawn_failure failure;
    if (spawn_program(spawner_system(), &request, &process, &failure, NULL) != RESULT_OK)
        return -1;
    process_close(&process);
    return process.pid;
}

/* ---- an owner: a process of its own that holds an attempt ---- */

enum owner_manner {
    OWNER_OBEYS,   /* exits 4 on SIGTERM */
    OWNER_IGNORES, /* SIGTERM does nothing */
};

struct owner_plan {
    enum owner_manner manner;
    const char *work;    /* a line of shell; NULL: none */
    pid_t pretended_pid; /* in its record; 0: its own */
    const char *subject;
};

static void exit_retired(int signal _unused_)
{
    _exit(4);
}

/* In the child, where a failed assertion must not run on in the test: so it only exits. */
static void owner_check(bool fine, int code)
{
    if (!fine)
        _exit(code);
}

static void owner_reserve(const struct scene *scene, const struct owner_plan *plan, struct store **ret_store)
{
    struct executor executor;
    struct journal *journal;
    struct reservation reservation;
    struct attempt attempt = {0}, holder = {0};
    struct store_options options = {.url = scene->url, .clock = clock_system(), .machine = &scene->machine};
    owner_check(executor_self(&scene->machine, &executor, NULL) == RESULT_OK, 90);
    if (plan->pretended_pid) {
        executor.pid = plan->pretended_pid;
        executor.start_ticks++; /* that one is older, if by less than a tick */
    }
    struct journal_options journal_options = {
        .root = scene->journals, .clock = clock_system(), .executor = &executor};
    owner_check(journal_create(&journal_options, &journal, NULL) == RESULT_OK, 91);
    owner_check(store_open(&options, STORE_WRITE, ret_store, NULL) == RESULT_OK, 92);
    reservation_init(&reservation, clock_system());
    reservation.kind = KIND_COMMAND;
    reservation.subjects = &plan->subject;
    reservation.subject_count = 1;
    reservation.executor = &executor;
    reservation.journal_handle = journal_handle(journal);
    reservation.journal_path = journal_path(journal);
    reservation.ttl_ms = 60000;
    owner_check(store_reserve(*ret_store, &reservation, &attempt, &holder, NULL) == RESULT_OK, 93);
    memcpy(board->attempt_id, attempt.id, sizeof(board->attempt_id));
}

static _noreturn_ void owner_main(const struct scene *scene, const struct owner_plan *plan)
{
    struct store *store = NULL;
    signal(SIGTERM, plan->manner == OWNER_OBEYS ? exit_retired : SIG_IGN);
    owner_reserve(scene, plan, &store);
    if (plan->work) {
        board->work[0] = start_marked(board->attempt_id, store_id(store), plan->work);
        owner_check(board->work[0] > 0, 94);
    }
    store_close(store);
    board->owner = getpid();
    board->ready = 1;
    for (;;)
        pause();
}

static pid_t owner_start(const struct scene *scene, const struct owner_plan *plan)
{
    pid_t pid = checked_fork();
    if (pid == 0)
        owner_main(scene, plan);
    wait_until(board->ready || waitpid(pid, NULL, WNOHANG) != 0);
    assert_int_equal(board->ready, 1);
    return pid;
}

static void owner_kill(pid_t owner)
{
    assert_int_equal(kill(owner, SIGKILL), 0);
    assert_int_equal(waitpid(owner, NULL, 0), owner);
}

/* Another run has retired the attempt; here it is us. */
static void retire(struct scene *scene)
{
    struct attempt attempt = {0};
    scene->store = store_open_well(scene);
    assert_int_equal(store_find(scene->store, board->attempt_id, &attempt, NULL), RESULT_OK);
    struct retirement retirement = {
        .attempt_id = attempt.id,
        .rev = attempt.rev,
        .owner_gone = true,
        .reason_code = "owner-gone",
    };
    assert_int_equal(store_retire(scene->store, &retirement, NULL), RESULT_OK);
    attempt_done(&attempt);
}

static size_t rows_left(const struct scene *scene)
{
    struct leftover_list list = {0};
    assert_int_equal(store_leftovers(scene->store, &list, NULL), RESULT_OK);
    size_t count = list.count;
    leftover_list_done(&list);
    return count;
}

static void count_tick(void *context)
{
    struct scene *scene = context;
    scene->ticks++;
}

static void end_leftovers(struct scene *scene, const char *subject, struct leftovers_report *report)
{
    const struct leftovers_options options = {
        .store = scene->store,
        .machine = &scene->machine,
        .clock = clock_system(),
        .subjects = &subject,
        .subject_count = 1,
        .grace_ms = 300,
        .tick = count_tick,
        .context = scene,
    };
    _cleanup_(error_done) struct error err = {0};
    if (leftovers_end(&options, report, &err) != RESULT_OK)
        fail_msg("%s", err.message);
}

static bool is_living(pid_t pid)
{
    struct proc_stat stat;
    return proc_stat_read(pid, &stat) && !proc_stat_is_dead(&stat);
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- marks ---- */

#define ID_1 "00112233445566778899aabbccddeeff"
#define ID_2 "ffeeddccbbaa99887766554433221100"

static void test_marks_are_appended_level_by_level(void **state _unused_)
{
    static const struct {
        const char *attempts, *stores, *wanted_attempts, *wanted_stores;
    } CASES[] = {
        {NULL, NULL, "b", ID_2},
        {"", "", "b", ID_2},
        {"a", ID_1, "a:b", ID_1 ":" ID_2},
        {"a:a", ID_1 ":" ID_2, "a:a:b", ID_1 ":" ID_2 ":" ID_2},
        {NULL, "postgresql://me:secret@host/work", "b", ID_2}, /* an address is not handed on */
        {"a", "sqlite:/store", "b", ID_2},
        {"a:c", ID_1, "b", ID_2}, /* no pairs: whose is what? */
        {NULL, ID_1, "b", ID_2},
    };
    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        _cleanup_(mem_free) char *attempts = NULL, *stores = NULL;
        mark_append(CASES[i].attempts, CASES[i].stores, "b", ID_2, &attempts, &stores);
        assert_string_equal(attempts, CASES[i].wanted_attempts);
        assert_string_equal(stores, CASES[i].wanted_stores);
    }
}

static void test_an_address_is_no_mark(void **state _unused_)
{
    assert_true(mark_stores_are_ids(ID_1));
    assert_true(mark_stores_are_ids(ID_1 ":" ID_2));
    assert_false(mark_stores_are_ids(""));
    assert_false(mark_stores_are_ids("sqlite:" ID_1));
    assert_false(mark_stores_are_ids(ID_1 ":"));
    assert_false(mark_stores_are_ids(ID_1 ":" ID_2 "/x"));
    assert_false(mark_stores_are_ids("cafe"));
}

static void test_inside_is_about_the_store(void **state _unused_)
{
    unsetenv("TENURE_ATTEMPT");
    unsetenv("TENURE_STORE");
    assert_false(mark_is_inside("s1"));
    setenv("TENURE_ATTEMPT", "a:b", 1);
    setenv("TENURE_STORE", "s1:s2", 1);
    assert_true(mark_is_inside("s1"));
    assert_true(mark_is_inside("s2"));
    assert_false(mark_is_inside("s"));
    assert_false(mark_is_inside("s1:s2"));
    unsetenv("TENURE_ATTEMPT");
    unsetenv("TENURE_STORE");
}

static void test_a_mark_is_a_pair(void **state _unused_)
{
    static const struct {
        const char *attempts, *stores;
        bool hit;
    } CASES[] = {
        {"attempt-x", "store-x", true},
        {"attempt-x", "store-y", false},
        {"attempt-xx", "store-x", false},
        {"attempt", "store-x", false},
        {"outer:attempt-x:inner", "store-1:store-x:store-2", true},
        {"outer:attempt-x", "store-x:store-2", false}, /* the pair is another one */
        {"outer:attempt-x", "store-x", true},          /* lists that were not made pair by pair */
        {"outer:attempt-x", "store-y", false},
        {"", "", false},
    };
    pid_t pids[ARRAY_SIZE(CASES)];
    size_t expected = 0;
    struct text named = {0};
    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        pids[i] = start_marked(CASES[i].attempts, CASES[i].stores, "exec sleep 600");
        assert_true(pids[i] > 0);
        expected += CASES[i].hit;
    }
    assert_int_equal(mark_kill("store-x", "attempt-x", SIGKILL, &named), expected);
    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        _cleanup_(mem_free) char *name = mem_format("pid %d (", pids[i]);
        if (CASES[i].hit)
            wait_until(!is_living(pids[i]));
        assert_int_equal(is_living(pids[i]), !CASES[i].hit);
        assert_int_equal(strstr(named.bytes, name) != NULL, CASES[i].hit);
        end_child(pids[i]);
    }
    assert_int_equal(mark_kill("store-x", "attempt-x", SIGKILL, NULL), 0);
    text_done(&named);
}

/* ---- dead owners ---- */

/* Two escapees in sessions of their own, one of which ignores every polite signal. */
#define ESCAPEES                                                                                             \
    "(setsid sh -c 'trap \"\" TERM HUP INT; sleep 601 & sleep 602; :' &); (setsid sleep 603 &); exec sleep " \
    "604"

static void test_the_work_of_a_dead_owner_is_ended_and_nothing_else(void **state _unused_)
{
    struct scene scene;
    struct leftovers_report report = {0};
    scene_open(&scene);
    pid_t owner = owner_start(&scene, &(struct owner_plan){.work = ESCAPEES, .subject = SUBJECT});
    owner_kill(owner);
    retire(&scene);
    pid_t other_store = start_marked(board->attempt_id, "another-store", "exec sleep 600");
    pid_t unmarked = start_marked("another-attempt", store_id(scene.store), "exec sleep 600");
    /* all five have got as far as they go */
    struct text all = {0};
    wait_until((text_clear(&all), mark_kill(store_id(scene.store), board->attempt_id, 0, &all) == 5 &&
                                      strstr(all.bytes, "setsid") == NULL));
    text_done(&all);
    end_leftovers(&scene, SUBJECT, &report);
    assert_int_equal(report.ended, 5);
    assert_false(report.blocked);
    assert_non_null(strstr(report.notes.bytes, "attempt T-")); /* by its handle */
    assert_null(strstr(report.notes.bytes, board->attempt_id));
    assert_non_null(strstr(report.notes.bytes, "(sleep)"));
    assert_int_equal(mark_kill(store_id(scene.store), board->attempt_id, 0, NULL), 0);
    assert_false(is_living(board->work[0]));
    assert_int_equal(rows_left(&scene), 0);
    assert_true(is_living(other_store));
    assert_true(is_living(unmarked));
    end_child(other_store);
    end_child(unmarked);
    leftovers_report_done(&report);
    scene_done(&scene);
}

static void test_work_that_forks_on_is_ended(void **state _unused_)
{
    struct scene scene;
    struct leftovers_report report = {0};
    scene_open(&scene);
    /* Each has two children in sessions of their own, down to a depth at which it ends by itself. */
    const char *const line = "export N=0 F='N=$((N + 1)); [ $N -gt 9 ] && exit; "
                             "setsid sh -c \"$F\" & setsid sh -c \"$F\" & sleep 600'; eval \"$F\"";
    pid_t owner = owner_start(&scene, &(struct owner_plan){.work = line, .subject = SUBJECT});
    owner_kill(owner);
    retire(&scene);
    end_leftovers(&scene, SUBJECT, &report);
    assert_true(report.ended >= 2);
    for (int look = 0; look < 100; look++)
        assert_int_equal(mark_kill(store_id(scene.store), board->attempt_id, 0, NULL), 0);
    assert_int_equal(rows_left(&scene), 0);
    leftovers_report_done(&report);
    scene_done(&scene);
}

static void test_nothing_left_is_nothing_said(void **state _unused_)
{
    struct scene scene;
    struct leftovers_report report = {0};
    scene_open(&scene);
    owner_kill(owner_start(&scene, &(struct owner_plan){.subject = SUBJECT}));
    retire(&scene);
    assert_int_equal(rows_left(&scene), 1);
    end_leftovers(&scene, SUBJECT, &report);
    assert_int_equal(rows_left(&scene), 0);
    assert_int_equal(report.ended, 0);
    assert_int_equal(report.notes.length, 0);
    leftovers_report_done(&report);
    scene_done(&scene);
}

/* The number of the dead owner is another process's now. */
static void test_a_number_that_was_used_again_is_not_hit(void **state _unused_)
{
    struct scene scene;
    struct leftovers_report report = {0};
    scene_open(&scene);
    struct process bystander = spawn_well(SHELL("exec sleep 600"));
    struct owner_plan plan = {.pretended_pid = bystander.pid, .subject = SUBJECT, .work = "exec sleep 600"};
    pid_t owner = owner_start(&scene, &plan);
    retire(&scene);
    /* Its lock is held, and yet it is not the process of that number: it is named, and blocks. */
    end_leftovers(&scene, SUBJECT, &report);
    assert_true(report.blocked);
    assert_non_null(strstr(report.named.bytes, "cannot be found"));
    assert_false(is_living(board->work[0]));
    assert_int_equal(rows_left(&scene), 1);
    leftovers_report_done(&report);
    owner_kill(owner);
    end_leftovers(&scene, SUBJECT, &report);
    assert_false(report.blocked);
    assert_int_equal(rows_left(&scene), 0);
    assert_false(process_is_gone(&bystander));
    assert_int_equal(process_signal(&bystander, SIGKILL, NULL), RESULT_OK);
    process_wait(&bystander);
    leftovers_report_done(&report);
    scene_done(&scene);
}

/* ---- living owners ---- */

static void test_a_stopped_owner_is_woken_and_leaves_by_itself(void **state _unused_)
{
    struct scene scene;
    struct leftovers_report report = {0};
    int status;
    scene_open(&scene);
    pid_t owner = owner_start(&scene, &(struct owner_plan){.work = "exec sleep 600", .subject = SUBJECT});
    kill(owner, SIGSTOP);
    retire(&scene);
    end_leftovers(&scene, SUBJECT, &report);
    assert_int_equal(waitpid(owner, &status, 0), owner);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 4);
    assert_int_equal(report.ended, 1);
    assert_false(is_living(board->work[0]));
    assert_int_equal(rows_left(&scene), 0);
    leftovers_report_done(&report);
    scene_done(&scene);
}

static void test_an_owner_that_ignores_it_is_killed_after_the_grace(void **state _unused_)
{
    struct scene scene;
    struct leftovers_report report = {0};
    int status;
    scene_open(&scene);
    pid_t owner = owner_start(
        &scene, &(struct owner_plan){.manner = OWNER_IGNORES, .work = "exec sleep 600", .subject = SUBJECT});
    retire(&scene);
    int64_t begin_ms = boot_ms();
    end_leftovers(&scene, SUBJECT, &report);
    assert_true(boot_ms() - begin_ms >= 300); /* the grace */
    assert_true(scene.ticks >= 3);
    assert_int_equal(waitpid(owner, &status, 0), owner);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_false(is_living(board->work[0]));
    assert_int_equal(rows_left(&scene), 0);
    leftovers_report_done(&report);
    scene_done(&scene);
}

#ifdef TENURE_MUTANTS
static void test_without_the_guard_the_work_lives_on(void **state _unused_)
{
    struct scene scene;
    struct leftovers_report report = {0};
    scene_open(&scene);
    owner_kill(owner_start(&scene, &(struct owner_plan){.work = "exec sleep 600", .subject = SUBJECT}));
    retire(&scene);
    setenv("TENURE_MUTANT", "leftovers", 1);
    end_leftovers(&scene, SUBJECT, &report);
    unsetenv("TENURE_MUTANT");
    assert_true(is_living(board->work[0]));
    assert_int_equal(rows_left(&scene), 1);
    end_leftovers(&scene, SUBJECT, &report);
    assert_false(is_living(board->work[0]));
    leftovers_report_done(&report);
    scene_done(&scene);
}
#endif

/* ---- kin: this program runs itself, as a process that bears the mark ---- */

/* argv: kin URL ATTEMPT. Exits 0 when all was as it must be, else with the number of what was not. */
static int kin_main(char **argv)
{
    struct machine machine;
    struct store *store = NULL;
    struct leftovers_report report = {0};
    const char *subject = SUBJECT, *other = "command:other";
    pid_t parent = getpid();
    owner_check(machine_read(&machine, NULL) == RESULT_OK, 80);
    pid_t nested = checked_fork(); /* the ancestor, which bears the mark too, waits */
    if (nested > 0) {
        int status;
        return waitpid(nested, &status, 0) == nested && WIFEXITED(status) ? WEXITSTATUS(status) : 81;
    }
    struct store_options options = {.url = argv[2], .clock = clock_system(), .machine = &machine};
    owner_check(store_open(&options, STORE_WRITE, &store, NULL) == RESULT_OK, 82);
    struct leftovers_options leftovers = {
        .store = store,
        .machine = &machine,
        .clock = clock_system(),
        .subjects = &other,
        .subject_count = 1,
        .grace_ms = 300,
    };
    owner_check(mark_is_inside(store_id(store)), 83);
    /* Only the sibling is hit; we live to tell. */
    owner_check(leftovers_end(&leftovers, &report, NULL) == RESULT_OK, 84);
    owner_check(report.ended == 1 && !report.blocked, 85);
    owner_check(strstr(report.notes.bytes, "part of that work") != NULL, 86);
    leftovers.subjects = &subject;
    owner_check(leftovers_end(&leftovers, &report, NULL) == RESULT_OK, 87);
    owner_check(report.blocked && strstr(report.named.bytes, "this run itself"), 88);
    owner_check(getppid() == parent, 89);
    _exit(0);
}

static void test_a_run_never_ends_itself_or_an_ancestor(void **state _unused_)
{
    struct scene scene;
    scene_open(&scene);
    pid_t owner = owner_start(&scene, &(struct owner_plan){.work = "exec sleep 600", .subject = SUBJECT});
    owner_kill(owner);
    retire(&scene);
    _cleanup_(mem_free) char *attempt = mem_format("TENURE_ATTEMPT=%s", board->attempt_id);
    _cleanup_(mem_free) char *store = mem_format("TENURE_STORE=%s", store_id(scene.store));
    struct spawn_request request = *SHELL("");
    char self[4096] = {0};
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    request.argv = (const char *const[]){self, "kin", scene.url, board->attempt_id, NULL};
    request.environment = (const char *const[]){"PATH=/usr/bin:/bin", attempt, store, NULL};
    struct process kin = spawn_well(&request);
    int status = process_wait(&kin);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_false(is_living(board->work[0]));
    assert_int_equal(rows_left(&scene), 1); /* for whoever can do it: now it can be done */
    struct leftovers_report report = {0};
    end_leftovers(&scene, SUBJECT, &report);
    assert_int_equal(rows_left(&scene), 0);
    leftovers_report_done(&report);
    scene_done(&scene);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "kin") == 0)
        return kin_main(argv);
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks_are_appended_level_by_level),
        cmocka_unit_test(test_an_address_is_no_mark),
        cmocka_unit_test(test_inside_is_about_the_store),
        cmocka_unit_test(test_a_mark_is_a_pair),
        cmocka_unit_test(test_the_work_of_a_dead_owner_is_ended_and_nothing_else),
        cmocka_unit_test(test_work_that_forks_on_is_ended),
        cmocka_unit_test(test_nothing_left_is_nothing_said),
        cmocka_unit_test(test_a_number_that_was_used_again_is_not_hit),
        cmocka_unit_test(test_a_stopped_owner_is_woken_and_leaves_by_itself),
        cmocka_unit_test(test_an_owner_that_ignores_it_is_killed_after_the_grace),
#ifdef TENURE_MUTANTS
        cmocka_unit_test(test_without_the_guard_the_work_lives_on),
#endif
        cmocka_unit_test(test_a_run_never_ends_itself_or_an_ancestor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
