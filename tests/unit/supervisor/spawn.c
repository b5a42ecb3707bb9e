/* Every step of a spawn told apart, and what a child gets: nothing of ours but what it was given. */
#include "tests/unit/supervisor/processes.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "base/text.h"

/* ---- helpers ---- */

/* Runs the request with its stdout taken in. */
static char *output_of(const struct spawn_request *request, int *ret_status)
{
    int ends[2];
    struct spawn_request captured = *request;
    struct text output = {0};
    char block[4096];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    captured.stdout_fd = ends[1];
    struct process process = spawn_well(&captured);
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], block, sizeof(block))) > 0;)
        text_append(&output, block, (size_t)got);
    close(ends[0]);
    *ret_status = process_wait(&process);
    return text_steal(&output);
}

static char *output_of_shell(const char *line)
{
    int status;
    char *output = output_of(SHELL(line), &status);
    assert_int_equal(status, 0);
    return output;
}

/* The request fails at `step`, says all of `words`, and leaves neither a child nor a descriptor behind. */
static void assert_fails(const struct spawn_request *request, enum spawn_step step, int errnum,
    const char *words, const char *remedy)
{
    struct process process = {.pid = -7, .pidfd = -1};
    struct spawn_failure failure = {0};
    _cleanup_(error_done) struct error err = {0};
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    assert_int_equal(spawn_program(spawner_system(), request, &process, &failure, &err), RESULT_SYSTEM);
    assert_string_equal(spawn_step_name(failure.step), spawn_step_name(step));
    assert_int_equal(failure.errnum, errnum);
    if (!strstr(err.message, words))
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
    if (remedy && (!err.remedy || !strstr(err.remedy, remedy)))
        fail_msg("remedy \"%s\" does not say \"%s\"", err.remedy ? err.remedy : "", remedy);
    assert_int_equal(process.pid, -7);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(after);
    assert_int_equal(next, after);
}

static struct spawn_request program(const char *const *argv)
{
    struct spawn_request request = *SHELL("");
    request.argv = argv;
    return request;
}

#define PROGRAM(...) program((const char *const[]){__VA_ARGS__, NULL})

/* ---- the steps ---- */

static void test_not_found(void **state _unused_)
{
    struct spawn_request request = PROGRAM("no-such-program-here");
    assert_fails(&request, SPAWN_NOT_FOUND, ENOENT, "no such program on PATH", "/usr/bin:/bin");
    request = PROGRAM("/nonexistent/program");
    assert_fails(&request, SPAWN_NOT_FOUND, ENOENT, "/nonexistent/program", NULL);
    request = PROGRAM("");
    assert_fails(&request, SPAWN_NOT_FOUND, ENOENT, "empty", NULL);
}

static void test_not_executable(void **state _unused_)
{
    struct folder folder;
    folder_make(&folder);
    _cleanup_(mem_free) char *plain = folder_file(&folder, "plain", "#!/bin/sh\n", 0644);
    _cleanup_(mem_free) char *bare = folder_file(&folder, "bare", "echo hello\n", 0755);
    _cleanup_(mem_free) char *empty = folder_file(&folder, "empty", "", 0755);
    _cleanup_(mem_free) char *alien = folder_file(&folder, "alien", "\177ELF and no more", 0755);
    _cleanup_(mem_free) char *script = mem_format("#!%s\n", plain);
    _cleanup_(mem_free) char *through = folder_file(&folder, "through", script, 0755);
    struct spawn_request request = PROGRAM(folder.path);
    assert_fails(&request, SPAWN_NOT_EXECUTABLE, EISDIR, "is a directory", NULL);
    request = PROGRAM(plain);
    assert_fails(&request, SPAWN_NOT_EXECUTABLE, EACCES, "not executable", "chmod +x");
    request = PROGRAM(bare);
    assert_fails(&request, SPAWN_NOT_EXECUTABLE, ENOEXEC, "no format that the kernel knows", "add a #! line");
    request = PROGRAM(empty);
    assert_fails(&request, SPAWN_NOT_EXECUTABLE, ENOEXEC, "it is empty", "add a #! line");
    request = PROGRAM(alien);
    assert_fails(&request, SPAWN_NOT_EXECUTABLE, ENOEXEC, "another machine", NULL);
    request = PROGRAM(through);
    assert_fails(&request, SPAWN_NOT_EXECUTABLE, EACCES, "names", "#! line");
    folder_done(&folder);
}

