/* The help, from the tables of commands and options. Pure. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/cli.h"

void help_add(const struct look *look, struct text *ret);
void help_add_command(const struct look *look, const struct command *command, struct text *ret);

extern const struct command COMMAND_HELP;

#endif
