/*
 * Descriptors and files: the habits that must be the same everywhere. Every descriptor made here is
 * close-on-exec from birth. Paths are bytes. Thread-safe.
 */
#ifndef BASE_FILES_H
#define BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

void fd_close(int fd);           /* -1 is allowed; errno is kept */
void fd_cleanup(int *fd);        /* _cleanup_(fd_cleanup) int fd = -1; */
void fd_set_nonblocking(int fd); /* only for descriptors that this process made itself */

/* Writes all bytes, through short writes and EINTR. RESULT_SYSTEM with errno in err->errnum. */
_must_use_ enum result fd_write_all(int fd, const void *bytes, size_t length, struct error *err);

/* Reads a whole regular file of at most `limit_bytes` (more: RESULT_INVALID). Never follows a final symlink
 * when `nofollow`, never hangs on a FIFO (anything but a regular file is RESULT_INVALID). Missing:
 * RESULT_ABSENT. Appends to `ret`. */
_must_use_ enum result file_read(
    int dir_fd, const char *path, bool nofollow, size_t limit_bytes, struct text *ret, struct error *err);

/* Replaces `path` in one step: temporary name beside it, write, fsync, rename, fsync of the directory. With
 * `exclusive` an existing file is left alone: RESULT_CONFLICT. */
_must_use_ enum result file_write_atomic(
    const char *path, mode_t mode, bool exclusive, const void *bytes, size_t length, struct error *err);

/* BLAKE2b-256 of an open file's bytes from its start, hex. `tick` (may be NULL) is called about every 4 MiB.
 */
_must_use_ enum result file_digest(
    int fd, void (*tick)(void *context), void *context, char *ret_hex, struct error *err);

/* mkdir -p with `mode` for what is made. */
_must_use_ enum result directory_make(const char *path, mode_t mode, struct error *err);
_must_use_ enum result directory_sync(const char *path, struct error *err);
/* Removes a directory and everything in it, without following links. Missing is fine. */
_must_use_ enum result directory_remove(int dir_fd, const char *path, struct error *err);

/* What is known of a file system, by statfs magic. */
enum file_system {
    FILE_SYSTEM_LOCAL,   /* ext, xfs, btrfs, f2fs, zfs, bcachefs, tmpfs */
    FILE_SYSTEM_STACKED, /* overlayfs, FUSE: local only if device and inode say so */
    FILE_SYSTEM_NETWORK, /* NFS, CIFS/SMB, Ceph, AFS, 9p, Lustre, GPFS, ... */
    FILE_SYSTEM_OTHER,
};
_must_use_ enum result file_system_of(int fd, enum file_system *ret, struct error *err);

/* "$XDG_STATE_HOME/tenure" and "$XDG_CONFIG_HOME/tenure" (XDG base directory specification; relative values
 * are ignored; HOME, then the password database, stand in). Owned by the caller. RESULT_INVALID without a
 * home. */
_must_use_ enum result directory_state(char **ret, struct error *err);
_must_use_ enum result directory_config(char **ret, struct error *err);

#endif
