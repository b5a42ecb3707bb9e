/* The part of base/files.h that is about directories and file systems. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/files-private.h"
#include "base/files.h"
#include "base/memory.h"

#define DEPTH_MAX         64 /* descriptors held at once while removing */
#define PASSES_MAX        100000
#define NAME_RANDOM_BYTES 16

static bool is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static enum result directory_make_one(const char *path, mode_t mode, struct error *err)
{
    if (mkdir(path, mode) == 0)
        return RESULT_OK;
    int error = errno; /* kept from the look, which sets its own */
    if (is_directory(path))
        return RESULT_OK;
    /* Something else of that name is not "absent" and not "denied". */
    if (error == EEXIST)
        return error_set(err, RESULT_INVALID, EEXIST, "%s is not a directory", path);
    return files_error(err, error, "create the directory", path);
}

enum result directory_make(const char *path, mode_t mode, struct error *err)
{
    if (is_directory(path))
        return RESULT_OK;
    _cleanup_(mem_free) char *prefix = mem_string(path);
    for (char *slash = strchr(prefix + (*prefix == '/'), '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        enum result r = directory_make_one(prefix, mode, err);
        if (r != RESULT_OK)
            return r;
        *slash = '/';
    }
    return directory_make_one(prefix, mode, err);
}

enum result directory_sync(const char *path, struct error *err)
{
    _cleanup_(fd_cleanup) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return files_error(err, errno, "open the directory", path);
    return fsync(fd) == 0 ? RESULT_OK : files_error(err, errno, "sync the directory", path);
}

/* A directory that its owner made read-only (module caches do that) shall not survive its removal. */
static void permit_owner(int dir_fd, const char *name)
{
    _cleanup_(fd_cleanup) int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    (void)!chmod(path, 0700); /* a failure shows when the directory is opened */
}

/* Not into another mount: a file system bound in here is somebody else's. */
static int open_within(int dir_fd, const char *name)
{
    static const struct open_how HOW = {
        .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_NO_XDEV,
    };
    long fd = syscall(SYS_openat2, dir_fd, name, &HOW, sizeof(HOW));
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) /* an old kernel, or a filter that does not know it */
        return openat(dir_fd, name, (int)HOW.flags);
    return (int)fd;
}

static int open_doomed(int dir_fd, const char *name)
{
    int fd = open_within(dir_fd, name);
    if (fd < 0 && errno == EACCES) {
        permit_owner(dir_fd, name);
        fd = open_within(dir_fd, name);
    }
    struct stat status;
    if (fd >= 0 && fstat(fd, &status) == 0 && (status.st_mode & S_IRWXU) != S_IRWXU)
        (void)!fchmod(fd, 0700);
    return fd;
}

static enum result remove_entries(int top_fd, int fd, int depth, bool *ret_moved, struct error *err);

/* Below DEPTH_MAX levels a directory is moved up to the top, whose next pass finds it: any depth is removed
 * with a bounded number of descriptors and a bounded stack. */
static enum result move_up(int top_fd, int fd, const char *name, bool *ret_moved, struct error *err)
{
    uint8_t random[NAME_RANDOM_BYTES];
    char new_name[2 * NAME_RANDOM_BYTES + 1];
    random_bytes(random, sizeof(random));
    hex_encode(random, sizeof(random), new_name);
    if (renameat(fd, name, top_fd, new_name) != 0)
        return files_error(err, errno, "move", name);
    *ret_moved = true;
    return RESULT_OK;
}

