#include "base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *block)
{
    if (!block)
        abort();
    return block;
}

void *mem_alloc(size_t size_bytes)
{
    return checked(calloc(1, size_bytes ? size_bytes : 1));
}

void *mem_resize(void *block, size_t count, size_t size_bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, size_bytes, &total))
        abort();
    return checked(realloc(block, total ? total : 1));
}

char *mem_string(const char *text)
{
    return text ? checked(strdup(text)) : NULL;
}

void *mem_copy(const void *bytes, size_t size_bytes)
{
    if (size_bytes == SIZE_MAX)
        abort();
    char *copy = checked(malloc(size_bytes + 1));
    if (size_bytes)
        memcpy(copy, bytes, size_bytes);
    copy[size_bytes] = '\0';
    return copy;
}

char *mem_vformat(const char *format, va_list arguments)
{
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0)
        abort();
    return text;
}

char *mem_format(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = mem_vformat(format, arguments);
    va_end(arguments);
    return text;
}

/* The pointers below are copied as bytes: the caller's variable has some other pointer type. */

void mem_grow(void *array, size_t *capacity, size_t count, size_t size_bytes)
{
    if (count < *capacity)
        return;
    size_t wanted;
    if (__builtin_mul_overflow(count, (size_t)2, &wanted))
        abort();
    if (wanted < 8)
        wanted = 8;
    void *block;
    memcpy(&block, array, sizeof(block));
    block = mem_resize(block, wanted, size_bytes);
    memcpy(array, &block, sizeof(block));
    *capacity = wanted;
}

void mem_free(void *pointer_to_pointer)
{
    void *block;
    memcpy(&block, pointer_to_pointer, sizeof(block));
    free(block);
    block = NULL;
    memcpy(pointer_to_pointer, &block, sizeof(block));
}
