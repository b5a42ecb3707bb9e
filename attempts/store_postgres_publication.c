/*
 * The one short transaction that publishes, on the store's own connection. Here alone something is kept in
 * the session between two statements, and for no longer than the transaction: a pooler in transaction mode
 * may still stand between.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/publication-private.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "base/text.h"
#include "generated/attempts_sql.h"

#define ABORT_MS  INT64_C(2000) /* for the answer to ROLLBACK: a connection that ends does as well */
#define COMMIT_MS INT64_C(5000) /* at the least: what was locked in time may be committed a little late */
#define SLACK_MS  INT64_C(1000) /* the server's clock and ours do not stop a statement at one moment */
#define OURS      "TN"          /* class of what our own functions raise: tenure.lose() */
#define COPY_SIZE ((size_t)64 * 1024)

struct publication {
    struct postgres_store *store;
    struct credential credential;
    int64_t until_ms; /* the lock stands for the lease until then */
    bool failed;      /* a statement was refused: only abort is possible */
};

static void publication_free(struct publication *publication)
{
    explicit_bzero(&publication->credential, sizeof publication->credential);
    free(publication);
}

/* ---- what the server refused ---- */

/* Of a position in characters, as servers count. */
static int64_t lines_before(const char *sql, int64_t position)
{
    int64_t lines = 0;

    for (int64_t character = 1; *sql && character < position; sql++) {
        lines += *sql == '\n';
        character += (sql[1] & 0xc0) != 0x80;
    }
    return lines;
}

static void add_place(const struct postgres_store *store, const PGresult *result,
    const struct publication_statement *statement, struct text *ret)
{
    const char *digits = store->pq->resultErrorField(result, PG_DIAG_STATEMENT_POSITION);
    int64_t position = 0, line = statement->line ? statement->line : 1;

    if (digits && text_parse_int(digits, 1, INT64_MAX, &position))
        line += lines_before(statement->sql, position);
    if (statement->file)
        text_addf(ret, "%s:%" PRId64 ": ", statement->file, line);
    else if (position)
        text_addf(ret, "line %" PRId64 ": ", line);
}

/* The server's own words: what, and, where it says that, about which value. */
static char *words_of(
    const struct postgres_store *store, const PGresult *result, const struct publication_statement *statement)
{
    static const int FIELDS[] = {PG_DIAG_MESSAGE_PRIMARY, PG_DIAG_MESSAGE_DETAIL};
    struct text words = {0};

    add_place(store, result, statement, &words);
    for (size_t i = 0; i < ARRAY_SIZE(FIELDS); i++) {
        const char *field = store->pq->resultErrorField(result, FIELDS[i]);
        if (!field)
            continue;
        if (i > 0)
            text_add(&words, ": ");
        text_add_printable(&words, field, strcspn(field, "\n"), false);
    }
    if (strncmp(postgres_sqlstate(store, result), OURS, strlen(OURS)) != 0)
        text_addf(&words, " (SQLSTATE %s)", postgres_sqlstate(store, result));
    return text_steal(&words);
}

/* Of the caller's statements nearly everything is an answer about them; the table speaks of the store's own.
 */
static enum result meaning_of(const struct publication *publication, const char *sqlstate)
{
    const struct sqlstate_meaning *meaning = sqlstate_look_up(sqlstate);

    if (strcmp(sqlstate, "57014") == 0) /* query_canceled */
        return real_ms() + SLACK_MS >= publication->until_ms ? RESULT_LAPSED : RESULT_INVALID;
    if (meaning->remedy != REMEDY_NONE || strncmp(sqlstate, OURS, strlen(OURS)) == 0 ||
        meaning->result == RESULT_DENIED)
        return meaning->result;
    return RESULT_INVALID;
}

static enum result statement_refused(struct publication *publication, const PGresult *result,
    const struct publication_statement *statement, struct error *err)
{
    struct postgres_store *store = publication->store;
    const char *sqlstate = postgres_sqlstate(store, result);
    _cleanup_(mem_free) char *words = words_of(store, result, statement);
    enum result r = meaning_of(publication, sqlstate);

    error_set(err, r, 0, "%s", words);
    if (r == RESULT_LAPSED)
        return error_remedy(err, "give it a longer lease (--ttl)");
    if (r == RESULT_DENIED && store->connection)
        return postgres_advise(store,
            strstr(words, "temporary table")
                ? "let its owner run: GRANT TEMP ON DATABASE {database} TO {role}"
                : "let the owner GRANT to {role} what the statement needs",
            err);
    if (sqlstate_look_up(sqlstate)->remedy == REMEDY_LOST)
        postgres_disconnect(store);
    return r;
}

