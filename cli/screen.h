/*
 * What a person sees of a run, live. `done`, `run` and `attach` feed it the same events.
 *
 *     screen_open(&options, &screen, err);
 *     completion_options.tap = screen_event, .waiting = screen_waiting, .context = screen
 *     screen_close(screen);                    // all written, cursor back; now print the verdict
 *
 * On a terminal: lines that scroll away above a live region that is redrawn at most ten times a second by the
 * writer's timer, one write a frame, inside a synchronized update. Elsewhere: one plain line per event.
 * Feeding copies and returns; it never waits for the terminal. A NULL screen shows nothing. One thread feeds.
 */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include "base/clock.h"
#include "cli/terminal.h"
#include "journal/event.h"
#include "supervisor/hold.h"

struct screen;

struct screen_options {
    struct look look;
    const struct clock *clock;
    bool patient;    /* feeding may wait for the terminal: of a follower, which delays nobody */
    bool notes_only; /* of `run`: only what is wrong, plainly; the terminal belongs to the command */
};

_must_use_ enum result screen_open(
    const struct screen_options *options, struct screen **ret, struct error *err);
void screen_close(struct screen *screen);

/* A journal_tap_fn. `context` is the screen. */
void screen_event(void *context, const struct journal_event *event);
/* The `waiting` of completion_options and hold_options. */
void screen_waiting(void *context, const struct attempt *holder, const struct store_time *now);

/* Composes the bytes of one frame: `lines` above, `frame` as the live region below, over what `region` says
 * is there. Pure; for the screen and its tests. */
struct region {
    int *columns; /* of each line that is shown */
    size_t count;
};
struct frame;
void region_compose(
    struct region *region, const struct text *lines, const struct frame *frame, int width, struct text *ret);
void region_done(struct region *region);

#endif
