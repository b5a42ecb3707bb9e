#include "command/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "supervisor/exits.h"

void command_result_done(struct command_result *result)
{
    hold_result_done(&result->end);
    free(STEAL(result->handle));
    free(STEAL(result->attempt_id));
    free(STEAL(result->failure_text));
    free(STEAL(result->unsettled));
}

/* The command line for people. */
static char *join(const char *const *argv)
{
    struct text text = {0};
    for (; *argv != NULL; argv++) {
        if (text.length > 0)
            text_add(&text, " ");
        text_add_printable(&text, *argv, strlen(*argv), false);
    }
    return text_steal(&text);
}

/* ---- running it ---- */

static void take_outcome(struct job_outcome *outcome, struct command_result *ret)
{
    ret->started = outcome->verdict != JOB_NOT_STARTED;
    ret->failure = outcome->failure;
    if (!ret->started) {
        free(ret->failure_text);
        ret->failure_text = STEAL(outcome->text);
    }
    ret->exit_code = outcome->exit_code;
    ret->signal = outcome->signal;
}

static enum result run_command(
    struct hold *hold, const char *const *argv, struct command_result *ret, struct error *err)
{
    struct job_request request = {.name = "command", .argv = argv};
    struct job_outcome outcome = {.verdict = JOB_VERDICT_MAX};
    enum result r = hold_run_job(hold, &request, &outcome, err);
    if (outcome.verdict != JOB_VERDICT_MAX)
        take_outcome(&outcome, ret);
    job_outcome_done(&outcome);
    return r;
}

/* ---- ending ---- */

/* As a shell has it for what is not there or cannot be executed; what we could not do is ours. */
static int exit_of_failure(const struct spawn_failure *failure)
{
    if (failure->step == SPAWN_NOT_FOUND)
        return EXIT_RUN_NOT_FOUND;
    if (failure->step == SPAWN_NOT_EXECUTABLE || failure->step == SPAWN_NO_INTERPRETER ||
        failure->step == SPAWN_EXEC || failure->step == SPAWN_TOO_LONG)
        return EXIT_RUN_NOT_EXECUTABLE;
    return EXITS[failure->step == SPAWN_LAPSED ? OUTCOME_LOST : OUTCOME_INTERNAL].run_status;
}

static int exit_of(const struct command_result *result)
{
    if (!result->started)
        return exit_of_failure(&result->failure);
    return result->signal > 0 ? EXIT_SIGNAL_BASE + result->signal : result->exit_code;
}

int command_exit(const struct command_result *result)
{
    if (result->stop_signal)
        return EXIT_SIGNAL_BASE + result->stop_signal;
    return result->lost ? EXITS[OUTCOME_LOST].run_status : exit_of(result);
}

static struct hold_ending ending_of(
    const struct command_result *result, enum result ran, const struct error *why)
{
    if (ran != RESULT_OK)
        return (struct hold_ending){
            .state = ATTEMPT_FAILED,
            .reason_code = "internal",
            .reason_text = why->message,
            .exit_code = EXITS[outcome_of_result(ran)].run_status,
        };
    bool passed = result->started && result->exit_code == 0;
    return (struct hold_ending){
        .state = passed ? ATTEMPT_PASSED : ATTEMPT_FAILED,
        .reason_code = passed            ? "passed"
                       : result->started ? "command-failed"
                                         : "not-started",
        .exit_code = exit_of(result),
    };
}

enum result command_run(const struct command_options *options, struct command_result *ret,
    struct pending *ret_pending, struct error *err)
{
    _cleanup_(mem_free) char *what = join(options->argv);
    struct hold_options hold_options = options->hold;
    hold_options.kind = KIND_COMMAND;
    hold_options.what = what;
    hold_options.bind_now = true;
    struct command_result result = {.exit_code = -1, .signal = -1};
    struct hold *hold;
    enum result r = hold_begin(&hold_options, &hold, ret_pending, &result.stop_signal, err);
    if (r != RESULT_OK) {
        if (r == RESULT_INTERRUPTED)
            *ret = result;
        return r;
    }
    result.handle = mem_string(journal_handle(hold_journal(hold)));
    result.attempt_id = mem_string(hold_attempt(hold)->id);
    result.fence = hold_attempt(hold)->fence;

    _cleanup_(error_done) struct error why = {0};
    enum result ran = run_command(hold, options->argv, &result, &why);
    struct hold_ending ending = ending_of(&result, ran, &why);
    _cleanup_(error_done) struct error unsettled = {0};
    bool stopped =
        supervisor_stop_of(hold_supervisor(hold))->cause != STOP_NONE; /* then its end was our doing */
    r = hold_end(hold, &ending, &result.end, &unsettled);
    result.lost = result.end.lost;
    result.stop_signal = result.end.signal;
    bool settled = r == RESULT_OK || r == RESULT_RETIRED; /* `lost` tells */
    bool failed = ran == RESULT_OK && !stopped && result.started && exit_of(&result) != 0;
    if (!settled && failed) {
        result.unsettled = mem_string(unsettled.message);
        r = RESULT_OK;
    }
    *ret = result;
    if (ran != RESULT_OK)
        return error_move(err, &why);
    if (r == RESULT_OK || r == RESULT_RETIRED)
        return RESULT_OK;
    return error_move(err, &unsettled);
}
