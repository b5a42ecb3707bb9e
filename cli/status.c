/* `tenure status`: unfinished attempts, here or everywhere. */
#include <string.h>

#include "cli/entry.h"
#include "cli/here.h"
#include "cli/report.h"

static const struct option OPTIONS[] = {
    {"all", 'a', OPTION_FLAG, offsetof(struct options, all), NULL, "of every repository of the store", NULL,
        0, 0},
};

/* Here: of this repository, and work of this machine that is of none. Outside of a repository: everything. */
static bool is_here(const struct here *here, const struct machine *machine, const struct attempt *attempt)
{
    if (!here->inside)
        return true;
    if (attempt->repository)
        return strcmp(attempt->repository, here->repository) == 0;
    return strcmp(attempt->executor.machine_id, machine->machine_id) == 0;
}

static bool is_shown(const struct cli *cli, const struct here *here, const struct machine *machine,
    const struct overview_entry *entry)
{
    return cli->options.all || is_here(here, machine, &entry->attempt);
}

static int print_json(const struct cli *cli, const struct here *here, const struct machine *machine,
    const struct overview *overview)
{
    struct json_object *document = report_document(cli, EXITS[OUTCOME_DONE].name, 0);
    struct json_object *attempts = json_object_new_array();
    for (size_t i = 0; i < overview->count; i++)
        if (is_shown(cli, here, machine, &overview->items[i]))
            json_object_array_add(attempts, entry_json(&overview->items[i].attempt, &overview->items[i]));
    json_object_object_add(document, "attempts", attempts);
    return report_json(cli, document, 0);
}

static int print(const struct cli *cli, const struct here *here, const struct machine *machine,
    const struct overview *overview)
{
    size_t shown = 0, hidden = 0;
    _cleanup_(text_done) struct text text = {0};
    if (cli->options.json)
        return print_json(cli, here, machine, overview);
    for (size_t i = 0; i < overview->count; i++) {
        if (!is_shown(cli, here, machine, &overview->items[i])) {
            hidden++;
            continue;
        }
        text_add(&text, shown++ ? "\n" : "");
        entry_add(&cli->out, &overview->items[i], &overview->now, &text);
    }
    if (shown == 0 && !cli->options.quiet)
        report_add_none(&text, "no unfinished attempt here", overview->absent);
    if (hidden > 0 && !cli->options.quiet)
        text_addf(&text, "%s%zu elsewhere: tenure status --all\n", shown ? "\n" : "", hidden);
    return report_print(cli, &text, 0);
}

static int status_run(struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(here_done) struct here here = {0};
    struct machine machine = {0};
    struct overview overview = {0};
    struct attempt_query query = {.unfinished_only = true};
    here_look(false, &here);
    enum result r = machine_read(&machine, &err);
    if (r == RESULT_OK)
        r = overview_read(here_store_url(cli, &here), &query, &overview, &err);
    if (r != RESULT_OK)
        return report_error(cli, &err);
    int status = print(cli, &here, &machine, &overview);
    overview_done(&overview);
    return status;
}

const struct command COMMAND_STATUS = {
    .name = "status",
    .group = GROUP_WATCH,
    .synopsis = "status [--all]",
    .summary = "unfinished attempts: who, where, since when, lapses when",
    .options = OPTIONS,
    .option_count = ARRAY_SIZE(OPTIONS),
    .run = status_run,
};
