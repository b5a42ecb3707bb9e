/* What the repository is called, and which checkout of it this is. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/failpoint.h"
#include "base/files.h"
#include "base/memory.h"
#include "completion/repository/git-private.h"

#define CHECKOUT_NAME        "tenure-checkout"
#define CHECKOUT_BYTES       16
#define CHECKOUT_LIMIT_BYTES 4096

/* ---- the name ---- */

static size_t without_final_slashes(const char *path, size_t length)
{
    while (length > 0 && path[length - 1] == '/')
        length--;
    return length;
}

/* Without slashes around it and ".git" behind it. */
static char *path_trim(const char *path)
{
    path += strspn(path, "/");
    size_t length = without_final_slashes(path, strlen(path));
    if (length > 4 && memcmp(path + length - 4, ".git", 4) == 0)
        length = without_final_slashes(path, length - 4); /* a bare "dir/.git" too */
    return mem_copy(path, length);
}

static char *last_component(const char *path)
{
    _cleanup_(mem_free) char *trimmed = path_trim(path);
    const char *slash = strrchr(trimmed, '/');
    return mem_string(slash ? slash + 1 : trimmed);
}

/* "host/path"; the same for every way of reaching it. */
static char *remote_name(const char *host, size_t length, const char *path)
{
    _cleanup_(mem_free) char *trimmed = path_trim(path);
    char *name = mem_format("%.*s/%s", (int)length, host, trimmed);
    for (size_t i = 0; i < length; i++)
        if (name[i] >= 'A' && name[i] <= 'Z')
            name[i] = (char)(name[i] - 'A' + 'a');
    return name;
}

static size_t host_length(const char *host)
{
    if (*host == '[') /* an IPv6 address */
        return strcspn(host, "]/") + (strchr(host, ']') != NULL);
    return strcspn(host, ":/");
}

/* NULL when the URL names none. Forms as in git-fetch(1), "GIT URLS". */
static char *url_name(const char *url)
{
    const char *scheme = strstr(url, "://");
    if (scheme && strncmp(url, "file://", 7) != 0) {
        const char *host = scheme + 3, *path = strchr(host, '/');
        return path && path > host ? remote_name(host, host_length(host), path) : NULL;
    }
    const char *colon = strchr(url, ':'), *slash = strchr(url, '/');
    if (!scheme && colon && colon > url && (!slash || colon < slash))
        return remote_name(url, (size_t)(colon - url), colon + 1);
    return last_component(scheme ? scheme + 3 : url);
}

char *candidate_repository(const struct candidate *candidate, const char *configured)
{
    if (configured && *configured)
        return mem_string(configured);
    _cleanup_(mem_free) char *name = candidate->origin ? url_name(candidate->origin) : NULL;
    if (name && *name)
        return STEAL(name);
    char *directory = last_component(candidate->top);
    if (*directory)
        return directory;
    free(directory);
    return mem_string("repository"); /* the work tree is the root of the file system */
}

/* ---- the checkout ---- */

static enum result checkout_read(const char *path, char **ret, struct error *err)
{
    _cleanup_(text_done) struct text text = {0};
    uint8_t bytes[CHECKOUT_BYTES];
    enum result r = file_read(AT_FDCWD, path, true, CHECKOUT_LIMIT_BYTES, &text, err);
    if (r != RESULT_OK)
        return r;
    if (text.length && text.bytes[text.length - 1] == '\n')
        text.bytes[--text.length] = '\0';
    if (text.length != 2 * sizeof(bytes) || !hex_decode(text.bytes, bytes, sizeof(bytes))) {
        error_set(err, RESULT_CORRUPT, 0, "%s does not hold the id of a checkout", path);
        return error_remedy(err, "remove it: a new one is made");
    }
    *ret = text_steal(&text);
    return RESULT_OK;
}

/* Of several that make it at once one wins; the others read its file. */
static enum result checkout_make(const char *path, struct error *err)
{
    uint8_t bytes[CHECKOUT_BYTES];
    char hex[2 * CHECKOUT_BYTES + 1];
    random_bytes(bytes, sizeof(bytes));
    hex_encode(bytes, sizeof(bytes), hex);
    _cleanup_(mem_free) char *line = mem_format("%s\n", hex);
    _cleanup_(error_done) struct error cause = {0};
    FAILPOINT("checkout-before-write");
    enum result r = file_write_atomic(path, 0644, true, line, strlen(line), &cause);
    FAILPOINT("checkout-after-write");
    return r == RESULT_OK || r == RESULT_CONFLICT ? RESULT_OK : error_move(err, &cause);
}

enum result candidate_checkout(const struct candidate *candidate, char **ret_id, struct error *err)
{
    _cleanup_(mem_free) char *path = mem_format("%s/" CHECKOUT_NAME, candidate->git_dir);
    _cleanup_(error_done) struct error cause = {0};
    enum result r = checkout_read(path, ret_id, &cause);
    if (r == RESULT_ABSENT) {
        r = checkout_make(path, &cause);
        if (r == RESULT_OK)
            r = checkout_read(path, ret_id, &cause);
    }
    return r == RESULT_OK ? r : error_move(err, &cause);
}