static enum result statement_lost(struct publication *publication, enum exchange exchange, int64_t from_ms,
    const struct publication_statement *statement, struct error *err)
{
    enum result r = postgres_fail_lost(publication->store, exchange, from_ms, err);

    if (exchange == EXCHANGE_SILENT && real_ms() + SLACK_MS >= publication->until_ms) {
        error_set(err, RESULT_LAPSED, 0, "the statement took longer than the lease");
        r = error_remedy(err, "give it a longer lease (--ttl)");
    }
    return statement->file ? error_wrap(err, "%s:%" PRId64 ": ", statement->file, statement->line) : r;
}

/* ---- one statement ---- */

static enum result fail_over(struct publication *publication, struct error *err)
{
    if (publication->store->connection)
        return error_set(
            err, RESULT_INVALID, 0, "a statement of this publication was refused: nothing can follow");
    return error_set(
        err, RESULT_UNREACHABLE, 0, "%s: the connection was lost", publication->store->printable);
}

/* After any statement the transaction must still be ours: whatever ended it, nothing more is sent. */
static bool is_in_transaction(const struct publication *publication)
{
    const struct postgres_store *store = publication->store;

    return store->connection && store->pq->transactionStatus(store->connection) == PQTRANS_INTRANS;
}

static enum result statement_answered(struct publication *publication, const PGresult *result,
    const struct publication_statement *statement, struct error *err)
{
    if (strcmp(postgres_sqlstate(publication->store, result), "00000") != 0)
        return statement_refused(publication, result, statement, err);
    if (is_in_transaction(publication))
        return RESULT_OK;
    postgres_disconnect(publication->store);
    return error_set(err, RESULT_INVALID, 0, "the statement ended the publication's transaction");
}

static enum result statement_run(struct publication *publication,
    const struct publication_statement *statement, const struct parameter *parameters, size_t count,
    PGresult **ret, struct error *err)
{
    struct postgres_store *store = publication->store;
    int64_t from_ms = real_ms();
    enum exchange end = EXCHANGE_LOST;

    if (publication->failed || !store->connection)
        return fail_over(publication, err);
    publication->failed = true; /* until it went well */
    end = postgres_exchange(store, statement->sql, parameters, count, publication->until_ms, ret);
    return end == EXCHANGE_ANSWERED ? RESULT_OK : statement_lost(publication, end, from_ms, statement, err);
}

/* Nobody has the data, or reads it, of a COPY among the statements. */
static enum result fail_copy(
    struct publication *publication, const struct publication_statement *statement, struct error *err)
{
    postgres_disconnect(publication->store);
    error_set(err, RESULT_INVALID, 0, "COPY FROM STDIN and COPY TO STDOUT cannot stand among the statements");
    if (statement->file)
        error_wrap(err, "%s:%" PRId64 ": ", statement->file, statement->line);
    return error_remedy(err, "read what the collector printed from the table: collected");
}

static bool is_status(const struct publication *publication, const PGresult *result, ExecStatusType status)
{
    return publication->store->pq->resultStatus(result) == status;
}

enum result publication_query(struct publication *publication, const struct publication_statement *statement,
    struct publication_counts *counts, struct error *err)
{
    _cleanup_(result_cleanup) PGresult *result = NULL;
    struct parameter *parameters = NULL;
    enum result r = publication_check(statement->sql, err);

    if (r != RESULT_OK)
        return r;
    parameters = mem_alloc((statement->value_count + 1) * sizeof *parameters);
    for (size_t i = 0; i < statement->value_count; i++)
        parameters[i] = parameter_text(statement->values[i]);
    r = statement_run(publication, statement, parameters, statement->value_count, &result, err);
    free(parameters);
    if (r != RESULT_OK)
        return r;
    if (is_status(publication, result, PGRES_COPY_IN) || is_status(publication, result, PGRES_COPY_OUT) ||
        is_status(publication, result, PGRES_COPY_BOTH))
        return fail_copy(publication, statement, err);
    r = statement_answered(publication, result, statement, err);
    if (r != RESULT_OK)
        return r;
    publication->failed = false;
    publication_count(publication->store->pq->cmdStatus(result), counts);
    return RESULT_OK;
}

/* ---- COPY ---- */

static enum exchange copy_send(
    struct publication *publication, const char *bytes, size_t length, const char *refusal)
{
    struct postgres_store *store = publication->store;
    int put = 0;

