#include "cli/board.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define TROUBLE_SHOWN_MS INT64_C(30000)

static const struct {
    const char *name, *awaits;
} STEPS[BOARD_STEP_MAX] = {
    [STEP_LOOK] = {"looking at the work tree", "waiting for git to look at every file"},
    [STEP_STORE] = {"reserving", "waiting for the store"},
    [STEP_HELD] = {"waiting", "waiting for the holder to end"},
    [STEP_PLAN] = {"planning", "ending what earlier attempts left, hashing inputs and tools"},
    [STEP_WORK] = {"checking", "looking at the tree before the next producer"},
    [STEP_SETTLE] = {"settling", "looking at the tree again, writing to the store"},
    [STEP_OVER] = {"done", "done"},
};

const char *board_step_name(enum board_step step)
{
    return STEPS[step].name;
}

const char *board_step_awaits(enum board_step step)
{
    return STEPS[step].awaits;
}

void board_init(struct board *board, int64_t now_boot_ms)
{
    *board = (struct board){.step = STEP_LOOK, .step_boot_ms = now_boot_ms};
}

static void producer_done(struct board_producer *producer)
{
    free(producer->name);
    free(producer->command);
}

void board_done(struct board *board)
{
    for (size_t i = 0; i < board->count; i++)
        producer_done(&board->producers[i]);
    free(board->producers);
    free(board->handle);
    free(board->directory);
    free(board->held_by);
    free(board->holder);
    free(board->trouble);
    free(board->frozen);
    *board = (struct board){0};
}

static void keep(char **place, const char *string)
{
    free(*place);
    *place = mem_string(string);
}

static void go_to(struct board *board, enum board_step step, int64_t boot_ms)
{
    if (board->step != step)
        board->step_boot_ms = boot_ms;
    board->step = step;
}

static struct board_producer *find(const struct board *board, const char *name)
{
    for (size_t i = 0; name && i < board->count; i++)
        if (strcmp(board->producers[i].name, name) == 0)
            return &board->producers[i];
    return NULL;
}

const struct board_producer *board_find(const struct board *board, const char *name)
{
    return find(board, name);
}

static struct board_producer *find_or_add(struct board *board, const char *name)
{
    struct board_producer *known = find(board, name);
    if (known)
        return known;
    mem_grow(&board->producers, &board->capacity, board->count, sizeof(*board->producers));
    struct board_producer *added = &board->producers[board->count++];
    *added = (struct board_producer){.name = mem_string(name ? name : "?")};
    return added;
}

/* ---- one small function per kind of event ---- */

static void on_header(struct board *board, const struct journal_event *event)
{
    keep(&board->handle, event->text);
    keep(&board->directory, event->log);
    go_to(board, STEP_STORE, event->boot_ms);
}

static void on_reserved(struct board *board, const struct journal_event *event)
{
    go_to(board, STEP_PLAN, event->boot_ms);
}

static void on_plan(struct board *board, const struct journal_event *event)
{
    for (size_t i = 0; i < event->plan_count; i++) {
        struct board_producer *producer = find_or_add(board, event->plan[i].producer);
        producer->planned = true;
        producer->expected_ms = event->plan[i].expected_ms;
        if (event->plan[i].reuse)
            producer->state = BOARD_REUSED;
    }
    board->total = event->total > 0 ? (size_t)event->total : event->plan_count;
    go_to(board, STEP_WORK, event->boot_ms);
}

static void on_started(struct board *board, const struct journal_event *event)
{
    struct board_producer *producer = find_or_add(board, event->producer);
    producer->state = BOARD_RUNNING;
    keep(&producer->command, event->command);
    producer->started_boot_ms = event->boot_ms;
    if (event->expected_ms > 0)
        producer->expected_ms = event->expected_ms;
    go_to(board, STEP_WORK, event->boot_ms);
}

