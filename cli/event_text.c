#include "cli/event_text.h"

#include <string.h>

#include "base/duration.h"
#include "base/memory.h"

static bool is(const char *string, const char *word)
{
    return string && strcmp(string, word) == 0;
}

static const struct {
    const char *verdict, *words;
} VERDICTS[] = {
    {"timed-out", "ran out of its time"},
    {"quiet", "no output for too long"},
    {"not-started", "could not be started"},
    {"stopped", "was stopped"},
    {"stalled", "stopped itself and stayed so"},
    {"output-lost", "its output could not be kept"},
};

static char *verdict_text(const struct journal_event *event)
{
    if (is(event->verdict, "failed"))
        return mem_format("exit status %lld", (long long)event->exit_code);
    if (is(event->verdict, "signalled"))
        return mem_format(
            "ended by signal %lld (%s)", (long long)event->signal, strsignal((int)event->signal));
    for (size_t i = 0; i < ARRAY_SIZE(VERDICTS); i++)
        if (is(event->verdict, VERDICTS[i].verdict))
            return mem_string(VERDICTS[i].words);
    return mem_string(event->verdict ? event->verdict : "no verdict");
}

static void add_dropped(const struct journal_event *event, struct text *ret)
{
    if (event->dropped_bytes > 0)
        text_addf(ret, "%s%lld bytes of its output were dropped", ret->length > 0 ? "; " : "",
            (long long)event->dropped_bytes);
}

char *event_finish_text(const struct journal_event *event)
{
    struct text text = {0};
    _cleanup_(mem_free) char *derived = event->text && *event->text ? NULL : verdict_text(event);
    text_add(&text, derived ? derived : event->text);
    add_dropped(event, &text);
    return text_steal(&text);
}

char *event_remark(const struct journal_event *event)
{
    struct text text = {0};
    const char *more = event->text ? strstr(event->text, "; ") : NULL;
    if (more)
        text_add(&text, more + strlen("; "));
    add_dropped(event, &text);
    return text.length > 0 ? text_steal(&text) : NULL;
}

bool event_passed(const struct journal_event *event)
{
    return is(event->verdict, "passed");
}

bool event_stopped(const struct journal_event *event)
{
    return is(event->verdict, "stopped");
}

const char *event_ending(const struct journal_event *event)
{
    return event_passed(event) ? "passed" : event_stopped(event) ? "stopped" : "failed";
}

size_t event_planned_reuse(const struct journal_event *event)
{
    size_t count = 0;
    for (size_t i = 0; i < event->plan_count; i++)
        count += event->plan[i].reuse;
    return count;
}

char *event_plan_text(const struct journal_event *event)
{
    size_t reused = event_planned_reuse(event);
    size_t total = event->total > 0 ? (size_t)event->total : event->plan_count;
    return mem_format("%zu producer%s: %zu to run, %zu reused", total, total == 1 ? "" : "s",
        total > reused ? total - reused : 0, reused);
}

char *event_gap_text(const struct journal_event *event)
{
    char duration[DURATION_TEXT_SIZE];
    duration_format(event->duration_ms, duration);
    const char *why = event->text && *event->text ? event->text : "this run stood still";
    return mem_format("%s for %s", why, duration);
}

char *event_log_path(const struct board *board, const struct journal_event *event)
{
    if (!event->log || !board->directory)
        return NULL;
    return mem_format("%s/out/%s", board->directory, event->log);
}
