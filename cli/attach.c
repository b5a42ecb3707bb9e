/* `tenure attach`: reconnect to an attempt, here by its journal, elsewhere by its record. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json_table.h"
#include "base/memory.h"
#include "cli/entry.h"
#include "cli/event_text.h"
#include "cli/here.h"
#include "cli/report.h"
#include "cli/screen.h"
#include "cli/verdict.h"
#include "journal/follow.h"
#include "journal/retention.h"

#define FOLLOW_MS    INT64_C(250)
#define RECORD_MS    INT64_C(2000) /* between two looks at a record */
#define SILENT_TURNS (RECORD_MS / FOLLOW_MS)

/* What was learned of an attempt while it was followed. */
struct followed {
    char handle[HANDLE_SIZE];
    bool settled;
    int exit_code;
    char *state, *reason, *text, *proof, *last;
    int64_t duration_ms;
};

static void followed_done(struct followed *followed)
{
    free(followed->state);
    free(followed->reason);
    free(followed->text);
    free(followed->proof);
    free(followed->last);
}

static void keep(char **place, const char *string)
{
    free(*place);
    *place = mem_string(string);
}

static void note_event(struct followed *followed, const struct journal_event *event)
{
    if (event->kind == JOURNAL_SETTLED) {
        followed->settled = true;
        followed->exit_code = (int)event->exit_code;
        followed->duration_ms = event->duration_ms;
        keep(&followed->state, event->state);
        keep(&followed->reason, event->reason);
        keep(&followed->text, event->text);
        keep(&followed->proof, event->proof);
    }
    if (event->kind == JOURNAL_STARTED || event->kind == JOURNAL_FINISHED) {
        free(followed->last);
        followed->last = mem_format("%s %s", event->producer ? event->producer : "?",
            event->kind == JOURNAL_STARTED ? "had started"
            : event->verdict               ? event->verdict
                                           : "had ended");
    }
}

/* ---- the end ---- */

static enum outcome outcome_of_status(int status)
{
    for (int outcome = 0; outcome < OUTCOME_MAX; outcome++)
        if (EXITS[outcome].status == status || (status != 0 && EXITS[outcome].run_status == status))
            return (enum outcome)outcome;
    return OUTCOME_NEGATIVE;
}

static char *settled_sentence(const struct followed *followed)
{
    const char *why = followed->text && *followed->text ? followed->text : followed->reason;
    const char *state = followed->state && *followed->state ? followed->state : "ended";
    if (why && strcmp(why, state) != 0)
        return mem_format("%s %s: %s", followed->handle, state, why);
    return mem_format("%s %s", followed->handle, state);
}

static int tell_settled(const struct cli *cli, const struct followed *followed)
{
    int status = followed->exit_code;
    if (cli->options.json) {
        const char *outcome = status > EXIT_SIGNAL_BASE ? "cancelled" : EXITS[outcome_of_status(status)].name;
        struct json_object *document = report_document(cli, outcome, status);
        json_add_string(document, "handle", followed->handle);
        json_add_string(document, "state", followed->state);
        json_add_string(document, "reason", followed->text ? followed->text : followed->reason);
        json_add_string(document, "proof", followed->proof);
        json_add_integer(document, "duration_ms", followed->duration_ms);
        (void)report_json(cli, document, status);
        return status;
    }
    _cleanup_(text_done) struct text text = {0};
    _cleanup_(mem_free) char *sentence = settled_sentence(followed);
    _cleanup_(mem_free) char *proof =
        followed->proof && *followed->proof ? mem_format("Proof %.12s", followed->proof) : NULL;
    verdict_line(&cli->out, status == 0, sentence, proof, followed->duration_ms, &text);
    if (!cli->options.quiet || status != 0)
        (void)report_print(cli, &text, status);
    return status;
}

/* The executor is gone and had not ended the attempt: what was last known, and no verdict of ours. */
static int tell_gone(const struct cli *cli, const struct followed *followed,
    const struct journal_header *header, const struct liveness *liveness)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(mem_free) char *owner = executor_text(&header->executor);
    error_set(&err, RESULT_RETIRED, 0, "%s: its executor (%s) is %s and left no outcome (%s)%s%s",
        followed->handle, owner, owner_verdict_name(liveness->verdict),
        liveness->why ? liveness->why : "no more is known", followed->last ? "; last known: " : "",
        followed->last ? followed->last : "");
    error_remedy(&err, "start it again: what it left is ended first; or retire it: tenure cancel %s",
        followed->handle);
    return report_error_as(cli, &err, OUTCOME_LOST);
}

