#include "publish/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "publish/collected.h"
#include "publish/statements.h"
#include "supervisor/exits.h"

#define FILE_LIMIT_BYTES ((size_t)64 * 1024 * 1024)
#define LOOK_MS          INT64_C(10000) /* for the look which database an address leads to */
#define COLLECTED_NAME   "collected"

void publish_result_done(struct publish_result *result)
{
    hold_result_done(&result->end);
    error_done(&result->failure);
    free(STEAL(result->handle));
    free(STEAL(result->attempt_id));
}

int publish_exit(const struct publish_result *result)
{
    if (result->stop_signal)
        return EXIT_SIGNAL_BASE + result->stop_signal;
    if (result->lost)
        return EXITS[OUTCOME_LOST].status;
    return EXITS[result->published ? OUTCOME_DONE : OUTCOME_NEGATIVE].status;
}

/* ---- before anything is claimed ---- */

static enum result read_statements(const char *file, struct statements *ret, struct error *err)
{
    _cleanup_(text_done) struct text text = {0};
    enum result r = file_read(AT_FDCWD, file, false, FILE_LIMIT_BYTES, &text, err);

    if (r == RESULT_ABSENT || r == RESULT_SYSTEM)
        err->code = RESULT_INVALID; /* nothing has run, and another file can be named */
    return r == RESULT_OK ? statements_split(file, text.bytes ? text.bytes : "", text.length, ret, err)
                          : RESULT_INVALID;
}

static enum result database_of(const char *url, char **ret, struct error *err)
{
    struct machine machine;
    struct store_options options = {
        .url = url, .clock = clock_system(), .machine = &machine, .deadline_ms = LOOK_MS};
    enum result r = machine_read(&machine, err);

    return r == RESULT_OK ? publication_database(&options, ret, err) : r;
}

static enum result fail_elsewhere(const char *data_url, const char *why, struct error *err)
{
    _cleanup_(mem_free) char *printable = store_url_printable(data_url);

    error_set(err, RESULT_INVALID, 0, "%s %s: one transaction cannot span two databases", printable, why);
    return error_remedy(err, "keep the store in the database of the rows: --store with that address");
}

/* What cannot be reached is not shown to be the same, and is refused as another would be. */
static enum result check_data_store(const struct publish_options *options, struct error *err)
{
    const char *data_url = options->data_store_url, *store_url = options->hold.store_url;
    _cleanup_(mem_free) char *ours = NULL, *theirs = NULL;
    _cleanup_(error_done) struct error why = {0};
    enum result r = RESULT_OK;

    if (!data_url || (store_url && strcmp(data_url, store_url) == 0))
        return RESULT_OK;
    r = database_of(store_url, &ours, err);
    if (r != RESULT_OK)
        return r;
    if (database_of(data_url, &theirs, &why) != RESULT_OK) {
        _cleanup_(mem_free) char *text =
            mem_format("cannot be compared with the store's database (%s)", why.message);
        return fail_elsewhere(data_url, text, err);
    }
    return strcmp(ours, theirs) == 0 ? RESULT_OK
                                     : fail_elsewhere(data_url, "is not the database of the store", err);
}

/* ---- collecting ---- */

struct publishing {
    const struct publish_options *options;
    struct hold *hold;
    struct statements statements;
    char *collected; /* path of what the collector printed; NULL: nothing is collected */
    struct publish_result *result;
};

static void publishing_done(struct publishing *publishing)
{
    statements_done(&publishing->statements);
    free(publishing->collected);
}

static void take_outcome(struct publishing *publishing, struct job_outcome *outcome)
{
    struct publish_result *result = publishing->result;

    result->collector_exit = outcome->exit_code;
    result->collector_signal = outcome->signal;
    if (outcome->verdict == JOB_PASSED || outcome->verdict == JOB_STOPPED)
        return;
    if (outcome->verdict == JOB_NOT_STARTED)
        error_set(&result->failure, RESULT_SYSTEM, outcome->failure.errnum,
            "the collector could not be started: %s",
            outcome->text ? outcome->text : spawn_step_name(outcome->failure.step));
    else if (outcome->signal > 0)
        error_set(&result->failure, RESULT_INVALID, 0, "the collector was ended by SIG%s",
            sigabbrev_np(outcome->signal) ? sigabbrev_np(outcome->signal) : "nal");
    else
        error_set(&result->failure, RESULT_INVALID, 0, "the collector failed with exit status %d",
            outcome->exit_code);
}

