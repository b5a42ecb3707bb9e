#include "base/failpoint.h"

#ifdef TENURE_FAILPOINTS

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/attributes.h"

/* Made by the linker around the section; absent when no point was linked in. */
extern const char *const __start_tenure_failpoints[] __attribute__((weak));
extern const char *const __stop_tenure_failpoints[] __attribute__((weak));

const char *failpoint_name(size_t index)
{
    size_t count = (size_t)(__stop_tenure_failpoints - __start_tenure_failpoints);
    return index < count ? __start_tenure_failpoints[index] : NULL;
}

/* A point may lie between fork() and exec(), where no lock may be taken and no memory allocated: so the
 * variable is read in place each time, and the counts live in a fixed table. */
#define ITEMS_MAX 64

static atomic_ulong hits[ITEMS_MAX]; /* by place of the item in the variable */
static atomic_ulong hits_belong_to;  /* hash of the variable that they count for */

static unsigned long hash_of(const char *text)
{
    unsigned long hash = 5381;
    for (; *text; text++)
        hash = hash * 33 + (unsigned char)*text;
    return hash;
}

static unsigned long count_hit(const char *variable, size_t item)
{
    unsigned long hash = hash_of(variable);
    if (atomic_exchange(&hits_belong_to, hash) != hash)
        for (size_t i = 0; i < ITEMS_MAX; i++)
            atomic_store(&hits[i], 0);
    return atomic_fetch_add(&hits[item % ITEMS_MAX], 1) + 1;
}

static void delay(unsigned long ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

static bool act_kill(unsigned long ms _unused_)
{
    raise(SIGKILL);
    return false; /* never: the signal has been delivered */
}

/* raise() and not kill(): the stop has taken effect on all threads before this one goes on. */
static bool act_stop(unsigned long ms _unused_)
{
    raise(SIGSTOP);
    return false;
}

static bool act_error(unsigned long ms _unused_)
{
    return true;
}

static bool act_delay(unsigned long ms)
{
    delay(ms);
    return false;
}

struct action {
    const char *word;
    bool (*act)(unsigned long ms);
};

static const struct action ACTIONS[] = {
    {"kill", act_kill},
    {"stop", act_stop},
    {"error", act_error},
    {"delay=", act_delay},
};

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* `text` is behind the colon: ACTION[=MS][@N]. */
static bool item_run(const char *variable, size_t item, const char *text)
{
    const struct action *action = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(ACTIONS) && !action; i++)
        if (starts_with(text, ACTIONS[i].word))
            action = &ACTIONS[i];
    if (!action)
        abort(); /* a misspelt action would let a test pass without its crash */
    char *rest = (char *)(uintptr_t)text + strlen(action->word);
    unsigned long ms = 0, wanted = 0;
    if (action->act == act_delay)
        ms = strtoul(rest, &rest, 10);
    bool counted = *rest == '@';
    if (counted)
        wanted = strtoul(rest + 1, &rest, 10);
    if ((counted && wanted == 0) || (*rest != '\0' && *rest != ','))
        abort();
    unsigned long hit = count_hit(variable, item);
    return (wanted == 0 || wanted == hit) && action->act(ms);
}

bool failpoint_hit(const char *name)
{
    const char *variable = getenv("TENURE_FAILPOINT");
    if (!variable)
        return false;
    bool error = false;
    size_t item = 0, length = strlen(name);
    for (const char *at = variable; *at; item++) {
        if (starts_with(at, name) && at[length] == ':')
            error |= item_run(variable, item, at + length + 1);
        at += strcspn(at, ",");
        at += *at == ',';
    }
    return error;
}

#else

const char *failpoint_name(size_t index)
{
    (void)index;
    return NULL;
}

#endif
