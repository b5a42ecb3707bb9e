/* `tenure publish`: claim a row, collect for it, and publish in one transaction of the claim's holder. */
#include <inttypes.h>
#include <string.h>

#include "base/json_table.h"
#include "base/memory.h"
#include "cli/pending.h"
#include "cli/report.h"
#include "cli/screen.h"
#include "publish/publish.h"

#define AT(field) offsetof(struct options, field)

static const struct option OPTIONS[] = {
    {"row", 0, OPTION_STRING, AT(row), "TABLE:KEY=VALUE", "the row that is claimed", NULL, 0, 0},
    {"soft-delete", 0, OPTION_STRING, AT(soft_delete), "COLUMN",
        "column that is true, or not null, when the row is gone", NULL, 0, 0},
    {"collect", 0, OPTION_STRING, AT(collect), "COMMAND",
        "run by sh under the lease; prints what is to be published", NULL, 0, 0},
    {"collected", 0, OPTION_STRING, AT(columns), "COLUMNS",
        "what it prints is CSV of these columns, as \"id int, name text\"", NULL, 0, 0},
    {"sql", 0, OPTION_STRING, AT(sql), "FILE", "the statements that publish", NULL, 0, 0},
    OPTIONS_OF_A_LEASE,
    OPTION_TO_WAIT,
    {"data-store", 0, OPTION_STRING, AT(data_store_url), "URL",
        "where the rows are; refused unless it is the store's database", NULL, 0, 0},
};

static enum result check(const struct options *options, struct lease_terms *ret_terms,
    struct publish_row *ret_row, struct error *err)
{
    struct lease_terms terms = {.ttl_ms = options->ttl_ms, .heartbeat_ms = options->heartbeat_ms};
    if (terms.ttl_ms < 0)
        terms.ttl_ms = LEASE_TTL_DEFAULT_MS;
    if (!options->row || !options->sql) {
        error_set(err, RESULT_INVALID, 0, "tenure publish: %s",
            options->row ? "no SQL is given" : "no row is given");
        return error_remedy(err, "tenure publish --row TABLE:KEY=VALUE --sql FILE");
    }
    if (options->columns && !options->collect) {
        error_set(err, RESULT_INVALID, 0, "tenure publish: --collected without a collector");
        return error_remedy(err, "name the command that prints them: --collect COMMAND");
    }
    enum result r = lease_terms_check(&terms, err);
    if (r == RESULT_OK)
        r = publish_row_parse(options->row, ret_row, err);
    if (r == RESULT_OK)
        *ret_terms = terms;
    return r;
}

/* ---- what was changed ---- */

static const struct {
    const char *name; /* in the document */
    const char *form; /* for people, behind the number */
    size_t offset;
} COUNTS[] = {
    {"inserted", "inserted", offsetof(struct publication_counts, inserted)},
    {"updated", "updated", offsetof(struct publication_counts, updated)},
    {"deleted", "deleted", offsetof(struct publication_counts, deleted)},
    {"merged", "merged", offsetof(struct publication_counts, merged)},
    {"copied", "copied", offsetof(struct publication_counts, copied)},
};

static int64_t count_of(const struct publication_counts *counts, size_t index)
{
    return *(const int64_t *)((const char *)counts + COUNTS[index].offset);
}

static void add_counts(const struct publication_counts *counts, struct text *ret)
{
    const char *between = "";
    for (size_t i = 0; i < ARRAY_SIZE(COUNTS); i++) {
        int64_t rows = count_of(counts, i);
        if (rows == 0)
            continue;
        text_addf(ret, "%s%" PRId64 " %s", between, rows, COUNTS[i].form);
        between = ", ";
    }
    if (!*between)
        text_add(ret, "none");
}

/* ---- as a document ---- */

static const char *outcome_of(const struct publish_result *result)
{
    if (result->stop_signal)
        return "cancelled";
    return EXITS[result->lost ? OUTCOME_LOST : result->published ? OUTCOME_DONE : OUTCOME_NEGATIVE].name;
}

static struct json_object *status_json(int status)
{
    return status >= 0 ? json_object_new_int(status) : NULL;
}

static struct json_object *document_of(
    const struct cli *cli, const struct publish_result *result, const char *outcome, int status)
{
    struct json_object *document = report_document(cli, outcome, status);
    struct json_object *attempt = json_object_new_object(), *rows = json_object_new_object();
    json_add_string(attempt, "id", result->attempt_id);
    json_add_integer(attempt, "fence", result->fence);
    json_add_string(attempt, "handle", result->handle);
    json_add_string(attempt, "state", attempt_state_name(result->end.state));
    json_add_string(
        attempt, "reason", result->end.reason.text ? result->end.reason.text : result->end.reason.code);
    json_object_object_add(document, "attempt", attempt);
    json_add_boolean(document, "published", result->published);
    for (size_t i = 0; i < ARRAY_SIZE(COUNTS); i++)
        json_add_integer(rows, COUNTS[i].name, count_of(&result->counts, i));
    json_object_object_add(document, "rows", rows);
    json_add_integer(document, "collected", result->collected);
    json_object_object_add(document, "collector_exit", status_json(result->collector_exit));
    json_object_object_add(document, "collector_signal", status_json(result->collector_signal));
    if (result->failure.code != RESULT_OK)
        json_object_object_add(document, "error", report_error_json(&result->failure));
    return document;
}

