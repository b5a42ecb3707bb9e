/*
 * The writer's side: the executor's own account of one attempt, on its own disk.
 *
 *     struct journal_options options = {.clock = clock, .executor = &executor};
 *     journal_create(&options, &journal, err);        // complete, locked and durable, or not there at all
 *     journal_append(journal, &event, JOURNAL_DURABLE, err);
 *     journal_close(journal);                         // releases the lock: the owner reads as gone
 *
 * A journal has no authority. A failed write or sync is never believed again: the journal is declared broken,
 * appends nothing more, stays open and locked, and the run goes on. One thread only (the loop's).
 */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include "base/clock.h"
#include "journal/event.h"
#include "journal/format.h"

struct journal;

struct journal_options {
    const char *root; /* directory of journals; NULL: journals/ in the state directory */
    const struct clock *clock;
    const struct executor *executor;
    const char *attempt; /* its id; NULL when it is not known yet */
};

enum journal_durability {
    JOURNAL_LAZY,    /* progress and output marks: written, not synced */
    JOURNAL_DURABLE, /* synced before the call returns */
};

/* Makes <root>/<handle>/journal (0700, 0600) and out/: written under a temporary name, locked, synced,
 * renamed, directory synced: three syncs once the root is there. SYSTEM or DENIED with the path. */
_must_use_ enum result journal_create(
    const struct journal_options *options, struct journal **ret, struct error *err);

const char *journal_handle(const struct journal *journal);
const char *journal_directory(const struct journal *journal); /* absolute; out/ lies below */
const char *journal_path(const struct journal *journal);      /* of the file itself */

/* Every event is shown to the tap after it was written (or could not be). */
typedef void (*journal_tap_fn)(void *context, const struct journal_event *event);
void journal_set_tap(struct journal *journal, journal_tap_fn tap, void *context);

/* Fills in the times and appends. The error of the call that breaks the journal is returned once; afterwards
 * appends are OK and do nothing but feed the tap. Progress within half a second of the last one is held back
 * and written with a later append; the tap sees all of it. INVALID after `settled`, which is the last. */
_must_use_ enum result journal_append(struct journal *journal, const struct journal_event *event,
    enum journal_durability durability, struct error *err);
/* Makes all lazily appended records durable. */
_must_use_ enum result journal_sync(struct journal *journal, struct error *err);
bool journal_is_broken(const struct journal *journal);

/* Head of the chain, hex, for the Proof. */
void journal_head(const struct journal *journal, char ret_hex[2 * DIGEST_SHORT_BYTES + 1]);

void journal_close(struct journal *journal); /* NULL is allowed */
void journal_cleanup(struct journal **journal);
/* Closes and removes a journal that never got a reservation. */
void journal_discard(struct journal *journal);

#endif
