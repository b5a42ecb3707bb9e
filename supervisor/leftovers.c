#include "supervisor/leftovers.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "journal/handle.h"
#include "journal/liveness.h"
#include "supervisor/marks-private.h"
#include "supervisor/process.h"
#include "supervisor/supervisor.h"

#define TICK_MS               INT64_C(50)
#define KILL_BOUND_MS         INT64_C(5000) /* a killed process that does not go in that time hangs in the kernel */
#define SCAN_NAP_NS           2000000
#define EMPTY_SCANS           2 /* in a row: one scan may pass over what is just being born, or executed */
#define INITIAL_PID_NAMESPACE UINT64_C(0xEFFFFFFC) /* PROC_PID_INIT_INO of the kernel's linux/proc_ns.h */

void leftovers_report_done(struct leftovers_report *report)
{
    text_done(&report->notes);
    text_done(&report->named);
    *report = (struct leftovers_report){0};
}

/* One row while it is being dealt with. */
struct ending {
    const struct leftovers_options *options;
    const struct leftover *row;
    struct mark_scan scan;
    struct text lives; /* what could not be ended, with why; empty: nothing */
    bool hidden;       /* work may live where it cannot be seen from here */
};

static void ending_done(struct ending *ending)
{
    mark_scan_done(&ending->scan);
    text_done(&ending->lives);
}

static int64_t now_ms(const struct ending *ending)
{
    return ending->options->clock->boot_ms(ending->options->clock);
}

static void tick(const struct ending *ending)
{
    if (ending->options->tick)
        ending->options->tick(ending->options->context);
}

static void lives_add(struct ending *ending, const char *what, const char *why)
{
    text_addf(&ending->lives, "%s%s (%s)", ending->lives.length ? ", " : "", what, why);
}

/* ---- its supervisor ---- */

static struct liveness_question question_of(const struct ending *ending)
{
    return (struct liveness_question){
        .path = ending->row->journal_path,
        .incarnation = ending->row->executor.incarnation,
        .attempt = ending->row->attempt_id,
        .machine = ending->options->machine,
    };
}

/* Until the journal's lock is free. False when it is still held after `bound_ms`. */
static bool owner_wait(const struct ending *ending, int64_t bound_ms)
{
    struct liveness_question question = question_of(ending);
    int64_t end_ms = now_ms(ending) + bound_ms;
    for (;;) {
        int64_t left_ms = end_ms - now_ms(ending);
        if (liveness_wait(&question,
                left_ms < 0         ? 0
                : left_ms < TICK_MS ? left_ms
                                    : TICK_MS,
                -1)
                .verdict != OWNER_RUNNING)
            return true;
        if (left_ms <= 0)
            return false;
        tick(ending);
    }
}

/* TERM and CONT: it may be stopped. It sees its retirement, ends its work and exits; KILL if it does not. */
static bool owner_signal(const struct ending *ending, const struct process *owner)
{
    int64_t grace_ms = ending->options->grace_ms > 0 ? ending->options->grace_ms : GRACE_DEFAULT_MS;
    if (process_signal(owner, SIGTERM, NULL) == RESULT_DENIED)
        return false;
    (void)!process_signal(owner, SIGCONT, NULL);
    if (owner_wait(ending, grace_ms))
        return true;
    (void)!process_signal(owner, SIGKILL, NULL);
    return owner_wait(ending, KILL_BOUND_MS);
}

static void owner_end(struct ending *ending)
{
    const struct executor *executor = &ending->row->executor;
    _cleanup_(mem_free) char *what = mem_format("its supervisor, pid %d", (int)executor->pid);
    struct liveness_question question = question_of(ending);
    struct process owner;
    if (liveness_probe(&question).verdict != OWNER_RUNNING)
        return;
    if (executor->pid_namespace != ending->options->machine->pid_namespace) {
        lives_add(ending, what, "in another pid namespace");
        return;
    }
    if (mark_scan_is_kin(&ending->scan, (pid_t)executor->pid)) {
        lives_add(ending, what, "this run is part of its work");
        return;
    }
    if (process_open((pid_t)executor->pid, executor->start_ticks, &owner, NULL) == RESULT_OK) {
        if (!owner_signal(ending, &owner))
            lives_add(ending, what, "could not be ended");
        process_close(&owner);
    } else if (!owner_wait(ending, TICK_MS)) {
        lives_add(ending, what, "its journal is locked, and it cannot be found");
    }
}

/* ---- everything that bears its mark ---- */

/* KILL, again until nothing is found. */
static void marked_end(struct ending *ending)
{
    struct mark_scan *scan = &ending->scan;
    int64_t end_ms = now_ms(ending) + KILL_BOUND_MS;
    for (int empty = 0; empty < EMPTY_SCANS;) {
        mark_scan_run(scan);
        empty = scan->found == 0 ? empty + 1 : 0;
        if (scan->found > 0 && (scan->found == scan->denied || now_ms(ending) > end_ms)) {
            lives_add(ending, scan->named.bytes, "could not be ended");
            break;
        }
        if (scan->found > 0)
            nanosleep(&(struct timespec){.tv_nsec = SCAN_NAP_NS}, NULL);
        tick(ending);
    }
    if (scan->kin > 0)
        lives_add(ending, "this run itself", "it is part of that work");
}

