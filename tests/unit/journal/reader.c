/* The reader: stops where the file stops being sound, says where, and never touches or waits for anything. */
#include "fixture.h"

#include "journal/reader.h"

enum ending { SOUND, TORN, DAMAGED, NOT_OPENED };

struct reading {
    enum ending ending;
    size_t records;
    bool settled; /* the last record is */
    int64_t offset;
};

static struct reading read_through(const char *path)
{
    _cleanup_(journal_reader_cleanup) struct journal_reader *reader = NULL;
    struct reading reading = {.ending = NOT_OPENED};
    struct journal_event event;
    if (journal_reader_open(path, &reader, NULL) != RESULT_OK)
        return reading;
    enum result r;
    while ((r = journal_reader_next(reader, &event, NULL)) == RESULT_OK) {
        reading.records++;
        reading.settled = event.kind == JOURNAL_SETTLED;
        journal_event_done(&event);
    }
    reading.ending = r == RESULT_CORRUPT ? DAMAGED : journal_reader_torn(reader) ? TORN : SOUND;
    reading.offset = journal_reader_offset(reader);
    return reading;
}

/* A small settled journal; *ret_path is the caller's. */
static void small_journal(const struct fixture *fixture, char **ret_path, struct text *ret)
{
    struct journal *journal = fixture_journal(fixture, clock_system());
    const struct journal_event started = {.kind = JOURNAL_STARTED, .producer = "build", .pid = 12};
    fixture_append(journal, &started);
    fixture_note(journal, "half way");
    fixture_settle(journal);
    *ret_path = mem_string(journal_path(journal));
    journal_close(journal);
    fixture_read(*ret_path, ret);
}

static void every_change_of_one_byte(void **state)
{
    _cleanup_(mem_free) char *path = NULL;
    _cleanup_(text_done) struct text text = {0};
    small_journal(*state, &path, &text);
    assert_int_equal(read_through(path).ending, SOUND);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    static const int DELTAS[] = {0x01, 0x08, 0x20, 0x80};
    for (size_t at = 0; at < text.length; at++)
        for (size_t i = 0; i < ARRAY_SIZE(DELTAS); i++) {
            char changed = (char)((unsigned char)text.bytes[at] ^ DELTAS[i]);
            assert_int_equal(pwrite(fd, &changed, 1, (off_t)at), 1);
            struct reading reading = read_through(path);
            if (reading.ending != DAMAGED && reading.ending != NOT_OPENED)
                fail_msg("byte %zu, changed by %d, goes unseen", at, DELTAS[i]);
            assert_int_equal(pwrite(fd, &text.bytes[at], 1, (off_t)at), 1);
        }
    close(fd);
}

static void every_truncation(void **state)
{
    _cleanup_(mem_free) char *path = NULL;
    _cleanup_(text_done) struct text text = {0};
    small_journal(*state, &path, &text);
    assert_int_equal(read_through(path).records, 3);
    assert_true(read_through(path).settled);
    for (size_t length = text.length; length-- > 0;) {
        assert_int_equal(truncate(path, (off_t)length), 0);
        struct reading reading = read_through(path);
        /* Between two records nothing is torn; then it is not settled, which no ended attempt's journal is.
         */
        bool boundary = length > 0 && text.bytes[length - 1] == '\n';
        assert_true(reading.ending == (boundary ? SOUND : TORN) || reading.ending == NOT_OPENED);
        assert_false(reading.settled);
        if (reading.ending == TORN)
            assert_true(reading.offset < (int64_t)length && text.bytes[reading.offset - 1] == '\n');
    }
}

static void damage_is_named_by_its_offset(void **state)
{
    struct error err = {0};
    struct journal_event event;
    _cleanup_(mem_free) char *path = NULL;
    _cleanup_(text_done) struct text text = {0};
    small_journal(*state, &path, &text);
    const char *second = strchr(strchr(text.bytes, '\n') + 1, '\n') + 1;
    char offset[32];
    snprintf(offset, sizeof(offset), "byte %zd", second - text.bytes);
    text.bytes[second - text.bytes + 50] ^= 1;
    fixture_write(path, text.bytes, text.length);
    _cleanup_(journal_reader_cleanup) struct journal_reader *reader = NULL;
    assert_int_equal(journal_reader_open(path, &reader, NULL), RESULT_OK);
    assert_int_equal(journal_reader_next(reader, &event, NULL), RESULT_OK);
    journal_event_done(&event);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(journal_reader_next(reader, &event, &err), RESULT_CORRUPT);
        assert_non_null(strstr(err.message, offset));
        assert_non_null(strstr(err.message, path));
    }
    error_done(&err);
}