static void on_progress(struct board *board, const struct journal_event *event)
{
    if (event->total > 0 && (size_t)event->total > board->total)
        board->total = (size_t)event->total;
    if (event->phase && strcmp(event->phase, "settling") == 0)
        go_to(board, STEP_SETTLE, event->boot_ms);
}

static void on_output(struct board *board, const struct journal_event *event)
{
    find_or_add(board, event->producer)->output_bytes = event->offset_bytes + event->dropped_bytes;
}

/* What was ended because the run ends has not failed. */
static enum board_state ended_as(const char *verdict)
{
    if (verdict && strcmp(verdict, "passed") == 0)
        return BOARD_PASSED;
    return verdict && strcmp(verdict, "stopped") == 0 ? BOARD_STOPPED : BOARD_FAILED;
}

static void on_finished(struct board *board, const struct journal_event *event)
{
    struct board_producer *producer = find_or_add(board, event->producer);
    producer->state = ended_as(event->verdict);
    producer->duration_ms = event->duration_ms;
    if (board->total > 0 && board_ended(board) >= board->total && board_running(board) == 0)
        go_to(board, STEP_SETTLE, event->boot_ms);
    else if (board_running(board) == 0)
        board->step_boot_ms = event->boot_ms;
}

static void on_evidence(struct board *board, const struct journal_event *event)
{
    struct board_producer *producer = find(board, event->producer);
    if (!producer || !event->reused)
        return;
    bool passed = !event->verdict || strcmp(event->verdict, "passed") == 0;
    producer->state = passed ? BOARD_REUSED : BOARD_FAILED;
}

static void on_trouble(struct board *board, const struct journal_event *event)
{
    const char *text = event->text ? event->text : event->result ? event->result : "no answer";
    board->trouble_is_old = board->trouble && strcmp(board->trouble, text) == 0;
    if (board->trouble_is_old)
        return;
    keep(&board->trouble, text);
    board->trouble_boot_ms = event->boot_ms;
}

static void on_frozen(struct board *board, const struct journal_event *event)
{
    board->frozen_boot_ms = event->boot_ms;
    board->frozen_wall_ms = event->wall_ms;
    keep(&board->frozen, event->text);
}

/* Frozen time and gaps do not count as a producer's own. */
static void leave_out(struct board *board, int64_t gap_ms)
{
    for (size_t i = 0; i < board->count; i++)
        if (board->producers[i].state == BOARD_RUNNING)
            board->producers[i].started_boot_ms += gap_ms;
}

static void on_thawed(struct board *board, const struct journal_event *event)
{
    if (board->frozen_boot_ms)
        leave_out(board, event->boot_ms - board->frozen_boot_ms);
    board->frozen_boot_ms = 0;
    keep(&board->frozen, NULL);
    keep(&board->trouble, NULL);
}

static void on_gap(struct board *board, const struct journal_event *event)
{
    leave_out(board, event->duration_ms);
}

static void on_retired(struct board *board, const struct journal_event *event)
{
    go_to(board, STEP_SETTLE, event->boot_ms);
}

static void on_settled(struct board *board, const struct journal_event *event)
{
    go_to(board, STEP_OVER, event->boot_ms);
}

static void (*const APPLY[JOURNAL_KIND_MAX])(struct board *, const struct journal_event *) = {
    [JOURNAL_HEADER] = on_header,
    [JOURNAL_RESERVED] = on_reserved,
    [JOURNAL_PLAN] = on_plan,
    [JOURNAL_STARTED] = on_started,
    [JOURNAL_PROGRESS] = on_progress,
    [JOURNAL_OUTPUT] = on_output,
    [JOURNAL_FINISHED] = on_finished,
    [JOURNAL_EVIDENCE] = on_evidence,
    [JOURNAL_RENEWAL_TROUBLE] = on_trouble,
    [JOURNAL_FROZEN] = on_frozen,
    [JOURNAL_THAWED] = on_thawed,
    [JOURNAL_GAP] = on_gap,
    [JOURNAL_RETIRED] = on_retired,
    [JOURNAL_SETTLED] = on_settled,
};

