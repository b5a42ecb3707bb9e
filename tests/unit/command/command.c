/* One command while a subject is held: its status is passed on, its attempt ends, nothing of it stays. */
#include "tests/unit/supervisor/holding.h"

#include "command/command.h"

static enum result run(const char *line, struct command_result *ret)
{
    struct command_options options = {
        .hold = holding(WAIT_NONE),
        .argv = (const char *const[]){"sh", "-c", line, NULL},
    };
    struct pending pending = {0};
    _cleanup_(error_done) struct error err = {0};
    enum result r = command_run(&options, ret, &pending, &err);
    if (r != RESULT_OK && r != RESULT_HELD)
        print_error("%s\n", err.message);
    pending_done(&pending);
    return r;
}

struct ending {
    const char *line;
    int exit_code, signal, journal_code;
    enum attempt_state state;
};

static const struct ending ENDINGS[] = {
    {"true", 0, -1, 0, ATTEMPT_PASSED},
    {"exit 1", 1, -1, 1, ATTEMPT_FAILED},
    {"exit 255", 255, -1, 255, ATTEMPT_FAILED},
    {"kill -9 $$", -1, SIGKILL, 137, ATTEMPT_FAILED},
};

static void test_status_is_passed_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ENDINGS); i++) {
        _cleanup_(command_result_done) struct command_result result = {0};
        assert_int_equal(run(ENDINGS[i].line, &result), RESULT_OK);
        assert_true(result.started);
        assert_int_equal(result.exit_code, ENDINGS[i].exit_code);
        assert_int_equal(result.signal, ENDINGS[i].signal);
        assert_int_equal(result.end.exit_code, ENDINGS[i].journal_code);
        assert_false(result.lost);
        assert_int_equal(result.stop_signal, 0);
        assert_true(result.fence > 0);
        assert_state(result.attempt_id, ENDINGS[i].state, NULL);
    }
    assert_int_equal(journals(), ARRAY_SIZE(ENDINGS));
}

static void test_not_started(void **state)
{
    (void)state;
    static const struct {
        const char *program;
        enum spawn_step step;
        int exit_code;
    } missing[] = {
        {"no-such-program", SPAWN_NOT_FOUND, 127},
        {"/", SPAWN_NOT_EXECUTABLE, 126},
    };
    for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
        struct command_options options = {
            .hold = holding(WAIT_NONE),
            .argv = (const char *const[]){missing[i].program, NULL},
        };
        _cleanup_(command_result_done) struct command_result result = {0};
        struct pending pending = {0};
        assert_int_equal(command_run(&options, &result, &pending, NULL), RESULT_OK);
        assert_false(result.started);
        assert_int_equal(result.failure.step, missing[i].step);
        assert_int_equal(result.end.exit_code, missing[i].exit_code);
        assert_state(result.attempt_id, ATTEMPT_FAILED, "not-started");
    }
}

/* The command sees its attempt, its store and its fence, and no token. */
static void test_marks(void **state)
{
    (void)state;
    _cleanup_(command_result_done) struct command_result result = {0};
    _cleanup_(mem_free) char *path = sign_path("marks");
    _cleanup_(mem_free) char *line = mem_format("env | grep ^TENURE > %s", path);
    setenv("TENURE_FENCE", "forged", 1);
    assert_int_equal(run(line, &result), RESULT_OK);
    unsetenv("TENURE_FENCE");
    _cleanup_(text_done) struct text text = {0};
    assert_int_equal(file_read(AT_FDCWD, path, false, 4096, &text, NULL), RESULT_OK);
    _cleanup_(mem_free) char *attempt = mem_format("TENURE_ATTEMPT=%s\n", result.attempt_id);
    _cleanup_(mem_free) char *fence = mem_format("TENURE_FENCE=%lld\n", (long long)result.fence);
    assert_non_null(strstr(text.bytes, attempt));
    assert_non_null(strstr(text.bytes, fence));
    assert_null(strstr(text.bytes, "forged"));
}

static void test_held(void **state)
{
    (void)state;
    struct hold_options options = holding(WAIT_NONE);
    pid_t holder = fork_holder(&options);
    _cleanup_(command_result_done) struct command_result result = {0};
    assert_int_equal(run("true", &result), RESULT_HELD);
    assert_null(result.attempt_id);
    sign("release", "");
    assert_int_equal(exit_status_of(holder), 0);
}

/* A signal to us reaches the command as TERM; that it then ended well is no pass. */
static void test_signal(void **state)
{
    (void)state;
    _cleanup_(command_result_done) struct command_result result = {0};
    _cleanup_(mem_free) char *line =
        mem_format("trap 'exit 0' TERM; kill -INT %d; while :; do sleep 0.05; done", getpid());
    assert_int_equal(run(line, &result), RESULT_OK);
    assert_int_equal(result.stop_signal, SIGINT);
    assert_int_equal(result.exit_code, 0);
    assert_int_equal(result.end.exit_code, 130);
    assert_state(result.attempt_id, ATTEMPT_CANCELLED, "signal");
}

static void test_nothing_outlives_it(void **state)
{
    (void)state;
    _cleanup_(command_result_done) struct command_result result = {0};
    _cleanup_(mem_free) char *path = sign_path("pid");
    _cleanup_(mem_free) char *line = mem_format("setsid sleep 600 & echo $! > %s", path);
    assert_int_equal(run(line, &result), RESULT_OK);
    assert_int_equal(result.exit_code, 0);
    _cleanup_(text_done) struct text text = {0};
    assert_int_equal(file_read(AT_FDCWD, path, false, 100, &text, NULL), RESULT_OK);
    assert_int_equal(kill((pid_t)atoi(text.bytes), 0), -1);
}

/* The journal has the same from the same function: an attached terminal exits alike. */
static void test_exit_of_what_did_not_start(_unused_ void **state)
{
    static const struct {
        enum spawn_step step;
        int status;
    } CASES[] = {{SPAWN_NOT_FOUND, 127}, {SPAWN_NOT_EXECUTABLE, 126}, {SPAWN_NO_INTERPRETER, 126},
        {SPAWN_EXEC, 126}, {SPAWN_TOO_LONG, 126}, {SPAWN_LAPSED, 124}, {SPAWN_FORK, 125}};
    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        struct command_result result = {.exit_code = -1, .signal = -1, .failure = {.step = CASES[i].step}};
        assert_int_equal(command_exit(&result), CASES[i].status);
    }
    struct command_result killed = {.started = true, .exit_code = -1, .signal = SIGSEGV};
    assert_int_equal(command_exit(&killed), 128 + SIGSEGV);
    killed.lost = true;
    assert_int_equal(command_exit(&killed), 124);
    killed.stop_signal = SIGTERM;
    assert_int_equal(command_exit(&killed), 128 + SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_of_what_did_not_start),
        cmocka_unit_test_setup_teardown(test_status_is_passed_on, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_not_started, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_marks, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_held, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_signal, state_begin, state_end),
        cmocka_unit_test_setup_teardown(test_nothing_outlives_it, state_begin, state_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
