/* `tenure run`: one command while a subject is held. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/json_table.h"
#include "base/memory.h"
#include "cli/pending.h"
#include "cli/report.h"
#include "cli/screen.h"
#include "command/command.h"

#define AT(field) offsetof(struct options, field)

static const char *const POLICIES[] = {[LAPSE_FREEZE] = "freeze", [LAPSE_ABORT] = "abort", NULL};

static const struct option OPTIONS[] = {
    {"subject", 0, OPTION_LIST, AT(subjects), "NAME", "what is held; may be given again", NULL, 0, 0},
    OPTIONS_OF_A_LEASE,
    OPTION_TO_WAIT,
    {"on-lapse", 0, OPTION_CHOICE, AT(on_lapse), "WHAT", "freeze (default) or abort, when the lease runs out",
        POLICIES, 0, 0},
    {"held-exit", 0, OPTION_INTEGER, AT(held_exit), "CODE", "exit status when another attempt is current",
        NULL, 0, 255},
};

/* Names of subjects carry their kind; a bare one is a command's. */
static char **subjects_of(const struct words *words)
{
    char **subjects = mem_alloc((words->count + 1) * sizeof(*subjects));
    for (size_t i = 0; i < words->count; i++)
        subjects[i] = mem_format("%s%s", strchr(words->items[i], ':') ? "" : "command:", words->items[i]);
    return subjects;
}

static void subjects_free(char **subjects)
{
    for (char **subject = subjects; *subject; subject++)
        mem_free(subject);
    mem_free(&subjects);
}

static enum result check(const struct options *options, struct lease_terms *ret_terms, struct error *err)
{
    struct lease_terms terms = {.ttl_ms = options->ttl_ms, .heartbeat_ms = options->heartbeat_ms};
    if (terms.ttl_ms < 0)
        terms.ttl_ms = LEASE_TTL_DEFAULT_MS;
    if (options->child.count == 0) {
        error_set(err, RESULT_INVALID, 0, "tenure run: no command is given");
        return error_remedy(err, "tenure run --subject NAME -- CMD...");
    }
    if (options->subjects.count == 0) {
        error_set(err, RESULT_INVALID, 0, "tenure run: no subject is given");
        return error_remedy(err, "name what is held: --subject NAME");
    }
    enum result r = lease_terms_check(&terms, err);
    if (r == RESULT_OK)
        *ret_terms = terms;
    return r;
}

/* ---- how it ended ---- */

static const char *outcome_of(const struct command_result *result)
{
    if (result->stop_signal)
        return "cancelled";
    enum outcome outcome = result->lost                                    ? OUTCOME_LOST
                           : !result->started                              ? OUTCOME_REFUSED
                           : result->signal <= 0 && result->exit_code == 0 ? OUTCOME_DONE
                                                                           : OUTCOME_NEGATIVE;
    return EXITS[outcome].name;
}

static void add_command(struct json_object *document, const struct command_result *result)
{
    struct json_object *attempt = json_object_new_object();
    json_add_string(attempt, "id", result->attempt_id);
    json_add_integer(attempt, "fence", result->fence);
    json_add_string(attempt, "handle", result->handle);
    json_add_string(attempt, "state", attempt_state_name(result->end.state));
    json_add_string(
        attempt, "reason", result->end.reason.text ? result->end.reason.text : result->end.reason.code);
    json_object_object_add(document, "attempt", attempt);
    json_add_boolean(document, "started", result->started);
    json_object_object_add(document, "child_exit",
        result->exit_code >= 0 && result->started ? json_object_new_int(result->exit_code) : NULL);
    if (result->unsettled)
        json_add_string(document, "unsettled", result->unsettled);
    json_object_object_add(
        document, "child_signal", result->signal > 0 ? json_object_new_int(result->signal) : NULL);
}

/* Why it could not renew, in most cases. */
static char *frozen_text(int64_t frozen_ms)
{
    char duration[DURATION_TEXT_SIZE];
    if (frozen_ms < 1000)
        return mem_string("");
    duration_format(frozen_ms / 1000 * 1000, duration);
    return mem_format(", while this run stood still for %s", duration);
}

static void complain_lost(const struct cli *cli, const struct command_result *result)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(text_done) struct text text = {0};
    const struct reason *reason = &result->end.reason;
    if (!result->lost)
        return;
    const char *why = reason->text   ? reason->text
                      : reason->code ? reason->code
                                     : "the lease could not be kept";
    if (reason->code && strcmp(reason->code, "cancel-requested") == 0) {
        error_set(&err, RESULT_RETIRED, 0, "tenure run: %s was cancelled %s", result->handle, why);
        error_remedy(&err, "the command was ended");
    } else {
        _cleanup_(mem_free) char *frozen = frozen_text(result->end.frozen_ms);
        error_set(&err, RESULT_RETIRED, 0, "tenure run: %s is lost: %s%s", result->handle, why, frozen);
        error_remedy(&err, "the command was ended; start it again");
    }
    report_add_error(&cli->err, &err, &text);
    report_complain(&text);
}

