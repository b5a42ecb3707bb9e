#include "supervisor/witness.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "journal/reader.h"
#include "supervisor/proc-private.h"
#include "supervisor/verdict-private.h"

#define RECORDS_MAX 16 /* notes about waiting may lie before the record of the reservation */

void witness_done(struct witness *witness)
{
    free(STEAL(witness->does));
    free(STEAL(witness->directory));
}

static void take_reserved(const struct journal_event *event, struct witness *ret)
{
    if (event->text != NULL && event->text[0] != '\0')
        ret->does = mem_string(event->text);
    if (event->directory != NULL)
        ret->directory = mem_string(event->directory);
}

static void look_at_journal(const struct attempt *attempt, struct witness *ret)
{
    _cleanup_(journal_reader_cleanup) struct journal_reader *reader = NULL;
    if (journal_reader_open(attempt->journal_path, &reader, NULL) != RESULT_OK)
        return;
    bool found = false;
    for (int i = 0; i < RECORDS_MAX && !found; i++) {
        struct journal_event event = {0};
        if (journal_reader_next(reader, &event, NULL) != RESULT_OK)
            return;
        found = event.kind == JOURNAL_RESERVED;
        if (found && event.attempt != NULL && strcmp(event.attempt, attempt->id) == 0)
            take_reserved(&event, ret);
        journal_event_done(&event);
    }
}

/* Only where the pid means the same, and of the very process that the record names. */
static bool owner_is_stopped(const struct machine *machine, const struct executor *owner)
{
    struct proc_stat stat;
    return strcmp(owner->boot_id, machine->boot_id) == 0 && owner->pid_namespace == machine->pid_namespace &&
           owner->start_ticks > 0 && proc_stat_read((pid_t)owner->pid, &stat) &&
           stat.start_ticks == owner->start_ticks && stat.state == 'T';
}

void witness_look(const struct machine *machine, const struct attempt *attempt, struct witness *ret)
{
    *ret = (struct witness){.local = verdict_is_local(machine, attempt)};
    if (!attempt_is_unfinished(attempt) || !ret->local)
        return;
    look_at_journal(attempt, ret);
    ret->stopped = owner_is_stopped(machine, &attempt->executor);
}
