/*
 * store_rate renew|reserve URL CONNECTIONS SECONDS: what one store does in a second, through store.h.
 *
 *     renew     one heartbeat of one attempt
 *     reserve   one attempt reserved and bound in one call, and settled in another
 *
 * A thread a connection, each at work on subjects of its own. Prints calls (renew) or attempts (reserve) a
 * second.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/store.h"
#include "base/executor.h"
#include "base/memory.h"

struct worker {
    pthread_t thread;
    const char *url;
    int number;
    bool renews;
    int64_t until_ms, count;
    char failure[512];
};

static struct machine machine;

static int64_t now_ms(void)
{
    return clock_system()->boot_ms(clock_system());
}

static struct reservation reservation_of(const struct executor *executor, const char *const *subject)
{
    struct reservation reservation;

    reservation_init(&reservation, clock_system());
    reservation.kind = KIND_COMMAND;
    reservation.repository = "bench";
    reservation.subjects = subject;
    reservation.subject_count = 1;
    reservation.executor = executor;
    reservation.journal_handle = "T-0000-0000";
    reservation.journal_path = "/journals/T-0000-0000";
    reservation.ttl_ms = 60000;
    reservation.bind_if_clear = true;
    return reservation;
}

static enum result reserve(struct store *store, const struct executor *executor, const char *subject,
    struct credential *ret, struct error *err)
{
    _cleanup_(attempt_done) struct attempt attempt = {0}, holder = {0};
    struct reservation reservation = reservation_of(executor, &subject);
    enum result r = store_reserve(store, &reservation, &attempt, &holder, err);

    *ret = reservation.credential;
    return r;
}

static enum result renew(struct store *store, const struct credential *credential, struct error *err)
{
    struct renewal renewal = {.credential = credential};
    enum result r = store_renew(store, &renewal, 1, err);

    if (r == RESULT_OK && renewal.result != RESULT_OK)
        r = error_set(err, renewal.result, 0, "a renewal was answered %s", result_name(renewal.result));
    renewal_done(&renewal);
    return r;
}

static enum result settle(struct store *store, const struct credential *credential, struct error *err)
{
    struct settlement settlement;

    settlement_init(&settlement, ATTEMPT_PASSED);
    settlement.reason_code = "passed";
    return store_settle(store, credential, &settlement, err);
}

static enum result work(struct worker *worker, struct store *store, struct error *err)
{
    struct executor executor;
    struct credential credential;
    _cleanup_(mem_free) char *subject = mem_format("bench:%d", worker->number);
    enum result r = executor_self(&machine, &executor, err);

    if (r == RESULT_OK && worker->renews)
        r = reserve(store, &executor, subject, &credential, err);
    while (r == RESULT_OK && now_ms() < worker->until_ms) {
        if (worker->renews) {
            r = renew(store, &credential, err);
        } else {
            r = reserve(store, &executor, subject, &credential, err);
            if (r == RESULT_OK)
                r = settle(store, &credential, err);
        }
        worker->count++;
    }
    return r == RESULT_OK && worker->renews ? settle(store, &credential, err) : r;
}

static void *worker_main(void *context)
{
    struct worker *worker = context;
    const struct store_options options = {.url = worker->url, .clock = clock_system(), .machine = &machine};
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(store_cleanup) struct store *store = NULL;
    enum result r = store_open(&options, STORE_WRITE, &store, &err);

    if (r == RESULT_OK)
        r = work(worker, store, &err);
    if (r != RESULT_OK)
        snprintf(worker->failure, sizeof worker->failure, "%s", err.message);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: store_rate renew|reserve URL CONNECTIONS SECONDS\n");
        return 2;
    }
    int count = atoi(argv[3]), seconds = atoi(argv[4]);
    struct worker *workers = mem_alloc((size_t)count * sizeof *workers);
    int64_t total = 0;

    if (machine_read(&machine, NULL) != RESULT_OK)
        return 1;
    for (int i = 0; i < count; i++) {
        workers[i] = (struct worker){.url = argv[2],
            .number = i,
            .renews = strcmp(argv[1], "renew") == 0,
            .until_ms = now_ms() + seconds * 1000};
        pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        total += workers[i].count;
        if (workers[i].failure[0]) {
            fprintf(stderr, "store_rate: %s\n", workers[i].failure);
            return 1;
        }
    }
    printf("%" PRId64 "\n", total / seconds);
    free(workers);
    return 0;
}
