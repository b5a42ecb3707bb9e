/* The writer: whole before it is seen, broken for good once a write failed, taken up after a death. */
#include "fixture.h"

#include <dirent.h>

#include "journal/reader.h"

static size_t entries_of(const char *path, const char *prefix)
{
    size_t count = 0;
    DIR *stream = opendir(path);
    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                 strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    closedir(stream);
    return count;
}

static mode_t mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(lstat(path, &status), 0);
    return status.st_mode & 07777;
}

static size_t records_of(const char *path)
{
    _cleanup_(journal_reader_cleanup) struct journal_reader *reader = NULL;
    struct journal_event event;
    size_t count = 0;
    assert_int_equal(journal_reader_open(path, &reader, NULL), RESULT_OK);
    while (journal_reader_next(reader, &event, NULL) == RESULT_OK) {
        journal_event_done(&event);
        count++;
    }
    return count;
}

static void creation(void **state)
{
    const struct fixture *fixture = *state;
    struct error err = {0};
    struct journal *journal = NULL;
    _cleanup_(mem_free) char *root = mem_format("%s/a/b/journals", fixture->root);
    const struct journal_options options = {.root = root,
        .clock = clock_system(),
        .executor = &fixture->executor,
        .attempt = "01890000-0000-7000-8000-000000000000"};
    mode_t mask = umask(0);
    assert_int_equal(journal_create(&options, &journal, &err), RESULT_OK);
    umask(mask);
    _cleanup_(mem_free) char *out = mem_format("%s/out", journal_directory(journal));
    _cleanup_(mem_free) char *expected = mem_format("%s/%s/journal", root, journal_handle(journal));
    assert_string_equal(journal_path(journal), expected);
    assert_int_equal(mode_of(root), 0700);
    assert_int_equal(mode_of(journal_directory(journal)), 0700);
    assert_int_equal(mode_of(out), 0700);
    assert_int_equal(mode_of(journal_path(journal)), 0600);
    assert_int_equal(entries_of(root, ""), 1);
    assert_int_equal(records_of(journal_path(journal)), 0);

    _cleanup_(journal_reader_cleanup) struct journal_reader *reader = NULL;
    struct stat status;
    assert_int_equal(stat(journal_path(journal), &status), 0);
    assert_int_equal(journal_reader_open(journal_path(journal), &reader, &err), RESULT_OK);
    const struct journal_header *header = journal_reader_header(reader);
    assert_int_equal(header->device, status.st_dev);
    assert_int_equal(header->inode, status.st_ino);
    assert_string_equal(header->handle, journal_handle(journal));
    assert_string_equal(header->attempt, options.attempt);
    assert_string_equal(header->tenure, TENURE_VERSION);
    assert_string_equal(header->executor.incarnation, fixture->executor.incarnation);
    journal_close(journal);
}

static void creation_where_it_cannot_be(void **state)
{
    const struct fixture *fixture = *state;
    struct error err = {0};
    struct journal *journal = NULL;
    _cleanup_(mem_free) char *file = mem_format("%s/file", fixture->root);
    _cleanup_(mem_free) char *root = mem_format("%s/journals", file);
    fixture_write(file, "", 0);
    const struct journal_options options = {
        .root = root, .clock = clock_system(), .executor = &fixture->executor};
    assert_int_not_equal(journal_create(&options, &journal, &err), RESULT_OK);
    assert_null(journal);
    assert_non_null(strstr(err.message, file));
    error_done(&err);
}

