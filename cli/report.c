#include "cli/report.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attempts/lease.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/json_table.h"
#include "base/memory.h"
#include "cli/frame.h"
#include "cli/wrap.h"
#include "cli/writer.h"

int report_status(const struct cli *cli, enum outcome outcome)
{
    const struct exit_row *row = &EXITS[(unsigned)outcome < OUTCOME_MAX ? outcome : OUTCOME_INTERNAL];
    return cli->command && cli->command->own_failures_are_high && row->run_status ? row->run_status
                                                                                  : row->status;
}

/* ---- errors ---- */

/* Lines behind the first stand below it, indented. */
static void add_paragraph(const struct look *look, const char *string, const char *indent, struct text *ret)
{
    _cleanup_(mem_free) char *copy = mem_string(string);
    char *rest = copy;
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        if (line != copy)
            text_addf(ret, "\n%s", *line ? indent : "");
        look_add_foreign(look, ret, line);
    }
    while (ret->length > 0 && ret->bytes[ret->length - 1] == '\n')
        ret->bytes[--ret->length] = '\0';
}

static const char *message_of(const struct error *err)
{
    return err->message ? err->message : result_name(err->code);
}

void report_add_error(const struct look *look, const struct error *err, struct text *ret)
{
    const char *message = message_of(err);
    size_t start = ret->length;
    text_addf(
        ret, "%s%s%s ", style_begin(look, STYLE_BAD), glyphs_of(look)->failed, style_end(look, STYLE_BAD));
    if (strncmp(message, "tenure", 6) != 0)
        text_add(ret, "tenure: ");
    add_paragraph(look, message, "  ", ret);
    text_add(ret, "\n");
    wrap_from(ret, start, 2, look_columns(look));
    if (!err->remedy)
        return;
    start = ret->length;
    text_addf(
        ret, "%s  %s%s ", style_begin(look, STYLE_DIM), glyphs_of(look)->arrow, style_end(look, STYLE_DIM));
    add_paragraph(look, err->remedy, "    ", ret);
    text_add(ret, "\n");
    wrap_from(ret, start, 5, look_columns(look));
}

/* Takes over the document. */
static void add_document(const struct cli *cli, struct json_object *document, struct text *ret)
{
    int flags = JSON_C_TO_STRING_NOSLASHESCAPE;
    flags |= cli->out.terminal ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED : JSON_C_TO_STRING_PLAIN;
    text_add(ret, json_object_to_json_string_ext(document, flags));
    text_add(ret, "\n");
    json_object_put(document);
}

/* False, with errno, when it could not be written; then that was said, unless it is that nobody reads. */
static bool print_whole(const struct cli *cli, const struct text *text)
{
    if (text->length == 0 || write_whole(STDOUT_FILENO, text->bytes, text->length))
        return true;
    int errnum = errno;
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(text_done) struct text complaint = {0};
    if (errnum != EPIPE) {
        error_errno(&err, errnum, "cannot write to standard output");
        report_add_error(&cli->err, &err, &complaint);
        report_complain(&complaint);
    }
    errno = errnum;
    return false;
}

struct json_object *report_error_json(const struct error *err)
{
    struct json_object *json = json_object_new_object();
    json_add_string(json, "code", result_name(err->code));
    json_object_object_add(json, "message", json_from_bytes(message_of(err), strlen(message_of(err))));
    json_object_object_add(
        json, "remedy", err->remedy ? json_from_bytes(err->remedy, strlen(err->remedy)) : NULL);
    return json;
}

int report_error_as(const struct cli *cli, const struct error *err, enum outcome outcome)
{
    int status = report_status(cli, outcome);
    _cleanup_(text_done) struct text text = {0};
    if (cli->options.json) {
        struct json_object *document = report_document(cli, EXITS[outcome].name, status);
        json_object_object_add(document, "error", report_error_json(err));
        add_document(cli, document, &text);
        if (print_whole(cli, &text))
            return status;
        text_clear(&text); /* the error is not lost with its document */
    }
    report_add_error(&cli->err, err, &text);
    report_complain(&text);
    return status;
}

int report_error(const struct cli *cli, const struct error *err)
{
    return report_error_as(cli, err, outcome_of_result(err->code));
}

/* ---- writing ---- */

void report_complain(const struct text *text)
{
    if (text->length > 0 && !write_whole(STDERR_FILENO, text->bytes, text->length))
        return;
}

/* A status other than 0 says already that something went wrong, and what; that of an attempt is the
 * attempt's. Only who promised nothing but its answer has failed with it. */
static bool status_stands(const struct cli *cli, int status)
{
    bool has_none = cli->options.help || cli->options.dry_run;
    return status != 0 || (cli->command && cli->command->status_is_the_attempts && !has_none);
}

int report_print(const struct cli *cli, const struct text *text, int status)
{
    if (print_whole(cli, text) || status_stands(cli, status))
        return status;
    return errno == EPIPE ? EXIT_SIGNAL_BASE + SIGPIPE : report_status(cli, OUTCOME_INTERNAL);
}

struct json_object *report_document(const struct cli *cli, const char *outcome, int status)
{
    struct json_object *document = json_object_new_object();
    json_add_string(document, "command", cli->command ? cli->command->name : NULL);
    json_add_string(document, "outcome", outcome);
    json_add_integer(document, "exit", status);
    return document;
}

int report_json(const struct cli *cli, struct json_object *document, int status)
{
    _cleanup_(text_done) struct text text = {0};
    add_document(cli, document, &text);
    return report_print(cli, &text, status);
}

void report_add_none(struct text *ret, const char *what, const char *absent)
{
    text_add(ret, what);
    if (absent) {
        text_add(ret, ": ");
        text_add_printable(ret, absent, strlen(absent), false);
        text_add(ret, " yet");
    }
    text_add(ret, "\n");
}

/* ---- times ---- */

static bool is_known(int64_t wall_ms)
{
    return wall_ms != LEASE_TIME_NONE && wall_ms > 0;
}

struct json_object *report_time_json(int64_t wall_ms)
{
    char text[CLOCK_TEXT_SIZE];
    if (!is_known(wall_ms))
        return NULL;
    clock_format_utc(wall_ms, text);
    return json_object_new_string(text);
}

void report_add_time(struct text *ret, int64_t wall_ms)
{
    char text[CLOCK_TEXT_SIZE];
    if (!is_known(wall_ms)) {
        text_add(ret, "-");
        return;
    }
    clock_format_people(wall_ms, text);
    text_add(ret, text);
}

void report_age(int64_t then_wall_ms, int64_t now_wall_ms, char ret[32])
{
    int64_t age_ms = is_known(then_wall_ms) && now_wall_ms > then_wall_ms ? now_wall_ms - then_wall_ms : 0;
    if (age_ms < 1000)
        snprintf(ret, DURATION_TEXT_SIZE, "0 s");
    else
        duration_format(age_ms / 1000 * 1000, ret);
}
