/*
 * Names of hosts. libpq asks the resolver itself, and blocks as long as that takes: tens of seconds when the
 * network is away. So it is asked here, by a thread that nobody waits for beyond the deadline, and libpq gets
 * numbers. Source: getaddrinfo(3); PostgreSQL manual, 34.1.2, hostaddr.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attempts/store_postgres-private.h"
#include "base/duration.h"
#include "base/files.h"
#include "base/memory.h"

/* Belongs to the thread and to who waits; the last one frees it. */
struct lookup {
    _Atomic int owners;
    char *name;
    int done_fd;
    int code; /* of getaddrinfo */
    struct addrinfo *found;
};

static void lookup_drop(struct lookup *lookup)
{
    if (--lookup->owners > 0)
        return;
    if (lookup->found)
        freeaddrinfo(lookup->found);
    fd_close(lookup->done_fd);
    free(lookup->name);
    free(lookup);
}

static void lookup_cleanup(struct lookup **lookup)
{
    if (*lookup)
        lookup_drop(*lookup);
}

static void *lookup_main(void *argument)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct lookup *lookup = argument;
    int fd = lookup->done_fd;

    lookup->code = getaddrinfo(lookup->name, NULL, &hints, &lookup->found);
    if (eventfd_write(fd, 1) != 0)
        abort(); /* a fresh counter takes a one */
    lookup_drop(lookup);
    return NULL;
}

static enum result lookup_start(const char *name, struct lookup **ret, struct error *err)
{
    _cleanup_(lookup_cleanup) struct lookup *lookup = mem_alloc(sizeof *lookup);
    pthread_attr_t attributes;
    pthread_t thread;
    int code = 0;

    *lookup = (struct lookup){.owners = 1, .name = mem_string(name), .done_fd = eventfd(0, EFD_CLOEXEC)};
    if (lookup->done_fd < 0)
        return error_errno(err, errno, "cannot make an eventfd");
    lookup->owners = 2;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    code = pthread_create(&thread, &attributes, lookup_main, lookup);
    pthread_attr_destroy(&attributes);
    if (code != 0) {
        lookup->owners = 1;
        return error_errno(err, code, "cannot start a thread");
    }
    *ret = STEAL(lookup);
    return RESULT_OK;
}

/* ---- numbers ---- */

void numbers_done(struct numbers *numbers)
{
    for (size_t i = 0; i < numbers->count; i++)
        free(numbers->items[i]);
    free(numbers->items);
}

static void numbers_take(const struct addrinfo *found, struct numbers *ret)
{
    size_t capacity = 0;

    for (const struct addrinfo *one = found; one; one = one->ai_next) {
        char number[NI_MAXHOST];
        if (getnameinfo(one->ai_addr, one->ai_addrlen, number, sizeof number, NULL, 0, NI_NUMERICHOST) != 0)
            continue;
        mem_grow(&ret->items, &capacity, ret->count, sizeof *ret->items);
        ret->items[ret->count++] = mem_string(number);
    }
}

/* Sockets, numbers and what libpq finds by itself. */
static bool needs_no_lookup(const struct host *host)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
    struct addrinfo *found = NULL;

    if (host->number || !host->name || host->name[0] == '/' || host->name[0] == '@')
        return true;
    if (getaddrinfo(host->name, NULL, &hints, &found) != 0)
        return false;
    freeaddrinfo(found);
    return true;
}

static enum result fail_lookup(
    const struct postgres_store *store, const struct host *host, const char *why, struct error *err)
{
    error_set(err, RESULT_UNREACHABLE, 0, "%s: the name \"%s\" leads to no address: %s", store->printable,
        host->name, why);
    return error_remedy(err, "check the name and this machine's resolver (resolv.conf)");
}

enum result host_resolve(struct postgres_store *store, const struct host *host, int64_t until_ms,
    struct numbers *ret, bool *ret_again, struct error *err)
{
    _cleanup_(lookup_cleanup) struct lookup *lookup = NULL;
    enum wait_end end = WAIT_READY;
    enum result r = RESULT_OK;

    if (needs_no_lookup(host))
        return RESULT_OK;
    r = lookup_start(host->name, &lookup, err);
    if (!lookup)
        return r;
    end = postgres_wait(store, lookup->done_fd, POLLIN, until_ms);
    if (end == WAIT_ENDED)
        return postgres_fail_ended(store, err);
    *ret_again = end == WAIT_EXPIRED || lookup->code == EAI_AGAIN || store->was_connected;
    if (end == WAIT_EXPIRED)
        return fail_lookup(store, host, "the resolver did not answer in time", err);
    if (lookup->code != 0)
        return fail_lookup(store, host, gai_strerror(lookup->code), err);
    numbers_take(lookup->found, ret);
    return RESULT_OK;
}
