#include "cli/pending.h"

#include <string.h>

#include "base/duration.h"
#include "base/json_table.h"
#include "base/memory.h"
#include "cli/frame.h"
#include "cli/report.h"

char *pending_reconnect(const struct attempt *holder)
{
    return holder->journal_handle ? mem_format("tenure attach %s", holder->journal_handle) : NULL;
}

static void add_field(const struct look *look, const char *name, const struct text *value, struct text *ret)
{
    text_addf(ret, "  %s%-10s%s ", style_begin(look, STYLE_DIM), name, style_end(look, STYLE_DIM));
    look_add_foreign(look, ret, value->bytes ? value->bytes : "");
    text_add(ret, "\n");
}

static void add_owner(const struct look *look, const struct pending *pending, struct text *ret)
{
    _cleanup_(text_done) struct text text = {0};
    const struct executor *owner = &pending->holder.executor;
    text_addf(&text, "%s on %s, pid %lld, since ", owner->user, owner->host, (long long)owner->pid);
    report_add_time(&text, pending->holder.acquired_wall_ms);
    text_addf(&text, " (%s)", owner_verdict_name(pending->verdict));
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

void pending_add(const struct look *look, const struct pending *pending, struct text *ret)
{
    _cleanup_(text_done) struct text line = {0}, subject = {0}, reconnect = {0};
    const struct attempt *holder = &pending->holder;
    _cleanup_(mem_free) char *command = pending_reconnect(holder);
    text_addf(
        ret, "%s%s%s ", style_begin(look, STYLE_WARN), glyphs_of(look)->frozen, style_end(look, STYLE_WARN));
    text_addf(&line, "tenure: held by %s: another attempt is current",
        holder->journal_handle ? holder->journal_handle : holder->id);
    look_add_foreign(look, ret, line.bytes);
    text_add(ret, "\n");
    text_addf(&subject, "%s", pending->subject ? pending->subject : "-");
    add_field(look, "subject", &subject, ret);
    add_owner(look, pending, ret);
    add_lease(look, pending, ret);
    text_add(&reconnect, command ? command : "it has no journal");
    add_field(look, "reconnect", &reconnect, ret);
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
