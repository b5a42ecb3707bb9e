/* What only the embedded store has: a file, its place, its owner and its version. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "tests/conformance/conformance.h"
#include "tests/unit/checked_fork.h"

#define NOBODY 65534

static const char *path_of(struct world *world)
{
    return world->url + strlen("sqlite:");
}

static char *directory_of(struct world *world)
{
    char *directory = mem_string(path_of(world));

    *strrchr(directory, '/') = '\0';
    return directory;
}

static mode_t mode_of(const char *path)
{
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 07777;
}

static enum result open_as(struct world *world, enum store_access access, struct error *err)
{
    struct store_options options = world_options(world);
    struct store *store = NULL;
    enum result r = store_open(&options, access, &store, err);

    store_close(store);
    return r;
}

static enum result open_url(struct world *world, const char *url, enum store_access access, struct error *err)
{
    struct store_options options = world_options(world);
    struct store *store = NULL;
    enum result r = RESULT_OK;

    options.url = url;
    r = store_open(&options, access, &store, err);
    store_close(store);
    return r;
}

static void file_bytes(const char *path, struct text *ret)
{
    OK(file_read(AT_FDCWD, path, false, 64 * 1024 * 1024, ret, NULL));
}

static void the_directory_and_the_file_are_private(void **state)
{
    struct world *world = *state;
    _cleanup_(mem_free) char *directory = directory_of(world);

    assert_int_equal(mode_of(directory), 0700);
    assert_int_equal(mode_of(path_of(world)), 0600);
}

static void a_reader_creates_nothing(void **state)
{
    struct world *world = *state;
    _cleanup_(mem_free) char *url = mem_format("%s-other/new.db", world->url);
    _cleanup_(error_done) struct error err = {0};

    assert_int_equal(open_url(world, url, STORE_READ, &err), RESULT_ABSENT);
    assert_int_not_equal(access(strchr(url, '/'), F_OK), 0);
    *strrchr(url, '/') = '\0';
    assert_int_not_equal(access(strchr(url, '/'), F_OK), 0);
}

static void an_empty_file_is_absent_to_a_reader_and_new_to_a_writer(void **state)
{
    struct world *world = *state;

    world_close(world);
    assert_int_equal(truncate(path_of(world), 0), 0);
    assert_int_equal(open_as(world, STORE_READ, NULL), RESULT_ABSENT);
    OK(open_as(world, STORE_WRITE, NULL));
    OK(open_as(world, STORE_READ, NULL));
}

static void a_reader_writes_nothing(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    struct store_options options = world_options(world);
    struct reservation reservation = reservation_of(world, KIND_DONE, "b");
    struct store *reader = NULL;
    struct leftover_list leftovers = {0};

    OK(store_open(&options, STORE_READ, &reader, NULL));
    REFUSED(world, RESULT_DENIED, try_reserve(reader, &reservation));
    REFUSED(world, RESULT_DENIED, renew(reader, &credential));
    REFUSED(world, RESULT_DENIED, settle(reader, &credential, ATTEMPT_FAILED));
    REFUSED(world, RESULT_DENIED, retire(reader, credential.attempt_id, 2, true, NULL));
    REFUSED(world, RESULT_DENIED, store_request_cancel(reader, credential.attempt_id, "me", NULL));
    REFUSED(world, RESULT_DENIED, put_evidence(reader, &credential, "key", true));
    REFUSED(world, RESULT_DENIED, store_migrate(reader, NULL));
    REFUSED(world, RESULT_OK, store_leftovers(reader, &leftovers, NULL));
    store_close(reader);
}

/* ---- as somebody without rights ---- */

static void become_nobody(void)
{
    if (geteuid() == 0)
        if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
            _exit(99);
}

struct rights {
    enum result read, write, status, find, reserve;
};

static void try_rights(struct world *world, int index _unused_, void *answer)
{
    struct rights *rights = answer;
    struct store_options options = world_options(world);
    struct reservation reservation = reservation_of(world, KIND_DONE, "b");
    struct store *reader = NULL, *writer = NULL;
    struct store_status status = {0};
    struct attempt_list list = {0};

    become_nobody();
    rights->read = store_open(&options, STORE_READ, &reader, NULL);
    if (reader) {
        rights->status = store_status(reader, &status, NULL);
        rights->find = store_list(reader, &(struct attempt_query){0}, &list, NULL);
    }
    rights->write = store_open(&options, STORE_WRITE, &writer, NULL);
    if (writer)
        rights->reserve = try_reserve(writer, &reservation);
    store_close(reader);
    store_close(writer);
}

