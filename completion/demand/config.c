/* tenure.json by field tables, object by object, in the order in which the file is checked. */
#include "completion/demand/config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "completion/demand/config-private.h"

#define DURATION_MIN_MS           INT64_C(1) /* zero is no limit anybody meant */
#define DURATION_MAX_MS           (INT64_C(365) * 24 * 3600 * 1000)
#define LAPSE_PATIENCE_DEFAULT_MS (INT64_C(15) * 60 * 1000)
#define REPOSITORY_LIMIT_BYTES    500
#define READ_LIMIT_BYTES          (64 * 1024 * 1024) /* beyond what is accepted: the refusal has a position */

/* ---- lease ---- */

struct lease_form {
    int64_t ttl_ms, heartbeat_ms, patience_ms;
    char *on_lapse;
};

static const struct json_field LEASE_FIELDS[] = {
    {"ttl", JSON_DURATION, offsetof(struct lease_form, ttl_ms), false, LEASE_TTL_MIN_MS, LEASE_TTL_MAX_MS},
    {"heartbeat", JSON_DURATION, offsetof(struct lease_form, heartbeat_ms), false, DURATION_MIN_MS,
        LEASE_TTL_MAX_MS},
    {"on_lapse", JSON_STRING, offsetof(struct lease_form, on_lapse), false, 0, 0},
    {"lapse_patience", JSON_DURATION, offsetof(struct lease_form, patience_ms), false, DURATION_MIN_MS,
        DURATION_MAX_MS},
};

static const char *const LAPSE_WORDS[] = {[LAPSE_FREEZE] = "freeze", [LAPSE_ABORT] = "abort"};
static const char *const WHEN_WORDS[] = {[PROCEDURE_BEFORE] = "before", [PROCEDURE_AFTER] = "after"};

/* The index of `word`; NULL is the first. */
static enum result read_word(const struct reading *reading, const char *pointer, const char *word,
    const char *const words[2], size_t *ret)
{
    for (*ret = 0; *ret < 2; ++*ret)
        if (!word || strcmp(word, words[*ret]) == 0)
            return RESULT_OK;
    return json_error_at(
        reading->document, pointer, false, reading->err, "must be \"%s\" or \"%s\"", words[0], words[1]);
}

static enum result apply_lease(const struct reading *reading, const struct lease_form *form)
{
    struct config *config = reading->config;
    struct lease_terms terms = {.ttl_ms = form->ttl_ms, .heartbeat_ms = form->heartbeat_ms};
    size_t policy;
    enum result r = read_word(reading, "/lease/on_lapse", form->on_lapse, LAPSE_WORDS, &policy);
    if (r != RESULT_OK)
        return r;
    if (terms.heartbeat_ms > terms.ttl_ms / 3)
        return json_error_at(reading->document, "/lease/heartbeat", false, reading->err,
            "the heartbeat must be at most a third of the ttl");
    r = lease_terms_check(&terms, reading->err);
    if (r != RESULT_OK)
        return r;
    config->terms = terms;
    config->on_lapse = (enum lapse_policy)policy;
    config->lapse_patience_ms = form->patience_ms;
    return RESULT_OK;
}

enum result read_lease(const struct reading *reading, struct json_object *object)
{
    struct lease_form form = {.ttl_ms = LEASE_TTL_DEFAULT_MS, .patience_ms = LAPSE_PATIENCE_DEFAULT_MS};
    enum result r = RESULT_OK;
    if (object)
        r = json_table_read(reading->document, "/lease", object, LEASE_FIELDS, ARRAY_SIZE(LEASE_FIELDS), true,
            &form, reading->err);
    if (r == RESULT_OK)
        r = apply_lease(reading, &form);
    free(form.on_lapse);
    return r;
}

/* ---- producers ---- */

struct producer_form {
    struct json_object *run, *inputs, *outputs, *artifacts, *needs, *env, *tools;
    int64_t timeout_ms, quiet_ms;
};

static const struct json_field PRODUCER_FIELDS[] = {
    {"run", JSON_VALUE, offsetof(struct producer_form, run), true, 0, 0},
    {"inputs", JSON_ARRAY, offsetof(struct producer_form, inputs), false, 0, 0},
    {"outputs", JSON_ARRAY, offsetof(struct producer_form, outputs), false, 0, 0},
    {"artifacts", JSON_ARRAY, offsetof(struct producer_form, artifacts), false, 0, 0},
    {"needs", JSON_ARRAY, offsetof(struct producer_form, needs), false, 0, 0},
    {"env", JSON_ARRAY, offsetof(struct producer_form, env), false, 0, 0},
    {"tools", JSON_ARRAY, offsetof(struct producer_form, tools), false, 0, 0},
    {"timeout", JSON_DURATION, offsetof(struct producer_form, timeout_ms), false, DURATION_MIN_MS,
        DURATION_MAX_MS},
    {"quiet", JSON_DURATION, offsetof(struct producer_form, quiet_ms), false, DURATION_MIN_MS,
        DURATION_MAX_MS},
};

