#include "cli/entry.h"

#include <string.h>

#include "base/duration.h"
#include "base/json_table.h"
#include "base/memory.h"
#include "cli/frame.h"
#include "cli/report.h"
#include "cli/wrap.h"

#define BOOT_SHOWN    8
#define FIELD_COLUMNS 13 /* before the value of a field */

void progress_add(const struct attempt *attempt, struct text *ret)
{
    const struct progress *progress = &attempt->progress;
    text_add(ret, progress->phase[0] ? progress->phase : attempt_state_name(attempt->state));
    if (progress->total > 0)
        text_addf(ret, " %lld of %lld", (long long)progress->done, (long long)progress->total);
}

/* ---- a block ---- */

void entry_add_field(const struct look *look, const char *name, const char *value, struct text *ret)
{
    size_t start = ret->length;
    text_addf(ret, "  %s%-10s%s ", style_begin(look, STYLE_DIM), name, style_end(look, STYLE_DIM));
    look_add_foreign(look, ret, value);
    text_add(ret, "\n");
    wrap_from(ret, start, FIELD_COLUMNS, look_columns(look));
}

static void add_field(const struct look *look, const char *name, const struct text *value, struct text *ret)
{
    entry_add_field(look, name, value->bytes ? value->bytes : "", ret);
}

static void add_stopped(const struct look *look, const struct executor *owner, struct text *ret)
{
    size_t start = ret->length;
    _cleanup_(mem_free) char *remedy = mem_format(
        "by Ctrl-Z or a SIGSTOP; continue it: fg in its terminal, or kill -CONT %lld", (long long)owner->pid);
    text_addf(ret, "  %s%-10s%s ", style_begin(look, STYLE_WARN), "stopped", style_end(look, STYLE_WARN));
    look_add_foreign(look, ret, remedy);
    text_add(ret, "\n");
    wrap_from(ret, start, FIELD_COLUMNS, look_columns(look));
}

void entry_add_witness(
    const struct look *look, const struct witness *witness, const struct executor *owner, struct text *ret)
{
    if (witness->does)
        entry_add_field(look, "does", witness->does, ret);
    if (witness->directory)
        entry_add_field(look, "in", witness->directory, ret);
    if (witness->stopped)
        add_stopped(look, owner, ret);
}

static enum style verdict_style(enum owner_verdict verdict, bool stopped)
{
    if (stopped)
        return STYLE_WARN;
    return verdict == OWNER_RUNNING ? STYLE_GOOD : verdict == OWNER_GONE ? STYLE_BAD : STYLE_WARN;
}

static void add_head(const struct look *look, const struct overview_entry *entry, struct text *ret)
{
    const struct attempt *attempt = &entry->attempt;
    _cleanup_(text_done) struct text progress = {0};
    progress_add(attempt, &progress);
    size_t start = ret->length;
    enum style style = verdict_style(entry->verdict, entry->witness.stopped);
    look_add_styled(look, ret, STYLE_BOLD, attempt_name(attempt));
    text_addf(ret, "  %s  ", attempt_kind_name(attempt->kind));
    look_add_foreign(look, ret, progress.bytes);
    text_add(ret, "  ");
    text_addf(ret, "%sowner %s%s\n", style_begin(look, style),
        entry->witness.stopped ? "stopped" : owner_verdict_name(entry->verdict), style_end(look, style));
    wrap_from(ret, start, 2, look_columns(look));
}

static void add_what(const struct look *look, const struct attempt *attempt, struct text *ret)
{
    _cleanup_(text_done) struct text what = {0};
    if (attempt->repository)
        text_add(&what, attempt->repository);
    for (size_t i = 0; !attempt->repository && i < attempt->subject_count; i++)
        text_addf(&what, "%s%s", i ? ", " : "", attempt->subjects[i]);
    add_field(look, attempt->repository ? "of" : "holds", &what, ret);
}

static void add_owner(const struct look *look, const struct attempt *attempt, struct text *ret)
{
    const struct executor *owner = &attempt->executor;
    _cleanup_(text_done) struct text text = {0};
    _cleanup_(mem_free) char *who = executor_text(owner);
    text_addf(
        &text, "%s (start %lld, boot %.*s)", who, (long long)owner->start_ticks, BOOT_SHOWN, owner->boot_id);
    add_field(look, "owner", &text, ret);
}

