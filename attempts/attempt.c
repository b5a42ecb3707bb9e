/*
 * Reason codes, the fixed list:
 *
 *     passed            settled by its owner: everything asked for was done
 *     producer-failed   a producer ended with a failure
 *     not-proved        something that the proof needs was missing once producers had run: a tool, the key
 *     command-failed    the command of `run` ended with a failure
 *     not-started       the command of `run` could not be started
 *     collector-failed  the collector of `publish` ended with a failure, or could not be started
 *     row-gone          the claimed row was deleted, or soft-deleted, before it could be published
 *     refused           the database refused what was to be published; nothing of it stayed
 *     tree-moved        the candidate changed while it was being proven
 *     cancel-requested  somebody asked for it
 *     signal            the owner was told to stop by a signal
 *     lease-lost        the owner could not confirm its lease in time and stopped its work
 *     failed            a claim of libtenure, or of SQL, was ended by its owner as failed
 *     released          likewise, and given back without a publication
 *     leftovers         earlier work on the same subject could not be ended
 *     proved-already    another proved the same tree between this one's look and its reserve
 *     internal          the owner met an error of its own
 *     owner-gone        retired: its owner is proven to be dead
 *     lapsed            retired: its lease ran out
 */
#include "attempts/attempt.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/memory.h"

static const char *const STATE_NAMES[] = {
    [ATTEMPT_PLANNING] = "planning",
    [ATTEMPT_RUNNING] = "running",
    [ATTEMPT_PASSED] = "passed",
    [ATTEMPT_FAILED] = "failed",
    [ATTEMPT_CANCELLED] = "cancelled",
};
_Static_assert(ARRAY_SIZE(STATE_NAMES) == ATTEMPT_STATE_MAX, "one name for each state");

static const char *const KIND_NAMES[] = {
    [KIND_DONE] = "done",
    [KIND_TRIAL] = "trial",
    [KIND_MEASURE] = "measure",
    [KIND_COMMAND] = "command",
    [KIND_PUBLICATION] = "publication",
};
_Static_assert(ARRAY_SIZE(KIND_NAMES) == ATTEMPT_KIND_MAX, "one name for each kind");

static bool name_find(const char *const *names, unsigned count, const char *name, unsigned *ret)
{
    for (unsigned i = 0; name && i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

const char *attempt_state_name(enum attempt_state state)
{
    return state < ATTEMPT_STATE_MAX ? STATE_NAMES[state] : "unknown";
}

const char *attempt_kind_name(enum attempt_kind kind)
{
    return kind < ATTEMPT_KIND_MAX ? KIND_NAMES[kind] : "unknown";
}

bool attempt_state_parse(const char *name, enum attempt_state *ret)
{
    unsigned found = 0;

    if (!name_find(STATE_NAMES, ATTEMPT_STATE_MAX, name, &found))
        return false;
    *ret = (enum attempt_state)found;
    return true;
}

bool attempt_kind_parse(const char *name, enum attempt_kind *ret)
{
    unsigned found = 0;

    if (!name_find(KIND_NAMES, ATTEMPT_KIND_MAX, name, &found))
        return false;
    *ret = (enum attempt_kind)found;
    return true;
}

bool attempt_state_is_terminal(enum attempt_state state)
{
    return state != ATTEMPT_PLANNING && state != ATTEMPT_RUNNING;
}

bool attempt_kind_is_strict(enum attempt_kind kind)
{
    return kind == KIND_PUBLICATION;
}

void reason_done(struct reason *reason)
{
    free(reason->code);
    free(reason->text);
    free(reason->by_attempt);
    *reason = (struct reason){0};
}

void token_digest(const uint8_t token[TOKEN_BYTES], uint8_t ret[TOKEN_DIGEST_BYTES])
{
    struct digest digest = {0};

    _Static_assert(TOKEN_DIGEST_BYTES == DIGEST_BYTES, "a token is kept as a long digest");
    digest_init(&digest, DIGEST_BYTES);
    digest_string(&digest, "tenure token");
    digest_field(&digest, token, TOKEN_BYTES);
    digest_final(&digest, ret);
}

static void strings_free(char **strings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(strings[i]);
    free(strings);
}

static char **strings_copy(char *const *strings, size_t count)
{
    char **copy = count ? mem_alloc(count * sizeof *copy) : NULL;

    for (size_t i = 0; i < count; i++)
        copy[i] = mem_string(strings[i]);
    return copy;
}

const char *attempt_name(const struct attempt *attempt)
{
    return attempt->journal_handle ? attempt->journal_handle : attempt->id;
}

void attempt_done(struct attempt *attempt)
{
    free(attempt->repository);
    strings_free(attempt->subjects, attempt->subject_count);
    free(attempt->journal_handle);
    free(attempt->journal_host);
    free(attempt->journal_path);
    reason_done(&attempt->reason);
    free(attempt->cancel_by);
    *attempt = (struct attempt){0};
}

void attempt_copy(const struct attempt *from, struct attempt *ret)
{
    struct attempt copy = *from;

    copy.repository = mem_string(from->repository);
    copy.subjects = strings_copy(from->subjects, from->subject_count);
    copy.journal_handle = mem_string(from->journal_handle);
    copy.journal_host = mem_string(from->journal_host);
    copy.journal_path = mem_string(from->journal_path);
    copy.reason = (struct reason){
        .code = mem_string(from->reason.code),
        .text = mem_string(from->reason.text),
        .by_attempt = mem_string(from->reason.by_attempt),
    };
    copy.cancel_by = mem_string(from->cancel_by);
    *ret = copy;
}

bool attempt_is_unfinished(const struct attempt *attempt)
{
    return !attempt_state_is_terminal(attempt->state);
}

bool attempt_holds(const struct attempt *attempt, const char *subject)
{
    for (size_t i = 0; i < attempt->subject_count; i++)
        if (strcmp(attempt->subjects[i], subject) == 0)
            return true;
    return false;
}

void attempt_list_done(struct attempt_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        attempt_done(&list->items[i]);
    free(list->items);
    *list = (struct attempt_list){0};
}
