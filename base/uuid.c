#include "base/uuid.h"

#include <stdint.h>
#include <string.h>

#include "base/digest.h"

static bool is_dash_place(int place)
{
    return place == 8 || place == 13 || place == 18 || place == 23;
}

void uuid_make(const struct clock *clock, char ret[UUID_TEXT_SIZE])
{
    uint8_t bytes[16];
    char hex[2 * sizeof(bytes) + 1];
    uint64_t wall_ms = (uint64_t)clock->wall_ms(clock);
    random_bytes(bytes + 6, sizeof(bytes) - 6);
    for (int i = 0; i < 6; i++)
        bytes[i] = (uint8_t)(wall_ms >> (8 * (5 - i)));
    bytes[6] = (uint8_t)((bytes[6] & 0x0F) | 0x70); /* version 7 */
    bytes[8] = (uint8_t)((bytes[8] & 0x3F) | 0x80); /* variant of RFC 9562 */
    hex_encode(bytes, sizeof(bytes), hex);
    const char *digit = hex;
    for (int place = 0; place < UUID_TEXT_SIZE - 1; place++)
        ret[place] = is_dash_place(place) ? '-' : *digit++;
    ret[UUID_TEXT_SIZE - 1] = '\0';
}

bool uuid_is_valid(const char *text)
{
    int place = 0;
    for (; place < UUID_TEXT_SIZE - 1 && text[place]; place++) {
        const char *allowed = is_dash_place(place) ? "-" : "0123456789abcdef";
        if (!strchr(allowed, text[place]))
            return false;
    }
    return place == UUID_TEXT_SIZE - 1 && text[place] == '\0';
}