/* Of an owner elsewhere: what it does can be read there alone. */
static void add_journal(const struct look *look, const struct overview_entry *entry, struct text *ret)
{
    const struct attempt *attempt = &entry->attempt;
    if (entry->witness.local || !attempt->journal_path)
        return;
    _cleanup_(text_done) struct text text = {0};
    text_addf(&text, "on %s: %s", attempt->journal_host ? attempt->journal_host : attempt->executor.host,
        attempt->journal_path);
    add_field(look, "journal", &text, ret);
}

static void add_times(const struct look *look, const struct overview_entry *entry,
    const struct store_time *now, struct text *ret)
{
    char age[DURATION_TEXT_SIZE];
    const struct attempt *attempt = &entry->attempt;
    _cleanup_(text_done) struct text since = {0}, renewed = {0}, lapses = {0};
    report_add_time(&since, attempt->acquired_wall_ms);
    report_age(attempt->acquired_wall_ms, now->wall_ms, age);
    text_addf(&since, " (%s ago)", age);
    add_field(look, "since", &since, ret);
    report_add_time(&renewed, attempt->renewed_wall_ms);
    report_age(attempt->renewed_wall_ms, now->wall_ms, age);
    text_addf(&renewed, " (%s ago)", age);
    add_field(look, "renewed", &renewed, ret);
    report_add_time(&lapses, entry->lapses_wall_ms);
    duration_format((entry->lapses_in_ms + 999) / 1000 * 1000, age);
    text_addf(&lapses, entry->lapsed ? " (lapsed)" : " (in %s)", age);
    add_field(look, "lapses", &lapses, ret);
}

static void add_next(const struct look *look, const struct overview_entry *entry, struct text *ret)
{
    const struct attempt *attempt = &entry->attempt;
    const char *name = attempt_name(attempt);
    _cleanup_(text_done) struct text text = {0};
    bool dead = entry->verdict == OWNER_GONE || entry->lapsed;
    if (attempt->cancel_by) {
        text_add(&text, "asked to stop by ");
        text_add(&text, attempt->cancel_by);
        text_add(&text, " at ");
        report_add_time(&text, attempt->cancel_wall_ms);
        add_field(look, "cancelled", &text, ret);
        text_clear(&text);
    }
    if (!dead) {
        text_addf(&text, "tenure attach %s", name);
        add_field(look, "attach", &text, ret);
        text_clear(&text);
    }
    text_addf(&text, "tenure cancel %s", name);
    add_field(look, dead ? "retire" : "end", &text, ret);
}

void entry_add(const struct look *look, const struct overview_entry *entry, const struct store_time *now,
    struct text *ret)
{
    add_head(look, entry, ret);
    add_what(look, &entry->attempt, ret);
    entry_add_witness(look, &entry->witness, &entry->attempt.executor, ret);
    add_owner(look, &entry->attempt, ret);
    add_journal(look, entry, ret);
    add_times(look, entry, now, ret);
    add_next(look, entry, ret);
}

/* ---- a line ---- */

static enum style state_style(enum attempt_state state)
{
    return state == ATTEMPT_PASSED ? STYLE_GOOD : state == ATTEMPT_FAILED ? STYLE_BAD : STYLE_WARN;
}

/* Empty when it has not ended, or when the clock was set back meanwhile. */
static void add_duration(const struct attempt *attempt, struct row *ret)
{
    char duration[DURATION_TEXT_SIZE];
    int64_t lasted_ms = attempt->settled_wall_ms - attempt->acquired_wall_ms;
    if (!attempt_state_is_terminal(attempt->state) || attempt->acquired_wall_ms <= 0 || lasted_ms < 0)
        return;
    duration_format(lasted_ms, duration);
    row_add(ret, STYLE_PLAIN, duration);
}

/* The state's own word again says nothing. One that has not ended may be past it. */
static const char *why_ended(const struct overview_entry *entry)
{
    const struct attempt *attempt = &entry->attempt;
    const struct reason *reason = &attempt->reason;
    if (attempt_is_unfinished(attempt))
        return entry->verdict == OWNER_GONE ? "owner gone" : entry->witness.stopped ? "owner stopped" : NULL;
    if (reason->text)
        return reason->text;
    bool same = reason->code && strcmp(reason->code, attempt_state_name(attempt->state)) == 0;
    return same ? NULL : reason->code;
}