/* ---- for people ---- */

static void complain(const struct cli *cli, const struct error *err)
{
    _cleanup_(text_done) struct text text = {0};
    report_add_error(&cli->err, err, &text);
    report_complain(&text);
}

static void complain_lost(const struct cli *cli, const struct publish_result *result)
{
    _cleanup_(error_done) struct error err = {0};
    const struct reason *reason = &result->end.reason;
    bool cancelled = reason->code && strcmp(reason->code, "cancel-requested") == 0;
    const char *why = reason->text   ? reason->text
                      : reason->code ? reason->code
                                     : "the lease could not be kept";
    error_set(&err, RESULT_RETIRED, 0, "tenure publish: %s %s%s", result->handle,
        cancelled ? "was cancelled " : "is lost: ", why);
    error_remedy(&err, cancelled ? "nothing was published" : "nothing was published; start it again");
    complain(cli, &err);
}

static void complain_failed(const struct cli *cli, const struct publish_result *result)
{
    _cleanup_(error_done) struct error err = {0};
    error_set(&err, result->failure.code, result->failure.errnum, "tenure publish: %s",
        result->failure.message ? result->failure.message : "it failed");
    error_remedy(&err, "%s%snothing was published", result->failure.remedy ? result->failure.remedy : "",
        result->failure.remedy ? "; " : "");
    complain(cli, &err);
}

static int tell_people(const struct cli *cli, const struct publish_result *result, int status)
{
    _cleanup_(text_done) struct text text = {0};
    if (result->published) {
        if (cli->options.quiet)
            return status;
        text_addf(&text, "published %s, rows changed: ", cli->options.row);
        add_counts(&result->counts, &text);
        text_add(&text, "\n");
        return report_print(cli, &text, status);
    }
    if (result->lost)
        complain_lost(cli, result);
    else if (!result->stop_signal)
        complain_failed(cli, result);
    return status;
}

static int tell(const struct cli *cli, const struct publish_result *result)
{
    int status = publish_exit(result);
    if (cli->options.json)
        return report_json(cli, document_of(cli, result, outcome_of(result), status), status);
    return tell_people(cli, result, status);
}

/* ---- the command ---- */

static int claim_and_publish(struct cli *cli, const struct publish_options *options, struct screen *screen)
{
    _cleanup_(error_done) struct error err = {0};
    struct publish_result result = {0};
    struct pending pending = {0};
    enum result r = publish_run(options, &result, &pending, &err);
    screen_close(screen);
    bool ended = r == RESULT_OK || (r == RESULT_INTERRUPTED && result.stop_signal);
    int status = ended              ? tell(cli, &result)
                 : r == RESULT_HELD ? pending_report(cli, &pending, report_status(cli, OUTCOME_HELD))
                                    : report_error(cli, &err);
    publish_result_done(&result);
    pending_done(&pending);
    return status;
}

static int publish_command(struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(publish_row_done) struct publish_row row = {0};
    struct lease_terms terms = {0};
    struct screen *screen = NULL;
    struct screen_options look = {.look = cli->err, .clock = clock_system(), .notes_only = true};
    const struct options *options = &cli->options;
    if (check(options, &terms, &row, &err) != RESULT_OK)
        return report_error(cli, &err);
    if (!options->quiet && !options->json && screen_open(&look, &screen, &err) != RESULT_OK)
        return report_error(cli, &err);
    struct publish_options publish = {
        .hold = {.store_url = options->store_url,
            .terms = terms,
            .wait_ms = options->wait_ms,
            .tap = screen_event,
            .tap_context = screen,
            .waiting = screen_waiting,
            .context = screen},
        .row = &row,
        .soft_delete = options->soft_delete,
        .collect = options->collect,
        .columns = options->columns,
        .file = options->sql,
        .data_store_url = options->data_store_url,
    };
    return claim_and_publish(cli, &publish, screen);
}

const struct command COMMAND_PUBLISH = {
    .name = "publish",
    .group = GROUP_PROVE,
    .synopsis = "publish --row TABLE:KEY=VALUE --sql FILE [OPTION]...",
    .summary = "claim a row, collect, and publish in one transaction",
    .details =
        "Claims one row of a PostgreSQL database, runs the collector under the lease, and then the\n"
        "statements of FILE in one transaction that only the holder of the claim can commit. They find\n"
        "what the collector printed in the table collected (number bigint, line text). Whatever fails\n"
        "undoes all of it, and the claim is free again.",
    .options = OPTIONS,
    .option_count = ARRAY_SIZE(OPTIONS),
    .words_max = 0,
    .status_is_the_attempts = true,
    .run = publish_command,
};
