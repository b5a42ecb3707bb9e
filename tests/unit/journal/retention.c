/* Which journals are there, and which may go. Times are made by hand. */
#include "fixture.h"

#include "journal/retention.h"

#define DAY_MS   (INT64_C(24) * 3600 * 1000)
#define TODAY_MS INT64_C(1796067000000)

static struct clock_manual clock_at(int64_t wall_ms)
{
    struct clock_manual clock;
    clock_manual_init(&clock, 30 * DAY_MS, wall_ms);
    return clock;
}

/* A journal made `age_days` ago; its directory is the caller's. */
static char *journal_aged(const struct fixture *fixture, int64_t age_days, bool settled)
{
    struct clock_manual clock = clock_at(TODAY_MS - age_days * DAY_MS);
    struct journal *journal = fixture_journal(fixture, &clock.clock);
    char *directory = mem_string(journal_directory(journal));
    fixture_note(journal, "something");
    if (settled)
        fixture_settle(journal);
    journal_close(journal);
    return directory;
}

static size_t prune(const struct fixture *fixture, struct retention retention, int64_t *ret_bytes)
{
    struct error err = {0};
    struct clock_manual clock = clock_at(TODAY_MS);
    size_t removed = 0;
    if (retention_prune(fixture->root, &fixture->machine, &clock.clock, &retention, &removed, ret_bytes,
            &err) != RESULT_OK)
        fail_msg("%s", err.message);
    return removed;
}

static const struct retention DEFAULTS = {.age_ms = RETENTION_AGE_DEFAULT_MS, .keep = RETENTION_KEEP_DEFAULT};

static bool is_there(const char *directory)
{
    return access(directory, F_OK) == 0;
}

static void missing_root_is_empty(void **state)
{
    const struct fixture *fixture = *state;
    struct fixture none = *fixture;
    struct journal_index index;
    int64_t bytes = -1;
    none.root = mem_format("%s/none", fixture->root);
    assert_int_equal(journal_index_read(none.root, &fixture->machine, &index, NULL), RESULT_OK);
    assert_int_equal(index.count, 0);
    journal_index_done(&index);
    assert_int_equal(prune(&none, DEFAULTS, &bytes), 0);
    assert_int_equal(bytes, 0);
    assert_false(is_there(none.root));
    free(none.root);
}

static void index_is_newest_first_and_knows_who_lives(void **state)
{
    const struct fixture *fixture = *state;
    _cleanup_(mem_free) char *old = journal_aged(fixture, 5, true);
    _cleanup_(mem_free) char *older = journal_aged(fixture, 9, false);
    struct clock_manual clock = clock_at(TODAY_MS);
    struct journal *running = fixture_journal(fixture, &clock.clock);
    struct journal_index index;
    assert_int_equal(journal_index_read(fixture->root, &fixture->machine, &index, NULL), RESULT_OK);
    assert_int_equal(index.count, 3);
    assert_string_equal(index.items[0].path, journal_path(running));
    assert_string_equal(index.items[0].handle, journal_handle(running));
    assert_int_equal(index.items[0].liveness.verdict, OWNER_RUNNING);
    assert_int_equal(index.items[0].created_wall_ms, TODAY_MS);
    assert_non_null(strstr(index.items[1].path, old));
    assert_int_equal(index.items[1].liveness.rule, 3);
    assert_non_null(strstr(index.items[2].path, older));
    assert_int_equal(index.items[2].liveness.rule, 4);
    assert_int_equal(index.items[2].created_wall_ms, TODAY_MS - 9 * DAY_MS);
    journal_index_done(&index);
    journal_close(running);
}

static void older_than_the_limit_goes(void **state)
{
    const struct fixture *fixture = *state;
    int64_t bytes = 0;
    _cleanup_(mem_free) char *young = journal_aged(fixture, 14, true);
    _cleanup_(mem_free) char *old = journal_aged(fixture, 15, true);
    _cleanup_(mem_free) char *crashed = journal_aged(fixture, 15, false);
    _cleanup_(mem_free) char *log = mem_format("%s/out/build.log", old);
    fixture_write(log, "0123456789", 10);
    struct retention dry = DEFAULTS;
    dry.dry_run = true;
    assert_int_equal(prune(fixture, dry, &bytes), 2);
    assert_true(is_there(old));
    int64_t announced = bytes;
    assert_int_equal(prune(fixture, DEFAULTS, &bytes), 2);
    assert_int_equal(bytes, announced);
    assert_true(bytes > 10);
    assert_true(is_there(young));
    assert_false(is_there(old));
    assert_false(is_there(crashed));
    assert_int_equal(prune(fixture, DEFAULTS, &bytes), 0);
}

