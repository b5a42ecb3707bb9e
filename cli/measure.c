/* `tenure measure`: not in this version. */
#include "cli/report.h"

static int measure_run(struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    error_set(&err, RESULT_INVALID, 0, "tenure measure: not in this version");
    error_remedy(&err, "producers can check a limit of their own and fail");
    return report_error(cli, &err);
}

const struct command COMMAND_MEASURE = {
    .name = "measure",
    .group = GROUP_PROVE,
    .synopsis = "measure ...",
    .summary = "measure standards (not in this version)",
    .words_max = SIZE_MAX,
    .run = measure_run,
};
