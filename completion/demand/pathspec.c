#include "completion/demand/pathspec.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"

/*
 * A glob is matched in one pass with two places to come back to: the last `*`, which may take one more
 * character that is not a slash, and the last `**`, which may take one more directory. An earlier star never
 * needs another try: what it leaves to the later one, the later one can take as well. So the cost is bounded
 * by the product of the lengths, whatever the glob.
 */
struct matching {
    const char *glob, *path;             /* what is left */
    const char *star_glob, *star_path;   /* behind the last `*`; NULL when there is none */
    const char *stars_glob, *stars_path; /* behind the last `**` and its slash */
};

static bool is_special(char c)
{
    return c == '*' || c == '?' || c == '[' || c == '\\';
}

/* ---- classes ---- */

struct class_name {
    const char *name;
    int (*is)(int c);
};

static int is_blank_c(int c)
{
    return c == ' ' || c == '\t';
}

/* The C locale's, whatever the locale: the functions below are only asked about ASCII. */
static const struct class_name CLASSES[] = {
    {"alnum", isalnum},
    {"alpha", isalpha},
    {"blank", is_blank_c},
    {"cntrl", iscntrl},
    {"digit", isdigit},
    {"graph", isgraph},
    {"lower", islower},
    {"print", isprint},
    {"punct", ispunct},
    {"space", isspace},
    {"upper", isupper},
    {"xdigit", isxdigit},
};

/* "[:name:]" at `at`. -1: no such class, which makes the whole glob match nothing. */
static int named_class(const char *name, size_t length, unsigned char c)
{
    for (size_t i = 0; i < ARRAY_SIZE(CLASSES); i++)
        if (strlen(CLASSES[i].name) == length && memcmp(CLASSES[i].name, name, length) == 0)
            return c < 0x80 && CLASSES[i].is(c) != 0;
    return -1;
}

struct class_reading {
    const unsigned char *at;
    unsigned char c;        /* the character that is looked for */
    unsigned char previous; /* a range may begin with it; 0: may not */
    bool found;
};

/* One character of a class, perhaps escaped. False at the end of the glob. */
static bool class_character(struct class_reading *reading, unsigned char *ret)
{
    if (*reading->at == '\\')
        reading->at++;
    *ret = *reading->at;
    if (!*ret)
        return false;
    reading->at++;
    return true;
}

static bool class_range(struct class_reading *reading)
{
    unsigned char last;
    reading->at++; /* the dash */
    if (!class_character(reading, &last))
        return false;
    reading->found |= reading->c >= reading->previous && reading->c <= last;
    reading->previous = 0;
    return true;
}

static bool class_item(struct class_reading *reading)
{
    const unsigned char *at = reading->at;
    if (*at == '-' && reading->previous && at[1] && at[1] != ']')
        return class_range(reading);
    if (*at == '[' && at[1] == ':') {
        const char *name = (const char *)at + 2, *end = strchr(name, ']');
        if (!end)
            return false;
        if (end > name && end[-1] == ':') {
            int found = named_class(name, (size_t)(end - 1 - name), reading->c);
            reading->at = (const unsigned char *)end + 1;
            reading->found |= found > 0;
            reading->previous = 0;
            return found >= 0;
        }
    }
    unsigned char c;
    if (!class_character(reading, &c))
        return false;
    reading->found |= c == reading->c;
    reading->previous = c;
    return true;
}

/* `glob` stands behind the "[". NULL when `c` is not in the class or the class is malformed, else behind it.
 */
static const char *class_match(const char *glob, unsigned char c)
{
    struct class_reading reading = {.at = (const unsigned char *)glob, .c = c};
    bool negated = *glob == '!' || *glob == '^';
    reading.at += negated;
    do {
        if (!*reading.at || !class_item(&reading))
            return NULL;
    } while (*reading.at != ']');
    return reading.found != negated && c != '/' ? (const char *)reading.at + 1 : NULL;
}

/* ---- globs ---- */

/* A run of stars that stands for whole directories: between slashes, or at either end. */
static bool crosses_slashes(const char *begin, const char *stars, const char *behind)
{
    return behind - stars >= 2 && (stars == begin || stars[-1] == '/') &&
           (*behind == '\0' || *behind == '/' || (*behind == '\\' && behind[1] == '/'));
}

