#include "completion/repository/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/text.h"

#define SHOWN_MAX      10
#define MODE_SUBMODULE 0160000U

/* What must not change. All zero: the file was not there. */
struct trace {
    uint64_t device, inode, size;
    int64_t change_ns, content_ns; /* ctime and mtime */
    uint32_t mode;
};

struct snapshot {
    const struct candidate *candidate; /* borrowed, as is its descriptor */
    size_t *indices;
    struct trace *traces;
    size_t count;
};

static int64_t nanoseconds(const struct statx_timestamp *time)
{
    return time->tv_sec * INT64_C(1000000000) + time->tv_nsec;
}

static enum result trace_take(int top_fd, const char *path, struct trace *ret, struct error *err)
{
    struct statx status;
    *ret = (struct trace){0};
    if (statx(top_fd, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &status) == 0) {
        *ret = (struct trace){
            .device = (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor,
            .inode = status.stx_ino,
            .size = status.stx_size,
            .change_ns = nanoseconds(&status.stx_ctime),
            .content_ns = nanoseconds(&status.stx_mtime),
            .mode = status.stx_mode,
        };
        return RESULT_OK;
    }
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
        return RESULT_OK;
    return error_errno(err, errno, "cannot look at %s", path);
}

static bool trace_equal(const struct trace *a, const struct trace *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->change_ns == b->change_ns && a->content_ns == b->content_ns && a->mode == b->mode;
}

/* A submodule's directory changes with every ignored file in it; its own files are entries too. */
static void choose(
    struct snapshot *snapshot, const struct candidate *candidate, const size_t *indices, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t index = indices ? indices[i] : i;
        if (candidate->entries[index].mode != MODE_SUBMODULE)
            snapshot->indices[snapshot->count++] = index;
    }
}

static const char *path_of(const struct snapshot *snapshot, size_t i)
{
    return snapshot->candidate->entries[snapshot->indices[i]].path;
}

enum result snapshot_take(const struct candidate *candidate, const size_t *indices, size_t count,
    struct snapshot **ret, struct error *err)
{
    size_t wanted = indices ? count : candidate->entry_count;
    struct snapshot *snapshot = mem_alloc(sizeof(*snapshot));
    snapshot->candidate = candidate;
    snapshot->indices = mem_resize(NULL, wanted, sizeof(*snapshot->indices));
    choose(snapshot, candidate, indices, wanted);
    snapshot->traces = mem_resize(NULL, snapshot->count, sizeof(*snapshot->traces));
    enum result r = RESULT_OK;
    for (size_t i = 0; r == RESULT_OK && i < snapshot->count; i++) {
        r = trace_take(candidate->top_fd, path_of(snapshot, i), &snapshot->traces[i], err);
        runner_pace(candidate->runner, i);
    }
    if (r == RESULT_OK)
        *ret = snapshot;
    else
        snapshot_free(snapshot);
    return r;
}

static void name_change(struct text *names, size_t changed, const char *path)
{
    if (changed >= SHOWN_MAX)
        return;
    text_add(names, changed ? ", " : "");
    text_add_printable(names, path, strlen(path), false);
}

/* A directory without a link is deleted, whoever still has it open. */
static bool top_is_gone(const struct snapshot *snapshot)
{
    struct stat status;
    return fstat(snapshot->candidate->top_fd, &status) == 0 && status.st_nlink == 0;
}

enum result snapshot_check(const struct snapshot *snapshot, struct error *err)
{
    _cleanup_(text_done) struct text names = {0};
    size_t changed = 0;
    for (size_t i = 0; i < snapshot->count; i++) {
        struct trace now;
        runner_pace(snapshot->candidate->runner, i);
        enum result r = trace_take(snapshot->candidate->top_fd, path_of(snapshot, i), &now, err);
        if (r != RESULT_OK)
            return r;
        if (!trace_equal(&now, &snapshot->traces[i]))
            name_change(&names, changed++, path_of(snapshot, i));
    }
    if (!changed)
        return RESULT_OK;
    if (top_is_gone(snapshot)) {
        error_set(err, RESULT_CONFLICT, 0, "the work tree was deleted while it was being proved");
        return error_remedy(err, "check it out again, and run this there");
    }
    if (changed > SHOWN_MAX)
        text_addf(&names, " and %zu more", changed - SHOWN_MAX);
    error_set(err, RESULT_CONFLICT, 0, "inputs were written to while they were in use: %s", names.bytes);
    return error_remedy(
        err, "leave the work tree alone, and let producers write only to what is ignored; then run it again");
}

void snapshot_free(struct snapshot *snapshot)
{
    if (!snapshot)
        return;
    free(snapshot->indices);
    free(snapshot->traces);
    free(snapshot);
}
