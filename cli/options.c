#include "cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/cli.h"
#include "supervisor/hold.h"

static const char *const COLORS[] = {
    [COLOR_AUTO] = "auto", [COLOR_ALWAYS] = "always", [COLOR_NEVER] = "never", NULL};

#define AT(field) offsetof(struct options, field)

const struct option OPTIONS_EVERYWHERE[] = {
    {"directory", 'C', OPTION_STRING, AT(directory), "DIR", "work as if started in DIR", NULL, 0, 0},
    {"store", 0, OPTION_STRING, AT(store_url), "URL",
        "the store (sqlite:PATH, postgresql://...); or TENURE_STORE", NULL, 0, 0},
    {"json", 0, OPTION_FLAG, AT(json), NULL, "exactly one JSON document on standard output", NULL, 0, 0},
    {"quiet", 'q', OPTION_FLAG, AT(quiet), NULL, "no progress, no good news", NULL, 0, 0},
    {"color", 0, OPTION_CHOICE, AT(color), "WHEN", "auto, always or never; NO_COLOR is respected", COLORS, 0,
        0},
    {"help", 'h', OPTION_FLAG, AT(help), NULL, "this text", NULL, 0, 0},
    {"version", 0, OPTION_FLAG, AT(version), NULL, "the version", NULL, 0, 0},
#ifdef TENURE_FAILPOINTS
    {"list-failpoints", 0, OPTION_FLAG, AT(list_failpoints), NULL, NULL, NULL, 0, 0},
#endif
};
const size_t OPTIONS_EVERYWHERE_COUNT = ARRAY_SIZE(OPTIONS_EVERYWHERE);

void options_init(struct options *options)
{
    *options = (struct options){
        .wait_ms = WAIT_NONE, .ttl_ms = -1, .held_exit = -1, .count = 20, .keep = -1, .older_ms = -1};
}

static void words_add(struct words *words, const char *word)
{
    mem_grow(&words->items, &words->capacity, words->count + 1, sizeof(*words->items));
    words->items[words->count++] = word;
    words->items[words->count] = NULL;
}

void options_done(struct options *options)
{
    free(options->subjects.items);
    free(options->keys.items);
    free(options->words.items);
    free(options->child.items);
    *options = (struct options){0};
}

bool option_takes_value(const struct option *option)
{
    return option->kind != OPTION_FLAG && option->kind != OPTION_WAIT;
}

const struct command *command_find(const struct command *const *commands, const char *name)
{
    for (; *commands; commands++)
        if (strcmp((*commands)->name, name) == 0)
            return *commands;
    return NULL;
}

/* ---- finding an option ---- */

/* One argument that looks like an option, taken apart. */
struct typed {
    const char *argument;
    const char *name;  /* behind the dashes */
    size_t length;     /* of the name */
    const char *value; /* attached; NULL when there is none */
};

static bool is_option(const char *argument)
{
    return argument[0] == '-' && argument[1] != '\0';
}

static struct typed take_apart(const char *argument)
{
    bool is_long = argument[1] == '-';
    const char *name = argument + (is_long ? 2 : 1);
    struct typed typed = {.argument = argument, .name = name, .length = is_long ? strcspn(name, "=") : 1};
    if (is_long && name[typed.length] == '=')
        typed.value = name + typed.length + 1;
    else if (!is_long && name[1] != '\0')
        typed.value = name + (name[1] == '=' ? 2 : 1);
    return typed;
}

static bool option_matches(const struct option *option, const struct typed *typed)
{
    if (typed->argument[1] != '-')
        return option->letter != '\0' && option->letter == typed->name[0];
    return strlen(option->name) == typed->length && strncmp(option->name, typed->name, typed->length) == 0;
}

static const struct option *find_in(const struct option *options, size_t count, const struct typed *typed)
{
    for (size_t i = 0; i < count; i++)
        if (option_matches(&options[i], typed))
            return &options[i];
    return NULL;
}

