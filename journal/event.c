#include "journal/event.h"

#include <stdio.h>
#include <string.h>

#include "base/json_table.h"
#include "base/memory.h"
#include "journal/format.h"

static const char *const KIND_NAMES[JOURNAL_KIND_MAX] = {
    [JOURNAL_HEADER] = "header",
    [JOURNAL_RESERVED] = "reserved",
    [JOURNAL_PLAN] = "plan",
    [JOURNAL_STARTED] = "started",
    [JOURNAL_PROGRESS] = "progress",
    [JOURNAL_OUTPUT] = "output",
    [JOURNAL_FINISHED] = "finished",
    [JOURNAL_EVIDENCE] = "evidence",
    [JOURNAL_RENEWAL_TROUBLE] = "renewal-trouble",
    [JOURNAL_FROZEN] = "frozen",
    [JOURNAL_THAWED] = "thawed",
    [JOURNAL_GAP] = "gap",
    [JOURNAL_RETIRED] = "retired",
    [JOURNAL_NOTE] = "note",
    [JOURNAL_SETTLED] = "settled",
    [JOURNAL_UNKNOWN] = "unknown",
};

const char *journal_kind_name(enum journal_kind kind)
{
    return (unsigned)kind < JOURNAL_KIND_MAX ? KIND_NAMES[kind] : "unknown";
}

static enum journal_kind kind_parse(const char *name)
{
    for (int kind = 0; kind < JOURNAL_UNKNOWN; kind++)
        if (strcmp(KIND_NAMES[kind], name) == 0)
            return (enum journal_kind)kind;
    return JOURNAL_UNKNOWN;
}

enum event_type { EVENT_STRING, EVENT_TEXT, EVENT_INTEGER, EVENT_BOOLEAN };

#define IN(kind)   (1u << JOURNAL_##kind)
#define EVERYWHERE ((1u << JOURNAL_KIND_MAX) - 1)
#define AT(field)  offsetof(struct journal_event, field)

/* Every field that a record can have, in the order in which they are written. A field that is zero is left
 * out, unless its kind is in `required`: then it is always written, and its absence is damage. */
static const struct event_field {
    const char *key;
    enum event_type type;
    size_t offset;
    unsigned required;
} FIELDS[] = {
    {"boot_ms", EVENT_INTEGER, AT(boot_ms), EVERYWHERE},
    {"wall_ms", EVENT_INTEGER, AT(wall_ms), EVERYWHERE},
    {"attempt", EVENT_STRING, AT(attempt), IN(RESERVED)},
    {"fence", EVENT_INTEGER, AT(fence), IN(RESERVED)},
    {"attempt_kind", EVENT_STRING, AT(attempt_kind), IN(RESERVED)},
    {"repository", EVENT_STRING, AT(repository), 0},
    {"commit", EVENT_STRING, AT(commit), 0},
    {"tree", EVENT_STRING, AT(tree), 0},
    {"directory", EVENT_STRING, AT(directory), 0},
    {"ttl_ms", EVENT_INTEGER, AT(ttl_ms), IN(RESERVED)},
    {"producer", EVENT_STRING, AT(producer), IN(STARTED) | IN(OUTPUT) | IN(FINISHED) | IN(EVIDENCE)},
    {"pid", EVENT_INTEGER, AT(pid), IN(STARTED)},
    {"start_ticks", EVENT_INTEGER, AT(start_ticks), IN(STARTED)},
    {"cgroup", EVENT_STRING, AT(cgroup), 0},
    {"command", EVENT_STRING, AT(command), 0},
    {"log", EVENT_STRING, AT(log), 0},
    {"expected_ms", EVENT_INTEGER, AT(expected_ms), 0},
    {"phase", EVENT_STRING, AT(phase), IN(PROGRESS)},
    {"done", EVENT_INTEGER, AT(done), IN(PROGRESS)},
    {"total", EVENT_INTEGER, AT(total), IN(PLAN) | IN(PROGRESS)},
    {"offset_bytes", EVENT_INTEGER, AT(offset_bytes), IN(OUTPUT)},
    {"dropped_bytes", EVENT_INTEGER, AT(dropped_bytes), 0},
    {"verdict", EVENT_STRING, AT(verdict), IN(FINISHED)},
    {"state", EVENT_STRING, AT(state), IN(SETTLED)},
    {"exit_code", EVENT_INTEGER, AT(exit_code), IN(FINISHED) | IN(SETTLED)},
    {"signal", EVENT_INTEGER, AT(signal), 0},
    {"duration_ms", EVENT_INTEGER, AT(duration_ms), IN(FINISHED) | IN(THAWED) | IN(GAP)},
    {"frozen_ms", EVENT_INTEGER, AT(frozen_ms), 0},
    {"digest", EVENT_STRING, AT(digest), 0},
    {"key", EVENT_STRING, AT(key), 0},
    {"reused", EVENT_BOOLEAN, AT(reused), IN(EVIDENCE)},
    {"result", EVENT_STRING, AT(result), 0},
    {"reason", EVENT_STRING, AT(reason), IN(RETIRED)},
    {"by_attempt", EVENT_STRING, AT(by_attempt), 0},
    {"proof", EVENT_STRING, AT(proof), 0},
    {"text", EVENT_TEXT, AT(text), IN(NOTE) | IN(RENEWAL_TROUBLE)},
};

