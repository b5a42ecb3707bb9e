#include "cli/trust.h"

#include "base/memory.h"
#include "cli/here.h"

enum result trust_read(const struct cli *cli, struct key_ring *ring, struct error *err)
{
    const struct words *keys = &cli->options.keys;
    enum result r = RESULT_OK;
    for (size_t i = 0; r == RESULT_OK && i < keys->count; i++)
        r = key_ring_add_file(ring, keys->items[i], err);
    if (r != RESULT_OK || keys->count > 0)
        return r;
    _cleanup_(here_done) struct here here = {0};
    here_look(false, &here);
    if (here.inside) {
        _cleanup_(mem_free) char *path = mem_format("%s/.tenure/keys", here.top);
        r = key_ring_add_directory(ring, path, err);
    }
    return r == RESULT_OK ? key_ring_add_own(ring, err) : r;
}