static const struct option *find_for(const struct command *command, const struct typed *typed)
{
    const struct option *found = find_in(OPTIONS_EVERYWHERE, OPTIONS_EVERYWHERE_COUNT, typed);
    return found || !command ? found : find_in(command->options, command->option_count, typed);
}

/* The first command's that has it. */
static const struct option *find_anywhere(
    const struct command *const *commands, const struct typed *typed, const struct command **ret_owner)
{
    const struct option *found = find_in(OPTIONS_EVERYWHERE, OPTIONS_EVERYWHERE_COUNT, typed);
    for (; !found && *commands; commands++) {
        found = find_in((*commands)->options, (*commands)->option_count, typed);
        *ret_owner = *commands;
    }
    return found;
}

/* ---- refusals ---- */

static const char *prefix_of(const struct command *command, char buffer[64])
{
    snprintf(buffer, 64, command ? "tenure %s" : "tenure", command ? command->name : "");
    return buffer;
}

static char *printable(const char *string)
{
    struct text text = {0};
    text_add_printable(&text, string, strnlen(string, 200), false);
    return text_steal(&text);
}

/* One is the other with something behind it: --older-than, --dry. */
static bool begins_alike(const char *a, const char *b)
{
    size_t length = strlen(a) < strlen(b) ? strlen(a) : strlen(b);
    return length >= 3 && strncmp(a, b, length) == 0;
}

static const char *nearest_option(const struct command *command, const char *name)
{
    const char *names[64];
    size_t count = 0;
    for (size_t i = 0; i < OPTIONS_EVERYWHERE_COUNT; i++)
        if (OPTIONS_EVERYWHERE[i].help)
            names[count++] = OPTIONS_EVERYWHERE[i].name;
    for (size_t i = 0; command && i < command->option_count && count < ARRAY_SIZE(names); i++)
        names[count++] = command->options[i].name;
    const char *nearest = text_nearest(name, names, count);
    for (size_t i = 0; !nearest && i < count; i++)
        if (begins_alike(name, names[i]))
            nearest = names[i];
    return nearest;
}

static enum result refuse_option(const struct command *const *commands, const struct command *command,
    const struct typed *typed, struct error *err)
{
    char buffer[64];
    const struct command *owner = NULL;
    const struct option *elsewhere = find_anywhere(commands, typed, &owner);
    _cleanup_(mem_free) char *shown = printable(typed->argument);
    shown[strcspn(shown, "=")] = '\0';
    error_set(err, RESULT_INVALID, 0, "%s: unknown option %s", prefix_of(command, buffer), shown);
    if (elsewhere && owner)
        return error_remedy(err, "%s belongs to `tenure %s`", shown, owner->name);
    _cleanup_(mem_free) char *name = mem_format("%.*s", (int)typed->length, typed->name);
    const char *nearest = typed->argument[1] == '-' ? nearest_option(command, name) : NULL;
    if (nearest)
        return error_remedy(err, "did you mean --%s?", nearest);
    return error_remedy(err, "`%s --help` lists the options", prefix_of(command, buffer));
}

static enum result refuse_command(const struct command *const *commands, const char *word, struct error *err)
{
    const char *names[32];
    size_t count = 0;
    for (; commands[count] && count < ARRAY_SIZE(names); count++)
        names[count] = commands[count]->name;
    _cleanup_(mem_free) char *shown = printable(word);
    error_set(err, RESULT_INVALID, 0, "tenure: unknown command '%s'", shown);
    const char *nearest = text_nearest(word, names, count);
    if (nearest)
        return error_remedy(err, "did you mean `tenure %s`?", nearest);
    return error_remedy(err, "`tenure help` lists the commands");
}

/* ---- values ---- */

