/* The part of journal/journal.h that takes up a journal whose owner died. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/memory.h"
#include "journal/journal-private.h"
#include "journal/reader-private.h"

#define TORN_LIMIT_BYTES (FORMAT_RECORD_LIMIT + 64) /* a record and what goes before it */

static enum result reopen_lock(struct journal *journal, const char *path, struct error *err)
{
    enum result r = journal_file_open(path, O_RDWR, &journal->fd, err);
    if (r != RESULT_OK || journal_lock(journal->fd))
        return r;
    if (errno == EAGAIN || errno == EACCES)
        return error_set(err, RESULT_BUSY, errno, "the owner of the journal %s is alive", path);
    return error_errno(err, errno, "cannot lock the journal %s", path);
}

/* Only its own user on its own machine may speak for the dead, and only in the very file that they wrote. */
static enum result reopen_permit(
    const struct journal *journal, const struct journal_header *header, struct error *err)
{
    struct stat status;
    struct machine machine;
    if (fstat(journal->fd, &status) < 0)
        return error_errno(err, errno, "cannot look at the journal %s", journal->path);
    if (status.st_dev != header->device || status.st_ino != header->inode)
        return error_set(err, RESULT_INVALID, 0, "the journal %s is a copy", journal->path);
    enum result r = machine_read(&machine, err);
    if (r != RESULT_OK)
        return r;
    if (header->executor.uid != (int64_t)geteuid())
        return error_set(err, RESULT_DENIED, 0, "the journal %s belongs to another user", journal->path);
    if (strcmp(header->executor.machine_id, machine.machine_id) != 0)
        return error_set(err, RESULT_DENIED, 0, "the journal %s belongs to another machine", journal->path);
    return RESULT_OK;
}

/* Saves the bytes of an incomplete last record beside the journal, then takes them off. */
static enum result torn_cut(struct journal *journal, int64_t offset, struct error *err)
{
    _cleanup_(mem_free) char *bytes = mem_resize(NULL, TORN_LIMIT_BYTES, 1);
    ssize_t length = pread(journal->fd, bytes, TORN_LIMIT_BYTES, offset);
    if (length < 0)
        return error_errno(err, errno, "cannot read the journal %s", journal->path);
    _cleanup_(mem_free) char *saved = mem_format("%s.torn-%lld-%lld", journal->path, (long long)offset,
        (long long)journal->clock->wall_ms(journal->clock));
    enum result r = file_write_atomic(saved, 0600, false, bytes, (size_t)length, err);
    if (r != RESULT_OK)
        return r;
    FAILPOINT("journal-reopen-before-cut");
    if (ftruncate(journal->fd, offset) < 0 || fdatasync(journal->fd) < 0)
        return error_errno(err, errno, "cannot cut the torn end off the journal %s", journal->path);
    FAILPOINT("journal-reopen-after-cut");
    return RESULT_OK;
}

static enum result reopen_read(struct journal *journal, struct journal_reader *reader, struct error *err)
{
    bool settled = false;
    const struct journal_header *header = journal_reader_header(reader);
    enum result r = reopen_permit(journal, header, err);
    if (r == RESULT_OK)
        r = journal_reader_skim(reader, &settled, err);
    if (r != RESULT_OK)
        return r;
    if (settled)
        return error_set(err, RESULT_CONFLICT, 0, "the journal %s is settled already", journal->path);
    memcpy(journal->handle, header->handle, sizeof(journal->handle));
    journal->chain = journal_reader_chain(reader);
    int64_t end = journal_reader_offset(reader);
    if (journal_reader_torn(reader))
        r = torn_cut(journal, end, err);
    if (r == RESULT_OK && lseek(journal->fd, end, SEEK_SET) < 0)
        r = error_errno(err, errno, "cannot reach the end of the journal %s", journal->path);
    return r;
}

/* .../ROOT/HANDLE/journal */
static void reopen_names(struct journal *journal, const char *path)
{
    journal->path = mem_string(path);
    journal->directory = mem_string(path);
    char *slash = strrchr(journal->directory, '/');
    if (slash != NULL)
        *slash = '\0';
    journal->root = mem_format("%s/..", slash != NULL ? journal->directory : ".");
}

enum result journal_reopen(
    const char *path, const struct clock *clock, struct journal **ret, struct error *err)
{
    _cleanup_(journal_cleanup) struct journal *journal = journal_new(clock);
    _cleanup_(journal_reader_cleanup) struct journal_reader *reader = NULL;
    reopen_names(journal, path);
    enum result r = reopen_lock(journal, path, err);
    if (r == RESULT_OK)
        r = journal_reader_open_fd(journal->fd, path, &reader, err);
    if (r == RESULT_OK)
        r = reopen_read(journal, reader, err);
    if (r == RESULT_OK)
        *ret = STEAL(journal);
    return r;
}
