/*
 * A store that answers renewals as a test says, and counts them. Everything else is missing: who calls it
 * crashes. One store for the whole program, because handles come and go.
 */
#ifndef TESTS_UNIT_SUPERVISOR_FAKE_STORE_H
#define TESTS_UNIT_SUPERVISOR_FAKE_STORE_H

#include <stdatomic.h>

#include "attempts/store-private.h"
#include "base/memory.h"

struct fake {
    _Atomic int answer;  /* enum result of each renewal's entry, or of the round trip */
    _Atomic bool broken; /* the answer is the round trip's, not the entry's */
    _Atomic bool cancel;
    _Atomic int opened, closed, renewals, confirmed;
    _Atomic int refuse_open; /* enum result of an open */
    _Atomic int64_t deadline_ms;
    char phase[32];
};
static struct fake fake;

static void fake_close(struct store *store)
{
    fake.closed++;
    free(store);
}

static enum result fake_renew(struct store *store, struct renewal *renewals, size_t count, struct error *err)
{
    (void)store;
    fake.renewals++;
    assert_int_equal(count, 1);
    if (renewals[0].progress != NULL)
        memcpy(fake.phase, renewals[0].progress->phase, sizeof(fake.phase));
    enum result answer = (enum result)fake.answer;
    if (fake.broken)
        return error_set(err, answer, 0, "the test's store is %s", result_name(answer));
    renewals[0].result = answer;
    renewals[0].cancel_requested = fake.cancel;
    if (answer == RESULT_OK)
        fake.confirmed++;
    if (answer == RESULT_RETIRED)
        renewals[0].reason = (struct reason){.code = mem_string("lapsed"),
            .text = mem_string("taken over"),
            .by_attempt = mem_string("another")};
    return RESULT_OK;
}

static const struct store_ops FAKE_OPS = {.close = fake_close, .renew = fake_renew};

static enum result fake_open(
    const struct store_options *options, enum store_access access, struct store **ret, struct error *err)
{
    (void)access;
    fake.deadline_ms = options->deadline_ms;
    if (fake.refuse_open != RESULT_OK)
        return error_set(err, (enum result)fake.refuse_open, 0, "the test's store does not open");
    fake.opened++;
    struct store *store = mem_alloc(sizeof(*store));
    store->ops = &FAKE_OPS;
    *ret = store;
    return RESULT_OK;
}

static _unused_ void fake_reset(void)
{
    fake = (struct fake){0};
}

#endif
