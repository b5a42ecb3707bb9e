#include "completion/demand/tools-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"

#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

const char *environment_value(const char *const *environment, const char *name)
{
    size_t length = strlen(name);
    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

static bool is_program(int top_fd, const char *file)
{
    struct stat status;
    return fstatat(top_fd, file, &status, 0) == 0 && S_ISREG(status.st_mode) &&
           faccessat(top_fd, file, X_OK, AT_EACCESS) == 0;
}

/* The first program of that name on `path`; NULL when there is none. An empty part is the work directory. */
static char *path_find(int top_fd, const char *path, const char *tool)
{
    for (const char *part = path;; part++) {
        size_t length = strcspn(part, ":");
        _cleanup_(mem_free) char *file = mem_format("%.*s%s%s", (int)length, part, length ? "/" : "./", tool);
        if (is_program(top_fd, file))
            return STEAL(file);
        part += length;
        if (!*part)
            return NULL;
    }
}

static enum result refuse_tool(const char *tool, const char *where, struct error *err)
{
    _cleanup_(text_done) struct text shown = {0};
    text_add_printable(&shown, tool, strlen(tool), false);
    error_set(err, RESULT_INVALID, 0, "there is no program \"%s\" %s", shown.bytes, where);
    return error_remedy(err, "install it, or take it out of \"tools\"");
}

static enum result tool_find(int top_fd, const char *path, const char *tool, char **ret, struct error *err)
{
    if (strchr(tool, '/')) {
        if (!is_program(top_fd, tool))
            return refuse_tool(tool, "at this path", err);
        *ret = mem_string(tool);
        return RESULT_OK;
    }
    char *found = path_find(top_fd, path ? path : PATH_DEFAULT, tool);
    if (!found)
        return refuse_tool(tool, "on PATH", err);
    *ret = found;
    return RESULT_OK;
}

enum result tool_digest(
    int top_fd, const char *path, const char *tool, char ret[DIGEST_HEX_SIZE], struct error *err)
{
    _cleanup_(mem_free) char *file = NULL;
    enum result r = tool_find(top_fd, path, tool, &file, err);
    if (r != RESULT_OK)
        return r;
    _cleanup_(fd_cleanup) int fd = openat(top_fd, file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    char digest[DIGEST_HEX_SIZE];
    _cleanup_(error_done) struct error cause = {0};
    if (fd < 0)
        return error_set(
            err, RESULT_INVALID, errno, "the program %s cannot be read: %s", file, strerror(errno));
    if (file_digest(fd, NULL, NULL, digest, &cause) != RESULT_OK)
        return error_set(err, RESULT_INVALID, cause.errnum, "the program %s: %s", file, cause.message);
    memcpy(ret, digest, sizeof(digest));
    return RESULT_OK;
}
