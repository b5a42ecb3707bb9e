/* UUID version 7 (RFC 9562): 48 bits of wall-clock milliseconds, the rest random. Thread-safe. */
#ifndef BASE_UUID_H
#define BASE_UUID_H

#include <stdbool.h>

#include "base/clock.h"

#define UUID_TEXT_SIZE 37

void uuid_make(const struct clock *clock, char ret[UUID_TEXT_SIZE]);
bool uuid_is_valid(const char *text); /* any version, lower case, with dashes */

#endif
