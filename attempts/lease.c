#include "attempts/lease.h"

#include <inttypes.h>
#include <string.h>

/* Sums that saturate: a record may hold any number, and an overflow must not turn old into new. */
static int64_t add_saturated(int64_t left, int64_t right)
{
    int64_t sum = 0;

    if (__builtin_add_overflow(left, right, &sum))
        return right > 0 ? INT64_MAX : INT64_MIN + 1;
    return sum;
}

static int64_t smaller(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

static int64_t larger(int64_t left, int64_t right)
{
    return left > right ? left : right;
}

static int64_t ttl_effective_ms(int64_t ttl_ms)
{
    if (ttl_ms == 0)
        return LEASE_TTL_DEFAULT_MS;
    return smaller(larger(ttl_ms, LEASE_TTL_MIN_MS), LEASE_TTL_MAX_MS);
}

enum result lease_terms_check(struct lease_terms *terms, struct error *err)
{
    int64_t longest_ms = terms->ttl_ms / 3;

    if (terms->ttl_ms < LEASE_TTL_MIN_MS || terms->ttl_ms > LEASE_TTL_MAX_MS)
        return error_set(
            err, RESULT_INVALID, 0, "--ttl %" PRId64 " ms: must be from 2s to 1h", terms->ttl_ms);
    if (terms->heartbeat_ms < 0 || terms->heartbeat_ms > longest_ms)
        return error_set(err, RESULT_INVALID, 0,
            "--heartbeat %" PRId64 " ms: must be from 1ms to a third of the ttl, %" PRId64 "ms here",
            terms->heartbeat_ms, longest_ms);
    if (terms->heartbeat_ms == 0)
        terms->heartbeat_ms = smaller(longest_ms, LEASE_HEARTBEAT_DEFAULT_MS);
    return RESULT_OK;
}

/* The last sign of its owner: acquisition or renewal, whichever is later. */
static int64_t lease_last_sign_ms(const struct lease *lease)
{
    if (lease->renewed_ms == LEASE_TIME_NONE)
        return lease->acquired_ms;
    return larger(lease->acquired_ms, lease->renewed_ms);
}

int64_t lease_expiry(const struct lease *lease)
{
    if (lease->acquired_ms == LEASE_TIME_NONE || lease->expires_ms == LEASE_TIME_NONE)
        return LEASE_TIME_NONE;
    return smaller(
        lease->expires_ms, add_saturated(lease_last_sign_ms(lease), ttl_effective_ms(lease->ttl_ms)));
}

bool lease_same_clock(const struct lease *lease, const struct store_time *now)
{
    return lease->by_wall_clock || strcmp(lease->epoch, now->epoch) == 0;
}

static int64_t lease_now_ms(const struct lease *lease, const struct store_time *now)
{
    return lease->by_wall_clock ? now->wall_ms : now->ms;
}

bool lease_lapsed(const struct lease *lease, const struct store_time *now)
{
    int64_t expiry_ms = lease_expiry(lease), now_ms = lease_now_ms(lease, now);

    if (expiry_ms == LEASE_TIME_NONE || !lease_same_clock(lease, now))
        return true;
    /* A sign from further ahead than any owner can have written is no sign of life. */
    if (lease_last_sign_ms(lease) > add_saturated(now_ms, ttl_effective_ms(lease->ttl_ms)))
        return true;
    return now_ms > expiry_ms;
}

int64_t lease_remaining_ms(const struct lease *lease, const struct store_time *now)
{
    if (lease_lapsed(lease, now))
        return 0;
    /* Exactly at its expiry a lease is alive: it has lapsed a millisecond later. */
    return lease_expiry(lease) - lease_now_ms(lease, now) + 1;
}

int64_t lease_lapses_wall_ms(const struct lease *lease, const struct store_time *now)
{
    int64_t expiry_ms = lease_expiry(lease);

    if (expiry_ms == LEASE_TIME_NONE || !lease_same_clock(lease, now))
        return now->wall_ms;
    return add_saturated(now->wall_ms, add_saturated(expiry_ms, -lease_now_ms(lease, now)));
}

void lease_begin(struct lease *lease, int64_t ttl_ms, const struct store_time *now)
{
    *lease = (struct lease){
        .ttl_ms = ttl_effective_ms(ttl_ms),
        .acquired_ms = now->ms,
        .renewed_ms = now->ms,
        .expires_ms = add_saturated(now->ms, ttl_effective_ms(ttl_ms)),
    };
    memcpy(lease->epoch, now->epoch, sizeof lease->epoch);
}

void lease_renew(struct lease *lease, const struct store_time *now)
{
    lease->renewed_ms = lease_now_ms(lease, now);
    lease->expires_ms = add_saturated(lease->renewed_ms, ttl_effective_ms(lease->ttl_ms));
}

int64_t lease_margin_ms(int64_t ttl_ms)
{
    return larger(ttl_ms / 6, 500);
}

int64_t lease_own_deadline_ms(int64_t sent_boot_ms, int64_t ttl_ms)
{
    return add_saturated(sent_boot_ms, ttl_ms - lease_margin_ms(ttl_ms));
}
