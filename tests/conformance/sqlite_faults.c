/* Readers, moved files and full disks. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/files.h"
#include "base/memory.h"
#include "tests/conformance/conformance.h"

static void an_unknown_renewal_is_unconfirmed(void **state)
{
    struct world *world = *state;
    struct credential mine = run(world, world->a, KIND_DONE, "a"),
                      ended = run(world, world->a, KIND_DONE, "b");
    struct renewal renewals[] = {{.credential = &mine}, {.credential = &ended}};

    if (!failpoint_name(0))
        skip();
    OK(settle(world->a, &ended, ATTEMPT_FAILED));
    setenv("TENURE_FAILPOINT", "renew-before-commit:error", 1);
    REFUSED(world, RESULT_UNKNOWN, store_renew(world->a, renewals, 2, NULL));
    unsetenv("TENURE_FAILPOINT");
    assert_int_equal(renewals[0].result, RESULT_UNKNOWN);
    assert_int_equal(renewals[1].result, RESULT_RETIRED);
    renewal_done(&renewals[1]);
}

/* ---- what others do to the file ---- */

static sqlite3 *foreign(struct world *world)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open_v2(strchr(world->url, '/'), &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    return db;
}

/* A commit waits for those who read; who cannot wait any longer leaves nothing behind. */
static void a_foreign_reader_delays_a_commit_and_no_more(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    struct store_options options = world_options(world);
    struct store *hasty = NULL;
    sqlite3 *reader = foreign(world);

    options.deadline_ms = 100;
    OK(store_open(&options, STORE_WRITE, &hasty, NULL));
    assert_int_equal(
        sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM attempt", NULL, NULL, NULL), SQLITE_OK);
    REFUSED(world, RESULT_BUSY, renew(hasty, &credential));
    REFUSED(world, RESULT_BUSY, settle(hasty, &credential, ATTEMPT_FAILED));
    assert_int_equal(sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(reader);
    OK(renew(hasty, &credential));
    OK(settle(hasty, &credential, ATTEMPT_FAILED));
    store_close(hasty);
}

/* Killed when its pages had reached the file already and its commit had not. */
static void die_in_the_middle(struct world *world, int index _unused_, void *answer)
{
    sqlite3 *db = foreign(world);

    if (sqlite3_exec(db, "BEGIN IMMEDIATE; UPDATE attempt SET rev = 99", NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_db_cacheflush(db) == SQLITE_OK)
        *(bool *)answer = true;
    raise(SIGKILL);
}

static void a_reader_sees_nothing_of_a_commit_that_never_was(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    struct store_options options = world_options(world);
    _cleanup_(mem_free) char *journal = mem_format("%s-journal", strchr(world->url, '/'));
    struct store *reader = NULL;
    bool flushed = false;

    world_close(world);
    world_fork(world, 1, die_in_the_middle, &flushed, sizeof flushed);
    assert_true(flushed);
    assert_int_equal(access(journal, F_OK), 0);
    OK(store_open(&options, STORE_READ, &reader, NULL));
    assert_int_equal(revision(reader, credential.attempt_id), 2);
    store_close(reader);
}

static void a_store_that_was_moved_away_is_written_no_more(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    const char *path = strchr(world->url, '/');
    _cleanup_(mem_free) char *aside = mem_format("%s-aside", path);

    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(renew(world->a, &credential), RESULT_UNREACHABLE);
    assert_int_equal(rename(aside, path), 0);
    OK(renew(world->a, &credential));
}

/* ---- a full disk ---- */

#define DISK_BYTES (256 * 1024)

static bool disk_mount(const char *directory)
{
    _cleanup_(mem_free) char *size = mem_format("size=%d", DISK_BYTES);

    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0)
        return false;
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", directory, "tmpfs", 0, size) == 0;
}

/* Takes all room but `free_bytes`. */
static void disk_fill(const char *ballast, size_t free_bytes)
{
    static const char PAGE[4096] = "ballast";
    int fd = open(ballast, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    off_t length = 0;

    while (write(fd, PAGE, sizeof PAGE) == (ssize_t)sizeof PAGE)
        length += (off_t)sizeof PAGE;
    if (ftruncate(fd, length > (off_t)free_bytes ? length - (off_t)free_bytes : 0) != 0)
        _exit(3);
    close(fd);
}

struct fullness {
    bool mounted, answered;
    int refusals, odd;
};

static bool is_clean_refusal(enum result r)
{
    return r == RESULT_OK || r == RESULT_UNREACHABLE;
}

/* With this much room: every answer is either done or a clear refusal, and with room again all goes on. */
static void disk_try(struct world *world, const char *ballast, size_t free_bytes, struct fullness *fullness)
{
    struct store *store = world_open(world);
    struct credential credential = run(world, store, KIND_COMMAND, "full");
    struct reservation reservation = reservation_of(world, KIND_COMMAND, "other");
    enum result results[4];

    disk_fill(ballast, free_bytes);
    results[0] = try_reserve(store, &reservation);
    results[1] = renew(store, &credential);
    results[2] = put_evidence(store, &credential, "key", true);
    results[3] = settle(store, &credential, ATTEMPT_PASSED);
    unlink(ballast);
    for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
        fullness->refusals += results[i] == RESULT_UNREACHABLE;
        fullness->odd += !is_clean_refusal(results[i]);
    }
    if (results[3] != RESULT_OK)
        OK(settle(store, &credential, ATTEMPT_PASSED));
    if (results[0] != RESULT_OK)
        OK(try_reserve(store, &reservation));
    OK(settle(store, &reservation.credential, ATTEMPT_FAILED));
    store_close(store);
    world_check_invariants(world);
}

static void fill_the_disk(struct world *world, int index _unused_, void *answer)
{
    struct fullness *fullness = answer;
    _cleanup_(mem_free) char *directory = mem_string(strchr(world->url, '/')), *ballast = NULL;

    *strrchr(directory, '/') = '\0';
    fullness->mounted = disk_mount(directory);
    if (!fullness->mounted)
        return;
    ballast = mem_format("%s/ballast", directory);
    for (size_t free_bytes = 0; free_bytes <= 64 * 1024; free_bytes += 4096)
        disk_try(world, ballast, free_bytes, fullness);
    fullness->answered = true;
}

static void a_full_disk_refuses_clearly_and_heals(void **state)
{
    struct world *world = *state;
    struct fullness fullness;

    world_close(world);
    world_fork(world, 1, fill_the_disk, &fullness, sizeof fullness);
    if (!fullness.mounted) {
        print_message("no right to mount a small file system: not tested\n");
        skip();
    }
    assert_true(fullness.answered);
    assert_int_equal(fullness.odd, 0);
    assert_true(fullness.refusals > 0);
}

int test_sqlite_faults(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_unknown_renewal_is_unconfirmed),
        TEST(a_foreign_reader_delays_a_commit_and_no_more),
        TEST(a_reader_sees_nothing_of_a_commit_that_never_was),
        TEST(a_store_that_was_moved_away_is_written_no_more),
        TEST(a_full_disk_refuses_clearly_and_heals),
    };

    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
