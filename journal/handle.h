/*
 * Handles: the short typable name of a journal, T-XXXX-XXXC.
 *
 * Seven random symbols of Crockford's base32 and a check symbol (the value of the seven as a number, modulo
 * 37, from his check alphabet; https://www.crockford.com/base32.html). Case and dashes do not matter when
 * typed, I and L read as 1 and O as 0, and a mistyped handle is told apart from an unknown one. Thread-safe.
 */
#ifndef JOURNAL_HANDLE_H
#define JOURNAL_HANDLE_H

#include "base/error.h"

#define HANDLE_SIZE 12

void handle_make(char ret[HANDLE_SIZE]);

/* Normalises what a person typed. INVALID, with the reason: wrong length, wrong symbol, or check symbol
 * wrong. */
_must_use_ enum result handle_parse(const char *typed, char ret[HANDLE_SIZE], struct error *err);

#endif
