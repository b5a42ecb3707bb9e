/* Every command, in the order of the help. */
#include "cli/cli.h"
#include "cli/help.h"

const struct command *const COMMANDS[] = {
    &COMMAND_INIT,
    &COMMAND_DONE,
    &COMMAND_RUN,
    &COMMAND_PUBLISH,
    &COMMAND_MEASURE,
    &COMMAND_STATUS,
    &COMMAND_ATTACH,
    &COMMAND_CANCEL,
    &COMMAND_LOG,
    &COMMAND_PROOF,
    &COMMAND_VERIFY,
    &COMMAND_KEY,
    &COMMAND_JOURNAL,
    &COMMAND_STORE,
    &COMMAND_HELP,
    NULL,
};
