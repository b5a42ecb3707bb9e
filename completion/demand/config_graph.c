/* Who needs whom: names become indices, and the producers an order in which needs come first. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "completion/demand/config-private.h"

#define CYCLE_SHOWN 50

struct named {
    const char *name;
    size_t index;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static struct named *names_sorted(const struct config *config)
{
    struct named *names = mem_resize(NULL, config->producer_count, sizeof(*names));
    for (size_t i = 0; i < config->producer_count; i++)
        names[i] = (struct named){.name = config->producers[i].name, .index = i};
    if (config->producer_count)
        qsort(names, config->producer_count, sizeof(*names), by_name);
    return names;
}

static char *need_pointer(const struct config *config, size_t producer, size_t need)
{
    _cleanup_(mem_free) char *base = json_pointer_join("/producers", config->producers[producer].name);
    return mem_format("%s/needs/%zu", base, need);
}

#define NAMES_SHOWN 12

/* Without one that is near: all there are. */
static void list_producers(const char *const *names, size_t count, struct error *err)
{
    _cleanup_(text_done) struct text list = {0};
    for (size_t i = 0; i < count && i < NAMES_SHOWN; i++)
        text_addf(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    if (count > NAMES_SHOWN)
        text_addf(&list, " and %zu more", count - NAMES_SHOWN);
    error_remedy(err, "there is: %s", list.bytes);
}

static void suggest_producer(const struct config *config, const char *word, struct error *err)
{
    _cleanup_(mem_free) const char **names = mem_resize(NULL, config->producer_count, sizeof(*names));
    for (size_t i = 0; i < config->producer_count; i++)
        names[i] = config->producers[i].name;
    const char *nearest = text_nearest(word, names, config->producer_count);
    if (nearest)
        error_remedy(err, "did you mean \"%s\"?", nearest);
    else
        list_producers(names, config->producer_count, err);
}

static enum result refuse_need(const struct reading *reading, size_t producer, size_t need)
{
    const char *word = reading->config->producers[producer].needs.items[need];
    _cleanup_(mem_free) char *pointer = need_pointer(reading->config, producer, need);
    _cleanup_(text_done) struct text shown = {0};
    text_add_printable(&shown, word, strnlen(word, NAME_LIMIT_BYTES), false);
    json_error_at(
        reading->document, pointer, false, reading->err, "there is no producer \"%s\"", shown.bytes);
    suggest_producer(reading->config, word, reading->err);
    return RESULT_INVALID;
}

static enum result resolve_needs(const struct reading *reading)
{
    struct config *config = reading->config;
    _cleanup_(mem_free) struct named *names = names_sorted(config);
    for (size_t i = 0; i < config->producer_count; i++) {
        struct producer *producer = &config->producers[i];
        producer->need_indices = mem_resize(NULL, producer->needs.count, sizeof(size_t));
        for (size_t n = 0; n < producer->needs.count; n++) {
            const struct named wanted = {.name = producer->needs.items[n]};
            const struct named *found =
                bsearch(&wanted, names, config->producer_count, sizeof(*names), by_name);
            if (!found)
                return refuse_need(reading, i, n);
            producer->need_indices[n] = found->index;
        }
    }
    return RESULT_OK;
}

/* A depth-first walk with a path of its own: a chain of needs may be longer than the C stack is deep. */
enum mark {
    MARK_UNSEEN,
    MARK_ON_PATH,
    MARK_ORDERED,
};

struct step {
    size_t producer;
    size_t next_need;
};

struct walk {
    enum mark *marks;
    struct step *path;
    size_t depth, ordered;
};

/* The path ends with the producer that needs `again`, which is on it. */
static enum result refuse_cycle(const struct reading *reading, const struct walk *walk, size_t again)
{
    const struct producer *producers = reading->config->producers;
    const struct step *last = &walk->path[walk->depth - 1];
    _cleanup_(mem_free) char *pointer = need_pointer(reading->config, last->producer, last->next_need - 1);
    _cleanup_(text_done) struct text cycle = {0};
    size_t from = walk->depth;
    while (walk->path[--from].producer != again)
        ;
    for (size_t i = from; i < walk->depth && i < from + CYCLE_SHOWN; i++) {
        const char *name = producers[walk->path[i].producer].name;
        text_add_printable(&cycle, name, strlen(name), false);
        text_add(&cycle, " -> ");
    }
    if (walk->depth - from > CYCLE_SHOWN)
        text_addf(&cycle, "(%zu more) -> ", walk->depth - from - CYCLE_SHOWN);
    text_add_printable(&cycle, producers[again].name, strlen(producers[again].name), false);
    json_error_at(reading->document, pointer, false, reading->err, "%s: %s",
        walk->depth - from == 1 ? "a producer needs itself" : "producers need each other", cycle.bytes);
    return error_remedy(reading->err, "take one of these out of \"needs\"");
}

static void walk_enter(struct walk *walk, size_t producer)
{
    walk->marks[producer] = MARK_ON_PATH;
    walk->path[walk->depth++] = (struct step){.producer = producer};
}

static enum result walk_from(const struct reading *reading, struct walk *walk, size_t root)
{
    struct config *config = reading->config;
    walk_enter(walk, root);
    while (walk->depth) {
        struct step *step = &walk->path[walk->depth - 1];
        const struct producer *producer = &config->producers[step->producer];
        if (step->next_need == producer->needs.count) {
            walk->marks[step->producer] = MARK_ORDERED;
            config->order[walk->ordered++] = step->producer;
            walk->depth--;
            continue;
        }
        size_t need = producer->need_indices[step->next_need++];
        if (walk->marks[need] == MARK_ON_PATH)
            return refuse_cycle(reading, walk, need);
        if (walk->marks[need] == MARK_UNSEEN)
            walk_enter(walk, need);
    }
    return RESULT_OK;
}

enum result order_producers(const struct reading *reading)
{
    struct config *config = reading->config;
    enum result r = resolve_needs(reading);
    if (r != RESULT_OK)
        return r;
    _cleanup_(mem_free) enum mark *marks = mem_alloc(config->producer_count * sizeof(*marks));
    _cleanup_(mem_free) struct step *path = mem_resize(NULL, config->producer_count, sizeof(*path));
    struct walk walk = {.marks = marks, .path = path};
    config->order = mem_resize(NULL, config->producer_count, sizeof(*config->order));
    for (size_t i = 0; r == RESULT_OK && i < config->producer_count; i++)
        if (marks[i] == MARK_UNSEEN)
            r = walk_from(reading, &walk, i);
    return r;
}

/* ---- what is demanded ---- */

size_t config_producer(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->producer_count; i++)
        if (strcmp(config->producers[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

static enum result demand_name(
    const struct config *config, const char *name, bool *demanded, struct error *err)
{
    size_t index = config_producer(config, name);
    if (index != SIZE_MAX) {
        demanded[index] = true;
        return RESULT_OK;
    }
    _cleanup_(text_done) struct text shown = {0};
    text_add_printable(&shown, name, strnlen(name, NAME_LIMIT_BYTES), false);
    error_set(err, RESULT_INVALID, 0, "there is no producer \"%s\" in " CONFIG_NAME,
        shown.bytes ? shown.bytes : "");
    suggest_producer(config, name, err);
    return RESULT_INVALID;
}

/* Needs come before those who need them, so one walk from the end reaches all. */
static void demand_needs(const struct config *config, bool *demanded)
{
    for (size_t i = config->producer_count; i-- > 0;) {
        const struct producer *producer = &config->producers[config->order[i]];
        for (size_t n = 0; demanded[config->order[i]] && n < producer->needs.count; n++)
            demanded[producer->need_indices[n]] = true;
    }
}

enum result config_demand(
    const struct config *config, const char *const *names, size_t count, bool **ret, struct error *err)
{
    _cleanup_(mem_free) bool *demanded = mem_alloc(config->producer_count * sizeof(*demanded));
    for (size_t i = 0; i < count; i++) {
        enum result r = demand_name(config, names[i], demanded, err);
        if (r != RESULT_OK)
            return r;
    }
    if (count == 0 && config->producer_count)
        memset(demanded, true, config->producer_count * sizeof(*demanded));
    demand_needs(config, demanded);
    *ret = STEAL(demanded);
    return RESULT_OK;
}
