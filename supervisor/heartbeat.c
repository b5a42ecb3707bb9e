#include "supervisor/heartbeat.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "supervisor/bell-private.h"
#include "supervisor/heartbeat-private.h"

#define STATEMENT_MAX_MS INT64_C(5000)
#define TURN_MIN_MS      INT64_C(500)
#define PAUSE_MIN_MS     INT64_C(200)

enum heartbeat_wish {
    HEARTBEAT_RUN,
    HEARTBEAT_DRAIN, /* one last renewal if it is due, then end */
    HEARTBEAT_STOP,  /* end now */
};

struct heartbeat {
    struct heartbeat_options options;
    struct store_options store_options;
    struct bell bell;
    pthread_t thread;
    bool running; /* the loop's: the thread was not joined yet */

    _Atomic int wish; /* enum heartbeat_wish */
    _Atomic bool hurry;
    _Atomic bool awaiting_turn;
    _Atomic uint64_t turns;

    pthread_mutex_t mutex; /* of the mailbox: what follows */
    struct heartbeat_news news;
    struct progress progress;
    bool has_progress;

    /* the thread's own */
    struct store *store;
    int64_t confirmed_boot_ms, next_boot_ms, pause_ms;
    bool over; /* lost: nothing to renew any more */
};

int64_t heartbeat_statement_ms(int64_t heartbeat_ms)
{
    int64_t half_ms = heartbeat_ms / 2 > 0 ? heartbeat_ms / 2 : 1;
    return half_ms < STATEMENT_MAX_MS ? half_ms : STATEMENT_MAX_MS;
}

int64_t heartbeat_patience_ms(int64_t heartbeat_ms)
{
    return heartbeat_ms / 4 > TURN_MIN_MS ? heartbeat_ms / 4 : TURN_MIN_MS;
}

int64_t heartbeat_pause_ms(int64_t before_ms, int64_t heartbeat_ms, uint64_t random)
{
    int64_t least = heartbeat_ms < PAUSE_MIN_MS ? heartbeat_ms : PAUSE_MIN_MS;
    int64_t most = heartbeat_ms / 4 > least ? heartbeat_ms / 4 : least;
    int64_t top = before_ms * 3 > least ? before_ms * 3 : least;
    if (top > most)
        top = most;
    return least + (int64_t)(random % (uint64_t)(top - least + 1));
}

static int64_t heartbeat_now(const struct heartbeat *heartbeat)
{
    return heartbeat->options.clock->boot_ms(heartbeat->options.clock);
}

/* ---- the thread ---- */

/* The store asks while it waits for a lock: a heartbeat that is to end does not wait. */
static bool still_wanted(void *context)
{
    const struct heartbeat *heartbeat = context;
    return heartbeat->wish != HEARTBEAT_STOP;
}

static enum result heartbeat_open(struct heartbeat *heartbeat, struct error *err)
{
    if (heartbeat->store != NULL)
        return RESULT_OK;
    store_open_fn open_store = heartbeat->options.open_store;
    return (open_store != NULL ? open_store : store_open)(
        &heartbeat->store_options, STORE_WRITE, &heartbeat->store, err);
}

static void schedule_pause(struct heartbeat *heartbeat)
{
    uint64_t random;
    random_bytes(&random, sizeof(random));
    heartbeat->pause_ms =
        heartbeat_pause_ms(heartbeat->pause_ms, heartbeat->options.terms.heartbeat_ms, random);
    heartbeat->next_boot_ms = heartbeat_now(heartbeat) + heartbeat->pause_ms;
}

static void post_trouble(struct heartbeat *heartbeat, enum result trouble, const char *text)
{
    struct heartbeat_news *news = &heartbeat->news;
    schedule_pause(heartbeat);
    pthread_mutex_lock(&heartbeat->mutex);
    if (trouble != RESULT_BUSY)
        news->busy_since_boot_ms = 0;
    else if (news->busy_since_boot_ms == 0)
        news->busy_since_boot_ms = heartbeat_now(heartbeat);
    news->trouble = trouble;
    free(news->trouble_text);
    news->trouble_text = mem_string(text);
    pthread_mutex_unlock(&heartbeat->mutex);
    eventfd_poke(heartbeat->options.loop_fd);
}

/* A handle that lost its server is of no use any more; another that is merely busy is. */
static bool handle_is_spent(enum result r)
{
    return r != RESULT_OK && r != RESULT_BUSY && r != RESULT_CONFLICT;
}

static void post_unconfirmed(struct heartbeat *heartbeat, enum result r, const struct error *err)
{
    if (handle_is_spent(r)) {
        store_close(heartbeat->store);
        heartbeat->store = NULL;
    }
    post_trouble(heartbeat, r, err->message != NULL ? err->message : result_name(r));
}