static void complain_not_started(const struct cli *cli, const struct command_result *result)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(text_done) struct text text = {0};
    if (result->started || result->lost || result->stop_signal)
        return;
    if (result->failure_text)
        error_set(&err, RESULT_SYSTEM, result->failure.errnum, "%s", result->failure_text);
    else
        error_errno(&err, result->failure.errnum, "cannot start %s (%s)", cli->options.child.items[0],
            spawn_step_name(result->failure.step));
    report_add_error(&cli->err, &err, &text);
    report_complain(&text);
}

static void complain_unsettled(const struct cli *cli, const struct command_result *result)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(text_done) struct text text = {0};
    if (!result->unsettled)
        return;
    error_set(&err, RESULT_UNREACHABLE, 0,
        "tenure run: the command failed, and its end could not be recorded: %s", result->unsettled);
    error_remedy(&err, "the next run retires %s", result->handle);
    report_add_error(&cli->err, &err, &text);
    report_complain(&text);
}

static int tell(const struct cli *cli, const struct command_result *result)
{
    int status = command_exit(result);
    if (cli->options.json) {
        struct json_object *document = report_document(cli, outcome_of(result), status);
        add_command(document, result);
        return report_json(cli, document, status);
    }
    complain_lost(cli, result);
    complain_not_started(cli, result);
    complain_unsettled(cli, result);
    return status;
}

static int tell_held(const struct cli *cli, const struct pending *pending)
{
    int status = cli->options.held_exit >= 0 ? (int)cli->options.held_exit : report_status(cli, OUTCOME_HELD);
    return pending_report(cli, pending, status);
}

/* The command writes to standard output byte for byte; a document of ours would not be alone there. So with
 * --json the command's goes to standard error. */
static int take_stdout(void)
{
    int kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (kept >= 0)
        dup2(STDERR_FILENO, STDOUT_FILENO);
    return kept;
}

static void give_stdout_back(int kept)
{
    if (kept < 0)
        return;
    dup2(kept, STDOUT_FILENO);
    close(kept);
}

static int hold_and_run(struct cli *cli, const struct lease_terms *terms, struct screen *screen)
{
    _cleanup_(error_done) struct error err = {0};
    struct command_result result = {0};
    struct pending pending = {0};
    char **subjects = subjects_of(&cli->options.subjects);
    struct command_options options = {
        .hold = {.store_url = cli->options.store_url,
            .what = cli->line,
            .subjects = (const char *const *)subjects,
            .subject_count = cli->options.subjects.count,
            .terms = *terms,
            .on_lapse = (enum lapse_policy)cli->options.on_lapse,
            .wait_ms = cli->options.wait_ms,
            .tap = screen_event,
            .tap_context = screen,
            .waiting = screen_waiting,
            .context = screen},
        .argv = cli->options.child.items,
    };
    int kept = cli->options.json ? take_stdout() : -1;
    enum result r = command_run(&options, &result, &pending, &err);
    give_stdout_back(kept);
    screen_close(screen);
    bool ended = r == RESULT_OK || (r == RESULT_INTERRUPTED && result.stop_signal);
    int status = ended              ? tell(cli, &result)
                 : r == RESULT_HELD ? tell_held(cli, &pending)
                                    : report_error(cli, &err);
    command_result_done(&result);
    pending_done(&pending);
    subjects_free(subjects);
    return status;
}

static int run_run(struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    struct lease_terms terms = {0};
    struct screen *screen = NULL;
    struct screen_options options = {.look = cli->err, .clock = clock_system(), .notes_only = true};
    if (check(&cli->options, &terms, &err) != RESULT_OK)
        return report_error(cli, &err);
    if (!cli->options.quiet && !cli->options.json && screen_open(&options, &screen, &err) != RESULT_OK)
        return report_error(cli, &err);
    return hold_and_run(cli, &terms, screen);
}

const struct command COMMAND_RUN = {
    .name = "run",
    .group = GROUP_PROVE,
    .synopsis = "run --subject NAME [OPTION]... -- CMD [ARG]...",
    .summary = "run a command while a subject is held",
    .details = "The command has our standard input, output and error, and its exit status is passed on "
               "(128+n for a\n"
               "signal). Own failures: 122 refused, 123 held, 124 lost, 125 store, 126 not executable, 127 "
               "not found.\n"
               "With --json the command's standard output goes to standard error.",
    .options = OPTIONS,
    .option_count = ARRAY_SIZE(OPTIONS),
    .words_max = 0,
    .takes_command = true,
    .own_failures_are_high = true,
    .status_is_the_attempts = true,
    .run = run_run,
};
