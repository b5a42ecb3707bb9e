#include "cli/pending.h"

#include <string.h>

#include "base/duration.h"
#include "base/json_table.h"
#include "base/memory.h"
#include "cli/entry.h"
#include "cli/frame.h"
#include "cli/report.h"
#include "cli/wrap.h"

char *pending_reconnect(const struct attempt *holder)
{
    return holder->journal_handle ? mem_format("tenure attach %s", holder->journal_handle) : NULL;
}

static void add_field(const struct look *look, const char *name, const struct text *value, struct text *ret)
{
    entry_add_field(look, name, value->bytes ? value->bytes : "", ret);
}

static void add_owner(const struct look *look, const struct pending *pending, struct text *ret)
{
    _cleanup_(text_done) struct text text = {0};
    _cleanup_(mem_free) char *owner = executor_text(&pending->holder.executor);
    text_addf(&text, "%s, since ", owner);
    report_add_time(&text, pending->holder.acquired_wall_ms);
    text_addf(&text, " (%s)", pending->witness.stopped ? "stopped" : owner_verdict_name(pending->verdict));
    add_field(look, "owner", &text, ret);
}

static void add_lease(const struct look *look, const struct pending *pending, struct text *ret)
{
    char left[DURATION_TEXT_SIZE];
    _cleanup_(text_done) struct text renewed = {0}, lapses = {0};
    report_add_time(&renewed, pending->holder.renewed_wall_ms);
    add_field(look, "renewed", &renewed, ret);
    duration_format((pending->lapses_in_ms + 999) / 1000 * 1000, left);
    text_addf(&lapses, "in %s, ", left);
    report_add_time(&lapses, pending->lapses_wall_ms);
    text_add(&lapses, ", unless it is renewed");
    add_field(look, "lapses", &lapses, ret);
}

/* What to do about it: look, wait, or end it. */
static void add_next(const struct look *look, const struct pending *pending, struct text *ret)
{
    _cleanup_(mem_free) char *reconnect = pending_reconnect(&pending->holder);
    _cleanup_(mem_free) char *cancel = mem_format("tenure cancel %s", attempt_name(&pending->holder));
    entry_add_field(look, "reconnect", reconnect ? reconnect : "it has no journal", ret);
    if (pending->inside)
        return;
    entry_add_field(look, "wait", "the same command with --wait", ret);
    entry_add_field(look, "end it", cancel, ret);
}

void pending_add(const struct look *look, const struct pending *pending, struct text *ret)
{
    _cleanup_(text_done) struct text line = {0}, subject = {0};
    size_t start = ret->length;
    const struct attempt *holder = &pending->holder;
    text_addf(
        ret, "%s%s%s ", style_begin(look, STYLE_WARN), glyphs_of(look)->frozen, style_end(look, STYLE_WARN));
    text_addf(&line, "tenure: held by %s%s", attempt_name(holder),
        pending->inside ? ", the attempt that this command runs in: waiting for it would never end"
                        : ": another attempt is current");
    look_add_foreign(look, ret, line.bytes);
    text_add(ret, "\n");
    wrap_from(ret, start, 2, look_columns(look));
    text_addf(&subject, "%s", pending->subject ? pending->subject : "-");
    add_field(look, "subject", &subject, ret);
    entry_add_witness(look, &pending->witness, &holder->executor, ret);
    add_owner(look, pending, ret);
    add_lease(look, pending, ret);
    add_next(look, pending, ret);
}

static struct json_object *executor_json(const struct attempt *holder)
{
    struct json_object *json = json_object_new_object();
    json_object_object_add(
        json, "host", json_from_bytes(holder->executor.host, strlen(holder->executor.host)));
    json_add_integer(json, "pid", holder->executor.pid);
    json_object_object_add(
        json, "user", json_from_bytes(holder->executor.user, strlen(holder->executor.user)));
    json_object_object_add(json, "started_at", report_time_json(holder->acquired_wall_ms));
    return json;
}

struct json_object *pending_json(const struct pending *pending)
{
    const struct attempt *holder = &pending->holder;
    _cleanup_(mem_free) char *reconnect = pending_reconnect(holder);
    _cleanup_(mem_free) char *cause =
        mem_format("another attempt holds %s", pending->subject ? pending->subject : "what this one needs");
    struct json_object *json = json_object_new_object();
    json_object_object_add(json, "cause", json_from_bytes(cause, strlen(cause)));
    json_add_string(json, "attempt", holder->id);
    json_object_object_add(json, "executor", executor_json(holder));
    json_object_object_add(json, "renewed_at", report_time_json(holder->renewed_wall_ms));
    json_object_object_add(json, "lapses_at", report_time_json(pending->lapses_wall_ms));
    json_add_string(json, "handle", holder->journal_handle);
    json_add_string(json, "reconnect", reconnect);
    return json;
}

int pending_report(const struct cli *cli, const struct pending *pending, int status)
{
    if (cli->options.json) {
        struct json_object *document = report_document(cli, EXITS[OUTCOME_HELD].name, status);
        json_object_object_add(document, "pending", pending_json(pending));
        return report_json(cli, document, status);
    }
    _cleanup_(text_done) struct text text = {0};
    pending_add(&cli->err, pending, &text);
    report_complain(&text);
    return status;
}
