/*
 * What a collector printed, as the server is fed it: in pieces, in constant memory.
 *
 *     struct collected *collected;
 *     collected_open(path, COLLECTED_LINES, &collected, err);
 *     publication_copy(publication, "COPY collected FROM STDIN", collected_read, collected, ...);
 *     collected_close(collected);
 *
 * Lines become rows (number, line) of COPY's text format, a last one without its end as well; raw bytes are
 * handed on as they are. One thread per object.
 */
#ifndef PUBLISH_COLLECTED_H
#define PUBLISH_COLLECTED_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct collected;

enum collected_form { COLLECTED_LINES, COLLECTED_RAW };

_must_use_ enum result collected_open(
    const char *path, enum collected_form form, struct collected **ret, struct error *err);
/* Bytes put into `buffer` (of 64 bytes or more); 0 at the end; a negative errno. `context` is the object. */
int64_t collected_read(void *context, void *buffer, size_t size_bytes);
void collected_close(struct collected *collected); /* NULL is allowed */

#endif
