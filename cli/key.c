/* `tenure key`: shows, makes, and trusts signing keys. */
#include <string.h>

#include "base/json_table.h"
#include "base/memory.h"
#include "cli/report.h"
#include "cli/words.h"
#include "completion/proof/keys.h"

static int print_key(const struct cli *cli, const struct public_key *key, const char *done)
{
    _cleanup_(text_done) struct text text = {0};
    _cleanup_(mem_free) char *pem = NULL;
    public_key_pem(key, &pem);
    if (cli->options.json) {
        struct json_object *document = report_document(cli, EXITS[OUTCOME_DONE].name, 0);
        json_add_string(document, "key_id", key->id);
        json_object_object_add(
            document, "file", key->origin ? json_from_bytes(key->origin, strlen(key->origin)) : NULL);
        json_add_string(document, "public_key", pem);
        return report_json(cli, document, 0);
    }
    if (done)
        text_addf(&text, "%s ", done);
    text_addf(&text, "%s\n", key->id);
    if (!done)
        text_add(&text, pem);
    return report_print(cli, &text, 0);
}

static int show(struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    struct signing_key key = {0};
    if (key_load(NULL, &key, &err) != RESULT_OK)
        return report_error(cli, &err);
    int status = print_key(cli, &key.public, NULL);
    signing_key_done(&key);
    return status;
}

static int make(struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(public_key_done) struct public_key key = {0};
    const struct words *words = &cli->options.words;
    if (key_make(NULL, words->count > 1 ? words->items[1] : "default", &key, &err) != RESULT_OK)
        return report_error_as(cli, &err, OUTCOME_REFUSED);
    return print_key(cli, &key, "made");
}

static int trust(struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(public_key_done) struct public_key key = {0};
    const struct words *words = &cli->options.words;
    if (words->count < 2) {
        error_set(&err, RESULT_INVALID, 0, "tenure key trust: no file is given");
        error_remedy(&err, "tenure key trust FILE, with a public key in PEM");
        return report_error(cli, &err);
    }
    if (key_trust(words->items[1], &key, &err) != RESULT_OK)
        return report_error_as(cli, &err, OUTCOME_REFUSED);
    return print_key(cli, &key, "trusted");
}

static const struct verb VERBS[] = {{"show", 1, show}, {"new", 2, make}, {"trust", 2, trust}};

static int key_run(struct cli *cli)
{
    return verb_run(cli, VERBS, ARRAY_SIZE(VERBS), "show");
}

const struct command COMMAND_KEY = {
    .name = "key",
    .group = GROUP_KEEP,
    .synopsis = "key show | new [NAME] | trust FILE",
    .summary = "the key that signs, and the keys that are trusted",
    .words_max = 2,
    .run = key_run,
};