static void what_is_not_a_journal(void **state)
{
    const struct fixture *fixture = *state;
    struct journal_reader *reader = NULL;
    _cleanup_(mem_free) char *path = NULL;
    _cleanup_(text_done) struct text text = {0};
    small_journal(fixture, &path, &text);
    _cleanup_(mem_free) char *fifo = mem_format("%s/fifo", fixture->root);
    _cleanup_(mem_free) char *link_path = mem_format("%s/link", fixture->root);
    _cleanup_(mem_free) char *none = mem_format("%s/none", fixture->root);
    _cleanup_(mem_free) char *below = mem_format("%s/below", path);
    _cleanup_(mem_free) char *empty = mem_format("%s/empty", fixture->root);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(symlink(path, link_path), 0);
    fixture_write(empty, "", 0);
    const struct {
        const char *path;
        enum result result;
    } CASES[] = {{fifo, RESULT_INVALID}, {link_path, RESULT_INVALID}, {fixture->root, RESULT_INVALID},
        {"/dev/null", RESULT_INVALID}, {none, RESULT_ABSENT}, {below, RESULT_ABSENT},
        {empty, RESULT_CORRUPT}};
    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        struct error err = {0};
        assert_int_equal(journal_reader_open(CASES[i].path, &reader, &err), CASES[i].result);
        assert_non_null(strstr(err.message, CASES[i].path));
        assert_null(reader);
        error_done(&err);
    }
}

static void one_that_may_not_be_read(void **state)
{
    struct journal_reader *reader = NULL;
    _cleanup_(mem_free) char *path = NULL;
    _cleanup_(text_done) struct text text = {0};
    small_journal(*state, &path, &text);
    assert_int_equal(chmod(path, 0), 0);
    pid_t pid = checked_fork();
    if (pid == 0) {
        if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
            _exit(99);
        _exit((int)journal_reader_open(path, &reader, NULL));
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), RESULT_DENIED);
}

static void two_readers_overlap_a_writer(void **state)
{
    struct journal *journal = fixture_journal(*state, clock_system());
    struct journal_reader *readers[2] = {NULL, NULL};
    struct journal_event event;
    for (int i = 0; i < 2; i++)
        assert_int_equal(journal_reader_open(journal_path(journal), &readers[i], NULL), RESULT_OK);
    char text[32];
    for (int round = 0; round < 200; round++) {
        snprintf(text, sizeof(text), "round %d", round);
        fixture_note(journal, text);
        /* One reads each record at once, the other three at a time. */
        assert_int_equal(journal_reader_next(readers[0], &event, NULL), RESULT_OK);
        assert_string_equal(event.text, text);
        journal_event_done(&event);
        assert_int_equal(journal_reader_next(readers[0], &event, NULL), RESULT_ABSENT);
        for (int i = 0; round % 3 == 2 && i < 3; i++) {
            assert_int_equal(journal_reader_next(readers[1], &event, NULL), RESULT_OK);
            journal_event_done(&event);
        }
    }
    journal_close(journal);
    journal_reader_close(readers[0]);
    journal_reader_close(readers[1]);
}

static void records_longer_than_a_read(void **state)
{
    struct journal *journal = fixture_journal(*state, clock_system());
    _cleanup_(journal_reader_cleanup) struct journal_reader *reader = NULL;
    struct journal_event event;
    char *text = mem_alloc(30001);
    memset(text, '\x01', 30000);
    for (int i = 0; i < 5; i++)
        fixture_note(journal, text);
    assert_int_equal(journal_reader_open(journal_path(journal), &reader, NULL), RESULT_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(journal_reader_next(reader, &event, NULL), RESULT_OK);
        assert_string_equal(event.text, text);
        journal_event_done(&event);
    }
    assert_int_equal(journal_reader_next(reader, &event, NULL), RESULT_ABSENT);
    free(text);
    journal_close(journal);
}

/* The story: a reader has come in the middle of a write and sees half a record; then the rest is there. */
static void half_a_record_is_seen_first(void **state)
{
    _cleanup_(mem_free) char *path = NULL;
    _cleanup_(text_done) struct text text = {0};
    _cleanup_(journal_reader_cleanup) struct journal_reader *reader = NULL;
    struct journal *journal = fixture_journal(*state, clock_system());
    struct journal_event event;
    path = mem_string(journal_path(journal));
    fixture_note(journal, "in two writes");
    journal_close(journal);
    fixture_read(path, &text);
    fixture_write(path, text.bytes, text.length - 20);
    assert_int_equal(journal_reader_open(path, &reader, NULL), RESULT_OK);
    assert_int_equal(journal_reader_next(reader, &event, NULL), RESULT_ABSENT);
    assert_true(journal_reader_torn(reader));
    /* It keeps the inode, so the header still fits. */
    fixture_write(path, text.bytes, text.length);
    assert_int_equal(journal_reader_next(reader, &event, NULL), RESULT_OK);
    assert_false(journal_reader_torn(reader));
    assert_string_equal(event.text, "in two writes");
    journal_event_done(&event);
}

static void reading_leaves_no_trace(void **state)
{
    struct stat before, after;
    _cleanup_(mem_free) char *path = NULL;
    _cleanup_(text_done) struct text text = {0};
    small_journal(*state, &path, &text);
    assert_int_equal(chmod(path, 0400), 0);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(read_through(path).ending, SOUND);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    assert_int_equal(before.st_size, after.st_size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_change_of_one_byte),
        FIXTURE_TEST(every_truncation),
        FIXTURE_TEST(damage_is_named_by_its_offset),
        FIXTURE_TEST(what_is_not_a_journal),
        FIXTURE_TEST(one_that_may_not_be_read),
        FIXTURE_TEST(two_readers_overlap_a_writer),
        FIXTURE_TEST(records_longer_than_a_read),
        FIXTURE_TEST(half_a_record_is_seen_first),
        FIXTURE_TEST(reading_leaves_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