/* How much of a string goes into a record, in bytes before they are escaped. */
struct limits {
    size_t string, text;
};
/* An escaped byte takes at most six, so what the second pair lets through always fits. */
static const struct limits GENEROUS = {4096, 64 * 1024}, TIGHT = {512, 8 * 1024};
_Static_assert(6 * (ARRAY_SIZE(FIELDS) * (512 + 64) + 8 * 1024) < FORMAT_RECORD_LIMIT, "a record fits");
#define PLAN_RESERVE_BYTES 256 /* for the statement about what is not listed */

/* Where a cut does not split a UTF-8 sequence. */
static size_t cut_boundary(const char *string, size_t at)
{
    size_t boundary = at;
    for (int i = 0; i < 3 && boundary > 0 && ((unsigned char)string[boundary] & 0xc0) == 0x80; i++)
        boundary--;
    return ((unsigned char)string[boundary] & 0xc0) == 0x80 ? at : boundary;
}

static struct json_object *json_cut(const char *string, size_t limit)
{
    size_t length = strlen(string);
    if (length <= limit)
        return json_from_bytes(string, length);
    _cleanup_(text_done) struct text cut = {0};
    size_t kept = cut_boundary(string, limit);
    text_append(&cut, string, kept);
    text_addf(&cut, " [%zu bytes left out]", length - kept);
    return json_from_bytes(cut.bytes, cut.length);
}

static struct json_object *field_encode(
    const struct event_field *field, const void *place, bool always, const struct limits *limits)
{
    const char *string = NULL;
    int64_t number = 0;
    switch (field->type) {
    case EVENT_INTEGER:
        number = *(const int64_t *)place;
        return number != 0 || always ? json_object_new_int64(number) : NULL;
    case EVENT_BOOLEAN:
        return *(const bool *)place || always ? json_object_new_boolean(*(const bool *)place) : NULL;
    case EVENT_STRING:
    case EVENT_TEXT:
        string = *(const char *const *)place;
        if (string == NULL)
            return always ? json_object_new_string("") : NULL;
        return json_cut(string, field->type == EVENT_TEXT ? limits->text : limits->string);
    }
    return NULL;
}

