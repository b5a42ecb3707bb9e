/* What the journal is told, and how often. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "supervisor/supervisor-private.h"

void tell(
    struct supervisor *supervisor, const struct journal_event *event, enum journal_durability durability)
{
    _cleanup_(error_done) struct error err = {0};
    if (journal_append(supervisor->options.journal, event, durability, &err) == RESULT_OK)
        return;
    /* The journal is broken from now on: this reaches the tap alone. */
    struct journal_event note = {.kind = JOURNAL_NOTE, .text = err.message};
    enum result r = journal_append(supervisor->options.journal, &note, JOURNAL_LAZY, NULL);
    (void)r;
}

void tell_note(struct supervisor *supervisor, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    _cleanup_(mem_free) char *text = mem_vformat(format, arguments);
    va_end(arguments);
    struct journal_event event = {.kind = JOURNAL_NOTE, .text = text};
    tell(supervisor, &event, JOURNAL_LAZY);
}

void tell_report(struct supervisor *supervisor, struct containment_report *report)
{
    if (report->named.length > 0)
        tell_note(supervisor, "while the work was stopped: %s", report->named.bytes);
    containment_report_done(report);
}

/* ---- progress ---- */

void supervisor_progress(struct supervisor *supervisor, const char *phase, int64_t done, int64_t total)
{
    struct progress *progress = &supervisor->progress;
    *progress = (struct progress){.done = done, .total = total};
    strncpy(progress->phase, phase, sizeof(progress->phase) - 1);
    supervisor->progress_pending = true;
    if (!supervisor->drained)
        heartbeat_progress(supervisor->heartbeat, progress);
    int64_t due = NEVER_MS;
    account_look(supervisor, supervisor_now(supervisor), &due);
}

static void progress_look(struct supervisor *supervisor, int64_t now, int64_t *due)
{
    if (!supervisor->progress_pending)
        return;
    int64_t next = supervisor->progress_boot_ms + MARK_INTERVAL_MS;
    if (now < next) {
        due_at(due, next);
        return;
    }
    supervisor->progress_pending = false;
    supervisor->progress_boot_ms = now;
    struct journal_event event = {
        .kind = JOURNAL_PROGRESS,
        .phase = supervisor->progress.phase,
        .done = supervisor->progress.done,
        .total = supervisor->progress.total,
    };
    tell(supervisor, &event, JOURNAL_LAZY);
}

/* ---- output marks ---- */

static void mark_look(struct supervisor *supervisor, struct job *job, int64_t now, int64_t *due)
{
    if (job->output == NULL)
        return;
    int64_t total = output_total_bytes(job->output);
    if (total == job->marked_bytes)
        return;
    int64_t next = job->marked_boot_ms + MARK_INTERVAL_MS;
    if (now < next) {
        due_at(due, next);
        return;
    }
    job->marked_boot_ms = now;
    job->marked_bytes = total;
    struct journal_event event = {
        .kind = JOURNAL_OUTPUT,
        .producer = job->outcome.name,
        .offset_bytes = output_readable_bytes(job->output),
        .dropped_bytes = output_dropped_bytes(job->output),
    };
    tell(supervisor, &event, JOURNAL_LAZY);
}

void account_look(struct supervisor *supervisor, int64_t now, int64_t *due)
{
    progress_look(supervisor, now, due);
    for (size_t i = 0; i < supervisor->job_count; i++)
        mark_look(supervisor, supervisor->jobs[i], now, due);
}
