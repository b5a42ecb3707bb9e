#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/store_postgres-private.h"
#include "base/json_table.h"
#include "base/memory.h"
#include "base/text.h"

/* ---- columns ---- */

static void answer_break(struct answer *answer, int column)
{
    if (!answer->broken)
        answer->broken = answer->pq->fname(answer->result, column);
}

/* NULL for null. */
static const char *answer_next(struct answer *answer, int *ret_column)
{
    *ret_column = answer->next++;
    if (answer->pq->getisnull(answer->result, answer->row, *ret_column))
        return NULL;
    return answer->pq->getvalue(answer->result, answer->row, *ret_column);
}

int64_t answer_integer(struct answer *answer)
{
    int column = 0;
    int64_t integer = 0;
    const char *text = answer_next(answer, &column);

    if (!text || !text_parse_int(text, INT64_MIN, INT64_MAX, &integer))
        answer_break(answer, column);
    return integer;
}

bool answer_boolean(struct answer *answer)
{
    int column = 0;
    const char *text = answer_next(answer, &column);

    if (!text || (strcmp(text, "t") != 0 && strcmp(text, "f") != 0))
        answer_break(answer, column);
    return text && text[0] == 't';
}

char *answer_text_or_null(struct answer *answer)
{
    int column = 0;

    return mem_string(answer_next(answer, &column));
}

char *answer_text(struct answer *answer)
{
    int column = answer->next;
    char *text = answer_text_or_null(answer);

    if (text)
        return text;
    answer_break(answer, column);
    return mem_string("");
}

void answer_buffer(struct answer *answer, char *ret, size_t size_bytes)
{
    int column = answer->next;
    _cleanup_(mem_free) char *text = answer_text(answer);
    size_t length = strlen(text);

    if (length >= size_bytes) {
        answer_break(answer, column);
        length = 0;
    }
    memcpy(ret, text, length);
    ret[length] = '\0';
}

char *answer_bytes(struct answer *answer, size_t *ret_length)
{
    int column = answer->next;
    _cleanup_(mem_free) char *hex = answer_text(answer);
    size_t length = strlen(hex) / 2;
    char *bytes = mem_alloc(length + 1);

    if (!hex_decode(hex, bytes, length))
        answer_break(answer, column);
    *ret_length = length;
    return bytes;
}

enum result answer_check(const struct answer *answer, const char *what, struct error *err)
{
    if (!answer->broken)
        return RESULT_OK;
    return error_set(err, RESULT_CORRUPT, 0, "%s: the column %s does not validate", what, answer->broken);
}

/* ---- records ---- */

struct record {
    struct attempt attempt;
    char kind[32], state[32];
    struct json_object *subjects, *executor;
};

#define AT(field)   offsetof(struct record, field)
#define SIZE(field) sizeof(((struct record *)NULL)->field)

static const struct json_field HEAD[] = {
    {"id", JSON_BUFFER, AT(attempt.id), true, 0, UUID_TEXT_SIZE},
    {"record_version", JSON_INTEGER, AT(attempt.record_version), true, 1, INT32_MAX},
};

