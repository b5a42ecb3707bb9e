/* The heartbeat against a store that answers as told: when it renews, when it does not, and that it ends. */
#include "tests/unit/supervisor/processes.h"

#include <poll.h>
#include <sys/eventfd.h>

#include "supervisor/heartbeat-private.h"
#include "supervisor/heartbeat.h"
#include "tests/unit/supervisor/fake_containment.h"
#include "tests/unit/supervisor/fake_store.h"

#define TTL_MS       INT64_C(900)
#define HEARTBEAT_MS INT64_C(300)

struct fixture {
    struct gate gate;
    struct containment containment;
    struct guard *guard;
    struct heartbeat *heartbeat;
    struct credential credential;
    struct store_options store;
    int loop_fd;
    int64_t sent_boot_ms;
};

static void begin_with(struct fixture *f, int64_t heartbeat_ms, int64_t sent_boot_ms)
{
    *f = (struct fixture){.loop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .sent_boot_ms = sent_boot_ms};
    gate_init(&f->gate, clock_system(), sent_boot_ms + TTL_MS);
    struct guard_options guard = {
        .clock = clock_system(),
        .gate = &f->gate,
        .containment = &f->containment,
        .margin_ms = 100,
        .notify_fd = f->loop_fd,
    };
    assert_int_equal(guard_start(&guard, &f->guard, NULL), RESULT_OK);
    struct heartbeat_options options = {
        .store = &f->store,
        .open_store = fake_open,
        .clock = clock_system(),
        .credential = &f->credential,
        .terms = {.ttl_ms = TTL_MS, .heartbeat_ms = heartbeat_ms},
        .sent_boot_ms = sent_boot_ms,
        .guard = f->guard,
        .loop_fd = f->loop_fd,
    };
    assert_int_equal(heartbeat_start(&options, &f->heartbeat, NULL), RESULT_OK);
}

static void begin(struct fixture *f)
{
    begin_with(f, HEARTBEAT_MS, boot_ms());
}

static void end(struct fixture *f)
{
    heartbeat_stop(f->heartbeat);
    guard_stop(f->guard);
    gate_done(&f->gate);
    close(f->loop_fd);
}

/* A loop that turns whenever it is woken. */
static bool turn(struct fixture *f)
{
    struct pollfd fd = {.fd = f->loop_fd, .events = POLLIN};
    if (poll(&fd, 1, 5) > 0) {
        uint64_t count;
        assert_int_equal(read(f->loop_fd, &count, sizeof(count)), sizeof(count));
        heartbeat_turned(f->heartbeat);
    }
    return true;
}

static int set_up(void **state)
{
    (void)state;
    unsetenv("TENURE_FAILPOINT");
    fake_reset();
    return 0;
}

/* ---- arithmetic ---- */

static void test_bounds(void **state)
{
    (void)state;
    assert_int_equal(heartbeat_statement_ms(20000), 5000);
    assert_int_equal(heartbeat_statement_ms(600), 300);
    assert_int_equal(heartbeat_statement_ms(1), 1);
    assert_int_equal(heartbeat_patience_ms(600), 500);
    assert_int_equal(heartbeat_patience_ms(20000), 5000);
    for (uint64_t random = 0; random < 5000; random++) {
        assert_in_range(heartbeat_pause_ms(0, 20000, random), 200, 200);
        assert_in_range(heartbeat_pause_ms(400, 20000, random), 200, 1200);
        assert_in_range(heartbeat_pause_ms(4000, 20000, random), 200, 5000);
        assert_in_range(heartbeat_pause_ms(300, 600, random), 200, 200);
        assert_in_range(heartbeat_pause_ms(0, 100, random), 100, 100);
    }
}

/* ---- renewals ---- */

