/* `tenure proof`: prints the Proof of a commit, byte for byte as it was signed. */
#include <string.h>

#include "base/json_table.h"
#include "base/memory.h"
#include "cli/here.h"
#include "cli/report.h"
#include "cli/stored.h"
#include "cli/trust.h"

static int print_json(const struct cli *cli, const struct proof *proof)
{
    struct json_object *document = report_document(cli, EXITS[OUTCOME_DONE].name, 0);
    struct json_object *json = json_object_new_object();
    json_add_string(json, "id", proof->id);
    json_add_string(json, "attempt", proof->attempt_id);
    json_add_integer(json, "fence", proof->fence);
    json_add_string(json, "commit", proof->commit);
    json_add_string(json, "tree", proof->tree);
    json_add_string(json, "key_id", proof->key_id);
    json_object_object_add(json, "at", report_time_json(proof->wall_ms));
    json_object_object_add(json, "envelope", json_from_bytes(proof->envelope, proof->envelope_length));
    json_object_object_add(document, "proof", json);
    return report_json(cli, document, 0);
}

/* Beside the envelope, so that this can be redirected alone. */
static void summarize(const struct cli *cli, const struct proof *proof)
{
    _cleanup_(text_done) struct text text = {0};
    if (cli->options.quiet)
        return;
    text_addf(&text, "Proof %s\n  commit  %s\n  tree    %s\n  key     %s\n  signed  ", proof->id,
        proof->commit, proof->tree, proof->key_id);
    report_add_time(&text, proof->wall_ms);
    text_add(&text, "\n");
    report_complain(&text);
}

static int print(const struct cli *cli, const struct proof *proof)
{
    _cleanup_(text_done) struct text text = {0};
    if (cli->options.json)
        return print_json(cli, proof);
    summarize(cli, proof);
    text_append(&text, proof->envelope, proof->envelope_length);
    return report_print(cli, &text, 0);
}

static int proof_run(struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(stored_proof_done) struct stored_proof stored = {0};
    _cleanup_(key_ring_done) struct key_ring ring = {0};
    const char *typed = cli->options.words.count > 0 ? cli->options.words.items[0] : "HEAD";
    if (trust_read(cli, &ring, &err) != RESULT_OK)
        return report_error_as(cli, &err, OUTCOME_REFUSED);
    enum result r = stored_proof_find(cli, typed, &ring, &stored, &err);
    if (r == RESULT_OK)
        return print(cli, &stored.proof);
    return report_error_as(
        cli, &err, stored.tree && r == RESULT_ABSENT ? OUTCOME_NEGATIVE : outcome_of_result(r));
}

const struct command COMMAND_PROOF = {
    .name = "proof",
    .group = GROUP_CHECK,
    .synopsis = "proof [COMMIT]",
    .summary = "print the Proof of a commit (default: HEAD)",
    .details = "The envelope goes to standard output exactly as it was signed, a summary to standard error.",
    .words_max = 1,
    .run = proof_run,
};
