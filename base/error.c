#include "base/error.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const char *const RESULT_NAMES[RESULT_MAX] = {
    [RESULT_OK] = "ok",
    [RESULT_HELD] = "held",
    [RESULT_RETIRED] = "retired",
    [RESULT_LAPSED] = "lapsed",
    [RESULT_CONFLICT] = "conflict",
    [RESULT_BUSY] = "busy",
    [RESULT_UNREACHABLE] = "unreachable",
    [RESULT_UNKNOWN] = "unknown",
    [RESULT_DENIED] = "denied",
    [RESULT_NEWER] = "newer",
    [RESULT_CORRUPT] = "corrupt",
    [RESULT_ABSENT] = "absent",
    [RESULT_INVALID] = "invalid",
    [RESULT_SYSTEM] = "system",
    [RESULT_INTERRUPTED] = "interrupted",
};

const char *result_name(enum result result)
{
    return (unsigned)result < RESULT_MAX ? RESULT_NAMES[result] : "?";
}

/* A caller that does not want the text still needs the code when the expression ends in error_remedy() or
 * error_wrap(); turning a "held" into something else there would change what the protocol does. */
static _Thread_local enum result last_code = RESULT_SYSTEM;

static enum result code_of(const struct error *err)
{
    return err && err->code != RESULT_OK ? err->code : last_code;
}

static enum result error_fill(struct error *err, enum result code, int errnum, char *message)
{
    last_code = code;
    if (!err) {
        free(message);
        return code;
    }
    error_done(err);
    *err = (struct error){.code = code, .errnum = errnum, .message = message};
    return code;
}

enum result error_set(struct error *err, enum result code, int errnum, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    /* Formatted before the old content goes: the arguments may point into it. */
    char *message = err ? mem_vformat(format, arguments) : NULL;
    va_end(arguments);
    return error_fill(err, code, errnum, message);
}

/* Not strerror(): its text depends on the locale and its buffer is shared. */
static const char *errno_text(int errnum)
{
    const char *text = strerrordesc_np(errnum);
    return text ? text : "unknown error";
}

enum result error_errno(struct error *err, int errnum, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    _cleanup_(mem_free) char *what = err ? mem_vformat(format, arguments) : NULL;
    va_end(arguments);
    char *message = err ? mem_format("%s: %s", what, errno_text(errnum)) : NULL;
    return error_fill(err, RESULT_SYSTEM, errnum, message);
}

enum result error_remedy(struct error *err, const char *format, ...)
{
    if (!err)
        return code_of(err);
    va_list arguments;
    va_start(arguments, format);
    char *remedy = mem_vformat(format, arguments);
    va_end(arguments);
    free(err->remedy);
    err->remedy = remedy;
    return code_of(err);
}

enum result error_wrap(struct error *err, const char *format, ...)
{
    if (!err)
        return code_of(err);
    va_list arguments;
    va_start(arguments, format);
    _cleanup_(mem_free) char *context = mem_vformat(format, arguments);
    va_end(arguments);
    char *message = mem_format("%s%s", context, err->message ? err->message : "");
    free(err->message);
    err->message = message;
    return code_of(err);
}

enum result error_move(struct error *to, struct error *from)
{
    enum result code = from->code;
    if (code != RESULT_OK)
        last_code = code;
    if (!to) {
        error_done(from);
    } else if (to != from) {
        error_done(to);
        *to = *from;
        *from = (struct error){0};
    }
    return code;
}

void error_done(struct error *err)
{
    free(err->message);
    free(err->remedy);
    *err = (struct error){0};
}
