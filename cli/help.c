#include "cli/help.h"

#include <string.h>

#include "base/memory.h"
#include "cli/report.h"

#define FORM_COLUMNS 24

static const char *const GROUPS[COMMAND_GROUP_MAX] = {
    [GROUP_PROVE] = "Work under a lease",
    [GROUP_WATCH] = "Watch and steer",
    [GROUP_CHECK] = "Proofs",
    [GROUP_KEEP] = "Housekeeping",
};

static void add_title(const struct look *look, const char *title, struct text *ret)
{
    text_addf(ret, "\n%s%s%s\n", style_begin(look, STYLE_BOLD), title, style_end(look, STYLE_BOLD));
}

static void add_entry(const struct look *look, const char *form, const char *help, struct text *ret)
{
    text_addf(ret, "  %s%s%s", style_begin(look, STYLE_ACCENT), form, style_end(look, STYLE_ACCENT));
    int columns = text_columns(form);
    if (columns > FORM_COLUMNS) {
        text_add(ret, "\n  ");
        columns = 0;
    }
    text_addf(ret, "%*s  %s\n", FORM_COLUMNS - columns, "", help);
}

static void add_option(const struct look *look, const struct option *option, struct text *ret)
{
    _cleanup_(text_done) struct text form = {0};
    if (!option->help)
        return;
    if (option->letter)
        text_addf(&form, "-%c, ", option->letter);
    else
        text_add(&form, "    ");
    text_addf(&form, "--%s", option->name);
    if (option->kind == OPTION_WAIT)
        text_addf(&form, "[=%s]", option->value);
    else if (option->kind != OPTION_FLAG)
        text_addf(&form, " %s", option->value);
    add_entry(look, form.bytes, option->help, ret);
}

static void add_everywhere(const struct look *look, struct text *ret)
{
    add_title(look, "Options everywhere", ret);
    for (size_t i = 0; i < OPTIONS_EVERYWHERE_COUNT; i++)
        add_option(look, &OPTIONS_EVERYWHERE[i], ret);
}

void help_add(const struct look *look, struct text *ret)
{
    text_addf(ret, "%stenure%s runs work under a lease that cannot be faked, outlived or silently lost.\n",
        style_begin(look, STYLE_BOLD), style_end(look, STYLE_BOLD));
    text_add(ret, "\n  tenure [OPTION]... COMMAND [OPTION]... [WORD]...\n");
    for (int group = 0; group < COMMAND_GROUP_MAX; group++) {
        add_title(look, GROUPS[group], ret);
        for (const struct command *const *command = COMMANDS; *command; command++)
            if ((int)(*command)->group == group && *command != &COMMAND_HELP)
                add_entry(look, (*command)->name, (*command)->summary, ret);
    }
    add_everywhere(look, ret);
    add_title(look, "Exit status", ret);
    for (size_t i = 0; i < OUTCOME_MAX; i++)
        text_addf(ret, "  %5d  %s\n", EXITS[i].status, EXITS[i].meaning);
    text_add(ret, "  128+n  ended by signal n\n\n`tenure COMMAND --help` tells more about a command.\n");
}

void help_add_command(const struct look *look, const struct command *command, struct text *ret)
{
    text_addf(ret, "%stenure %s%s: %s\n\n  tenure %s\n", style_begin(look, STYLE_BOLD), command->name,
        style_end(look, STYLE_BOLD), command->summary, command->synopsis);
    if (command->details)
        text_addf(ret, "\n%s\n", command->details);
    if (command->option_count > 0)
        add_title(look, "Options", ret);
    for (size_t i = 0; i < command->option_count; i++)
        add_option(look, &command->options[i], ret);
    add_everywhere(look, ret);
}

static int help_run(struct cli *cli)
{
    _cleanup_(text_done) struct text text = {0};
    _cleanup_(error_done) struct error err = {0};
    const struct words *words = &cli->options.words;
    const struct command *command = words->count ? command_find(COMMANDS, words->items[0]) : NULL;
    if (words->count > 0 && !command) {
        error_set(&err, RESULT_INVALID, 0, "tenure help: there is no such command");
        error_remedy(&err, "`tenure help` lists them");
        return report_error(cli, &err);
    }
    if (command)
        help_add_command(&cli->out, command, &text);
    else
        help_add(&cli->out, &text);
    return report_print(cli, &text, 0);
}

const struct command COMMAND_HELP = {
    .name = "help",
    .group = GROUP_KEEP,
    .synopsis = "help [COMMAND]",
    .summary = "this text",
    .words_max = 1,
    .run = help_run,
};
