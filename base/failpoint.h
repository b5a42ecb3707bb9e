/*
 * Named places at which a test can kill, stop, fail or delay the real program.
 *
 *     FAILPOINT("reserve-before-commit");          // kill, stop, delay
 *     if (FAILPOINT_ERROR("evidence-write"))       // also `error`: the caller takes its error path
 *         return error_set(...);
 *
 * With -DTENURE_FAILPOINTS=ON the environment variable TENURE_FAILPOINT holds comma-separated NAME:kill,
 * NAME:stop, NAME:error, NAME:delay=MS or NAME:kill@N (the Nth time). Every point is collected by the linker,
 * so failpoint_name() lists exactly those that the code has and a new one cannot be forgotten by the crash
 * matrix. In any other build both macros are constants and nothing is read from the environment. Thread-safe.
 */
#ifndef BASE_FAILPOINT_H
#define BASE_FAILPOINT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef TENURE_FAILPOINTS
bool failpoint_hit(const char *name); /* true only for `error` */
#define FAILPOINT_ERROR(name)                                                                                \
    __extension__({                                                                                          \
        static const char *const failpoint_entry_ __attribute__((section("tenure_failpoints"), used)) =      \
            name;                                                                                            \
        failpoint_hit(failpoint_entry_);                                                                     \
    })
#define FAILPOINT(name) ((void)FAILPOINT_ERROR(name))
#else
#define FAILPOINT_ERROR(name) false
#define FAILPOINT(name)       ((void)0)
#endif

/* The name of point `index` in the program's list, NULL at its end (and always in a build without
 * failpoints). A name may come twice when code was inlined twice. */
const char *failpoint_name(size_t index);

#endif
