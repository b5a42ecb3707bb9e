#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/failpoint.h"
#include "base/files.h"
#include "base/memory.h"
#include "journal/place-private.h"

enum result journal_error(struct error *err, int errnum, const char *doing, const char *path)
{
    enum result code = RESULT_SYSTEM;
    if (errnum == EACCES || errnum == EPERM || errnum == EROFS)
        code = RESULT_DENIED;
    else if (errnum == ENOENT || errnum == ENOTDIR)
        code = RESULT_ABSENT;
    const char *why = strerrordesc_np(errnum);
    return error_set(err, code, errnum, "cannot %s %s: %s", doing, path, why != NULL ? why : "unknown error");
}

enum result journal_root(const char *root, char **ret, struct error *err)
{
    _cleanup_(mem_free) char *state = NULL, *here = NULL;
    if (root != NULL && root[0] == '/') {
        *ret = mem_string(root);
        return RESULT_OK;
    }
    if (root != NULL) {
        here = getcwd(NULL, 0);
        if (here == NULL)
            return journal_error(err, errno, "find the working directory for", root);
        *ret = mem_format("%s/%s", here, root);
        return RESULT_OK;
    }
    enum result r = directory_state(&state, err);
    if (r == RESULT_OK)
        *ret = mem_format("%s/journals", state);
    return r;
}

enum result journal_remove(const char *root, int root_fd, const char *handle, struct error *err)
{
    uint8_t random[4];
    char hex[2 * sizeof(random) + 1], hidden[128];
    random_bytes(random, sizeof(random));
    hex_encode(random, sizeof(random), hex);
    snprintf(hidden, sizeof(hidden), JOURNAL_GONE_PREFIX "%.64s-%s", handle, hex);
    if (renameat(root_fd, handle, root_fd, hidden) < 0) {
        int errnum = errno;
        _cleanup_(mem_free) char *path = mem_format("%s/%s", root, handle);
        return journal_error(err, errnum, "remove the journal", path);
    }
    FAILPOINT("journal-remove-after-rename");
    return directory_remove(root_fd, hidden, err);
}
