#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/store_sqlite-private.h"
#include "base/memory.h"
#include "generated/attempts_sql.h"

/* ---- columns ---- */

static void row_break(struct row *row, int column)
{
    if (!row->broken)
        row->broken = sqlite3_column_name(row->statement, column);
}

static bool row_null(struct row *row)
{
    if (sqlite3_column_type(row->statement, row->next) != SQLITE_NULL)
        return false;
    row->next++;
    return true;
}

int64_t row_integer(struct row *row)
{
    int column = row->next++;

    if (sqlite3_column_type(row->statement, column) == SQLITE_INTEGER)
        return sqlite3_column_int64(row->statement, column);
    row_break(row, column);
    return 0;
}

int64_t row_integer_or(struct row *row, int64_t absent)
{
    return row_null(row) ? absent : row_integer(row);
}

char *row_text(struct row *row)
{
    int column = row->next++;
    bool is_text = sqlite3_column_type(row->statement, column) == SQLITE_TEXT;
    const char *text = is_text ? (const char *)sqlite3_column_text(row->statement, column) : NULL;

    if (text && strlen(text) == (size_t)sqlite3_column_bytes(row->statement, column))
        return mem_string(text);
    row_break(row, column);
    return mem_string("");
}

char *row_text_or_null(struct row *row)
{
    return row_null(row) ? NULL : row_text(row);
}

void row_buffer(struct row *row, char *ret, size_t size_bytes)
{
    int column = row->next;
    _cleanup_(mem_free) char *text = row_text(row);
    size_t length = strlen(text);

    if (length >= size_bytes) {
        row_break(row, column);
        length = 0;
    }
    memcpy(ret, text, length);
    ret[length] = '\0';
}

void row_buffer_or_empty(struct row *row, char *ret, size_t size_bytes)
{
    if (row_null(row))
        ret[0] = '\0';
    else
        row_buffer(row, ret, size_bytes);
}

void row_blob(struct row *row, void *ret, size_t size_bytes)
{
    int column = row->next++;

    if (sqlite3_column_type(row->statement, column) == SQLITE_BLOB &&
        (size_t)sqlite3_column_bytes(row->statement, column) == size_bytes)
        memcpy(ret, sqlite3_column_blob(row->statement, column), size_bytes);
    else
        row_break(row, column);
}

char *row_bytes(struct row *row, size_t *ret_length)
{
    int column = row->next++;
    const void *bytes = sqlite3_column_blob(row->statement, column);

    *ret_length = bytes ? (size_t)sqlite3_column_bytes(row->statement, column) : 0;
    return mem_copy(bytes ? bytes : "", *ret_length);
}

static size_t line_count(const char *text)
{
    size_t count = *text != '\0';

    for (const char *at = text; *at; at++)
        count += *at == '\n';
    return count;
}

char **row_lines(struct row *row, size_t *ret_count)
{
    _cleanup_(mem_free) char *text = row_text(row);
    size_t count = line_count(text);
    char **lines = count ? mem_alloc(count * sizeof *lines) : NULL, *rest = text;

    for (size_t i = 0; i < count; i++)
        lines[i] = mem_string(strsep(&rest, "\n"));
    *ret_count = count;
    return lines;
}

enum result row_check(const struct row *row, const char *what, struct error *err)
{
    if (!row->broken)
        return RESULT_OK;
    return error_set(err, RESULT_CORRUPT, 0, "%s: the column %s does not validate", what, row->broken);
}

/* ---- executors ---- */

static void row_name(struct row *row, bool lenient, char *ret, size_t size_bytes)
{
    if (lenient)
        row_buffer_or_empty(row, ret, size_bytes);
    else
        row_buffer(row, ret, size_bytes);
}

static int64_t row_number(struct row *row, bool lenient)
{
    return lenient ? row_integer_or(row, 0) : row_integer(row);
}

void row_executor(struct row *row, bool lenient, struct executor *ret)
{
    row_name(row, lenient, ret->machine_id, sizeof ret->machine_id);
    row_name(row, lenient, ret->boot_id, sizeof ret->boot_id);
    row_name(row, lenient, ret->host, sizeof ret->host);
    row_name(row, lenient, ret->user, sizeof ret->user);
    row_name(row, lenient, ret->incarnation, sizeof ret->incarnation);
    ret->pid_namespace = (uint64_t)row_number(row, lenient);
    ret->pid = row_number(row, lenient);
    ret->start_ticks = row_number(row, lenient);
    ret->uid = row_number(row, lenient);
}

/* ---- leases ---- */

/* Absent gives LEASE_TIME_NONE; what cannot be read also spoils the lease, so that it counts as lapsed and
 * the record stays readable. */
static int64_t row_lease_time(struct row *row, bool by_wall_clock, bool *spoilt)
{
    int column = row->next++, type = sqlite3_column_type(row->statement, column);
    int64_t wall_ms = 0;

    if (type == SQLITE_NULL)
        return LEASE_TIME_NONE;
    if (!by_wall_clock && type == SQLITE_INTEGER)
        return sqlite3_column_int64(row->statement, column);
    if (by_wall_clock && type == SQLITE_TEXT &&
        clock_parse_utc((const char *)sqlite3_column_text(row->statement, column), &wall_ms))
        return wall_ms;
    *spoilt = true;
    return LEASE_TIME_NONE;
}