/* ---- by the journal ---- */

static enum result open_screen(const struct cli *cli, struct screen **ret, struct error *err)
{
    struct screen_options options = {
        .look = cli->options.json ? cli->err : cli->out, .clock = clock_system(), .patient = true};
    if (cli->options.quiet || (cli->options.json && !cli->err.terminal))
        return RESULT_OK;
    return screen_open(&options, ret, err);
}

/* The screen learns handle and directory as it does from a run's own tap. */
static void show_header(struct screen *screen, const struct follow *follow, const char *path)
{
    const struct journal_header *header = follow_header(follow);
    const char *slash = strrchr(path, '/');
    _cleanup_(mem_free) char *directory =
        slash ? mem_format("%.*s", (int)(slash - path), path) : mem_string(".");
    struct journal_event event = {
        .kind = JOURNAL_HEADER, .boot_ms = header->boot_ms, .text = header->handle, .log = directory};
    screen_event(screen, &event);
}

/* ---- leaving it ---- */

/* A signal handler is handed nothing. A second signal ends us at once: SA_RESETHAND. */
static volatile sig_atomic_t detach_signal;

static void on_detach(int signal)
{
    detach_signal = signal;
}

static void listen_for_detach(void)
{
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < ARRAY_SIZE(SIGNALS); i++) {
        struct sigaction action = {0};
        if (sigaction(SIGNALS[i], NULL, &action) < 0 || action.sa_handler != SIG_DFL)
            continue;
        action = (struct sigaction){.sa_handler = on_detach, .sa_flags = (int)SA_RESETHAND};
        sigaction(SIGNALS[i], &action, NULL);
    }
}

static int tell_detached(const struct cli *cli, const struct followed *followed)
{
    int status = EXIT_SIGNAL_BASE + detach_signal;
    _cleanup_(text_done) struct text text = {0};
    if (cli->options.json) {
        struct json_object *document = report_document(cli, "detached", status);
        json_add_string(document, "handle", followed->handle);
        return report_json(cli, document, status);
    }
    text_addf(&text, "detached; %s goes on\n", followed->handle);
    report_complain(&text);
    return status;
}

static int tell_record(const struct cli *cli, const struct overview_entry *entry);

static enum result record_of(const struct cli *cli, const char *handle, struct overview_entry *ret)
{
    _cleanup_(error_done) struct error ignored = {0};
    _cleanup_(here_done) struct here here = {0};
    here_look(false, &here);
    return overview_find(here_store_url(cli, &here), handle, ret, &ignored);
}

/* Where nothing proves that the owner of a journal lives or is gone (a copy, an earlier boot in a container),
 * its record decides whether there is anything to wait for. */
static bool record_is_over(const struct cli *cli, const char *handle)
{
    struct overview_entry entry = {0};
    enum result r = record_of(cli, handle, &entry);
    bool over =
        r == RESULT_ABSENT || (r == RESULT_OK && (!attempt_is_unfinished(&entry.attempt) || entry.lapsed));
    overview_entry_done(&entry);
    return over;
}

/* UNKNOWN: the journal says no more, its owner's fate is unknown, and its attempt is over by the record. */
static enum result follow_all(const struct cli *cli, struct follow *follow, struct screen *screen,
    struct followed *followed, struct error *err)
{
    for (int silent = 0; !detach_signal;) {
        struct journal_event event = {0};
        enum result r = follow_next(follow, FOLLOW_MS, &event, err);
        if (r == RESULT_BUSY) {
            error_done(err);
            if (follow_verdict(follow).verdict == OWNER_UNKNOWN && silent++ % SILENT_TURNS == 0 &&
                record_is_over(cli, followed->handle))
                return RESULT_UNKNOWN;
            continue;
        }
        if (r != RESULT_OK)
            return r;
        screen_event(screen, &event);
        note_event(followed, &event);
        journal_event_done(&event);
    }
    return error_set(err, RESULT_INTERRUPTED, 0, "detached");
}

