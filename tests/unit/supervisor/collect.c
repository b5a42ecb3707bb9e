/* Programs run for their output: several at once, all of it, and nobody waited for who need not be. */
#include "tests/unit/supervisor/processes.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>

#include "supervisor/collect.h"
#include "supervisor/proc-private.h"

static enum result run(struct collect *collects, size_t count, struct error *err)
{
    struct runner *runner = collect_runner();
    return runner->run(runner, collects, count, err);
}

static struct collect shell(const char *const *argv)
{
    return (struct collect){.argv = argv, .directory_fd = AT_FDCWD};
}

#define SHELL_CALL(line) shell((const char *const[]){"sh", "-c", line, NULL})

static int lowest_free_descriptor(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(fd);
    return fd;
}

static int no_child_is_left(void **state _unused_)
{
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : -1;
}

/* Each tells of itself and then waits for the others, which one after the other would never end. */
static void test_three_run_at_once(void **state _unused_)
{
    struct folder folder;
    folder_make(&folder);
    struct collect calls[3];
    int before = lowest_free_descriptor();
    const char *const line =
        "echo $0 >$0; until [ -e 1 ] && [ -e 2 ] && [ -e 3 ]; do sleep 0.01; done; cat $0";
    for (int i = 0; i < 3; i++) {
        static const char *const NAMES[] = {"1", "2", "3"};
        const char *const *argv =
            mem_copy((const char *const[]){"sh", "-c", line, NAMES[i], NULL}, 5 * sizeof(char *));
        calls[i] = shell(argv);
        calls[i].directory_fd = open(folder.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    assert_int_equal(run(calls, 3, NULL), RESULT_OK);
    for (int i = 0; i < 3; i++) {
        const char expected[] = {(char)('1' + i), '\n', '\0'};
        assert_string_equal(calls[i].output.bytes, expected);
        assert_int_equal(collect_check(&calls[i], NULL), RESULT_OK);
        close(calls[i].directory_fd);
        free((void *)(uintptr_t)calls[i].argv);
        collect_done(&calls[i]);
    }
    assert_int_equal(lowest_free_descriptor(), before);
    folder_done(&folder);
}

static void test_a_huge_output_is_kept_whole(void **state _unused_)
{
    struct collect call = SHELL_CALL("head -c 50000000 /dev/zero; printf end");
    assert_int_equal(run(&call, 1, NULL), RESULT_OK);
    assert_int_equal(call.output.length, 50000003);
    assert_string_equal(call.output.bytes + 50000000, "end");
    collect_done(&call);
}

static void test_a_limit_ends_the_whole_batch(void **state _unused_)
{
    struct collect calls[] = {SHELL_CALL("exec sleep 600"), SHELL_CALL("yes")};
    calls[1].limit_bytes = 100000;
    _cleanup_(error_done) struct error err = {0};
    int before = lowest_free_descriptor();
    assert_int_equal(run(calls, 2, &err), RESULT_INVALID);
    assert_non_null(strstr(err.message, "larger than 100000 bytes"));
    assert_true(calls[1].output.length <= 100000);
    collect_done(&calls[0]);
    collect_done(&calls[1]);
    assert_int_equal(lowest_free_descriptor(), before);
}

static void test_exactly_the_limit_is_allowed(void **state _unused_)
{
    struct collect call = SHELL_CALL("head -c 100000 /dev/zero");
    call.limit_bytes = 100000;
    assert_int_equal(run(&call, 1, NULL), RESULT_OK);
    assert_int_equal(call.output.length, 100000);
    collect_done(&call);
}

static void test_a_failure_speaks_with_the_programs_own_words(void **state _unused_)
{
    struct collect call =
        SHELL_CALL("echo out; echo 'fatal: no such thing' >&2; printf '\\033[31mred\\n' >&2; exit 3");
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(run(&call, 1, NULL), RESULT_OK);
    assert_int_equal(WEXITSTATUS(call.status), 3);
    assert_string_equal(call.output.bytes, "out\n");
    assert_int_equal(collect_check(&call, &err), RESULT_INVALID);
    assert_string_equal(err.message, "sh failed with exit status 3: fatal: no such thing; \\x1b[31mred");
    collect_done(&call);
}

static void test_a_signal_is_told_from_a_status(void **state _unused_)
{
    struct collect call = SHELL_CALL("kill -9 $$");
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(run(&call, 1, NULL), RESULT_OK);
    assert_true(WIFSIGNALED(call.status) && WTERMSIG(call.status) == SIGKILL);
    assert_int_equal(collect_check(&call, &err), RESULT_INVALID);
    assert_non_null(strstr(err.message, "signal 9"));
    collect_done(&call);
}

static void test_of_a_flood_of_complaints_the_start_is_kept(void **state _unused_)
{
    struct collect call = SHELL_CALL("echo first >&2; head -c 1000000 /dev/zero >&2; exit 1");
    assert_int_equal(run(&call, 1, NULL), RESULT_OK);
    assert_int_equal(call.complaint.length, 64 * 1024);
    assert_memory_equal(call.complaint.bytes, "first\n", 6);
    collect_done(&call);
}

static void test_a_missing_program_leaves_nothing_running(void **state _unused_)
{
    struct collect calls[] = {
        SHELL_CALL("exec sleep 600"), shell((const char *const[]){"no-such-git", NULL})};
    _cleanup_(error_done) struct error err = {0};
    int before = lowest_free_descriptor();
    assert_int_equal(run(calls, 2, &err), RESULT_SYSTEM);
    assert_non_null(strstr(err.message, "no such program on PATH"));
    collect_done(&calls[0]);
    collect_done(&calls[1]);
    assert_int_equal(lowest_free_descriptor(), before);
}

static void test_who_does_not_end_is_ended_and_named(void **state _unused_)
{
    struct collect calls[] = {SHELL_CALL("echo quick"), SHELL_CALL("exec sleep 600")};
    _cleanup_(error_done) struct error err = {0};
    calls[1].bound_ms = 300;
    int64_t begun = boot_ms();
    assert_int_equal(run(calls, 2, &err), RESULT_SYSTEM);
    assert_in_range(boot_ms() - begun, 300, 5000);
    assert_string_equal(err.message, "`sh -c exec sleep 600` did not end within 300 ms and was ended");
    collect_done(&calls[0]);
    collect_done(&calls[1]);
}

/* ---- what becomes of those who run ---- */

/* A folder in which a program tells its number. */
struct scene {
    struct folder folder;
    char *file;
};

static void scene_make(struct scene *scene)
{
    folder_make(&scene->folder);
    scene->file = mem_format("%s/pid", scene->folder.path);
}

static void scene_done(struct scene *scene)
{
    free(scene->file);
    folder_done(&scene->folder);
}

/* What a shell does that tells its number at `file`, all at once, and stays. */
static char *stay_at(const char *file)
{
    return mem_format("echo $$ >%s.new; mv %s.new %s; exec sleep 600", file, file, file);
}

static pid_t told_in(const struct scene *scene)
{
    int pid = 0;
    wait_until(access(scene->file, F_OK) == 0);
    FILE *stream = fopen(scene->file, "re");
    assert_int_equal(fscanf(stream, "%d", &pid), 1);
    fclose(stream);
    return pid;
}

static pid_t ask_in_a_child(const char *line, int64_t bound_ms)
{
    pid_t asker = checked_fork();
    if (asker != 0)
        return asker;
    struct collect call = SHELL_CALL(line);
    call.bound_ms = bound_ms;
    _exit((int)run(&call, 1, NULL));
}

static void assert_goes(int pidfd)
{
    struct pollfd fd = {.fd = pidfd, .events = POLLIN};
    assert_true(pidfd >= 0);
    assert_int_equal(poll(&fd, 1, 5000), 1);
    close(pidfd);
}

/* A git that hangs would go on after its `tenure` was killed, and nobody would know whose it is. */
static void test_who_is_asked_dies_with_us(void **state _unused_)
{
    struct scene scene;
    scene_make(&scene);
    _cleanup_(mem_free) char *line = stay_at(scene.file);
    pid_t asker = ask_in_a_child(line, 0);
    int asked = pidfd_open(told_in(&scene), 0);
    kill(asker, SIGKILL);
    assert_int_equal(waitpid(asker, NULL, 0), asker);
    assert_goes(asked);
    scene_done(&scene);
}

/* So would the filter that it waits for, even one in a session of its own. */
static void test_a_signal_ends_what_was_started_in_turn(void **state _unused_)
{
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < ARRAY_SIZE(SIGNALS); i++) {
        struct scene scene;
        scene_make(&scene);
        _cleanup_(mem_free) char *filter = stay_at(scene.file);
        _cleanup_(mem_free) char *line = mem_format("setsid sh -c '%s' & wait", filter);
        pid_t asker = ask_in_a_child(line, 0);
        int status, filtering = pidfd_open(told_in(&scene), 0);
        kill(asker, SIGNALS[i]);
        assert_int_equal(waitpid(asker, &status, 0), asker);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGNALS[i]);
        struct pollfd fd = {.fd = filtering, .events = POLLIN};
        assert_int_equal(poll(&fd, 1, 0), 1); /* before we were gone ourselves */
        close(filtering);
        scene_done(&scene);
    }
}

