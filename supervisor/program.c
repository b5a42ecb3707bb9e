#include "supervisor/program-private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"

#define PATH_DEFAULT       "/usr/local/bin:/usr/bin:/bin"
#define FIRST_LINE_SIZE    256              /* as much as the kernel looks at */
#define STRING_LIMIT_BYTES ((size_t)131072) /* MAX_ARG_STRLEN, the final NUL included */
#define NOEXEC_REMEDY      "make it executable (chmod +x), and check that its file system is not mounted noexec"

static char *shown(const char *bytes)
{
    struct text text = {0};
    text_add_printable(&text, bytes, strlen(bytes), false);
    return text_steal(&text);
}

static enum result failure_set(struct spawn_failure *ret_failure, enum spawn_step step, int errnum)
{
    *ret_failure = (struct spawn_failure){.step = step, .errnum = errnum};
    return RESULT_SYSTEM;
}

/* ---- looking for it ---- */

/* What lies at a path: 0 for something that can be executed, else why not, as execve(2) would say. *ret_there
 * tells a file that was seen from one in a directory that may not be searched. */
static int path_refusal(int directory_fd, const char *path, bool *ret_there)
{
    struct stat status;
    *ret_there = fstatat(directory_fd, path, &status, 0) == 0;
    if (!*ret_there)
        return errno;
    if (!S_ISREG(status.st_mode))
        return S_ISDIR(status.st_mode) ? EISDIR : EACCES;
    return faccessat(directory_fd, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

static bool refusal_is_absence(int errnum)
{
    return errnum == ENOENT || errnum == ENOTDIR || errnum == ENAMETOOLONG || errnum == ELOOP;
}

static enum result refusal_report(
    const char *path, bool there, int errnum, struct spawn_failure *ret_failure, struct error *err)
{
    _cleanup_(mem_free) char *name = shown(path);
    if (refusal_is_absence(errnum)) {
        failure_set(ret_failure, SPAWN_NOT_FOUND, errnum);
        return error_errno(err, errnum, "cannot start %s", name);
    }
    failure_set(ret_failure, SPAWN_NOT_EXECUTABLE, errnum);
    if (errnum == EISDIR)
        return error_set(err, RESULT_SYSTEM, errnum, "cannot start %s: it is a directory", name);
    if (!there)
        return error_errno(err, errnum, "cannot start %s: its directory may not be searched", name);
    error_set(err, RESULT_SYSTEM, errnum, "cannot start %s: it is not executable", name);
    return error_remedy(err, NOEXEC_REMEDY);
}

const char *environment_value(const char *const *environment, const char *name)
{
    size_t length = strlen(name);
    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

/* An empty entry of PATH is the work directory. */
static char *entry_join(const char *entry, size_t length, const char *name)
{
    struct text path = {0};
    text_append(&path, length ? entry : ".", length ? length : 1);
    text_add(&path, "/");
    text_add(&path, name);
    return text_steal(&path);
}

void program_look_done(struct program_look *look)
{
    mem_free(&look->file);
}

static void look_at_entry(
    struct program_look *look, int directory_fd, const char *entry, size_t length, const char *name)
{
    _cleanup_(mem_free) char *candidate = entry_join(entry, length, name);
    bool there;
    int refusal = path_refusal(directory_fd, candidate, &there);
    if (refusal != 0 && (!there || look->there))
        return;
    program_look_done(look);
    *look = (struct program_look){.file = STEAL(candidate), .refusal = refusal, .there = true};
}

static void look_on_path(int directory_fd, const char *path, const char *name, struct program_look *look)
{
    for (const char *entry = path; entry && look->refusal != 0;) {
        const char *end = strchrnul(entry, ':');
        look_at_entry(look, directory_fd, entry, (size_t)(end - entry), name);
        entry = *end ? end + 1 : NULL;
    }
}

void program_look(int directory_fd, const char *path, const char *name, struct program_look *ret)
{
    *ret = (struct program_look){.refusal = ENOENT};
    if (!strchr(name, '/')) {
        look_on_path(directory_fd, path ? path : PATH_DEFAULT, name, ret);
        return;
    }
    ret->file = mem_string(name);
    ret->refusal = path_refusal(directory_fd, name, &ret->there);
}

static enum result not_on_path(
    const char *path, const char *program, struct spawn_failure *ret_failure, struct error *err)
{
    _cleanup_(mem_free) char *name = shown(program), *places = shown(path ? path : PATH_DEFAULT);
    failure_set(ret_failure, SPAWN_NOT_FOUND, ENOENT);
    error_set(err, RESULT_SYSTEM, ENOENT, "cannot start %s: there is no such program on PATH", name);
    return error_remedy(err, "install it, or name it by its path; PATH is %s", places);
}

enum result program_find(
    const struct spawn_request *request, char **ret, struct spawn_failure *ret_failure, struct error *err)
{
    const char *name = request->argv[0], *path = environment_value(request->environment, "PATH");
    _cleanup_(program_look_done) struct program_look look = {0};
    if (!name || !*name) {
        failure_set(ret_failure, SPAWN_NOT_FOUND, ENOENT);
        return error_set(err, RESULT_SYSTEM, ENOENT, "cannot start a program whose name is empty");
    }
    program_look(request->directory_fd, path, name, &look);
    if (look.file && look.refusal != 0)
        return refusal_report(look.file, look.there, look.refusal, ret_failure, err);
    if (!look.file)
        return not_on_path(path, name, ret_failure, err);
    *ret = STEAL(look.file);
    return RESULT_OK;
}

/* ---- saying why it did not start ---- */

struct first_line {
    char bytes[FIRST_LINE_SIZE + 1];
    size_t length; /* of what was read */
};

static void first_line_read(int directory_fd, const char *path, struct first_line *ret)
{
    *ret = (struct first_line){0};
    _cleanup_(fd_cleanup) int fd = openat(directory_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t got = fd >= 0 ? read(fd, ret->bytes, FIRST_LINE_SIZE) : 0;
    ret->length = got > 0 ? (size_t)got : 0;
}

/* The word behind "#!", owned by the caller; NULL when the file is no script. */
static char *interpreter_of(const struct first_line *line)
{
    if (line->length < 2 || memcmp(line->bytes, "#!", 2) != 0)
        return NULL;
    const char *word = line->bytes + 2 + strspn(line->bytes + 2, " \t");
    return mem_copy(word, strcspn(word, " \t\n"));
}

static enum result interpreter_missing(
    const char *path, const struct first_line *line, struct spawn_failure *ret_failure, struct error *err)
{
    _cleanup_(mem_free) char *interpreter = interpreter_of(line);
    _cleanup_(mem_free) char *name = shown(path);
    failure_set(ret_failure, SPAWN_NO_INTERPRETER, ENOENT);
    if (!interpreter) {
        error_set(
            err, RESULT_SYSTEM, ENOENT, "cannot start %s: the loader that it names does not exist", name);
        return error_remedy(err, "was it built for another system or architecture?");
    }
    size_t length = strlen(interpreter);
    bool carriage_return = length > 0 && interpreter[length - 1] == '\r';
    _cleanup_(mem_free) char *wanted = shown(interpreter);
    error_set(err, RESULT_SYSTEM, ENOENT, "cannot start %s: its #! line names %s, which does not exist%s",
        name, wanted, carriage_return ? " (the line ends in CR LF)" : "");
    return carriage_return ? error_remedy(err, "save the script with LF line ends")
                           : error_remedy(err, "install the interpreter, or correct the #! line");
}

static enum result format_unknown(
    const char *path, const struct first_line *line, struct spawn_failure *ret_failure, struct error *err)
{
    _cleanup_(mem_free) char *name = shown(path);
    failure_set(ret_failure, SPAWN_NOT_EXECUTABLE, ENOEXEC);
    if (line->length >= 4 && memcmp(line->bytes, "\177ELF", 4) == 0) {
        error_set(err, RESULT_SYSTEM, ENOEXEC, "cannot start %s: it is a program for another machine", name);
        return error_remedy(err, "build it for this architecture");
    }
    error_set(err, RESULT_SYSTEM, ENOEXEC, "cannot start %s: it is %s", name,
        line->length == 0 ? "empty" : "of no format that the kernel knows");
    return error_remedy(err, "if it is a script, add a #! line, for example #!/bin/sh");
}

/* The file itself may be executed, so what may not is what its #! line names. */
static enum result execution_denied(const struct spawn_request *request, const char *path,
    const struct first_line *line, struct spawn_failure *ret_failure, struct error *err)
{
    _cleanup_(mem_free) char *interpreter = interpreter_of(line);
    bool there;
    if (!interpreter || path_refusal(request->directory_fd, interpreter, &there) == 0)
        return refusal_report(path, true, EACCES, ret_failure, err);
    _cleanup_(mem_free) char *name = shown(path), *wanted = shown(interpreter);
    failure_set(ret_failure, SPAWN_NOT_EXECUTABLE, EACCES);
    error_set(err, RESULT_SYSTEM, EACCES, "cannot start %s: its #! line names %s, which may not be executed",
        name, wanted);
    return error_remedy(err, "correct the #! line");
}

/* The name of an oversized variable, without its value: that may be a secret. */
static char *oversized_name(const struct spawn_request *request)
{
    for (const char *const *entry = request->environment; entry && *entry; entry++)
        if (strlen(*entry) >= STRING_LIMIT_BYTES) {
            _cleanup_(mem_free) char *name = mem_copy(*entry, strcspn(*entry, "="));
            _cleanup_(mem_free) char *printable = shown(name);
            return mem_format("the environment variable %s takes %zu bytes", printable, strlen(*entry));
        }
    for (size_t i = 0; request->argv[i]; i++)
        if (strlen(request->argv[i]) >= STRING_LIMIT_BYTES)
            return mem_format("argument %zu takes %zu bytes", i, strlen(request->argv[i]));
    return NULL;
}

static size_t strings_bytes(const char *const *strings)
{
    size_t total = 0;
    for (; strings && *strings; strings++)
        total += strlen(*strings) + 1;
    return total;
}

static enum result too_long(const struct spawn_request *request, const char *path,
    struct spawn_failure *ret_failure, struct error *err)
{
    _cleanup_(mem_free) char *name = shown(path);
    _cleanup_(mem_free) char *oversized = oversized_name(request);
    failure_set(ret_failure, SPAWN_TOO_LONG, E2BIG);
    if (oversized) {
        error_set(err, RESULT_SYSTEM, E2BIG, "cannot start %s: %s, and the kernel allows %zu for one", name,
            oversized, STRING_LIMIT_BYTES - 1);
        return error_remedy(err, "pass it in a file");
    }
    error_set(err, RESULT_SYSTEM, E2BIG,
        "cannot start %s: its arguments (%zu bytes) and environment (%zu bytes) are above the kernel's limit",
        name, strings_bytes(request->argv), strings_bytes(request->environment));
    return error_remedy(err, "pass long lists in a file or on standard input (xargs)");
}

static enum result exec_failed(
    const char *path, int errnum, struct spawn_failure *ret_failure, struct error *err)
{
    _cleanup_(mem_free) char *name = shown(path);
    failure_set(ret_failure, SPAWN_EXEC, errnum);
    error_errno(err, errnum, "cannot start %s", name);
    if (errnum == ETXTBSY)
        return error_remedy(err, "somebody still has it open for writing: wait until it is complete");
    return RESULT_SYSTEM;
}

enum result program_diagnose(const struct spawn_request *request, const char *path, int errnum,
    struct spawn_failure *ret_failure, struct error *err)
{
    struct first_line line;
    first_line_read(request->directory_fd, path, &line);
    bool there;
    int refusal = path_refusal(request->directory_fd, path, &there);
    if (errnum == E2BIG)
        return too_long(request, path, ret_failure, err);
    if (refusal != 0) /* it changed since it was found */
        return refusal_report(path, there, refusal, ret_failure, err);
    if (errnum == ENOENT || errnum == ENOTDIR)
        return interpreter_missing(path, &line, ret_failure, err);
    if (errnum == ENOEXEC)
        return format_unknown(path, &line, ret_failure, err);
    if (errnum == EACCES)
        return execution_denied(request, path, &line, ret_failure, err);
    return exec_failed(path, errnum, ret_failure, err);
}
