/* `tenure done`: proves HEAD. */
#include "base/memory.h"
#include "cli/pending.h"
#include "cli/report.h"
#include "cli/screen.h"
#include "cli/verdict.h"

#define AT(field) offsetof(struct options, field)

static const struct option OPTIONS[] = {
    OPTION_TO_WAIT,
    {"rerun", 0, OPTION_FLAG, AT(rerun), NULL, "run everything again, whatever is known", NULL, 0, 0},
    {"keep-going", 'k', OPTION_FLAG, AT(keep_going), NULL, "go on after a failure", NULL, 0, 0},
    {"dirty", 0, OPTION_FLAG, AT(dirty), NULL, "run on the work tree as it is; no evidence, no Proof", NULL,
        0, 0},
    {"dry-run", 'n', OPTION_FLAG, AT(dry_run), NULL, "say what would run and why, and run nothing", NULL, 0,
        0},
    {"detach", 0, OPTION_FLAG, AT(detach), NULL, "go on in the background (not in this version)", NULL, 0, 0},
    {"jobs", 'j', OPTION_INTEGER, AT(jobs), "N", "producers at once (default: number of processors)", NULL, 1,
        1024},
};

/* With --json, progress is for a person beside the program that reads the document: only where one watches.
 */
static enum result open_screen(const struct cli *cli, struct screen **ret, struct error *err)
{
    struct screen_options options = {
        .look = cli->options.json ? cli->err : cli->out, .clock = clock_system()};
    if (cli->options.quiet || (cli->options.json && !cli->err.terminal))
        return RESULT_OK;
    return screen_open(&options, ret, err);
}

static struct completion_options options_of(const struct cli *cli, struct screen *screen)
{
    const struct options *options = &cli->options;
    return (struct completion_options){
        .store_url = options->store_url,
        .names = options->words.items,
        .name_count = options->words.count,
        .wait_ms = options->wait_ms,
        .rerun = options->rerun,
        .keep_going = options->keep_going,
        .dirty = options->dirty,
        .dry_run = options->dry_run,
        .jobs = (size_t)options->jobs,
        .what = cli->line,
        .tap = screen_event,
        .waiting = screen_waiting,
        .context = screen,
    };
}

static int tell(const struct cli *cli, const struct completion_result *result, int status)
{
    _cleanup_(text_done) struct text text = {0};
    bool good = result->outcome == OUTCOME_DONE && !result->signal;
    if (result->outcome == OUTCOME_HELD) {
        pending_add(&cli->err, &result->pending, &text);
        report_complain(&text);
        return status;
    }
    if (cli->options.dry_run && good && !result->already)
        verdict_add_plan(&cli->out, result, &text);
    else if (!cli->options.quiet || !good)
        verdict_add(&cli->out, result, cli->out.terminal && !cli->options.quiet, &text);
    return report_print(cli, &text, status);
}

static int tell_all(
    const struct cli *cli, const struct completion_result *result, enum result r, const struct error *err)
{
    int status = r == RESULT_OK ? verdict_status(cli, result) : report_status(cli, outcome_of_result(r));
    if (cli->options.json)
        return report_json(cli, verdict_json(cli, result, status, r == RESULT_OK ? NULL : err), status);
    if (r == RESULT_OK)
        return tell(cli, result, status);
    return report_error_as(cli, err, outcome_of_result(r));
}

static int done_run(struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    struct screen *screen = NULL;
    struct completion_result result = {0};
    if (cli->options.detach) {
        error_set(&err, RESULT_INVALID, 0, "tenure done: --detach is not in this version");
        error_remedy(&err, "run it in a terminal of its own, or under nohup; `tenure attach` follows it");
        return report_error(cli, &err);
    }
    if (open_screen(cli, &screen, &err) != RESULT_OK)
        return report_error(cli, &err);
    struct completion_options options = options_of(cli, screen);
    int64_t start_ms = clock_system()->boot_ms(clock_system());
    enum result r = completion_run(&options, &result, &err);
    screen_close(screen);
    /* Without an attempt nobody measured. */
    if (result.duration_ms == 0)
        result.duration_ms = clock_system()->boot_ms(clock_system()) - start_ms;
    int status = tell_all(cli, &result, r, &err);
    completion_result_done(&result);
    return status;
}

const struct command COMMAND_DONE = {
    .name = "done",
    .group = GROUP_PROVE,
    .synopsis = "done [OPTION]... [NAME]...",
    .summary = "prove HEAD: run what is not proved yet, and sign",
    .details =
        "Runs every producer of tenure.json (or the named ones and what they need) whose evidence does not\n"
        "already cover the committed tree, under a lease, and signs a Proof when all have passed. A tree "
        "that\n"
        "is proved already costs nothing. Ctrl-C stops the producers and records the attempt as cancelled.",
    .options = OPTIONS,
    .option_count = ARRAY_SIZE(OPTIONS),
    .words_max = SIZE_MAX,
    .status_is_the_attempts = true,
    .run = done_run,
};
