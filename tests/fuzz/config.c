/*
 * Whatever the bytes: read or refused with a position, never both; what is read is consistent in itself, and
 * read again it is the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "completion/demand/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_order(const struct config *config)
{
    _cleanup_(mem_free) bool *done = mem_alloc(config->producer_count);
    for (size_t i = 0; i < config->producer_count; i++) {
        const struct producer *producer = &config->producers[config->order[i]];
        for (size_t n = 0; n < producer->needs.count; n++)
            if (!done[producer->need_indices[n]])
                abort();
        if (done[config->order[i]] || producer->run.words.count == 0)
            abort();
        done[config->order[i]] = true;
    }
}

static void check_refusal(const struct error *err)
{
    const char *message = err->message;
    if (!message || strncmp(message, CONFIG_NAME ":", strlen(CONFIG_NAME ":")) != 0 || strchr(message, '\n'))
        abort();
    int line = 0, column = 0;
    char *rest = NULL;
    line = (int)strtol(message + strlen(CONFIG_NAME ":"), &rest, 10);
    if (*rest == ':')
        column = (int)strtol(rest + 1, &rest, 10);
    if (line < 1 || column < 1 || *rest != ':')
        abort();
}

/* A copy of exactly the size: a read past its end is seen. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *text = mem_resize(NULL, length, 1);
    if (length)
        memcpy(text, bytes, length);
    struct config config = {0}, again = {0};
    _cleanup_(error_done) struct error err = {0};
    enum result r = config_parse(text, length, &config, &err);
    if (r == RESULT_OK) {
        check_order(&config);
        if (config_parse(text, length, &again, NULL) != RESULT_OK || strcmp(config.digest, again.digest) != 0)
            abort();
    } else if (r == RESULT_INVALID) {
        check_refusal(&err);
    } else {
        abort();
    }
    config_done(&config);
    config_done(&again);
    free(text);
    return 0;
}
