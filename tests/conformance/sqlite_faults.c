/* Crashes, lost answers and full disks. */
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

#include "attempts/recovery.h"
#include "base/failpoint.h"
#include "base/files.h"
#include "base/memory.h"
#include "tests/conformance/conformance.h"

/* ---- a whole life, whose every step may be the last ---- */

struct life {
    enum result open, reserve, bind, renew, evidence, cancel, settle, ask, retire;
    struct credential done, dead;
    struct settlement settlement;
};

static void live(struct world *world, struct life *life)
{
    struct store_options options = world_options(world);
    struct reservation reservation = reservation_of(world, KIND_DONE, "a"),
                       victim = reservation_of(world, KIND_DONE, "b");
    struct proof_row proof = proof_of(world, "proof");
    struct leftover_list leftovers = {0};
    struct store *store = NULL;

    settlement_init(&life->settlement, ATTEMPT_PASSED);
    life->settlement.reason_code = "passed";
    life->settlement.proof = &proof;
    life->open = store_open(&options, STORE_WRITE, &store, NULL);
    if (life->open != RESULT_OK)
        return;
    life->reserve = try_reserve(store, &reservation);
    life->done = reservation.credential;
    life->bind = store_bind(store, &reservation.credential, "demand", NULL);
    life->renew = renew(store, &reservation.credential);
    life->evidence = put_evidence(store, &reservation.credential, "key", true);
    life->cancel = store_request_cancel(store, reservation.credential.attempt_id, "me", NULL);
    life->settle = store_settle(store, &reservation.credential, &life->settlement, NULL);
    life->ask = store_settle_ask(store, &reservation.credential, &life->settlement, NULL);
    if (try_reserve(store, &victim) == RESULT_OK)
        life->retire = retire(store, victim.credential.attempt_id, 1, true, NULL);
    life->dead = victim.credential;
    if (store_leftovers(store, &leftovers, NULL) == RESULT_OK && leftovers.count)
        (void)!store_leftover_delete(store, leftovers.items[0].attempt_id, NULL);
    leftover_list_done(&leftovers);
    store_close(store);
}

static void live_in_a_child(struct world *world, int index _unused_, void *answer)
{
    live(world, answer);
}

