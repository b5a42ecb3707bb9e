/*
 * Saying how it ended: errors for people and for programs, whole output, exit statuses.
 *
 * What is written here is written whole and blocking, after the work. Errors go to standard error; with
 * --json they are the one document on standard output instead, `error{code, message, remedy}`. One thread.
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <json-c/json.h>

#include "cli/cli.h"

/* The exit status of an outcome for the command at hand. */
int report_status(const struct cli *cli, enum outcome outcome);

/* Prints an error and returns the exit status that it stands for, or that of `outcome`. */
int report_error(const struct cli *cli, const struct error *err);
int report_error_as(const struct cli *cli, const struct error *err, enum outcome outcome);
/* The error alone, as text for standard error. */
void report_add_error(const struct look *look, const struct error *err, struct text *ret);

/* Writes to standard output and returns `status`. When that cannot be written, standard error is told, unless
 * it is that nobody reads, and a 0 becomes 70, or 128+SIGPIPE: but not that of a command whose status is the
 * attempt's, whose promise is another than to say so. */
int report_print(const struct cli *cli, const struct text *text, int status);
/* To standard error; nobody can be told when that fails. */
void report_complain(const struct text *text);

/* {"command", "outcome", "exit"}: how every document begins. report_json puts it and returns as report_print.
 */
struct json_object *report_document(const struct cli *cli, const char *outcome, int status);
int report_json(const struct cli *cli, struct json_object *document, int status);

/* {"code", "message", "remedy"} */
struct json_object *report_error_json(const struct error *err);

/* "no attempt yet", and, when there is not even a store (`absent`), that too. */
void report_add_none(struct text *ret, const char *what, const char *absent);

/* RFC 3339 in UTC, or null for a time that is not known. */
struct json_object *report_time_json(int64_t wall_ms);
/* The same for people: "2026-11-30 19:31:02Z", or "-". */
void report_add_time(struct text *ret, int64_t wall_ms);

/* How long before `now` something was, for people: "3 s"; never negative. */
void report_age(int64_t then_wall_ms, int64_t now_wall_ms, char ret[32]);

#endif
