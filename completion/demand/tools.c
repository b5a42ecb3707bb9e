#include "completion/demand/tools-private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/files.h"
#include "base/text.h"
#include "supervisor/program.h"

static enum result refuse_tool(const char *tool, const char *where, struct error *err)
{
    _cleanup_(text_done) struct text shown = {0};
    text_add_printable(&shown, tool, strlen(tool), false);
    error_set(err, RESULT_INVALID, 0, "there is no program \"%s\" %s", shown.bytes, where);
    return error_remedy(err, "install it, or take it out of \"tools\"");
}

enum result tool_digest(
    int top_fd, const char *path, const char *tool, char ret[DIGEST_HEX_SIZE], struct error *err)
{
    _cleanup_(program_look_done) struct program_look look = {0};
    program_look(top_fd, path, tool, &look);
    if (look.refusal != 0)
        return refuse_tool(tool, strchr(tool, '/') ? "at this path" : "on PATH", err);
    const char *file = look.file;
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
