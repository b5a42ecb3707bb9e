/* `tenure journal`: which journals there are; removes old ones. */
#include <string.h>

#include "base/json_table.h"
#include "base/memory.h"
#include "cli/report.h"
#include "cli/words.h"
#include "journal/retention.h"

#define AT(field) offsetof(struct options, field)

static const struct option OPTIONS[] = {
    {"older", 0, OPTION_DURATION, AT(older_ms), "DUR", "prune: finished ones older than this (default 14d)",
        NULL, 0, INT64_C(36500) * 24 * 3600 * 1000},
    {"keep", 0, OPTION_INTEGER, AT(keep), "N", "prune: finished ones beyond the newest N (default 200)", NULL,
        0, 1000000},
    {"dry-run", 'n', OPTION_FLAG, AT(dry_run), NULL, "prune: say what would go, and keep it", NULL, 0, 0},
};

struct pruned {
    const struct cli *cli;
    struct text text;            /* a line for each, for people */
    struct json_object *handles; /* for programs */
};

static void note_pruned(void *context, const struct journal_entry *entry, int64_t bytes)
{
    struct pruned *pruned = context;
    json_object_array_add(pruned->handles, json_object_new_string(entry->handle));
    report_add_time(&pruned->text, entry->created_wall_ms);
    text_addf(&pruned->text, "  %s  %lld bytes\n", entry->handle, (long long)bytes);
}

/* Takes `pruned->handles` with it. */
static int print_pruned(const struct pruned *pruned, size_t removed, int64_t bytes)
{
    const struct cli *cli = pruned->cli;
    if (cli->options.json) {
        struct json_object *document = report_document(cli, EXITS[OUTCOME_DONE].name, 0);
        json_add_integer(document, "removed", (int64_t)removed);
        json_add_integer(document, "bytes", bytes);
        json_object_object_add(document, "journals", json_object_get(pruned->handles));
        json_add_boolean(document, "dry_run", cli->options.dry_run);
        return report_json(cli, document, 0);
    }
    _cleanup_(text_done) struct text text = {0};
    text_append(&text, pruned->text.bytes ? pruned->text.bytes : "", pruned->text.length);
    if (cli->options.quiet)
        text_clear(&text);
    else
        text_addf(&text, "%zu journal%s %s, %lld bytes\n", removed, removed == 1 ? "" : "s",
            cli->options.dry_run ? "would go" : "removed", (long long)bytes);
    return report_print(cli, &text, 0);
}

static int prune(struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    struct machine machine = {0};
    size_t removed = 0;
    int64_t bytes = 0;
    struct pruned pruned = {.cli = cli, .handles = json_object_new_array()};
    struct retention retention = {
        .age_ms = cli->options.older_ms >= 0 ? cli->options.older_ms : RETENTION_AGE_DEFAULT_MS,
        .keep = cli->options.keep >= 0 ? (size_t)cli->options.keep : RETENTION_KEEP_DEFAULT,
        .dry_run = cli->options.dry_run,
        .removed = note_pruned,
        .context = &pruned,
    };
    enum result r = machine_read(&machine, &err);
    if (r == RESULT_OK)
        r = retention_prune(NULL, &machine, clock_system(), &retention, &removed, &bytes, &err);
    int status = r == RESULT_OK ? print_pruned(&pruned, removed, bytes) : report_error(cli, &err);
    text_done(&pruned.text);
    json_object_put(pruned.handles);
    return status;
}

static const char *standing(const struct journal_entry *entry)
{
    static const char *const WORDS[] = {
        [OWNER_UNKNOWN] = "unknown", [OWNER_RUNNING] = "running", [OWNER_GONE] = "ended"};
    return WORDS[entry->liveness.verdict];
}

static int print_json(const struct cli *cli, const struct journal_index *index)
{
    struct json_object *document = report_document(cli, EXITS[OUTCOME_DONE].name, 0);
    struct json_object *journals = json_object_new_array();
    for (size_t i = 0; i < index->count; i++) {
        const struct journal_entry *entry = &index->items[i];
        struct json_object *json = json_object_new_object();
        json_add_string(json, "handle", entry->handle);
        json_object_object_add(json, "path", json_from_bytes(entry->path, strlen(entry->path)));
        json_object_object_add(json, "created_at", report_time_json(entry->created_wall_ms));
        json_add_string(json, "owner", owner_verdict_name(entry->liveness.verdict));
        json_add_string(json, "owner_why", entry->liveness.why);
        json_object_array_add(journals, json);
    }
    json_object_object_add(document, "journals", journals);
    return report_json(cli, document, 0);
}

static int print_index(const struct cli *cli, const struct journal_index *index)
{
    _cleanup_(text_done) struct text text = {0};
    if (cli->options.json)
        return print_json(cli, index);
    for (size_t i = 0; i < index->count; i++) {
        report_add_time(&text, index->items[i].created_wall_ms);
        text_addf(&text, "  %s  %-7s  ", index->items[i].handle, standing(&index->items[i]));
        look_add_foreign(&cli->out, &text, index->items[i].path);
        text_add(&text, "\n");
    }
    if (index->count == 0 && !cli->options.quiet)
        text_add(&text, "no journal yet\n");
    return report_print(cli, &text, 0);
}

static int list(struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    struct machine machine = {0};
    struct journal_index index = {0};
    enum result r = machine_read(&machine, &err);
    if (r == RESULT_OK)
        r = journal_index_read(NULL, &machine, &index, &err);
    if (r != RESULT_OK)
        return report_error(cli, &err);
    int status = print_index(cli, &index);
    journal_index_done(&index);
    return status;
}

static const struct verb VERBS[] = {{"list", 1, list}, {"prune", 1, prune}};

static int journal_run(struct cli *cli)
{
    return verb_run(cli, VERBS, ARRAY_SIZE(VERBS), "list");
}

const struct command COMMAND_JOURNAL = {
    .name = "journal",
    .group = GROUP_KEEP,
    .synopsis = "journal list | prune [--older DUR] [--keep N] [--dry-run]",
    .summary = "the journals on this machine; remove old ones",
    .details = "Running and unreadable journals are never removed.",
    .options = OPTIONS,
    .option_count = ARRAY_SIZE(OPTIONS),
    .words_max = 2,
    .run = journal_run,
};
