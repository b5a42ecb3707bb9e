/*
 * The writer's object, shared by the two files that are the writer: create.c makes it, journal.c appends.
 * Nobody takes up what a dead owner left: its last word stays as it is, torn or not.
 */
#ifndef JOURNAL_JOURNAL_PRIVATE_H
#define JOURNAL_JOURNAL_PRIVATE_H

#include "base/text.h"
#include "journal/journal.h"

struct held_progress {
    char *phase; /* NULL: nothing is held back */
    int64_t done, total;
};

struct journal {
    const struct clock *clock;
    char *root, *directory, *path;
    char handle[HANDLE_SIZE];
    int fd; /* bears the lock until it is closed */
    struct chain chain;
    bool broken;  /* a write or a sync failed: never believed again */
    bool dirty;   /* written and not synced */
    bool settled; /* the last record is there */
    journal_tap_fn tap;
    void *tap_context;
    struct held_progress held; /* progress that came too soon after the last */
    int64_t progress_boot_ms;  /* when the last progress was written */
    struct text json, line;    /* kept for their memory */
};

struct journal *journal_new(const struct clock *clock);

/* Takes the write locks on bytes 0 and 1 for the open file description: they end with its last descriptor,
 * however the process ends. False with errno; EAGAIN when another holds them. */
_must_use_ bool journal_lock(int fd);

#endif
