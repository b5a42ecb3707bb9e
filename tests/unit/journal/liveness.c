/* The verdict: every rule of the table, and that no copy, no other owner and no odd file is taken for one. */
#include "fixture.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "journal/reader.h"

static struct liveness probe(const struct fixture *fixture, const char *path)
{
    const struct liveness_question question = {.path = path, .machine = &fixture->machine};
    return liveness_probe(&question);
}

static void assert_verdict(struct liveness seen, enum owner_verdict verdict, int rule)
{
    if (seen.verdict != verdict || seen.rule != rule)
        fail_msg("rule %d says %s (%s), wanted rule %d: %s", seen.rule, owner_verdict_name(seen.verdict),
            seen.why, rule, owner_verdict_name(verdict));
    assert_non_null(seen.why);
}

static char *dead_journal(const struct fixture *fixture, bool settled)
{
    struct journal *journal = fixture_journal(fixture, clock_system());
    char *path = mem_string(journal_path(journal));
    fixture_note(journal, "alive once");
    if (settled)
        fixture_settle(journal);
    journal_close(journal);
    return path;
}

static char *copy_of(const struct fixture *fixture, const char *path)
{
    _cleanup_(text_done) struct text text = {0};
    char *copy = mem_format("%s/copy", fixture->root);
    fixture_read(path, &text);
    fixture_write(copy, text.bytes, text.length);
    return copy;
}

static void own_journal_reads_as_running(void **state)
{
    struct journal *journal = fixture_journal(*state, clock_system());
    assert_verdict(probe(*state, journal_path(journal)), OWNER_RUNNING, 2);
    fixture_settle(journal);
    assert_verdict(probe(*state, journal_path(journal)), OWNER_RUNNING, 2);
    journal_close(journal);
}

static void settled_is_gone_with_its_outcome(void **state)
{
    _cleanup_(mem_free) char *path = dead_journal(*state, true);
    _cleanup_(mem_free) char *copy = copy_of(*state, path);
    assert_verdict(probe(*state, path), OWNER_GONE, 3);
    assert_verdict(probe(*state, copy), OWNER_GONE, 3);
}

static void unsettled_is_gone_on_the_same_boot(void **state)
{
    _cleanup_(mem_free) char *path = dead_journal(*state, false);
    assert_verdict(probe(*state, path), OWNER_GONE, 4);
}

static void hard_link_is_the_file_itself(void **state)
{
    const struct fixture *fixture = *state;
    _cleanup_(mem_free) char *path = dead_journal(fixture, false);
    _cleanup_(mem_free) char *other = mem_format("%s/other-name", fixture->root);
    assert_int_equal(link(path, other), 0);
    assert_verdict(probe(fixture, other), OWNER_GONE, 4);
}

static void copy_proves_nothing(void **state)
{
    const struct fixture *fixture = *state;
    /* Also while the owner of the original runs. */
    struct owner owner = owner_start(fixture);
    _cleanup_(mem_free) char *copy = copy_of(fixture, owner.path);
    assert_verdict(probe(fixture, copy), OWNER_UNKNOWN, 6);
    assert_verdict(probe(fixture, owner.path), OWNER_RUNNING, 2);
    owner_reap(&owner);
    assert_verdict(probe(fixture, copy), OWNER_UNKNOWN, 6);
}

static void settled_line_that_is_not_the_last_proves_nothing(void **state)
{
    _cleanup_(mem_free) char *path = dead_journal(*state, true);
    _cleanup_(mem_free) char *copy = copy_of(*state, path);
    int fd = open(copy, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, "28 c1cc", 7), 7);
    close(fd);
    assert_verdict(probe(*state, copy), OWNER_UNKNOWN, 6);
}

static void settled_that_does_not_validate_proves_nothing(void **state)
{
    _cleanup_(mem_free) char *path = dead_journal(*state, true);
    _cleanup_(mem_free) char *copy = copy_of(*state, path);
    _cleanup_(text_done) struct text text = {0};
    fixture_read(copy, &text);
    *strstr(text.bytes, "alive once") = 'A';
    fixture_write(copy, text.bytes, text.length);
    assert_verdict(probe(*state, copy), OWNER_UNKNOWN, 6);
}