static void test_a_failed_batch_ends_what_was_started_in_turn(void **state _unused_)
{
    struct scene scene;
    scene_make(&scene);
    pid_t other = checked_fork();
    if (other == 0)
        for (;;)
            pause();
    _cleanup_(mem_free) char *filter = stay_at(scene.file);
    _cleanup_(mem_free) char *line = mem_format("setsid sh -c '%s' & wait", filter);
    _cleanup_(mem_free) char *flood =
        mem_format("until [ -e %s ]; do sleep 0.01; done; exec yes", scene.file);
    struct collect calls[] = {SHELL_CALL(line), SHELL_CALL(flood)};
    calls[1].limit_bytes = 1000;
    assert_int_equal(run(calls, 2, NULL), RESULT_INVALID);
    assert_int_equal(kill(told_in(&scene), 0), -1);
    assert_int_equal(waitpid(other, NULL, WNOHANG), 0); /* not ours to end */
    kill(other, SIGKILL);
    assert_int_equal(waitpid(other, NULL, 0), other);
    collect_done(&calls[0]);
    collect_done(&calls[1]);
    scene_done(&scene);
}

static char state_of(pid_t pid)
{
    struct proc_stat stat = {0};
    return proc_stat_read(pid, &stat) ? stat.state : '\0';
}

