/* Following: all of it, in order, while it is written and after; and the end is noticed however it comes. */
#include "fixture.h"

#include "journal/follow.h"
#include "journal/output.h"

static struct follow *follow_of(const struct fixture *fixture, const char *path)
{
    struct error err = {0};
    struct follow *follow = NULL;
    if (follow_open(path, &fixture->machine, &follow, &err) != RESULT_OK)
        fail_msg("%s", err.message);
    return follow;
}

static void expect_event(struct follow *follow, enum journal_kind kind)
{
    struct error err = {0};
    struct journal_event event;
    enum result r = follow_next(follow, BOUND_MS, &event, &err);
    if (r != RESULT_OK)
        fail_msg("%s: %s", result_name(r), err.message);
    assert_int_equal(event.kind, kind);
    journal_event_done(&event);
}

static void expect(struct follow *follow, int64_t timeout_ms, enum result result)
{
    struct error err = {0};
    struct journal_event event;
    enum result r = follow_next(follow, timeout_ms, &event, &err);
    if (r != result)
        fail_msg("%s instead of %s: %s", result_name(r), result_name(result), err.message);
    error_done(&err);
}

static void replay_of_a_settled_one(void **state)
{
    struct journal *journal = fixture_journal(*state, clock_system());
    _cleanup_(mem_free) char *path = mem_string(journal_path(journal));
    fixture_note(journal, "one");
    fixture_settle(journal);
    journal_close(journal);
    struct follow *follow = follow_of(*state, path);
    assert_string_equal(follow_header(follow)->executor.host, ((struct fixture *)*state)->machine.host);
    expect_event(follow, JOURNAL_NOTE);
    expect_event(follow, JOURNAL_SETTLED);
    expect(follow, BOUND_MS, RESULT_ABSENT);
    expect(follow, BOUND_MS, RESULT_ABSENT);
    assert_int_equal(follow_verdict(follow).rule, 3);
    follow_close(follow);
}

static void live(void **state, const char *failpoint)
{
    const struct fixture *fixture = *state;
    struct owner owner = owner_start(fixture);
    setenv("TENURE_FAILPOINT", failpoint, 1);
    struct follow *follow = follow_of(fixture, owner.path);
    unsetenv("TENURE_FAILPOINT");
    assert_int_equal(follow_verdict(follow).verdict, OWNER_RUNNING);
    int64_t began = now_ms();
    expect(follow, 40, RESULT_BUSY);
    assert_true(now_ms() - began >= 39);
    expect(follow, 0, RESULT_BUSY);
    for (int i = 0; i < 20; i++) {
        owner_tell(&owner, 'n');
        expect_event(follow, JOURNAL_NOTE);
    }
    owner_tell(&owner, 's');
    expect_event(follow, JOURNAL_SETTLED);
    expect(follow, BOUND_MS, RESULT_ABSENT); /* at once, though its owner still runs */
    assert_int_equal(follow_verdict(follow).verdict, OWNER_RUNNING);
    follow_close(follow);
    owner_reap(&owner);
}

static void live_with_inotify(void **state)
{
    live(state, "");
}

static void live_without_inotify(void **state)
{
    live(state, "journal-watch:error");
}

/* Writes as fast as it can, with a follower beside it: nothing is lost, nothing comes twice. */
static void fast_writer(void **state)
{
    enum { COUNT = 5000 };
    struct fixture *fixture = *state;
    struct journal *journal = fixture_journal(fixture, clock_system());
    int go[2];
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    pid_t pid = checked_fork();
    if (pid == 0) {
        char byte;
        (void)!read(go[0], &byte, 1);
        for (int i = 0; i < COUNT; i++) {
            const struct journal_event event = {
                .kind = JOURNAL_OUTPUT, .producer = "build", .offset_bytes = i};
            fixture_append(journal, &event);
        }
        fixture_settle(journal);
        _exit(0);
    }
    struct follow *follow = follow_of(fixture, journal_path(journal));
    assert_int_equal(write(go[1], "x", 1), 1);
    for (int i = 0; i < COUNT; i++) {
        struct journal_event event;
        assert_int_equal(follow_next(follow, BOUND_MS, &event, NULL), RESULT_OK);
        assert_int_equal(event.offset_bytes, i);
        journal_event_done(&event);
    }
    expect_event(follow, JOURNAL_SETTLED);
    expect(follow, 0, RESULT_ABSENT);
    follow_close(follow);
    waitpid(pid, NULL, 0);
    journal_close(journal);
    close(go[0]);
    close(go[1]);
}