static void damage_behind_the_header_hides_no_death(void **state)
{
    _cleanup_(mem_free) char *path = dead_journal(*state, false);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "X", 1, status.st_size - 5), 1);
    close(fd);
    assert_verdict(probe(*state, path), OWNER_GONE, 4);
}

static void other_incarnation_or_attempt(void **state)
{
    const struct fixture *fixture = *state;
    struct journal *journal = NULL;
    const struct journal_options options = {.root = fixture->root,
        .clock = clock_system(),
        .executor = &fixture->executor,
        .attempt = "01890000-0000-7000-8000-000000000001"};
    assert_int_equal(journal_create(&options, &journal, NULL), RESULT_OK);
    struct liveness_question question = {.path = journal_path(journal),
        .machine = &fixture->machine,
        .incarnation = fixture->executor.incarnation,
        .attempt = options.attempt};
    assert_verdict(liveness_probe(&question), OWNER_RUNNING, 2);
    question.attempt = "01890000-0000-7000-8000-000000000002";
    assert_verdict(liveness_probe(&question), OWNER_UNKNOWN, 1);
    question.attempt = NULL;
    question.incarnation = "00000000000000000000000000000000";
    assert_verdict(liveness_probe(&question), OWNER_UNKNOWN, 1);
    question.incarnation = "";
    assert_verdict(liveness_probe(&question), OWNER_UNKNOWN, 1);
    journal_close(journal);

    struct journal *early = fixture_journal(fixture, clock_system()); /* made before the attempt had an id */
    question = (struct liveness_question){.path = journal_path(early),
        .machine = &fixture->machine,
        .incarnation = fixture->executor.incarnation,
        .attempt = options.attempt};
    assert_verdict(liveness_probe(&question), OWNER_RUNNING, 2);
    journal_close(early);
}

static void another_boot(void **state)
{
    const struct fixture *fixture = *state;
    struct fixture earlier = *fixture;
    memset(earlier.executor.boot_id, 'a', 32);
    _cleanup_(mem_free) char *path = dead_journal(&earlier, false);
    struct liveness_question question = {.path = path, .machine = &fixture->machine};
    struct machine machine = fixture->machine;
    machine.container = false;
    question.machine = &machine;
    assert_verdict(liveness_probe(&question), OWNER_UNKNOWN, 6);
    question.renewed_before_boot = true;
    assert_verdict(liveness_probe(&question), OWNER_GONE, 5);
    machine.container = true;
    assert_verdict(liveness_probe(&question), OWNER_UNKNOWN, 6);
    machine.container = false;
    machine.named_by_host = true;
    assert_verdict(liveness_probe(&question), OWNER_UNKNOWN, 6);
    machine.named_by_host = false;
    memset(machine.machine_id, 'b', 32);
    assert_verdict(liveness_probe(&question), OWNER_UNKNOWN, 6);
}

static void another_boot_still_locked(void **state)
{
    /* A container with a boot id of its own, on this kernel: the lock speaks. */
    struct fixture other = *(struct fixture *)*state;
    memset(other.executor.boot_id, 'a', 32);
    struct journal *journal = fixture_journal(&other, clock_system());
    const struct liveness_question question = {
        .path = journal_path(journal), .machine = &other.machine, .renewed_before_boot = true};
    assert_verdict(liveness_probe(&question), OWNER_RUNNING, 2);
    journal_close(journal);
}

