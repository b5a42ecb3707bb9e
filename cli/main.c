/* `tenure`: finds the command, has its options read, and lets it run. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "cli/help.h"
#include "cli/report.h"
#include "supervisor/marks.h"

/* A descriptor that was closed would be given to the next file that is opened, a journal perhaps. Opened the
 * wrong way round it still fails for whoever reads or writes it. */
static void fill_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            abort();
}

/* A terminal or a pipe that does not take our output is no reason to stop or to die, nor is a file that may
 * grow no further: that is an error, to be told like that of a full disk. */
static void settle_signals(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

static char *join(int argc, char **argv)
{
    struct text line = {0};
    text_add(&line, "tenure");
    for (int i = 1; i < argc; i++) {
        text_add(&line, " ");
        text_add_printable(&line, argv[i], strlen(argv[i]), false);
    }
    return text_steal(&line);
}

/* In work of an attempt, TENURE_STORE is its mark, and no address. */
static const char *store_of_environment(void)
{
    const char *value = getenv("TENURE_STORE");
    return value && *value && !mark_stores_are_ids(value) ? value : NULL;
}

static int print_version(const struct cli *cli)
{
    _cleanup_(text_done) struct text text = {0};
    if (cli->options.json) {
        struct json_object *document = report_document(cli, EXITS[OUTCOME_DONE].name, 0);
        json_object_object_add(document, "version", json_object_new_string(TENURE_VERSION));
        return report_json(cli, document, 0);
    }
    text_add(&text, "tenure " TENURE_VERSION "\n");
    return report_print(cli, &text, 0);
}

static bool is_listed_before(size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(failpoint_name(i), failpoint_name(index)) == 0)
            return true;
    return false;
}

static int print_failpoints(const struct cli *cli)
{
    _cleanup_(text_done) struct text text = {0};
    for (size_t i = 0; failpoint_name(i); i++)
        if (!is_listed_before(i))
            text_addf(&text, "%s\n", failpoint_name(i));
    return report_print(cli, &text, 0);
}

static int print_help(const struct cli *cli)
{
    _cleanup_(text_done) struct text text = {0};
    if (cli->command)
        help_add_command(&cli->out, cli->command, &text);
    else
        help_add(&cli->out, &text);
    return report_print(cli, &text, 0);
}

static int refuse_nothing(const struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    error_set(&err, RESULT_INVALID, 0, "tenure: no command is given");
    error_remedy(&err, "`tenure help` lists them; `tenure done` proves HEAD");
    return report_error(cli, &err);
}

static int go_there(const struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    if (!cli->options.directory || chdir(cli->options.directory) == 0)
        return 0;
    error_errno(&err, errno, "--directory: cannot go to %s", cli->options.directory);
    return report_error_as(cli, &err, OUTCOME_REFUSED);
}

static int dispatch(struct cli *cli)
{
    if (cli->options.list_failpoints)
        return print_failpoints(cli);
    if (cli->options.version)
        return print_version(cli);
    if (cli->options.help)
        return print_help(cli);
    if (!cli->command)
        return refuse_nothing(cli);
    if (!cli->options.store_url)
        cli->options.store_url = store_of_environment();
    int refused = go_there(cli);
    return refused ? refused : cli->command->run(cli);
}

int main(int argc, char **argv)
{
    _cleanup_(error_done) struct error err = {0};
    struct cli cli = {0};
    fill_descriptors();
    settle_signals();
    digest_begin();
    setlocale(LC_CTYPE, "");
    _cleanup_(mem_free) char *line = join(argc, argv);
    cli.line = line;
    options_init(&cli.options);
    enum result r =
        options_parse(COMMANDS, argc, (const char *const *)argv, &cli.options, &cli.command, &err);
    cli.out = look_at(STDOUT_FILENO, (enum color_choice)cli.options.color);
    cli.err = look_at(STDERR_FILENO, (enum color_choice)cli.options.color);
    int status = r == RESULT_OK ? dispatch(&cli) : report_error(&cli, &err);
    options_done(&cli.options);
    return status;
}
