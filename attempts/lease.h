/*
 * Lease arithmetic: the only module that compares a lease with a clock.
 *
 * A lease permits or forbids a takeover; it does not by itself end an attempt. Its effective expiry is
 *
 *     min(expires, max(acquired, renewed) + ttl)
 *
 * with the ttl clamped to the legal range (60 s when absent) and an absent renewal counted as the
 * acquisition. It has lapsed when the store's clock is later than that; exactly at it the lease is alive. A
 * time that cannot be read, or lies more than ttl ahead of the store's clock, counts as lapsed, never as
 * eternal. So a record that claims nine hours is readable and worth 60 seconds.
 *
 * Pure functions of their arguments; thread-safe.
 */
#ifndef ATTEMPTS_LEASE_H
#define ATTEMPTS_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/machine.h"

#define LEASE_TTL_DEFAULT_MS       INT64_C(60000)
#define LEASE_TTL_MIN_MS           INT64_C(2000)
#define LEASE_TTL_MAX_MS           INT64_C(3600000)
#define LEASE_HEARTBEAT_DEFAULT_MS INT64_C(20000)
#define LEASE_TIME_NONE            INT64_MIN /* absent, or cannot be read */

/* A moment by the store's clock. Times of different epochs cannot be compared. */
struct store_time {
    int64_t ms;                  /* the embedded store: CLOCK_BOOTTIME; a server: its own clock */
    char epoch[MACHINE_ID_SIZE]; /* the embedded store: the boot id; a server: empty */
    int64_t wall_ms;             /* for version-1 records and for people */
};

struct lease {
    bool by_wall_clock;          /* version-1 record: its times are wall-clock times and it has no epoch */
    char epoch[MACHINE_ID_SIZE]; /* of the times below */
    int64_t ttl_ms;              /* 0 when absent */
    int64_t acquired_ms, renewed_ms, expires_ms; /* LEASE_TIME_NONE when absent or unreadable */
};

/* What an owner agreed to. heartbeat_ms <= ttl_ms / 3. */
struct lease_terms {
    int64_t ttl_ms;
    int64_t heartbeat_ms;
};

/* Checks both numbers; heartbeat 0 becomes ttl/3, at most 20 s. RESULT_INVALID names the option and the
 * range. */
_must_use_ enum result lease_terms_check(struct lease_terms *terms, struct error *err);

/* Effective expiry on the lease's own clock; LEASE_TIME_NONE when no time can be read. */
int64_t lease_expiry(const struct lease *lease);

/* True when the lease's times and `now` are of one clock: the same epoch, or a version-1 record. Times of
 * different clocks cannot be compared, so an owner from another epoch cannot renew. */
bool lease_same_clock(const struct lease *lease, const struct store_time *now);

/* True when somebody else may take over at `now`. */
bool lease_lapsed(const struct lease *lease, const struct store_time *now);

/* Milliseconds until the lease has lapsed at the latest, 0 when it has. */
int64_t lease_remaining_ms(const struct lease *lease, const struct store_time *now);

/* The moment from which it has lapsed as wall-clock time, for people; `now` when it cannot be told. */
int64_t lease_lapses_wall_ms(const struct lease *lease, const struct store_time *now);

/* A new lease, and a renewal of it, at `now`. */
void lease_begin(struct lease *lease, int64_t ttl_ms, const struct store_time *now);
void lease_renew(struct lease *lease, const struct store_time *now);

/* The margin that an owner keeps: max(ttl / 6, 500 ms). */
int64_t lease_margin_ms(int64_t ttl_ms);

/* The owner's own deadline on CLOCK_BOOTTIME, from the moment the last confirmed request was sent. */
int64_t lease_own_deadline_ms(int64_t sent_boot_ms, int64_t ttl_ms);

#endif
