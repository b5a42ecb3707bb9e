/* The part of journal/journal.h that makes a new journal: whole, locked and durable before it is seen. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/files.h"
#include "base/memory.h"
#include "journal/journal-private.h"
#include "journal/place-private.h"

#define HANDLES_DRAWN 16 /* before giving up: two that are equal are one in 2^35 */

struct nursery {
    int root_fd, fd; /* of the directory of journals, and of the new one below it */
    char name[sizeof(JOURNAL_NEW_PREFIX) + HANDLE_SIZE];
    bool exists;
};

static void nursery_done(struct nursery *nursery)
{
    if (nursery->exists)
        (void)!directory_remove(nursery->root_fd, nursery->name, NULL);
    fd_close(nursery->fd);
    fd_close(nursery->root_fd);
}

static enum result root_make(const char *root, int *ret_fd, struct error *err)
{
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        _cleanup_(mem_free) char *parent = mem_format("%s/..", root);
        enum result r = directory_make(root, 0700, err);
        if (r != RESULT_OK)
            return error_remedy(err, "name another place for it: XDG_STATE_HOME");
        r = directory_sync(parent, err);
        if (r != RESULT_OK)
            return r;
        fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0)
        return journal_error(err, errno, "open the directory of journals", root);
    *ret_fd = fd;
    return RESULT_OK;
}

static enum result nursery_open(struct nursery *nursery, struct journal *journal, struct error *err)
{
    handle_make(journal->handle);
    snprintf(nursery->name, sizeof(nursery->name), JOURNAL_NEW_PREFIX "%s", journal->handle);
    if (mkdirat(nursery->root_fd, nursery->name, 0700) < 0)
        return errno == EEXIST ? error_set(err, RESULT_CONFLICT, EEXIST, "%s is taken", journal->handle)
                               : journal_error(err, errno, "make a journal below", journal->root);
    nursery->exists = true;
    nursery->fd = openat(nursery->root_fd, nursery->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (nursery->fd < 0 || mkdirat(nursery->fd, JOURNAL_OUT_NAME, 0700) < 0)
        return journal_error(err, errno, "make a journal below", journal->root);
    journal->fd =
        openat(nursery->fd, JOURNAL_FILE_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (journal->fd < 0)
        return journal_error(err, errno, "make a journal below", journal->root);
    if (journal_lock(journal->fd))
        return RESULT_OK;
    journal_error(err, errno, "lock a new journal below", journal->root);
    return error_remedy(err, "let XDG_STATE_HOME name a directory on a local file system");
}

static enum result header_make(const struct journal *journal, const struct journal_options *options,
    struct journal_header *ret, struct error *err)
{
    uint8_t salt[FORMAT_SALT_SIZE / 2];
    struct stat status;
    if (fstat(journal->fd, &status) < 0)
        return journal_error(err, errno, "look at a new journal below", journal->root);
    *ret = (struct journal_header){
        .format = FORMAT_VERSION,
        .device = status.st_dev,
        .inode = status.st_ino,
        .tenure = TENURE_VERSION,
        .executor = *options->executor,
        .boot_ms = journal->clock->boot_ms(journal->clock),
        .wall_ms = journal->clock->wall_ms(journal->clock),
    };
    random_bytes(salt, sizeof(salt));
    hex_encode(salt, sizeof(salt), ret->salt);
    memcpy(ret->handle, journal->handle, sizeof(ret->handle));
    if (options->attempt != NULL)
        snprintf(ret->attempt, sizeof(ret->attempt), "%s", options->attempt);
    return RESULT_OK;
}

static enum result header_write(
    struct journal *journal, const struct journal_options *options, struct error *err)
{
    struct journal_header header;
    enum result r = header_make(journal, options, &header, err);
    if (r != RESULT_OK)
        return r;
    format_header_encode(&header, &journal->json);
    format_line(&journal->chain, journal->json.bytes, journal->json.length, &journal->line);
    FAILPOINT("journal-create-before-header");
    if (FAILPOINT_ERROR("journal-create-header"))
        return journal_error(err, ENOSPC, "write a new journal below", journal->root);
    r = fd_write_all(journal->fd, journal->line.bytes, journal->line.length, err);
    if (r != RESULT_OK)
        error_wrap(err, "a new journal below %s: ", journal->root);
    return r;
}

static bool errno_is_taken(int errnum)
{
    return errnum == EEXIST || errnum == ENOTEMPTY || errnum == ENOTDIR;
}

/* From here on it is seen, and it is seen whole: locked, and with its header on the disk. */
static enum result nursery_publish(struct nursery *nursery, struct journal *journal, struct error *err)
{
    FAILPOINT("journal-create-before-sync");
    if (fsync(journal->fd) < 0 || fsync(nursery->fd) < 0)
        return journal_error(err, errno, "sync a new journal below", journal->root);
    FAILPOINT("journal-before-rename");
    if (renameat(nursery->root_fd, nursery->name, nursery->root_fd, journal->handle) < 0)
        return errno_is_taken(errno) ? error_set(err, RESULT_CONFLICT, errno, "%s is taken", journal->handle)
                                     : journal_error(err, errno, "name a new journal below", journal->root);
    nursery->exists = false;
    FAILPOINT("journal-after-rename");
    if (fsync(nursery->root_fd) == 0)
        return RESULT_OK;
    enum result r = journal_error(err, errno, "sync the directory of journals", journal->root);
    (void)!journal_remove(journal->root, nursery->root_fd, journal->handle, NULL);
    return r;
}

static enum result create_once(
    const struct journal_options *options, const char *root, struct journal **ret, struct error *err)
{
    _cleanup_(nursery_done) struct nursery nursery = {.root_fd = -1, .fd = -1};
    _cleanup_(journal_cleanup) struct journal *journal = journal_new(options->clock);
    journal->root = mem_string(root);
    enum result r = root_make(root, &nursery.root_fd, err);
    if (r == RESULT_OK)
        r = nursery_open(&nursery, journal, err);
    if (r == RESULT_OK)
        r = header_write(journal, options, err);
    if (r == RESULT_OK)
        r = nursery_publish(&nursery, journal, err);
    if (r != RESULT_OK)
        return r;
    journal->directory = mem_format("%s/%s", root, journal->handle);
    journal->path = mem_format("%s/" JOURNAL_FILE_NAME, journal->directory);
    *ret = STEAL(journal);
    return RESULT_OK;
}

/* A full disk is no fault of ours, and another try may find room. */
static void tell_full(const char *root, struct error *err)
{
    if (err->errnum != ENOSPC && err->errnum != EDQUOT)
        return;
    err->code = RESULT_UNREACHABLE;
    error_remedy(err, "make room below %s, and run it again", root);
}

enum result journal_create(const struct journal_options *options, struct journal **ret, struct error *err)
{
    _cleanup_(mem_free) char *root = NULL;
    enum result r = journal_root(options->root, &root, err);
    if (r != RESULT_OK)
        return r;
    for (int i = 0; i < HANDLES_DRAWN; i++) {
        _cleanup_(error_done) struct error why = {0};
        r = create_once(options, root, ret, &why);
        if (r == RESULT_OK)
            return r;
        if (r != RESULT_CONFLICT) {
            tell_full(root, &why);
            return error_move(err, &why);
        }
    }
    return error_set(err, RESULT_SYSTEM, EEXIST, "%s has no handle left", root);
}
