/*
 * How anything of the work comes to life: looked for outside of the gate, started inside of it, with the
 * deadline looked at last of all and once more right after.
 */
#include <signal.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "supervisor/supervisor-private.h"

bool work_may_start(const struct supervisor *supervisor)
{
    return MUTANT("deadline-spawn") || gate_may_run(&supervisor->gate);
}

enum result work_withheld(struct error *err)
{
    return error_set(err, RESULT_BUSY, 0, "nothing may be started until the lease is confirmed again");
}

/* Inside the gate. A process that was stopped between its look and the spawn sees it at the second look. */
static enum result start_inside(struct supervisor *supervisor, const struct spawn_request *request,
    const char *path, struct process *ret, struct spawn_failure *ret_failure, struct error *err)
{
    const struct spawner *spawner = supervisor->options.spawner;
    if (!work_may_start(supervisor))
        return work_withheld(err);
    FAILPOINT("supervisor-before-spawn");
    enum result r = spawner->start(spawner, request, path, ret, ret_failure, err);
    if (r != RESULT_OK)
        return ret_failure->step == SPAWN_LAPSED ? work_withheld(err) : r;
    containment_add(supervisor->containment, ret->pid);
    FAILPOINT("supervisor-after-spawn");
    if (work_may_start(supervisor))
        return RESULT_OK;
    process_signal_group(ret->pid, SIGKILL);
    process_close(ret);
    return work_withheld(err);
}

enum result work_start(struct supervisor *supervisor, struct spawn_request *request, struct process *ret,
    struct spawn_failure *ret_failure, struct error *err)
{
    const struct spawner *spawner = supervisor->options.spawner;
    _cleanup_(mem_free) char *path = NULL;
    request->files = supervisor->files.rlim_max != 0 ? &supervisor->files : NULL;
    enum result r = spawner->prepare(spawner, request, &path, ret_failure, err);
    if (r != RESULT_OK)
        return r;
    request->deadline_boot_ms = MUTANT("deadline-spawn") ? 0 : gate_deadline(&supervisor->gate);
    gate_enter(&supervisor->gate);
    r = start_inside(supervisor, request, path, ret, ret_failure, err);
    gate_leave(&supervisor->gate);
    if (r != RESULT_OK && r != RESULT_BUSY)
        spawner->explain(spawner, request, path, ret_failure, err);
    return r;
}