static const struct json_field BODY[] = {
    {"fence", JSON_INTEGER, AT(attempt.fence), true, 0, INT64_MAX},
    {"rev", JSON_INTEGER, AT(attempt.rev), true, 0, INT64_MAX},
    {"kind", JSON_BUFFER, AT(kind), true, 0, SIZE(kind)},
    {"state", JSON_BUFFER, AT(state), true, 0, SIZE(state)},
    {"repository", JSON_STRING, AT(attempt.repository), false, 0, 0},
    {"subjects", JSON_ARRAY, AT(subjects), true, 0, 0},
    {"executor", JSON_OBJECT, AT(executor), false, 0, 0},
    {"journal_handle", JSON_STRING, AT(attempt.journal_handle), false, 0, 0},
    {"journal_host", JSON_STRING, AT(attempt.journal_host), false, 0, 0},
    {"journal_path", JSON_STRING, AT(attempt.journal_path), false, 0, 0},
    {"reason_code", JSON_STRING, AT(attempt.reason.code), false, 0, 0},
    {"reason_text", JSON_STRING, AT(attempt.reason.text), false, 0, 0},
    {"reason_by", JSON_STRING, AT(attempt.reason.by_attempt), false, 0, 0},
    {"ttl_ms", JSON_INTEGER, AT(attempt.lease.ttl_ms), false, 0, 0},
    {"acquired_ms", JSON_INTEGER, AT(attempt.lease.acquired_ms), false, 0, 0},
    {"renewed_ms", JSON_INTEGER, AT(attempt.lease.renewed_ms), false, 0, 0},
    {"expires_ms", JSON_INTEGER, AT(attempt.lease.expires_ms), false, 0, 0},
    {"settled_ms", JSON_INTEGER, AT(attempt.settled_wall_ms), false, 0, 0},
    {"progress_phase", JSON_BUFFER, AT(attempt.progress.phase), false, 0, SIZE(attempt.progress.phase)},
    {"progress_done", JSON_INTEGER, AT(attempt.progress.done), false, 0, 0},
    {"progress_total", JSON_INTEGER, AT(attempt.progress.total), false, 0, 0},
    {"cancel_by", JSON_STRING, AT(attempt.cancel_by), false, 0, 0},
    {"cancel_ms", JSON_INTEGER, AT(attempt.cancel_wall_ms), false, 0, 0},
    {"settle_nonce", JSON_BUFFER, AT(attempt.settle_nonce), false, 0, SETTLE_NONCE_SIZE},
};
#undef AT
#undef SIZE

/* Other programs reserve too, and tell of themselves what they like. */
#define AT(field) offsetof(struct executor, field)
static const struct json_field EXECUTOR[] = {
    {"machine_id", JSON_BUFFER, AT(machine_id), false, 0, MACHINE_ID_SIZE},
    {"boot_id", JSON_BUFFER, AT(boot_id), false, 0, MACHINE_ID_SIZE},
    {"host", JSON_BUFFER, AT(host), false, 0, sizeof(((struct executor *)NULL)->host)},
    {"user", JSON_BUFFER, AT(user), false, 0, sizeof(((struct executor *)NULL)->user)},
    {"incarnation", JSON_BUFFER, AT(incarnation), false, 0, INCARNATION_SIZE},
    {"pid_namespace", JSON_INTEGER, AT(pid_namespace), false, 0, INT64_MAX},
    {"pid", JSON_INTEGER, AT(pid), false, 0, INT32_MAX},
    {"start_ticks", JSON_INTEGER, AT(start_ticks), false, 0, INT64_MAX},
    {"uid", JSON_INTEGER, AT(uid), false, 0, UINT32_MAX},
};
#undef AT

static enum result fail_field(const char *id, const char *why, struct error *err)
{
    return error_set(err, RESULT_CORRUPT, 0, "attempt %s: its record does not validate: %s", id, why);
}

static enum result record_words(struct record *record, struct error *err)
{
    if (!attempt_kind_parse(record->kind, &record->attempt.kind))
        return error_set(err, RESULT_CORRUPT, 0, "\"kind\" is no kind of attempt");
    if (!attempt_state_parse(record->state, &record->attempt.state))
        return error_set(err, RESULT_CORRUPT, 0, "\"state\" is no state of an attempt");
    return RESULT_OK;
}

static enum result record_subjects(struct record *record, struct error *err)
{
    size_t count = json_object_array_length(record->subjects);
    struct attempt *attempt = &record->attempt;