void board_apply(struct board *board, const struct journal_event *event)
{
    if (board->trouble && event->boot_ms - board->trouble_boot_ms > TROUBLE_SHOWN_MS)
        keep(&board->trouble, NULL);
    if ((unsigned)event->kind < JOURNAL_KIND_MAX && APPLY[event->kind])
        APPLY[event->kind](board, event);
}

void board_hold(struct board *board, const char *handle, const char *holder, int64_t now_boot_ms)
{
    keep(&board->holder, holder);
    keep(&board->held_by, handle);
    go_to(board, STEP_HELD, now_boot_ms);
}

/* ---- sums ---- */

size_t board_count(const struct board *board, enum board_state state)
{
    size_t count = 0;
    for (size_t i = 0; i < board->count; i++)
        count += board->producers[i].planned && board->producers[i].state == state;
    return count;
}

size_t board_ended(const struct board *board)
{
    return board_count(board, BOARD_PASSED) + board_count(board, BOARD_FAILED) +
           board_count(board, BOARD_REUSED) + board_count(board, BOARD_STOPPED);
}

size_t board_running(const struct board *board)
{
    size_t count = 0;
    for (size_t i = 0; i < board->count; i++)
        count += board->producers[i].state == BOARD_RUNNING;
    return count;
}

/* The weight of a producer that history does not know: the mean of the known ones, else a second. */
static int64_t unknown_weight(const struct board *board)
{
    int64_t sum = 0, known = 0;
    for (size_t i = 0; i < board->count; i++)
        if (board->producers[i].planned && board->producers[i].expected_ms > 0) {
            sum += board->producers[i].expected_ms;
            known++;
        }
    return known > 0 ? sum / known + 1 : 1000;
}

/* A running one never counts as more than nineteen twentieths: only its end is its end. */
static int64_t weight_done(const struct board_producer *producer, int64_t weight, int64_t now_boot_ms)
{
    if (producer->state == BOARD_WAITING)
        return 0;
    if (producer->state != BOARD_RUNNING)
        return weight;
    int64_t elapsed = now_boot_ms - producer->started_boot_ms, most = weight * 19 / 20;
    return elapsed < 0 ? 0 : elapsed < most ? elapsed : most;
}

int board_permille(const struct board *board, int64_t now_boot_ms)
{
    int64_t all = 0, done = 0, unknown = unknown_weight(board);
    for (size_t i = 0; i < board->count; i++) {
        const struct board_producer *producer = &board->producers[i];
        if (!producer->planned || producer->state == BOARD_REUSED)
            continue;
        int64_t weight = producer->expected_ms > 0 ? producer->expected_ms : unknown;
        all += weight;
        done += weight_done(producer, weight, now_boot_ms);
    }
    if (all == 0)
        return board->step >= STEP_SETTLE ? 1000 : 0;
    return (int)(done * 1000 / all);
}

int64_t board_left_ms(const struct board *board, int64_t now_boot_ms)
{
    int64_t longest = 0, sum = 0, running = 0;
    for (size_t i = 0; i < board->count; i++) {
        const struct board_producer *producer = &board->producers[i];
        bool works = producer->state == BOARD_RUNNING;
        if (!producer->planned || (!works && producer->state != BOARD_WAITING))
            continue;
        if (producer->expected_ms <= 0)
            return 0;
        int64_t elapsed = works ? now_boot_ms - producer->started_boot_ms : 0;
        int64_t left = producer->expected_ms > elapsed ? producer->expected_ms - elapsed : 0;
        sum += left;
        running += works;
        if (left > longest)
            longest = left;
    }
    int64_t shared = sum / (running > 0 ? running : 1);
    return shared > longest ? shared : longest;
}
