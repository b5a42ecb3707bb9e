/* Compiler attributes under short names. Nothing else. */
#ifndef BASE_ATTRIBUTES_H
#define BASE_ATTRIBUTES_H

/* The caller must look at the result. Every fallible function bears it. */
#define _must_use_ __attribute__((warn_unused_result))

/* Arguments from `first` on are checked against the format string at position `form`. */
#define _printf_(form, first) __attribute__((format(printf, form, first)))

/* Runs `function(&variable)` when the variable goes out of scope. */
#define _cleanup_(function) __attribute__((cleanup(function)))

#define _unused_   __attribute__((unused))
#define _noreturn_ __attribute__((noreturn))

/* Hands the pointer's value over and leaves NULL behind: the cleanup of `pointer` then does nothing. */
#define STEAL(pointer)                                                                                       \
    __extension__({                                                                                          \
        __typeof__(pointer) stolen_ = (pointer);                                                             \
        (pointer) = NULL;                                                                                    \
        stolen_;                                                                                             \
    })

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#endif
