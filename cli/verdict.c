#include "cli/verdict.h"

#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/json_table.h"
#include "base/memory.h"
#include "cli/frame.h"
#include "cli/pending.h"
#include "cli/report.h"
#include "cli/wrap.h"

#define FAILURES_TOLD 5
#define SHORT_ID      12

int verdict_status(const struct cli *cli, const struct completion_result *result)
{
    return result->signal ? EXIT_SIGNAL_BASE + result->signal : report_status(cli, result->outcome);
}

/* ---- for people ---- */

static bool has_failed(const struct completion_producer *producer)
{
    return producer->source != SOURCE_NONE && producer->verdict && !producer->passed &&
           strcmp(producer->verdict, "stopped") != 0;
}

static void add_hint(const struct look *look, const char *name, const char *value, struct text *ret)
{
    if (!value)
        return;
    text_addf(ret, "    %s%-9s%s ", style_begin(look, STYLE_DIM), name, style_end(look, STYLE_DIM));
    if (value[0] == '/')
        look_add_path(look, ret, value);
    else
        look_add_foreign(look, ret, value);
    text_add(ret, "\n");
}

/* That of a run long ago may have been pruned. */
static void add_log(const struct look *look, const struct completion_producer *producer, struct text *ret)
{
    if (producer->log && producer->source == SOURCE_REUSED && access(producer->log, F_OK) != 0) {
        _cleanup_(mem_free) char *gone =
            mem_format("removed; `tenure done --rerun %s` makes a new one", producer->name);
        add_hint(look, "log", gone, ret);
        return;
    }
    add_hint(look, "log", producer->log, ret);
}

static void add_failure(const struct look *look, const struct completion_producer *producer, struct text *ret)
{
    size_t start = ret->length;
    text_addf(
        ret, "  %s%s%s ", style_begin(look, STYLE_BAD), glyphs_of(look)->failed, style_end(look, STYLE_BAD));
    look_add_styled(look, ret, STYLE_BOLD, producer->name);
    text_add(ret, "  ");
    look_add_foreign(look, ret, producer->text ? producer->text : producer->verdict);
    text_addf(ret, "%s\n", producer->source == SOURCE_REUSED ? " (seen before; --rerun runs it again)" : "");
    wrap_from(ret, start, 4, look_columns(look));
    add_log(look, producer, ret);
    add_hint(look, "reproduce", producer->command, ret);
}

/* The live screen has shown it, with its last lines. */
static bool was_shown(const struct completion_producer *producer)
{
    return producer->source == SOURCE_RAN;
}

static void add_failures(
    const struct look *look, const struct completion_result *result, bool watched, struct text *ret)
{
    size_t told = 0, more = 0;
    for (size_t i = 0; i < result->producer_count; i++) {
        const struct completion_producer *producer = &result->producers[i];
        if (!has_failed(producer) || (watched && was_shown(producer)))
            continue;
        if (told++ < FAILURES_TOLD)
            add_failure(look, producer, ret);
        else
            more++;
    }
    if (more > 0)
        text_addf(ret, "  and %zu more that failed\n", more);
}

void verdict_line(const struct look *look, bool good, const char *sentence, const char *more,
    int64_t duration_ms, struct text *ret)
{
    char duration[DURATION_TEXT_SIZE];
    size_t start = ret->length;
    const struct glyphs *glyphs = glyphs_of(look);
    enum style style = good ? STYLE_GOOD : STYLE_BAD;
    text_addf(ret, "%s%s%s ", style_begin(look, style), good ? glyphs->passed : glyphs->failed,
        style_end(look, style));
    look_add_styled(look, ret, STYLE_BOLD, sentence);
    text_add(ret, style_begin(look, STYLE_DIM));
    if (more) {
        text_addf(ret, "  %s ", glyphs->dot);
        look_add_foreign(look, ret, more);
    }
    if (duration_ms >= 0) {
        duration_format(duration_ms, duration);
        text_addf(ret, "  %s %s", glyphs->dot, duration);
    }
    text_addf(ret, "%s\n", style_end(look, STYLE_DIM));
    wrap_from(ret, start, 2, look_columns(look));
}

void verdict_add(
    const struct look *look, const struct completion_result *result, bool watched, struct text *ret)
{
    bool good = result->outcome == OUTCOME_DONE && !result->signal;
    if (result->outcome == OUTCOME_HELD)
        return;
    if (result->outcome == OUTCOME_NEGATIVE)
        add_failures(look, result, watched, ret);
    _cleanup_(mem_free) char *proof =
        result->proof_id ? mem_format("Proof %.*s", SHORT_ID, result->proof_id) : NULL;
    const char *sentence = result->sentence ? result->sentence : EXITS[result->outcome].meaning;
    /* The sentence may have named it already. */
    bool named = proof && strstr(sentence, proof) != NULL;
    verdict_line(look, good, sentence, named ? NULL : proof, result->duration_ms, ret);
    if (good && result->partial)
        text_add(ret, "  it covers the named producers only; `tenure done` covers all\n");
}