static void post_confirmed(struct heartbeat *heartbeat, int64_t sent_boot_ms, const struct renewal *renewal)
{
    struct heartbeat_news *news = &heartbeat->news;
    const struct lease_terms *terms = &heartbeat->options.terms;
    guard_confirm(heartbeat->options.guard, lease_own_deadline_ms(sent_boot_ms, terms->ttl_ms));
    heartbeat->confirmed_boot_ms = sent_boot_ms;
    heartbeat->pause_ms = 0;
    heartbeat->next_boot_ms = heartbeat_now(heartbeat) + terms->heartbeat_ms;

    pthread_mutex_lock(&heartbeat->mutex);
    news->confirmed_sent_boot_ms = sent_boot_ms;
    news->cancel_requested |= renewal->cancel_requested;
    news->trouble = RESULT_OK;
    news->busy_since_boot_ms = 0;
    free(STEAL(news->trouble_text));
    pthread_mutex_unlock(&heartbeat->mutex);
    eventfd_poke(heartbeat->options.loop_fd);
}

static void post_lost(struct heartbeat *heartbeat, struct renewal *renewal)
{
    struct heartbeat_news *news = &heartbeat->news;
    heartbeat->over = true;
    pthread_mutex_lock(&heartbeat->mutex);
    reason_done(&news->reason);
    news->reason = renewal->reason;
    renewal->reason = (struct reason){0};
    news->lost = true;
    pthread_mutex_unlock(&heartbeat->mutex);
    eventfd_poke(heartbeat->options.loop_fd);
}

static bool take_progress(struct heartbeat *heartbeat, struct progress *ret)
{
    pthread_mutex_lock(&heartbeat->mutex);
    bool has = heartbeat->has_progress;
    *ret = heartbeat->progress;
    pthread_mutex_unlock(&heartbeat->mutex);
    return has;
}

/* One renewal. Its moment is taken before it is sent, however long it is held up on the way. */
static void beat(struct heartbeat *heartbeat)
{
    _cleanup_(error_done) struct error err = {0};
    enum result r = heartbeat_open(heartbeat, &err);
    if (r != RESULT_OK) {
        post_unconfirmed(heartbeat, r, &err);
        return;
    }
    struct progress progress;
    bool has_progress = take_progress(heartbeat, &progress);
    struct renewal renewal = {
        .credential = heartbeat->options.credential,
        .progress = has_progress ? &progress : NULL,
        .result = RESULT_UNREACHABLE,
    };
    int64_t sent_boot_ms = heartbeat_now(heartbeat);
    FAILPOINT("heartbeat-before-send");
    r = store_renew(heartbeat->store, &renewal, 1, &err);
    FAILPOINT("heartbeat-after-send");

    if (r == RESULT_OK)
        r = renewal.result;
    else if (r == RESULT_RETIRED || r == RESULT_LAPSED)
        r = RESULT_CORRUPT; /* a round trip cannot be retired: only the record's own entry proves a loss */
    if (r == RESULT_OK)
        post_confirmed(heartbeat, sent_boot_ms, &renewal);
    else if (r == RESULT_RETIRED || r == RESULT_LAPSED)
        post_lost(heartbeat, &renewal);
    else
        post_unconfirmed(heartbeat, r, &err);
    renewal_done(&renewal);
}

/* Wakes the loop and waits for it to turn. */
static bool loop_turns(struct heartbeat *heartbeat)
{
    uint64_t before = heartbeat->turns;
    int64_t until = heartbeat_now(heartbeat) + heartbeat_patience_ms(heartbeat->options.terms.heartbeat_ms);
    heartbeat->awaiting_turn = true;
    eventfd_poke(heartbeat->options.loop_fd);
    while (heartbeat->turns == before && heartbeat->wish == HEARTBEAT_RUN) {
        int64_t left = until - heartbeat_now(heartbeat);
        if (left <= 0)
            break;
        bell_wait(&heartbeat->bell, left);
    }
    heartbeat->awaiting_turn = false;
    return heartbeat->turns != before || MUTANT("loop-turns");
}

static void wait_until_due(struct heartbeat *heartbeat)
{
    while (heartbeat->wish == HEARTBEAT_RUN) {
        int64_t left = heartbeat->next_boot_ms - heartbeat_now(heartbeat);
        if (atomic_exchange(&heartbeat->hurry, false) && !heartbeat->over)
            return;
        if (left <= 0 && !heartbeat->over)
            return;
        bell_wait(&heartbeat->bell, heartbeat->over ? -1 : left);
    }
}

