/*
 * `tenure publish`: claims one row of the application, collects for it, and publishes in one short
 * transaction that only the holder of the claim can commit.
 *
 *     publish_row_parse("app.source:id=42", &row, err);
 *     publish_run(&options, &result, &pending, err);
 *     publish_result_done(&result);
 *
 * The SQL file is read, and looked at, before anything is claimed. The collector runs as the command of `run`
 * does, with its standard output in a file of the journal; then, its work ended and the heartbeat with it,
 * the statements of the file are run in the transaction that also ends the attempt. Whatever fails undoes all
 * of it, and the attempt keeps why.
 *
 * They find what the collector printed in a temporary table, `collected (number bigint, line text)`, or of
 * columns of the caller's own, read as CSV.
 *
 * One thread.
 */
#ifndef PUBLISH_PUBLISH_H
#define PUBLISH_PUBLISH_H

#include "attempts/publication.h"
#include "supervisor/hold.h"

/* TABLE:KEY=VALUE in parts; owned. */
struct publish_row {
    char *table, *key, *value;
};
void publish_row_done(struct publish_row *row);
/* TABLE as in SQL, KEY a column's name, in double quotes or as it is; VALUE to the end. INVALID. */
_must_use_ enum result publish_row_parse(const char *text, struct publish_row *ret, struct error *err);

struct publish_options {
    struct hold_options hold; /* kind, row, what and bind_now are set here */
    const struct publish_row *row;
    const char *soft_delete;    /* column; NULL */
    const char *collect;        /* for sh -c; NULL: nothing is collected */
    const char *columns;        /* of the table `collected`, as in CREATE TABLE; NULL: number and line */
    const char *file;           /* of SQL */
    const char *data_store_url; /* of the rows; must lead to the store's own database; NULL: it does */
};

struct publish_result {
    bool published;
    struct publication_counts counts;     /* zero unless published */
    int64_t collected;                    /* rows in `collected` */
    int collector_exit, collector_signal; /* -1 when not so ended, or there was none */
    struct error failure;                 /* why nothing was published, when that was no loss and no signal */
    bool lost;                            /* retired, or the lease could not be kept */
    int stop_signal;                      /* 0, or the signal that ended us */
    struct hold_result end;
    char *handle;
    char *attempt_id;
    int64_t fence;
};
void publish_result_done(struct publish_result *result);

/* The exit status of a run that publish_run() answered OK, or INTERRUPTED while it waited. */
int publish_exit(const struct publish_result *result);

/* OK: an attempt was held, and `ret` tells what came of it. HELD fills `ret_pending`, INTERRUPTED fills
 * `ret->stop_signal`; ABSENT: there is no living row, and nothing was started; INVALID: the file, the row, or
 * another database, before anything was claimed. UNKNOWN, UNREACHABLE: how the attempt ended could not be
 * learned or recorded; then `ret` is filled as well. Start from a zeroed `ret`. */
_must_use_ enum result publish_run(const struct publish_options *options, struct publish_result *ret,
    struct pending *ret_pending, struct error *err);

#endif
