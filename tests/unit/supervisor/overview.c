/* Looking from outside: what is there, whose it is, and asking it to stop. */
#include "tests/unit/supervisor/holding.h"

#include "supervisor/overview.h"

static const struct attempt_query UNFINISHED = {.unfinished_only = true};

static void test_no_store_is_an_empty_overview(void **state)
{
    (void)state;
    struct overview overview = {0};
    assert_int_equal(overview_read(NULL, &UNFINISHED, &overview, NULL), RESULT_OK);
    assert_int_equal(overview.count, 0);
    overview_done(&overview);
}

static char *held_id(void)
{
    _cleanup_(mem_free) char *held = sign_path("held");
    struct text id = {0};
    assert_int_equal(file_read(AT_FDCWD, held, false, 100, &id, NULL), RESULT_OK);
    return text_steal(&id);
}

static struct hold_options long_lease(void)
{
    struct hold_options options = holding(WAIT_NONE);
    options.terms = (struct lease_terms){.ttl_ms = 60000};
    return options;
}

static void test_running_then_gone(void **state)
{
    (void)state;
    struct hold_options options = long_lease();
    pid_t holder = fork_holder(&options);
    struct overview overview = {0};
    assert_int_equal(overview_read(NULL, &UNFINISHED, &overview, NULL), RESULT_OK);
    assert_int_equal(overview.count, 1);
    assert_int_equal(overview.items[0].verdict, OWNER_RUNNING);
    assert_int_equal(overview.items[0].attempt.executor.pid, holder);
    assert_false(overview.items[0].lapsed);
    assert_in_range(overview.items[0].lapses_in_ms, 50000, 60000);
    overview_done(&overview);

    kill(holder, SIGKILL);
    assert_int_equal(exit_status_of(holder), 1000 + SIGKILL);
    assert_int_equal(overview_read(NULL, &UNFINISHED, &overview, NULL), RESULT_OK);
    assert_int_equal(overview.count, 1);
    assert_int_equal(overview.items[0].verdict, OWNER_GONE);
    overview_done(&overview);
}

static void test_finds_by_any_name(void **state)
{
    (void)state;
    struct hold_options options = long_lease();
    pid_t holder = fork_holder(&options);
    _cleanup_(mem_free) char *id = held_id();
    struct attempt attempt = read_attempt(id);
    char prefix[14], lower[16] = {0}, wrong[16];
    memcpy(prefix, id, 13);
    prefix[13] = '\0';
    for (size_t i = 0; attempt.journal_handle[i] != '\0'; i++)
        lower[i] = (char)(attempt.journal_handle[i] | (attempt.journal_handle[i] >= 'A' ? 0x20 : 0));
    const char *const names[] = {id, prefix, attempt.journal_handle, lower};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct overview_entry entry = {0};
        if (overview_find(NULL, names[i], &entry, NULL) != RESULT_OK)
            fail_msg("%s was not found", names[i]);
        assert_string_equal(entry.attempt.id, id);
        overview_entry_done(&entry);
    }
    strcpy(wrong, attempt.journal_handle);
    wrong[3] = wrong[3] == 'Z' ? 'Y' : 'Z';
    struct overview_entry entry = {0};
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(overview_find(NULL, wrong, &entry, &err), RESULT_INVALID);
    assert_non_null(strstr(err.remedy, attempt.journal_handle));
    attempt_done(&attempt);
    sign("release", "");
    assert_int_equal(exit_status_of(holder), 0);
}

static enum cancel_outcome cancel(const char *typed, int64_t wait_ms)
{
    enum cancel_outcome outcome = CANCEL_PENDING;
    struct attempt attempt = {0};
    _cleanup_(error_done) struct error err = {0};
    struct cancel_request request = {.typed = typed, .by = "somebody", .wait_ms = wait_ms};
    if (cancel_attempt(&request, &outcome, &attempt, &err) != RESULT_OK)
        fail_msg("%s", err.message);
    attempt_done(&attempt);
    return outcome;
}

static void test_cancel_a_living_one(void **state)
{
    (void)state;
    struct hold_options options = long_lease(); /* the next renewal is 20 s away: it must be hastened */
    pid_t holder = fork_holder(&options);
    _cleanup_(mem_free) char *id = held_id();
    int64_t asked = boot_ms();
    assert_int_equal(cancel(id, 15000), CANCEL_ASKED);
    assert_true(boot_ms() - asked < 5000);
    assert_int_equal(exit_status_of(holder), 124);
    assert_state(id, ATTEMPT_CANCELLED, "cancel-requested");
    assert_int_equal(cancel(id, 0), CANCEL_ENDED);
}

static void test_cancel_a_dead_one(void **state)
{
    (void)state;
    struct hold_options options = long_lease();
    pid_t holder = fork_holder(&options);
    _cleanup_(mem_free) char *id = held_id();
    kill(holder, SIGKILL);
    assert_int_equal(exit_status_of(holder), 1000 + SIGKILL);
    assert_int_equal(cancel(id, 0), CANCEL_RETIRED);
    assert_state(id, ATTEMPT_CANCELLED, "owner-gone");
}

static void test_cancel_a_stopped_one(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    pid_t holder = fork_holder(&options);
    _cleanup_(mem_free) char *id = held_id();
    kill(holder, SIGSTOP);
    assert_int_equal(cancel(id, 100), CANCEL_PENDING);
    assert_int_equal(cancel(id, 10000), CANCEL_RETIRED); /* once it has lapsed */
    assert_state(id, ATTEMPT_CANCELLED, "lapsed");
    kill(holder, SIGCONT);
    assert_int_equal(exit_status_of(holder), 124);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_store_is_an_empty_overview, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_running_then_gone, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_finds_by_any_name, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_cancel_a_living_one, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_cancel_a_dead_one, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_cancel_a_stopped_one, state_begin, state_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