/* Takes one element of the glob that is not a star. False when it does not match here. */
static bool take_one(struct matching *matching)
{
    const char *glob = matching->glob;
    unsigned char c = (unsigned char)*matching->path;
    const char *behind = glob + 1;
    if (*glob == '?') {
        if (c == '/')
            return false;
    } else if (*glob == '[') {
        behind = class_match(glob + 1, c);
        if (!behind)
            return false;
    } else {
        if (*glob == '\\') /* at the end it matches nothing */
            behind = ++glob + 1;
        if ((unsigned char)*glob != c)
            return false;
    }
    matching->glob = behind;
    matching->path++;
    return true;
}

/* The last `*` takes one more character, or the last `**` one more directory. False when neither can. */
static bool come_back(struct matching *matching)
{
    if (matching->star_glob && *matching->star_path && *matching->star_path != '/') {
        matching->path = ++matching->star_path;
        matching->glob = matching->star_glob;
        return true;
    }
    matching->star_glob = NULL;
    const char *slash = matching->stars_glob ? strchr(matching->stars_path, '/') : NULL;
    if (!slash)
        return false;
    matching->path = matching->stars_path = slash + 1;
    matching->glob = matching->stars_glob;
    return true;
}

/* True when a final `**` takes all that is left. */
static bool take_stars(struct matching *matching, const char *begin)
{
    const char *stars = matching->glob;
    const char *behind = stars + strspn(stars, "*");
    matching->glob = behind;
    if (!crosses_slashes(begin, stars, behind)) {
        matching->star_glob = behind;
        matching->star_path = matching->path;
        return false;
    }
    if (*behind == '\0')
        return true;
    bool escaped = *behind == '\\';
    matching->glob = matching->stars_glob = behind + 1 + escaped;
    matching->stars_path = matching->path;
    matching->star_glob = NULL;
    return false;
}

static bool glob_match(const char *glob, const char *path)
{
    const char *begin = glob;
    struct matching matching = {.glob = glob, .path = path};
    for (;;) {
        if (*matching.glob == '*') {
            if (take_stars(&matching, begin))
                return true;
            continue;
        }
        if (!*matching.glob && !*matching.path)
            return true;
        if (*matching.glob && *matching.path && take_one(&matching))
            continue;
        if (!come_back(&matching))
            return false;
    }
}

/* Without any special character, or before the first: the path itself, or a directory above it. */
static bool literal_match(const char *glob, const char *path)
{
    size_t length = strlen(glob);
    if (strncmp(glob, path, length) != 0)
        return false;
    return length == 0 || path[length] == '\0' || path[length] == '/' || glob[length - 1] == '/';
}

static const char *without_mark(const char *glob)
{
    if (*glob == ':' && (glob[1] == '!' || glob[1] == '^'))
        return glob + 2;
    return *glob == '!' ? glob + 1 : glob;
}

bool pathspec_excludes(const char *glob)
{
    return without_mark(glob) != glob;
}

bool pathspec_match(const char *glob, const char *path)
{
    glob = without_mark(glob);
    if (literal_match(glob, path))
        return true;
    size_t plain = 0;
    while (glob[plain] && !is_special(glob[plain]))
        plain++;
    if (!glob[plain] || strncmp(glob, path, plain) != 0)
        return false;
    return glob_match(glob + plain, path + plain);
}

/* ---- selections ---- */

static bool is_selected(const struct strings *globs, bool any_including, const char *path)
{
    bool selected = !any_including;
    for (size_t i = 0; i < globs->count && !selected; i++)
        selected = !pathspec_excludes(globs->items[i]) && pathspec_match(globs->items[i], path);
    for (size_t i = 0; i < globs->count && selected; i++)
        if (pathspec_excludes(globs->items[i]) && pathspec_match(globs->items[i], path))
            return false;
    return selected;
}

void pathspec_select(
    const struct candidate *candidate, const struct strings *globs, size_t **ret_indices, size_t *ret_count)
{
    size_t count = 0;
    size_t *indices = mem_resize(NULL, candidate->entry_count, sizeof(*indices));
    bool any_including = false;
    for (size_t i = 0; i < globs->count; i++)
        any_including |= !pathspec_excludes(globs->items[i]);
    for (size_t i = 0; i < candidate->entry_count; i++) {
        if (is_selected(globs, any_including, candidate->entries[i].path))
            indices[count++] = i;
        runner_pace(candidate->runner, i);
    }
    *ret_indices = indices;
    *ret_count = count;
}
