/*
 * Which file a program's name leads to, in a given environment and directory; the same for what is started
 * and for what is only looked at (its digest is part of a key). May wait for a file system. Thread-safe.
 * Source: exec(3) for the search on PATH, execve(2) for what can be executed.
 */
#ifndef SUPERVISOR_PROGRAM_H
#define SUPERVISOR_PROGRAM_H

#include <stdbool.h>

struct program_look {
    char *file; /* to hand to execve(2) in that directory; or what is there and cannot be executed; or NULL */
    int refusal; /* 0: it can be executed; else why not, as execve(2) would say */
    bool there;  /* a file was seen, and not only a directory that may not be searched */
};
void program_look_done(struct program_look *look);

/* Looks for `name` on `path`, a value of PATH (NULL: the system's own), whose relative parts and empty ones
 * start at `directory_fd`. A name with a slash is a path itself, from there too. The first that can be
 * executed counts, else the first that is there. */
void program_look(int directory_fd, const char *path, const char *name, struct program_look *ret);

/* The value of `name` in a list of "NAME=VALUE" (NULL: an empty one), borrowed; NULL when it is not there.
 * The first one counts, as for getenv(3). */
const char *environment_value(const char *const *environment, const char *name);

#endif
