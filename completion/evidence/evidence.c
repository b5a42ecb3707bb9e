#include "completion/evidence/evidence.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_table.h"
#include "base/memory.h"

#define PAYLOAD_FORMAT 1

void evidence_done(struct evidence *evidence)
{
    char *const strings[] = {evidence->producer, evidence->verdict, evidence->log, evidence->log_digest,
        evidence->handle, evidence->host, evidence->commit, evidence->tree, evidence->text};
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        free(strings[i]);
    output_states_done(&evidence->outputs);
    output_states_done(&evidence->artifacts);
    *evidence = (struct evidence){0};
}

/* Verdicts that say something about the tree and not about who ended the run. */
static const bool COMPLETED[JOB_VERDICT_MAX] = {
    [JOB_PASSED] = true,
    [JOB_FAILED] = true,
    [JOB_SIGNALLED] = true,
    [JOB_TIMED_OUT] = true,
    [JOB_QUIET] = true,
};

void evidence_from_outcome(
    const struct job_outcome *outcome, const struct applicability *applicability, struct evidence *ret)
{
    *ret = (struct evidence){
        .producer = mem_string(outcome->name),
        .applicability = *applicability,
        .verdict = mem_string(job_verdict_name(outcome->verdict)),
        .passed = outcome->verdict == JOB_PASSED,
        .reusable = COMPLETED[outcome->verdict],
        .exit_code = outcome->exit_code,
        .signal = outcome->signal,
        .duration_ms = outcome->duration_ms,
        .frozen_ms = outcome->frozen_ms,
        .log_digest = outcome->log ? mem_string(outcome->output_digest) : NULL,
        .log_bytes = outcome->output_bytes,
        .dropped_bytes = outcome->dropped_bytes,
        .text = mem_string(outcome->text),
    };
}

/* ---- the payload: the same tables write and read it ---- */

/* What the struct keeps in another type than a table can. */
struct numbers {
    int64_t format, exit_code, signal;
    struct json_object *components, *outputs, *artifacts;
};
static const struct json_field NUMBER_FIELDS[] = {
    {"format", JSON_INTEGER, offsetof(struct numbers, format), true, 1, INT64_MAX},
    {"exit", JSON_INTEGER, offsetof(struct numbers, exit_code), true, -1, INT_MAX},
    {"signal", JSON_INTEGER, offsetof(struct numbers, signal), true, -1, INT_MAX},
    {"components", JSON_OBJECT, offsetof(struct numbers, components), true, 0, 0},
    {"outputs", JSON_ARRAY, offsetof(struct numbers, outputs), true, 0, 0},
    {"artifacts", JSON_ARRAY, offsetof(struct numbers, artifacts), true, 0, 0},
};
static const struct json_field EVIDENCE_FIELDS[] = {
    {"duration_ms", JSON_INTEGER, offsetof(struct evidence, duration_ms), true, 0, INT64_MAX},
    {"frozen_ms", JSON_INTEGER, offsetof(struct evidence, frozen_ms), true, 0, INT64_MAX},
    {"log", JSON_STRING, offsetof(struct evidence, log), false, 0, 0},
    {"log_digest", JSON_STRING, offsetof(struct evidence, log_digest), false, 0, 0},
    {"log_bytes", JSON_INTEGER, offsetof(struct evidence, log_bytes), true, 0, INT64_MAX},
    {"dropped_bytes", JSON_INTEGER, offsetof(struct evidence, dropped_bytes), true, 0, INT64_MAX},
    {"handle", JSON_STRING, offsetof(struct evidence, handle), false, 0, 0},
    {"host", JSON_STRING, offsetof(struct evidence, host), false, 0, 0},
    {"commit", JSON_STRING, offsetof(struct evidence, commit), false, 0, 0},
    {"text", JSON_STRING, offsetof(struct evidence, text), false, 0, 0},
};

struct state_fields {
    char *path, *digest;
    int64_t mode;
};
static const struct json_field STATE_FIELDS[] = {
    {"path", JSON_STRING, offsetof(struct state_fields, path), true, 0, 0},
    {"mode", JSON_INTEGER, offsetof(struct state_fields, mode), true, 0, UINT32_MAX},
    {"digest", JSON_STRING, offsetof(struct state_fields, digest), true, 0, DIGEST_HEX_SIZE - 1},
};

/* Adds the strings and integers of `source` by table; the rest is added by whoever owns it. */
static void table_write(
    struct json_object *json, const struct json_field *fields, size_t count, const void *source)
{
    for (size_t i = 0; i < count; i++) {
        const char *place = (const char *)source + fields[i].offset;
        char *string;
        int64_t number;
        if (fields[i].kind == JSON_INTEGER) {
            memcpy(&number, place, sizeof(number));
            json_add_integer(json, fields[i].key, number);
        } else if (fields[i].kind == JSON_STRING) {
            memcpy(&string, place, sizeof(string));
            json_add_string(json, fields[i].key, string);
        }
    }
}

static struct json_object *components_to_json(const struct applicability *applicability)
{
    struct json_object *json = json_object_new_object();
    for (int i = 0; i < COMPONENT_MAX; i++)
        json_add_string(json, component_name((enum component)i), applicability->components[i]);
    return json;
}

static struct json_object *states_to_json(const struct output_states *states)
{
    struct json_object *list = json_object_new_array();
    for (size_t i = 0; i < states->count; i++) {
        struct state_fields fields = {
            .path = states->items[i].path,
            .digest = states->items[i].digest,
            .mode = states->items[i].mode,
        };
        struct json_object *json = json_object_new_object();
        table_write(json, STATE_FIELDS, ARRAY_SIZE(STATE_FIELDS), &fields);
        json_object_array_add(list, json);
    }
    return list;
}

