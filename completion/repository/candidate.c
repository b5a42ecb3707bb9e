#include "completion/repository/candidate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "completion/repository/git-private.h"

#define TRIES      5
#define LEVELS_MAX 4096

void candidate_done(struct candidate *candidate)
{
    if (candidate->top) /* a zeroed one has no descriptor either */
        fd_close(candidate->top_fd);
    struct change_list changes = {.items = candidate->changes, .count = candidate->change_count};
    change_list_done(&changes);
    free(candidate->top);
    free(candidate->git_dir);
    free(candidate->commit);
    free(candidate->tree);
    free(candidate->origin);
    free(candidate->entries);
    text_done(&candidate->listing);
    text_done(&candidate->nested);
    *candidate = (struct candidate){.top_fd = -1};
}

/* The parts of a candidate while it is made. */
struct making {
    struct runner *runner;
    int directory_fd;
    const char *directory;
    struct repository_look look;
    struct listing listing;
    struct change_list changes;
    struct text nested;
    int top_fd;
};

static void making_done(struct making *making)
{
    repository_look_done(&making->look);
    free(making->listing.entries);
    change_list_done(&making->changes);
    text_done(&making->nested);
    fd_close(making->top_fd);
}

/* git passes over a ".git" that it cannot use and takes the repository further up, which is another one. */
static enum result check_found(const struct making *making, struct error *err)
{
    _cleanup_(fd_cleanup) int at = fcntl(making->directory_fd, F_DUPFD_CLOEXEC, 3);
    for (size_t level = 0; level < LEVELS_MAX && at >= 0 && !git_same_directory(at, making->top_fd);
         level++) {
        if (faccessat(at, ".git", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
            error_set(err, RESULT_INVALID, 0,
                "%s lies in a repository whose .git is damaged: git passes it over for %s", making->directory,
                making->look.top);
            return error_remedy(err, "look at the HEAD file, objects and refs in that .git");
        }
        int parent = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        fd_close(at);
        at = parent;
    }
    return RESULT_OK;
}

static enum result open_top(struct making *making, struct error *err)
{
    making->top_fd = open(making->look.top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (making->top_fd < 0)
        return error_errno(err, errno, "cannot open the work tree %s", making->look.top);
    return check_found(making, err);
}

static enum result look_conversions(struct making *making, struct error *err)
{
    const struct conversion_look conversions = {
        .runner = making->runner,
        .top_fd = making->top_fd,
        .git_dir = making->look.git_dir,
        .prefix = "",
        .settings = &making->look.settings,
        .listing = &making->listing,
        .changes = &making->changes,
    };
    return conversions_look(&conversions, err);
}

static enum result look_submodules(struct making *making, struct error *err)
{
    enum result r = submodules_look(
        making->runner, making->top_fd, &making->listing, &making->nested, &making->changes, err);
    return r == RESULT_OK
               ? listing_parse(making->runner, &making->nested, &making->listing, &making->changes, err)
               : r;
}

static enum result make(struct making *making, struct error *err)
{
    enum result r = repository_look(making->runner, making->directory_fd, "", &making->look, err);
    if (r != RESULT_OK)
        return r;
    making->changes = making->look.changes;
    making->look.changes = (struct change_list){0};
    r = open_top(making, err);
    if (r == RESULT_OK)
        r = listing_parse(making->runner, &making->look.listing, &making->listing, &making->changes, err);
    if (r == RESULT_OK)
        r = look_conversions(making, err);
    return r == RESULT_OK ? look_submodules(making, err) : r;
}

/* Moves what was made; nothing fails any more. */
static void finish(struct making *making, struct candidate *ret)
{
    struct repository_look *look = &making->look;
    *ret = (struct candidate){
        .top = STEAL(look->top),
        .top_fd = making->top_fd,
        .git_dir = STEAL(look->git_dir),
        .commit = STEAL(look->commit),
        .tree = STEAL(look->tree),
        .origin = look->settings.origin ? origin_without_secrets(look->settings.origin) : NULL,
        .entries = STEAL(making->listing.entries),
        .entry_count = making->listing.count,
        .changes = STEAL(making->changes.items),
        .change_count = making->changes.count,
        .listing = look->listing,
        .nested = making->nested,
        .runner = making->runner,
    };
    ret->blob_length = strlen(ret->tree);
    making->changes = (struct change_list){0};
    making->top_fd = -1;
    look->listing = making->nested = (struct text){0};
}

static enum result look_once(
    struct runner *runner, int directory_fd, const char *directory, struct candidate *ret, struct error *err)
{
    struct making making = {
        .runner = runner, .directory_fd = directory_fd, .directory = directory, .top_fd = -1};
    enum result r = make(&making, err);
    if (r == RESULT_OK)
        finish(&making, ret);
    making_done(&making);
    return r;
}

enum result candidate_look(
    struct runner *runner, const char *directory, struct candidate *ret, struct error *err)
{
    _cleanup_(fd_cleanup) int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, RESULT_INVALID, errno, "cannot open %s: %s", directory, strerror(errno));
    _cleanup_(error_done) struct error cause = {0};
    enum result r = RESULT_CONFLICT;
    for (size_t i = 0; r == RESULT_CONFLICT && i < TRIES; i++)
        r = look_once(runner, fd, directory, ret, &cause);
    return r == RESULT_OK ? r : error_move(err, &cause);
}