static int64_t count(struct world *world, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    int64_t number = -1;

    assert_int_equal(sqlite3_open_v2(strchr(world->url, '/'), &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return number;
}

/* What must hold in every store at every moment. */
static void check_invariants(struct world *world)
{
    assert_int_equal(
        count(world, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"), 0);
    assert_int_equal(count(world, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
    assert_int_equal(
        count(world, "SELECT count(*) FROM subject LEFT JOIN attempt ON attempt.id = subject.attempt "
                     "WHERE attempt.state IS NULL OR attempt.state NOT IN ('planning', 'running')"),
        0);
    assert_int_equal(count(world, "SELECT count(*) FROM attempt WHERE state IN ('planning', 'running') AND "
                                  "NOT EXISTS (SELECT 1 FROM subject WHERE attempt = attempt.id)"),
        0);
    assert_int_equal(
        count(world, "SELECT count(*) FROM attempt LEFT JOIN proof ON proof.attempt = attempt.id "
                     "WHERE kind = 'done' AND (state = 'passed') <> (proof.id IS NOT NULL)"),
        0);
    assert_int_equal(count(world, "SELECT count(*) FROM attempt WHERE fence > (SELECT last FROM fence)"), 0);
    assert_int_equal(
        count(world, "SELECT count(*) FROM attempt WHERE NOT EXISTS "
                     "(SELECT 1 FROM history WHERE attempt = attempt.id AND event = 'reserved')"),
        0);
}

static enum owner_verdict always_gone(void *context _unused_, const struct attempt *attempt _unused_)
{
    return OWNER_GONE;
}

static void check_next_run(struct world *world)
{
    struct store *store = world_open(world);
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");
    _cleanup_(recovery_report_done) struct recovery_report report = {0};
    _cleanup_(attempt_done) struct attempt attempt = {0};

    OK(recovery_reserve(store, &reservation, always_gone, NULL, &report, &attempt, NULL, NULL));
    assert_int_equal(report.trouble_count, 0);
    OK(settle(store, &reservation.credential, ATTEMPT_FAILED));
    store_close(store);
    check_invariants(world);
}

static void world_renew(struct world *world)
{
    backend->discard(world->url);
    free(world->url);
    world->url = backend->make();
}

static bool named_before(size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(failpoint_name(i), failpoint_name(index)) == 0)
            return true;
    return false;
}

/* Kills a fresh life at hit number `hit` of the point. True when that was reached. */
static bool killed_at(struct world *world, const char *name, int hit)
{
    _cleanup_(mem_free) char *plan = mem_format("%s:kill@%d", name, hit);
    struct life life;
    bool survived = false;

    world_renew(world);
    setenv("TENURE_FAILPOINT", plan, 1);
    world_fork(world, 1, live_in_a_child, &life, sizeof life);
    unsetenv("TENURE_FAILPOINT");
    survived = life.retire == RESULT_OK && life.dead.attempt_id[0] != '\0';
    check_next_run(world);
    return !survived;
}

static void killed_anywhere_the_store_is_whole_and_the_next_run_works(void **state)
{
    struct world *world = *state;
    int points = 0, kills = 0;

    if (!failpoint_name(0)) {
        print_message("built without failpoints: not tested\n");
        skip();
    }
    world_close(world);
    for (size_t i = 0; failpoint_name(i); i++) {
        int hit = 0;
        if (named_before(i))
            continue;
        points++;
        while (killed_at(world, failpoint_name(i), ++hit))
            kills++;
    }
    print_message("%d points, %d kills\n", points, kills);
    assert_true(points >= 20 && kills >= points - 6);
}

/* ---- the answer of a commit is lost ---- */

static const struct {
    const char *name;
    size_t offset; /* of the result in struct life */
} LOSSES[] = {
    {"reserve", offsetof(struct life, reserve)},
    {"bind", offsetof(struct life, bind)},
    {"renew", offsetof(struct life, renew)},
    {"evidence", offsetof(struct life, evidence)},
    {"cancel", offsetof(struct life, cancel)},
    {"settle", offsetof(struct life, settle)},
    {"retire", offsetof(struct life, retire)},
};

static void a_lost_answer_is_unknown(void **state)
{
    struct world *world = *state;
    static const char *const WHEN[] = {"before", "after"};

    if (!failpoint_name(0))
        skip();
    world_close(world);
    for (size_t i = 0; i < ARRAY_SIZE(LOSSES); i++)
        for (size_t w = 0; w < ARRAY_SIZE(WHEN); w++) {
            _cleanup_(mem_free) char *plan = mem_format("%s-%s-commit:error@1", LOSSES[i].name, WHEN[w]);
            struct life life = {0};
            world_renew(world);
            setenv("TENURE_FAILPOINT", plan, 1);
            live(world, &life);
            unsetenv("TENURE_FAILPOINT");
            assert_int_equal(*(enum result *)((char *)&life + LOSSES[i].offset), RESULT_UNKNOWN);
            check_next_run(world);
        }
}

static void asking_tells_on_which_side_a_lost_settlement_fell(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_DONE, "a");
    struct proof_row proof = proof_of(world, "proof");
    struct settlement settlement;

    if (!failpoint_name(0))
        skip();
    settlement_init(&settlement, ATTEMPT_PASSED);
    settlement.proof = &proof;
    setenv("TENURE_FAILPOINT", "settle-before-commit:error", 1);
    REFUSED(world, RESULT_UNKNOWN, store_settle(world->a, &credential, &settlement, NULL));
    unsetenv("TENURE_FAILPOINT");
    REFUSED(world, RESULT_CONFLICT, store_settle_ask(world->b, &credential, &settlement, NULL));
    setenv("TENURE_FAILPOINT", "settle-after-commit:error", 1);
    assert_int_equal(store_settle(world->a, &credential, &settlement, NULL), RESULT_UNKNOWN);
    unsetenv("TENURE_FAILPOINT");
    REFUSED(world, RESULT_OK, store_settle_ask(world->b, &credential, &settlement, NULL));
    REFUSED(world, RESULT_OK, store_settle(world->b, &credential, &settlement, NULL));
}

static void a_lost_reserve_is_answered_by_repeating_it(void **state)
{
    struct world *world = *state;
    struct reservation reservation = reservation_of(world, KIND_DONE, "a");

    if (!failpoint_name(0))
        skip();
    setenv("TENURE_FAILPOINT", "reserve-after-commit:error", 1);
    assert_int_equal(try_reserve(world->a, &reservation), RESULT_UNKNOWN);
    unsetenv("TENURE_FAILPOINT");
    assert_int_equal(reservation.credential.fence, 0);
    REFUSED(world, RESULT_OK, try_reserve(world->b, &reservation));
    assert_true(reservation.credential.fence > 0);
}

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
    check_invariants(world);
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
        TEST(killed_anywhere_the_store_is_whole_and_the_next_run_works),
        TEST(a_lost_answer_is_unknown),
        TEST(asking_tells_on_which_side_a_lost_settlement_fell),
        TEST(a_lost_reserve_is_answered_by_repeating_it),
        TEST(an_unknown_renewal_is_unconfirmed),
        TEST(a_foreign_reader_delays_a_commit_and_no_more),
        TEST(a_reader_sees_nothing_of_a_commit_that_never_was),
        TEST(a_store_that_was_moved_away_is_written_no_more),
        TEST(a_full_disk_refuses_clearly_and_heals),
    };

    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
