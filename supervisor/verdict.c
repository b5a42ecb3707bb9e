#include "supervisor/verdict-private.h"

#include <string.h>

struct liveness_question verdict_question(const struct machine *machine, const struct attempt *attempt)
{
    const struct lease *lease = &attempt->lease;
    return (struct liveness_question){
        .path = attempt->journal_path,
        .incarnation = attempt->executor.incarnation,
        .attempt = attempt->id,
        .machine = machine,
        /* Times of another boot are by that boot's clock: so the last renewal lies before this one. */
        .renewed_before_boot =
            !lease->by_wall_clock && lease->epoch[0] != '\0' && strcmp(lease->epoch, machine->boot_id) != 0,
    };
}

struct liveness verdict_of(const struct machine *machine, const struct attempt *attempt)
{
    if (attempt->journal_path == NULL)
        return (struct liveness){.verdict = OWNER_UNKNOWN, .rule = 1, .why = "the record names no journal"};
    struct liveness_question question = verdict_question(machine, attempt);
    return liveness_probe(&question);
}

bool verdict_is_local(const struct machine *machine, const struct attempt *attempt)
{
    return attempt->journal_path != NULL && strcmp(machine->machine_id, attempt->executor.machine_id) == 0;
}
