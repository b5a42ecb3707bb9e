/*
 * Results and errors: how every fallible function of the project answers.
 *
 * A fallible function returns `enum result` and takes a `struct error *` as its last parameter. On RESULT_OK
 * the error is untouched; on anything else the error says, for a person, what happened to which file, attempt
 * or host, and what to do next. The caller's other outputs are untouched on failure.
 *
 *     _cleanup_(error_done) struct error err = {0};
 *     if (thing_open(path, &thing, &err) != RESULT_OK)
 *         return error_wrap(&err, "reading the widget: ");
 *
 *     return error_set(err, RESULT_INVALID, 0, "%s: not a number", value);
 *     return error_errno(err, errno, "cannot open %s", path);          // RESULT_SYSTEM
 *
 * Not thread-safe: an error belongs to one thread at a time.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "base/attributes.h"

/* The one result vocabulary. The words up to RESULT_INVALID are those of the protocol and mean the same for
 * every store; the last two are for what is not a store. */
enum result {
    RESULT_OK = 0,
    RESULT_HELD,        /* another attempt holds the subject */
    RESULT_RETIRED,     /* the caller is not, or no longer, the owner */
    RESULT_LAPSED,      /* strict kinds: the lease ran out before the write */
    RESULT_CONFLICT,    /* the record changed since it was read: read again */
    RESULT_BUSY,        /* locked by somebody else for now: retry */
    RESULT_UNREACHABLE, /* the store cannot be reached or cannot write */
    RESULT_UNKNOWN,     /* a commit was sent and its answer lost: ask again, never send again */
    RESULT_DENIED,      /* the store or the system does not permit it */
    RESULT_NEWER,       /* schema or record written by a newer version of this program */
    RESULT_CORRUPT,     /* stored data does not validate */
    RESULT_ABSENT,      /* what was named does not exist */
    RESULT_INVALID,     /* the input is wrong; nothing was done */
    RESULT_SYSTEM,      /* a system call failed; `errnum` tells which way */
    RESULT_INTERRUPTED, /* a signal or a cancellation ended the wait */
    RESULT_MAX
};

/* The word of the vocabulary, in lower case ("held", "retired", ...). Never NULL. */
const char *result_name(enum result result);

struct error {
    enum result code;
    int errnum;    /* 0 when no system call was involved */
    char *message; /* one sentence without a final period; owned */
    char *remedy;  /* what to do next, one sentence; NULL when the message says it; owned */
};

/* Fills `err` (which may be NULL: the text is dropped) and returns `code`. An earlier content is freed. */
enum result error_set(struct error *err, enum result code, int errnum, const char *format, ...)
    _printf_(4, 5);

/* RESULT_SYSTEM with ": " and the text of `errnum` appended. */
enum result error_errno(struct error *err, int errnum, const char *format, ...) _printf_(3, 4);

/* Sets or replaces the remedy. Returns the error's code, so that it can end a return expression. With a NULL
 * `err` it, and error_wrap, answer the code that this thread set last. */
enum result error_remedy(struct error *err, const char *format, ...) _printf_(2, 3);

/* Puts context in front of the message. Returns the error's code. */
enum result error_wrap(struct error *err, const char *format, ...) _printf_(2, 3);

/* Moves `from` into `to` (NULL: dropped), leaving `from` empty. Returns the code. */
enum result error_move(struct error *to, struct error *from);

/* Frees the content; the object can be used again. */
void error_done(struct error *err);

#endif
