/* `tenure verify`: checks a Proof, of a commit from the store or from a file without one. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json_table.h"
#include "base/memory.h"
#include "cli/report.h"
#include "cli/stored.h"
#include "cli/trust.h"
#include "cli/verdict.h"
#include "completion/proof/verify.h"
#include "completion/repository/candidate.h"

#define AT(field) offsetof(struct options, field)

static const struct option OPTIONS[] = {
    {"key", 0, OPTION_LIST, AT(keys), "FILE", "trust this public key, and no other; may be given again", NULL,
        0, 0},
    {"commit", 0, OPTION_STRING, AT(commit), "COMMIT",
        "what the Proof in a file must be about (default: HEAD, in a "
        "repository)",
        NULL, 0, 0},
    {"partial", 0, OPTION_FLAG, AT(partial), NULL, "accept a Proof of some producers only", NULL, 0, 0},
};

/* ---- what is checked ---- */

struct subject {
    struct text envelope;
    char *commit, *tree; /* what it must be about; NULL: whatever it says */
    char *name;          /* for people */
    const char *asked;   /* the commit as typed */
};

static void subject_done(struct subject *subject)
{
    text_done(&subject->envelope);
    free(subject->commit);
    free(subject->tree);
    free(subject->name);
}

static bool is_file(const char *typed)
{
    struct stat stat_of;
    return strcmp(typed, "-") == 0 || strchr(typed, '/') == typed ||
           (stat(typed, &stat_of) == 0 && S_ISREG(stat_of.st_mode));
}

