/* `tenure log`: past attempts with outcome and reason. */
#include "cli/entry.h"
#include "cli/here.h"
#include "cli/report.h"

static const struct option OPTIONS[] = {
    {"number", 'n', OPTION_INTEGER, offsetof(struct options, count), "N",
        "how many, newest first (default 20)", NULL, 1, 1000000},
    {"all", 'a', OPTION_FLAG, offsetof(struct options, all), NULL, "of every repository of the store", NULL,
        0, 0},
};

static int print_json(const struct cli *cli, const struct overview *overview)
{
    struct json_object *document = report_document(cli, EXITS[OUTCOME_DONE].name, 0);
    struct json_object *attempts = json_object_new_array();
    for (size_t i = 0; i < overview->count; i++)
        json_object_array_add(attempts, entry_json(&overview->items[i].attempt, NULL));
    json_object_object_add(document, "attempts", attempts);
    return report_json(cli, document, 0);
}

static int print(const struct cli *cli, const struct overview *overview)
{
    _cleanup_(text_done) struct text text = {0};
    int columns = cli->out.terminal ? terminal_size_of(cli->out.fd).columns : 0;
    if (cli->options.json)
        return print_json(cli, overview);
    for (size_t i = 0; i < overview->count; i++)
        entry_add_line(&cli->out, &overview->items[i], columns, &text);
    if (overview->count == 0 && !cli->options.quiet)
        report_add_none(&text, "no attempt yet", overview->absent);
    return report_print(cli, &text, 0);
}

static int log_run(struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(here_done) struct here here = {0};
    struct overview overview = {0};
    here_look(false, &here);
    struct attempt_query query = {
        .repository = cli->options.all ? NULL : here.repository, .limit = (size_t)cli->options.count};
    if (overview_read(here_store_url(cli, &here), &query, &overview, &err) != RESULT_OK)
        return report_error(cli, &err);
    int status = print(cli, &overview);
    overview_done(&overview);
    return status;
}

const struct command COMMAND_LOG = {
    .name = "log",
    .group = GROUP_WATCH,
    .synopsis = "log [-n N] [--all]",
    .summary = "past attempts with outcome and reason",
    .options = OPTIONS,
    .option_count = ARRAY_SIZE(OPTIONS),
    .run = log_run,
};