static void test_no_interpreter(void **state _unused_)
{
    struct folder folder;
    folder_make(&folder);
    _cleanup_(mem_free) char *missing = folder_file(&folder, "missing", "#! /no/such/sh -e\n", 0755);
    _cleanup_(mem_free) char *windows = folder_file(&folder, "windows", "#!/bin/sh\r\necho hello\r\n", 0755);
    struct spawn_request request = PROGRAM(missing);
    assert_fails(&request, SPAWN_NO_INTERPRETER, ENOENT, "names /no/such/sh, which does not exist", NULL);
    request = PROGRAM(windows);
    assert_fails(&request, SPAWN_NO_INTERPRETER, ENOENT, "CR LF", "LF line ends");
    folder_done(&folder);
}

static void test_too_long(void **state _unused_)
{
    _cleanup_(mem_free) char *value = mem_alloc(131072 + 8);
    memcpy(value, "HUGE=", 5);
    memset(value + 5, 'x', 131072);
    struct spawn_request request = *SHELL("exit 0");
    request.environment = (const char *const[]){"PATH=/bin", value, NULL};
    assert_fails(
        &request, SPAWN_TOO_LONG, E2BIG, "the environment variable HUGE takes 131077 bytes", "in a file");

    size_t count = 200000;
    const char **argv = mem_alloc((count + 2) * sizeof(*argv));
    argv[0] = "true";
    for (size_t i = 1; i <= count; i++)
        argv[i] = "a/rather/long/name/of/an/input/file.c";
    request = program(argv);
    assert_fails(&request, SPAWN_TOO_LONG, E2BIG, "above the kernel's limit", "xargs");
    free(argv);
}

static void test_exec_otherwise(void **state _unused_)
{
    struct folder folder;
    folder_make(&folder);
    _cleanup_(mem_free) char *busy = folder_file(&folder, "busy", "#!/bin/sh\n", 0755);
    int fd = open(busy, O_WRONLY | O_CLOEXEC);
    struct spawn_request request = PROGRAM(busy);
    assert_fails(&request, SPAWN_EXEC, ETXTBSY, busy, "open for writing");
    close(fd);
    folder_done(&folder);
}

static void test_a_deleted_directory_is_refused(void **state _unused_)
{
    struct folder folder;
    folder_make(&folder);
    int fd = open(folder.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct spawn_request request = *SHELL("exit 0");
    request.directory_fd = fd;
    assert_int_equal(rmdir(folder.path), 0);
    assert_fails(&request, SPAWN_DIRECTORY, ENOENT, "was deleted", NULL);
    /* Another one of that name changes nothing. */
    assert_int_equal(mkdir(folder.path, 0700), 0);
    assert_fails(&request, SPAWN_DIRECTORY, ENOENT, "was deleted", NULL);
    close(fd);
    folder_done(&folder);
    request.directory_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_fails(&request, SPAWN_DIRECTORY, ENOTDIR, "work directory", NULL);
    close(request.directory_fd);
}

static void test_bad_descriptors(void **state _unused_)
{
    struct spawn_request request = *SHELL("exit 0");
    request.stdout_fd = 999;
    assert_fails(&request, SPAWN_DESCRIPTORS, EBADF, "descriptors", NULL);
}

/* ---- the deadline ---- */

static void test_after_the_deadline_nothing_is_executed(void **state _unused_)
{
    struct folder folder;
    folder_make(&folder);
    _cleanup_(mem_free) char *marker = mem_format("%s/marker", folder.path);
    struct spawn_request request = PROGRAM("touch", marker);
    request.deadline_boot_ms = boot_ms() - 1;
    assert_fails(&request, SPAWN_LAPSED, ETIME, "deadline of the lease had passed", NULL);
    assert_int_not_equal(access(marker, F_OK), 0);
#ifdef TENURE_MUTANTS
    setenv("TENURE_MUTANT", "deadline-spawn", 1);
    struct process mutant = spawn_well(&request);
    assert_int_equal(process_wait(&mutant), 0);
    assert_int_equal(access(marker, F_OK), 0);
    unsetenv("TENURE_MUTANT");
#endif
    folder_done(&folder);
}

static void test_before_the_deadline_it_runs(void **state _unused_)
{
    struct spawn_request request = *SHELL("exit 7");
    request.deadline_boot_ms = boot_ms() + BOUND_MS;
    struct process process = spawn_well(&request);
    assert_int_equal(WEXITSTATUS(process_wait(&process)), 7);
}

/* ---- what a child gets ---- */

static void test_the_child_has_three_descriptors(void **state _unused_)
{
    int ours[32];
    for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
        ours[i] = open("/dev/null", O_RDONLY); /* not even close-on-exec */
    struct spawn_request request = PROGRAM("sleep", "600");
    request.directory_fd = open("/", O_RDONLY | O_DIRECTORY);
    struct process process = spawn_well(&request);
    _cleanup_(mem_free) char *list = mem_format("ls /proc/%d/fd", process.pid);
    _cleanup_(mem_free) char *output = output_of_shell(list);
    assert_string_equal(output, "0\n1\n2\n");
    assert_int_equal(process_signal(&process, SIGKILL, NULL), RESULT_OK);
    process_wait(&process);
    close(request.directory_fd);
    for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
        close(ours[i]);
}

static void test_stdin_is_empty_and_nothing_is_a_terminal(void **state _unused_)
{
    _cleanup_(mem_free) char *output =
        output_of_shell("readlink /proc/self/fd/0; cat; cut -d' ' -f1,6,7 /proc/$$/stat | sed s/$$/PID/g");
    /* pid and session are equal, and there is no controlling terminal */
    assert_string_equal(output, "/dev/null\nPID PID 0\n");
}

static void test_dispositions_and_mask_are_the_defaults(void **state _unused_)
{
    struct sigaction child_before, pipe_before;
    sigset_t term, mask_before, mask_after;
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_IGN}, &child_before);
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, &pipe_before);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, &mask_before);
    int status;
    struct spawn_request request = PROGRAM("sed", "-n", "/^Sig[BIC]/p", "/proc/self/status");
    _cleanup_(mem_free) char *output = output_of(&request, &status);
    assert_int_equal(status, 0); /* kept, although SIGCHLD was ignored */
    assert_string_equal(output, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
                                "SigCgt:\t0000000000000000\n");
    sigprocmask(SIG_SETMASK, &mask_before, &mask_after);
    assert_true(sigismember(&mask_after, SIGTERM)); /* ours was put back as it was */
    assert_false(sigismember(&mask_after, SIGINT));
    sigaction(SIGCHLD, &child_before, NULL);
    sigaction(SIGPIPE, &pipe_before, NULL);
}

