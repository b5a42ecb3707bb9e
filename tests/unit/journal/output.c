/* Output logs: exact bytes, a cap, and a statement where something is missing. */
#include "fixture.h"

#include "journal/output-private.h"
#include "journal/output.h"

enum { CAP = 1000 };

static struct output *output_of(const struct fixture *fixture, const char *producer, int64_t cap_bytes)
{
    struct error err = {0};
    struct output *output = NULL;
    if (output_create(fixture->root, producer, cap_bytes, &output, &err) != RESULT_OK)
        fail_msg("%s", err.message);
    return output;
}

static void put(struct output *output, const void *bytes, size_t length)
{
    struct error err = {0};
    if (output_write(output, bytes, length, &err) != RESULT_OK)
        fail_msg("%s", err.message);
}

/* Bytes that tell where they came from: 32 bits of a counter, spread. */
static void pattern(struct text *ret, size_t length)
{
    for (uint32_t i = 0; ret->length < length; i++) {
        uint32_t word = i * 2654435761u;
        text_append(ret, &word, sizeof(word));
    }
    ret->length = length;
}

static void finish(struct output *output, const void *expected, size_t length)
{
    struct error err = {0};
    char digest[DIGEST_HEX_SIZE], wanted[DIGEST_HEX_SIZE];
    if (output_finish(output, digest, &err) != RESULT_OK)
        fail_msg("%s", err.message);
    _cleanup_(text_done) struct text text = {0};
    fixture_read(output_path(output), &text);
    assert_int_equal(text.length, length);
    assert_memory_equal(text.bytes, expected, length);
    digest_hex(text.bytes, text.length, wanted);
    assert_string_equal(digest, wanted);
    assert_int_equal(output_readable_bytes(output), length);
    _cleanup_(mem_free) char *tail =
        mem_format("%.*s.tail", (int)strlen(output_path(output)) - 4, output_path(output));
    assert_int_equal(access(tail, F_OK), -1);
    /* Once more: the same answer. */
    assert_int_equal(output_finish(output, digest, NULL), RESULT_OK);
    assert_string_equal(digest, wanted);
}

/* What a log of `text` looks like under a cap. */
static void expected_log(const struct text *text, size_t cap, struct text *ret)
{
    size_t head = cap / 2, tail = cap - cap / 2;
    if (text->length <= cap) {
        text_append(ret, text->bytes, text->length);
        return;
    }
    text_append(ret, text->bytes, head);
    output_statement((int64_t)(text->length - cap), NULL, ret);
    text_append(ret, text->bytes + text->length - tail, tail);
}

static void one_size(const struct fixture *fixture, size_t length, size_t cap, size_t step)
{
    _cleanup_(text_done) struct text text = {0}, expected = {0};
    struct output *output = output_of(fixture, "build", (int64_t)cap);
    pattern(&text, length);
    for (size_t at = 0; at < length; at += step)
        put(output, text.bytes + at, length - at < step ? length - at : step);
    assert_int_equal(output_total_bytes(output), length);
    assert_int_equal(output_dropped_bytes(output), length > cap ? length - cap : 0);
    expected_log(&text, cap, &expected);
    finish(output, expected.bytes, expected.length);
    assert_int_equal(output_dropped_bytes(output), length > cap ? length - cap : 0);
    output_close(output);
}

static void sizes_around_the_cap(void **state)
{
    static const size_t SIZES[] = {
        0, 1, CAP / 2 - 1, CAP / 2, CAP / 2 + 1, CAP - 1, CAP, CAP + 1, 2 * CAP, 10 * CAP};
    static const size_t STEPS[] = {1, 7, 499, 500, 501, CAP, 10 * CAP};
    for (size_t i = 0; i < ARRAY_SIZE(SIZES); i++)
        for (size_t j = 0; j < ARRAY_SIZE(STEPS); j++)
            one_size(*state, SIZES[i], CAP, STEPS[j]);
}

