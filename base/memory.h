/*
 * Allocation that does not fail: without memory the process aborts.
 *
 * The protocol is crash-only: an abort is one more way in which an executor dies, the kernel releases the
 * journal's lock and the next run recovers. See docs/decisions/ for why this beats an error path per
 * allocation. All functions are thread-safe; everything returned is freed with free().
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdarg.h>
#include <stddef.h>

#include "base/attributes.h"

void *mem_alloc(size_t size_bytes);                             /* zeroed */
void *mem_resize(void *block, size_t count, size_t size_bytes); /* count * size, checked for overflow */
char *mem_string(const char *text);                             /* NULL gives NULL */
void *mem_copy(const void *bytes, size_t size_bytes);           /* one NUL byte more behind the copy */
char *mem_format(const char *format, ...) _printf_(1, 2);
char *mem_vformat(const char *format, va_list arguments) _printf_(1, 0);

/* Grows `*array` so that it has room for `count + 1` elements; amortised doubling over `*capacity`. */
void mem_grow(void *array, size_t *capacity, size_t count, size_t size_bytes);

/* Cleanup for a heap pointer of any type: _cleanup_(mem_free) char *s = NULL; */
void mem_free(void *pointer_to_pointer);

#endif