/* The throw-away directory itself must be passable for a test that gives up root. */
static void modes_set(struct world *world, mode_t directory_mode, mode_t file_mode)
{
    _cleanup_(mem_free) char *directory = directory_of(world), *above = mem_string(directory);

    *strrchr(above, '/') = '\0';
    assert_int_equal(chmod(above, 0755), 0);
    assert_int_equal(chmod(path_of(world), file_mode), 0);
    assert_int_equal(chmod(directory, directory_mode), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path_of(world), NOBODY, NOBODY), 0);
        assert_int_equal(chown(directory, NOBODY, NOBODY), 0);
    }
}

static void a_read_only_store_can_be_read(void **state)
{
    struct world *world = *state;
    struct rights rights;

    run(world, world->a, KIND_DONE, "a");
    world_close(world);
    modes_set(world, 0555, 0444);
    world_fork(world, 1, try_rights, &rights, sizeof rights);
    assert_int_equal(rights.read, RESULT_OK);
    assert_int_equal(rights.status, RESULT_OK);
    assert_int_equal(rights.find, RESULT_OK);
    assert_int_equal(rights.write, RESULT_DENIED);
    modes_set(world, 0700, 0600);
}

static void a_read_only_directory_denies_every_write(void **state)
{
    struct world *world = *state;
    struct rights rights;

    world_close(world);
    modes_set(world, 0555, 0600);
    world_fork(world, 1, try_rights, &rights, sizeof rights);
    assert_int_equal(rights.read, RESULT_OK);
    assert_int_equal(rights.status, RESULT_OK);
    assert_int_equal(rights.reserve, RESULT_DENIED);
    modes_set(world, 0700, 0600);
}

static void a_store_that_may_not_be_opened_is_denied(void **state)
{
    struct world *world = *state;
    struct rights rights;

    world_close(world);
    modes_set(world, 0700, 0000);
    world_fork(world, 1, try_rights, &rights, sizeof rights);
    assert_int_equal(rights.read, RESULT_DENIED);
    assert_int_equal(rights.write, RESULT_DENIED);
    modes_set(world, 0700, 0600);
}

/* ---- whose file ---- */

static void another_machines_store_is_refused(void **state)
{
    struct world *world = *state;
    _cleanup_(mem_free) char *before = world_dump(world);
    _cleanup_(error_done) struct error err = {0};

    strcpy(world->machine.machine_id, "fedcba9876543210fedcba9876543210");
    assert_int_equal(open_as(world, STORE_WRITE, &err), RESULT_INVALID);
    assert_non_null(strstr(err.remedy, "postgresql://"));
    assert_true(world_same(world, before));
    OK(open_as(world, STORE_READ, NULL));
}

static void the_database_of_another_program_is_left_alone(void **state)
{
    struct world *world = *state;
    static const char *const FOREIGN[] = {"DROP TABLE subject; PRAGMA application_id = 7",
        "PRAGMA application_id = 0; PRAGMA user_version = 0", "PRAGMA user_version = 9"};

    world_close(world);
    for (size_t i = 0; i < ARRAY_SIZE(FOREIGN); i++) {
        _cleanup_(text_done) struct text before = {0}, after = {0};
        backend->execute(world->url, FOREIGN[i]);
        file_bytes(path_of(world), &before);
        assert_int_equal(open_as(world, STORE_WRITE, NULL), RESULT_INVALID);
        assert_int_equal(open_as(world, STORE_READ, NULL), RESULT_INVALID);
        file_bytes(path_of(world), &after);
        assert_int_equal(before.length, after.length);
        assert_memory_equal(before.bytes, after.bytes, before.length);
    }
}

static void file_fill(const char *path, off_t at, size_t length)
{
    _cleanup_(fd_cleanup) int fd = open(path, O_WRONLY | O_CLOEXEC);
    _cleanup_(mem_free) char *junk = mem_alloc(length);

    assert_true(fd >= 0);
    memset(junk, 'x', length);
    assert_int_equal(pwrite(fd, junk, length, at), (ssize_t)length);
}

static void what_is_no_database_is_corrupt(void **state)
{
    struct world *world = *state;

    world_close(world);
    file_fill(path_of(world), 0, 4096);
    assert_int_equal(open_as(world, STORE_READ, NULL), RESULT_CORRUPT);
    assert_int_equal(open_as(world, STORE_WRITE, NULL), RESULT_CORRUPT);
}

static void a_store_without_its_identity_is_corrupt(void **state)
{
    struct world *world = *state;

    world_close(world);
    backend->execute(world->url, "DELETE FROM meta WHERE name = 'store_id'");
    assert_int_equal(open_as(world, STORE_WRITE, NULL), RESULT_CORRUPT);
    backend->execute(world->url, "PRAGMA user_version = -1");
    assert_int_equal(open_as(world, STORE_WRITE, NULL), RESULT_CORRUPT);
}

