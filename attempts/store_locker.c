/* Who has an embedded store locked: from the kernel's list of locks, for a sentence and nothing else. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attempts/store-private.h"
#include "base/files.h"
#include "base/memory.h"

#define LOCKS_LIMIT_BYTES (4 * 1024 * 1024)
#define NAME_LIMIT_BYTES  64

struct lock_line {
    char kind[16], access[8];
    int64_t pid;
    unsigned major, minor;
    uint64_t inode;
};

/* "12: POSIX  ADVISORY  WRITE 4711 fd:01:1234 1073741826 1073742335"; who only waits has "->" there. */
static bool line_read(const char *line, struct lock_line *ret)
{
    return sscanf(line, "%*d: %15s %*s %7s %" SCNd64 " %x:%x:%" SCNu64, ret->kind, ret->access, &ret->pid,
               &ret->major, &ret->minor, &ret->inode) == 6 &&
           strcmp(ret->kind, "POSIX") == 0;
}

static bool is_of(const struct lock_line *lock, const struct stat *file)
{
    return lock->inode == file->st_ino && lock->major == major(file->st_dev) &&
           lock->minor == minor(file->st_dev) && lock->pid > 0 && lock->pid != getpid();
}

/* One that writes is in the way of everybody; one that reads only of a writer. */
static int64_t find_pid(const char *locks, const struct stat *file)
{
    int64_t found = 0;
    for (const char *line = locks; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        struct lock_line lock = {0};
        if (!line_read(line, &lock) || !is_of(&lock, file))
            continue;
        found = lock.pid;
        if (strcmp(lock.access, "WRITE") == 0)
            break;
    }
    return found;
}

static char *process_text(int64_t pid)
{
    char path[64];
    _cleanup_(text_done) struct text name = {0}, shown = {0};
    snprintf(path, sizeof path, "/proc/%" PRId64 "/comm", pid);
    if (file_read(AT_FDCWD, path, false, NAME_LIMIT_BYTES, &name, NULL) != RESULT_OK || name.length < 2)
        return mem_format("pid %" PRId64, pid);
    text_add_printable(&shown, name.bytes, name.length - 1, false);
    return mem_format("%s, pid %" PRId64, shown.bytes, pid);
}

char *locker_of(const char *path)
{
    struct stat file;
    _cleanup_(text_done) struct text locks = {0};
    if (stat(path, &file) < 0 ||
        file_read(AT_FDCWD, "/proc/locks", false, LOCKS_LIMIT_BYTES, &locks, NULL) != RESULT_OK ||
        locks.length == 0)
        return NULL;
    int64_t pid = find_pid(locks.bytes, &file);
    return pid > 0 ? process_text(pid) : NULL;
}
