/* `tenure store`: where attempts are kept, and the version of its schema. */
#include <string.h>

#include "base/json_table.h"
#include "cli/here.h"
#include "cli/report.h"
#include "cli/words.h"

static int print_json(const struct cli *cli, const struct store_status *status, const char *id)
{
    struct json_object *document = report_document(cli, EXITS[OUTCOME_DONE].name, 0);
    struct json_object *store = json_object_new_object();
    json_object_object_add(store, "location", json_from_bytes(status->location, strlen(status->location)));
    json_add_string(store, "id", id);
    json_add_integer(store, "schema_version", status->schema_version);
    json_add_integer(store, "newest_version", status->newest_version);
    json_add_integer(store, "unfinished", status->unfinished);
    json_add_integer(store, "ended", status->ended);
    json_add_integer(store, "evidence", status->evidence);
    json_add_integer(store, "proofs", status->proofs);
    json_object_object_add(document, "store", store);
    return report_json(cli, document, 0);
}

static int print(const struct cli *cli, const struct store_status *status, const char *id)
{
    _cleanup_(text_done) struct text text = {0};
    if (cli->options.json)
        return print_json(cli, status, id);
    if (cli->options.quiet)
        return 0;
    text_add(&text, "store     ");
    look_add_foreign(&cli->out, &text, status->location);
    text_addf(&text, "\nid        %s\nschema    version %lld", id, (long long)status->schema_version);
    if (status->schema_version < status->newest_version)
        text_addf(&text, " (version %lld is known: tenure store migrate)", (long long)status->newest_version);
    text_addf(&text, "\nattempts  %lld unfinished, %lld ended\nevidence  %lld\nproofs    %lld\n",
        (long long)status->unfinished, (long long)status->ended, (long long)status->evidence,
        (long long)status->proofs);
    return report_print(cli, &text, 0);
}

static int look(struct cli *cli, enum store_access access)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(here_done) struct here here = {0};
    _cleanup_(store_cleanup) struct store *store = NULL;
    struct store_status status = {0};
    here_look(false, &here);
    enum result r = here_store_open(cli, &here, access, &store, &err);
    if (r == RESULT_OK && access == STORE_MIGRATE)
        r = store_migrate(store, &err);
    if (r == RESULT_OK)
        r = store_status(store, &status, &err);
    int exit = r == RESULT_OK ? print(cli, &status, store_id(store)) : report_error(cli, &err);
    store_status_done(&status);
    return exit;
}

static int show_status(struct cli *cli)
{
    return look(cli, STORE_READ);
}

static int migrate(struct cli *cli)
{
    return look(cli, STORE_MIGRATE);
}

static const struct verb VERBS[] = {{"status", 1, show_status}, {"migrate", 1, migrate}};

static int store_run(struct cli *cli)
{
    return verb_run(cli, VERBS, ARRAY_SIZE(VERBS), "status");
}

const struct command COMMAND_STORE = {
    .name = "store",
    .group = GROUP_KEEP,
    .synopsis = "store status | migrate",
    .summary = "where attempts are kept, and its schema",
    .words_max = 2,
    .run = store_run,
};