static void killed(void **state, const char *failpoint)
{
    const struct fixture *fixture = *state;
    struct owner owner = owner_start(fixture);
    setenv("TENURE_FAILPOINT", failpoint, 1);
    struct follow *follow = follow_of(fixture, owner.path);
    unsetenv("TENURE_FAILPOINT");
    owner_tell(&owner, 'n');
    expect_event(follow, JOURNAL_NOTE);
    pid_t killer = checked_fork();
    if (killer == 0) {
        poll(NULL, 0, 50); /* most likely the other waits by then */
        kill(owner.pid, SIGKILL);
        _exit(0);
    }
    int64_t began = now_ms();
    expect(follow, BOUND_MS, RESULT_ABSENT);
    print_message("noticed %lld ms after the start, the kill came after 50\n", (long long)(now_ms() - began));
    assert_int_equal(follow_verdict(follow).verdict, OWNER_GONE);
    assert_int_equal(follow_verdict(follow).rule, 4);
    follow_close(follow);
    waitpid(killer, NULL, 0);
    owner_reap(&owner);
}

static void killed_with_inotify(void **state)
{
    killed(state, "");
}

static void killed_without_inotify(void **state)
{
    killed(state, "journal-watch:error");
}

static void what_was_written_last_is_shown_before_the_end(void **state)
{
    const struct fixture *fixture = *state;
    struct owner owner = owner_start(fixture);
    struct follow *follow = follow_of(fixture, owner.path);
    expect(follow, 0, RESULT_BUSY);
    owner_tell(&owner, 'n');
    owner_tell(&owner, 'n');
    owner_reap(&owner);
    expect_event(follow, JOURNAL_NOTE);
    expect_event(follow, JOURNAL_NOTE);
    expect(follow, BOUND_MS, RESULT_ABSENT);
    follow_close(follow);
}

static void closed_without_settling(void **state)
{
    const struct fixture *fixture = *state;
    struct owner owner = owner_start(fixture);
    struct follow *follow = follow_of(fixture, owner.path);
    owner_tell(&owner, 'c');
    expect(follow, BOUND_MS, RESULT_ABSENT);
    follow_close(follow);
    owner_reap(&owner);
}

static void stopped_owner_is_waited_for(void **state)
{
    const struct fixture *fixture = *state;
    int status = 0;
    struct owner owner = owner_start(fixture);
    struct follow *follow = follow_of(fixture, owner.path);
    kill(owner.pid, SIGSTOP);
    assert_int_equal(waitpid(owner.pid, &status, WUNTRACED), owner.pid);
    expect(follow, 50, RESULT_BUSY);
    assert_int_equal(follow_verdict(follow).verdict, OWNER_RUNNING);
    kill(owner.pid, SIGCONT);
    owner_tell(&owner, 'n');
    expect_event(follow, JOURNAL_NOTE);
    follow_close(follow);
    owner_reap(&owner);
}

static void unsettled_copy_stays_busy(void **state)
{
    const struct fixture *fixture = *state;
    struct owner owner = owner_start(fixture);
    _cleanup_(mem_free) char *copy = mem_format("%s/copy", fixture->root);
    _cleanup_(text_done) struct text text = {0};
    owner_tell(&owner, 'n');
    owner_reap(&owner);
    fixture_read(owner.path, &text);
    fixture_write(copy, text.bytes, text.length);
    struct follow *follow = follow_of(fixture, copy);
    expect_event(follow, JOURNAL_NOTE);
    expect(follow, 20, RESULT_BUSY);
    assert_int_equal(follow_verdict(follow).verdict, OWNER_UNKNOWN);
    follow_close(follow);
}

