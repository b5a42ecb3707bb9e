/* `tenure init`: a configuration that fits what is there, a key, and the next command. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json_table.h"
#include "base/memory.h"
#include "cli/report.h"
#include "cli/verdict.h"
#include "completion/demand/config.h"
#include "completion/demand/starter.h"
#include "completion/proof/keys.h"

struct made {
    char *path; /* of the configuration */
    bool config_made, key_made;
    struct starter starter;
    struct public_key key;
};

static void made_done(struct made *made)
{
    free(made->path);
    starter_done(&made->starter);
    public_key_done(&made->key);
}

/* The work tree's root, also of one without a commit yet: upwards until a .git is there. */
static enum result find_top(char **ret, struct error *err)
{
    _cleanup_(mem_free) char *directory = getcwd(NULL, 0);
    if (!directory)
        return error_errno(err, errno, "cannot tell the work directory");
    for (;;) {
        _cleanup_(mem_free) char *git = mem_format("%s/.git", directory);
        if (access(git, F_OK) == 0) {
            *ret = STEAL(directory);
            return RESULT_OK;
        }
        char *slash = strrchr(directory, '/');
        if (!slash || directory[0] == '\0')
            break;
        *slash = '\0';
    }
    error_set(err, RESULT_INVALID, 0, "this is no git repository, and nothing above it is");
    return error_remedy(err, "make one: git init");
}

static enum result make_config(const char *top, struct made *ret, struct error *err)
{
    _cleanup_(fd_cleanup) int top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top_fd < 0)
        return error_errno(err, errno, "cannot open %s", top);
    ret->path = mem_format("%s/" CONFIG_NAME, top);
    enum result r = starter_make(top_fd, &ret->starter, err);
    if (r == RESULT_OK)
        r = file_write_atomic(
            ret->path, 0644, true, ret->starter.config.bytes, ret->starter.config.length, err);
    ret->config_made = r == RESULT_OK;
    if (r != RESULT_CONFLICT)
        return r;
    error_done(err);
    return RESULT_OK;
}

static enum result make_key(struct made *ret, struct error *err)
{
    enum result r = key_check(NULL, err);
    if (r != RESULT_ABSENT)
        return r;
    error_done(err);
    r = key_make(NULL, "default", &ret->key, err);
    ret->key_made = r == RESULT_OK;
    return r;
}

static int print_json(const struct cli *cli, const struct made *made)
{
    struct json_object *document = report_document(cli, EXITS[OUTCOME_DONE].name, 0);
    json_object_object_add(document, "config", json_from_bytes(made->path, strlen(made->path)));
    json_add_boolean(document, "config_made", made->config_made);
    json_add_string(document, "found", made->config_made ? made->starter.kind : NULL);
    json_add_string(document, "chores",
        made->config_made && made->starter.chores.length > 0 ? made->starter.chores.bytes : NULL);
    json_add_boolean(document, "key_made", made->key_made);
    json_add_string(document, "key_id", made->key_made ? made->key.id : NULL);
    return report_json(cli, document, 0);
}

static int print(const struct cli *cli, const struct made *made)
{
    _cleanup_(text_done) struct text text = {0};
    bool found = made->config_made && strcmp(made->starter.kind, "none") != 0;
    _cleanup_(mem_free) char *sentence =
        !made->config_made ? mem_format("kept %s as it is", made->path)
        : found            ? mem_format("wrote %s for what was found: %s", made->path, made->starter.kind)
                           : mem_format("wrote %s: fill in the command that tests this tree", made->path);
    if (cli->options.json)
        return print_json(cli, made);
    if (cli->options.quiet)
        return 0;
    verdict_line(&cli->out, true, sentence, NULL, -1, &text);
    if (made->key_made)
        verdict_line(&cli->out, true, "made a key", made->key.id, -1, &text);
    if (made->config_made && made->starter.chores.length > 0)
        text_addf(&text, "  next: %s\n", made->starter.chores.bytes);
    if (made->config_made)
        text_addf(&text,
            "  next: look at it, then  git add %s%s && git commit -m 'Prove this tree' && tenure done\n",
            CONFIG_NAME, made->starter.ignores ? " .gitignore" : "");
    else
        text_add(&text, "  next: tenure done\n");
    return report_print(cli, &text, 0);
}

static int init_run(struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(made_done) struct made made = {0};
    _cleanup_(mem_free) char *top = NULL;
    enum result r = find_top(&top, &err);
    if (r == RESULT_OK)
        r = make_config(top, &made, &err);
    if (r == RESULT_OK)
        r = make_key(&made, &err);
    return r == RESULT_OK ? print(cli, &made) : report_error(cli, &err);
}

const struct command COMMAND_INIT = {
    .name = "init",
    .group = GROUP_PROVE,
    .synopsis = "init",
    .summary = "write a tenure.json that fits what is here, and a key",
    .details = "Looks for make, cmake, meson, npm, cargo, go, python and shell. Never overwrites anything.",
    .words_max = 0,
    .run = init_run,
};
