/* What a producer sees of its caller: a documented base, what it declares, and nothing else. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "completion/demand/applicability.h"

/* A final "_" stands for every name that begins so. */
static const char *const BASE[] = {
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_",
    "TZ",
    "TMPDIR",
    "XDG_",
};

static bool is_base(const char *name, size_t length)
{
    for (size_t i = 0; i < ARRAY_SIZE(BASE); i++) {
        size_t base = strlen(BASE[i]);
        bool family = BASE[i][base - 1] == '_';
        if ((family ? length > base : length == base) && memcmp(BASE[i], name, base) == 0)
            return true;
    }
    return false;
}

static bool is_declared(const struct strings *env, const char *name, size_t length)
{
    for (size_t i = 0; i < env->count; i++)
        if (strlen(env->items[i]) == length && memcmp(env->items[i], name, length) == 0)
            return true;
    return false;
}

static bool begins_with(const char *string, const char *beginning)
{
    return strncmp(string, beginning, strlen(beginning)) == 0;
}

static bool is_passed(const struct producer *producer, const char *variable)
{
    size_t length = strcspn(variable, "=");
    if (variable[length] != '=' || begins_with(variable, "CI=") || begins_with(variable, "TENURE_"))
        return false;
    return is_base(variable, length) || is_declared(&producer->env, variable, length);
}

/* Of a name that comes twice the first counts, for the key too. */
static bool is_there(char *const *environment, size_t count, const char *variable)
{
    size_t length = strcspn(variable, "=") + 1;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environment[i], variable, length) == 0)
            return true;
    return false;
}

static size_t list_length(const char *const *list)
{
    size_t length = 0;
    while (list && list[length])
        length++;
    return length;
}

char **environment_make(const struct producer *producer, const char *const *caller, const char *const *marks)
{
    size_t count = 0;
    char **environment =
        mem_alloc((list_length(caller) + list_length(marks) + 2) * sizeof(*environment)); /* CI, NULL */
    for (; caller && *caller; caller++)
        if (is_passed(producer, *caller) && !is_there(environment, count, *caller))
            environment[count++] = mem_string(*caller);
    environment[count++] = mem_string("CI=1");
    for (; marks && *marks; marks++)
        environment[count++] = mem_string(*marks);
    return environment;
}

void environment_free(char **environment)
{
    for (char **at = environment; at && *at; at++)
        free(*at);
    free(environment);
}
