#include "supervisor/overview.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "journal/handle.h"
#include "supervisor/overview-private.h"
#include "supervisor/verdict-private.h"

#define PREFIX_LEAST 6 /* of an id: its first half is a time, and a shorter prefix is a typing slip */

void overview_entry_done(struct overview_entry *entry)
{
    attempt_done(&entry->attempt);
    witness_done(&entry->witness);
}

void overview_done(struct overview *overview)
{
    for (size_t i = 0; i < overview->count; i++)
        overview_entry_done(&overview->items[i]);
    free(STEAL(overview->items));
    free(STEAL(overview->absent));
    overview->count = 0;
}

/* ---- the store, opened only to look ---- */

enum result look_open(const char *store_url, enum store_access access, struct look *ret, struct error *err)
{
    struct look look = {0};
    enum result r = machine_read(&look.machine, err);
    if (r != RESULT_OK)
        return r;
    *ret = look;
    struct store_options options = {.url = store_url, .clock = clock_system(), .machine = &ret->machine};
    return store_open(&options, access, &ret->store, err);
}

void look_close(struct look *look)
{
    store_close(STEAL(look->store));
}

/* ---- entries ---- */

void look_judge(const struct look *look, struct attempt *attempt, const struct store_time *now,
    struct overview_entry *ret)
{
    *ret = (struct overview_entry){.attempt = *attempt};
    *attempt = (struct attempt){0};
    if (!attempt_is_unfinished(&ret->attempt)) {
        ret->verdict = OWNER_UNKNOWN;
        ret->verdict_why = "the attempt has ended";
        return;
    }
    struct liveness liveness = verdict_of(&look->machine, &ret->attempt);
    ret->verdict = liveness.verdict;
    ret->verdict_why = liveness.why;
    witness_look(&look->machine, &ret->attempt, &ret->witness);
    ret->lapsed = lease_lapsed(&ret->attempt.lease, now);
    ret->lapses_in_ms = lease_remaining_ms(&ret->attempt.lease, now);
    ret->lapses_wall_ms = lease_lapses_wall_ms(&ret->attempt.lease, now);
}

enum result overview_read(
    const char *store_url, const struct attempt_query *query, struct overview *ret, struct error *err)
{
    _cleanup_(look_close) struct look look = {0};
    _cleanup_(attempt_list_done) struct attempt_list list = {0};
    _cleanup_(error_done) struct error why = {0};
    struct overview overview = {0};
    enum result r = look_open(store_url, STORE_READ, &look, &why);
    if (r == RESULT_ABSENT) {
        overview.absent = mem_string(why.message);
        *ret = overview;
        return RESULT_OK;
    }
    if (r == RESULT_OK)
        r = store_list(look.store, query, &list, &why);
    if (r == RESULT_OK)
        r = store_now(look.store, &overview.now, &why);
    if (r != RESULT_OK)
        return error_move(err, &why);
    overview.items = mem_alloc((list.count + 1) * sizeof(*overview.items));
    for (size_t i = 0; i < list.count; i++)
        look_judge(&look, &list.items[i], &overview.now, &overview.items[overview.count++]);
    *ret = overview;
    return RESULT_OK;
}

/* ---- finding one ---- */

/* Borrowed from the list; NULL when none is near. */
static const char *nearest_handle(const struct attempt_list *all, const char *typed)
{
    _cleanup_(mem_free) const char **names = mem_alloc((all->count + 1) * sizeof(*names));
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].journal_handle != NULL)
            names[count++] = all->items[i].journal_handle;
    return text_nearest(typed, names, count);
}

static enum result no_such(const struct attempt_list *all, const char *typed, struct error *err)
{
    const char *near = nearest_handle(all, typed);
    enum result r = error_set(err, RESULT_ABSENT, 0, "there is no attempt %s", typed);
    if (near != NULL)
        r = error_remedy(err, "did you mean %s?", near);
    else
        r = error_remedy(err, "`tenure status --all` lists the unfinished ones, `tenure log` the past ones");
    return r;
}

static enum result find_by_prefix(
    struct look *look, const char *typed, struct attempt *ret, struct error *err)
{
    const struct attempt_query everything = {0};
    _cleanup_(attempt_list_done) struct attempt_list all = {0};
    enum result r = store_list(look->store, &everything, &all, err);
    if (r != RESULT_OK)
        return r;
    const struct attempt *found = NULL;
    for (size_t i = 0; i < all.count && strlen(typed) >= PREFIX_LEAST; i++) {
        if (strncmp(all.items[i].id, typed, strlen(typed)) != 0)
            continue;
        if (found != NULL)
            return error_set(err, RESULT_INVALID, 0, "%s fits more than one attempt: %s and %s", typed,
                found->id, all.items[i].id);
        found = &all.items[i];
    }
    if (found == NULL)
        return no_such(&all, typed, err);
    attempt_copy(found, ret);
    return RESULT_OK;
}

/* `slip` tells what is wrong with it; the one that was meant may be known. */
static enum result mistyped(struct look *look, const char *typed, struct error *slip, struct error *err)
{
    const struct attempt_query everything = {0};
    _cleanup_(attempt_list_done) struct attempt_list all = {0};
    _cleanup_(error_done) struct error why = {0};
    enum result r = store_list(look->store, &everything, &all, &why);
    const char *near = r == RESULT_OK ? nearest_handle(&all, typed) : NULL;
    if (near != NULL)
        error_remedy(slip, "did you mean %s?", near);
    return error_move(err, slip);
}

enum result look_find(struct look *look, const char *typed, struct attempt *ret, struct error *err)
{
    char handle[HANDLE_SIZE];
    _cleanup_(error_done) struct error slip = {0};
    bool is_handle = handle_parse(typed, handle, &slip) == RESULT_OK;
    /* A mistyped handle is told apart from an unknown one. */
    if (!is_handle && (typed[0] == 'T' || typed[0] == 't'))
        return mistyped(look, typed, &slip, err);
    error_done(&slip);
    enum result r = store_find(look->store, is_handle ? handle : typed, ret, &slip);
    if (r == RESULT_OK)
        return r;
    if (r != RESULT_ABSENT && r != RESULT_INVALID)
        return error_move(err, &slip);
    return find_by_prefix(look, typed, ret, err);
}

enum result overview_find(
    const char *store_url, const char *typed, struct overview_entry *ret, struct error *err)
{
    _cleanup_(look_close) struct look look = {0};
    _cleanup_(attempt_done) struct attempt attempt = {0};
    struct store_time now;
    enum result r = look_open(store_url, STORE_READ, &look, err);
    if (r == RESULT_OK)
        r = look_find(&look, typed, &attempt, err);
    if (r == RESULT_OK)
        r = store_now(look.store, &now, err);
    if (r == RESULT_OK)
        look_judge(&look, &attempt, &now, ret);
    return r;
}