/* OK also when it failed: `failure` tells. */
static enum result collect(struct publishing *publishing, struct error *err)
{
    const char *const argv[] = {"/bin/sh", "-c", publishing->options->collect, NULL};
    _cleanup_(fd_cleanup) int fd = -1;
    struct job_outcome outcome = {.verdict = JOB_VERDICT_MAX};
    struct job_request request = {.name = "collector", .argv = argv, .command = publishing->options->collect};
    enum result r = RESULT_OK;

    publishing->collected =
        mem_format("%s/out/" COLLECTED_NAME, journal_directory(hold_journal(publishing->hold)));
    fd = open(publishing->collected, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_errno(err, errno, "cannot make %s", publishing->collected);
    request.stdout_fd = fd;
    supervisor_progress(hold_supervisor(publishing->hold), "collecting", 0, 0);
    r = hold_run_job(publishing->hold, &request, &outcome, err);
    if (r == RESULT_OK && outcome.verdict != JOB_VERDICT_MAX)
        take_outcome(publishing, &outcome);
    job_outcome_done(&outcome);
    return r;
}

/* ---- publishing ---- */

static enum result run_statement(struct publication *publication, const char *sql, struct error *err)
{
    struct publication_counts ignored = {0};
    struct publication_statement statement = {.sql = sql};

    return publication_query(publication, &statement, &ignored, err);
}

static enum result load_collected(
    struct publishing *publishing, struct publication *publication, struct error *err)
{
    const char *columns = publishing->options->columns;
    _cleanup_(mem_free) char *create =
        mem_format("CREATE TEMPORARY TABLE " COLLECTED_NAME " (%s) ON COMMIT DROP",
            columns ? columns : "number bigint, line text");
    struct publication_counts counts = {0};
    struct collected *collected = NULL;
    enum result r =
        collected_open(publishing->collected, columns ? COLLECTED_RAW : COLLECTED_LINES, &collected, err);

    if (r != RESULT_OK)
        return r;
    r = run_statement(publication, create, err);
    if (r != RESULT_OK)
        error_wrap(err, "the table of what was collected: ");
    else
        r = publication_copy(publication,
            columns ? "COPY pg_temp." COLLECTED_NAME " FROM STDIN (FORMAT csv)"
                    : "COPY pg_temp." COLLECTED_NAME " FROM STDIN",
            collected_read, collected, &counts, err);
    collected_close(collected);
    publishing->result->collected = r == RESULT_OK ? counts.copied : 0;
    return r;
}

static enum result run_statements(struct publishing *publishing, struct publication *publication,
    struct publication_counts *counts, struct error *err)
{
    const struct statements *statements = &publishing->statements;

    for (size_t i = 0; i < statements->count; i++) {
        struct publication_statement statement = {.sql = statements->items[i].sql,
            .file = publishing->options->file,
            .line = statements->items[i].line};
        enum result r = publication_query(publication, &statement, counts, err);
        if (r != RESULT_OK)
            return r;
    }
    return RESULT_OK;
}

static enum result publish(struct publishing *publishing, struct store *store,
    const struct credential *credential, const struct settlement *settlement, struct error *err)
{
    struct publication_counts counts = {0};
    struct publication *publication = NULL;
    enum result r = publication_begin(store, credential, &publication, err);

    if (r == RESULT_OK && publishing->collected)
        r = load_collected(publishing, publication, err);
    if (r == RESULT_OK)
        r = run_statements(publishing, publication, &counts, err);
    publishing->result->counts = counts;
    if (r == RESULT_OK)
        return publication_commit(&publication, settlement, err);
    publication_abort(&publication);
    return r;
}

/* hold_ending.settle: each time anew. */
static enum result publish_anew(void *context, struct store *store, const struct credential *credential,
    const struct settlement *settlement, struct error *err)
{
    struct publishing *publishing = context;
    struct error *failure = &publishing->result->failure;
    enum result r = RESULT_OK;

    error_done(failure);
    r = publish(publishing, store, credential, settlement, failure);
    if (r != RESULT_OK)
        error_set(err, r, failure->errnum, "%s", failure->message);
    if (r != RESULT_OK && failure->remedy)
        error_remedy(err, "%s", failure->remedy);
    return r;
}

/* ---- the story ---- */

static struct hold_ending ending_of(struct publishing *publishing)
{
    const struct error *failure = &publishing->result->failure;