static struct json_object *fields_encode(const struct journal_event *event, const struct limits *limits)
{
    struct json_object *json = json_object_new_object();
    json_add_string(json, "kind", journal_kind_name(event->kind));
    for (size_t i = 0; i < ARRAY_SIZE(FIELDS); i++) {
        bool always = (FIELDS[i].required & (1u << event->kind)) != 0;
        struct json_object *value =
            field_encode(&FIELDS[i], (const char *)event + FIELDS[i].offset, always, limits);
        if (value != NULL)
            json_object_object_add(json, FIELDS[i].key, value);
    }
    return json;
}

static const char *json_plain(struct json_object *json, size_t *ret_length)
{
    return json_object_to_json_string_length(
        json, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, ret_length);
}

static struct json_object *step_encode(const struct journal_plan_step *step, const struct limits *limits)
{
    struct json_object *json = json_object_new_object();
    json_object_object_add(
        json, "producer", json_cut(step->producer != NULL ? step->producer : "", limits->string));
    json_object_object_add(
        json, "reason", json_cut(step->reason != NULL ? step->reason : "", limits->string));
    json_add_boolean(json, "reuse", step->reuse);
    json_add_integer(json, "expected_ms", step->expected_ms);
    return json;
}

/* Adds the steps of a plan as far as they fit into a record that takes `used` bytes without them. */
static void plan_encode(
    struct json_object *json, const struct journal_event *event, const struct limits *limits, size_t used)
{
    struct json_object *steps = json_object_new_array();
    size_t listed = 0;
    for (; listed < event->plan_count; listed++) {
        struct json_object *step = step_encode(&event->plan[listed], limits);
        size_t length = 0;
        json_plain(step, &length);
        used += length + 1;
        if (used + PLAN_RESERVE_BYTES > FORMAT_RECORD_LIMIT) {
            json_object_put(step);
            break;
        }
        json_object_array_add(steps, step);
    }
    if (listed < event->plan_count) {
        char statement[PLAN_RESERVE_BYTES / 2];
        snprintf(statement, sizeof(statement), "%zu of %zu steps are not listed here",
            event->plan_count - listed, event->plan_count);
        json_add_string(json, "text", statement);
    }
    json_object_object_add(json, "plan", steps);
}

static struct json_object *event_to_json(const struct journal_event *event, const struct limits *limits)
{
    struct json_object *json = fields_encode(event, limits);
    size_t length = 0;
    json_plain(json, &length);
    if (event->kind == JOURNAL_PLAN)
        plan_encode(json, event, limits, length);
    return json;
}

void journal_event_encode(const struct journal_event *event, struct text *ret)
{
    size_t length = 0;
    struct json_object *json = event_to_json(event, &GENEROUS);
    const char *plain = json_plain(json, &length);
    if (length > FORMAT_RECORD_LIMIT) {
        json_object_put(json);
        json = event_to_json(event, &TIGHT);
        plain = json_plain(json, &length);
    }
    text_append(ret, plain, length);
    json_object_put(json);
}

static enum result event_damage(struct error *err, const char *kind, const char *key, const char *what)
{
    return error_set(err, RESULT_CORRUPT, 0, "a record of kind '%s': '%s' %s", kind, key, what);
}

static bool field_decode(struct json_object *value, enum event_type type, void *place)
{
    static const enum json_type WANTED[] = {
        [EVENT_STRING] = json_type_string,
        [EVENT_TEXT] = json_type_string,
        [EVENT_INTEGER] = json_type_int,
        [EVENT_BOOLEAN] = json_type_boolean,
    };
    if (!json_object_is_type(value, WANTED[type]))
        return false;
    if (type == EVENT_INTEGER)
        *(int64_t *)place = json_object_get_int64(value);
    else if (type == EVENT_BOOLEAN)
        *(bool *)place = json_object_get_boolean(value);
    else {
        *(const char **)place = json_object_get_string(value);
        return strlen(json_object_get_string(value)) == (size_t)json_object_get_string_len(value);
    }
    return true;
}

