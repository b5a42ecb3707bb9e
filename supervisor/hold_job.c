/* Running one job to its end, as `run` and `publish` do. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "supervisor/hold-private.h"

/* ---- what the child gets ---- */

static size_t name_length(const char *entry)
{
    const char *equals = strchr(entry, '=');
    return equals != NULL ? (size_t)(equals - entry) + 1 : strlen(entry);
}

static bool is_replaced(const char *entry, const char *const *marks)
{
    for (; *marks != NULL; marks++)
        if (strncmp(entry, *marks, name_length(*marks)) == 0)
            return true;
    return false;
}

/* Our own environment with the attempt's marks in it. The strings are borrowed. */
static const char **make_environment(const char *const *marks)
{
    size_t count = 0, kept = 0;
    while (environ[count] != NULL)
        count++;
    const char **environment = mem_alloc((count + 8) * sizeof(*environment));
    for (size_t i = 0; i < count; i++)
        if (!is_replaced(environ[i], marks))
            environment[kept++] = environ[i];
    for (; *marks != NULL; marks++)
        environment[kept++] = *marks;
    return environment;
}

/* ---- running it ---- */

/* Until nothing runs any more. */
static enum result watch(struct supervisor *supervisor, struct job_outcome *ret, struct error *err)
{
    for (;;) {
        struct supervisor_event event = {0};
        enum result r = supervisor_next(supervisor, &event, err);
        if (r != RESULT_OK)
            return r;
        if (event.kind == SUPERVISOR_JOB_FINISHED) {
            job_outcome_done(ret);
            *ret = event.outcome;
        }
        if (event.kind == SUPERVISOR_IDLE)
            return RESULT_OK;
    }
}

static enum result run_job(struct supervisor *supervisor, const struct job_request *request,
    struct job_outcome *ret, struct error *err)
{
    for (;;) {
        _cleanup_(error_done) struct error why = {0};
        enum result r = supervisor_spawn(supervisor, request, &why);
        if (r == RESULT_INTERRUPTED)
            return RESULT_OK; /* what stopped us tells the rest */
        if (r != RESULT_OK && r != RESULT_BUSY)
            return error_move(err, &why);
        enum result watched = watch(supervisor, ret, err);
        if (watched != RESULT_OK || r == RESULT_OK)
            return watched;
    }
}

enum result hold_run_job(
    struct hold *hold, const struct job_request *request, struct job_outcome *ret, struct error *err)
{
    struct job_request ours = *request;
    _cleanup_(fd_cleanup) int directory_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory_fd < 0)
        return error_errno(err, errno, "cannot open the work directory");
    const char **environment = make_environment(hold_marks(hold));
    ours.environment = environment;
    ours.directory_fd = directory_fd;
    enum result r = run_job(hold->supervisor, &ours, ret, err);
    free(environment);
    return r;
}