static void beyond_the_newest_goes_oldest_first(void **state)
{
    const struct fixture *fixture = *state;
    char *directories[6];
    int64_t bytes = 0;
    for (int i = 0; i < 6; i++)
        directories[i] = journal_aged(fixture, i, true);
    assert_int_equal(prune(fixture, (struct retention){.age_ms = 100 * DAY_MS, .keep = 4}, &bytes), 2);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(is_there(directories[i]), i < 4);
        free(directories[i]);
    }
}

static void running_ones_stay(void **state)
{
    const struct fixture *fixture = *state;
    int64_t bytes = 0;
    struct clock_manual clock = clock_at(TODAY_MS - 1000 * DAY_MS);
    struct journal *running = fixture_journal(fixture, &clock.clock);
    assert_int_equal(prune(fixture, (struct retention){.age_ms = 0, .keep = 0}, &bytes), 0);
    assert_true(is_there(journal_path(running)));
    journal_close(running);
}

static void unreadable_ones_stay(void **state)
{
    const struct fixture *fixture = *state;
    int64_t bytes = 0;
    _cleanup_(mem_free) char *damaged = journal_aged(fixture, 100, true);
    _cleanup_(mem_free) char *path = mem_format("%s/journal", damaged);
    _cleanup_(mem_free) char *empty = journal_aged(fixture, 100, true);
    _cleanup_(mem_free) char *gone = mem_format("%s/journal", empty);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "X", 1, 60), 1);
    close(fd);
    assert_int_equal(unlink(gone), 0);
    assert_int_equal(prune(fixture, (struct retention){.age_ms = 0, .keep = 0}, &bytes), 0);
    assert_true(is_there(damaged));
    assert_true(is_there(empty));
    struct journal_index index;
    assert_int_equal(journal_index_read(fixture->root, &fixture->machine, &index, NULL), RESULT_OK);
    assert_int_equal(index.count, 2);
    assert_int_equal(index.items[0].liveness.rule, 1);
    journal_index_done(&index);
}

static void links_and_foreign_names_stay(void **state)
{
    const struct fixture *fixture = *state;
    int64_t bytes = 0;
    struct fixture elsewhere = *fixture;
    elsewhere.root = mem_format("%s/elsewhere", fixture->root);
    _cleanup_(mem_free) char *target = journal_aged(&elsewhere, 100, true);
    _cleanup_(mem_free) char *link_path = mem_format("%s%s", fixture->root, strrchr(target, '/'));
    _cleanup_(mem_free) char *foreign = mem_format("%s/notes", fixture->root);
    _cleanup_(mem_free) char *file = mem_format("%s/T-7K3M-QX9C", fixture->root);
    assert_int_equal(symlink(target, link_path), 0);
    assert_int_equal(mkdir(foreign, 0700), 0);
    fixture_write(file, "", 0);
    assert_int_equal(prune(fixture, (struct retention){.age_ms = 0, .keep = 0}, &bytes), 0);
    assert_true(is_there(target) && is_there(link_path) && is_there(foreign) && is_there(file));
    struct journal_index index;
    assert_int_equal(journal_index_read(fixture->root, &fixture->machine, &index, NULL), RESULT_OK);
    assert_int_equal(index.count, 0);
    journal_index_done(&index);
    free(elsewhere.root);
}