static enum result fields_decode(struct json_object *json, struct journal_event *event, struct error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(FIELDS); i++) {
        struct json_object *value = NULL;
        bool there = json_object_object_get_ex(json, FIELDS[i].key, &value);
        if (there && !field_decode(value, FIELDS[i].type, (char *)event + FIELDS[i].offset))
            return event_damage(err, journal_kind_name(event->kind), FIELDS[i].key, "is of the wrong type");
        if (!there && (FIELDS[i].required & (1u << event->kind)) != 0)
            return event_damage(err, journal_kind_name(event->kind), FIELDS[i].key, "is missing");
    }
    return RESULT_OK;
}

static bool step_decode(struct json_object *json, struct journal_plan_step *step)
{
    struct json_object *producer = NULL, *reason = NULL, *reuse = NULL, *expected = NULL;
    if (!json_object_is_type(json, json_type_object) ||
        !json_object_object_get_ex(json, "producer", &producer) ||
        !json_object_object_get_ex(json, "reason", &reason) ||
        !json_object_object_get_ex(json, "reuse", &reuse) ||
        !json_object_object_get_ex(json, "expected_ms", &expected))
        return false;
    return field_decode(producer, EVENT_STRING, &step->producer) &&
           field_decode(reason, EVENT_STRING, &step->reason) &&
           field_decode(reuse, EVENT_BOOLEAN, &step->reuse) &&
           field_decode(expected, EVENT_INTEGER, &step->expected_ms);
}

static enum result plan_decode(struct json_object *json, struct journal_event *event, struct error *err)
{
    struct json_object *steps = NULL;
    if (!json_object_object_get_ex(json, "plan", &steps) || !json_object_is_type(steps, json_type_array))
        return event_damage(err, "plan", "plan", "is missing or not an array");
    event->plan_count = json_object_array_length(steps);
    event->backing_plan = mem_alloc((event->plan_count + 1) * sizeof(*event->backing_plan));
    event->plan = event->backing_plan;
    for (size_t i = 0; i < event->plan_count; i++)
        if (!step_decode(json_object_array_get_idx(steps, i), &event->backing_plan[i]))
            return event_damage(err, "plan", "plan", "holds a step that is not one");
    return RESULT_OK;
}

static enum result event_read(struct json_object *json, struct journal_event *event, struct error *err)
{
    struct json_object *kind = NULL;
    if (!json_object_is_type(json, json_type_object) || !json_object_object_get_ex(json, "kind", &kind) ||
        !json_object_is_type(kind, json_type_string))
        return error_set(err, RESULT_CORRUPT, 0, "a record names no kind");
    event->kind = kind_parse(json_object_get_string(kind));
    /* What a newer version means by its fields is not known here. */
    if (event->kind == JOURNAL_UNKNOWN)
        return RESULT_OK;
    enum result r = fields_decode(json, event, err);
    if (r == RESULT_OK && event->kind == JOURNAL_PLAN)
        r = plan_decode(json, event, err);
    return r;
}

enum result journal_event_decode(
    const char *json, size_t length, struct journal_event *ret, struct error *err)
{
    _cleanup_(error_done) struct error why = {0};
    struct journal_event event = {.kind = JOURNAL_UNKNOWN};
    if (json_check(json, length, &why) != RESULT_OK)
        return error_set(err, RESULT_CORRUPT, 0, "a record is not JSON: %s", why.message);
    struct json_tokener *tokener = json_tokener_new_ex(JSON_LIMIT_DEPTH + 1);
    event.backing = json_tokener_parse_ex(tokener, json, (int)length);
    /* A bare number at the very end is complete only for who knows that nothing follows; no record is one. */
    json_tokener_free(tokener);
    enum result r = event_read(event.backing, &event, err);
    if (r != RESULT_OK) {
        journal_event_done(&event);
        return r;
    }
    *ret = event;
    return RESULT_OK;
}

void journal_event_done(struct journal_event *event)
{
    json_object_put(event->backing);
    mem_free(&event->backing_plan);
    *event = (struct journal_event){.kind = JOURNAL_UNKNOWN};
}
