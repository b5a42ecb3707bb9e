/* Strings, lists and commands of tenure.json, and the form that each kind of string must have. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "completion/demand/config-private.h"

#define BLANKS " \t\n\r\v\f"

void strings_done(struct strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        free(strings->items[i]);
    free(strings->items);
    *strings = (struct strings){0};
}

void command_line_done(struct command_line *command)
{
    strings_done(&command->words);
}

static enum result refuse_item(
    const struct reading *reading, const char *pointer, size_t index, const char *string, const char *what)
{
    _cleanup_(mem_free) char *below = mem_format("%s/%zu", pointer, index);
    _cleanup_(text_done) struct text shown = {0};
    if (!string)
        return json_error_at(reading->document, below, false, reading->err, "%s", what);
    text_add_printable(&shown, string, strnlen(string, NAME_LIMIT_BYTES), false);
    return json_error_at(
        reading->document, below, false, reading->err, "\"%s\" %s", shown.bytes ? shown.bytes : "", what);
}

static enum result read_item(const struct reading *reading, const char *pointer, struct json_object *array,
    size_t index, check_string_fn check, char **ret)
{
    struct json_object *value = json_object_array_get_idx(array, index);
    if (!json_object_is_type(value, json_type_string))
        return refuse_item(reading, pointer, index, NULL, "must be a string");
    const char *string = json_object_get_string(value);
    if (strlen(string) != (size_t)json_object_get_string_len(value))
        return refuse_item(reading, pointer, index, string, "must not hold a NUL character");
    _cleanup_(mem_free) char *copy = mem_string(string);
    const char *wrong = check ? check(copy) : NULL;
    if (wrong)
        return refuse_item(reading, pointer, index, string, wrong);
    *ret = STEAL(copy);
    return RESULT_OK;
}

/* Sorted by string, then by place: of two equal ones the later is refused. */
static int by_string(const void *a, const void *b)
{
    const char *const *left = *(const char *const *const *)a, *const *right = *(const char *const *const *)b;
    int order = strcmp(*left, *right);
    return order ? order : (left > right) - (left < right);
}

static enum result refuse_twice(
    const struct reading *reading, const char *pointer, const struct strings *strings)
{
    _cleanup_(mem_free) char ***sorted = mem_resize(NULL, strings->count, sizeof(*sorted));
    for (size_t i = 0; i < strings->count; i++)
        sorted[i] = &strings->items[i];
    if (strings->count)
        qsort(sorted, strings->count, sizeof(*sorted), by_string);
    for (size_t i = 1; i < strings->count; i++)
        if (strcmp(*sorted[i - 1], *sorted[i]) == 0)
            return refuse_item(
                reading, pointer, (size_t)(sorted[i] - strings->items), *sorted[i], "is named twice");
    return RESULT_OK;
}

enum result read_strings(const struct reading *reading, const char *pointer, struct json_object *array,
    check_string_fn check, struct strings *ret)
{
    size_t length = array ? json_object_array_length(array) : 0;
    if (!length)
        return RESULT_OK;
    enum result r = RESULT_OK;
    ret->items = mem_alloc((length + 1) * sizeof(*ret->items));
    for (; r == RESULT_OK && ret->count < length; ret->count += r == RESULT_OK)
        r = read_item(reading, pointer, array, ret->count, check, &ret->items[ret->count]);
    if (r == RESULT_OK && check) /* the words of a command may repeat */
        r = refuse_twice(reading, pointer, ret);
    return r;
}

static bool is_blank(const char *string)
{
    return string[strspn(string, BLANKS)] == '\0';
}

static enum result refuse_command(const struct reading *reading, const char *pointer, const char *what)
{
    json_error_at(reading->document, pointer, false, reading->err, "%s", what);
    return error_remedy(reading->err,
        "write a string for /bin/sh, like \"make test\", or a list of words, like [\"make\", \"test\"]");
}

