#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "attempts/store_postgres-private.h"

#define LIBRARY "libpq.so.5"

static const struct {
    const char *name;
    size_t offset;
} SYMBOLS[] = {
#define LIBPQ_SYMBOL(name) {"PQ" #name, offsetof(struct libpq, name)},
    LIBPQ_FUNCTIONS(LIBPQ_SYMBOL)
#undef LIBPQ_SYMBOL
};

/* One library a process: filled once, constant from then on. Never unloaded: it leaves threads' data behind.
 */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct libpq loaded;
static const char *missing; /* the library, or the function that it lacks */

static void load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    missing = library ? NULL : LIBRARY;
    for (size_t i = 0; library && !missing && i < ARRAY_SIZE(SYMBOLS); i++) {
        void *symbol = dlsym(library, SYMBOLS[i].name);
        if (!symbol)
            missing = SYMBOLS[i].name;
        memcpy((char *)&loaded + SYMBOLS[i].offset, &symbol, sizeof symbol);
    }
}

enum result libpq_load(const struct libpq **ret, struct error *err)
{
    pthread_once(&once, load);
    if (!missing) {
        *ret = &loaded;
        return RESULT_OK;
    }
    error_set(err, RESULT_UNREACHABLE, 0,
        "a store at postgresql:// needs PostgreSQL's client library, and %s",
        strcmp(missing, LIBRARY) == 0 ? LIBRARY " cannot be loaded" : "the one that is here is too old");
    return error_remedy(err, "install the package libpq5");
}

void result_cleanup(PGresult **result)
{
    if (*result)
        loaded.clear(*result);
    *result = NULL;
}
