#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/checked_fork.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/files.h"
#include "base/memory.h"

/* A fresh directory for each test, and the working directory within it. */
static int enter(void **state)
{
    const char *base = getenv("TMPDIR");
    char *path = mem_format("%s/unit-files-XXXXXX", base && *base == '/' ? base : "/tmp");
    *state = path;
    return mkdtemp(path) && chdir(path) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    _cleanup_(mem_free) char *path = *state;
    return chdir("/") == 0 && directory_remove(AT_FDCWD, path, NULL) == RESULT_OK ? 0 : -1;
}

static void put(const char *path, const char *content)
{
    _cleanup_(fd_cleanup) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, content, strlen(content), NULL), RESULT_OK);
}

static void assert_content(const char *path, const char *expected)
{
    _cleanup_(text_done) struct text text = {0};
    assert_int_equal(file_read(AT_FDCWD, path, true, 1000, &text, NULL), RESULT_OK);
    assert_string_equal(text.bytes, expected);
}

static int entries(void)
{
    int count = 0;
    FILE *listing = popen("ls -A | wc -l", "r");
    assert_non_null(listing);
    assert_int_equal(fscanf(listing, "%d", &count), 1);
    pclose(listing);
    return count;
}

static void read_appends(void **state _unused_)
{
    _cleanup_(text_done) struct text text = {0};
    put("f", "content");
    text_add(&text, "before ");
    assert_int_equal(file_read(AT_FDCWD, "f", true, 7, &text, NULL), RESULT_OK);
    assert_string_equal(text.bytes, "before content");
}

static void read_has_a_limit(void **state _unused_)
{
    _cleanup_(text_done) struct text text = {0};
    _cleanup_(error_done) struct error err = {0};
    put("f", "12345678");
    text_add(&text, "x");
    assert_int_equal(file_read(AT_FDCWD, "f", true, 7, &text, &err), RESULT_INVALID);
    assert_string_equal(err.message, "f is larger than 7 bytes");
    assert_string_equal(text.bytes, "x");
    assert_int_equal(file_read(AT_FDCWD, "f", true, 8, &text, NULL), RESULT_OK);
    assert_int_equal(file_read(AT_FDCWD, "/dev/zero", false, 8, &text, NULL), RESULT_INVALID);
}

static void read_finds_files_of_proc(void **state _unused_)
{
    _cleanup_(text_done) struct text text = {0};
    assert_int_equal(file_read(AT_FDCWD, "/proc/self/stat", true, 4096, &text, NULL), RESULT_OK);
    assert_true(text.length > 0);
}

static void read_refuses_what_is_no_regular_file(void **state _unused_)
{
    _cleanup_(text_done) struct text text = {0};
    _cleanup_(error_done) struct error err = {0};
    alarm(20); /* a hang is a failure too */
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(mkdir("dir", 0700), 0);
    assert_int_equal(file_read(AT_FDCWD, "fifo", true, 100, &text, &err), RESULT_INVALID);
    assert_string_equal(err.message, "fifo is not a regular file");
    assert_int_equal(file_read(AT_FDCWD, "dir", true, 100, &text, NULL), RESULT_INVALID);
    assert_int_equal(file_read(AT_FDCWD, "missing", true, 100, &text, &err), RESULT_ABSENT);
    assert_int_equal(err.errnum, ENOENT);
    alarm(0);
}

static void read_follows_links_only_when_asked(void **state _unused_)
{
    _cleanup_(text_done) struct text text = {0};
    _cleanup_(error_done) struct error err = {0};
    put("f", "x");
    assert_int_equal(symlink("f", "link"), 0);
    assert_int_equal(symlink("nowhere", "dangling"), 0);
    assert_int_equal(file_read(AT_FDCWD, "link", true, 100, &text, &err), RESULT_INVALID);
    assert_string_equal(err.message, "link is a symbolic link");
    assert_int_equal(file_read(AT_FDCWD, "link", false, 100, &text, NULL), RESULT_OK);
    assert_int_equal(file_read(AT_FDCWD, "dangling", false, 100, &text, NULL), RESULT_ABSENT);
}

