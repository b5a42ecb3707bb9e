#include "cli/screen.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/board.h"
#include "cli/frame.h"
#include "cli/plain.h"
#include "cli/scroll.h"
#include "cli/writer.h"

#define FRAME_MS       INT64_C(100)
#define PLAIN_MS       INT64_C(500)
#define SILENCE_MS     INT64_C(2000)
#define SILENT_WORK_MS INT64_C(30000)
#define STOPPED_MS     INT64_C(1500) /* no frame for that long: we were stopped, and others wrote here */
#define FROZEN_STOP_MS INT64_C(300)  /* the same while frozen, as Ctrl-Z does before it stops us */
#define LAST_LOOK_MS   INT64_C(100)

struct screen {
    struct screen_options options;
    pthread_mutex_t mutex; /* guards the board and the times of silence */
    struct board board;
    struct writer *writer;
    int64_t spoke_boot_ms; /* last line, or last word about the silence */
    int64_t silence_ms;    /* how long the next silence may last */
    enum board_step told_step;
    /* the writer's thread alone */
    struct region region;
    int64_t drawn_boot_ms;
    bool was_frozen;   /* in the last frame */
    struct text drawn; /* the frame as it is shown */
};

static int64_t boot_now(const struct screen *screen)
{
    return screen->options.clock->boot_ms(screen->options.clock);
}

/* ---- the live region ---- */

#define SYNC_BEGIN  "\x1b[?2026h"
#define SYNC_END    "\x1b[?2026l"
#define CURSOR_HIDE "\x1b[?25l"
#define CURSOR_SHOW "\x1b[?25h"
#define ERASE_LINE  "\x1b[K"
#define ERASE_BELOW "\x1b[J"

void region_done(struct region *region)
{
    free(region->columns);
    *region = (struct region){0};
}

/* The cursor stands below: how many lines up the region begins. A narrower terminal has broken its lines
 * anew. */
static int region_height(const struct region *region, int width)
{
    int height = 0;
    for (size_t i = 0; i < region->count; i++) {
        int columns = region->columns[i];
        height += columns > width && width > 0 ? (columns + width - 1) / width : 1;
    }
    return height;
}

static void region_keep(struct region *region, const struct frame *frame)
{
    region->columns = mem_resize(region->columns, frame->count + 1, sizeof(*region->columns));
    region->count = frame->count;
    for (size_t i = 0; i < frame->count; i++)
        region->columns[i] = frame->rows[i].columns;
}

/* A line feed alone does not return in a terminal that a program left in raw mode. */
static void add_lines(struct text *ret, const struct text *lines)
{
    for (size_t i = 0; i < lines->length; i++)
        if (lines->bytes[i] == '\n')
            text_add(ret, "\r\n");
        else
            text_append(ret, lines->bytes + i, 1);
}

void region_compose(
    struct region *region, const struct text *lines, const struct frame *frame, int width, struct text *ret)
{
    int up = region_height(region, width);
    bool synchronized = region->count > 0 || frame->count > 0;
    if (synchronized)
        text_add(ret, SYNC_BEGIN CURSOR_HIDE);
    if (region->count > 0)
        text_add(ret, "\r");
    if (up > 0)
        text_addf(ret, "\x1b[%dA", up);
    if (region->count > 0 && (lines->length > 0 || frame->count == 0))
        text_add(ret, ERASE_BELOW);
    add_lines(ret, lines);
    for (size_t i = 0; i < frame->count; i++)
        text_addf(ret, "%s" ERASE_LINE "\r\n", frame->rows[i].text.bytes);
    if (frame->count > 0)
        text_add(ret, ERASE_BELOW);
    if (synchronized)
        text_add(ret, CURSOR_SHOW SYNC_END);
    region_keep(region, frame);
}

static void frame_text(const struct frame *frame, struct text *ret)
{
    for (size_t i = 0; i < frame->count; i++)
        text_addf(ret, "%s\n", frame->rows[i].text.bytes);
}

/* Stopped and continued: the shell wrote below our region, so it begins anew where the cursor is. */
static void forget_when_stopped(struct screen *screen, int64_t now, bool frozen)
{
    int64_t gap_ms = screen->drawn_boot_ms ? now - screen->drawn_boot_ms : 0;
    if (!terminal_guard_was_stopped() && gap_ms <= (frozen ? FROZEN_STOP_MS : STOPPED_MS))
        return;
    screen->region.count = 0;
    text_clear(&screen->drawn);
}

/* Counted from the end of a write: a terminal that was held up (XOFF) is not one that others wrote to. */
static void live_written(void *context)
{
    struct screen *screen = context;
    terminal_guard_leave();
    screen->drawn_boot_ms = boot_now(screen);
}

static void live_frame(void *context, const struct text *lines, bool last, struct text *ret)
{
    struct screen *screen = context;
    struct frame frame = {0};
    _cleanup_(text_done) struct text drawn = {0};
    struct terminal_size size = terminal_size_of(screen->options.look.fd);
    int64_t now = boot_now(screen);
    bool ours = terminal_is_ours(screen->options.look.fd);
    terminal_guard_enter();
    pthread_mutex_lock(&screen->mutex);
    bool frozen = screen->board.frozen_boot_ms != 0;
    if (!last && ours)
        frame_draw(&screen->board, &screen->options.look, size, now, &frame);
    pthread_mutex_unlock(&screen->mutex);
    forget_when_stopped(screen, now, frozen || screen->was_frozen);
    screen->was_frozen = frozen;
    if (!ours)
        screen->region.count = 0;
    frame_text(&frame, &drawn);
    bool same = drawn.length == screen->drawn.length &&
                (drawn.length == 0 || memcmp(drawn.bytes, screen->drawn.bytes, drawn.length) == 0);
    if (lines->length > 0 || !same || last)
        region_compose(&screen->region, lines, &frame, size.columns, ret);
    text_clear(&screen->drawn);
    text_append(&screen->drawn, drawn.bytes ? drawn.bytes : "", drawn.length);
    frame_done(&frame);
}

