/* `tenure cancel`: asks a running attempt to stop; retires it when its owner is gone or lapsed. */
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_table.h"
#include "base/memory.h"
#include "cli/entry.h"
#include "cli/here.h"
#include "cli/report.h"
#include "cli/verdict.h"

#define WAIT_MS INT64_C(15000) /* more than the grace of five seconds and what a heartbeat takes */

static char *myself(void)
{
    char host[256] = "?";
    const struct passwd *user = getpwuid(getuid());
    struct executor self = {.pid = getpid()};
    gethostname(host, sizeof(host) - 1);
    snprintf(self.host, sizeof(self.host), "%s", host);
    if (user)
        snprintf(self.user, sizeof(self.user), "%s", user->pw_name);
    else
        snprintf(self.user, sizeof(self.user), "uid %u", getuid());
    return executor_text(&self);
}

static const char *const WORDS[] = {[CANCEL_ASKED] = "asked",
    [CANCEL_PENDING] = "pending",
    [CANCEL_RETIRED] = "retired",
    [CANCEL_ENDED] = "ended"};

/* Cancelled is what was promised; it may also have passed or failed before it could be stopped. */
static enum outcome outcome_of(enum cancel_outcome outcome, const struct attempt *attempt)
{
    if (outcome == CANCEL_PENDING)
        return OUTCOME_STORE;
    return attempt->state == ATTEMPT_CANCELLED ? OUTCOME_DONE : OUTCOME_NEGATIVE;
}

static bool was_gone(const struct attempt *attempt)
{
    return attempt->reason.code && strcmp(attempt->reason.code, "owner-gone") == 0;
}

static char *sentence_of(enum cancel_outcome outcome, const struct attempt *attempt)
{
    const char *name = attempt_name(attempt);
    const char *state = attempt_state_name(attempt->state);
    if (outcome == CANCEL_PENDING)
        return mem_format(
            "%s was asked to stop and has not ended yet; watch it: tenure attach %s", name, name);
    if (outcome == CANCEL_RETIRED)
        return mem_format(
            "%s is retired: %s", name, was_gone(attempt) ? "its owner was gone" : "its lease had lapsed");
    if (outcome == CANCEL_ENDED)
        return mem_format("%s had ended before: %s", name, state);
    if (attempt->state != ATTEMPT_CANCELLED)
        return mem_format("%s %s before it could be stopped", name, state);
    return mem_format("%s is cancelled", name);
}

static int print(const struct cli *cli, enum cancel_outcome outcome, const struct attempt *attempt)
{
    enum outcome ending = outcome_of(outcome, attempt);
    int status = report_status(cli, ending);
    if (cli->options.json) {
        struct json_object *document = report_document(cli, EXITS[ending].name, status);
        json_add_string(document, "cancel", WORDS[outcome]);
        json_object_object_add(document, "attempt", entry_json(attempt, NULL));
        return report_json(cli, document, status);
    }
    _cleanup_(text_done) struct text text = {0};
    _cleanup_(mem_free) char *sentence = sentence_of(outcome, attempt);
    if (!cli->options.quiet || ending != OUTCOME_DONE)
        verdict_line(&cli->out, ending == OUTCOME_DONE, sentence, NULL, -1, &text);
    return report_print(cli, &text, status);
}

static void tell_waiting(void *context, const struct attempt *attempt, int64_t left_ms)
{
    const struct cli *cli = context;
    const char *name = attempt_name(attempt);
    _cleanup_(text_done) struct text text = {0};
    _cleanup_(mem_free) char *owner = executor_text(&attempt->executor);
    if (cli->options.quiet)
        return;
    text_addf(&text, "waiting for %s of %s, which was asked to stop: until ", name, owner);
    report_add_time(&text, clock_system()->wall_ms(clock_system()) + left_ms);
    text_addf(&text, "; watch it: tenure attach %s\n", name);
    report_complain(&text);
}

static int cancel_run(struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(here_done) struct here here = {0};
    enum cancel_outcome outcome = CANCEL_ENDED;
    struct attempt attempt = {0};
    if (cli->options.words.count == 0) {
        error_set(&err, RESULT_INVALID, 0, "tenure cancel: no handle and no attempt is given");
        error_remedy(&err, "`tenure status` lists them");
        return report_error(cli, &err);
    }
    here_look(false, &here);
    _cleanup_(mem_free) char *by = myself();
    struct cancel_request request = {
        .store_url = here_store_url(cli, &here),
        .typed = cli->options.words.items[0],
        .by = by,
        .wait_ms = WAIT_MS,
        .waiting = tell_waiting,
        .context = cli,
    };
    enum result r = cancel_attempt(&request, &outcome, &attempt, &err);
    if (r != RESULT_OK)
        return report_error(cli, &err);
    int status = print(cli, outcome, &attempt);
    attempt_done(&attempt);
    return status;
}

const struct command COMMAND_CANCEL = {
    .name = "cancel",
    .group = GROUP_WATCH,
    .synopsis = "cancel HANDLE|ATTEMPT",
    .summary = "ask an attempt to stop; retire it when its owner is gone",
    .words_max = 1,
    .run = cancel_run,
};
