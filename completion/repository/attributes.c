#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "completion/repository/conversions-private.h"

#define ATTRIBUTES_LIMIT_BYTES (4 * 1024 * 1024)

struct word {
    const char *text;
    unsigned converts;
};

static const struct word WORDS[] = {
    {"filter", CONVERTS_BYTES},
    {"ident", CONVERTS_BYTES},
    {"working-tree-encoding", CONVERTS_BYTES},
    {"eol", CONVERTS_ALL},
    {"text", CONVERTS_LINES},
    {"crlf", CONVERTS_LINES},
};

/* What an attributes file may ask for. One that cannot be read may ask for anything. */
static unsigned file_converts(int directory_fd, const char *path, bool nofollow)
{
    _cleanup_(text_done) struct text text = {0};
    if (faccessat(directory_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
        return 0; /* most often, and without the cost of words about it */
    enum result r = file_read(directory_fd, path, nofollow, ATTRIBUTES_LIMIT_BYTES, &text, NULL);
    if (r != RESULT_OK)
        return r == RESULT_ABSENT ? 0 : CONVERTS_ALL;
    unsigned converts = 0;
    for (size_t i = 0; text.length && i < ARRAY_SIZE(WORDS); i++)
        if (memmem(text.bytes, text.length, WORDS[i].text, strlen(WORDS[i].text)))
            converts |= WORDS[i].converts;
    return converts;
}

/* Where two paths part, behind a slash. */
static size_t common_directories(const char *a, const char *b)
{
    size_t common = 0;
    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        if (a[i] == '/')
            common = i + 1;
    return common;
}

/* Every directory that holds a tracked file, and those above it: an attributes file need not be tracked. */
static unsigned directories_convert(const struct conversion_look *look)
{
    unsigned converts = file_converts(look->top_fd, ".gitattributes", true);
    const char *previous = "";
    _cleanup_(text_done) struct text path = {0};
    for (size_t i = 0; i < look->listing->count && converts != CONVERTS_ALL; i++) {
        const char *entry = look->listing->entries[i].path;
        const char *slash = strchr(entry + common_directories(previous, entry), '/');
        for (; slash; slash = strchr(slash + 1, '/')) {
            text_clear(&path);
            text_append(&path, entry, (size_t)(slash + 1 - entry));
            text_add(&path, ".gitattributes");
            converts |= file_converts(look->top_fd, path.bytes, true);
        }
        previous = entry;
        runner_pace(look->runner, i);
    }
    return converts;
}

/* A linked work tree keeps attributes with the repository that it belongs to. */
static unsigned repository_converts(const char *git_dir)
{
    _cleanup_(text_done) struct text common = {0};
    _cleanup_(mem_free) char *pointer = mem_format("%s/commondir", git_dir), *path = NULL;
    enum result r = file_read(AT_FDCWD, pointer, false, ATTRIBUTES_LIMIT_BYTES, &common, NULL);
    if (r == RESULT_OK && common.length) {
        common.bytes[strcspn(common.bytes, "\n")] = '\0';
        bool absolute = *common.bytes == '/';
        path =
            mem_format("%s%s%s/info/attributes", absolute ? "" : git_dir, absolute ? "" : "/", common.bytes);
    } else {
        path = mem_format("%s/info/attributes", git_dir);
    }
    return file_converts(AT_FDCWD, path, false);
}

/* The file of the user's own attributes; NULL when there is no home for one. False: nobody knows. */
static bool user_file(const char *configured, char **ret)
{
    const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
    *ret = NULL;
    if (configured && *configured == '/')
        *ret = mem_string(configured);
    else if (configured && strncmp(configured, "~/", 2) == 0 && home)
        *ret = mem_format("%s/%s", home, configured + 2);
    else if (!configured && config && *config)
        *ret = mem_format("%s/git/attributes", config);
    else if (!configured && home && *home)
        *ret = mem_format("%s/.config/git/attributes", home);
    return *ret || !configured;
}

static unsigned user_converts(const char *configured)
{
    _cleanup_(mem_free) char *path = NULL;
    if (!user_file(configured, &path))
        return CONVERTS_ALL;
    return path ? file_converts(AT_FDCWD, path, false) : 0;
}

unsigned attributes_convert(const struct conversion_look *look)
{
    unsigned converts = look->settings->converts_lines ? CONVERTS_LINES : 0;
    converts |= file_converts(AT_FDCWD, "/etc/gitattributes", false);
    converts |= user_converts(look->settings->attributes_file);
    converts |= repository_converts(look->git_dir);
    return converts == CONVERTS_ALL ? converts : converts | directories_convert(look);
}