static void strange_addresses_are_refused(void **state)
{
    struct world *world = *state;
    _cleanup_(mem_free) char *directory = directory_of(world), *url = mem_format("sqlite:%s", directory);
    _cleanup_(error_done) struct error err = {0};

    assert_int_equal(open_url(world, "sqlite:", STORE_WRITE, NULL), RESULT_INVALID);
    assert_int_equal(open_url(world, url, STORE_WRITE, NULL), RESULT_INVALID);
    assert_int_equal(open_url(world, "/plain/path", STORE_WRITE, NULL), RESULT_INVALID);
    assert_int_equal(open_url(world, "mysql://me:secret@host/base", STORE_WRITE, &err), RESULT_INVALID);
    assert_null(strstr(err.message, "secret"));
}

static void a_changed_journal_mode_is_put_right(void **state)
{
    struct world *world = *state;
    _cleanup_(mem_free) char *wal = mem_format("%s-wal", path_of(world));
    struct store *store = NULL;

    world_close(world);
    backend->execute(world->url, "PRAGMA journal_mode = WAL");
    store = world_open(world);
    run(world, store, KIND_DONE, "a");
    assert_int_not_equal(access(wal, F_OK), 0);
    store_close(store);
}

/* ---- versions ---- */

static void a_newer_schema_lets_what_runs_end_and_nothing_begin(void **state)
{
    struct world *world = *state;
    struct credential one = run(world, world->a, KIND_COMMAND, "a"),
                      two = run(world, world->a, KIND_COMMAND, "b"),
                      planned = reserve(world, world->a, KIND_COMMAND, "c");
    struct reservation late = reservation_of(world, KIND_COMMAND, "d");

    backend->execute(world->url, "PRAGMA user_version = 2");
    REFUSED(world, RESULT_NEWER, open_as(world, STORE_WRITE, NULL));
    REFUSED(world, RESULT_NEWER, open_as(world, STORE_READ, NULL));
    REFUSED(world, RESULT_NEWER, store_migrate(world->a, NULL));
    REFUSED(world, RESULT_NEWER, try_reserve(world->a, &late));
    REFUSED(world, RESULT_NEWER, store_bind(world->a, &planned, NULL, NULL));
    REFUSED(world, RESULT_NEWER, put_evidence(world->a, &one, "key", true));
    REFUSED(world, RESULT_NEWER, store_request_cancel(world->a, one.attempt_id, "me", NULL));
    OK(renew(world->a, &one));
    OK(settle(world->a, &one, ATTEMPT_PASSED));
    OK(retire(world->b, two.attempt_id, revision(world->b, two.attempt_id), true, NULL));
    backend->execute(world->url, "PRAGMA user_version = 3");
    REFUSED(world, RESULT_NEWER, renew(world->a, &planned));
    REFUSED(world, RESULT_NEWER, settle(world->a, &planned, ATTEMPT_FAILED));
}

static void a_newer_record_is_neither_read_nor_written(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_COMMAND, "a");
    struct reservation other = reservation_of(world, KIND_COMMAND, "a");
    struct attempt attempt = {0};

    backend->execute(world->url, "UPDATE attempt SET record_version = 3");
    REFUSED(world, RESULT_NEWER, store_find(world->a, credential.attempt_id, &attempt, NULL));
    REFUSED(world, RESULT_NEWER, renew(world->a, &credential));
    REFUSED(world, RESULT_NEWER, settle(world->a, &credential, ATTEMPT_FAILED));
    REFUSED(world, RESULT_NEWER, retire(world->a, credential.attempt_id, 2, true, NULL));
    REFUSED(world, RESULT_NEWER, try_reserve(world->a, &other));
}

/* ---- damaged rows ---- */

