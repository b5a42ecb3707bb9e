/*
 * The clock seam. Everything that needs the time is handed a `const struct clock *`; production hands over
 * clock_system(), unit tests one that they move by hand.
 *
 * All times are int64_t milliseconds. `boot` is CLOCK_BOOTTIME (counts during suspend, never steps) with the
 * offset of a time namespace taken off, so that all processes on one kernel agree. `wall` is CLOCK_REALTIME
 * since 1970: for people, and for nothing that decides. Thread-safe.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"

#define MS_PER_S INT64_C(1000)

struct clock {
    int64_t (*boot_ms)(const struct clock *clock);
    int64_t (*wall_ms)(const struct clock *clock);
};

/* The kernel's clocks. A build with failpoints adds the wall-clock offset of TENURE_TEST_WALL_OFFSET_MS. */
const struct clock *clock_system(void);

/* A clock that stands still until somebody moves it. Embed or declare one; not thread-safe. */
struct clock_manual {
    struct clock clock;
    int64_t now_boot_ms;
    int64_t now_wall_ms;
};
void clock_manual_init(struct clock_manual *manual, int64_t boot_ms, int64_t wall_ms);

/* True when this process is in a time namespace whose boot clock is shifted (time_namespaces(7)). */
bool clock_is_shifted(void);

/* RFC 3339 in UTC with seconds ("2026-11-30T19:31:37Z"); `ret` takes 21 bytes at least, 32 always suffice. */
#define CLOCK_TEXT_SIZE 32
void clock_format_utc(int64_t wall_ms, char ret[CLOCK_TEXT_SIZE]);

/* The same for people, the one form that every sentence has: "2026-11-30 19:31:37Z". */
void clock_format_people(int64_t wall_ms, char ret[CLOCK_TEXT_SIZE]);

/* Parses what clock_format_utc writes, with optional fraction. False for anything else. */
_must_use_ bool clock_parse_utc(const char *text, int64_t *ret_wall_ms);

#endif
