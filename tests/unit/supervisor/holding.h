/* What the tests of holding share: a state directory of their own, options with short leases, and children
 * that hold while the test looks at them. */
#ifndef TESTS_UNIT_SUPERVISOR_HOLDING_H
#define TESTS_UNIT_SUPERVISOR_HOLDING_H

#include "tests/unit/supervisor/processes.h"

#include <dirent.h>
#include <signal.h>

#include "supervisor/hold.h"

#define TTL_MS       INT64_C(2000)
#define HEARTBEAT_MS INT64_C(600)

static struct folder state_folder;

static _unused_ int state_begin(void **state)
{
    (void)state;
    unsetenv("TENURE_FAILPOINT");
    unsetenv("TENURE_ATTEMPT");
    unsetenv("TENURE_STORE");
    folder_make(&state_folder);
    setenv("XDG_STATE_HOME", state_folder.path, 1);
    return 0;
}

static _unused_ int state_end(void **state)
{
    (void)state;
    folder_done(&state_folder);
    return 0;
}

static const char *const SUBJECT[] = {"command:test"};

static _unused_ struct hold_options holding(int64_t wait_ms)
{
    return (struct hold_options){
        .kind = KIND_COMMAND,
        .what = "a test",
        .subjects = SUBJECT,
        .subject_count = 1,
        .terms = {.ttl_ms = TTL_MS, .heartbeat_ms = HEARTBEAT_MS},
        .bind_now = true,
        .wait_ms = wait_ms,
    };
}

static _unused_ enum result try_hold(
    const struct hold_options *options, struct hold **ret, struct pending *ret_pending, int *ret_signal)
{
    _cleanup_(error_done) struct error err = {0};
    enum result r = hold_begin(options, ret, ret_pending, ret_signal, &err);
    if (r != RESULT_OK && r != RESULT_HELD && r != RESULT_INTERRUPTED && r != RESULT_ABSENT)
        print_error("%s: %s\n", result_name(r), err.message);
    return r;
}

static _unused_ struct hold *hold_well(const struct hold_options *options)
{
    struct hold *hold = NULL;
    struct pending pending = {0};
    int signal = 0;
    assert_int_equal(try_hold(options, &hold, &pending, &signal), RESULT_OK);
    return hold;
}

static _unused_ enum result end_as(struct hold *hold, enum attempt_state state, struct hold_result *ret)
{
    struct hold_ending ending = {
        .state = state,
        .reason_code = state == ATTEMPT_PASSED ? "passed" : "command-failed",
        .exit_code = state == ATTEMPT_PASSED ? 0 : 1,
    };
    _cleanup_(error_done) struct error err = {0};
    enum result r = hold_end(hold, &ending, ret, &err);
    if (r != RESULT_OK && r != RESULT_RETIRED)
        print_error("%s: %s\n", result_name(r), err.message);
    return r;
}

/* ---- children ---- */

static _unused_ char *sign_path(const char *name)
{
    return mem_format("%s/%s", state_folder.path, name);
}

static _unused_ void sign(const char *name, const char *text)
{
    _cleanup_(mem_free) char *path = sign_path(name);
    assert_int_equal(file_write_atomic(path, 0600, false, text, strlen(text), NULL), RESULT_OK);
}

static _unused_ bool signed_by(const char *name)
{
    _cleanup_(mem_free) char *path = sign_path(name);
    return access(path, F_OK) == 0;
}

/* Turns until the sign appears or the run is being stopped. */
static _unused_ void hold_until(struct hold *hold, const char *name)
{
    while (!signed_by(name) && supervisor_stop_of(hold_supervisor(hold))->cause == STOP_NONE) {
        supervisor_turn(hold_supervisor(hold));
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

/* A child that holds until "release" appears, then ends as passed; its exit status is the ending's. The sign
 * "held" bears its attempt's id. */
static _unused_ pid_t fork_holder(const struct hold_options *options)
{
    pid_t pid = checked_fork();
    if (pid != 0) {
        wait_until(signed_by("held"));
        return pid;
    }
    struct hold *hold = hold_well(options);
    struct hold_result result = {0};
    sign("held", hold_attempt(hold)->id);
    hold_until(hold, "release");
    enum result r = end_as(hold, ATTEMPT_PASSED, &result);
    int status = r == RESULT_OK || r == RESULT_RETIRED ? result.exit_code : 99;
    hold_result_done(&result);
    _exit(status);
}

static _unused_ int exit_status_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* ---- looking ---- */

static _unused_ struct attempt read_attempt(const char *id)
{
    struct machine machine;
    struct attempt attempt = {0};
    _cleanup_(store_cleanup) struct store *store = NULL;
    assert_int_equal(machine_read(&machine, NULL), RESULT_OK);
    struct store_options options = {.clock = clock_system(), .machine = &machine};
    assert_int_equal(store_open(&options, STORE_READ, &store, NULL), RESULT_OK);
    assert_int_equal(store_find(store, id, &attempt, NULL), RESULT_OK);
    return attempt;
}

static _unused_ void assert_state(const char *id, enum attempt_state state, const char *code)
{
    struct attempt attempt = read_attempt(id);
    assert_string_equal(attempt_state_name(attempt.state), attempt_state_name(state));
    if (code != NULL)
        assert_string_equal(attempt.reason.code, code);
    attempt_done(&attempt);
}

static _unused_ int journals(void)
{
    _cleanup_(mem_free) char *path = sign_path("tenure/journals");
    DIR *directory = opendir(path);
    int count = 0;
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    if (directory != NULL)
        closedir(directory);
    return count;
}

#endif
