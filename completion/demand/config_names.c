/* Names of producers and their like: what they may hold, and that no two of them are twins. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "completion/demand/config-private.h"

/* C0, DEL and, in UTF-8, C1. */
static bool has_control(const char *name)
{
    for (const unsigned char *at = (const unsigned char *)name; *at; at++)
        if (*at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0))
            return true;
    return false;
}

static const char *name_wrong(const char *name)
{
    if (!*name)
        return "a name must not be empty";
    if (strlen(name) > NAME_LIMIT_BYTES)
        return "a name has at most 100 bytes";
    if (strchr(name, '/'))
        return "a name must not hold a \"/\"";
    if (has_control(name))
        return "a name must not hold control characters";
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ? "a name must not be \".\" or \"..\"" : NULL;
}

/* ASCII only and whatever the locale: two machines must read one file alike. */
static unsigned char folded(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static int compare_folded(const char *a, const char *b)
{
    while (*a && folded(*a) == folded(*b)) {
        a++;
        b++;
    }
    return (int)folded(*a) - (int)folded(*b);
}

struct member {
    const char *name;
    size_t index; /* in the file */
};

static int by_folded_name(const void *a, const void *b)
{
    const struct member *left = a, *right = b;
    int order = compare_folded(left->name, right->name);
    return order ? order : (left->index > right->index) - (left->index < right->index);
}

static enum result refuse_name(
    const struct reading *reading, const char *pointer, const char *name, const char *what)
{
    _cleanup_(mem_free) char *below = json_pointer_join(pointer, name);
    return json_error_at(reading->document, below, true, reading->err, "%s", what);
}

static enum result refuse_twin(const struct reading *reading, const char *pointer, const struct member *first,
    const struct member *second)
{
    _cleanup_(mem_free) char *what =
        mem_format("\"%s\" and \"%s\" differ only in upper and lower case", first->name, second->name);
    refuse_name(reading, pointer, second->name, what);
    return error_remedy(reading->err, "give one of them another name");
}

enum result check_names(const struct reading *reading, const char *pointer, struct json_object *object)
{
    size_t count = 0;
    _cleanup_(mem_free) struct member *members =
        mem_resize(NULL, (size_t)json_object_object_length(object), sizeof(*members));
    struct json_object_iterator at = json_object_iter_begin(object), end = json_object_iter_end(object);
    for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at)) {
        const char *name = json_object_iter_peek_name(&at), *wrong = name_wrong(name);
        if (wrong)
            return refuse_name(reading, pointer, name, wrong);
        members[count] = (struct member){.name = name, .index = count};
        count++;
    }
    if (count)
        qsort(members, count, sizeof(*members), by_folded_name);
    for (size_t i = 1; i < count; i++)
        if (compare_folded(members[i - 1].name, members[i].name) == 0)
            return refuse_twin(reading, pointer, &members[i - 1], &members[i]);
    return RESULT_OK;
}

/* ---- outputs ---- */

struct output {
    const char *path;
    size_t producer, index;
    const char *list; /* "outputs" or "artifacts" */
};

/* A slash sorts before everything else, so that what lies in a directory follows it directly. */
static int by_path(const void *a, const void *b)
{
    const struct output *left = a, *right = b;
    const unsigned char *l = (const unsigned char *)left->path, *r = (const unsigned char *)right->path;
    while (*l && *l == *r) {
        l++;
        r++;
    }
    if (*l != *r && (*l == '/' || *r == '/') && *l && *r)
        return *l == '/' ? -1 : 1;
    if (*l != *r)
        return (int)*l - (int)*r;
    return (left->producer > right->producer) - (left->producer < right->producer);
}

static bool lies_in(const char *path, const char *directory)
{
    size_t length = strlen(directory);
    return strncmp(path, directory, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static void outputs_of(
    const struct config *config, size_t producer, const char *list, struct output *outputs, size_t *count)
{
    const struct producer *of = &config->producers[producer];
    const struct strings *paths = *list == 'o' ? &of->outputs : &of->artifacts;
    for (size_t i = 0; i < paths->count; i++)
        outputs[(*count)++] =
            (struct output){.path = paths->items[i], .producer = producer, .index = i, .list = list};
}

static struct output *outputs_sorted(const struct config *config, size_t *ret_count)
{
    size_t capacity = 0, count = 0;
    for (size_t i = 0; i < config->producer_count; i++)
        capacity += config->producers[i].outputs.count + config->producers[i].artifacts.count;
    struct output *outputs = mem_resize(NULL, capacity, sizeof(*outputs));
    for (size_t i = 0; i < config->producer_count; i++) {
        outputs_of(config, i, "outputs", outputs, &count);
        outputs_of(config, i, "artifacts", outputs, &count);
    }
    if (count)
        qsort(outputs, count, sizeof(*outputs), by_path);
    *ret_count = count;
    return outputs;
}

/* The one that stands later in the file is at fault. */
static enum result refuse_output(
    const struct reading *reading, const struct output *outer, const struct output *inner)
{
    const struct producer *producers = reading->config->producers;
    const struct output *late = outer->producer > inner->producer ? outer : inner;
    const struct output *early = late == outer ? inner : outer;
    _cleanup_(mem_free) char *base = json_pointer_join("/producers", producers[late->producer].name);
    _cleanup_(mem_free) char *pointer = mem_format("%s/%s/%zu", base, late->list, late->index);
    _cleanup_(text_done) struct text shown = {0};
    text_add_printable(&shown, late->path, strlen(late->path), false);
    return json_error_at(reading->document, pointer, false, reading->err,
        "\"%s\" is %s an output of both \"%s\" and \"%s\"", shown.bytes,
        strcmp(outer->path, inner->path) == 0 ? "" : "or lies in, or holds,", producers[early->producer].name,
        producers[late->producer].name);
}

enum result check_outputs(const struct reading *reading)
{
    size_t count, depth = 0;
    _cleanup_(mem_free) struct output *outputs = outputs_sorted(reading->config, &count);
    _cleanup_(mem_free) struct output **around = mem_resize(NULL, count, sizeof(struct output *));
    for (size_t i = 0; i < count; i++) {
        while (depth && !lies_in(outputs[i].path, around[depth - 1]->path))
            depth--;
        if (depth && around[depth - 1]->producer != outputs[i].producer)
            return refuse_output(reading, around[depth - 1], &outputs[i]);
        around[depth++] = &outputs[i];
    }
    return RESULT_OK;
}