static enum result read_stdin(struct text *ret, struct error *err)
{
    char buffer[8192];
    ssize_t length;
    while ((length = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0) {
        text_append(ret, buffer, (size_t)length);
        if (ret->length > JSON_LIMIT_BYTES)
            return error_set(err, RESULT_INVALID, 0, "standard input: longer than a Proof can be");
    }
    return length == 0 ? RESULT_OK : error_errno(err, errno, "cannot read standard input");
}

/* In a repository a Proof must be about what lies there, unless told otherwise: that is what is asked in CI.
 */
static enum result want_tree(const struct cli *cli, struct subject *ret, struct error *err)
{
    _cleanup_(error_done) struct error ignored = {0};
    if (cli->options.commit)
        return repository_resolve(collect_runner(), ".", cli->options.commit, &ret->commit, &ret->tree, err);
    (void)!repository_resolve(collect_runner(), ".", "HEAD", &ret->commit, &ret->tree, &ignored);
    return RESULT_OK;
}

static enum result take_file(const struct cli *cli, const char *typed, struct subject *ret, struct error *err)
{
    enum result r = strcmp(typed, "-") == 0
                        ? read_stdin(&ret->envelope, err)
                        : file_read(AT_FDCWD, typed, false, JSON_LIMIT_BYTES, &ret->envelope, err);
    ret->name = mem_string(typed);
    ret->asked = "HEAD";
    return r == RESULT_OK ? want_tree(cli, ret, err) : r;
}

static enum result neither(const char *typed, struct error *err)
{
    _cleanup_(mem_free) char *here = getcwd(NULL, 0);
    error_set(err, RESULT_ABSENT, 0, "%s is neither a commit of this repository nor a file (%s/%s)", typed,
        here ? here : ".", typed);
    return error_remedy(
        err, "name a commit, or a file that holds a Proof: tenure proof COMMIT >FILE makes one");
}

static enum result take_stored(const struct cli *cli, const char *typed, const struct key_ring *ring,
    struct subject *ret, struct error *err)
{
    _cleanup_(stored_proof_done) struct stored_proof stored = {0};
    _cleanup_(error_done) struct error why = {0};
    enum result r = stored_proof_find(cli, typed, ring, &stored, &why);
    ret->asked = typed;
    ret->commit = STEAL(stored.commit);
    ret->tree = STEAL(stored.tree);
    ret->name = mem_string(typed);
    if (r == RESULT_OK)
        text_append(&ret->envelope, stored.proof.envelope, stored.proof.envelope_length);
    else if (r == RESULT_ABSENT && !ret->tree)
        return neither(typed, err);
    return r == RESULT_OK ? r : error_move(err, &why);
}

/* ---- what is said ---- */

static int print_accepted(
    const struct cli *cli, const struct subject *subject, const struct verify_result *result)
{
    const struct statement *statement = &result->statement;
    _cleanup_(text_done) struct text text = {0}, sentence = {0};
    if (cli->options.quiet)
        return 0;
    text_addf(&sentence, "%s is proved at %.12s", statement->repository, statement->commit);
    verdict_line(&cli->out, true, sentence.bytes, NULL, -1, &text);
    text_addf(&text, "  commit  %s\n  tree    %s\n  key     %s", statement->commit, statement->tree,
        result->key->id);
    if (result->key->origin) {
        text_add(&text, "\n  from    ");
        look_add_foreign(&cli->out, &text, result->key->origin);
    }
    text_add(&text, "\n  signed  ");
    report_add_time(&text, statement->wall_ms);
    text_addf(&text, "\n  covers  %zu producer%s%s\n", statement->evidence_count,
        statement->evidence_count == 1 ? "" : "s",
        statement->complete ? "" : ", not all of the configuration");
    if (subject->commit && strcmp(subject->commit, statement->commit) != 0)
        text_addf(&text, "  asked   %s %.12s has the same tree\n",
            cli->options.commit ? cli->options.commit : subject->asked, subject->commit);
    if (!subject->tree)
        text_add(&text, "  it was compared with no tree: there is no repository here\n");
    return report_print(cli, &text, 0);
}

static struct json_object *statement_json(const struct verify_result *result)
{
    const struct statement *statement = &result->statement;
    struct json_object *json = json_object_new_object();
    if (!statement->tree)
        return json_object_put(json), NULL;
    json_add_string(json, "id", result->id);
    json_object_object_add(
        json, "repository", json_from_bytes(statement->repository, strlen(statement->repository)));
    json_add_string(json, "commit", statement->commit);
    json_add_string(json, "tree", statement->tree);
    json_add_string(json, "key_id", result->key ? result->key->id : NULL);
    json_object_object_add(json, "signed_at", report_time_json(statement->wall_ms));
    json_add_string(json, "attempt", statement->attempt_id);
    json_add_integer(json, "fence", statement->fence);
    json_add_boolean(json, "complete", statement->complete);
    return json;
}

static int print_json(const struct cli *cli, const struct verify_result *result, const struct error *err)
{
    enum outcome outcome = err ? OUTCOME_NEGATIVE : OUTCOME_DONE;
    int status = report_status(cli, outcome);
    struct json_object *document = report_document(cli, EXITS[outcome].name, status);
    json_add_boolean(document, "verified", err == NULL);
    json_add_string(document, "refusal", err ? verify_refusal_name(result->refusal) : NULL);
    json_object_object_add(document, "proof", statement_json(result));
    if (err)
        json_object_object_add(document, "error", report_error_json(err));
    return report_json(cli, document, status);
}

static int check(const struct cli *cli, const struct subject *subject, const struct key_ring *ring)
{
    _cleanup_(error_done) struct error err = {0};
    struct verify_result result = {0};
    struct verify_request request = {
        .envelope = subject->envelope.bytes ? subject->envelope.bytes : "",
        .length = subject->envelope.length,
        .ring = ring,
        .tree = subject->tree, /* another commit of the same tree is as good */
        .partial_allowed = cli->options.partial,
    };
    enum result r = proof_verify(&request, &result, &err);
    if (r != RESULT_OK && result.refusal == VERIFY_OTHER_TREE && !err.remedy)
        error_remedy(&err, "name what it must be about: --commit COMMIT");
    int status = cli->options.json ? print_json(cli, &result, r == RESULT_OK ? NULL : &err)
                 : r == RESULT_OK  ? print_accepted(cli, subject, &result)
                                   : report_error_as(cli, &err, OUTCOME_NEGATIVE);
    verify_result_done(&result);
    return status;
}

static int verify_run(struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(subject_done) struct subject subject = {0};
    _cleanup_(key_ring_done) struct key_ring ring = {0};
    const char *typed = cli->options.words.count > 0 ? cli->options.words.items[0] : "HEAD";
    if (trust_read(cli, &ring, &err) != RESULT_OK)
        return report_error_as(cli, &err, OUTCOME_REFUSED);
    enum result r = is_file(typed) ? take_file(cli, typed, &subject, &err)
                                   : take_stored(cli, typed, &ring, &subject, &err);
    if (r == RESULT_OK)
        return check(cli, &subject, &ring);
    /* The commit is there and its Proof is not: that is a verdict. */
    bool verdict = r == RESULT_ABSENT && subject.tree && !is_file(typed);
    return report_error_as(cli, &err, verdict ? OUTCOME_NEGATIVE : outcome_of_result(r));
}

const struct command COMMAND_VERIFY = {
    .name = "verify",
    .group = GROUP_CHECK,
    .synopsis = "verify [COMMIT|FILE] [--key FILE]...",
    .summary = "check a Proof: which tree, which commit, by which key, when",
    .details = "A FILE (or - for standard input) needs no store. In a repository it must be about HEAD's "
               "tree, or about\n"
               "--commit. Trusted are the keys of .tenure/keys/ and your own; with --key only those.",
    .options = OPTIONS,
    .option_count = ARRAY_SIZE(OPTIONS),
    .words_max = 1,
    .run = verify_run,
};
