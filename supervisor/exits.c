#include "supervisor/exits.h"

#include "base/attributes.h"

const struct exit_row EXITS[OUTCOME_MAX] = {
    [OUTCOME_DONE] = {0, 0, "done", "what the command's name promises: passed, verified, ran and returned 0"},
    [OUTCOME_NEGATIVE] = {1, 0, "negative",
        "negative verdict: a producer failed, a standard broke, verification refused"},
    [OUTCOME_REFUSED] = {2, 122, "refused",
        "refused before anything ran: usage, configuration, dirty tree, key, newer schema"},
    [OUTCOME_HELD] = {3, 123, "held", "held: another attempt is current; one pending cause is printed"},
    [OUTCOME_LOST] = {4, 124, "lost",
        "lost: this attempt was retired or cancelled by another, or its lease could not be kept"},
    [OUTCOME_STORE] = {5, 125, "store", "store unreachable, or outcome unknown; nothing is claimed"},
    [OUTCOME_MOVED] = {6, 0, "moved", "the tree moved while it was being proved"},
    [OUTCOME_INTERNAL] = {70, 125, "internal", "internal error"},
};
_Static_assert(ARRAY_SIZE(EXITS) == OUTCOME_MAX, "every outcome has its row");

static const enum outcome OUTCOMES[RESULT_MAX] = {
    [RESULT_OK] = OUTCOME_DONE,
    [RESULT_HELD] = OUTCOME_HELD,
    [RESULT_RETIRED] = OUTCOME_LOST,
    [RESULT_LAPSED] = OUTCOME_LOST,
    [RESULT_CONFLICT] = OUTCOME_STORE,
    [RESULT_BUSY] = OUTCOME_STORE,
    [RESULT_UNREACHABLE] = OUTCOME_STORE,
    [RESULT_UNKNOWN] = OUTCOME_STORE,
    [RESULT_DENIED] = OUTCOME_REFUSED,
    [RESULT_NEWER] = OUTCOME_REFUSED,
    [RESULT_CORRUPT] = OUTCOME_STORE,
    [RESULT_ABSENT] = OUTCOME_REFUSED,
    [RESULT_INVALID] = OUTCOME_REFUSED,
    [RESULT_SYSTEM] = OUTCOME_INTERNAL,
    [RESULT_INTERRUPTED] = OUTCOME_LOST,
};

enum outcome outcome_of_result(enum result result)
{
    return result >= 0 && result < RESULT_MAX ? OUTCOMES[result] : OUTCOME_INTERNAL;
}