struct list_form {
    const char *key;
    size_t from; /* in struct producer_form */
    size_t to;   /* in struct producer */
    check_string_fn check;
};

static const struct list_form LISTS[] = {
    {"inputs", offsetof(struct producer_form, inputs), offsetof(struct producer, inputs), check_glob},
    {"outputs", offsetof(struct producer_form, outputs), offsetof(struct producer, outputs), check_output},
    {"artifacts", offsetof(struct producer_form, artifacts), offsetof(struct producer, artifacts),
        check_output},
    {"needs", offsetof(struct producer_form, needs), offsetof(struct producer, needs), check_need},
    {"env", offsetof(struct producer_form, env), offsetof(struct producer, env), check_variable},
    {"tools", offsetof(struct producer_form, tools), offsetof(struct producer, tools), check_tool},
};

static enum result read_lists(const struct reading *reading, const char *pointer,
    const struct producer_form *form, struct producer *producer)
{
    enum result r = RESULT_OK;
    for (size_t i = 0; r == RESULT_OK && i < ARRAY_SIZE(LISTS); i++) {
        struct json_object *array;
        memcpy(&array, (const char *)form + LISTS[i].from, sizeof(array));
        struct strings *strings = (struct strings *)(void *)((char *)producer + LISTS[i].to);
        _cleanup_(mem_free) char *below = json_pointer_join(pointer, LISTS[i].key);
        r = read_strings(reading, below, array, LISTS[i].check, strings);
    }
    return r;
}

static enum result read_producer(
    const struct reading *reading, const char *pointer, struct json_object *object, struct producer *producer)
{
    struct producer_form form = {0};
    enum result r = json_table_read(reading->document, pointer, object, PRODUCER_FIELDS,
        ARRAY_SIZE(PRODUCER_FIELDS), true, &form, reading->err);
    if (r != RESULT_OK)
        return r;
    producer->timeout_ms = form.timeout_ms;
    producer->quiet_ms = form.quiet_ms;
    _cleanup_(mem_free) char *run = json_pointer_join(pointer, "run");
    r = read_command(reading, run, form.run, &producer->run);
    return r == RESULT_OK ? read_lists(reading, pointer, &form, producer) : r;
}

size_t place_member(const struct json_document *document, size_t container, const char *key)
{
    struct place_walk walk = place_walk(document, container);
    for (size_t at = place_next(&walk); at != SIZE_MAX; at = place_next(&walk)) {
        const struct json_place *place = &document->places[at];
        if (place->token_length == strlen(key) &&
            memcmp(document->tokens.bytes + place->token, key, strlen(key)) == 0)
            return at;
    }
    return SIZE_MAX;
}

struct place_walk place_walk(const struct json_document *document, size_t container)
{
    return (struct place_walk){.document = document, .container = container, .at = container + 1};
}

size_t place_next(struct place_walk *walk)
{
    const struct json_document *document = walk->document;
    for (; walk->at < document->place_count; walk->at++) {
        size_t parent = document->places[walk->at].parent;
        if (parent < walk->container)
            break;
        if (parent == walk->container)
            return walk->at++;
    }
    return SIZE_MAX;
}

/* Places are kept by walking along with the text: asking for each by its pointer would cost the square. */
static void note_places(const struct json_document *document, size_t place, struct producer *producer)
{
    producer->line = (size_t)document->places[place].key_line;
    size_t inputs = place_member(document, place, "inputs");
    if (inputs == SIZE_MAX)
        return;
    producer->input_places = mem_alloc(producer->inputs.count * sizeof(*producer->input_places));
    struct place_walk walk = place_walk(document, inputs);
    for (size_t i = 0; i < producer->inputs.count; i++) {
        const struct json_place *of = &document->places[place_next(&walk)];
        producer->input_places[i] = (struct config_place){.line = of->line, .column = of->column};
    }
}

static enum result read_named_producer(
    const struct reading *reading, const char *name, struct json_object *object, size_t place)
{
    struct config *config = reading->config;
    struct producer *producer = &config->producers[config->producer_count++];
    _cleanup_(mem_free) char *pointer = json_pointer_join("/producers", name);
    producer->name = mem_string(name);
    enum result r = read_producer(reading, pointer, object, producer);
    if (r == RESULT_OK)
        note_places(reading->document, place, producer);
    return r;
}