static void test_renews_on_time_and_confirms(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    while (fake.renewals == 0)
        turn(&f);
    int64_t first = boot_ms() - f.sent_boot_ms;
    assert_true(first >= HEARTBEAT_MS && first < HEARTBEAT_MS + 200);
    while (fake.renewals < 4)
        turn(&f);
    assert_true(boot_ms() - f.sent_boot_ms >= 4 * HEARTBEAT_MS);
    assert_int_equal(fake.opened, 1);
    assert_int_equal(fake.deadline_ms, HEARTBEAT_MS / 2);
    assert_int_equal(f.containment.freezes, 0);

    struct heartbeat_news news = {0};
    wait_until((heartbeat_news_done(&news), heartbeat_take(f.heartbeat, &news),
        news.confirmed_sent_boot_ms >= f.sent_boot_ms + 4 * HEARTBEAT_MS));
    assert_int_equal(news.trouble, RESULT_OK);
    assert_false(news.lost);
    assert_int_equal(gate_deadline(&f.gate), lease_own_deadline_ms(news.confirmed_sent_boot_ms, TTL_MS));
    heartbeat_news_done(&news);
    end(&f);
}

static void test_a_wedged_loop_is_not_renewed(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    struct heartbeat_news news = {0};
    wait_until((heartbeat_news_done(&news), heartbeat_take(f.heartbeat, &news),
        news.trouble != RESULT_OK || fake.renewals > 0));
    assert_int_equal(fake.renewals, 0);
    assert_non_null(strstr(news.trouble_text, "does not turn"));
    heartbeat_news_done(&news);
    wait_until(guard_state(f.guard) == GUARD_FROZEN);
    assert_int_equal(fake.renewals, 0);
    while (fake.renewals == 0) /* it turns again */
        turn(&f);
    end(&f);
}

static void test_failures_are_retried_sooner(void **state)
{
    (void)state;
    struct fixture f;
    begin_with(&f, 5000, boot_ms() - 5000);
    fake.answer = RESULT_BUSY;
    while (fake.renewals < 3)
        turn(&f);
    assert_true(boot_ms() - f.sent_boot_ms < 10000);
    struct heartbeat_news news = {0};
    wait_until((heartbeat_news_done(&news), heartbeat_take(f.heartbeat, &news), news.trouble == RESULT_BUSY));
    int64_t since = news.busy_since_boot_ms;
    assert_true(since > 0);
    assert_false(news.lost);
    heartbeat_news_done(&news);
    assert_int_equal(fake.closed, 0); /* a busy handle is kept */

    fake.answer = RESULT_UNREACHABLE;
    fake.broken = true;
    while (fake.closed == 0)
        turn(&f);
    wait_until((heartbeat_take(f.heartbeat, &news), news.trouble == RESULT_UNREACHABLE));
    assert_int_equal(news.busy_since_boot_ms, 0);
    heartbeat_news_done(&news);

    fake.answer = RESULT_OK;
    fake.broken = false;
    while (fake.confirmed == 0)
        turn(&f);
    assert_int_equal(fake.opened, 2);
    end(&f);
}

/* Only a record that is finished or bears another token proves a loss. */
static void test_nothing_else_proves_a_loss(void **state)
{
    (void)state;
    static const enum result answers[] = {RESULT_CONFLICT, RESULT_BUSY, RESULT_UNREACHABLE, RESULT_UNKNOWN,
        RESULT_DENIED, RESULT_NEWER, RESULT_CORRUPT, RESULT_ABSENT, RESULT_INVALID, RESULT_SYSTEM};
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        struct fixture f;
        fake_reset();
        fake.answer = (int)answers[i];
        fake.broken = i % 2 == 0;
        begin_with(&f, HEARTBEAT_MS, boot_ms() - HEARTBEAT_MS);
        while (fake.renewals < 2)
            turn(&f);
        struct heartbeat_news news;
        heartbeat_take(f.heartbeat, &news);
        assert_false(news.lost);
        assert_int_equal(news.trouble, answers[i]);
        heartbeat_news_done(&news);
        end(&f);
    }
}

static void test_a_round_trip_is_never_retired(void **state)
{
    (void)state;
    struct fixture f;
    fake.answer = RESULT_RETIRED;
    fake.broken = true;
    begin_with(&f, HEARTBEAT_MS, boot_ms() - HEARTBEAT_MS);
    while (fake.renewals < 2)
        turn(&f);
    struct heartbeat_news news;
    heartbeat_take(f.heartbeat, &news);
    assert_false(news.lost);
    heartbeat_news_done(&news);
    end(&f);
}