    do {
        enum exchange end = EXCHANGE_ANSWERED;
        put = length ? store->pq->putCopyData(store->connection, bytes, (int)length)
                     : store->pq->putCopyEnd(store->connection, refusal);
        if (put >= 0)
            end = postgres_flush(store, publication->until_ms);
        if (put < 0 || end != EXCHANGE_ANSWERED)
            return put < 0 ? EXCHANGE_LOST : end;
    } while (put == 0);
    return EXCHANGE_ANSWERED;
}

/* Everything that `read` gives, a piece at a time; what it could not read makes the server refuse the whole.
 */
static enum exchange copy_feed(struct publication *publication,
    int64_t (*read)(void *context, void *buffer, size_t size_bytes), void *context, int64_t *ret_got)
{
    _cleanup_(mem_free) char *buffer = mem_alloc(COPY_SIZE);
    enum exchange end = EXCHANGE_ANSWERED;

    do {
        *ret_got = read(context, buffer, COPY_SIZE);
        if (*ret_got > 0)
            end = copy_send(publication, buffer, (size_t)*ret_got, NULL);
    } while (*ret_got > 0 && end == EXCHANGE_ANSWERED);
    if (end == EXCHANGE_ANSWERED)
        end = copy_send(publication, NULL, 0, *ret_got < 0 ? "its data cannot be read" : NULL);
    return end;
}

enum result publication_copy(struct publication *publication, const char *sql,
    int64_t (*read)(void *context, void *buffer, size_t size_bytes), void *context,
    struct publication_counts *counts, struct error *err)
{
    const struct publication_statement statement = {.sql = sql};
    _cleanup_(result_cleanup) PGresult *begun = NULL, *result = NULL;
    int64_t from_ms = real_ms(), got = 0;
    enum exchange end = EXCHANGE_ANSWERED;
    enum result r = statement_run(publication, &statement, NULL, 0, &begun, err);

    if (r == RESULT_OK && !is_status(publication, begun, PGRES_COPY_IN)) {
        r = statement_answered(publication, begun, &statement, err);
        return r == RESULT_OK ? error_set(err, RESULT_INVALID, 0, "not a COPY FROM STDIN: %s", sql) : r;
    }
    if (r != RESULT_OK)
        return r;
    end = copy_feed(publication, read, context, &got);
    if (end == EXCHANGE_ANSWERED)
        end = postgres_results(publication->store, publication->until_ms, &result);
    if (end != EXCHANGE_ANSWERED)
        return statement_lost(publication, end, from_ms, &statement, err);
    if (got < 0)
        return error_errno(err, (int)-got, "what is to be copied cannot be read");
    r = statement_answered(publication, result, &statement, err);
    if (r != RESULT_OK)
        return r;
    publication->failed = false;
    publication_count(publication->store->pq->cmdStatus(result), counts);
    return RESULT_OK;
}

/* ---- begin ---- */

static enum result begin_answered(
    struct publication *publication, const PGresult *result, int64_t from_ms, struct error *err)
{
    const struct publication_statement statement = {.sql = SQL_POSTGRES_PUBLICATION_BEGIN};
    struct answer answer = {.pq = publication->store->pq, .result = result};
    const char *sqlstate = postgres_sqlstate(publication->store, result);
    enum result r = RESULT_OK;

    if (strcmp(sqlstate, "00000") != 0) {
        r = statement_refused(publication, result, &statement, err);
        if (sqlstate_look_up(sqlstate)->result == RESULT_DENIED && publication->store->connection)
            return postgres_advise(publication->store,
                "the claimed table must be readable and lockable: let its owner GRANT SELECT, UPDATE on it "
                "to {role}",
                err);
        return r;
    }
    publication->credential.fence = answer_integer(&answer);
    publication->until_ms = from_ms + answer_integer(&answer);
    return answer_check(&answer, "a publication", err);
}

static enum result begin(struct publication *publication, struct error *err)
{
    const struct publication_statement statement = {.sql = SQL_POSTGRES_PUBLICATION_BEGIN};
    const struct credential *credential = &publication->credential;
    _cleanup_(result_cleanup) PGresult *result = NULL;
    int64_t from_ms = real_ms();
    enum result r = postgres_step(publication->store, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
        publication->until_ms, NULL, err);

    if (r == RESULT_OK)
        r = statement_run(publication, &statement,
            PARAMETERS(parameter_schema_or_next(), parameter_text(credential->attempt_id),
                parameter_bytes(credential->token, TOKEN_BYTES)),
            &result, err);
    if (r == RESULT_OK)
        r = begin_answered(publication, result, from_ms, err);
    publication->failed = r != RESULT_OK;
    return r;
}