static enum result remove_directory(
    int top_fd, int fd, const char *name, int depth, bool *ret_moved, struct error *err)
{
    if (depth >= DEPTH_MAX)
        return move_up(top_fd, fd, name, ret_moved, err);
    _cleanup_(fd_cleanup) int child = open_doomed(fd, name);
    if (child < 0)
        return errno == ENOENT ? RESULT_OK : files_error(err, errno, "open", name);
    enum result r = remove_entries(top_fd, child, depth + 1, ret_moved, err);
    if (r != RESULT_OK)
        return r;
    if (unlinkat(fd, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        return files_error(err, errno, "remove", name);
    return RESULT_OK;
}

static enum result remove_entry(
    int top_fd, int fd, const char *name, int depth, bool *ret_moved, struct error *err)
{
    if (unlinkat(fd, name, 0) == 0 || errno == ENOENT)
        return RESULT_OK;
    if (errno != EISDIR && errno != EPERM) /* POSIX says EPERM for a directory, Linux EISDIR */
        return files_error(err, errno, "remove", name);
    return remove_directory(top_fd, fd, name, depth, ret_moved, err);
}

static void directory_close(DIR **directory)
{
    if (*directory)
        closedir(*directory);
}

static enum result remove_entries(int top_fd, int fd, int depth, bool *ret_moved, struct error *err)
{
    _cleanup_(fd_cleanup) int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_(directory_close) DIR *directory = copy < 0 ? NULL : fdopendir(copy);
    if (!directory)
        return error_errno(err, errno, "cannot list a directory");
    copy = -1; /* owned by the stream now */
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        enum result r = remove_entry(top_fd, fd, entry->d_name, depth, ret_moved, err);
        if (r != RESULT_OK)
            return r;
    }
    return RESULT_OK;
}

enum result directory_remove(int dir_fd, const char *path, struct error *err)
{
    _cleanup_(fd_cleanup) int top = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (top < 0 && errno == EACCES) {
        permit_owner(dir_fd, path);
        top = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (top < 0)
        return errno == ENOENT ? RESULT_OK : files_error(err, errno, "open", path);
    (void)!fchmod(top, 0700);
    for (int pass = 0; pass < PASSES_MAX; pass++) {
        bool moved = false;
        enum result r = remove_entries(top, top, 0, &moved, err);
        if (r != RESULT_OK) {
            error_wrap(err, "removing %s: ", path);
            return r;
        }
        if (moved)
            continue;
        if (unlinkat(dir_fd, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return RESULT_OK;
        /* Somebody writes into it. A few passes are fair, an endless race is not. */
        if (errno != ENOTEMPTY && errno != EEXIST)
            return files_error(err, errno, "remove", path);
    }
    return error_set(err, RESULT_BUSY, ENOTEMPTY, "cannot remove %s: it is filled again and again", path);
}

struct magic {
    uint32_t number;
    enum file_system kind;
};

/* statfs(2) and the kernel's linux/magic.h; those outside the kernel tree from the sources of their projects.
 */
static const struct magic MAGICS[] = {
    {0x0000EF53, FILE_SYSTEM_LOCAL},   /* ext2, ext3, ext4 */
    {0x58465342, FILE_SYSTEM_LOCAL},   /* xfs */
    {0x9123683E, FILE_SYSTEM_LOCAL},   /* btrfs */
    {0xF2F52010, FILE_SYSTEM_LOCAL},   /* f2fs */
    {0x2FC12FC1, FILE_SYSTEM_LOCAL},   /* zfs */
    {0xCA451A4E, FILE_SYSTEM_LOCAL},   /* bcachefs */
    {0x01021994, FILE_SYSTEM_LOCAL},   /* tmpfs */
    {0x858458F6, FILE_SYSTEM_LOCAL},   /* ramfs */
    {0x52654973, FILE_SYSTEM_LOCAL},   /* reiserfs */
    {0x3153464A, FILE_SYSTEM_LOCAL},   /* jfs */
    {0x794C7630, FILE_SYSTEM_STACKED}, /* overlayfs */
    {0x65735546, FILE_SYSTEM_STACKED}, /* FUSE */
    {0x61756673, FILE_SYSTEM_STACKED}, /* aufs */
    {0x0000F15F, FILE_SYSTEM_STACKED}, /* ecryptfs */
    {0x00006969, FILE_SYSTEM_NETWORK}, /* NFS */
    {0xFF534D42, FILE_SYSTEM_NETWORK}, /* CIFS */
    {0xFE534D42, FILE_SYSTEM_NETWORK}, /* SMB 2 and 3 */
    {0x0000517B, FILE_SYSTEM_NETWORK}, /* SMB */
    {0x00C36400, FILE_SYSTEM_NETWORK}, /* Ceph */
    {0x5346414F, FILE_SYSTEM_NETWORK}, /* AFS */
    {0x6B414653, FILE_SYSTEM_NETWORK}, /* kAFS */
    {0x01021997, FILE_SYSTEM_NETWORK}, /* 9p */
    {0x0BD00BD0, FILE_SYSTEM_NETWORK}, /* Lustre */
    {0x0BD00BD3, FILE_SYSTEM_NETWORK}, /* Lustre */
    {0x47504653, FILE_SYSTEM_NETWORK}, /* GPFS */
    {0x73757245, FILE_SYSTEM_NETWORK}, /* Coda */
    {0x0000564C, FILE_SYSTEM_NETWORK}, /* NCP */
    {0x7461636F, FILE_SYSTEM_NETWORK}, /* OCFS2 */
    {0x01161970, FILE_SYSTEM_NETWORK}, /* GFS2 */
    {0x19830326, FILE_SYSTEM_NETWORK}, /* BeeGFS */
    {0x20030528, FILE_SYSTEM_NETWORK}, /* OrangeFS */
    {0xAAD7AAEA, FILE_SYSTEM_NETWORK}, /* PanFS */
    {0x786F4256, FILE_SYSTEM_NETWORK}, /* VirtualBox shared folder */
    {0xBACBACBC, FILE_SYSTEM_NETWORK}, /* VMware shared folder */
};

enum result file_system_of(int fd, enum file_system *ret, struct error *err)
{
    struct statfs status;
    if (fstatfs(fd, &status) != 0)
        return error_errno(err, errno, "cannot tell the file system");
    *ret = FILE_SYSTEM_OTHER;
    for (size_t i = 0; i < ARRAY_SIZE(MAGICS); i++)
        if (MAGICS[i].number == (uint32_t)status.f_type)
            *ret = MAGICS[i].kind;
    return RESULT_OK;
}

static bool is_absolute(const char *path)
{
    return path && *path == '/';
}

static char *home_of_user(void)
{
    struct passwd entry, *found = NULL;
    char *home = NULL;
    _cleanup_(mem_free) char *space = NULL;
    for (size_t size = 1024; size <= (size_t)1024 * 1024; size *= 2) {
        space = mem_resize(space, size, 1);
        int errnum = getpwuid_r(geteuid(), &entry, space, size, &found);
        if (errnum == ERANGE)
            continue;
        if (errnum == 0 && found && is_absolute(entry.pw_dir))
            home = mem_string(entry.pw_dir);
        break;
    }
    return home;
}

static enum result directory_of_user(
    const char *variable, const char *below_home, char **ret, struct error *err)
{
    const char *named = getenv(variable);
    if (is_absolute(named)) {
        *ret = mem_format("%s/tenure", named);
        return RESULT_OK;
    }
    const char *home = getenv("HOME");
    _cleanup_(mem_free) char *found = is_absolute(home) ? mem_string(home) : home_of_user();
    if (!found) {
        error_set(err, RESULT_INVALID, 0,
            "there is no home directory: neither HOME nor the password database "
            "names one");
        error_remedy(err, "set %s to an absolute path", variable);
        return RESULT_INVALID;
    }
    *ret = mem_format("%s/%s/tenure", found, below_home);
    return RESULT_OK;
}

enum result directory_state(char **ret, struct error *err)
{
    return directory_of_user("XDG_STATE_HOME", ".local/state", ret, err);
}

enum result directory_config(char **ret, struct error *err)
{
    return directory_of_user("XDG_CONFIG_HOME", ".config", ret, err);
}