static char *payload_write(const struct evidence *evidence)
{
    struct numbers numbers = {
        .format = PAYLOAD_FORMAT,
        .exit_code = evidence->exit_code,
        .signal = evidence->signal,
    };
    struct json_object *json = json_object_new_object();
    table_write(json, NUMBER_FIELDS, ARRAY_SIZE(NUMBER_FIELDS), &numbers);
    table_write(json, EVIDENCE_FIELDS, ARRAY_SIZE(EVIDENCE_FIELDS), evidence);
    json_object_object_add(json, "components", components_to_json(&evidence->applicability));
    json_object_object_add(json, "outputs", states_to_json(&evidence->outputs));
    json_object_object_add(json, "artifacts", states_to_json(&evidence->artifacts));
    char *payload = mem_string(
        json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(json);
    return payload;
}

void evidence_to_row(const struct evidence *evidence, const char *repository, struct evidence_row *ret)
{
    *ret = (struct evidence_row){
        .sequence = evidence->sequence,
        .repository = mem_string(repository),
        .producer = mem_string(evidence->producer),
        .verdict = mem_string(evidence->verdict),
        .passed = evidence->passed,
        .reusable = evidence->reusable,
        .tree = mem_string(evidence->tree),
        .payload = payload_write(evidence),
        .wall_ms = evidence->wall_ms,
    };
    memcpy(ret->attempt_id, evidence->attempt_id, sizeof(ret->attempt_id));
    memcpy(ret->key, evidence->applicability.key, sizeof(ret->key));
}

/* ---- reading it back ---- */

static void state_fields_done(struct state_fields *fields)
{
    free(fields->path);
    free(fields->digest);
}

static enum result state_read(struct json_object *json, struct output_state *ret, struct error *err)
{
    _cleanup_(state_fields_done) struct state_fields fields = {0};
    enum result r =
        json_table_read(NULL, "", json, STATE_FIELDS, ARRAY_SIZE(STATE_FIELDS), false, &fields, err);
    if (r != RESULT_OK)
        return r;
    ret->path = STEAL(fields.path);
    ret->mode = (uint32_t)fields.mode;
    strcpy(ret->digest, fields.digest); /* the table bounds it */
    return RESULT_OK;
}

static enum result states_read(struct json_object *list, struct output_states *ret, struct error *err)
{
    enum result r = RESULT_OK;
    size_t count = json_object_array_length(list);
    ret->items = mem_alloc(count * sizeof(*ret->items));
    for (size_t i = 0; r == RESULT_OK && i < count; i++) {
        r = state_read(json_object_array_get_idx(list, i), &ret->items[i], err);
        ret->count += r == RESULT_OK;
    }
    return r;
}

static enum result components_read(struct json_object *json, struct applicability *ret, struct error *err)
{
    struct json_field fields[COMPONENT_MAX];
    for (size_t i = 0; i < COMPONENT_MAX; i++)
        fields[i] = (struct json_field){
            .key = component_name((enum component)i),
            .kind = JSON_BUFFER,
            .offset = i * DIGEST_HEX_SIZE,
            .required = true,
            .max = DIGEST_HEX_SIZE,
        };
    return json_table_read(NULL, "", json, fields, COMPONENT_MAX, false, ret->components, err);
}

static enum result payload_read(struct json_object *json, struct evidence *ret, struct error *err)
{
    struct numbers numbers = {0};
    enum result r =
        json_table_read(NULL, "", json, NUMBER_FIELDS, ARRAY_SIZE(NUMBER_FIELDS), false, &numbers, err);
    if (r == RESULT_OK && numbers.format > PAYLOAD_FORMAT)
        return error_set(err, RESULT_NEWER, 0, "it was written by a newer version of this program");
    if (r == RESULT_OK)
        r = json_table_read(NULL, "", json, EVIDENCE_FIELDS, ARRAY_SIZE(EVIDENCE_FIELDS), false, ret, err);
    if (r == RESULT_OK)
        r = components_read(numbers.components, &ret->applicability, err);
    if (r == RESULT_OK)
        r = states_read(numbers.outputs, &ret->outputs, err);
    if (r == RESULT_OK)
        r = states_read(numbers.artifacts, &ret->artifacts, err);
    ret->exit_code = (int)numbers.exit_code;
    ret->signal = (int)numbers.signal;
    return r;
}

static void columns_read(const struct evidence_row *row, struct evidence *ret)
{
    ret->sequence = row->sequence;
    memcpy(ret->attempt_id, row->attempt_id, sizeof(ret->attempt_id));
    memcpy(ret->applicability.key, row->key, sizeof(ret->applicability.key));
    ret->producer = mem_string(row->producer);
    ret->verdict = mem_string(row->verdict);
    ret->passed = row->passed;
    ret->reusable = row->reusable;
    ret->tree = mem_string(row->tree);
    ret->wall_ms = row->wall_ms;
}

enum result evidence_from_row(const struct evidence_row *row, struct evidence *ret, struct error *err)
{
    _cleanup_(json_document_done) struct json_document document = {0};
    _cleanup_(evidence_done) struct evidence evidence = {0};
    _cleanup_(error_done) struct error cause = {0};
    enum result r = json_document_parse(row->payload, strlen(row->payload), "payload", &document, &cause);
    if (r == RESULT_OK)
        r = payload_read(document.root, &evidence, &cause);
    if (r != RESULT_OK)
        return error_set(err, r == RESULT_NEWER ? RESULT_NEWER : RESULT_CORRUPT, 0,
            "evidence %lld of %s cannot be read: %s", (long long)row->sequence, row->producer, cause.message);
    columns_read(row, &evidence);
    *ret = evidence;
    evidence = (struct evidence){0};
    return RESULT_OK;
}