static void test_lost_ends_the_renewals(void **state)
{
    (void)state;
    struct fixture f;
    fake.answer = RESULT_RETIRED;
    begin_with(&f, HEARTBEAT_MS, boot_ms() - HEARTBEAT_MS);
    struct heartbeat_news news = {0};
    while (fake.renewals == 0)
        turn(&f);
    wait_until((heartbeat_news_done(&news), heartbeat_take(f.heartbeat, &news), news.lost));
    assert_string_equal(news.reason.code, "lapsed");
    assert_string_equal(news.reason.by_attempt, "another");
    heartbeat_news_done(&news);
    heartbeat_hurry(f.heartbeat);
    int64_t until = boot_ms() + 2 * HEARTBEAT_MS;
    while (boot_ms() < until)
        turn(&f);
    assert_int_equal(fake.renewals, 1);
    end(&f);
}

static void test_hurry_cancel_and_progress(void **state)
{
    (void)state;
    struct fixture f;
    begin_with(&f, 60000, boot_ms());
    fake.cancel = true;
    heartbeat_progress(f.heartbeat, &(struct progress){.phase = "producers", .done = 1, .total = 2});
    heartbeat_hurry(f.heartbeat);
    struct heartbeat_news news = {0};
    while (fake.renewals == 0)
        turn(&f);
    wait_until((heartbeat_news_done(&news), heartbeat_take(f.heartbeat, &news), news.cancel_requested));
    assert_string_equal(fake.phase, "producers");
    heartbeat_news_done(&news);
    end(&f);
}

/* ---- the end ---- */

static void test_short_runs_open_no_handle(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    struct heartbeat_news news;
    heartbeat_drain(f.heartbeat, &news);
    assert_false(news.lost);
    assert_int_equal(news.confirmed_sent_boot_ms, f.sent_boot_ms);
    heartbeat_news_done(&news);
    assert_int_equal(fake.opened, 0);
    assert_int_equal(fake.renewals, 0);
    end(&f);
}

static void test_drain_renews_when_due(void **state)
{
    (void)state;
    struct fixture f;
    begin_with(&f, HEARTBEAT_MS, boot_ms() - 2 * HEARTBEAT_MS);
    struct heartbeat_news news;
    heartbeat_drain(f.heartbeat, &news); /* no turn: this very call is the loop's sign of life */
    assert_int_equal(fake.renewals, 1);
    assert_true(news.confirmed_sent_boot_ms > f.sent_boot_ms);
    heartbeat_news_done(&news);
    assert_int_equal(fake.closed, fake.opened);
    end(&f);
}

/* A renewal that is held up on its way is over before the drain is: nothing can follow a settlement. */
static void test_a_parked_renewal_is_waited_for(void **state)
{
    (void)state;
    struct fixture f;
    setenv("TENURE_FAILPOINT", "heartbeat-before-send:delay=200", 1);
    begin_with(&f, HEARTBEAT_MS, boot_ms() - HEARTBEAT_MS);
    while (fake.opened == 0)
        turn(&f);
    int64_t parked = boot_ms();
    struct heartbeat_news news;
    heartbeat_drain(f.heartbeat, &news);
    int at_drain = fake.renewals;
    assert_int_equal(at_drain, 1);
    /* its moment is when it was built, not when it got through */
    assert_true(news.confirmed_sent_boot_ms <= parked + 100);
    heartbeat_news_done(&news);
    heartbeat_hurry(f.heartbeat);
    int64_t until = boot_ms() + 500;
    while (boot_ms() < until)
        turn(&f);
    assert_int_equal(fake.renewals, at_drain);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_bounds, set_up),
        cmocka_unit_test_setup(test_renews_on_time_and_confirms, set_up),
        cmocka_unit_test_setup(test_a_wedged_loop_is_not_renewed, set_up),
        cmocka_unit_test_setup(test_failures_are_retried_sooner, set_up),
        cmocka_unit_test_setup(test_nothing_else_proves_a_loss, set_up),
        cmocka_unit_test_setup(test_a_round_trip_is_never_retired, set_up),
        cmocka_unit_test_setup(test_lost_ends_the_renewals, set_up),
        cmocka_unit_test_setup(test_hurry_cancel_and_progress, set_up),
        cmocka_unit_test_setup(test_short_runs_open_no_handle, set_up),
        cmocka_unit_test_setup(test_drain_renews_when_due, set_up),
        cmocka_unit_test_setup(test_a_parked_renewal_is_waited_for, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
