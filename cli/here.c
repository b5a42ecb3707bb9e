#include "cli/here.h"

#include <stdlib.h>

#include "base/memory.h"
#include "completion/demand/config.h"
#include "completion/repository/candidate.h"

static void look_at_config(const struct candidate *candidate, struct here *ret)
{
    struct config config = {0};
    _cleanup_(error_done) struct error ignored = {0};
    bool read = config_read(candidate->top_fd, &config, NULL, &ignored) == RESULT_OK;
    ret->repository = candidate_repository(candidate, read ? config.repository : NULL);
    ret->store_url = read ? mem_string(config.store_url) : NULL;
    if (read)
        config_done(&config);
}

void here_look(bool with_checkout, struct here *ret)
{
    struct candidate candidate = {.top_fd = -1};
    _cleanup_(error_done) struct error ignored = {0};
    *ret = (struct here){0};
    if (candidate_look(collect_runner(), ".", &candidate, &ignored) != RESULT_OK)
        return;
    ret->inside = true;
    ret->top = mem_string(candidate.top);
    ret->commit = mem_string(candidate.commit);
    ret->tree = mem_string(candidate.tree);
    look_at_config(&candidate, ret);
    char *id = NULL;
    if (with_checkout && candidate_checkout(&candidate, &id, &ignored) == RESULT_OK)
        ret->checkout = mem_format("checkout:%s", id);
    free(id);
    candidate_done(&candidate);
}

void here_done(struct here *here)
{
    free(here->top);
    free(here->repository);
    free(here->store_url);
    free(here->commit);
    free(here->tree);
    free(here->checkout);
    *here = (struct here){0};
}

const char *here_store_url(const struct cli *cli, const struct here *here)
{
    return cli->options.store_url ? cli->options.store_url : here->store_url;
}

enum result here_store_open(const struct cli *cli, const struct here *here, enum store_access access,
    struct store **ret, struct error *err)
{
    struct machine machine;
    enum result r = machine_read(&machine, err);
    if (r != RESULT_OK)
        return r;
    struct store_options options = {
        .url = here_store_url(cli, here), .clock = clock_system(), .machine = &machine};
    return store_open(&options, access, ret, err);
}
