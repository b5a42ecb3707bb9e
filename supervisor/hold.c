#include "supervisor/hold.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/files.h"
#include "base/memory.h"
#include "supervisor/hold-private.h"
#include "supervisor/leftovers.h"
#include "supervisor/marks.h"
#include "supervisor/supervisor-private.h"

#define PAUSE_SLICE_MS  INT64_C(50)
#define STORE_SILENT_MS INT64_C(1000)
#define STORE_ASKED_MS  INT64_C(250) /* without a question for so long, it is another wait */

/* ---- small things ---- */

int64_t hold_now(const struct hold *hold)
{
    return hold->clock->boot_ms(hold->clock);
}

int64_t hold_jitter_ms(int64_t least_ms, int64_t most_ms)
{
    uint64_t random;
    random_bytes(&random, sizeof(random));
    return least_ms + (int64_t)(random % (uint64_t)(most_ms - least_ms + 1));
}

static void sleep_until_signal(const struct hold *hold, int64_t pause_ms)
{
    struct pollfd fd = {.fd = hold->signal_fd, .events = POLLIN};
    poll(&fd, 1, (int)pause_ms); /* a negative descriptor is passed over */
}

void hold_pause(struct hold *hold, int64_t pause_ms)
{
    int64_t until = hold_now(hold) + pause_ms;
    for (int64_t left = pause_ms; left > 0; left = until - hold_now(hold)) {
        int64_t slice = left < PAUSE_SLICE_MS ? left : PAUSE_SLICE_MS;
        if (hold->supervisor == NULL) {
            sleep_until_signal(hold, left);
            return;
        }
        if (loop_turn(hold->supervisor, slice, NULL) != RESULT_OK)
            return;
    }
}

/* Said once: who looks at a run that stands still wants to know on whom it waits. */
static void tell_store_waiting(struct hold *hold)
{
    int64_t now = hold_now(hold);
    if (now - hold->store_asked_boot_ms > STORE_ASKED_MS)
        hold->store_wait_boot_ms = now;
    hold->store_asked_boot_ms = now;
    if (hold->store_told || hold->journal == NULL || now - hold->store_wait_boot_ms < STORE_SILENT_MS)
        return;
    hold->store_told = true;
    const char *url = hold->options.store_url;
    if (store_is_server(url)) {
        _cleanup_(mem_free) char *server = store_url_printable(url);
        hold_note(hold, "waiting for the store: no answer from %s", server);
        return;
    }
    _cleanup_(mem_free) char *locker = store_locker(url);
    hold_note(hold, "waiting for the store: locked by %s", locker != NULL ? locker : "another process");
}

/* Work that goes on, or is frozen, waits for a server that is away as long as nothing stops the run: the
 * guard and the patience of a frozen run bound that. Whatever else waits for it, what is ending included, has
 * one statement's time. */
static bool may_wait_on(const struct hold *hold)
{
    bool stopped = hold->supervisor == NULL || supervisor_stop_of(hold->supervisor)->cause != STOP_NONE;
    bool patient = !stopped && !hold->ending;
    return patient || !store_is_server(hold->options.store_url) ||
           hold_now(hold) - hold->store_wait_boot_ms < HOLD_STATEMENT_MS;
}

/* Called while the store waits for somebody's lock: a signal ends that before we hold anything; afterwards
 * the heartbeat must see the loop turn. */
static bool on_store_waiting(void *context)
{
    struct hold *hold = context;
    tell_store_waiting(hold);
    if (hold->supervisor != NULL) {
        supervisor_turn(hold->supervisor);
        return hold->settling ? supervisor_stop_of(hold->supervisor)->cause == STOP_NONE : may_wait_on(hold);
    }
    struct pollfd fd = {.fd = hold->signal_fd, .events = POLLIN};
    return may_wait_on(hold) && poll(&fd, 1, 0) <= 0;
}

/* Not before something is held: the journal of a run that is refused is discarded, and its handle would lead
 * nowhere. */
static void tell_handle(struct hold *hold)
{
    if (hold->handle_told)
        return;
    hold->handle_told = true;
    struct journal_event event = {
        .kind = JOURNAL_HEADER,
        .text = journal_handle(hold->journal),
        .log = journal_directory(hold->journal),
    };
    if (hold->options.tap != NULL)
        hold->options.tap(hold->options.tap_context, &event);
}