static void a_row_that_does_not_parse_is_corrupt(void **state)
{
    struct world *world = *state;
    static const char *const DAMAGES[] = {"kind = 'sabotage'", "rev = 'many'", "pid = 'x'",
        "subjects = x'00'", "user = NULL", "progress_phase = printf('%.*c', 40, 'x')", "record_version = 0"};
    struct credential credential = run(world, world->a, KIND_COMMAND, "a");
    struct attempt attempt = {0};
    struct attempt_list list = {0};

    for (size_t i = 0; i < ARRAY_SIZE(DAMAGES); i++) {
        _cleanup_(mem_free) char *damage = mem_format("CREATE TABLE kept AS SELECT * FROM attempt;"
                                                      "UPDATE attempt SET %s",
            DAMAGES[i]);
        backend->execute(world->url, damage);
        REFUSED(world, RESULT_CORRUPT, store_find(world->a, credential.attempt_id, &attempt, NULL));
        REFUSED(world, RESULT_CORRUPT, store_list(world->a, &(struct attempt_query){0}, &list, NULL));
        REFUSED(world, RESULT_CORRUPT, renew(world->a, &credential));
        REFUSED(world, RESULT_CORRUPT, settle(world->a, &credential, ATTEMPT_FAILED));
        backend->execute(world->url,
            "UPDATE attempt SET (kind, rev, pid, subjects, user, progress_phase, "
            "record_version) = (SELECT kind, rev, pid, subjects, user, progress_phase, "
            "record_version FROM kept); DROP TABLE kept");
    }
    OK(renew(world->a, &credential));
}

static void a_lease_that_cannot_be_read_has_lapsed(void **state)
{
    struct world *world = *state;
    static const char *const DAMAGES[] = {"acquired_at = 'yesterday'", "renewed_at = x'00'",
        "expires_at = NULL", "expires_at = 'never'",
        "renewed_at = 9223372036854775807, expires_at = 9223372036854775807", "epoch = NULL"};

    for (size_t i = 0; i < ARRAY_SIZE(DAMAGES); i++) {
        _cleanup_(mem_free) char *damage = mem_format("UPDATE attempt SET %s", DAMAGES[i]);
        struct credential credential = run(world, world->a, KIND_COMMAND, "a");
        _cleanup_(attempt_done) struct attempt attempt = {0};
        backend->execute(world->url, damage);
        attempt = found(world->a, credential.attempt_id);
        OK(retire(world->b, attempt.id, attempt.rev, false, NULL));
    }
}

static void a_lease_of_another_boot_has_lapsed(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_COMMAND, "a");
    struct store *later = NULL;

    strcpy(world->machine.boot_id, "b0000000000000000000000000000002");
    later = world_open(world);
    REFUSED(world, RESULT_CONFLICT, renew(later, &credential));
    OK(retire(later, credential.attempt_id, 2, false, NULL));
    store_close(later);
}

/* ---- clocks that do not fit ---- */

/* A time namespace holds for the children to come; and what a process knows of its own is looked up once, so
 * the child is a new program. */
static void try_in_shifted_time(struct world *world, int index _unused_, void *answer)
{
    enum result *result = answer;
    FILE *offsets = NULL;
    int status = 0;
    pid_t child = 0;

    *result = RESULT_MAX;
    if (unshare(CLONE_NEWTIME) != 0)
        return;
    offsets = fopen("/proc/self/timens_offsets", "w");
    if (!offsets || fprintf(offsets, "boottime 1000 0") < 0 || fclose(offsets) != 0)
        return;
    child = checked_fork();
    if (child == 0) {
        execl("/proc/self/exe", "conformance", "open", world->url, NULL);
        _exit(RESULT_MAX);
    }
    if (waitpid(child, &status, 0) == child && WIFEXITED(status))
        *result = (enum result)WEXITSTATUS(status);
}

static void a_shifted_boot_clock_is_refused(void **state)
{
    struct world *world = *state;
    enum result result = RESULT_OK;

    world_close(world);
    world_fork(world, 1, try_in_shifted_time, &result, sizeof result);
    if (result == RESULT_MAX) {
        print_message("no right to make a time namespace: not tested\n");
        skip();
    }
    assert_int_equal(result, RESULT_INVALID);
}

int test_sqlite(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_directory_and_the_file_are_private),
        TEST(a_reader_creates_nothing),
        TEST(an_empty_file_is_absent_to_a_reader_and_new_to_a_writer),
        TEST(a_reader_writes_nothing),
        TEST(a_read_only_store_can_be_read),
        TEST(a_read_only_directory_denies_every_write),
        TEST(a_store_that_may_not_be_opened_is_denied),
        TEST(another_machines_store_is_refused),
        TEST(the_database_of_another_program_is_left_alone),
        TEST(what_is_no_database_is_corrupt),
        TEST(a_store_without_its_identity_is_corrupt),
        TEST(strange_addresses_are_refused),
        TEST(a_changed_journal_mode_is_put_right),
        TEST(a_newer_schema_lets_what_runs_end_and_nothing_begin),
        TEST(a_newer_record_is_neither_read_nor_written),
        TEST(a_row_that_does_not_parse_is_corrupt),
        TEST(a_lease_that_cannot_be_read_has_lapsed),
        TEST(a_lease_of_another_boot_has_lapsed),
        TEST(a_shifted_boot_clock_is_refused),
    };

    return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
