#include "completion/demand/applicability.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "completion/demand/pathspec.h"
#include "completion/demand/tools-private.h"
#include "supervisor/program.h"

static const char *const COMPONENT_NAMES[COMPONENT_MAX] = {
    [COMPONENT_COMMAND] = "command",
    [COMPONENT_INPUTS] = "inputs",
    [COMPONENT_NEEDS] = "needs",
    [COMPONENT_ENV] = "env",
    [COMPONENT_TOOLS] = "tools",
    [COMPONENT_PLATFORM] = "platform",
};

const char *component_name(enum component component)
{
    return component < COMPONENT_MAX ? COMPONENT_NAMES[component] : "unknown";
}

/* What a component is made from. */
struct subject {
    const struct producer *producer;
    const struct candidate *candidate;
    const struct surroundings *surroundings;
    const char *const *need_outputs;
};

typedef enum result (*add_component_fn)(
    const struct subject *subject, struct digest *digest, struct error *err);

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Borrowed strings in bytewise order. */
static const char **sorted(const char *const *items, size_t count)
{
    const char **copy = mem_resize(NULL, count, sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = items[i];
    if (count)
        qsort(copy, count, sizeof(*copy), by_text);
    return copy;
}

static void add_sorted(struct digest *digest, const char *const *items, size_t count)
{
    _cleanup_(mem_free) const char **strings = sorted(items, count);
    digest_number(digest, count);
    for (size_t i = 0; i < count; i++)
        digest_string(digest, strings[i]);
}

static enum result add_command(const struct subject *subject, struct digest *digest, struct error *err)
{
    (void)err;
    const struct producer *producer = subject->producer;
    digest_string(digest, producer->run.shell ? "shell" : "list");
    digest_number(digest, producer->run.words.count);
    for (size_t i = 0; i < producer->run.words.count; i++)
        digest_string(digest, producer->run.words.items[i]);
    digest_string(digest, "."); /* the work directory, from the top: never this checkout's own path */
    add_sorted(digest, (const char *const *)producer->outputs.items, producer->outputs.count);
    add_sorted(digest, (const char *const *)producer->artifacts.items, producer->artifacts.count);
    return RESULT_OK;
}

static enum result add_inputs(const struct subject *subject, struct digest *digest, struct error *err)
{
    (void)err;
    const struct candidate *candidate = subject->candidate;
    _cleanup_(mem_free) size_t *indices = NULL;
    size_t count;
    pathspec_select(candidate, &subject->producer->inputs, &indices, &count);
    digest_number(digest, count);
    for (size_t i = 0; i < count; i++) {
        const struct tree_entry *entry = &candidate->entries[indices[i]];
        digest_string(digest, entry->path);
        digest_number(digest, entry->mode);
        digest_field(digest, entry->blob, candidate->blob_length);
        runner_pace(candidate->runner, i);
    }
    return RESULT_OK;
}

static enum result add_needs(const struct subject *subject, struct digest *digest, struct error *err)
{
    (void)err;
    add_sorted(digest, subject->need_outputs, subject->producer->needs.count);
    return RESULT_OK;
}

static enum result add_env(const struct subject *subject, struct digest *digest, struct error *err)
{
    (void)err;
    const struct strings *env = &subject->producer->env;
    _cleanup_(mem_free) const char **names = sorted((const char *const *)env->items, env->count);
    digest_number(digest, env->count);
    for (size_t i = 0; i < env->count; i++) {
        digest_string(digest, names[i]);
        digest_string(digest, environment_value(subject->surroundings->environment, names[i]));
    }
    return RESULT_OK;
}

static enum result add_tools(const struct subject *subject, struct digest *digest, struct error *err)
{
    const struct strings *tools = &subject->producer->tools;
    const char *path = environment_value(subject->surroundings->environment, "PATH");
    _cleanup_(mem_free) const char **names = sorted((const char *const *)tools->items, tools->count);
    digest_number(digest, tools->count);
    for (size_t i = 0; i < tools->count; i++) {
        char file[DIGEST_HEX_SIZE];
        enum result r = tool_digest(subject->candidate->top_fd, path, names[i], file, err);
        if (r != RESULT_OK)
            return error_wrap(err, "producer \"%s\": ", subject->producer->name);
        digest_string(digest, names[i]);
        digest_string(digest, file);
    }
    return RESULT_OK;
}

static enum result add_platform(const struct subject *subject, struct digest *digest, struct error *err)
{
    (void)err;
    digest_string(digest, subject->surroundings->system);
    digest_string(digest, subject->surroundings->architecture);
    return RESULT_OK;
}

static const add_component_fn ADD[COMPONENT_MAX] = {
    [COMPONENT_COMMAND] = add_command,
    [COMPONENT_INPUTS] = add_inputs,
    [COMPONENT_NEEDS] = add_needs,
    [COMPONENT_ENV] = add_env,
    [COMPONENT_TOOLS] = add_tools,
    [COMPONENT_PLATFORM] = add_platform,
};

static enum result component_compute(
    const struct subject *subject, enum component component, char ret[DIGEST_HEX_SIZE], struct error *err)
{
    struct digest digest;
    digest_init(&digest, DIGEST_BYTES);
    digest_number(&digest, APPLICABILITY_SCHEMA);
    digest_string(&digest, component_name(component));
    enum result r = ADD[component](subject, &digest, err);
    if (r == RESULT_OK)
        digest_final_hex(&digest, ret);
    return r;
}

enum result applicability_compute(const struct config *config, size_t producer,
    const struct candidate *candidate, const struct surroundings *surroundings,
    const char *const *need_outputs, struct applicability *ret, struct error *err)
{
    const struct subject subject = {
        .producer = &config->producers[producer],
        .candidate = candidate,
        .surroundings = surroundings,
        .need_outputs = need_outputs,
    };
    struct applicability made;
    struct digest digest;
    digest_init(&digest, DIGEST_BYTES);
    digest_number(&digest, APPLICABILITY_SCHEMA);
    for (enum component component = 0; component < COMPONENT_MAX; component++) {
        enum result r = component_compute(&subject, component, made.components[component], err);
        if (r != RESULT_OK)
            return r;
        digest_string(&digest, made.components[component]);
    }
    digest_final_hex(&digest, made.key);
    *ret = made;
    return RESULT_OK;
}

/* ---- the demand ---- */

/* Inputs follow from the tree, and the outputs of needs from the rest: neither has to be known yet. */
static const enum component DEMANDED[] = {
    COMPONENT_COMMAND,
    COMPONENT_ENV,
    COMPONENT_TOOLS,
    COMPONENT_PLATFORM,
};

static enum result demand_producer(const struct subject *subject, struct digest *digest, struct error *err)
{
    digest_string(digest, subject->producer->name);
    for (size_t i = 0; i < ARRAY_SIZE(DEMANDED); i++) {
        char component[DIGEST_HEX_SIZE];
        enum result r = component_compute(subject, DEMANDED[i], component, err);
        if (r != RESULT_OK)
            return r;
        digest_string(digest, component);
    }
    return RESULT_OK;
}

enum result demand_digest(const struct config *config, const bool *demanded,
    const struct candidate *candidate, const struct surroundings *surroundings, char ret[DIGEST_HEX_SIZE],
    struct error *err)
{
    struct digest digest;
    digest_init(&digest, DIGEST_BYTES);
    digest_number(&digest, APPLICABILITY_SCHEMA);
    digest_string(&digest, "demand");
    digest_string(&digest, candidate->tree);
    digest_string(&digest, config->digest);
    for (size_t i = 0; i < config->producer_count; i++) {
        const struct subject subject = {
            .producer = &config->producers[i], .candidate = candidate, .surroundings = surroundings};
        if (!demanded[i])
            continue;
        enum result r = demand_producer(&subject, &digest, err);
        if (r != RESULT_OK)
            return r;
    }
    digest_final_hex(&digest, ret);
    return RESULT_OK;
}