static void odd_files(void **state)
{
    const struct fixture *fixture = *state;
    _cleanup_(mem_free) char *path = dead_journal(fixture, true);
    _cleanup_(mem_free) char *odd = mem_format("%s/odd", fixture->root);
    assert_verdict(probe(fixture, odd), OWNER_UNKNOWN, 1);
    assert_int_equal(mkfifo(odd, 0600), 0);
    assert_verdict(probe(fixture, odd), OWNER_UNKNOWN, 1);
    assert_int_equal(unlink(odd), 0);
    assert_int_equal(symlink(path, odd), 0);
    assert_verdict(probe(fixture, odd), OWNER_UNKNOWN, 1);
    assert_int_equal(unlink(odd), 0);
    assert_int_equal(mkdir(odd, 0700), 0);
    assert_verdict(probe(fixture, odd), OWNER_UNKNOWN, 1);
    assert_int_equal(rmdir(odd), 0);
    fixture_write(odd, "", 0);
    assert_verdict(probe(fixture, odd), OWNER_UNKNOWN, 1);
    fixture_write(odd, "28 00112233445566778899aabbccddeeff {\n", 38);
    assert_verdict(probe(fixture, odd), OWNER_UNKNOWN, 1);
}

static void another_readers_lock_is_not_the_owners(void **state)
{
    _cleanup_(mem_free) char *path = dead_journal(*state, false);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 2};
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    assert_verdict(probe(*state, path), OWNER_GONE, 4);
    close(fd);
}

static void killed_owner_is_gone_soon(void **state)
{
    const struct fixture *fixture = *state;
    int64_t worst = 0;
    for (int round = 0; round < 10; round++) {
        struct owner owner = owner_start(fixture);
        assert_verdict(probe(fixture, owner.path), OWNER_RUNNING, 2);
        int64_t killed = now_ms();
        kill(owner.pid, SIGKILL);
        while (probe(fixture, owner.path).verdict == OWNER_RUNNING)
            assert_true(now_ms() - killed < BOUND_MS);
        if (now_ms() - killed > worst)
            worst = now_ms() - killed;
        assert_verdict(probe(fixture, owner.path), OWNER_GONE, 4);
        owner_reap(&owner);
    }
    print_message("worst of 10: %lld ms\n", (long long)worst);
}

static void stopped_owner_is_running(void **state)
{
    const struct fixture *fixture = *state;
    int status = 0;
    struct owner owner = owner_start(fixture);
    kill(owner.pid, SIGSTOP);
    assert_int_equal(waitpid(owner.pid, &status, WUNTRACED), owner.pid);
    assert_true(WIFSTOPPED(status));
    assert_verdict(probe(fixture, owner.path), OWNER_RUNNING, 2);
    owner_reap(&owner);
    assert_verdict(probe(fixture, owner.path), OWNER_GONE, 4);
}

/* An owner that starts a long-lived child, tells its pid, and sleeps. The child closes what it inherited, or
 * leaves that to its exec. */
static pid_t owner_with_child(
    const struct fixture *fixture, bool exec, char *ret_path, size_t size, pid_t *ret_child)
{
    int up[2];
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    pid_t pid = checked_fork();
    if (pid == 0) {
        struct journal *journal = fixture_journal(fixture, clock_system());
        pid_t child = checked_fork_free();
        if (child == 0) {
            if (exec)
                execl("/bin/sleep", "sleep", "600", (char *)NULL);
            syscall(SYS_close_range, 3u, ~0u, 0u);
            for (;;)
                pause();
        }
        char path[4096] = "";
        snprintf(path, sizeof(path), "%s", journal_path(journal));
        if (write(up[1], &child, sizeof(child)) != sizeof(child) || write(up[1], path, size) != (ssize_t)size)
            _exit(1);
        for (;;)
            pause();
    }
    close(up[1]);
    assert_int_equal(read(up[0], ret_child, sizeof(*ret_child)), sizeof(*ret_child));
    assert_int_equal(read(up[0], ret_path, size), size);
    close(up[0]);
    return pid;
}