enum result read_producers(const struct reading *reading, struct json_object *object)
{
    size_t count = (size_t)json_object_object_length(object);
    enum result r = check_names(reading, "/producers", object);
    if (r == RESULT_OK && count == 0)
        return json_error_at(
            reading->document, "/producers", false, reading->err, "there must be at least one producer");
    if (r != RESULT_OK)
        return r;
    reading->config->producers = mem_alloc(count * sizeof(*reading->config->producers));
    struct place_walk walk = place_walk(reading->document, place_member(reading->document, 0, "producers"));
    struct json_object_iterator at = json_object_iter_begin(object), end = json_object_iter_end(object);
    for (; r == RESULT_OK && !json_object_iter_equal(&at, &end); json_object_iter_next(&at))
        r = read_named_producer(
            reading, json_object_iter_peek_name(&at), json_object_iter_peek_value(&at), place_next(&walk));
    return r;
}

/* ---- procedures ---- */

struct procedure_form {
    struct json_object *run;
    char *when;
    int64_t timeout_ms;
};

static const struct json_field PROCEDURE_FIELDS[] = {
    {"run", JSON_VALUE, offsetof(struct procedure_form, run), true, 0, 0},
    {"when", JSON_STRING, offsetof(struct procedure_form, when), false, 0, 0},
    {"timeout", JSON_DURATION, offsetof(struct procedure_form, timeout_ms), false, DURATION_MIN_MS,
        DURATION_MAX_MS},
};

static enum result apply_procedure(const struct reading *reading, const char *pointer,
    const struct procedure_form *form, struct procedure *procedure)
{
    _cleanup_(mem_free) char *when_pointer = json_pointer_join(pointer, "when");
    _cleanup_(mem_free) char *run_pointer = json_pointer_join(pointer, "run");
    size_t when;
    enum result r = read_word(reading, when_pointer, form->when, WHEN_WORDS, &when);
    if (r != RESULT_OK)
        return r;
    procedure->when = (enum procedure_when)when;
    procedure->timeout_ms = form->timeout_ms;
    return read_command(reading, run_pointer, form->run, &procedure->run);
}

static enum result read_procedure(const struct reading *reading, const char *name, struct json_object *object)
{
    struct config *config = reading->config;
    struct procedure *procedure = &config->procedures[config->procedure_count++];
    struct procedure_form form = {0};
    _cleanup_(mem_free) char *pointer = json_pointer_join("/procedures", name);
    procedure->name = mem_string(name);
    enum result r = json_table_read(reading->document, pointer, object, PROCEDURE_FIELDS,
        ARRAY_SIZE(PROCEDURE_FIELDS), true, &form, reading->err);
    if (r == RESULT_OK)
        r = apply_procedure(reading, pointer, &form, procedure);
    free(form.when);
    return r;
}

enum result read_procedures(const struct reading *reading, struct json_object *object)
{
    if (!object)
        return RESULT_OK;
    enum result r = check_names(reading, "/procedures", object);
    reading->config->procedures =
        mem_alloc((size_t)json_object_object_length(object) * sizeof(*reading->config->procedures));
    struct json_object_iterator at = json_object_iter_begin(object), end = json_object_iter_end(object);
    for (; r == RESULT_OK && !json_object_iter_equal(&at, &end); json_object_iter_next(&at))
        r = read_procedure(reading, json_object_iter_peek_name(&at), json_object_iter_peek_value(&at));
    return r;
}

/* ---- the root ---- */

struct root_form {
    char *schema, *repository, *store;
    struct json_object *lease, *procedures, *producers, *extractors, *standards;
};

static const struct json_field ROOT_FIELDS[] = {
    {"$schema", JSON_STRING, offsetof(struct root_form, schema), false, 0, 0},
    {"repository", JSON_STRING, offsetof(struct root_form, repository), false, 0, REPOSITORY_LIMIT_BYTES},
    {"store", JSON_STRING, offsetof(struct root_form, store), false, 0, 0},
    {"lease", JSON_OBJECT, offsetof(struct root_form, lease), false, 0, 0},
    {"procedures", JSON_OBJECT, offsetof(struct root_form, procedures), false, 0, 0},
    {"producers", JSON_OBJECT, offsetof(struct root_form, producers), false, 0, 0},
    {"extractors", JSON_OBJECT, offsetof(struct root_form, extractors), false, 0, 0},
    {"standards", JSON_OBJECT, offsetof(struct root_form, standards), false, 0, 0},
};

static enum result check_present(
    const struct reading *reading, const char *pointer, const char *string, const char *otherwise)
{
    if (!string || *string)
        return RESULT_OK;
    json_error_at(reading->document, pointer, false, reading->err, "\"%s\" is empty", pointer + 1);
    return error_remedy(reading->err, "leave it out: %s", otherwise);
}

