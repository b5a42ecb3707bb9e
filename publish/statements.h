/*
 * An SQL file as single statements, each with its line.
 *
 *     statements_split(file, text, length, &statements, err);
 *     for (i < statements.count) ... statements.items[i].sql, .line
 *     statements_done(&statements);
 *
 * A semicolon ends a statement unless it stands in a quoted string, a quoted name, a dollar quote, a comment,
 * brackets, or the body of a function that begins with BEGIN ATOMIC: as psql(1) has it, with
 * standard_conforming_strings on. Comments between statements are left out. Commands of psql itself are none,
 * and the server says so.
 *
 * Source: PostgreSQL manual, 4.1, Lexical Structure. Thread-safe.
 */
#ifndef PUBLISH_STATEMENTS_H
#define PUBLISH_STATEMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct statement {
    char *sql;    /* without the semicolon */
    int64_t line; /* of its first character, from 1 */
};
struct statements {
    struct statement *items;
    size_t count, capacity;
};
void statements_done(struct statements *statements);

/* INVALID, naming `file` and the line: what is opened and never closed, a NUL byte, what is not UTF-8, a
 * statement that begins or ends a transaction (publication_check()), or no statement at all. */
_must_use_ enum result statements_split(
    const char *file, const char *text, size_t length, struct statements *ret, struct error *err);

#endif