void verdict_add_plan(const struct look *look, const struct completion_result *result, struct text *ret)
{
    int widest = 4;
    for (size_t i = 0; i < result->producer_count; i++) {
        int columns = text_columns(result->producers[i].name);
        widest = columns > widest ? columns : widest;
    }
    for (size_t i = 0; i < result->producer_count; i++) {
        const struct completion_producer *producer = &result->producers[i];
        struct row row;
        text_addf(ret, "  %s%s%s  ", style_begin(look, producer->planned_reuse ? STYLE_ACCENT : STYLE_WARN),
            producer->planned_reuse ? "reuse" : "run  ",
            style_end(look, producer->planned_reuse ? STYLE_ACCENT : STYLE_WARN));
        row_begin(&row, look, widest);
        row_add(&row, STYLE_BOLD, producer->name);
        row_pad(&row, widest);
        text_addf(ret, "%s  ", row.text.bytes);
        row_done(&row);
        look_add_styled(look, ret, STYLE_DIM, producer->reason);
        text_add(ret, "\n");
    }
    verdict_line(look, true, result->sentence ? result->sentence : "nothing to run", NULL, -1, ret);
}

/* ---- for programs ---- */

static void add_bytes(struct json_object *json, const char *key, const char *string)
{
    json_object_object_add(json, key, string ? json_from_bytes(string, strlen(string)) : NULL);
}

static struct json_object *attempt_json(const struct completion_result *result)
{
    if (!result->attempt_id)
        return NULL;
    struct json_object *json = json_object_new_object();
    json_add_string(json, "id", result->attempt_id);
    json_add_integer(json, "fence", result->fence);
    json_add_string(json, "handle", result->handle);
    json_add_string(json, "state", attempt_state_name(result->state));
    add_bytes(json, "reason", result->reason.text ? result->reason.text : result->reason.code);
    return json;
}

static struct json_object *candidate_json(const struct completion_result *result)
{
    if (!result->commit)
        return NULL;
    struct json_object *json = json_object_new_object();
    json_add_string(json, "commit", result->commit);
    json_add_string(json, "tree", result->tree);
    return json;
}

static struct json_object *number_or_null(bool known, int64_t number)
{
    return known ? json_object_new_int64(number) : NULL;
}

static struct json_object *producer_json(const struct completion_producer *producer)
{
    static const char *const SOURCES[] = {
        [SOURCE_NONE] = NULL, [SOURCE_RAN] = "ran", [SOURCE_REUSED] = "reused"};
    bool reached = producer->source != SOURCE_NONE;
    struct json_object *json = json_object_new_object();
    add_bytes(json, "name", producer->name);
    json_add_string(json, "verdict", producer->verdict);
    json_add_string(json, "source", SOURCES[producer->source]);
    json_object_object_add(
        json, "exit", number_or_null(reached && producer->exit_code >= 0, producer->exit_code));
    json_object_object_add(json, "signal", number_or_null(reached && producer->signal > 0, producer->signal));
    json_object_object_add(
        json, "duration_ms", number_or_null(reached && producer->duration_ms >= 0, producer->duration_ms));
    add_bytes(json, "log", producer->log);
    json_add_string(json, "key", producer->key);
    add_bytes(json, "text", producer->text);
    return json;
}

static struct json_object *producers_json(const struct completion_result *result)
{
    struct json_object *json = json_object_new_array();
    for (size_t i = 0; i < result->producer_count; i++)
        json_object_array_add(json, producer_json(&result->producers[i]));
    return json;
}

static struct json_object *proof_json(const struct completion_result *result)
{
    if (!result->proof_id)
        return NULL;
    struct json_object *json = json_object_new_object();
    json_add_string(json, "id", result->proof_id);
    json_add_string(json, "key_id", result->key_id);
    return json;
}

/* A plan says why, beside the fields that every document has. */
static void add_plan(struct json_object *document, const struct completion_result *result)
{
    struct json_object *plan = json_object_new_array();
    for (size_t i = 0; i < result->producer_count && !result->already; i++) {
        struct json_object *step = json_object_new_object();
        add_bytes(step, "name", result->producers[i].name);
        json_add_string(step, "source", result->producers[i].planned_reuse ? "reused" : "ran");
        add_bytes(step, "reason", result->producers[i].reason);
        json_object_array_add(plan, step);
    }
    json_object_object_add(document, "plan", plan);
}

struct json_object *verdict_json(
    const struct cli *cli, const struct completion_result *result, int status, const struct error *err)
{
    const char *outcome = err              ? EXITS[outcome_of_result(err->code)].name
                          : result->signal ? "cancelled"
                                           : EXITS[result->outcome].name;
    struct json_object *document = report_document(cli, outcome, status);
    json_object_object_add(document, "attempt", attempt_json(result));
    json_object_object_add(document, "candidate", candidate_json(result));
    json_object_object_add(document, "producers", producers_json(result));
    json_object_object_add(document, "standards", json_object_new_array());
    json_object_object_add(document, "proof", proof_json(result));
    bool held = !err && result->outcome == OUTCOME_HELD;
    json_object_object_add(document, "pending", held ? pending_json(&result->pending) : NULL);
    if (cli->options.dry_run && !err)
        add_plan(document, result);
    if (err)
        json_object_object_add(document, "error", report_error_json(err));
    return document;
}