/* Ctrl-Z, or a lid that was closed: who was asked could not end meanwhile, or nobody could see it. */
static void test_time_in_which_we_stood_still_does_not_count(void **state _unused_)
{
    struct scene scene;
    scene_make(&scene);
    _cleanup_(mem_free) char *go = mem_format("%s/go", scene.folder.path);
    _cleanup_(mem_free) char *line =
        mem_format("echo $$ >%s; until [ -e %s ]; do sleep 0.01; done", scene.file, go);
    int status;
    pid_t asker = ask_in_a_child(line, 1500);
    wait_until(access(scene.file, F_OK) == 0);
    kill(asker, SIGSTOP);
    assert_int_equal(waitpid(asker, &status, WUNTRACED), asker);
    int64_t until = boot_ms() + 3500;
    while (boot_ms() < until)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    kill(asker, SIGCONT);
    wait_until(strchr("SZ", state_of(asker)) != NULL); /* it has looked at the time */
    close(open(go, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(waitpid(asker, &status, 0), asker);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), RESULT_OK);
    scene_done(&scene);
}

/* What the terminal sends to our process group reaches them, and whom they start. */
static void test_they_stay_where_the_terminal_finds_them(void **state _unused_)
{
    struct collect call = SHELL_CALL("cut -d' ' -f5,6 /proc/self/stat");
    _cleanup_(mem_free) char *expected = mem_format("%d %d\n", getpgrp(), getsid(0));
    assert_int_equal(run(&call, 1, NULL), RESULT_OK);
    assert_string_equal(call.output.bytes, expected);
    collect_done(&call);
}