void hold_tell(struct hold *hold, const struct journal_event *event, enum journal_durability durability)
{
    tell_handle(hold);
    _cleanup_(error_done) struct error err = {0};
    if (journal_append(hold->journal, event, durability, &err) != RESULT_OK)
        hold_note(hold, "%s", err.message); /* broken from now on: this reaches the tap alone */
}

void hold_note(struct hold *hold, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    _cleanup_(mem_free) char *text = mem_vformat(format, arguments);
    va_end(arguments);
    struct journal_event event = {.kind = JOURNAL_NOTE, .text = text};
    enum result r = journal_append(hold->journal, &event, JOURNAL_LAZY, NULL);
    (void)r;
}

enum result hold_reopen(struct hold *hold, struct error *err)
{
    store_close(STEAL(hold->store));
    return store_open(&hold->store_options, STORE_WRITE, &hold->store, err);
}

void hold_free(struct hold *hold)
{
    supervisor_free(hold->supervisor);
    store_close(hold->store);
    if (hold->journal != NULL)
        journal_close(hold->journal);
    fd_close(hold->signal_fd);
    signals_end(&hold->signals);
    attempt_done(&hold->attempt);
    for (size_t i = 0; i < ARRAY_SIZE(hold->marks); i++)
        free(hold->marks[i]);
    explicit_bzero(&hold->reservation.credential, sizeof(hold->reservation.credential));
    free(hold);
}

/* ---- beginning ---- */

static enum result hold_new(const struct hold_options *options, struct hold **ret, struct error *err)
{
    struct hold *hold = mem_alloc(sizeof(*hold));
    hold->options = *options;
    hold->clock = clock_system();
    hold->signal_fd = -1;
    hold->begun_boot_ms = hold_now(hold);
    if (hold->options.grace_ms == 0)
        hold->options.grace_ms = GRACE_DEFAULT_MS;
    if (hold->options.lapse_patience_ms == 0)
        hold->options.lapse_patience_ms = LAPSE_PATIENCE_DEFAULT_MS;
    signals_begin(&hold->signals, SIGNALS_ENDING);
    enum result r = lease_terms_check(&hold->options.terms, err);
    if (r == RESULT_OK)
        r = signals_open_fd(&hold->signals, &hold->signal_fd, err);
    if (r == RESULT_OK)
        r = machine_read(&hold->machine, err);
    if (r == RESULT_OK)
        r = executor_self(&hold->machine, &hold->executor, err);
    if (r != RESULT_OK) {
        hold_free(hold);
        return r;
    }
    hold->store_options = (struct store_options){
        .url = options->store_url,
        .clock = hold->clock,
        .machine = &hold->machine,
        .deadline_ms = HOLD_STATEMENT_MS,
        .patience_ms = hold->options.lapse_patience_ms + options->terms.ttl_ms,
        .waiting = on_store_waiting,
        .waiting_context = hold,
    };
    *ret = hold;
    return RESULT_OK;
}

static enum result open_journal(struct hold *hold, struct error *err)
{
    struct journal_options options = {.clock = hold->clock, .executor = &hold->executor};
    enum result r = journal_create(&options, &hold->journal, err);
    if (r != RESULT_OK)
        return r;
    journal_set_tap(hold->journal, hold->options.tap, hold->options.tap_context);
    FAILPOINT("hold-after-journal");
    return RESULT_OK;
}

/* Many may open, and one creates: who meets a busy store tries again. */
static enum result open_store(struct hold *hold, struct error *err)
{
    int64_t until = hold_now(hold) + HOLD_BUSY_MS;
    for (;;) {
        _cleanup_(error_done) struct error why = {0};
        enum result r = store_open(&hold->store_options, STORE_WRITE, &hold->store, &why);
        struct pollfd fd = {.fd = hold->signal_fd, .events = POLLIN};
        hold->store_options.known |= r == RESULT_OK;
        if (r != RESULT_BUSY || hold_now(hold) >= until || poll(&fd, 1, 0) > 0)
            return r == RESULT_OK ? r : error_move(err, &why);
        hold_pause(hold, hold_jitter_ms(10, 100));
    }
}

