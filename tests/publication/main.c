#include <stdio.h>
#include <string.h>

#include "tests/publication/sessions.h"

static const struct group {
    const char *name;
    int (*run)(void);
} GROUPS[] = {
    {"claims", test_claims},
    {"windows", test_windows},
    {"races", test_races},
    {"publications", test_publications},
    {"isolation", test_isolation},
    {"rights", test_rights},
    {"secrets", test_secrets},
};

/* publication [GROUP] */
int main(int argc, char **argv)
{
    int failures = 0, ran = 0;

    for (size_t i = 0; i < ARRAY_SIZE(GROUPS); i++) {
        if (argc > 1 && strcmp(argv[1], GROUPS[i].name) != 0)
            continue;
        failures += GROUPS[i].run();
        ran++;
    }
    if (!ran)
        fprintf(stderr, "usage: publication [GROUP]\n");
    return failures || !ran;
}