static void damage_ends_it(void **state)
{
    const struct fixture *fixture = *state;
    struct owner owner = owner_start(fixture);
    owner_tell(&owner, 'n');
    struct stat status;
    assert_int_equal(stat(owner.path, &status), 0);
    int fd = open(owner.path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "X", 1, status.st_size - 5), 1);
    close(fd);
    struct follow *follow = follow_of(fixture, owner.path);
    expect(follow, BOUND_MS, RESULT_CORRUPT);
    follow_close(follow);
    owner_reap(&owner);
}

static void removed_while_followed(void **state)
{
    const struct fixture *fixture = *state;
    struct owner owner = owner_start(fixture);
    struct follow *follow = follow_of(fixture, owner.path);
    assert_int_equal(unlink(owner.path), 0);
    expect(follow, 10, RESULT_BUSY);
    assert_int_equal(follow_verdict(follow).verdict, OWNER_RUNNING);
    owner_reap(&owner);
    expect(follow, BOUND_MS, RESULT_ABSENT);
    follow_close(follow);
}

static size_t output_at(const struct follow *follow, int64_t offset, char *buffer, size_t size)
{
    struct error err = {0};
    size_t length = 0;
    if (follow_output(follow, "build.log", offset, buffer, size, &length, &err) != RESULT_OK)
        fail_msg("%s", err.message);
    return length;
}

static void output_beside_it(void **state)
{
    char buffer[1000], digest[DIGEST_HEX_SIZE];
    struct output *output = NULL;
    struct journal *journal = fixture_journal(*state, clock_system());
    _cleanup_(mem_free) char *path = mem_string(journal_path(journal));
    _cleanup_(mem_free) char *out = mem_format("%s/out", journal_directory(journal));
    assert_int_equal(output_create(out, "build", 20, &output, NULL), RESULT_OK);
    struct follow *follow = follow_of(*state, path);
    assert_int_equal(output_at(follow, 0, buffer, sizeof(buffer)), 0);
    assert_int_equal(output_write(output, "0123456", 7, NULL), RESULT_OK);
    assert_int_equal(output_at(follow, 0, buffer, 4), 4);
    assert_int_equal(output_at(follow, 4, buffer, sizeof(buffer)), 3);
    assert_memory_equal(buffer, "456", 3);
    assert_int_equal(output_write(output, "789abcdefghijklmnopqrstuvwxyz", 29, NULL), RESULT_OK);
    assert_int_equal(output_at(follow, 7, buffer, sizeof(buffer)), 3); /* the ring turns: only the head */
    journal_close(journal);
    /* As after a crash: the head, a statement, and the ring's ten bytes. */
    expect(follow, 0, RESULT_ABSENT);
    size_t length = output_at(follow, 10, buffer, sizeof(buffer));
    length += output_at(follow, 10 + (int64_t)length, buffer + length, sizeof(buffer) - length);
    const char rest[] = "\n[tenure: 0.0 KiB (16 bytes) dropped here]\nqrstuvwxyz";
    assert_int_equal(length, strlen(rest));
    assert_memory_equal(buffer, rest, length);
    assert_int_equal(output_finish(output, digest, NULL), RESULT_OK);
    assert_int_equal(output_at(follow, 10, buffer, sizeof(buffer)), strlen(rest));
    assert_memory_equal(buffer, rest, strlen(rest));
    assert_int_equal(output_at(follow, 1000, buffer, sizeof(buffer)), 0);
    output_close(output);
    follow_close(follow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(replay_of_a_settled_one),
        FIXTURE_TEST(live_with_inotify),
        FIXTURE_TEST(live_without_inotify),
        FIXTURE_TEST(fast_writer),
        FIXTURE_TEST(killed_with_inotify),
        FIXTURE_TEST(killed_without_inotify),
        FIXTURE_TEST(what_was_written_last_is_shown_before_the_end),
        FIXTURE_TEST(closed_without_settling),
        FIXTURE_TEST(stopped_owner_is_waited_for),
        FIXTURE_TEST(unsettled_copy_stays_busy),
        FIXTURE_TEST(damage_ends_it),
        FIXTURE_TEST(removed_while_followed),
        FIXTURE_TEST(output_beside_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