void entry_add_line(
    const struct look *look, const struct overview_entry *entry, int columns, struct text *ret)
{
    const struct attempt *attempt = &entry->attempt;
    struct row row;
    _cleanup_(text_done) struct text when = {0};
    report_add_time(&when, attempt->acquired_wall_ms);
    row_begin(&row, look, columns > 0 ? columns - 1 : 4096);
    row_add(&row, STYLE_DIM, when.bytes);
    row_pad(&row, 22);
    row_add(&row, STYLE_BOLD, attempt->journal_handle ? attempt->journal_handle : "-");
    row_pad(&row, 35);
    row_add(&row, STYLE_PLAIN, attempt_kind_name(attempt->kind));
    row_pad(&row, 47);
    row_add(&row, state_style(attempt->state), attempt_state_name(attempt->state));
    row_pad(&row, 58);
    add_duration(attempt, &row);
    row_pad(&row, 69);
    row_add(&row, STYLE_DIM, why_ended(entry));
    while (row.text.length > 0 && row.text.bytes[row.text.length - 1] == ' ')
        row.text.bytes[--row.text.length] = '\0';
    text_add(ret, row.text.bytes);
    text_add(ret, "\n");
    row_done(&row);
}

/* ---- a document ---- */

static void add_bytes(struct json_object *json, const char *key, const char *string)
{
    json_object_object_add(json, key, string ? json_from_bytes(string, strlen(string)) : NULL);
}

static struct json_object *executor_json(const struct executor *executor)
{
    struct json_object *json = json_object_new_object();
    add_bytes(json, "host", executor->host);
    add_bytes(json, "user", executor->user);
    json_add_integer(json, "uid", executor->uid);
    json_add_integer(json, "pid", executor->pid);
    json_add_integer(json, "start_ticks", executor->start_ticks);
    json_add_string(json, "machine_id", executor->machine_id);
    json_add_string(json, "boot_id", executor->boot_id);
    return json;
}

static struct json_object *reason_json(const struct reason *reason)
{
    if (!reason->code)
        return NULL;
    struct json_object *json = json_object_new_object();
    json_add_string(json, "code", reason->code);
    add_bytes(json, "text", reason->text);
    json_add_string(json, "by_attempt", reason->by_attempt);
    return json;
}

static void add_lease(struct json_object *json, const struct overview_entry *entry)
{
    json_add_string(json, "owner", owner_verdict_name(entry->verdict));
    json_add_string(json, "owner_why", entry->verdict_why);
    json_add_boolean(json, "owner_stopped", entry->witness.stopped);
    add_bytes(json, "does", entry->witness.does);
    add_bytes(json, "directory", entry->witness.directory);
    json_add_boolean(json, "lapsed", entry->lapsed);
    json_add_integer(json, "lapses_in_ms", entry->lapses_in_ms);
    json_object_object_add(json, "lapses_at", report_time_json(entry->lapses_wall_ms));
}

struct json_object *entry_json(const struct attempt *attempt, const struct overview_entry *entry)
{
    struct json_object *json = json_object_new_object(), *subjects = json_object_new_array();
    struct json_object *progress = json_object_new_object();
    json_add_string(json, "id", attempt->id);
    json_add_integer(json, "fence", attempt->fence);
    json_add_string(json, "handle", attempt->journal_handle);
    json_add_string(json, "kind", attempt_kind_name(attempt->kind));
    json_add_string(json, "state", attempt_state_name(attempt->state));
    json_object_object_add(json, "reason", reason_json(&attempt->reason));
    add_bytes(json, "repository", attempt->repository);
    for (size_t i = 0; i < attempt->subject_count; i++)
        json_object_array_add(subjects, json_from_bytes(attempt->subjects[i], strlen(attempt->subjects[i])));
    json_object_object_add(json, "subjects", subjects);
    json_object_object_add(json, "executor", executor_json(&attempt->executor));
    add_bytes(json, "journal_host", attempt->journal_host);
    add_bytes(json, "journal_path", attempt->journal_path);
    json_object_object_add(json, "since", report_time_json(attempt->acquired_wall_ms));
    json_object_object_add(json, "renewed_at", report_time_json(attempt->renewed_wall_ms));
    json_object_object_add(json, "ended_at", report_time_json(attempt->settled_wall_ms));
    json_add_string(progress, "phase", attempt->progress.phase);
    json_add_integer(progress, "done", attempt->progress.done);
    json_add_integer(progress, "total", attempt->progress.total);
    json_object_object_add(json, "progress", progress);
    add_bytes(json, "cancel_requested_by", attempt->cancel_by);
    if (entry)
        add_lease(json, entry);
    return json;
}