static void child_does_not_keep_the_lock(void **state)
{
    const struct fixture *fixture = *state;
    for (int exec = 0; exec < 2; exec++) {
        char path[4096];
        pid_t child = -1, pid = owner_with_child(fixture, exec == 1, path, sizeof(path), &child);
        int64_t killed = now_ms();
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        while (probe(fixture, path).verdict == OWNER_RUNNING)
            assert_true(now_ms() - killed < BOUND_MS);
        assert_verdict(probe(fixture, path), OWNER_GONE, 4);
        assert_int_equal(kill(child, 0), 0); /* and it still lives */
        kill(child, SIGKILL);
    }
}

static void wait_is_woken_by_death(void **state)
{
    const struct fixture *fixture = *state;
    static const char *const FAILPOINTS[] = {"", "journal-watch:error"}; /* with inotify, and without it */
    for (size_t i = 0; i < ARRAY_SIZE(FAILPOINTS); i++) {
        struct owner owner = owner_start(fixture);
        pid_t killer = checked_fork();
        if (killer == 0) {
            poll(NULL, 0, 60); /* so that the other is waiting by then; if not, it is woken all the same */
            struct timespec now;
            clock_gettime(CLOCK_MONOTONIC, &now);
            kill(owner.pid, SIGKILL);
            _exit(0);
        }
        setenv("TENURE_FAILPOINT", FAILPOINTS[i], 1);
        const struct liveness_question question = {.path = owner.path, .machine = &fixture->machine};
        int64_t began = now_ms();
        struct liveness seen = liveness_wait(&question, BOUND_MS, -1);
        int64_t took = now_ms() - began;
        unsetenv("TENURE_FAILPOINT");
        assert_verdict(seen, OWNER_GONE, 4);
        print_message("woken %lld ms after the start, the kill came after 60\n", (long long)took);
        assert_true(took < 5000);
        waitpid(killer, NULL, 0);
        owner_reap(&owner);
    }
}

static void wait_is_bounded_and_can_be_woken(void **state)
{
    const struct fixture *fixture = *state;
    struct owner owner = owner_start(fixture);
    const struct liveness_question question = {.path = owner.path, .machine = &fixture->machine};
    int64_t began = now_ms();
    assert_verdict(liveness_wait(&question, 30, -1), OWNER_RUNNING, 2);
    assert_true(now_ms() - began >= 29);
    assert_verdict(liveness_wait(&question, -5, -1), OWNER_RUNNING, 2);
    assert_verdict(liveness_wait(&question, 0, -1), OWNER_RUNNING, 2);
    int wake[2];
    assert_int_equal(pipe2(wake, O_CLOEXEC), 0);
    assert_int_equal(write(wake[1], "x", 1), 1);
    began = now_ms();
    assert_verdict(liveness_wait(&question, INT64_MAX, wake[0]), OWNER_RUNNING, 2);
    assert_true(now_ms() - began < BOUND_MS);
    close(wake[0]);
    close(wake[1]);
    owner_reap(&owner);
    assert_verdict(liveness_wait(&question, INT64_MAX, -1), OWNER_GONE, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(own_journal_reads_as_running),
        FIXTURE_TEST(settled_is_gone_with_its_outcome),
        FIXTURE_TEST(unsettled_is_gone_on_the_same_boot),
        FIXTURE_TEST(hard_link_is_the_file_itself),
        FIXTURE_TEST(copy_proves_nothing),
        FIXTURE_TEST(settled_line_that_is_not_the_last_proves_nothing),
        FIXTURE_TEST(settled_that_does_not_validate_proves_nothing),
        FIXTURE_TEST(damage_behind_the_header_hides_no_death),
        FIXTURE_TEST(other_incarnation_or_attempt),
        FIXTURE_TEST(another_boot),
        FIXTURE_TEST(another_boot_still_locked),
        FIXTURE_TEST(odd_files),
        FIXTURE_TEST(another_readers_lock_is_not_the_owners),
        FIXTURE_TEST(killed_owner_is_gone_soon),
        FIXTURE_TEST(stopped_owner_is_running),
        FIXTURE_TEST(child_does_not_keep_the_lock),
        FIXTURE_TEST(wait_is_woken_by_death),
        FIXTURE_TEST(wait_is_bounded_and_can_be_woken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