static void test_the_environment_is_the_given_one(void **state _unused_)
{
    setenv("SECRET_OF_OURS", "1", 1);
    struct spawn_request request = PROGRAM("/usr/bin/env");
    request.environment = (const char *const[]){"A=1", "B=", NULL};
    int status;
    _cleanup_(mem_free) char *output = output_of(&request, &status);
    assert_string_equal(output, "A=1\nB=\n");
    unsetenv("SECRET_OF_OURS");
}

static void test_the_directory_is_a_descriptor_and_no_name(void **state _unused_)
{
    struct folder folder;
    folder_make(&folder);
    _cleanup_(mem_free) char *old = mem_format("%s/old", folder.path);
    _cleanup_(mem_free) char *new = mem_format("%s/new", folder.path);
    assert_int_equal(mkdir(old, 0700), 0);
    struct spawn_request request = *SHELL("pwd -P");
    request.directory_fd = open(old, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(rename(old, new), 0);
    assert_int_equal(mkdir(old, 0700), 0);
    int status;
    _cleanup_(mem_free) char *output = output_of(&request, &status);
    output[strlen(output) - 1] = '\0';
    assert_string_equal(output, new);
    close(request.directory_fd);
    folder_done(&folder);
}

static void test_path_is_searched_like_the_shell_does(void **state _unused_)
{
    struct folder folder;
    int status;
    folder_make(&folder);
    _cleanup_(mem_free) _unused_ char *refused = folder_file(&folder, "tool", "", 0644);
    _cleanup_(mem_free) char *sub = mem_format("%s/sub", folder.path);
    assert_int_equal(mkdir(sub, 0700), 0);
    _cleanup_(mem_free) _unused_ char *good =
        folder_file(&folder, "sub/tool", "#!/bin/sh\necho $0 $1\n", 0755);
    struct spawn_request request = PROGRAM("tool", "x");
    request.directory_fd = open(folder.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    /* One that may not be executed is passed over; a relative entry is below the work directory. */
    request.environment = (const char *const[]){"PATH=/nonexistent::sub", NULL};
    _cleanup_(mem_free) char *output = output_of(&request, &status);
    assert_string_equal(output, "sub/tool x\n");
    request.environment = (const char *const[]){"PATH=/nonexistent:.", NULL};
    assert_fails(&request, SPAWN_NOT_EXECUTABLE, EACCES, "./tool", "chmod +x");
    close(request.directory_fd);
    folder_done(&folder);
}

/* A private directory on PATH, as `sudo` may leave one, hides nothing and refuses nothing. */
static void test_a_directory_that_may_not_be_searched_is_passed_over(void **state _unused_)
{
    struct folder folder;
    int status;
    folder_make(&folder);
    _cleanup_(mem_free) char *private = mem_format("%s/private", folder.path);
    _cleanup_(mem_free) char *path = mem_format("PATH=%s:/usr/bin:/bin", private);
    assert_int_equal(mkdir(private, 0000), 0);
    assert_int_equal(chmod(folder.path, 0755), 0);
    pid_t child = checked_fork();
    if (child == 0) {
        if (getuid() == 0 && setresuid(65534, 65534, 65534) != 0)
            _exit(2);
        struct spawn_request request = PROGRAM("no-such-program-here");
        struct process process;
        struct spawn_failure failure = {0};
        request.environment = (const char *const[]){path, NULL};
        enum result r = spawn_program(spawner_system(), &request, &process, &failure, NULL);
        if (r != RESULT_SYSTEM || failure.step != SPAWN_NOT_FOUND)
            _exit(3);
        request.argv = (const char *const[]){"true", NULL};
        process = spawn_well(&request);
        _exit(process_wait(&process));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    folder_done(&folder);
}

/* Ends in a process whose 0, 1 and 2 are closed, or each other's. */
static void test_any_numbers_of_standard_descriptors(void **state _unused_)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = checked_fork();
    if (child == 0) {
        /* 0 is where output shall go, 1 is what shall be read, 2 is closed */
        int input = memfd_create("input", MFD_CLOEXEC);
        if (write(input, "given\n", 6) != 6 || lseek(input, 0, SEEK_SET) != 0)
            _exit(2);
        dup2(ends[1], 0);
        dup2(input, 1);
        close(2);
        struct spawn_request request = *SHELL("cat; readlink /proc/self/fd/2");
        request.stdin_fd = 1;
        request.stdout_fd = 0;
        request.stderr_fd = -1;
        struct process process = {.pidfd = -1};
        struct spawn_failure failure;
        int status = 1;
        if (spawn_program(spawner_system(), &request, &process, &failure, NULL) == RESULT_OK)
            waitpid(process.pid, &status, 0);
        _exit(status);
    }
    close(ends[1]);
    char output[64] = {0};
    for (size_t at = 0; at < sizeof(output) - 1;) {
        ssize_t got = read(ends[0], output + at, sizeof(output) - 1 - at);
        if (got <= 0)
            break;
        at += (size_t)got;
    }
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(output, "given\n/dev/null\n");
}

static void *spawn_many(void *failures)
{
    for (int i = 0; i < 50; i++) {
        struct process process = {.pidfd = -1};
        struct spawn_failure failure;
        char line[32];
        int status = -1;
        snprintf(line, sizeof(line), "exit %d", i);
        if (spawn_program(spawner_system(), SHELL(line), &process, &failure, NULL) != RESULT_OK ||
            waitpid(process.pid, &status, 0) != process.pid || WEXITSTATUS(status) != i)
            ++*(int *)failures;
        process_close(&process);
    }
    return NULL;
}

static void test_threads_spawn_at_once(void **state _unused_)
{
    pthread_t threads[4];
    int failures[4] = {0};
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, spawn_many, &failures[i]), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(failures[i], 0);
    }
}