static void tell_reserved(struct hold *hold)
{
    _cleanup_(mem_free) char *directory = getcwd(NULL, 0);
    struct journal_event event = {
        .kind = JOURNAL_RESERVED,
        .attempt = hold->attempt.id,
        .fence = hold->attempt.fence,
        .attempt_kind = attempt_kind_name(hold->options.kind),
        .repository = hold->options.repository,
        .commit = hold->options.commit,
        .tree = hold->options.tree,
        .text = hold->options.what,
        .directory = directory,
        .ttl_ms = hold->options.terms.ttl_ms,
    };
    FAILPOINT("hold-before-reserved-record");
    /* The store's record names this journal, whose header is durable. Short commands make do with that. */
    hold_tell(hold, &event, hold->options.bind_now ? JOURNAL_LAZY : JOURNAL_DURABLE);
    FAILPOINT("hold-after-reserved-record");
}

static enum result start_supervisor(struct hold *hold, struct error *err)
{
    struct supervisor_options options = {
        .clock = hold->clock,
        .spawner = spawner_system(),
        .journal = hold->journal,
        .store = &hold->store_options,
        .credential = &hold->reservation.credential,
        .terms = hold->options.terms,
        .sent_boot_ms = hold->sent_boot_ms,
        .on_lapse = hold->options.on_lapse,
        .lapse_patience_ms = hold->options.lapse_patience_ms,
        .grace_ms = hold->options.grace_ms,
    };
    fd_close(hold->signal_fd);
    hold->signal_fd = -1;
    return supervisor_start(&options, &hold->supervisor, err);
}

static void make_marks(struct hold *hold)
{
    _cleanup_(mem_free) char *attempts = NULL, *stores = NULL;
    mark_append(getenv("TENURE_ATTEMPT"), getenv("TENURE_STORE"), hold->attempt.id, store_id(hold->store),
        &attempts, &stores);
    hold->marks[0] = mem_format("TENURE_ATTEMPT=%s", attempts);
    hold->marks[1] = mem_format("TENURE_STORE=%s", stores);
    hold->marks[2] = mem_format("TENURE_FENCE=%" PRId64, hold->attempt.fence);
}

static void turn(void *context)
{
    supervisor_turn(context);
}

/* Under the own lease, before bind and before anything is spawned. */
static enum result end_leftovers(struct hold *hold, struct error *err)
{
    struct leftovers_options options = {
        .store = hold->store,
        .machine = &hold->machine,
        .clock = hold->clock,
        .attempt_id = hold->attempt.id,
        .subjects = (const char *const *)hold->attempt.subjects,
        .subject_count = hold->attempt.subject_count,
        .grace_ms = hold->options.grace_ms,
        .tick = turn,
        .context = hold->supervisor,
    };
    _cleanup_(leftovers_report_done) struct leftovers_report report = {0};
    FAILPOINT("hold-before-leftovers");
    enum result r = leftovers_end(&options, &report, err);
    FAILPOINT("hold-after-leftovers");
    char *rest = report.notes.bytes;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        hold_note(hold, "%s", line);
    if (r != RESULT_OK || !report.blocked)
        return r;
    hold->blocked = true;
    error_set(err, RESULT_DENIED, 0, "work of an earlier attempt still lives and could not be ended: %s",
        report.named.bytes != NULL ? report.named.bytes : "it cannot be seen");
    return error_remedy(err, "end it, or have its owner end it, then run this again");
}

static bool is_bound(const struct hold *hold)
{
    return hold->attempt.state == ATTEMPT_RUNNING;
}

static enum result after_reserve(struct hold *hold, struct error *err)
{
    tell_reserved(hold);
    make_marks(hold);
    enum result r = start_supervisor(hold, err);
    if (r != RESULT_OK || is_bound(hold)) /* bound in one transaction: nothing was left behind */
        return r;
    r = end_leftovers(hold, err);
    if (r == RESULT_OK && hold->options.bind_now)
        r = hold_bind(hold, NULL, err);
    return r;
}

/* Without a supervisor nothing was started and nothing renews: the record can be ended at once. Where it
 * cannot, the lease runs out by itself. */
static void settle_unstarted(struct hold *hold, const struct hold_ending *ending)
{
    _cleanup_(error_done) struct error ignored = {0};
    struct settlement settlement;
    settlement_init(&settlement, ending->state);
    settlement.reason_code = ending->reason_code;
    settlement.reason_text = ending->reason_text;
    if (store_settle(hold->store, &hold->reservation.credential, &settlement, &ignored) != RESULT_OK)
        return;
    struct journal_event event = {
        .kind = JOURNAL_SETTLED,
        .state = attempt_state_name(ending->state),
        .reason = ending->reason_code,
        .text = ending->reason_text,
        .exit_code = ending->exit_code,
    };
    hold_tell(hold, &event, JOURNAL_DURABLE);
}