static void test_they_ignore_of_the_terminal_what_we_ignore(void **state _unused_)
{
    struct collect call = SHELL_CALL("kill -INT $$; echo on; kill -TERM $$; echo further");
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    enum result r = run(&call, 1, NULL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    assert_int_equal(r, RESULT_OK);
    assert_string_equal(call.output.bytes, "on\n");
    assert_int_equal(WTERMSIG(call.status), SIGTERM);
    collect_done(&call);
}

static void test_input_is_given_and_need_not_be_read(void **state _unused_)
{
    size_t length = 3000000;
    _cleanup_(mem_free) char *input = mem_alloc(length);
    memset(input, 'x', length);
    struct collect calls[] = {SHELL_CALL("cat"), SHELL_CALL("exec true"), SHELL_CALL("cat")};
    calls[0].input = calls[1].input = input;
    calls[0].input_length = calls[1].input_length = length;
    assert_int_equal(run(calls, 3, NULL), RESULT_OK);
    assert_int_equal(calls[0].output.length, length);
    assert_memory_equal(calls[0].output.bytes, input, length);
    assert_int_equal(calls[1].status, 0);
    assert_int_equal(calls[2].output.length, 0); /* without input it is empty */
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
        collect_done(&calls[i]);
}

static void test_a_helper_with_the_pipe_is_not_waited_for(void **state _unused_)
{
    struct collect call = SHELL_CALL("(sleep 5; echo late) & echo $!");
    int64_t begin_ms = boot_ms();
    assert_int_equal(run(&call, 1, NULL), RESULT_OK);
    assert_true(boot_ms() - begin_ms < 4000);
    pid_t helper = atoi(call.output.bytes);
    assert_true(helper > 1);
    assert_null(strstr(call.output.bytes, "late"));
    kill(helper, SIGKILL);
    collect_done(&call);
}

static void test_git_variables_of_the_caller_are_not_passed_on(void **state _unused_)
{
    setenv("GIT_DIR", "/nonexistent", 1);
    setenv("GITLIKE", "kept", 1);
    struct collect call = SHELL_CALL("echo \"${GIT_DIR-unset} $GITLIKE\"");
    assert_int_equal(run(&call, 1, NULL), RESULT_OK);
    assert_string_equal(call.output.bytes, "unset kept\n");
    collect_done(&call);
    call = SHELL_CALL("echo \"${GIT_DIR-unset} ${GITLIKE-unset} $ONLY\"");
    call.environment = (const char *const[]){"ONLY=this", "PATH=/usr/bin:/bin", NULL};
    assert_int_equal(run(&call, 1, NULL), RESULT_OK);
    assert_string_equal(call.output.bytes, "unset unset this\n");
    collect_done(&call);
    unsetenv("GIT_DIR");
    unsetenv("GITLIKE");
}

static void test_others_children_are_left_alone(void **state _unused_)
{
    pid_t other = checked_fork();
    if (other == 0)
        _exit(5);
    struct collect call = SHELL_CALL("exit 0");
    assert_int_equal(run(&call, 1, NULL), RESULT_OK);
    int status;
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(WEXITSTATUS(status), 5);
    collect_done(&call);
}

#define test(function) cmocka_unit_test_teardown(function, no_child_is_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_three_run_at_once),
        test(test_a_huge_output_is_kept_whole),
        test(test_a_limit_ends_the_whole_batch),
        test(test_exactly_the_limit_is_allowed),
        test(test_a_failure_speaks_with_the_programs_own_words),
        test(test_a_signal_is_told_from_a_status),
        test(test_of_a_flood_of_complaints_the_start_is_kept),
        test(test_a_missing_program_leaves_nothing_running),
        test(test_who_does_not_end_is_ended_and_named),
        test(test_who_is_asked_dies_with_us),
        test(test_a_signal_ends_what_was_started_in_turn),
        test(test_a_failed_batch_ends_what_was_started_in_turn),
        test(test_time_in_which_we_stood_still_does_not_count),
        test(test_they_stay_where_the_terminal_finds_them),
        test(test_they_ignore_of_the_terminal_what_we_ignore),
        test(test_input_is_given_and_need_not_be_read),
        test(test_a_helper_with_the_pipe_is_not_waited_for),
        test(test_git_variables_of_the_caller_are_not_passed_on),
        test(test_others_children_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