    attempt->subjects = mem_alloc((count + 1) * sizeof *attempt->subjects);
    for (size_t i = 0; i < count; i++) {
        struct json_object *subject = json_object_array_get_idx(record->subjects, i);
        if (!json_object_is_type(subject, json_type_string))
            return error_set(err, RESULT_CORRUPT, 0, "\"subjects\" must hold strings");
        attempt->subjects[attempt->subject_count++] = mem_string(json_object_get_string(subject));
    }
    return RESULT_OK;
}

/* Whoever may call the functions may say what he likes: a text that is too long for us is cut, so that one
 * record does not hide all others. */
static void fit(struct json_object *json, const struct json_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct json_object *value = json_object_object_get(json, fields[i].key);
        bool text = fields[i].kind == JSON_BUFFER && json_object_is_type(value, json_type_string);
        size_t room = text ? (size_t)fields[i].max - 1 : 0;
        if (!text || (size_t)json_object_get_string_len(value) <= room)
            continue;
        const char *whole = json_object_get_string(value);
        json_object_object_add(
            json, fields[i].key, json_object_new_string_len(whole, (int)text_utf8_prefix(whole, room)));
    }
}

/* One that cannot be read tells nothing of its owner: only the lease decides then. */
static void record_executor(struct record *record)
{
    struct executor *executor = &record->attempt.executor;

    if (!record->executor)
        return;
    fit(record->executor, EXECUTOR, ARRAY_SIZE(EXECUTOR));
    if (json_table_read(NULL, "", record->executor, EXECUTOR, ARRAY_SIZE(EXECUTOR), false, executor, NULL) !=
        RESULT_OK)
        *executor = (struct executor){0};
}

/* The server's times are wall-clock times: what decides and what people read are the same. */
static enum result record_body(struct json_object *json, struct record *record, struct error *err)
{
    struct attempt *attempt = &record->attempt;
    enum result r = RESULT_OK;

    attempt->lease.acquired_ms = attempt->lease.renewed_ms = attempt->lease.expires_ms = LEASE_TIME_NONE;
    attempt->settled_wall_ms = attempt->cancel_wall_ms = LEASE_TIME_NONE;
    fit(json, BODY, ARRAY_SIZE(BODY));
    r = json_table_read(NULL, "", json, BODY, ARRAY_SIZE(BODY), false, record, err);
    if (r == RESULT_OK)
        r = record_words(record, err);
    if (r == RESULT_OK)
        r = record_subjects(record, err);
    if (r == RESULT_OK)
        record_executor(record);
    attempt->acquired_wall_ms = attempt->lease.acquired_ms;
    attempt->renewed_wall_ms = attempt->lease.renewed_ms;
    return r;
}

static void record_done(struct record *record)
{
    attempt_done(&record->attempt);
}

static enum result record_parse(struct json_object *json, struct attempt *ret, struct error *err)
{
    _cleanup_(record_done) struct record record = {0};
    _cleanup_(error_done) struct error why = {0};
    struct attempt *attempt = &record.attempt;

    if (json_table_read(NULL, "", json, HEAD, ARRAY_SIZE(HEAD), false, &record, &why) != RESULT_OK)
        return fail_field(attempt->id[0] ? attempt->id : "without an id", why.message, err);
    if (attempt->record_version > ATTEMPT_RECORD_VERSION)
        return error_set(
            err, RESULT_NEWER, 0, "attempt %s: its record was written by a newer version", attempt->id);
    if (record_body(json, &record, &why) != RESULT_OK)
        return fail_field(attempt->id, why.message, err);
    *ret = *attempt;
    *attempt = (struct attempt){0};
    return RESULT_OK;
}

enum result record_read(const char *json, struct attempt *ret, struct error *err)
{
    struct json_object *parsed = json_tokener_parse(json);
    enum result r = record_parse(parsed, ret, err);

    json_object_put(parsed);
    return r;
}

enum result answer_record(struct answer *answer, struct attempt *ret, struct error *err)
{
    _cleanup_(mem_free) char *json = answer_text(answer);

    return record_read(json, ret, err);
}
