#include "journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/files.h"
#include "base/memory.h"
#include "journal/journal-private.h"
#include "journal/place-private.h"

#define PROGRESS_INTERVAL_MS 500 /* at most two records a second */

struct journal *journal_new(const struct clock *clock)
{
    struct journal *journal = mem_alloc(sizeof(*journal));
    journal->clock = clock;
    journal->fd = -1;
    journal->progress_boot_ms = -PROGRESS_INTERVAL_MS;
    return journal;
}

bool journal_lock(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 2};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

static enum result journal_break(struct journal *journal, int errnum, const char *doing, struct error *err)
{
    journal->broken = true;
    const char *why = strerrordesc_np(errnum);
    error_set(err, RESULT_SYSTEM, errnum,
        "cannot %s the journal %s: %s; it is written no more, the run goes on", doing, journal->path,
        why != NULL ? why : "unknown error");
    return error_remedy(err, "look after the disk that holds it before the next run");
}

/* In two halves when failpoints are built in, so that a crash can leave a torn record. */
static int line_write(const struct journal *journal)
{
    struct error cause = {0};
    const char *bytes = journal->line.bytes;
    size_t length = journal->line.length, first = length;
    FAILPOINT("journal-append-before-write");
#ifdef TENURE_FAILPOINTS
    first = length / 2;
#endif
    enum result r = fd_write_all(journal->fd, bytes, first, &cause);
    FAILPOINT("journal-append-half");
    if (r == RESULT_OK && FAILPOINT_ERROR("journal-append-torn"))
        r = error_set(&cause, RESULT_SYSTEM, ENOSPC, "cannot write");
    if (r == RESULT_OK)
        r = fd_write_all(journal->fd, bytes + first, length - first, &cause);
    int errnum = r == RESULT_OK ? 0 : cause.errnum;
    error_done(&cause);
    return errnum;
}

static void progress_drop(struct journal *journal)
{
    mem_free(&journal->held.phase);
    journal->held = (struct held_progress){.phase = NULL};
}

static enum result record_write(struct journal *journal, const struct journal_event *event, struct error *err)
{
    struct chain next = journal->chain;
    text_clear(&journal->json);
    text_clear(&journal->line);
    journal_event_encode(event, &journal->json);
    format_line(&next, journal->json.bytes, journal->json.length, &journal->line);
    int errnum = line_write(journal);
    if (errnum != 0)
        return journal_break(journal, errnum, "write", err);
    journal->chain = next;
    journal->dirty = true;
    if (event->kind == JOURNAL_PROGRESS) {
        journal->progress_boot_ms = event->boot_ms;
        progress_drop(journal);
    }
    return RESULT_OK;
}

enum result journal_sync(struct journal *journal, struct error *err)
{
    if (journal->broken || !journal->dirty)
        return RESULT_OK;
    FAILPOINT("journal-before-sync");
    int errnum = fdatasync(journal->fd) < 0 ? errno : 0;
    if (FAILPOINT_ERROR("journal-sync"))
        errnum = EIO;
    if (errnum != 0)
        return journal_break(journal, errnum, "sync", err);
    FAILPOINT("journal-after-sync");
    journal->dirty = false;
    return RESULT_OK;
}

static bool progress_is_soon(const struct journal *journal, const struct journal_event *event)
{
    return event->boot_ms - journal->progress_boot_ms < PROGRESS_INTERVAL_MS;
}

static void progress_hold(struct journal *journal, const struct journal_event *event)
{
    progress_drop(journal);
    journal->held = (struct held_progress){
        .phase = mem_string(event->phase != NULL ? event->phase : ""),
        .done = event->done,
        .total = event->total,
    };
}

/* So that a long silent step does not leave an outdated count behind it. */
static enum result progress_release(
    struct journal *journal, const struct journal_event *event, struct error *err)
{
    if (journal->held.phase == NULL || progress_is_soon(journal, event))
        return RESULT_OK;
    const struct journal_event progress = {
        .kind = JOURNAL_PROGRESS,
        .boot_ms = event->boot_ms,
        .wall_ms = event->wall_ms,
        .phase = journal->held.phase,
        .done = journal->held.done,
        .total = journal->held.total,
    };
    return record_write(journal, &progress, err);
}

static enum result event_write(struct journal *journal, const struct journal_event *event,
    enum journal_durability durability, struct error *err)
{
    enum result r = RESULT_OK;
    if (event->kind != JOURNAL_PROGRESS)
        r = progress_release(journal, event, err);
    else if (progress_is_soon(journal, event))
        return progress_hold(journal, event), RESULT_OK;
    if (r == RESULT_OK)
        r = record_write(journal, event, err);
    if (r == RESULT_OK && durability == JOURNAL_DURABLE)
        r = journal_sync(journal, err);
    return r;
}

enum result journal_append(struct journal *journal, const struct journal_event *event,
    enum journal_durability durability, struct error *err)
{
    if (event->kind <= JOURNAL_HEADER || event->kind >= JOURNAL_UNKNOWN)
        return error_set(err, RESULT_INVALID, 0, "a record of kind '%s' cannot be appended to a journal",
            journal_kind_name(event->kind));
    if (journal->settled)
        return error_set(err, RESULT_INVALID, 0, "the journal %s is settled: nothing follows", journal->path);
    struct journal_event stamped = *event;
    stamped.boot_ms = journal->clock->boot_ms(journal->clock);
    stamped.wall_ms = journal->clock->wall_ms(journal->clock);
    enum result r = journal->broken ? RESULT_OK : event_write(journal, &stamped, durability, err);
    journal->settled = event->kind == JOURNAL_SETTLED;
    if (journal->tap != NULL)
        journal->tap(journal->tap_context, &stamped);
    return r;
}

void journal_set_tap(struct journal *journal, journal_tap_fn tap, void *context)
{
    journal->tap = tap;
    journal->tap_context = context;
}

bool journal_is_broken(const struct journal *journal)
{
    return journal->broken;
}

void journal_head(const struct journal *journal, char ret_hex[2 * DIGEST_SHORT_BYTES + 1])
{
    hex_encode(journal->chain.bytes, sizeof(journal->chain.bytes), ret_hex);
}

const char *journal_handle(const struct journal *journal)
{
    return journal->handle;
}

const char *journal_directory(const struct journal *journal)
{
    return journal->directory;
}

const char *journal_path(const struct journal *journal)
{
    return journal->path;
}

void journal_close(struct journal *journal)
{
    if (journal == NULL)
        return;
    fd_close(journal->fd);
    progress_drop(journal);
    text_done(&journal->json);
    text_done(&journal->line);
    free(journal->root);
    free(journal->directory);
    free(journal->path);
    free(journal);
}

void journal_cleanup(struct journal **journal)
{
    journal_close(STEAL(*journal));
}

void journal_discard(struct journal *journal)
{
    _cleanup_(fd_cleanup) int root_fd = open(journal->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* What cannot be removed now is an unlocked journal of a run that never began: retention takes it. */
    if (root_fd >= 0)
        (void)!journal_remove(journal->root, root_fd, journal->handle, NULL);
    journal_close(journal);
}