static void descriptors_are_close_on_exec(void **state _unused_)
{
    put("f", "x");
    int fd = open("f", O_RDONLY | O_CLOEXEC);
    fd_set_nonblocking(fd);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    errno = 77;
    fd_close(fd);
    fd_close(fd);
    fd_close(-1);
    assert_int_equal(errno, 77);
}

static void write_all_reports_errno(void **state _unused_)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(fd_cleanup) int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, "x", 1, &err), RESULT_SYSTEM);
    assert_int_equal(err.errnum, ENOSPC);
}

static void write_all_passes_short_writes(void **state _unused_)
{
    enum { SIZE = 1024 * 1024 };
    int pipe_fds[2];
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    pid_t child = checked_fork();
    if (child == 0) {
        close(pipe_fds[0]);
        _cleanup_(mem_free) char *bytes = mem_alloc(SIZE);
        _exit(fd_write_all(pipe_fds[1], bytes, SIZE, NULL) == RESULT_OK ? 0 : 1);
    }
    close(pipe_fds[1]);
    char block[5000];
    size_t total = 0;
    for (ssize_t got; (got = read(pipe_fds[0], block, sizeof(block))) > 0;)
        total += (size_t)got;
    close(pipe_fds[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(total, SIZE);
}

static void atomic_write_replaces(void **state _unused_)
{
    struct stat status;
    assert_int_equal(file_write_atomic("f", 0600, false, "one", 3, NULL), RESULT_OK);
    assert_content("f", "one");
    assert_int_equal(stat("f", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(file_write_atomic("f", 0600, false, "two", 3, NULL), RESULT_OK);
    assert_content("f", "two");
    assert_int_equal(entries(), 1);
}

static void atomic_write_leaves_an_existing_file_alone(void **state _unused_)
{
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(file_write_atomic("f", 0600, true, "one", 3, NULL), RESULT_OK);
    assert_int_equal(file_write_atomic("f", 0600, true, "two", 3, &err), RESULT_CONFLICT);
    assert_string_equal(err.message, "f exists already");
    assert_content("f", "one");
    assert_int_equal(symlink("nowhere", "dangling"), 0);
    assert_int_equal(file_write_atomic("dangling", 0600, true, "x", 1, NULL), RESULT_CONFLICT);
    assert_int_equal(entries(), 2); /* no temporary file is left */
}

static void atomic_write_replaces_a_link_and_not_its_target(void **state _unused_)
{
    put("target", "old");
    assert_int_equal(symlink("target", "link"), 0);
    assert_int_equal(file_write_atomic("link", 0600, false, "new", 3, NULL), RESULT_OK);
    assert_content("target", "old");
    assert_content("link", "new");
}

static void atomic_write_fails_cleanly(void **state _unused_)
{
    assert_int_equal(file_write_atomic("missing/f", 0600, false, "x", 1, NULL), RESULT_ABSENT);
    assert_int_equal(file_write_atomic("dir/", 0600, false, "x", 1, NULL), RESULT_INVALID);
    assert_int_equal(file_write_atomic("", 0600, false, "x", 1, NULL), RESULT_INVALID);
    assert_int_equal(mkdir("dir", 0700), 0);
    assert_int_not_equal(file_write_atomic("dir", 0600, false, "x", 1, NULL), RESULT_OK);
    assert_int_equal(entries(), 1);
}

#ifdef TENURE_FAILPOINTS
static void atomic_write_survives_a_crash_at_every_step(void **state _unused_)
{
    static const struct {
        const char *order, *expected;
    } STEPS[] = {
        {"file-write-before-data:kill", "old"},
        {"file-write-before-sync:kill", "old"},
        {"file-write-before-rename:kill", "old"},
        {"file-write-after-rename:kill", "new"},
        {"file-write-after-sync:kill", "new"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(STEPS); i++) {
        put("f", "old");
        pid_t child = checked_fork();
        if (child == 0) {
            setenv("TENURE_FAILPOINT", STEPS[i].order, 1);
            _exit((int)file_write_atomic("f", 0600, false, "new", 3, NULL));
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_content("f", STEPS[i].expected);
    }
}

static void a_full_disk_leaves_the_old_file(void **state _unused_)
{
    _cleanup_(error_done) struct error err = {0};
    put("f", "old");
    setenv("TENURE_FAILPOINT", "file-write-data:error", 1);
    enum result r = file_write_atomic("f", 0600, false, "new", 3, &err);
    unsetenv("TENURE_FAILPOINT");
    assert_int_equal(r, RESULT_SYSTEM);
    assert_int_equal(err.errnum, ENOSPC);
    assert_content("f", "old");
    assert_int_equal(entries(), 1);
}
#endif

static void count_tick(void *context)
{
    ++*(int *)context;
}

static void digest_is_that_of_the_bytes(void **state _unused_)
{
    enum { SIZE = 9 * 1024 * 1024 + 5 };
    _cleanup_(mem_free) char *bytes = mem_alloc(SIZE);
    char of_file[DIGEST_HEX_SIZE], of_bytes[DIGEST_HEX_SIZE];
    int ticks = 0;
    random_bytes(bytes, SIZE);
    assert_int_equal(file_write_atomic("f", 0600, false, bytes, SIZE, NULL), RESULT_OK);
    _cleanup_(fd_cleanup) int fd = open("f", O_RDONLY | O_CLOEXEC);
    assert_int_equal(lseek(fd, 1000, SEEK_SET), 1000);
    assert_int_equal(file_digest(fd, count_tick, &ticks, of_file, NULL), RESULT_OK);
    digest_hex(bytes, SIZE, of_bytes);
    assert_string_equal(of_file, of_bytes);
    assert_int_equal(ticks, 2);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 1000);
    assert_int_equal(file_digest(fd, NULL, NULL, of_file, NULL), RESULT_OK);
}

static void directories_are_made_with_parents(void **state)
{
    struct stat status;
    _cleanup_(mem_free) char *absolute = mem_format("%s/x/y", (const char *)*state);
    assert_int_equal(directory_make("a/b//c/", 0700, NULL), RESULT_OK);
    assert_int_equal(directory_make("a/b/c", 0700, NULL), RESULT_OK);
    assert_int_equal(directory_make(absolute, 0700, NULL), RESULT_OK);
    assert_int_equal(stat("a/b/c", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(directory_sync("a", NULL), RESULT_OK);
    assert_int_equal(directory_sync("missing", NULL), RESULT_ABSENT);
    put("file", "");
    assert_int_equal(directory_make("file", 0700, NULL), RESULT_INVALID);
    assert_int_not_equal(directory_make("file/below", 0700, NULL), RESULT_OK);
}

static void what_may_not_be_made_is_denied_not_absent(void **state _unused_)
{
    assert_int_equal(mkdir("closed", 0755), 0);
    assert_int_equal(chmod("closed", 0555), 0);
    assert_int_equal(chmod(".", 0755), 0);
    pid_t pid = checked_fork();
    if (pid == 0) {
        if (geteuid() == 0 && seteuid(65534) != 0)
            _exit(2);
        _cleanup_(error_done) struct error err = {0};
        enum result r = directory_make("closed/a/b", 0700, &err);
        _exit(r == RESULT_DENIED && strstr(err.message, "Permission denied") ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void remove_takes_everything_and_follows_nothing(void **state _unused_)
{
    assert_int_equal(directory_make("outside", 0700, NULL), RESULT_OK);
    put("outside/precious", "x");
    assert_int_equal(directory_make("tree/sub/deep", 0700, NULL), RESULT_OK);
    put("tree/sub/f", "x");
    assert_int_equal(symlink("../../outside", "tree/sub/link"), 0);
    assert_int_equal(symlink("missing", "tree/dangling"), 0);
    assert_int_equal(mkfifo("tree/fifo", 0600), 0);
    assert_int_equal(directory_make("tree/readonly/below", 0700, NULL), RESULT_OK);
    put("tree/readonly/f", "x");
    assert_int_equal(chmod("tree/readonly", 0500), 0);
    assert_int_equal(chmod("tree/sub/deep", 0000), 0);
    assert_int_equal(directory_remove(AT_FDCWD, "tree", NULL), RESULT_OK);
    assert_int_equal(access("tree", F_OK), -1);
    assert_content("outside/precious", "x");
    assert_int_equal(directory_remove(AT_FDCWD, "tree", NULL), RESULT_OK);
}

static void remove_refuses_a_link_and_a_file(void **state _unused_)
{
    assert_int_equal(directory_make("outside", 0700, NULL), RESULT_OK);
    put("outside/precious", "x");
    assert_int_equal(symlink("outside", "link"), 0);
    assert_int_not_equal(directory_remove(AT_FDCWD, "link", NULL), RESULT_OK);
    assert_int_not_equal(directory_remove(AT_FDCWD, "outside/precious", NULL), RESULT_OK);
    assert_content("outside/precious", "x");
}

static void remove_takes_any_depth(void **state _unused_)
{
    int at = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 3000; i++) { /* deeper than descriptors and PATH_MAX allow */
        const char *name = i ? "d" : "deep";
        assert_int_equal(mkdirat(at, name, 0700), 0);
        int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(at);
        at = next;
    }
    close(at);
    assert_int_equal(directory_remove(AT_FDCWD, "deep", NULL), RESULT_OK);
    assert_int_equal(entries(), 0);
}

static void file_systems_are_told_apart(void **state _unused_)
{
    enum file_system kind;
    _cleanup_(fd_cleanup) int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(file_system_of(proc, &kind, NULL), RESULT_OK);
    assert_int_equal(kind, FILE_SYSTEM_OTHER);
    _cleanup_(fd_cleanup) int shm = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (shm >= 0) {
        assert_int_equal(file_system_of(shm, &kind, NULL), RESULT_OK);
        assert_int_equal(kind, FILE_SYSTEM_LOCAL);
    }
    assert_int_equal(file_system_of(-1, &kind, NULL), RESULT_SYSTEM);
}

static void assert_state(const char *xdg, const char *home, const char *expected)
{
    _cleanup_(mem_free) char *path = NULL;
    xdg ? setenv("XDG_STATE_HOME", xdg, 1) : unsetenv("XDG_STATE_HOME");
    home ? setenv("HOME", home, 1) : unsetenv("HOME");
    assert_int_equal(directory_state(&path, NULL), RESULT_OK);
    assert_string_equal(path, expected);
}

static void base_directories(void **state _unused_)
{
    _cleanup_(mem_free) char *path = NULL;
    assert_state("/x", "/h", "/x/tenure");
    assert_state("relative", "/h", "/h/.local/state/tenure");
    assert_state("", "/h", "/h/.local/state/tenure");
    assert_state(NULL, "/h", "/h/.local/state/tenure");
    setenv("XDG_CONFIG_HOME", "/c", 1);
    assert_int_equal(directory_config(&path, NULL), RESULT_OK);
    assert_string_equal(path, "/c/tenure");
    mem_free(&path);
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("HOME");
    if (directory_config(&path, NULL) == RESULT_OK) /* the password database, where it knows this user */
        assert_int_equal(path[0], '/');
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(read_appends),
        TEST(read_has_a_limit),
        TEST(read_finds_files_of_proc),
        TEST(read_refuses_what_is_no_regular_file),
        TEST(read_follows_links_only_when_asked),
        TEST(descriptors_are_close_on_exec),
        TEST(write_all_reports_errno),
        TEST(write_all_passes_short_writes),
        TEST(atomic_write_replaces),
        TEST(atomic_write_leaves_an_existing_file_alone),
        TEST(atomic_write_replaces_a_link_and_not_its_target),
        TEST(atomic_write_fails_cleanly),
#ifdef TENURE_FAILPOINTS
        TEST(atomic_write_survives_a_crash_at_every_step),
        TEST(a_full_disk_leaves_the_old_file),
#endif
        TEST(digest_is_that_of_the_bytes),
        TEST(directories_are_made_with_parents),
        TEST(what_may_not_be_made_is_denied_not_absent),
        TEST(remove_takes_everything_and_follows_nothing),
        TEST(remove_refuses_a_link_and_a_file),
        TEST(remove_takes_any_depth),
        TEST(file_systems_are_told_apart),
        TEST(base_directories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