static int attach_journal(struct cli *cli, const char *path)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(followed_done) struct followed followed = {0};
    struct machine machine = {0};
    struct screen *screen = NULL;
    struct follow *follow = NULL;
    enum result r = machine_read(&machine, &err);
    if (r == RESULT_OK)
        r = follow_open(path, &machine, &follow, &err);
    listen_for_detach(); /* before the screen, whose guard takes only what nobody has taken */
    if (r == RESULT_OK)
        r = open_screen(cli, &screen, &err);
    if (r != RESULT_OK) {
        follow_close(follow);
        return report_error(cli, &err);
    }
    memcpy(followed.handle, follow_header(follow)->handle, sizeof(followed.handle));
    show_header(screen, follow, path);
    r = follow_all(cli, follow, screen, &followed, &err);
    screen_close(screen);
    struct liveness liveness = follow_verdict(follow);
    struct overview_entry entry = {0};
    bool recorded = r == RESULT_UNKNOWN && record_of(cli, followed.handle, &entry) == RESULT_OK;
    bool over = r == RESULT_ABSENT || r == RESULT_UNKNOWN;
    int status = r == RESULT_INTERRUPTED ? tell_detached(cli, &followed)
                 : followed.settled      ? tell_settled(cli, &followed)
                 : recorded              ? tell_record(cli, &entry)
                 : over                  ? tell_gone(cli, &followed, follow_header(follow), &liveness)
                                         : report_error(cli, &err);
    overview_entry_done(&entry);
    follow_close(follow);
    return status;
}

/* ---- by the record ---- */

static enum outcome outcome_of_state(enum attempt_state state)
{
    return state == ATTEMPT_PASSED ? OUTCOME_DONE : state == ATTEMPT_FAILED ? OUTCOME_NEGATIVE : OUTCOME_LOST;
}

static void add_place(const struct attempt *attempt, struct text *ret)
{
    if (attempt->journal_path)
        text_addf(ret, "its journal is on %s: %s",
            attempt->journal_host ? attempt->journal_host : attempt->executor.host, attempt->journal_path);
    else
        text_add(ret, "it has no journal");
}

static int tell_record(const struct cli *cli, const struct overview_entry *entry)
{
    const struct attempt *attempt = &entry->attempt;
    enum outcome outcome = attempt_is_unfinished(attempt) ? OUTCOME_LOST : outcome_of_state(attempt->state);
    int status = report_status(cli, outcome);
    if (cli->options.json) {
        struct json_object *document = report_document(cli, EXITS[outcome].name, status);
        json_object_object_add(document, "attempt", entry_json(attempt, entry));
        (void)report_json(cli, document, status);
        return status;
    }
    _cleanup_(text_done) struct text text = {0};
    const char *name = attempt_name(attempt);
    _cleanup_(mem_free) char *sentence =
        attempt_is_unfinished(attempt)
            ? mem_format("%s has lapsed: its owner on %s was last heard of some time ago", name,
                  attempt->executor.host)
            : mem_format("%s %s", name, attempt_state_name(attempt->state));
    verdict_line(&cli->out, outcome == OUTCOME_DONE, sentence,
        attempt->reason.text ? attempt->reason.text : attempt->reason.code, -1, &text);
    (void)report_print(cli, &text, status);
    return status;
}

static void say_progress(const struct cli *cli, const struct attempt *attempt, char **shown)
{
    _cleanup_(text_done) struct text text = {0};
    progress_add(attempt, &text);
    if (cli->options.json || cli->options.quiet || (*shown && strcmp(*shown, text.bytes) == 0))
        return;
    free(*shown);
    *shown = mem_string(text.bytes);
    text_add(&text, "\n");
    (void)report_print(cli, &text, 0);
}

static void say_place(const struct cli *cli, const struct attempt *attempt)
{
    _cleanup_(text_done) struct text place = {0}, text = {0};
    if (cli->options.json || cli->options.quiet)
        return;
    add_place(attempt, &place);
    look_add_foreign(&cli->out, &text, place.bytes);
    text_add(&text, "\n");
    (void)report_print(cli, &text, 0);
}

static void pause_ms(int64_t ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* Takes over `entry`. Ends when the attempt has ended, or its lease has run out and nobody renews it. */
static int attach_record(struct cli *cli, const char *store_url, struct overview_entry *entry)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(mem_free) char *shown = NULL;
    _cleanup_(mem_free) char *id = mem_string(entry->attempt.id);
    enum result r = RESULT_OK;
    say_place(cli, &entry->attempt);
    while (attempt_is_unfinished(&entry->attempt) && !entry->lapsed) {
        say_progress(cli, &entry->attempt, &shown);
        pause_ms(RECORD_MS);
        struct overview_entry next = {0};
        error_done(&err);
        r = overview_find(store_url, id, &next, &err);
        if (r == RESULT_BUSY || r == RESULT_UNREACHABLE)
            continue;
        if (r != RESULT_OK)
            break;
        overview_entry_done(entry);
        *entry = next;
    }
    int status = r == RESULT_OK ? tell_record(cli, entry) : report_error(cli, &err);
    overview_entry_done(entry);
    return status;
}

