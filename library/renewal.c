#include <signal.h>
#include <time.h>

#include "base/memory.h"
#include "library/claim-private.h"

#define RETRY_PARTS 8 /* of a heartbeat, until it is tried again */

static int64_t now_ms(void)
{
    return clock_system()->boot_ms(clock_system());
}

/* While a statement waits for its answer. */
static bool may_wait(void *context)
{
    struct renewal_thread *renewal = context;
    bool ending = false;

    pthread_mutex_lock(&renewal->lock);
    ending = renewal->ending;
    pthread_mutex_unlock(&renewal->lock);
    return !ending;
}

/* Waits for its time, or for somebody's word. Called with the lock. */
static void wait_for(struct renewal_thread *renewal, int64_t wait_ms)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += wait_ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_clockwait(&renewal->wake, &renewal->lock, CLOCK_MONOTONIC, &until);
}

static enum result renew_once(struct renewal_thread *renewal, struct store **store)
{
    struct renewal one = {.credential = renewal->credential};
    enum result r = RESULT_OK;

    if (!*store)
        r = store_open(&renewal->options, STORE_WRITE, store, NULL);
    if (r == RESULT_OK)
        r = store_renew(*store, &one, 1, NULL);
    if (r == RESULT_OK)
        r = one.result;
    renewal_done(&one);
    return r;
}

/* Only an answer proves a loss; whatever else goes wrong is tried again, sooner. Called with the lock. */
static int64_t take_result(struct renewal_thread *renewal, enum result r, int64_t sent_ms)
{
    int64_t heartbeat_ms = renewal->terms.heartbeat_ms;

    if (r == RESULT_OK)
        renewal->deadline_ms = lease_own_deadline_ms(sent_ms, renewal->terms.ttl_ms);
    renewal->lost |= r == RESULT_RETIRED || r == RESULT_LAPSED;
    return r == RESULT_OK ? heartbeat_ms : heartbeat_ms / RETRY_PARTS + 1;
}

static void *renewal_main(void *context)
{
    struct renewal_thread *renewal = context;
    struct store *store = NULL;
    int64_t due_ms = now_ms() + renewal->terms.heartbeat_ms;

    pthread_mutex_lock(&renewal->lock);
    while (!renewal->ending && !renewal->lost) {
        int64_t sent_ms = now_ms();
        enum result r = RESULT_OK;
        if (renewal->paused || (sent_ms < due_ms && !renewal->hurried)) {
            wait_for(renewal, renewal->paused ? renewal->terms.heartbeat_ms : due_ms - sent_ms);
            continue;
        }
        renewal->hurried = false;
        renewal->renewing = true;
        pthread_mutex_unlock(&renewal->lock);
        r = renew_once(renewal, &store);
        pthread_mutex_lock(&renewal->lock);
        renewal->renewing = false;
        due_ms = now_ms() + take_result(renewal, r, sent_ms);
        pthread_cond_broadcast(&renewal->wake);
    }
    pthread_mutex_unlock(&renewal->lock);
    store_close(store);
    return NULL;
}

/* The caller's signals are the caller's threads'. */
static int create_thread(struct renewal_thread *renewal)
{
    sigset_t all, before;
    int errnum = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errnum = pthread_create(&renewal->thread, NULL, renewal_main, renewal);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return errnum;
}

enum result renewal_start(struct tenure_claim *claim, int64_t sent_ms, struct error *err)
{
    struct renewal_thread *renewal = &claim->renewal;
    int errnum = 0;

    pthread_mutex_init(&renewal->lock, NULL);
    pthread_cond_init(&renewal->wake, NULL);
    renewal->credential = &claim->credential;
    renewal->options = claim->options;
    renewal->options.deadline_ms = renewal->terms.heartbeat_ms * 3 / 4;
    renewal->options.waiting = may_wait;
    renewal->options.waiting_context = renewal;
    renewal->deadline_ms = lease_own_deadline_ms(sent_ms, renewal->terms.ttl_ms);
    errnum = create_thread(renewal);
    if (errnum != 0)
        return error_errno(err, errnum, "cannot start the thread that renews");
    renewal->started = true;
    return RESULT_OK;
}

void renewal_pause(struct renewal_thread *renewal)
{
    pthread_mutex_lock(&renewal->lock);
    renewal->paused = true;
    while (renewal->renewing)
        pthread_cond_wait(&renewal->wake, &renewal->lock);
    pthread_mutex_unlock(&renewal->lock);
}

void renewal_resume(struct renewal_thread *renewal)
{
    pthread_mutex_lock(&renewal->lock);
    renewal->paused = false;
    renewal->hurried = true;
    pthread_cond_broadcast(&renewal->wake);
    pthread_mutex_unlock(&renewal->lock);
}

void renewal_stop(struct renewal_thread *renewal)
{
    if (!renewal->started)
        return;
    renewal->started = false;
    pthread_mutex_lock(&renewal->lock);
    renewal->ending = true;
    pthread_cond_broadcast(&renewal->wake);
    pthread_mutex_unlock(&renewal->lock);
    pthread_join(renewal->thread, NULL);
}

bool renewal_is_live(struct renewal_thread *renewal)
{
    bool live = false;

    pthread_mutex_lock(&renewal->lock);
    live = !renewal->lost && !renewal->ending && now_ms() < renewal->deadline_ms;
    pthread_mutex_unlock(&renewal->lock);
    return live;
}

int64_t renewal_set_deadline(struct renewal_thread *renewal, int64_t deadline_ms)
{
    int64_t before_ms = 0;

    pthread_mutex_lock(&renewal->lock);
    before_ms = renewal->deadline_ms;
    renewal->deadline_ms = deadline_ms;
    pthread_mutex_unlock(&renewal->lock);
    return before_ms;
}