/* ---- without a terminal ---- */

static bool silence_is_long(struct screen *screen, int64_t now)
{
    bool works = board_running(&screen->board) > 0;
    if (!works && screen->told_step == screen->board.step)
        return false;
    if (works && screen->told_step != STEP_WORK)
        screen->silence_ms = SILENT_WORK_MS;
    return now - screen->spoke_boot_ms >= (works ? screen->silence_ms : SILENCE_MS);
}

static void say_silence(struct screen *screen, struct text *ret)
{
    int64_t now = boot_now(screen);
    pthread_mutex_lock(&screen->mutex);
    if (silence_is_long(screen, now)) {
        plain_add_silence(&screen->options.look, &screen->board, now, ret);
        screen->told_step = board_running(&screen->board) > 0 ? STEP_WORK : screen->board.step;
        screen->spoke_boot_ms = now;
        screen->silence_ms *= 2;
    }
    pthread_mutex_unlock(&screen->mutex);
}

static void plain_frame(void *context, const struct text *lines, bool last, struct text *ret)
{
    struct screen *screen = context;
    text_append(ret, lines->bytes ? lines->bytes : "", lines->length);
    if (!last && lines->length == 0 && !screen->options.notes_only)
        say_silence(screen, ret);
}

/* ---- both ---- */

static bool is_live(const struct screen *screen)
{
    return screen->options.look.terminal && !screen->options.notes_only;
}

enum result screen_open(const struct screen_options *options, struct screen **ret, struct error *err)
{
    struct screen *screen = mem_alloc(sizeof(*screen));
    screen->options = *options;
    pthread_mutex_init(&screen->mutex, NULL);
    screen->spoke_boot_ms = boot_now(screen);
    screen->silence_ms = SILENT_WORK_MS;
    screen->told_step = STEP_OVER;
    board_init(&screen->board, screen->spoke_boot_ms);
    bool live = is_live(screen);
    struct writer_options writer = {
        .fd = options->look.fd,
        .patient = options->patient,
        .prompt = !live,
        .interval_ms = live ? FRAME_MS : PLAIN_MS,
        .frame = live ? live_frame : plain_frame,
        .written = live ? live_written : NULL,
        .context = screen,
    };
    if (live)
        terminal_guard_start(options->look.fd);
    enum result r = writer_start(&writer, &screen->writer, err);
    if (r != RESULT_OK) {
        screen_close(screen);
        return r;
    }
    *ret = screen;
    return RESULT_OK;
}

void screen_close(struct screen *screen)
{
    if (!screen)
        return;
    writer_close(screen->writer);
    if (is_live(screen))
        terminal_guard_stop();
    board_done(&screen->board);
    region_done(&screen->region);
    text_done(&screen->drawn);
    pthread_mutex_destroy(&screen->mutex);
    free(screen);
}

/* `run` speaks only when something is wrong, and names its handle where somebody watches. */
static bool is_noteworthy(const struct screen *screen, const struct journal_event *event)
{
    static const bool NOTEWORTHY[JOURNAL_KIND_MAX] = {
        [JOURNAL_RENEWAL_TROUBLE] = true,
        [JOURNAL_FROZEN] = true,
        [JOURNAL_THAWED] = true,
        [JOURNAL_GAP] = true,
        [JOURNAL_RETIRED] = true,
        [JOURNAL_NOTE] = true,
    };
    if (!screen->options.notes_only)
        return true;
    if (event->kind == JOURNAL_HEADER)
        return screen->options.look.terminal;
    return (unsigned)event->kind < JOURNAL_KIND_MAX && NOTEWORTHY[event->kind];
}

static void put_lines(struct screen *screen, const struct text *lines)
{
    if (lines->length > 0)
        writer_put(screen->writer, lines->bytes, lines->length);
}

static void add_event(struct screen *screen, const struct journal_event *event, struct text *ret)
{
    const struct look *look = &screen->options.look;
    if (!is_noteworthy(screen, event))
        return;
    if (is_live(screen))
        scroll_add(look, &screen->board, event, terminal_size_of(look->fd).columns, ret);
    else
        plain_add(look, &screen->board, event, ret);
}

void screen_event(void *context, const struct journal_event *event)
{
    struct screen *screen = context;
    _cleanup_(text_done) struct text lines = {0};
    if (!screen)
        return;
    struct journal_event stamped = *event;
    if (stamped.boot_ms == 0)
        stamped.boot_ms = boot_now(screen);
    pthread_mutex_lock(&screen->mutex);
    board_apply(&screen->board, &stamped);
    add_event(screen, &stamped, &lines);
    if (lines.length > 0) {
        screen->spoke_boot_ms = boot_now(screen);
        screen->silence_ms = SILENT_WORK_MS;
    }
    pthread_mutex_unlock(&screen->mutex);
    put_lines(screen, &lines);
    /* We may be about to stop ourselves: the cursor goes back first. */
    if (event->kind == JOURNAL_FROZEN && is_live(screen))
        writer_flush(screen->writer, LAST_LOOK_MS);
}

/* The hold's own note is the line about it; this is for the live region and for silence. */
void screen_waiting(void *context, const struct attempt *holder, _unused_ const struct store_time *now)
{
    struct screen *screen = context;
    if (!screen)
        return;
    _cleanup_(mem_free) char *who = executor_text(&holder->executor);
    pthread_mutex_lock(&screen->mutex);
    board_hold(&screen->board, attempt_name(holder), who, boot_now(screen));
    pthread_mutex_unlock(&screen->mutex);
}