static void test_steps_have_names(void **state _unused_)
{
    for (int step = 0; step < SPAWN_STEP_MAX; step++)
        for (int other = 0; other < step; other++)
            assert_string_not_equal(
                spawn_step_name((enum spawn_step)step), spawn_step_name((enum spawn_step)other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_found),
        cmocka_unit_test(test_not_executable),
        cmocka_unit_test(test_no_interpreter),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_exec_otherwise),
        cmocka_unit_test(test_a_deleted_directory_is_refused),
        cmocka_unit_test(test_bad_descriptors),
        cmocka_unit_test(test_after_the_deadline_nothing_is_executed),
        cmocka_unit_test(test_before_the_deadline_it_runs),
        cmocka_unit_test(test_the_child_has_three_descriptors),
        cmocka_unit_test(test_stdin_is_empty_and_nothing_is_a_terminal),
        cmocka_unit_test(test_dispositions_and_mask_are_the_defaults),
        cmocka_unit_test(test_the_environment_is_the_given_one),
        cmocka_unit_test(test_the_directory_is_a_descriptor_and_no_name),
        cmocka_unit_test(test_path_is_searched_like_the_shell_does),
        cmocka_unit_test(test_a_directory_that_may_not_be_searched_is_passed_over),
        cmocka_unit_test(test_any_numbers_of_standard_descriptors),
        cmocka_unit_test(test_threads_spawn_at_once),
        cmocka_unit_test(test_steps_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
