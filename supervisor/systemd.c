/*
 * sd-event, fetched when the first loop is made.
 *
 * Loading libsystemd, with what it wants itself, takes half a millisecond: a third of the life of a command
 * that needs no loop (`tenure status`, and `tenure done` of a tree that is proved). There is no static form
 * of it to link with. So its functions are here by their own names, and pass on to those of the library.
 * Source: sd-event(3), dlopen(3).
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "base/attributes.h"

#define LIBRARY_NAME "libsystemd.so.0"

/* result, name, parameters, arguments: all but sd_event_new() and those below */
#define CALLS(CALL)                                                                                          \
    CALL(sd_event *, sd_event_ref, (sd_event * event), (event))                                              \
    CALL(int, sd_event_run, (sd_event * event, uint64_t usec), (event, usec))                                \
    CALL(int, sd_event_now, (sd_event * e, clockid_t clock, uint64_t * usec), (e, clock, usec))              \
    CALL(int, sd_event_add_io,                                                                               \
        (sd_event * e, sd_event_source * *s, int fd, uint32_t events, sd_event_io_handler_t callback,        \
            void *userdata),                                                                                 \
        (e, s, fd, events, callback, userdata))                                                              \
    CALL(int, sd_event_add_time,                                                                             \
        (sd_event * e, sd_event_source * *s, clockid_t clock, uint64_t usec, uint64_t accuracy,              \
            sd_event_time_handler_t callback, void *userdata),                                               \
        (e, s, clock, usec, accuracy, callback, userdata))                                                   \
    CALL(int, sd_event_add_signal,                                                                           \
        (sd_event * e, sd_event_source * *s, int sig, sd_event_signal_handler_t callback, void *userdata),   \
        (e, s, sig, callback, userdata))                                                                     \
    CALL(int, sd_event_source_set_enabled, (sd_event_source * s, int enabled), (s, enabled))                 \
    CALL(int, sd_event_source_set_floating, (sd_event_source * s, int b), (s, b))                            \
    CALL(int, sd_event_source_set_priority, (sd_event_source * s, int64_t priority), (s, priority))          \
    CALL(int, sd_event_source_set_time, (sd_event_source * s, uint64_t usec), (s, usec))

/* Of what was never made, too: NULL, perhaps because there is no library. */
#define RELEASES(CALL)                                                                                       \
    CALL(sd_event *, sd_event_unref, (sd_event * e), (e), e)                                                 \
    CALL(sd_event_source *, sd_event_source_unref, (sd_event_source * s), (s), s)                            \
    CALL(sd_event_source *, sd_event_source_disable_unref, (sd_event_source * s), (s), s)

/* Macros of declarations. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define MEMBER(result, name, parameters, arguments, ...) result(*name) parameters;

struct library {
    int (*sd_event_new)(sd_event **e);
    CALLS(MEMBER)
    RELEASES(MEMBER)
};

struct entry {
    const char *name;
    size_t offset;
};

#define ENTRY(result, name, parameters, arguments, ...) {#name, offsetof(struct library, name)},

static const struct entry ENTRIES[] = {
    {"sd_event_new", offsetof(struct library, sd_event_new)}, CALLS(ENTRY) RELEASES(ENTRY)};

/* Filled once, constant from then on. */
static struct library library;
static bool loaded;

static void load(void)
{
    void *handle = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (size_t i = 0; handle != NULL && i < ARRAY_SIZE(ENTRIES); i++) {
        void *function = dlsym(handle, ENTRIES[i].name);
        if (function == NULL)
            return;
        memcpy((char *)&library + ENTRIES[i].offset, &function, sizeof(function));
    }
    loaded = handle != NULL;
}

/* -ELIBACC without the library: then there is no loop, and so nobody who could call any other of its
 * functions. */
int sd_event_new(sd_event **e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return loaded ? library.sd_event_new(e) : -ELIBACC;
}

#define DEFINE(result, name, parameters, arguments)                                                          \
    result name parameters                                                                                   \
    {                                                                                                        \
        return library.name arguments;                                                                       \
    }
#define DEFINE_RELEASE(result, name, parameters, arguments, object)                                          \
    result name parameters                                                                                   \
    {                                                                                                        \
        return object ? library.name arguments : NULL;                                                       \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

CALLS(DEFINE)
RELEASES(DEFINE_RELEASE)