/* ---- which attempt ---- */

static bool is_on_this_machine(const struct attempt *attempt)
{
    struct machine machine = {0};
    _cleanup_(error_done) struct error ignored = {0};
    return attempt->journal_path && machine_read(&machine, &ignored) == RESULT_OK &&
           strcmp(machine.machine_id, attempt->executor.machine_id) == 0;
}

/* Takes over `entry`. */
static int tell_pruned(const struct cli *cli, struct overview_entry *entry)
{
    _cleanup_(error_done) struct error err = {0};
    error_set(&err, RESULT_ABSENT, 0, "the journal of %s was pruned; it %s %s", attempt_name(&entry->attempt),
        entry->attempt.state == ATTEMPT_CANCELLED ? "was" : "had", attempt_state_name(entry->attempt.state));
    error_remedy(&err, "`tenure log --all` has its outcome");
    overview_entry_done(entry);
    return report_error(cli, &err);
}

/* Takes over `entry`. */
static int attach_entry(struct cli *cli, const char *store_url, struct overview_entry *entry)
{
    if (!is_on_this_machine(&entry->attempt))
        return attach_record(cli, store_url, entry);
    if (!attempt_is_unfinished(&entry->attempt) && access(entry->attempt.journal_path, F_OK) != 0)
        return tell_pruned(cli, entry);
    _cleanup_(mem_free) char *path = mem_string(entry->attempt.journal_path);
    overview_entry_done(entry);
    return attach_journal(cli, path);
}

static int attach_named(struct cli *cli, const char *typed)
{
    char handle[HANDLE_SIZE];
    _cleanup_(error_done) struct error err = {0}, ignored = {0}, local_error = {0};
    _cleanup_(here_done) struct here here = {0};
    _cleanup_(mem_free) char *path = NULL;
    bool is_handle = handle_parse(typed, handle, &ignored) == RESULT_OK;
    if (is_handle && journal_locate(NULL, handle, &path, &local_error) == RESULT_OK)
        return attach_journal(cli, path);
    here_look(false, &here);
    const char *store_url = here_store_url(cli, &here);
    struct overview_entry entry = {0};
    enum result r = overview_find(store_url, typed, &entry, &err);
    if (r == RESULT_OK)
        return attach_entry(cli, store_url, &entry);
    return report_error(cli, r == RESULT_ABSENT && is_handle ? &local_error : &err);
}

/* The newest attempt of this checkout, a running one first. */
static struct overview_entry *pick(struct overview *overview, const struct here *here)
{
    struct overview_entry *newest = NULL;
    for (size_t i = 0; i < overview->count; i++) {
        struct overview_entry *entry = &overview->items[i];
        if (here->checkout && !attempt_holds(&entry->attempt, here->checkout))
            continue;
        if (attempt_is_unfinished(&entry->attempt))
            return entry;
        newest = newest ? newest : entry;
    }
    return newest;
}

static int attach_here(struct cli *cli)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(here_done) struct here here = {0};
    struct overview overview = {0};
    here_look(true, &here);
    struct attempt_query query = {.repository = here.repository, .limit = 100};
    if (overview_read(here_store_url(cli, &here), &query, &overview, &err) != RESULT_OK)
        return report_error(cli, &err);
    struct overview_entry *picked = pick(&overview, &here);
    if (!picked) {
        overview_done(&overview);
        error_set(&err, RESULT_ABSENT, 0, "no attempt of this checkout is known");
        error_remedy(&err, "name one: tenure attach HANDLE; `tenure status --all` lists them");
        return report_error(cli, &err);
    }
    struct overview_entry entry = *picked;
    *picked = (struct overview_entry){0};
    overview_done(&overview);
    return attach_entry(cli, here_store_url(cli, &here), &entry);
}

static int attach_run(struct cli *cli)
{
    return cli->options.words.count > 0 ? attach_named(cli, cli->options.words.items[0]) : attach_here(cli);
}

const struct command COMMAND_ATTACH = {
    .name = "attach",
    .group = GROUP_WATCH,
    .synopsis = "attach [HANDLE|ATTEMPT]",
    .summary = "reconnect: follow an attempt from any terminal",
    .details =
        "Replays the journal and follows it; exits with the attempt's own exit status, or 4 when its "
        "executor\n"
        "died. Without a handle: the running attempt of this checkout, else its last one. Any number may\n"
        "attach, and none of them delays the run.",
    .words_max = 1,
    .status_is_the_attempts = true,
    .run = attach_run,
};
