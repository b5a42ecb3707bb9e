/*
 * Finding the program of a spawn, and saying why one could not be executed. All of it runs in the parent,
 * where time and memory are no worry. Thread-safe. Source: execve(2).
 */
#ifndef SUPERVISOR_PROGRAM_PRIVATE_H
#define SUPERVISOR_PROGRAM_PRIVATE_H

#include "supervisor/program.h"
#include "supervisor/spawn.h"

/* The path to hand to execve(2) in the work directory; owned by the caller. On failure `ret_failure` says
 * which step (SPAWN_NOT_FOUND, SPAWN_NOT_EXECUTABLE). */
_must_use_ enum result program_find(
    const struct spawn_request *request, char **ret, struct spawn_failure *ret_failure, struct error *err);

/* Why execve(2) of `path` in the work directory answered `errnum`. Always RESULT_SYSTEM. */
_must_use_ enum result program_diagnose(const struct spawn_request *request, const char *path, int errnum,
    struct spawn_failure *ret_failure, struct error *err);

#endif