    if (failure->code != RESULT_OK)
        return (struct hold_ending){.state = ATTEMPT_FAILED,
            .reason_code = "collector-failed",
            .reason_text = failure->message,
            .exit_code = EXITS[OUTCOME_NEGATIVE].status};
    return (struct hold_ending){
        .state = ATTEMPT_PASSED,
        .reason_code = "passed",
        .settle = publish_anew,
        .settle_context = publishing,
    };
}

static void end_result(struct publish_result *result, enum result r)
{
    bool settled = r == RESULT_OK || r == RESULT_RETIRED;

    result->lost = result->end.lost;
    result->stop_signal = result->end.signal;
    result->published = r == RESULT_OK && !result->lost && result->end.state == ATTEMPT_PASSED;
    if (!result->published) {
        result->counts = (struct publication_counts){0};
        result->collected = 0;
    }
    if (result->published || (settled && (result->lost || result->stop_signal)))
        error_done(&result->failure);
}

static enum result hold_and_publish(struct publishing *publishing, struct error *err)
{
    struct publish_result *result = publishing->result;
    _cleanup_(error_done) struct error why = {0}, unsettled = {0};
    enum result ran = RESULT_OK, r = RESULT_OK;
    struct hold_ending ending;

    result->handle = mem_string(journal_handle(hold_journal(publishing->hold)));
    result->attempt_id = mem_string(hold_attempt(publishing->hold)->id);
    result->fence = hold_attempt(publishing->hold)->fence;
    if (publishing->options->collect)
        ran = collect(publishing, &why);
    if (ran != RESULT_OK)
        ending = (struct hold_ending){.state = ATTEMPT_FAILED,
            .reason_code = "internal",
            .reason_text = why.message,
            .exit_code = EXITS[outcome_of_result(ran)].status};
    else
        ending = ending_of(publishing);
    r = hold_end(publishing->hold, &ending, &result->end, &unsettled);
    end_result(result, r);
    if (ran != RESULT_OK)
        return error_move(err, &why);
    return r == RESULT_OK || r == RESULT_RETIRED ? RESULT_OK : error_move(err, &unsettled);
}

enum result publish_run(const struct publish_options *options, struct publish_result *ret,
    struct pending *ret_pending, struct error *err)
{
    const struct publish_row *row = options->row;
    _cleanup_(mem_free) char *what =
        mem_format("%s:%s=%s, by %s", row->table, row->key, row->value, options->file);
    const struct row_source source = {
        .table = row->table, .key = row->key, .value = row->value, .soft_delete = options->soft_delete};
    struct hold_options hold_options = options->hold;
    _cleanup_(publishing_done) struct publishing publishing = {.options = options, .result = ret};
    enum result r = read_statements(options->file, &publishing.statements, err);

    *ret = (struct publish_result){.collector_exit = -1, .collector_signal = -1};
    if (r == RESULT_OK)
        r = store_check_rows(options->hold.store_url, err);
    if (r == RESULT_OK)
        r = check_data_store(options, err);
    if (r != RESULT_OK)
        return r;
    hold_options.kind = KIND_PUBLICATION;
    hold_options.row = &source;
    hold_options.what = what;
    hold_options.bind_now = true;
    r = hold_begin(&hold_options, &publishing.hold, ret_pending, &ret->stop_signal, err);
    return r == RESULT_OK ? hold_and_publish(&publishing, err) : r;
}