static void creation_that_fails_leaves_nothing(void **state)
{
    const struct fixture *fixture = *state;
    struct error err = {0};
    struct journal *journal = NULL;
    const struct journal_options options = {
        .root = fixture->root, .clock = clock_system(), .executor = &fixture->executor};
    struct rlimit before = file_limit_set(100);
    enum result r = journal_create(&options, &journal, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(r, RESULT_SYSTEM);
    assert_int_equal(err.errnum, EFBIG);
    assert_int_equal(entries_of(fixture->root, ""), 0);
    error_done(&err);
}

#ifdef TENURE_FAILPOINTS
static void killed_at(const struct fixture *fixture, const char *point)
{
    pid_t pid = checked_fork();
    if (pid == 0) {
        setenv("TENURE_FAILPOINT", point, 1);
        struct journal *journal = fixture_journal(fixture, clock_system());
        const struct journal_event event = {.kind = JOURNAL_NOTE, .text = "a note to be torn"};
        (void)!journal_append(journal, &event, JOURNAL_DURABLE, NULL);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void creation_killed_is_never_half_seen(void **state)
{
    const struct fixture *fixture = *state;
    static const char *const POINTS[] = {
        "journal-create-before-header:kill", "journal-create-before-sync:kill", "journal-before-rename:kill"};
    for (size_t i = 0; i < ARRAY_SIZE(POINTS); i++) {
        killed_at(fixture, POINTS[i]);
        assert_int_equal(entries_of(fixture->root, ".new-"), i + 1);
        assert_int_equal(entries_of(fixture->root, "T-"), 0);
    }
    killed_at(fixture, "journal-after-rename:kill");
    assert_int_equal(entries_of(fixture->root, "T-"), 1);
}

static char *only_journal(const struct fixture *fixture)
{
    char *path = NULL;
    DIR *stream = opendir(fixture->root);
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;)
        if (strncmp(entry->d_name, "T-", 2) == 0)
            path = mem_format("%s/%s/journal", fixture->root, entry->d_name);
    closedir(stream);
    assert_non_null(path);
    return path;
}

static void torn_by_a_crash(void **state)
{
    const struct fixture *fixture = *state;
    killed_at(fixture, "journal-append-half:kill");
    _cleanup_(mem_free) char *path = only_journal(fixture);
    _cleanup_(text_done) struct text before = {0}, after = {0};
    fixture_read(path, &before);
    assert_int_not_equal(before.bytes[before.length - 1], '\n');
    assert_int_equal(records_of(path), 0);
    fixture_read(path, &after);
    assert_int_equal(after.length, before.length);
}

static void breaks_with(const struct fixture *fixture, const char *point)
{
    struct error err = {0};
    const struct journal_event event = {.kind = JOURNAL_NOTE, .text = "x"};
    struct journal *journal = fixture_journal(fixture, clock_system());
    char head[2 * DIGEST_SHORT_BYTES + 1], later[2 * DIGEST_SHORT_BYTES + 1];
    fixture_note(journal, "before");
    setenv("TENURE_FAILPOINT", point, 1);
    assert_int_equal(journal_append(journal, &event, JOURNAL_DURABLE, &err), RESULT_SYSTEM);
    assert_true(journal_is_broken(journal));
    assert_non_null(strstr(err.message, journal_path(journal)));
    error_done(&err);
    unsetenv("TENURE_FAILPOINT");
    _cleanup_(text_done) struct text there = {0}, still = {0};
    fixture_read(journal_path(journal), &there);
    journal_head(journal, head);
    /* Said once; then it goes on in silence, and the file is left alone. */
    assert_int_equal(journal_append(journal, &event, JOURNAL_DURABLE, NULL), RESULT_OK);
    assert_int_equal(journal_sync(journal, NULL), RESULT_OK);
    fixture_read(journal_path(journal), &still);
    journal_head(journal, later);
    assert_int_equal(there.length, still.length);
    assert_string_equal(head, later);
    /* It stays locked: its owner is alive. */
    const struct liveness_question question = {.path = journal_path(journal), .machine = &fixture->machine};
    assert_int_equal(liveness_probe(&question).verdict, OWNER_RUNNING);
    journal_close(journal);
}

static void broken_by_a_failed_sync(void **state)
{
    breaks_with(*state, "journal-sync:error");
}

static void broken_by_a_torn_write(void **state)
{
    breaks_with(*state, "journal-append-torn:error");
}

static void not_made_on_a_full_disk(void **state)
{
    const struct fixture *fixture = *state;
    _cleanup_(error_done) struct error err = {0};
    struct journal *journal = NULL;
    const struct journal_options options = {
        .root = fixture->root, .clock = clock_system(), .executor = &fixture->executor};
    setenv("TENURE_FAILPOINT", "journal-create-header:error", 1);
    enum result r = journal_create(&options, &journal, &err);
    unsetenv("TENURE_FAILPOINT");
    assert_int_equal(r, RESULT_UNREACHABLE);
    assert_non_null(strstr(err.remedy, "make room"));
    assert_null(journal);
}
#endif

static void broken_by_a_full_disk(void **state)
{
    const struct fixture *fixture = *state;
    struct error err = {0};
    struct stat status;
    const struct journal_event event = {.kind = JOURNAL_NOTE, .text = "does not fit"};
    struct journal *journal = fixture_journal(fixture, clock_system());
    fixture_note(journal, "fits");
    assert_int_equal(stat(journal_path(journal), &status), 0);
    struct rlimit before = file_limit_set((rlim_t)status.st_size + 20);
    enum result first = journal_append(journal, &event, JOURNAL_LAZY, &err);
    enum result second = journal_append(journal, &event, JOURNAL_LAZY, NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(first, RESULT_SYSTEM);
    assert_int_equal(err.errnum, EFBIG);
    assert_int_equal(second, RESULT_OK);
    assert_true(journal_is_broken(journal));
    error_done(&err);
    journal_close(journal);
}

struct seen {
    size_t count;
    int64_t last_done, boot_ms;
};

static void see(void *context, const struct journal_event *event)
{
    struct seen *seen = context;
    seen->count++;
    seen->last_done = event->done;
    seen->boot_ms = event->boot_ms;
}

static void progress_at_most_twice_a_second(void **state)
{
    struct clock_manual clock;
    struct seen seen = {0};
    clock_manual_init(&clock, 1000, 1796067000000);
    struct journal *journal = fixture_journal(*state, &clock.clock);
    journal_set_tap(journal, see, &seen);
    for (int i = 0; i <= 1000; i++) { /* ten seconds of it */
        const struct journal_event event = {
            .kind = JOURNAL_PROGRESS, .phase = "producers", .done = i, .total = 1000};
        fixture_append(journal, &event);
        clock.now_boot_ms += 10;
    }
    assert_int_equal(seen.count, 1001); /* the tap sees all of it */
    assert_int_equal(seen.boot_ms, 11000);
    assert_in_range(records_of(journal_path(journal)), 20, 21);
    size_t before = records_of(journal_path(journal));
    const struct journal_event late = {
        .kind = JOURNAL_PROGRESS, .phase = "settling", .done = 7, .total = 1000};
    fixture_append(journal, &late);
    assert_int_equal(records_of(journal_path(journal)), before);
    /* What was held back comes with the next record, once it may. */
    clock.now_boot_ms += 500;
    fixture_note(journal, "after a while");
    assert_int_equal(records_of(journal_path(journal)), before + 2);
    journal_close(journal);
}

static void nothing_follows_settled(void **state)
{
    const struct journal_event event = {.kind = JOURNAL_NOTE, .text = "too late"};
    const struct journal_event header = {.kind = JOURNAL_HEADER}, unknown = {.kind = JOURNAL_UNKNOWN};
    struct journal *journal = fixture_journal(*state, clock_system());
    assert_int_equal(journal_append(journal, &header, JOURNAL_LAZY, NULL), RESULT_INVALID);
    assert_int_equal(journal_append(journal, &unknown, JOURNAL_LAZY, NULL), RESULT_INVALID);
    fixture_settle(journal);
    assert_int_equal(journal_append(journal, &event, JOURNAL_LAZY, NULL), RESULT_INVALID);
    assert_int_equal(records_of(journal_path(journal)), 1);
    journal_close(journal);
}

static void head_is_the_chain_of_the_last_record(void **state)
{
    char head[2 * DIGEST_SHORT_BYTES + 1];
    _cleanup_(text_done) struct text text = {0};
    struct journal *journal = fixture_journal(*state, clock_system());
    fixture_note(journal, "one");
    fixture_note(journal, "two");
    journal_head(journal, head);
    fixture_read(journal_path(journal), &text);
    assert_int_equal(text.bytes[text.length - 1], '\n');
    text.bytes[text.length - 1] = '\0';
    assert_non_null(strstr(strrchr(text.bytes, '\n'), head));
    journal_close(journal);
}

static void discarded(void **state)
{
    const struct fixture *fixture = *state;
    journal_discard(fixture_journal(fixture, clock_system()));
    assert_int_equal(entries_of(fixture->root, ""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(creation),
        FIXTURE_TEST(creation_where_it_cannot_be),
        FIXTURE_TEST(creation_that_fails_leaves_nothing),
#ifdef TENURE_FAILPOINTS
        FIXTURE_TEST(creation_killed_is_never_half_seen),
        FIXTURE_TEST(torn_by_a_crash),
        FIXTURE_TEST(broken_by_a_failed_sync),
        FIXTURE_TEST(broken_by_a_torn_write),
        FIXTURE_TEST(not_made_on_a_full_disk),
#endif
        FIXTURE_TEST(broken_by_a_full_disk),
        FIXTURE_TEST(progress_at_most_twice_a_second),
        FIXTURE_TEST(nothing_follows_settled),
        FIXTURE_TEST(head_is_the_chain_of_the_last_record),
        FIXTURE_TEST(discarded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
