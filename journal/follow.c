#include "journal/follow.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "journal/liveness-private.h"
#include "journal/output-private.h"
#include "journal/place-private.h"

struct follow {
    struct journal_reader *reader;
    const struct machine *machine;
    char *path, *out;
    int watch_fd; /* -1: polling alone */
    struct liveness verdict;
    bool settled;
    int64_t parting_until_ms; /* boot clock: the writer closed the file, its lock goes any moment */
};

static void follow_cleanup(struct follow **follow)
{
    follow_close(*follow);
    *follow = NULL;
}

static struct liveness follow_probe(struct follow *follow)
{
    const struct liveness_question question = {.path = follow->path, .machine = follow->machine};
    follow->verdict = liveness_probe_fd(
        journal_reader_fd(follow->reader), journal_reader_header(follow->reader), &question);
    return follow->verdict;
}

enum result follow_open(
    const char *path, const struct machine *machine, struct follow **ret, struct error *err)
{
    _cleanup_(follow_cleanup) struct follow *follow = mem_alloc(sizeof(*follow));
    const char *slash = strrchr(path, '/');
    follow->machine = machine;
    follow->path = mem_string(path);
    follow->out = mem_format("%.*s" JOURNAL_OUT_NAME, slash != NULL ? (int)(slash + 1 - path) : 0, path);
    follow->watch_fd = liveness_watch(path, true);
    enum result r = journal_reader_open(path, &follow->reader, err);
    if (r != RESULT_OK)
        return r;
    follow_probe(follow);
    *ret = STEAL(follow);
    return RESULT_OK;
}

static enum result follow_read(struct follow *follow, struct journal_event *ret, struct error *err)
{
    if (follow->settled)
        return error_set(err, RESULT_ABSENT, 0, "the journal %s has ended", follow->path);
    enum result r = journal_reader_next(follow->reader, ret, err);
    if (r == RESULT_OK && ret->kind == JOURNAL_SETTLED) {
        follow->settled = true;
        follow_probe(follow);
    }
    return r;
}

static void follow_nap(struct follow *follow, int64_t now, int64_t left_ms)
{
    const struct clock *clock = clock_system();
    int64_t nap = follow->watch_fd >= 0 ? LIVENESS_POLL_MS : LIVENESS_BLIND_MS;
    if (now < follow->parting_until_ms)
        nap = LIVENESS_BEAT_MS;
    (void)liveness_poll(follow->watch_fd, -1, left_ms < nap ? left_ms : nap);
    if (liveness_watch_drain(follow->watch_fd))
        follow->parting_until_ms = clock->boot_ms(clock) + LIVENESS_SETTLE_MS;
}

enum result follow_next(
    struct follow *follow, int64_t timeout_ms, struct journal_event *ret, struct error *err)
{
    const struct clock *clock = clock_system();
    int64_t began = clock->boot_ms(clock);
    for (bool last_look = false;;) {
        _cleanup_(error_done) struct error why = {0};
        enum result r = follow_read(follow, ret, &why);
        if (r == RESULT_OK)
            return r;
        if (r != RESULT_ABSENT || follow->settled)
            return error_move(err, &why);
        if (last_look)
            return error_set(err, RESULT_ABSENT, 0, "the owner of the journal %s is gone", follow->path);
        /* Gone between the look at the records and this one: what it wrote last is there by now. */
        last_look = follow_probe(follow).verdict == OWNER_GONE;
        if (last_look)
            continue;
        int64_t now = clock->boot_ms(clock), left = timeout_ms - (now - began);
        if (left <= 0)
            return error_set(err, RESULT_BUSY, 0, "nothing new in the journal %s", follow->path);
        follow_nap(follow, now, left);
    }
}

const struct journal_header *follow_header(const struct follow *follow)
{
    return journal_reader_header(follow->reader);
}

struct liveness follow_verdict(const struct follow *follow)
{
    return follow->verdict;
}

void follow_close(struct follow *follow)
{
    if (follow == NULL)
        return;
    journal_reader_close(follow->reader);
    fd_close(follow->watch_fd);
    free(follow->path);
    free(follow->out);
    free(follow);
}

enum result follow_output(const struct follow *follow, const char *log, int64_t offset_bytes, void *buffer,
    size_t size, size_t *ret_length, struct error *err)
{
    /* Lock free, or a copy: nobody writes. Anywhere else a ring may still be turning. */
    struct liveness verdict = follow->verdict;
    bool abandoned = verdict.verdict == OWNER_GONE || (verdict.verdict == OWNER_UNKNOWN && verdict.rule == 6);
    return output_read(follow->out, log, abandoned, offset_bytes, buffer, size, ret_length, err);
}