static void ring_that_turns_often(void **state)
{
    one_size(*state, 5000000, 600001, 65536);
    one_size(*state, 3000000, 400000, 1000003);
    one_size(*state, 3000000, 4, 4099);
    one_size(*state, 1000, 1, 3);
    one_size(*state, 1000, 0, 3);
}

static void statement_says_how_much(void **state _unused_)
{
    _cleanup_(text_done) struct text text = {0};
    output_statement(981467136, NULL, &text);
    assert_string_equal(text.bytes, "\n[tenure: 936.0 MiB (981467136 bytes) dropped here]\n");
    text_clear(&text);
    output_statement(1, "No space left on device", &text);
    assert_string_equal(text.bytes, "\n[tenure: 0.0 KiB (1 bytes) dropped here: No space left on device]\n");
}

static void every_byte_value_untouched(void **state)
{
    char every[512];
    for (size_t i = 0; i < sizeof(every); i++)
        every[i] = (char)(i % 256);
    struct output *output = output_of(*state, "binary", OUTPUT_CAP_DEFAULT_BYTES);
    put(output, every, sizeof(every));
    finish(output, every, sizeof(every));
    output_close(output);
}

static void readable_while_it_grows(void **state)
{
    struct output *output = output_of(*state, "build", CAP);
    char zeros[CAP] = {0};
    put(output, zeros, 100);
    assert_int_equal(output_readable_bytes(output), 100);
    put(output, zeros, CAP);
    assert_int_equal(output_readable_bytes(output), CAP / 2);
    struct stat status;
    assert_int_equal(stat(output_path(output), &status), 0);
    assert_int_equal(status.st_size, CAP / 2);
    assert_int_equal(status.st_mode & 0777, 0600);
    output_close(output);
}

static void names_of_producers(void **state)
{
    static const struct {
        const char *producer, *name;
    } NAMES[] = {{"build", "build.log"}, {"unit.tests-2_x", "unit.tests-2_x.log"},
        {"../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd.log"}, {".hidden", "%2Ehidden.log"},
        {"a b\n", "a%20b%0A.log"}, {"50%", "50%25.log"}, {"dr\xc3\xa9", "dr%C3%A9.log"},
        {"x~1", "x%7E1.log"}};
    for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++) {
        struct output *output = output_of(*state, NAMES[i].producer, CAP);
        assert_string_equal(output_name(output), NAMES[i].name);
        output_close(output);
    }
}

static void long_names_are_kept_apart(void **state)
{
    char one[1001] = "", other[1001] = "";
    memset(one, 'x', 1000);
    memset(other, 'x', 1000);
    other[999] = 'y';
    struct output *a = output_of(*state, one, CAP), *b = output_of(*state, other, CAP),
                  *c = output_of(*state, "", CAP);
    assert_string_not_equal(output_name(a), output_name(b));
    assert_true(strlen(output_name(a)) < 200);
    assert_int_equal(output_name(c)[0], '~');
    output_close(a);
    output_close(b);
    output_close(c);
}

static void existing_one_is_replaced(void **state)
{
    const struct fixture *fixture = *state;
    _cleanup_(mem_free) char *victim = mem_format("%s/victim", fixture->root);
    _cleanup_(mem_free) char *log = mem_format("%s/build.log", fixture->root);
    fixture_write(victim, "precious", 8);
    assert_int_equal(symlink(victim, log), 0);
    for (int round = 0; round < 2; round++) {
        struct output *output = output_of(fixture, "build", CAP);
        put(output, "new", 3);
        finish(output, "new", 3);
        output_close(output);
    }
    _cleanup_(text_done) struct text text = {0};
    fixture_read(victim, &text);
    assert_string_equal(text.bytes, "precious");
}

