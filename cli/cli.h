/*
 * The command line's own vocabulary: a command, and what every command is handed.
 *
 * main.c finds the command in COMMANDS, has its options parsed and calls its `run`, which parses nothing,
 * calls one function of the rooms below, prints, and returns the exit status. Nothing below this room prints
 * or exits.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cli/options.h"
#include "cli/terminal.h"
#include "supervisor/exits.h"

struct cli {
    const struct command *command; /* NULL until it is known */
    struct options options;
    struct look out, err; /* how standard output and standard error are to be drawn */
    const char *line;     /* the command line as typed, for people; owned by main */
};

enum command_group { GROUP_PROVE, GROUP_WATCH, GROUP_CHECK, GROUP_KEEP, COMMAND_GROUP_MAX };

struct command {
    const char *name;
    enum command_group group;
    const char *synopsis; /* behind "tenure " */
    const char *summary;  /* one line */
    const char *details;  /* paragraphs of the command's own help; may be NULL */
    const struct option *options;
    size_t option_count;
    size_t words_max;            /* how many words may follow */
    bool takes_command;          /* what follows `--` is somebody else's command line */
    bool own_failures_are_high;  /* exit statuses 122 to 127 for its own failures: `run` */
    bool status_is_the_attempts; /* whatever becomes of the words about it */
    int (*run)(struct cli *cli);
};

extern const struct command COMMAND_INIT, COMMAND_DONE, COMMAND_MEASURE, COMMAND_RUN, COMMAND_PUBLISH,
    COMMAND_STATUS, COMMAND_ATTACH, COMMAND_CANCEL, COMMAND_LOG, COMMAND_PROOF, COMMAND_VERIFY, COMMAND_KEY,
    COMMAND_JOURNAL, COMMAND_STORE;

/* All of them in the order of the help; NULL-terminated. */
extern const struct command *const COMMANDS[];

#endif
