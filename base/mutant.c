#include "base/mutant.h"

#ifdef TENURE_MUTANTS

#include <stdlib.h>
#include <string.h>

bool mutant_active(const char *name)
{
    const char *active = getenv("TENURE_MUTANT");
    return active && strcmp(active, name) == 0;
}

#endif