static enum result refuse_without_producers(const struct reading *reading)
{
    json_error_at(reading->document, "", false, reading->err, "\"producers\" is missing");
    return error_remedy(reading->err,
        "name in it the commands that prove the tree; `tenure init` writes a whole file where there is none");
}

static enum result read_root(const struct reading *reading, struct root_form *form)
{
    enum result r = json_table_read(reading->document, "", reading->document->root, ROOT_FIELDS,
        ARRAY_SIZE(ROOT_FIELDS), true, form, reading->err);
    if (r == RESULT_OK && !form->producers)
        r = refuse_without_producers(reading);
    if (r == RESULT_OK)
        r = check_present(
            reading, "/repository", form->repository, "the name then comes from the remote \"origin\"");
    if (r == RESULT_OK)
        r = check_present(reading, "/store", form->store, "the default store is used");
    if (r == RESULT_OK)
        r = read_lease(reading, form->lease);
    if (r == RESULT_OK)
        r = read_procedures(reading, form->procedures);
    if (r == RESULT_OK)
        r = read_producers(reading, form->producers);
    if (r == RESULT_OK)
        r = check_outputs(reading);
    if (r == RESULT_OK)
        r = order_producers(reading);
    return r == RESULT_OK ? refuse_later(reading, form->extractors, form->standards) : r;
}

static enum result refuse_return(const char *bytes, size_t length, struct error *err)
{
    const char *found = memchr(bytes, '\r', length);
    int line = 1, column = 1;
    if (!found)
        return RESULT_OK;
    for (const char *at = bytes; at < found; at++) {
        column = *at == '\n' ? 1 : column + (((unsigned char)*at & 0xC0) != 0x80);
        line += *at == '\n';
    }
    error_set(err, RESULT_INVALID, 0, CONFIG_NAME ":%d:%d: a carriage return ends the line", line, column);
    return error_remedy(err, "save the file with LF line ends");
}

enum result config_parse(const char *bytes, size_t length, struct config *ret, struct error *err)
{
    struct json_document document = {0};
    struct root_form form = {0};
    struct config config = {0};
    if (length > JSON_LIMIT_BYTES)
        return error_set(err, RESULT_INVALID, 0, CONFIG_NAME ":1:1: %zu bytes are more than the limit of %d",
            length, JSON_LIMIT_BYTES);
    enum result r = refuse_return(bytes, length, err);
    if (r == RESULT_OK)
        r = json_document_parse(bytes, length, CONFIG_NAME, &document, err);
    if (r != RESULT_OK)
        return r;
    const struct reading reading = {.document = &document, .config = &config, .err = err};
    r = read_root(&reading, &form);
    config.repository = form.repository;
    config.store_url = form.store;
    free(form.schema);
    json_document_done(&document);
    if (r != RESULT_OK) {
        config_done(&config);
        return r;
    }
    digest_hex(bytes, length, config.digest);
    *ret = config;
    return RESULT_OK;
}

enum result config_read(int top_fd, struct config *ret, struct text *ret_bytes, struct error *err)
{
    _cleanup_(text_done) struct text bytes = {0};
    enum result r = file_read(top_fd, CONFIG_NAME, true, READ_LIMIT_BYTES, &bytes, err);
    if (r == RESULT_ABSENT) {
        error_set(err, RESULT_ABSENT, 0, "there is no " CONFIG_NAME " at the top of the work tree");
        return error_remedy(err, "run `tenure init`, which writes one that fits");
    }
    if (r == RESULT_OK)
        r = config_parse(bytes.bytes ? bytes.bytes : "", bytes.length, ret, err);
    if (r == RESULT_OK && ret_bytes) {
        *ret_bytes = bytes;
        bytes = (struct text){0};
    }
    return r;
}

static void producer_done(struct producer *producer)
{
    free(producer->name);
    command_line_done(&producer->run);
    for (size_t i = 0; i < ARRAY_SIZE(LISTS); i++)
        strings_done((struct strings *)(void *)((char *)producer + LISTS[i].to));
    free(producer->need_indices);
    free(producer->input_places);
}

void config_done(struct config *config)
{
    for (size_t i = 0; i < config->producer_count; i++)
        producer_done(&config->producers[i]);
    for (size_t i = 0; i < config->procedure_count; i++) {
        free(config->procedures[i].name);
        command_line_done(&config->procedures[i].run);
    }
    free(config->producers);
    free(config->procedures);
    free(config->order);
    free(config->repository);
    free(config->store_url);
    *config = (struct config){0};
}
