/*
 * Guards that a test build can remove one by one, to prove that the suite notices.
 *
 *     if (!MUTANT("token") && !token_matches(row, token))
 *         return error_set(err, RESULT_RETIRED, ...);
 *
 * With -DTENURE_MUTANTS=ON the guard named by the environment variable TENURE_MUTANT is absent. In any other
 * build MUTANT() is the constant false. The names are listed once, in tests/mutants/. Thread-safe.
 */
#ifndef BASE_MUTANT_H
#define BASE_MUTANT_H

#include <stdbool.h>

#ifdef TENURE_MUTANTS
bool mutant_active(const char *name);
#define MUTANT(name) mutant_active(name)
#else
#define MUTANT(name) false
#endif

#endif
