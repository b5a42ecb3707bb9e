/* The events of one run that never was: five producers, one reused, one that fails. */
#ifndef TESTS_UNIT_CLI_FAKE_RUN_H
#define TESTS_UNIT_CLI_FAKE_RUN_H

#include "cli/board.h"

#define FAKE_START_MS INT64_C(1000000)

static const struct journal_plan_step FAKE_PLAN[] = {
    {"build", "runs: input src/a.c changed", false, 3000},
    {"lint", "reused: same key as T-AAAA-BBBC", true, 0},
    {"test", "runs", false, 6000},
    {"documentation-of-everything", "runs", false, 4000},
    {"package", "runs", false, 2000},
};

/* At these many milliseconds after the start; the board that has seen the first n of them is a known one. */
static const struct journal_event FAKE_EVENTS[] = {
    {.kind = JOURNAL_HEADER, .boot_ms = 0, .text = "T-7K3M-QX9D", .log = "/nowhere"},
    {.kind = JOURNAL_RESERVED,
        .boot_ms = 100,
        .attempt = "0192",
        .fence = 812,
        .repository = "acme/widget",
        .commit = "3f2a91c0aa11bb22cc33"},
    {.kind = JOURNAL_PLAN, .boot_ms = 200, .plan = FAKE_PLAN, .plan_count = 5, .total = 5},
    {.kind = JOURNAL_EVIDENCE,
        .boot_ms = 210,
        .producer = "lint",
        .verdict = "passed",
        .reused = true,
        .text = "reused: same key as T-AAAA-BBBC"},
    {.kind = JOURNAL_STARTED, .boot_ms = 300, .producer = "build", .expected_ms = 3000},
    {.kind = JOURNAL_FINISHED,
        .boot_ms = 3500,
        .producer = "build",
        .verdict = "passed",
        .duration_ms = 3200},
    {.kind = JOURNAL_STARTED, .boot_ms = 3500, .producer = "test", .expected_ms = 6000},
    {.kind = JOURNAL_STARTED,
        .boot_ms = 3500,
        .producer = "documentation-of-everything",
        .expected_ms = 4000},
    {.kind = JOURNAL_OUTPUT, .boot_ms = 4000, .producer = "test", .offset_bytes = 123456},
    {.kind = JOURNAL_RENEWAL_TROUBLE, .boot_ms = 5000, .text = "the store is busy", .result = "busy"},
    {.kind = JOURNAL_FROZEN,
        .boot_ms = 6000,
        .wall_ms = INT64_C(1796067097000), /* 2026-11-30 19:31:37Z */
        .text = "the lease was not confirmed in time"},
    {.kind = JOURNAL_THAWED, .boot_ms = 8000, .duration_ms = 2000},
    {.kind = JOURNAL_FINISHED,
        .boot_ms = 9500,
        .producer = "test",
        .verdict = "failed",
        .exit_code = 3,
        .duration_ms = 4000},
    {.kind = JOURNAL_FINISHED,
        .boot_ms = 9600,
        .producer = "documentation-of-everything",
        .verdict = "passed",
        .duration_ms = 4100},
    {.kind = JOURNAL_SETTLED, .boot_ms = 9700, .state = "failed", .exit_code = 1},
};

enum fake_moment {
    FAKE_LOOKING = 0,
    FAKE_BUILDING = 5,
    FAKE_TWO_AT_ONCE = 9,
    FAKE_TROUBLE = 10,
    FAKE_FROZEN = 11,
    FAKE_THAWED = 12,
    FAKE_ALL = 15,
};

/* The board after the first `count` events. */
static inline void fake_board(struct board *board, int count)
{
    board_init(board, FAKE_START_MS);
    for (int i = 0; i < count; i++) {
        struct journal_event event = FAKE_EVENTS[i];
        event.boot_ms += FAKE_START_MS;
        board_apply(board, &event);
    }
}

#endif
