#include <time.h>

#include "base/memory.h"
#include "library/claim-private.h"

#define PAUSE_NS 100000000L /* between two tries */

static int64_t now_ms(void)
{
    return clock_system()->boot_ms(clock_system());
}

enum result claim_open(struct tenure_claim *claim, struct error *err)
{
    if (claim->store)
        return RESULT_OK;
    return store_open(&claim->options, STORE_WRITE, &claim->store, err);
}

static bool is_trouble(enum result r)
{
    return r == RESULT_BUSY || r == RESULT_UNREACHABLE || r == RESULT_UNKNOWN;
}

static void pause_between(void)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS};

    nanosleep(&pause, NULL);
}

/* On a new handle each time: the old one's connection is what lost the answer. */
enum result claim_ask(struct tenure_claim *claim, const struct settlement *settlement, struct error *err)
{
    for (int64_t until_ms = now_ms() + CLAIM_PATIENCE_MS;;) {
        _cleanup_(error_done) struct error why = {0};
        enum result r = RESULT_OK;
        store_close(STEAL(claim->store));
        r = claim_open(claim, &why);
        if (r == RESULT_OK)
            r = store_settle_ask(claim->store, &claim->credential, settlement, &why);
        if (r == RESULT_OK)
            return r;
        if (!is_trouble(r))
            return error_move(err, &why);
        if (now_ms() >= until_ms) {
            error_set(
                err, RESULT_UNKNOWN, 0, "the store did not say whether the claim was ended: %s", why.message);
            return RESULT_UNKNOWN;
        }
        pause_between();
    }
}

enum result claim_settle(struct tenure_claim *claim, const struct settlement *settlement, struct error *err)
{
    for (int64_t until_ms = now_ms() + CLAIM_PATIENCE_MS;;) {
        _cleanup_(error_done) struct error why = {0};
        enum result r = claim_open(claim, &why);
        if (r == RESULT_OK)
            r = store_settle(claim->store, &claim->credential, settlement, &why);
        if (r == RESULT_UNKNOWN) {
            error_done(&why);
            r = claim_ask(claim, settlement, &why);
        }
        if (r == RESULT_OK)
            return r;
        bool again = r == RESULT_BUSY || r == RESULT_UNREACHABLE || r == RESULT_CONFLICT;
        if (!again || now_ms() >= until_ms)
            return error_move(err, &why);
        pause_between();
    }
}