static enum result set_choice(
    const struct option *option, const char *what, const char *value, int *place, struct error *err)
{
    struct text known = {0};
    size_t count = 0;
    for (; option->choices[count]; count++) {
        if (strcmp(option->choices[count], value) == 0) {
            *place = (int)count;
            text_done(&known);
            return RESULT_OK;
        }
        text_addf(&known, "%s%s",
            count == 0                   ? ""
            : option->choices[count + 1] ? ", "
                                         : " or ",
            option->choices[count]);
    }
    _cleanup_(mem_free) char *shown = printable(value);
    error_set(err, RESULT_INVALID, 0, "%s: '%s' is none of %s", what, shown, known.bytes);
    text_done(&known);
    const char *nearest = text_nearest(value, option->choices, count);
    return nearest ? error_remedy(err, "did you mean %s?", nearest) : RESULT_INVALID;
}

static enum result set_integer(
    const struct option *option, const char *what, const char *value, int64_t *place, struct error *err)
{
    if (text_parse_int(value, option->min, option->max, place))
        return RESULT_OK;
    _cleanup_(mem_free) char *shown = printable(value);
    return error_set(err, RESULT_INVALID, 0, "%s: '%s' is not a whole number from %lld to %lld", what, shown,
        (long long)option->min, (long long)option->max);
}

static enum result set_value(
    const struct option *option, const char *value, struct options *options, struct error *err)
{
    void *place = (char *)options + option->offset;
    _cleanup_(mem_free) char *what = mem_format("--%s", option->name);
    if (option->kind == OPTION_DURATION || option->kind == OPTION_WAIT)
        return duration_parse(what, value, option->min, option->max, place, err);
    if (option->kind == OPTION_INTEGER)
        return set_integer(option, what, value, place, err);
    if (option->kind == OPTION_CHOICE)
        return set_choice(option, what, value, place, err);
    if (value[0] == '\0')
        return error_set(
            err, RESULT_INVALID, 0, "%s: the value is empty, a %s is wanted", what, option->value);
    if (option->kind == OPTION_LIST)
        words_add(place, value);
    else
        *(const char **)place = value;
    return RESULT_OK;
}

static enum result set_alone(
    const struct option *option, const struct typed *typed, struct options *options, struct error *err)
{
    if (typed->value && option->kind == OPTION_WAIT)
        return set_value(option, typed->value, options, err);
    if (typed->value) {
        error_set(err, RESULT_INVALID, 0, "--%s takes no value", option->name);
        return error_remedy(err, "write --%s alone", option->name);
    }
    if (option->kind == OPTION_WAIT)
        *(int64_t *)((char *)options + option->offset) = WAIT_DEFAULT_MS;
    else
        *(bool *)((char *)options + option->offset) = true;
    return RESULT_OK;
}

/* ---- the two passes ---- */

/* Where the arguments are, and what is known of them. */
struct pass {
    const struct command *const *commands;
    const struct command *command;
    int argc;
    const char *const *argv;
    int command_at; /* 0: there is none */
};

static bool is_command(const struct pass *pass, int at)
{
    return at != 0 && at == pass->command_at;
}

/* Once the command is known, its own. Before, one letter may be a flag of one command and take a value of
 * another: what follows is that value unless it is a command. */
static const struct option *peek_find(const struct pass *pass, const struct typed *typed, const char *next)
{
    const struct command *owner = NULL;
    if (pass->command_at)
        return find_for(command_find(pass->commands, pass->argv[pass->command_at]), typed);
    const struct option *found = find_anywhere(pass->commands, typed, &owner);
    bool value_follows = next && !command_find(pass->commands, next);
    for (const struct command *const *other = pass->commands; found && owner && *other; other++) {
        const struct option *same = find_in((*other)->options, (*other)->option_count, typed);
        if (same && option_takes_value(same) == value_follows)
            return same;
    }
    return found;
}

/* What can be known of an option before its command is: how many arguments it takes, and --json and --color,
 * for the refusals. One that no command has counts as one without value; the second pass refuses it. */