static void last_beat(struct heartbeat *heartbeat)
{
    bool due =
        heartbeat_now(heartbeat) - heartbeat->confirmed_boot_ms > heartbeat->options.terms.heartbeat_ms;
    if (heartbeat->wish == HEARTBEAT_DRAIN && due && !heartbeat->over)
        beat(heartbeat);
}

static void *heartbeat_main(void *argument)
{
    struct heartbeat *heartbeat = argument;
    for (;;) {
        wait_until_due(heartbeat);
        bool turns = heartbeat->wish == HEARTBEAT_RUN && loop_turns(heartbeat);
        if (heartbeat->wish != HEARTBEAT_RUN)
            break;
        if (turns)
            beat(heartbeat);
        else
            post_trouble(heartbeat, RESULT_INTERRUPTED, "the main loop of this run does not turn");
    }
    last_beat(heartbeat);
    store_close(heartbeat->store);
    heartbeat->store = NULL;
    return NULL;
}

/* ---- the loop's side ---- */

enum result heartbeat_start(
    const struct heartbeat_options *options, struct heartbeat **ret, struct error *err)
{
    struct heartbeat *heartbeat = mem_alloc(sizeof(*heartbeat));
    heartbeat->options = *options;
    heartbeat->store_options = *options->store;
    heartbeat->store_options.deadline_ms = heartbeat_statement_ms(options->terms.heartbeat_ms);
    heartbeat->store_options.patience_ms = 0;
    heartbeat->store_options.waiting = still_wanted;
    heartbeat->store_options.waiting_context = heartbeat;
    heartbeat->confirmed_boot_ms = options->sent_boot_ms;
    heartbeat->news.confirmed_sent_boot_ms = options->sent_boot_ms;
    heartbeat->next_boot_ms = options->sent_boot_ms + options->terms.heartbeat_ms;
    pthread_mutex_init(&heartbeat->mutex, NULL);

    enum result r = bell_open(&heartbeat->bell, err);
    if (r == RESULT_OK) {
        r = thread_start(&heartbeat->thread, "heartbeat", heartbeat_main, heartbeat, err);
        if (r != RESULT_OK)
            bell_close(&heartbeat->bell);
    }
    if (r != RESULT_OK) {
        pthread_mutex_destroy(&heartbeat->mutex);
        free(heartbeat);
        return r;
    }
    heartbeat->running = true;
    *ret = heartbeat;
    return RESULT_OK;
}

void heartbeat_turned(struct heartbeat *heartbeat)
{
    heartbeat->turns++;
    if (heartbeat->awaiting_turn)
        bell_ring(&heartbeat->bell);
}

void heartbeat_progress(struct heartbeat *heartbeat, const struct progress *progress)
{
    pthread_mutex_lock(&heartbeat->mutex);
    heartbeat->progress = *progress;
    heartbeat->has_progress = true;
    pthread_mutex_unlock(&heartbeat->mutex);
}

void heartbeat_hurry(struct heartbeat *heartbeat)
{
    heartbeat->hurry = true;
    bell_ring(&heartbeat->bell);
}

void heartbeat_news_done(struct heartbeat_news *news)
{
    reason_done(&news->reason);
    free(STEAL(news->trouble_text));
}

void heartbeat_take(struct heartbeat *heartbeat, struct heartbeat_news *ret)
{
    pthread_mutex_lock(&heartbeat->mutex);
    *ret = heartbeat->news;
    heartbeat->news.reason = (struct reason){0};
    heartbeat->news.trouble_text = NULL;
    pthread_mutex_unlock(&heartbeat->mutex);
}

static void heartbeat_join(struct heartbeat *heartbeat, enum heartbeat_wish wish)
{
    if (!heartbeat->running)
        return;
    heartbeat->wish = (int)wish;
    bell_ring(&heartbeat->bell);
    pthread_join(heartbeat->thread, NULL);
    heartbeat->running = false;
}

void heartbeat_drain(struct heartbeat *heartbeat, struct heartbeat_news *ret)
{
    if (!MUTANT("drain"))
        heartbeat_join(heartbeat, HEARTBEAT_DRAIN);
    heartbeat_take(heartbeat, ret);
}

void heartbeat_stop(struct heartbeat *heartbeat)
{
    if (heartbeat == NULL)
        return;
    heartbeat_join(heartbeat, HEARTBEAT_STOP);
    bell_close(&heartbeat->bell);
    pthread_mutex_destroy(&heartbeat->mutex);
    heartbeat_news_done(&heartbeat->news);
    free(heartbeat);
}
