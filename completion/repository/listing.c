/* What git answers about index and work tree, read in place: a hundred thousand files are nothing special. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "completion/repository/git-private.h"

void change_add(struct change_list *list, enum change_kind kind, const char *prefix, const char *path)
{
    mem_grow(&list->items, &list->capacity, list->count, sizeof(*list->items));
    list->items[list->count++] =
        (struct change){.kind = kind, .path = *prefix ? mem_format("%s%s", prefix, path) : mem_string(path)};
}

void change_list_done(struct change_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].path);
    free(list->items);
    *list = (struct change_list){0};
}

static enum result unreadable(const char *command, struct error *err)
{
    error_set(err, RESULT_INVALID, 0, "git %s answers in a form that is not known", command);
    return error_remedy(err, "use git 2.38 or newer");
}

/* ---- ls-files -o -s -v -z ---- */

#define TAG_UNTRACKED "? "

void untracked_take(struct text *text, const char *prefix, struct change_list *changes)
{
    size_t at = 0;
    while (at < text->length && strncmp(text->bytes + at, TAG_UNTRACKED, strlen(TAG_UNTRACKED)) == 0) {
        const char *path = text->bytes + at + strlen(TAG_UNTRACKED);
        if (changes)
            change_add(changes, CHANGE_UNTRACKED, prefix, path);
        at = (size_t)(path - text->bytes) + strlen(path) + 1;
    }
    if (at == 0)
        return;
    text->length -= at < text->length ? at : text->length;
    memmove(text->bytes, text->bytes + at, text->length + 1); /* and its final NUL */
}

static size_t record_count(const struct text *text)
{
    size_t count = 0;
    const char *at = text->bytes, *end = text->bytes + text->length;
    while (at && at < end && (at = memchr(at, '\0', (size_t)(end - at)))) {
        count++;
        at++;
    }
    return count;
}

/* "TAG MODE BLOB STAGE\tPATH". False when it is something else. */
static bool record_parse(const char *record, const char *end, size_t blob_length, struct tree_entry *ret)
{
    const char *mode = record + 2, *blob = mode + 7, *stage = blob + blob_length + 1, *path = stage + 2;
    if (end <= path || record[1] != ' ' || mode[6] != ' ' || stage[-1] != ' ' || stage[1] != '\t')
        return false;
    uint32_t number = 0;
    for (size_t i = 0; i < 6; i++) {
        if (mode[i] < '0' || mode[i] > '7')
            return false;
        number = number << 3 | (uint32_t)(mode[i] - '0');
    }
    *ret = (struct tree_entry){.mode = number, .blob = blob, .path = path};
    return true;
}

static void flags_add(const char *record, const char *path, struct change_list *changes)
{
    if (*record >= 'a' && *record <= 'z')
        change_add(changes, CHANGE_ASSUME_UNCHANGED, "", path);
    if (*record == 'S' || *record == 's')
        change_add(changes, CHANGE_SKIP_WORKTREE, "", path);
}

static size_t blob_length_of(const struct text *text)
{
    const char *blob = text->bytes + 9;
    return text->length > 9 ? strcspn(blob, " ") : 0; /* the text ends with a NUL */
}

enum result listing_parse(struct runner *runner, struct text *text, struct listing *listing,
    struct change_list *changes, struct error *err)
{
    if (!text->length)
        return RESULT_OK;
    size_t wanted = listing->count + record_count(text), blob_length = blob_length_of(text);
    if (blob_length != 40 && blob_length != 64)
        return unreadable("ls-files", err);
    listing->entries = mem_resize(listing->entries, wanted, sizeof(*listing->entries));
    listing->blob_length = blob_length;
    const char *at = text->bytes, *end = text->bytes + text->length;
    while (at < end) {
        struct tree_entry *entry = &listing->entries[listing->count];
        const char *stop = memchr(at, '\0', (size_t)(end - at));
        if (!stop || !record_parse(at, stop, blob_length, entry))
            return unreadable("ls-files", err);
        if (*at != 'H')
            flags_add(at, entry->path, changes);
        runner_pace(runner, listing->count++);
        at = stop + 1;
    }
    return RESULT_OK;
}

/* ---- status --porcelain=v2 -z --branch ---- */

/* Behind `count` more fields that end with a space; NULL when there are fewer. */
static const char *fields_skip(const char *at, size_t count)
{
    while (at && count--) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at;
}

static enum change_kind kind_of(const char *record)
{
    bool in_work_tree = record[3] != '.', submodule = record[5] == 'S';
    if (submodule && in_work_tree)
        return CHANGE_SUBMODULE;
    return in_work_tree ? CHANGE_MODIFIED : CHANGE_STAGED;
}

struct status_form {
    char tag;
    size_t fields; /* before the path */
    bool renamed;  /* one more record with the old path */
};

static const struct status_form STATUS_FORMS[] = {
    {'1', 8, false},
    {'2', 9, true},
    {'u', 10, false},
    {'?', 1, false},
};

static const struct status_form *form_of(char tag)
{
    for (size_t i = 0; i < ARRAY_SIZE(STATUS_FORMS); i++)
        if (STATUS_FORMS[i].tag == tag)
            return &STATUS_FORMS[i];
    return NULL;
}

/* Moves `*at` behind the record. */
static bool status_record(const char **at, const char *end, const char *prefix, struct change_list *changes)
{
    const char *record = *at;
    const struct status_form *form = form_of(*record);
    const char *path = form ? fields_skip(record, form->fields) : NULL;
    if (!path)
        return false;
    if (*record == '?')
        change_add(changes, CHANGE_UNTRACKED, prefix, path);
    else if (*record == 'u')
        change_add(changes, CHANGE_CONFLICTED, prefix, path);
    else
        change_add(changes, kind_of(record), prefix, path);
    *at += strlen(record) + 1;
    if (form->renamed && *at < end)
        *at += strlen(*at) + 1;
    return true;
}

#define OID_LINE "# branch.oid "

enum result status_parse(const struct text *text, const char *prefix, struct change_list *changes,
    char **ret_commit, struct error *err)
{
    const char *at = text->bytes, *end = text->bytes + text->length;
    _cleanup_(mem_free) char *commit = NULL;
    bool seen = false;
    while (at && at < end) {
        if (strncmp(at, OID_LINE, strlen(OID_LINE)) == 0) {
            const char *name = at + strlen(OID_LINE);
            seen = true;
            free(commit);
            commit = git_is_object_name(name, strlen(name)) ? mem_string(name) : NULL;
        }
        if (*at == '#')
            at += strlen(at) + 1;
        else if (!status_record(&at, end, prefix, changes))
            return unreadable("status", err);
    }
    if (!seen)
        return unreadable("status", err);
    *ret_commit = STEAL(commit);
    return RESULT_OK;
}