/* A disk that takes `limit` bytes per file. */
static void full_disk(
    const struct fixture *fixture, int64_t cap, rlim_t limit, size_t length, bool room_later)
{
    size_t refusals = 0;
    char digest[DIGEST_HEX_SIZE] = "", wanted[DIGEST_HEX_SIZE];
    _cleanup_(text_done) struct text text = {0}, log = {0};
    pattern(&text, length);
    struct output *output = output_of(fixture, "build", cap);
    struct rlimit before = file_limit_set(limit);
    for (size_t at = 0; at < length; at += 1000)
        refusals += output_write(output, text.bytes + at, 1000, NULL) != RESULT_OK;
    if (room_later)
        setrlimit(RLIMIT_FSIZE, &before);
    enum result r = output_finish(output, digest, NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(r, RESULT_OK);
    assert_true(refusals <= 1);
    assert_int_equal(output_total_bytes(output), length);
    assert_true(output_dropped_bytes(output) > 0);
    fixture_read(output_path(output), &log);
    digest_hex(log.bytes, log.length, wanted);
    assert_string_equal(digest, wanted);
    /* It begins with what came first, says what it lacks, and the sum is right. */
    char statement[100];
    snprintf(statement, sizeof(statement), "(%lld bytes) dropped here: File too large]\n",
        (long long)output_dropped_bytes(output));
    const char *said = memmem(log.bytes, log.length, statement, strlen(statement));
    assert_non_null(said);
    size_t kept = length - (size_t)output_dropped_bytes(output);
    assert_true(kept < log.length);
    assert_memory_equal(log.bytes, text.bytes, kept);
    output_close(output);
}

static void disk_full_in_the_head(void **state)
{
    full_disk(*state, 1000000, 10000, 50000, false);
    full_disk(*state, 1000000, 10500, 50000, false);
}

static void disk_full_in_the_tail(void **state)
{
    full_disk(*state, 20000, 10000 + 100, 50000, false);
    /* Room again at the end: what the ring took is kept. */
    full_disk(*state, 20000, 10000 + 100, 50000, true);
}

static void disk_full_while_joining(void **state)
{
    /* The ring's file is short enough, the joined log is not. */
    full_disk(*state, 100000, 60000, 75000, false);
}

static void disk_full_and_no_statement(void **state)
{
    char digest[DIGEST_HEX_SIZE] = "";
    struct error err = {0};
    struct output *output = output_of(*state, "build", 1000);
    struct rlimit before = file_limit_set(10);
    assert_int_equal(output_write(output, "0123456789abcdef", 16, &err), RESULT_SYSTEM);
    assert_int_equal(err.errnum, EFBIG);
    assert_non_null(strstr(err.message, output_path(output)));
    assert_int_equal(output_write(output, "x", 1, NULL), RESULT_OK);
    assert_int_equal(output_finish(output, digest, NULL), RESULT_OK);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(strlen(digest), DIGEST_HEX_SIZE - 1);
    assert_int_equal(output_total_bytes(output), 17);
    error_done(&err);
    output_close(output);
}

static void where_it_cannot_be(void **state)
{
    const struct fixture *fixture = *state;
    struct error err = {0};
    struct output *output = NULL;
    _cleanup_(mem_free) char *none = mem_format("%s/none", fixture->root);
    assert_int_equal(output_create(none, "build", CAP, &output, &err), RESULT_ABSENT);
    assert_null(output);
    error_done(&err);
}

static void read_all(const struct fixture *fixture, bool abandoned, struct text *ret)
{
    char buffer[333];
    size_t length = 1;
    while (length > 0) {
        struct error err = {0};
        if (output_read(fixture->root, "build.log", abandoned, (int64_t)ret->length, buffer, sizeof(buffer),
                &length, &err) != RESULT_OK)
            fail_msg("%s", err.message);
        text_append(ret, buffer, length);
    }
}

static void what_a_crash_leaves_is_readable(void **state)
{
    static const size_t SIZES[] = {100, CAP, CAP + 1, 10 * CAP, 700000};
    for (size_t i = 0; i < ARRAY_SIZE(SIZES); i++) {
        _cleanup_(text_done) struct text text = {0}, expected = {0}, head = {0}, joined = {0};
        struct output *output = output_of(*state, "build", CAP);
        pattern(&text, SIZES[i]);
        put(output, text.bytes, text.length);
        output_close(output); /* as a crash would, without an end */
        read_all(*state, false, &head);
        read_all(*state, true, &joined);
        expected_log(&text, CAP, &expected);
        size_t visible = SIZES[i] < CAP / 2 ? SIZES[i] : CAP / 2;
        assert_int_equal(head.length, visible);
        assert_int_equal(joined.length, expected.length);
        assert_memory_equal(joined.bytes, expected.bytes, expected.length);
    }
}

#ifdef TENURE_FAILPOINTS
static void killed_while_joining_is_readable(void **state)
{
    static const char *const POINTS[] = {"output-before-join:kill", "output-after-join:kill"};
    _cleanup_(text_done) struct text text = {0}, expected = {0};
    pattern(&text, 10 * CAP);
    expected_log(&text, CAP, &expected);
    for (size_t i = 0; i < ARRAY_SIZE(POINTS); i++) {
        pid_t pid = checked_fork();
        if (pid == 0) {
            char digest[DIGEST_HEX_SIZE];
            struct output *output = output_of(*state, "build", CAP);
            put(output, text.bytes, text.length);
            setenv("TENURE_FAILPOINT", POINTS[i], 1);
            (void)!output_finish(output, digest, NULL);
            _exit(0);
        }
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        _cleanup_(text_done) struct text joined = {0};
        read_all(*state, true, &joined);
        assert_int_equal(joined.length, expected.length);
        assert_memory_equal(joined.bytes, expected.bytes, expected.length);
    }
}
#endif

static void names_that_lead_elsewhere_are_refused(void **state)
{
    const struct fixture *fixture = *state;
    static const char *const NAMES[] = {
        "", ".log", "../x.log", "a/b.log", "/etc/x.log", "journal", "x.tail", ".x.log"};
    char buffer[10];
    size_t length = 0;
    for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++)
        assert_int_equal(output_read(fixture->root, NAMES[i], true, 0, buffer, sizeof(buffer), &length, NULL),
            RESULT_INVALID);
    _cleanup_(mem_free) char *fifo = mem_format("%s/fifo.log", fixture->root);
    _cleanup_(mem_free) char *link_path = mem_format("%s/link.log", fixture->root);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(symlink("/etc/passwd", link_path), 0);
    assert_int_equal(output_read(fixture->root, "fifo.log", true, 0, buffer, sizeof(buffer), &length, NULL),
        RESULT_INVALID);
    assert_int_not_equal(
        output_read(fixture->root, "link.log", true, 0, buffer, sizeof(buffer), &length, NULL), RESULT_OK);
    assert_int_equal(output_read(fixture->root, "none.log", true, 0, buffer, sizeof(buffer), &length, NULL),
        RESULT_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(sizes_around_the_cap),
        FIXTURE_TEST(ring_that_turns_often),
        cmocka_unit_test(statement_says_how_much),
        FIXTURE_TEST(every_byte_value_untouched),
        FIXTURE_TEST(readable_while_it_grows),
        FIXTURE_TEST(names_of_producers),
        FIXTURE_TEST(long_names_are_kept_apart),
        FIXTURE_TEST(existing_one_is_replaced),
        FIXTURE_TEST(disk_full_in_the_head),
        FIXTURE_TEST(disk_full_in_the_tail),
        FIXTURE_TEST(disk_full_while_joining),
        FIXTURE_TEST(disk_full_and_no_statement),
        FIXTURE_TEST(where_it_cannot_be),
        FIXTURE_TEST(what_a_crash_leaves_is_readable),
#ifdef TENURE_FAILPOINTS
        FIXTURE_TEST(killed_while_joining_is_readable),
#endif
        FIXTURE_TEST(names_that_lead_elsewhere_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