static enum result begin_on(struct postgres_store *store, const struct credential *credential,
    int64_t until_ms, struct publication **ret, struct error *err)
{
    struct publication *publication = NULL;
    enum result r = postgres_connect_alive(store, until_ms, err);

    if (r != RESULT_OK)
        return r;
    publication = mem_alloc(sizeof *publication);
    *publication = (struct publication){.store = store, .credential = *credential, .until_ms = until_ms};
    r = begin(publication, err);
    if (r == RESULT_OK)
        *ret = publication;
    else
        publication_abort(&publication);
    return r;
}

/* Nothing of it stays when the connection is lost meanwhile, so it may be begun on another. */
enum result postgres_publication_begin(
    struct store *base, const struct credential *credential, struct publication **ret, struct error *err)
{
    struct postgres_store *store = postgres_of(base);
    int64_t until_ms = real_ms() + store->deadline_ms;
    enum result r = postgres_check_writer(store, err);

    if (r != RESULT_OK)
        return r;
    FAILPOINT("publish-before-begin");
    for (;;) {
        _cleanup_(error_done) struct error why = {0};
        r = begin_on(store, credential, until_ms, ret, &why);
        if (r == RESULT_OK)
            break;
        if (r != RESULT_UNREACHABLE || store->connection || postgres_back_off(store, until_ms) != WAIT_READY)
            return error_move(err, &why);
    }
    FAILPOINT("publish-after-begin");
    return RESULT_OK;
}

/* ---- end ---- */

void publication_abort(struct publication **publication)
{
    struct publication *ended = STEAL(*publication);
    _cleanup_(result_cleanup) PGresult *result = NULL;
    struct postgres_store *store = NULL;
    PGTransactionStatusType status = PQTRANS_IDLE;

    if (!ended)
        return;
    store = ended->store;
    if (store->connection)
        status = store->pq->transactionStatus(store->connection);
    if (status == PQTRANS_ACTIVE || status == PQTRANS_UNKNOWN) /* in the middle of a COPY, or broken */
        postgres_disconnect(store);
    else if (status != PQTRANS_IDLE)
        (void)postgres_exchange(store, "ROLLBACK", NULL, 0, real_ms() + ABORT_MS, &result);
    if (store->connection && store->pq->transactionStatus(store->connection) != PQTRANS_IDLE)
        postgres_disconnect(store);
    publication_free(ended);
}

static enum result settle(
    struct publication *publication, const struct settlement *settlement, struct error *err)
{
    const struct publication_statement statement = {.sql = SQL_POSTGRES_PUBLICATION_END};
    _cleanup_(result_cleanup) PGresult *result = NULL;
    enum result r = statement_run(publication, &statement,
        PARAMETERS(parameter_text(publication->credential.attempt_id),
            parameter_bytes(publication->credential.token, TOKEN_BYTES),
            parameter_text(attempt_state_name(settlement->state)), parameter_text(settlement->nonce),
            parameter_text(settlement->reason_code), parameter_text(settlement->reason_text)),
        &result, err);

    if (r == RESULT_OK)
        r = statement_answered(publication, result, &statement, err);
    publication->failed = r != RESULT_OK;
    return r;
}

/* From here a lost answer tells nothing. A transaction that the server had to undo is answered by the word.
 */
static enum result commit(struct publication *publication, struct error *err)
{
    const struct publication_statement statement = {.sql = "COMMIT"};
    struct postgres_store *store = publication->store;
    _cleanup_(result_cleanup) PGresult *result = NULL;
    int64_t least_ms = real_ms() + COMMIT_MS;
    int64_t until_ms = publication->until_ms > least_ms ? publication->until_ms : least_ms;
    const char *sqlstate = NULL;

    if (FAILPOINT_ERROR("publish-before-commit"))
        return postgres_lose(store, err);
    if (postgres_exchange(store, statement.sql, NULL, 0, until_ms, &result) != EXCHANGE_ANSWERED)
        return postgres_lose(store, err);
    sqlstate = postgres_sqlstate(store, result);
    if (sqlstate_look_up(sqlstate)->remedy == REMEDY_LOST)
        return postgres_lose(store, err);
    if (strcmp(sqlstate, "00000") != 0)
        return statement_refused(publication, result, &statement, err);
    if (strcmp(store->pq->cmdStatus(result), "COMMIT") != 0)
        return error_set(err, RESULT_INVALID, 0, "the server undid the publication");
    return FAILPOINT_ERROR("publish-after-commit") ? postgres_lose(store, err) : RESULT_OK;
}

enum result publication_commit(
    struct publication **publication, const struct settlement *settlement, struct error *err)
{
    enum result r =
        (*publication)->failed ? fail_over(*publication, err) : settle(*publication, settlement, err);

    if (r == RESULT_OK)
        r = commit(*publication, err);
    publication_abort(publication);
    return r;
}