static void aged(const char *path, int64_t wall_ms)
{
    const struct timespec times[2] = {{.tv_sec = wall_ms / 1000}, {.tv_sec = wall_ms / 1000}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void half_made_ones_go_after_a_day(void **state)
{
    const struct fixture *fixture = *state;
    int64_t bytes = 0;
    static const char *const NAMES[] = {".new-T-7K3M-QX9C", ".gone-T-7K3M-QX9C-00112233", ".other"};
    char *paths[3][2];
    for (size_t i = 0; i < 3; i++)
        for (size_t old = 0; old < 2; old++) {
            paths[i][old] = mem_format("%s/%s%zu", fixture->root, NAMES[i], old);
            _cleanup_(mem_free) char *file = mem_format("%s/journal", paths[i][old]);
            assert_int_equal(mkdir(paths[i][old], 0700), 0);
            fixture_write(file, "x", 1);
            aged(paths[i][old], TODAY_MS - (old == 1 ? 2 * DAY_MS : DAY_MS / 2));
        }
    assert_int_equal(prune(fixture, DEFAULTS, &bytes), 0);
    for (size_t i = 0; i < 3; i++)
        for (size_t old = 0; old < 2; old++) {
            assert_int_equal(is_there(paths[i][old]), old == 0 || i == 2);
            free(paths[i][old]);
        }
}

/* After a power failure nobody proves the owner dead; its journal goes with age alone, and never early. */
static void ones_of_an_earlier_boot(void **state)
{
    struct fixture fixture = *(struct fixture *)*state;
    int64_t bytes = 0;
    const struct retention keep_none = {.age_ms = RETENTION_AGE_DEFAULT_MS, .keep = 0};
    memset(fixture.executor.boot_id, 'a', 32);
    fixture.machine.container = false;
    _cleanup_(mem_free) char *directory = journal_aged(&fixture, 100, false);
    _cleanup_(mem_free) char *path = mem_format("%s/journal", directory);
    aged(path, TODAY_MS - 10 * DAY_MS); /* in this boot, which began 30 days ago */
    assert_int_equal(prune(&fixture, keep_none, &bytes), 0);
    aged(path, TODAY_MS - 20 * DAY_MS);
    assert_int_equal(prune(&fixture, keep_none, &bytes), 0);
    aged(path, TODAY_MS - 40 * DAY_MS);
    fixture.machine.container = true;
    assert_int_equal(prune(&fixture, keep_none, &bytes), 0);
    fixture.machine.container = false;
    assert_int_equal(prune(&fixture, keep_none, &bytes), 1);
}

static void located(void **state)
{
    const struct fixture *fixture = *state;
    struct error err = {0};
    char *path = NULL, handle[HANDLE_SIZE];
    _cleanup_(mem_free) char *directory = journal_aged(fixture, 1, true);
    _cleanup_(mem_free) char *expected = mem_format("%s/journal", directory);
    snprintf(handle, sizeof(handle), "%s", strrchr(directory, '/') + 1);
    assert_int_equal(journal_locate(fixture->root, handle, &path, &err), RESULT_OK);
    assert_string_equal(path, expected);
    mem_free(&path);
    char near[HANDLE_SIZE];
    memcpy(near, handle, sizeof(near));
    near[2] = near[2] == '0' ? '1' : '0';
    assert_int_equal(journal_locate(fixture->root, near, &path, &err), RESULT_ABSENT);
    assert_non_null(strstr(err.message, near));
    assert_non_null(strstr(err.remedy, handle));
    assert_null(path);
    error_done(&err);
    assert_int_equal(journal_locate("/nonexistent/journals", handle, &path, &err), RESULT_ABSENT);
    assert_non_null(err.remedy);
    error_done(&err);
}

#ifdef TENURE_FAILPOINTS
static void removal_killed_half_way_is_out_of_sight(void **state)
{
    const struct fixture *fixture = *state;
    int64_t bytes = 0;
    _cleanup_(mem_free) char *directory = journal_aged(fixture, 100, true);
    pid_t pid = checked_fork();
    if (pid == 0) {
        setenv("TENURE_FAILPOINT", "journal-remove-after-rename:kill", 1);
        prune(fixture, DEFAULTS, &bytes);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_false(is_there(directory));
    struct journal_index index;
    assert_int_equal(journal_index_read(fixture->root, &fixture->machine, &index, NULL), RESULT_OK);
    assert_int_equal(index.count, 0);
    journal_index_done(&index);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(missing_root_is_empty),
        FIXTURE_TEST(index_is_newest_first_and_knows_who_lives),
        FIXTURE_TEST(older_than_the_limit_goes),
        FIXTURE_TEST(beyond_the_newest_goes_oldest_first),
        FIXTURE_TEST(running_ones_stay),
        FIXTURE_TEST(unreadable_ones_stay),
        FIXTURE_TEST(links_and_foreign_names_stay),
        FIXTURE_TEST(half_made_ones_go_after_a_day),
        FIXTURE_TEST(ones_of_an_earlier_boot),
        FIXTURE_TEST(located),
#ifdef TENURE_FAILPOINTS
        FIXTURE_TEST(removal_killed_half_way_is_out_of_sight),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
