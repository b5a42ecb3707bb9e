/* What the tests of the supervisor share: one with real processes, and a store that answers as told. Leases
 * of two seconds: renewed every 0.6 s, own deadline 1.5 s after a confirmation was sent. */
#ifndef TESTS_UNIT_SUPERVISOR_SUPERVISING_H
#define TESTS_UNIT_SUPERVISOR_SUPERVISING_H

#include "tests/unit/supervisor/processes.h"

#include <signal.h>

#include "journal/journal.h"
#include "supervisor/supervisor-private.h"
#include "tests/unit/supervisor/fake_store.h"

#define TTL_MS       INT64_C(2000)
#define HEARTBEAT_MS INT64_C(600)

struct fixture {
    struct folder folder;
    struct machine machine;
    struct executor executor;
    struct journal *journal;
    struct supervisor *supervisor;
    struct credential credential;
    struct store_options store;
    int kinds[JOURNAL_KIND_MAX]; /* how many of each the journal was told */
    char *last_text[JOURNAL_KIND_MAX];
    int64_t begun_boot_ms;
};

static void tap(void *context, const struct journal_event *event)
{
    struct fixture *f = context;
    f->kinds[event->kind]++;
    free(f->last_text[event->kind]);
    f->last_text[event->kind] = mem_string(event->text);
}

struct setting {
    int64_t patience_ms, grace_ms;
    enum lapse_policy on_lapse;
};

static _unused_ void begin_with(struct fixture *f, struct setting setting)
{
    *f = (struct fixture){0};
    folder_make(&f->folder);
    assert_int_equal(machine_read(&f->machine, NULL), RESULT_OK);
    assert_int_equal(executor_self(&f->machine, &f->executor, NULL), RESULT_OK);
    struct journal_options journal = {
        .root = f->folder.path, .clock = clock_system(), .executor = &f->executor};
    assert_int_equal(journal_create(&journal, &f->journal, NULL), RESULT_OK);
    journal_set_tap(f->journal, tap, f);
    f->begun_boot_ms = boot_ms();
    struct supervisor_options options = {
        .clock = clock_system(),
        .spawner = spawner_system(),
        .journal = f->journal,
        .store = &f->store,
        .open_store = fake_open,
        .credential = &f->credential,
        .terms = {.ttl_ms = TTL_MS, .heartbeat_ms = HEARTBEAT_MS},
        .sent_boot_ms = f->begun_boot_ms,
        .on_lapse = setting.on_lapse,
        .lapse_patience_ms = setting.patience_ms,
        .grace_ms = setting.grace_ms,
    };
    assert_int_equal(supervisor_start(&options, &f->supervisor, NULL), RESULT_OK);
}

static _unused_ void begin(struct fixture *f)
{
    begin_with(f, (struct setting){.patience_ms = 60000, .grace_ms = 5000});
}

static _unused_ void end(struct fixture *f)
{
    supervisor_free(f->supervisor);
    journal_close(f->journal);
    folder_done(&f->folder);
    for (int i = 0; i < JOURNAL_KIND_MAX; i++)
        free(f->last_text[i]);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody was left behind */
}

/* A job that runs `sh -c line` in the fixture's folder. */
static _unused_ enum result start(
    struct fixture *f, const char *name, const char *line, struct job_request extra)
{
    int directory_fd = open(f->folder.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct job_request request = extra;
    request.name = name;
    request.argv = (const char *const[]){"sh", "-c", line, NULL};
    request.environment = ENVIRONMENT;
    request.directory_fd = directory_fd;
    _cleanup_(error_done) struct error err = {0};
    enum result r = supervisor_spawn(f->supervisor, &request, &err);
    if (r != RESULT_OK && r != RESULT_BUSY && r != RESULT_INTERRUPTED)
        fail_msg("%s", err.message);
    close(directory_fd);
    return r;
}

static _unused_ void start_well(struct fixture *f, const char *line, struct job_request extra)
{
    assert_int_equal(start(f, "job", line, extra), RESULT_OK);
}

static _unused_ struct supervisor_event next(struct fixture *f)
{
    struct supervisor_event event = {0};
    _cleanup_(error_done) struct error err = {0};
    if (supervisor_next(f->supervisor, &event, &err) != RESULT_OK)
        fail_msg("%s", err.message);
    return event;
}

/* The next event of a kind; others are passed over, but an idle supervisor will have none. */
static _unused_ struct job_outcome next_of(struct fixture *f, enum supervisor_event_kind kind)
{
    for (;;) {
        struct supervisor_event event = next(f);
        if (event.kind == kind)
            return event.outcome;
        if (event.kind == SUPERVISOR_IDLE)
            fail_msg("no event of kind %d came", (int)kind);
        job_outcome_done(&event.outcome);
    }
}

static _unused_ void assert_verdict(const struct job_outcome *outcome, enum job_verdict verdict)
{
    if (outcome->verdict != verdict)
        fail_msg(
            "%s, not %s: %s", job_verdict_name(outcome->verdict), job_verdict_name(verdict), outcome->text);
}

static _unused_ bool exists(const struct fixture *f, const char *name)
{
    _cleanup_(mem_free) char *path = mem_format("%s/%s", f->folder.path, name);
    return access(path, F_OK) == 0;
}

static _unused_ pid_t pid_in(const struct fixture *f, const char *name)
{
    _cleanup_(mem_free) char *path = mem_format("%s/%s", f->folder.path, name);
    _cleanup_(text_done) struct text text = {0};
    wait_until((text_clear(&text), file_read(AT_FDCWD, path, false, 100, &text, NULL) == RESULT_OK &&
                                       strchr(text.bytes != NULL ? text.bytes : "", '\n') != NULL));
    return (pid_t)atoi(text.bytes);
}

static _unused_ bool is_alive(pid_t pid)
{
    return kill(pid, 0) == 0;
}

static _unused_ int set_up(void **state)
{
    (void)state;
    unsetenv("TENURE_FAILPOINT");
    fake_reset();
    return 0;
}

#endif