static void row_lease(struct row *row, bool by_wall_clock, struct lease *ret)
{
    bool spoilt = false;
    int column = row->next++;

    ret->by_wall_clock = by_wall_clock;
    if (sqlite3_column_type(row->statement, column) == SQLITE_INTEGER)
        ret->ttl_ms = sqlite3_column_int64(row->statement, column);
    row_buffer_or_empty(row, ret->epoch, sizeof ret->epoch);
    ret->acquired_ms = row_lease_time(row, by_wall_clock, &spoilt);
    ret->renewed_ms = row_lease_time(row, by_wall_clock, &spoilt);
    ret->expires_ms = row_lease_time(row, by_wall_clock, &spoilt);
    if (spoilt)
        ret->acquired_ms = ret->renewed_ms = ret->expires_ms = LEASE_TIME_NONE;
}

struct value value_lease_time(const struct lease *lease, int64_t time_ms, char text[CLOCK_TEXT_SIZE])
{
    if (!lease->by_wall_clock)
        return value_integer(time_ms);
    clock_format_utc(time_ms, text);
    return value_text(text);
}

/* ---- attempts ---- */

static void row_words(struct row *row, struct attempt *ret)
{
    char kind[32] = "", state[32] = "";
    int column = row->next;

    row_buffer(row, kind, sizeof kind);
    row_buffer(row, state, sizeof state);
    if (!attempt_kind_parse(kind, &ret->kind))
        row_break(row, column);
    if (!attempt_state_parse(state, &ret->state))
        row_break(row, column + 1);
}

static void row_reason(struct row *row, struct reason *ret)
{
    ret->code = row_text_or_null(row);
    ret->text = row_text_or_null(row);
    ret->by_attempt = row_text_or_null(row);
}

static void row_progress(struct row *row, struct progress *ret)
{
    row_buffer(row, ret->phase, sizeof ret->phase);
    ret->done = row_integer(row);
    ret->total = row_integer(row);
}

/* In the order of attempt_load.sql, behind id and record_version. */
static void row_attempt(struct row *row, bool first_version, struct attempt *ret)
{
    ret->fence = row_integer(row);
    row_blob(row, ret->token_digest, sizeof ret->token_digest);
    row_words(row, ret);
    ret->repository = row_text_or_null(row);
    ret->subjects = row_lines(row, &ret->subject_count);
    row_executor(row, first_version, &ret->executor);
    ret->journal_handle = row_text_or_null(row);
    ret->journal_host = row_text_or_null(row);
    ret->journal_path = row_text_or_null(row);
    row_reason(row, &ret->reason);
    row_lease(row, first_version, &ret->lease);
    ret->acquired_wall_ms = row_integer_or(row, LEASE_TIME_NONE);
    ret->renewed_wall_ms = row_integer_or(row, LEASE_TIME_NONE);
    ret->settled_wall_ms = row_integer_or(row, LEASE_TIME_NONE);
    ret->rev = row_integer(row);
    row_progress(row, &ret->progress);
    ret->cancel_by = row_text_or_null(row);
    ret->cancel_wall_ms = row_integer_or(row, LEASE_TIME_NONE);
    row_buffer_or_empty(row, ret->settle_nonce, sizeof ret->settle_nonce);
    if (first_version) {
        ret->acquired_wall_ms = ret->lease.acquired_ms;
        ret->renewed_wall_ms = ret->lease.renewed_ms;
    }
}

static enum result attempt_read(sqlite3_stmt *statement, struct attempt *ret, struct error *err)
{
    struct row row = {.statement = statement};
    _cleanup_(attempt_done) struct attempt attempt = {0};
    _cleanup_(mem_free) char *what = NULL;
    enum result r = RESULT_OK;

    row_buffer(&row, attempt.id, sizeof attempt.id);
    attempt.record_version = row_integer(&row);
    if (attempt.record_version > ATTEMPT_RECORD_VERSION)
        return error_set(
            err, RESULT_NEWER, 0, "attempt %s: its record was written by a newer version", attempt.id);
    if (attempt.record_version < 1)
        row_break(&row, 1);
    row_attempt(&row, attempt.record_version < ATTEMPT_RECORD_VERSION, &attempt);
    what = mem_format("attempt %s", attempt.id);
    r = row_check(&row, what, err);
    if (r != RESULT_OK)
        return r;
    *ret = attempt;
    attempt = (struct attempt){0};
    return RESULT_OK;
}

enum result attempt_load(struct sqlite_store *store, const char *id, struct attempt *ret, struct error *err)
{
    _cleanup_(statement_cleanup) sqlite3_stmt *statement = NULL;
    bool found = false;
    enum result r = database_start(store, SQL_SQLITE_ATTEMPT_LOAD, VALUES(value_text(id)), &statement, err);

    if (r == RESULT_OK)
        r = database_next(store, statement, &found, err);
    if (r != RESULT_OK)
        return r;
    if (!found)
        return error_set(err, RESULT_ABSENT, 0, "there is no attempt %s", id);
    return attempt_read(statement, ret, err);
}
