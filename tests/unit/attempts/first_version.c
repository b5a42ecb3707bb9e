/* Records of version 1: read, worth at most a ttl, replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/recovery.h"
#include "base/files.h"
#include "base/memory.h"

#define ID    "0192e4a0-0000-7000-8000-000000000001"
#define HOUR  INT64_C(3600000)
#define START INT64_C(1700000000000)

struct place {
    char *directory, *url;
    struct clock_manual clock;
    struct machine machine;
    struct executor executor;
    struct store *store;
    struct credential credential;
};

static int setup(void **state)
{
    struct place *place = mem_alloc(sizeof *place);
    struct store_options options = {.clock = &place->clock.clock, .machine = &place->machine};
    const char *base = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";

    place->directory = mem_format("%s/tenure-first-XXXXXX", base);
    assert_non_null(mkdtemp(place->directory));
    place->url = mem_format("sqlite:%s/store.db", place->directory);
    options.url = place->url;
    clock_manual_init(&place->clock, 5000000, START);
    strcpy(place->machine.machine_id, "0123456789abcdef0123456789abcdef");
    strcpy(place->machine.boot_id, "boot");
    assert_int_equal(executor_self(&place->machine, &place->executor, NULL), RESULT_OK);
    assert_int_equal(store_open(&options, STORE_WRITE, &place->store, NULL), RESULT_OK);
    strcpy(place->credential.attempt_id, ID);
    *state = place;
    return 0;
}

static int teardown(void **state)
{
    struct place *place = *state;

    store_close(place->store);
    assert_int_equal(directory_remove(-1, place->directory, NULL), RESULT_OK);
    free(place->directory);
    free(place->url);
    free(place);
    return 0;
}

/* As such a program wrote it: RFC 3339 times, and neither ttl, renewal, epoch nor executor. */
static void record_insert(struct place *place, const char *acquired, const char *renewed, const char *expires)
{
    static const char SQL[] =
        "INSERT INTO attempt (fence, id, token_digest, kind, state, repository, subjects, host, "
        "acquired_at, renewed_at, expires_at, rev, record_version) "
        "VALUES (1, ?1, ?2, 'done', 'running', 'repository', 'a', 'old-host', ?3, ?4, ?5, 1, 1)";
    uint8_t digest[TOKEN_DIGEST_BYTES];
    sqlite3_stmt *statement = NULL;
    sqlite3 *db = NULL;

    token_digest(place->credential.token, digest);
    assert_int_equal(sqlite3_open(place->url + strlen("sqlite:"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, SQL, -1, &statement, NULL), SQLITE_OK);
    sqlite3_bind_text(statement, 1, ID, -1, SQLITE_STATIC);
    sqlite3_bind_blob(statement, 2, digest, sizeof digest, SQLITE_STATIC);
    sqlite3_bind_text(statement, 3, acquired, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 4, renewed, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 5, expires, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
    assert_int_equal(
        sqlite3_exec(db, "INSERT INTO subject VALUES ('a', '" ID "')", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void nine_hours(struct place *place)
{
    char acquired[CLOCK_TEXT_SIZE], expires[CLOCK_TEXT_SIZE];

    clock_format_utc(START, acquired);
    clock_format_utc(START + 9 * HOUR, expires);
    record_insert(place, acquired, NULL, expires);
}

static enum result recover(struct place *place, struct attempt *holder)
{
    static const char *const SUBJECT = "a";
    struct reservation reservation;
    _cleanup_(attempt_done) struct attempt attempt = {0};
    _cleanup_(recovery_report_done) struct recovery_report report = {0};

    reservation_init(&reservation, &place->clock.clock);
    reservation.subjects = &SUBJECT;
    reservation.subject_count = 1;
    reservation.executor = &place->executor;
    return recovery_reserve(place->store, &reservation, NULL, NULL, &report, &attempt, holder, NULL);
}

static void a_nine_hour_claim_is_readable_and_worth_sixty_seconds(void **state)
{
    struct place *place = *state;
    struct store_time now;
    _cleanup_(attempt_done) struct attempt attempt = {0};

    nine_hours(place);
    assert_int_equal(store_find(place->store, ID, &attempt, NULL), RESULT_OK);
    assert_int_equal(store_now(place->store, &now, NULL), RESULT_OK);
    assert_int_equal(attempt.record_version, 1);
    assert_true(attempt.lease.by_wall_clock);
    assert_true(lease_expiry(&attempt.lease) == START + LEASE_TTL_DEFAULT_MS);
    assert_int_equal(lease_remaining_ms(&attempt.lease, &now), LEASE_TTL_DEFAULT_MS + 1);
    assert_true(attempt.acquired_wall_ms == START);
    assert_true(attempt.renewed_wall_ms == LEASE_TIME_NONE);
    assert_string_equal(attempt.executor.host, "old-host");
    assert_string_equal(attempt.executor.machine_id, "");
    assert_int_equal(attempt.executor.pid, 0);
}

static void it_is_replaced_after_at_most_its_worth(void **state)
{
    struct place *place = *state;
    _cleanup_(attempt_done) struct attempt holder = {0}, ended = {0};
    _cleanup_(leftover_list_done) struct leftover_list leftovers = {0};

    nine_hours(place);
    place->clock.now_wall_ms = START + LEASE_TTL_DEFAULT_MS;
    assert_int_equal(recover(place, &holder), RESULT_HELD);
    assert_string_equal(holder.id, ID);
    place->clock.now_wall_ms += 1000;
    assert_int_equal(recover(place, NULL), RESULT_OK);
    assert_int_equal(store_find(place->store, ID, &ended, NULL), RESULT_OK);
    assert_int_equal(ended.state, ATTEMPT_CANCELLED);
    assert_string_equal(ended.reason.code, "lapsed");
    assert_int_equal(store_leftovers(place->store, &leftovers, NULL), RESULT_OK);
    assert_int_equal(leftovers.count, 0);
}

static void its_owner_can_renew_in_its_own_form(void **state)
{
    struct place *place = *state;
    struct renewal renewal = {.credential = &place->credential};
    _cleanup_(attempt_done) struct attempt attempt = {0};

    nine_hours(place);
    place->clock.now_wall_ms = START + 30000;
    assert_int_equal(store_renew(place->store, &renewal, 1, NULL), RESULT_OK);
    assert_int_equal(renewal.result, RESULT_OK);
    assert_int_equal(store_find(place->store, ID, &attempt, NULL), RESULT_OK);
    assert_true(attempt.lease.by_wall_clock);
    assert_true(attempt.lease.renewed_ms == START + 30000);
    assert_true(lease_expiry(&attempt.lease) == START + 90000);
}

static void unreadable_times_have_lapsed(void **state)
{
    static const char *const TIMES[][3] = {
        {"yesterday", NULL, "2023-11-15T00:00:00Z"},
        {"2023-11-14T22:13:20Z", NULL, NULL},
        {"2023-11-14T22:13:20Z", "", "2023-11-15T00:00:00Z"},
        {"2023-11-14T22:13:20Z", "2099-01-01T00:00:00Z", "2099-01-01T00:00:00Z"},
        {"1700000000000", NULL, "1800000000000"},
        {NULL, NULL, NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(TIMES); i++) {
        struct place *place = NULL;
        assert_int_equal(setup((void **)&place), 0);
        record_insert(place, TIMES[i][0], TIMES[i][1], TIMES[i][2]);
        assert_int_equal(recover(place, NULL), RESULT_OK);
        assert_int_equal(teardown((void **)&place), 0);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_nine_hour_claim_is_readable_and_worth_sixty_seconds, setup, teardown),
        cmocka_unit_test_setup_teardown(it_is_replaced_after_at_most_its_worth, setup, teardown),
        cmocka_unit_test_setup_teardown(its_owner_can_renew_in_its_own_form, setup, teardown),
        cmocka_unit_test(unreadable_times_have_lapsed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