static int peek_option(const struct pass *pass, int at, struct options *options)
{
    _cleanup_(error_done) struct error ignored = {0};
    struct typed typed = take_apart(pass->argv[at]);
    const char *behind = at + 1 < pass->argc ? pass->argv[at + 1] : NULL;
    const struct option *option = peek_find(pass, &typed, behind);
    if (!option)
        return 1;
    bool next = option_takes_value(option) && !typed.value;
    const char *value = next ? behind : typed.value;
    if (option->offset == AT(json) && !value)
        options->json = true;
    if (option->offset == AT(color) && value)
        (void)!set_value(option, value, options, &ignored);
    return next ? 2 : 1;
}

/* The first pass finds the command, so that the second knows whose options it reads. */
static void find_command(struct pass *pass, struct options *options)
{
    for (int i = 1; i < pass->argc;) {
        if (strcmp(pass->argv[i], "--") == 0) {
            if (!pass->command_at && i + 1 < pass->argc)
                pass->command_at = i + 1;
            return;
        }
        if (is_option(pass->argv[i])) {
            i += peek_option(pass, i, options);
            continue;
        }
        if (!pass->command_at)
            pass->command_at = i;
        i++;
    }
}

static enum result take_option(struct pass *pass, int *at, struct options *options, struct error *err)
{
    struct typed typed = take_apart(pass->argv[*at]);
    const struct option *option = find_for(pass->command, &typed);
    if (!option)
        return refuse_option(pass->commands, pass->command, &typed, err);
    if (!option_takes_value(option))
        return set_alone(option, &typed, options, err);
    if (typed.value)
        return set_value(option, typed.value, options, err);
    if (*at + 1 >= pass->argc) {
        error_set(err, RESULT_INVALID, 0, "--%s needs a value", option->name);
        return error_remedy(err, "write --%s %s", option->name, option->value);
    }
    return set_value(option, pass->argv[++*at], options, err);
}

/* What follows `--`: somebody else's command line, or words that may look like options. */
static void take_rest(struct pass *pass, int at, struct options *options)
{
    bool child = pass->command && pass->command->takes_command && pass->command_at < at;
    for (; at < pass->argc; at++)
        if (!is_command(pass, at))
            words_add(child ? &options->child : &options->words, pass->argv[at]);
}

static enum result take_arguments(struct pass *pass, struct options *options, struct error *err)
{
    for (int i = 1; i < pass->argc; i++) {
        const char *argument = pass->argv[i];
        if (strcmp(argument, "--") == 0) {
            take_rest(pass, i + 1, options);
            return RESULT_OK;
        }
        if (is_command(pass, i))
            continue;
        if (!is_option(argument)) {
            words_add(&options->words, argument);
            continue;
        }
        enum result r = take_option(pass, &i, options, err);
        if (r != RESULT_OK)
            return r;
    }
    return RESULT_OK;
}

static enum result check_words(
    const struct command *command, const struct options *options, struct error *err)
{
    if (!command || options->help || options->words.count <= command->words_max)
        return RESULT_OK;
    _cleanup_(mem_free) char *shown = printable(options->words.items[command->words_max]);
    error_set(err, RESULT_INVALID, 0, "tenure %s: '%s' is one word too many", command->name, shown);
    if (command->takes_command)
        return error_remedy(err, "put -- before the command that is to run");
    return error_remedy(err, "the form is: tenure %s", command->synopsis);
}

enum result options_parse(const struct command *const *commands, int argc, const char *const *argv,
    struct options *options, const struct command **ret_command, struct error *err)
{
    struct pass pass = {.commands = commands, .argc = argc, .argv = argv};
    *ret_command = NULL;
    find_command(&pass, options);
    if (pass.command_at) {
        pass.command = command_find(commands, argv[pass.command_at]);
        *ret_command = pass.command;
        if (!pass.command)
            return refuse_command(commands, argv[pass.command_at], err);
    }
    enum result r = take_arguments(&pass, options, err);
    return r == RESULT_OK ? check_words(pass.command, options, err) : r;
}