/* The attempt is held but its work cannot begin: ends it for the reason that `err` tells. */
static void give_up(struct hold *hold, const struct error *err)
{
    struct hold_ending ending = {
        .state = ATTEMPT_CANCELLED,
        .reason_code = hold->blocked ? "leftovers" : "internal",
        .reason_text = err->message,
        .exit_code = hold_exit(hold, outcome_of_result(err->code)),
    };
    _cleanup_(hold_result_done) struct hold_result result = {0};
    if (hold->supervisor == NULL) {
        settle_unstarted(hold, &ending);
        hold_free(hold);
        return;
    }
    enum result r = hold_end(hold, &ending, &result, NULL);
    (void)r; /* the error at hand comes first */
}

enum result hold_begin(const struct hold_options *options, struct hold **ret, struct pending *ret_pending,
    int *ret_signal, struct error *err)
{
    struct hold *hold;
    _cleanup_(error_done) struct error why = {0};
    enum result r = hold_new(options, &hold, err);
    if (r != RESULT_OK)
        return r;
    r = open_journal(hold, err);
    if (r == RESULT_OK)
        r = open_store(hold, err);
    if (r == RESULT_OK)
        r = hold_reserve(hold, ret_pending, ret_signal, err);
    if (r != RESULT_OK) {
        if (hold->journal != NULL)
            journal_discard(STEAL(hold->journal));
        hold_free(hold);
        return r;
    }
    r = after_reserve(hold, &why);
    if (r != RESULT_OK) {
        give_up(hold, &why);
        return error_move(err, &why);
    }
    *ret = hold;
    return RESULT_OK;
}

/* ---- bind ---- */

static bool was_bound(struct hold *hold)
{
    _cleanup_(attempt_done) struct attempt attempt = {0};
    return hold_reopen(hold, NULL) == RESULT_OK &&
           store_find(hold->store, hold->attempt.id, &attempt, NULL) == RESULT_OK &&
           attempt.state == ATTEMPT_RUNNING;
}

enum result hold_bind(struct hold *hold, const char *demand, struct error *err)
{
    int64_t until = hold_now(hold) + HOLD_BUSY_MS;
    bool unknown = false; /* an answer was lost: what is refused now may be so because it was done then */
    for (;;) {
        _cleanup_(error_done) struct error why = {0};
        FAILPOINT("hold-before-bind");
        enum result r = store_bind(hold->store, &hold->reservation.credential, demand, &why);
        FAILPOINT("hold-after-bind");
        unknown |= r == RESULT_UNKNOWN;
        if (r == RESULT_OK || (unknown && was_bound(hold))) {
            hold->attempt.state = ATTEMPT_RUNNING;
            return RESULT_OK;
        }
        bool again = r == RESULT_BUSY || (r == RESULT_UNKNOWN && hold->store != NULL);
        if (!again || hold_now(hold) >= until)
            return error_move(err, &why);
        hold_pause(hold, hold_jitter_ms(20, 200));
    }
}

/* ---- questions ---- */

struct supervisor *hold_supervisor(struct hold *hold)
{
    return hold->supervisor;
}

struct store *hold_store(struct hold *hold)
{
    return hold->store;
}

struct journal *hold_journal(struct hold *hold)
{
    return hold->journal;
}

const struct attempt *hold_attempt(const struct hold *hold)
{
    return &hold->attempt;
}

const struct credential *hold_credential(const struct hold *hold)
{
    return &hold->reservation.credential;
}

const char *const *hold_marks(const struct hold *hold)
{
    return (const char *const *)hold->marks;
}

bool hold_is_confirmed(struct hold *hold)
{
    struct supervisor *supervisor = hold->supervisor;
    supervisor_turn(supervisor);
    while (supervisor->frozen && supervisor_stop_of(supervisor)->cause == STOP_NONE)
        if (loop_turn(supervisor, PAUSE_SLICE_MS, NULL) != RESULT_OK)
            return false;
    return !hold->supervisor->lost && !hold->supervisor->frozen && gate_may_run(&hold->supervisor->gate);
}