/* From the initial namespace everything is seen. A namespace whose first process is gone is empty. */
static bool work_may_be_hidden(const struct ending *ending)
{
    const struct executor *executor = &ending->row->executor;
    uint64_t here = ending->options->machine->pid_namespace;
    struct liveness_question question = question_of(ending);
    if (executor->pid_namespace == here || here == INITIAL_PID_NAMESPACE)
        return false;
    return executor->pid != 1 || liveness_probe(&question).verdict != OWNER_GONE;
}

/* ---- the report ---- */

static bool shares_subject(const struct leftovers_options *options, const struct leftover *row)
{
    for (size_t i = 0; i < options->subject_count; i++)
        for (size_t k = 0; k < row->subject_count; k++)
            if (strcmp(options->subjects[i], row->subjects[k]) == 0)
                return true;
    return false;
}

/* A journal lies in a directory that bears its handle. */
static bool handle_of_path(const char *path, char ret[HANDLE_SIZE])
{
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    const char *name = slash != NULL ? memrchr(path, '/', (size_t)(slash - path)) : NULL;
    if (name == NULL)
        return false;
    _cleanup_(mem_free) char *word = mem_format("%.*s", (int)(slash - name - 1), name + 1);
    return handle_parse(word, ret, NULL) == RESULT_OK;
}

static void note_begin(struct text *notes, const struct ending *ending)
{
    char handle[HANDLE_SIZE];
    bool named = handle_of_path(ending->row->journal_path, handle);
    text_addf(notes, "%sattempt %s left work behind: ", notes->length ? "\n" : "",
        named ? handle : ending->row->attempt_id);
}

static void note_part(struct text *notes, const char *separator, const char *what, const struct text *list)
{
    text_addf(notes, "%s%s ", separator, what);
    text_append(notes, list->bytes, list->length);
}

static void ending_note(const struct ending *ending, struct leftovers_report *report)
{
    const struct mark_scan *scan = &ending->scan;
    const char *separator = "";
    if (scan->signalled == 0 && ending->lives.length == 0 && scan->unseen.length == 0 && !ending->hidden)
        return;
    note_begin(&report->notes, ending);
    if (scan->signalled > 0) {
        note_part(&report->notes, separator, "ended", &scan->named);
        separator = "; ";
    }
    if (ending->lives.length > 0) {
        note_part(&report->notes, separator, "still there:", &ending->lives);
        separator = "; ";
    }
    if (scan->unseen.length > 0) {
        note_part(&report->notes, separator, "could not look at", &scan->unseen);
        separator = "; ";
    }
    if (ending->hidden)
        text_addf(
            &report->notes, "%sit ran in another pid namespace, which cannot be seen from here", separator);
}

static void ending_report(const struct ending *ending, struct leftovers_report *report)
{
    report->ended += ending->scan.signalled;
    ending_note(ending, report);
    if (ending->lives.length == 0 || !shares_subject(ending->options, ending->row))
        return;
    report->blocked = true;
    if (report->named.length)
        text_add(&report->named, ", ");
    text_append(&report->named, ending->lives.bytes, ending->lives.length);
}

/* ---- row by row ---- */

static enum result row_end(const struct leftovers_options *options, const struct leftover *row,
    struct leftovers_report *report, struct error *err)
{
    _cleanup_(ending_done) struct ending ending = {.options = options, .row = row};
    mark_scan_init(&ending.scan, store_id(options->store), row->attempt_id, SIGKILL);
    ending.scan.attempt_start_ticks = clock_is_shifted() ? 0 : row->executor.start_ticks;
    FAILPOINT("leftovers-before-owner");
    owner_end(&ending);
    FAILPOINT("leftovers-before-marked");
    marked_end(&ending);
    ending.hidden = work_may_be_hidden(&ending);
    ending_report(&ending, report);
    if (ending.lives.length > 0 || ending.hidden)
        return RESULT_OK; /* the row stays for whoever can do it */
    FAILPOINT("leftovers-before-delete");
    enum result r = store_leftover_delete(options->store, row->attempt_id, err);
    FAILPOINT("leftovers-after-delete");
    return r == RESULT_ABSENT ? RESULT_OK : r; /* somebody else was at it too */
}

enum result leftovers_end(
    const struct leftovers_options *options, struct leftovers_report *report, struct error *err)
{
    _cleanup_(leftover_list_done) struct leftover_list list = {0};
    if (MUTANT("leftovers"))
        return RESULT_OK;
    enum result r = store_leftovers(options->store, &list, err);
    for (size_t i = 0; r == RESULT_OK && i < list.count; i++)
        if (!options->attempt_id || strcmp(list.items[i].attempt_id, options->attempt_id) != 0)
            r = row_end(options, &list.items[i], report, err);
    return r;
}