static enum result read_words(
    const struct reading *reading, const char *pointer, struct json_object *value, struct command_line *ret)
{
    enum result r = read_strings(reading, pointer, value, NULL, &ret->words);
    if (r == RESULT_OK && (ret->words.count == 0 || is_blank(ret->words.items[0])))
        return refuse_command(reading, pointer, "the command is empty");
    return r;
}

enum result read_command(
    const struct reading *reading, const char *pointer, struct json_object *value, struct command_line *ret)
{
    if (json_object_is_type(value, json_type_array))
        return read_words(reading, pointer, value, ret);
    if (!json_object_is_type(value, json_type_string))
        return refuse_command(reading, pointer, "a command must be a string or a list of strings");
    const char *string = json_object_get_string(value);
    if (strlen(string) != (size_t)json_object_get_string_len(value))
        return refuse_command(reading, pointer, "the command must not hold a NUL character");
    if (is_blank(string))
        return refuse_command(reading, pointer, "the command is empty");
    ret->shell = true;
    ret->words.items = mem_alloc(2 * sizeof(*ret->words.items));
    ret->words.items[ret->words.count++] = mem_string(string);
    return RESULT_OK;
}

/* ---- the form of paths ---- */

static size_t component_length(const char *path)
{
    return strcspn(path, "/");
}

static bool has_parent(const char *path)
{
    for (size_t length; *path; path += length + (path[length] == '/')) {
        length = component_length(path);
        if (length == 2 && memcmp(path, "..", 2) == 0)
            return true;
    }
    return false;
}

/* Drops empty and "." components in place. A glob keeps its final slash: there it means "a directory". */
static void path_tidy(char *path, bool keep_final_slash)
{
    char *to = path;
    for (const char *from = path; *from;) {
        size_t length = component_length(from);
        bool slash = from[length] == '/';
        if (length && !(length == 1 && *from == '.')) {
            memmove(to, from, length);
            to += length;
            if (slash)
                *to++ = '/';
        }
        from += length + slash;
    }
    if (!keep_final_slash && to > path && to[-1] == '/')
        to--;
    *to = '\0';
}

const char *check_glob(char *glob)
{
    char *pattern = glob;
    if (*pattern == ':' && (pattern[1] == '!' || pattern[1] == '^'))
        pattern += 2;
    else if (*pattern == ':')
        return "begins with ':', but of git's pathspec magic only an excluding \"!\" is read";
    else if (*pattern == '!')
        pattern++;
    if (*pattern == '/')
        return "is absolute: globs are relative to the top of the work tree";
    if (has_parent(pattern))
        return "leads out of the work tree";
    path_tidy(pattern, true);
    return *pattern ? NULL : "is empty: leave \"inputs\" out to name the whole tree";
}

const char *check_output(char *path)
{
    if (*path == '/')
        return "is absolute: it must lie in the work tree";
    if (has_parent(path))
        return "leads out of the work tree";
    path_tidy(path, false);
    if (!*path)
        return "names no file";
    return component_length(path) == 4 && memcmp(path, ".git", 4) == 0 ? "lies in git's own directory" : NULL;
}

const char *check_need(char *name)
{
    return *name ? NULL : "is empty: name a producer";
}

static bool begins_with(const char *string, const char *beginning)
{
    return strncmp(string, beginning, strlen(beginning)) == 0;
}

const char *check_variable(char *name)
{
    static const char *const OURS[] = {"TENURE_", "WATCHDOG_", "LISTEN_", "NOTIFY_SOCKET"};
    if (!*name || strchr(name, '='))
        return "is not the name of an environment variable";
    for (size_t i = 0; i < ARRAY_SIZE(OURS); i++)
        if (begins_with(name, OURS[i]))
            return "belongs to the supervisor and is never passed on";
    return NULL;
}

const char *check_tool(char *name)
{
    return *name ? NULL : "is empty: name a program";
}
