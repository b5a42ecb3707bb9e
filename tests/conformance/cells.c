/* Every cell of the transition table, asked of the store itself. */
#include <string.h>

#include "attempts/transition.h"
#include "base/memory.h"
#include "tests/conformance/conformance.h"

static struct credential attempt_in(struct world *world, enum attempt_state state)
{
    struct credential credential = reserve(world, world->a, KIND_COMMAND, "a");

    if (state != ATTEMPT_PLANNING)
        OK(store_bind(world->a, &credential, NULL, NULL));
    if (attempt_state_is_terminal(state))
        OK(settle(world->a, &credential, state));
    return credential;
}

static enum result event_send(
    struct world *world, const struct credential *credential, enum attempt_event event, int64_t rev)
{
    switch (event) {
    case EVENT_BIND:
        return store_bind(world->b, credential, NULL, NULL);
    case EVENT_RENEW:
        return renew(world->b, credential);
    case EVENT_SETTLE_PASSED:
        return settle(world->b, credential, ATTEMPT_PASSED);
    case EVENT_SETTLE_FAILED:
        return settle(world->b, credential, ATTEMPT_FAILED);
    case EVENT_SETTLE_CANCELLED:
        return settle(world->b, credential, ATTEMPT_CANCELLED);
    case EVENT_RETIRE:
        return retire(world->b, credential->attempt_id, rev, true, NULL);
    case ATTEMPT_EVENT_MAX:
    default:
        return RESULT_INVALID;
    }
}

/* Ends what the cell left unfinished, so that the next one finds the subject free. */
static void clear(struct world *world, const struct credential *credential)
{
    _cleanup_(attempt_done) struct attempt attempt = found(world->a, credential->attempt_id);

    if (attempt_is_unfinished(&attempt))
        OK(settle(world->a, credential, ATTEMPT_CANCELLED));
}

static void check_cell(struct world *world, enum attempt_state from, enum attempt_event event)
{
    const struct transition *cell = &TRANSITIONS[from][event];
    struct credential credential = attempt_in(world, from);
    int64_t rev = revision(world->a, credential.attempt_id);
    enum result refusal = attempt_state_is_terminal(from) ? RESULT_RETIRED : RESULT_INVALID;

    if (cell->by == BY_NOBODY) {
        REFUSED(world, refusal, event_send(world, &credential, event, rev));
    } else {
        OK(event_send(world, &credential, event, rev));
        _cleanup_(attempt_done) struct attempt after = found(world->a, credential.attempt_id);
        assert_int_equal(after.state, cell->to);
        assert_int_equal(after.rev, rev + 1);
    }
    clear(world, &credential);
}

static void each_cell_does_what_the_table_says(void **state)
{
    for (int s = 0; s < ATTEMPT_STATE_MAX; s++)
        for (int e = 0; e < ATTEMPT_EVENT_MAX; e++)
            check_cell(*state, (enum attempt_state)s, (enum attempt_event)e);
}

static void another_token_changes_nothing_in_any_cell(void **state)
{
    struct world *world = *state;

    for (int s = 0; s < ATTEMPT_STATE_MAX; s++) {
        struct credential owner = attempt_in(world, (enum attempt_state)s), stranger = owner;
        stranger.token[TOKEN_BYTES - 1] ^= 0x80;
        for (int e = 0; e < EVENT_RETIRE; e++)
            REFUSED(world, RESULT_RETIRED, event_send(world, &stranger, (enum attempt_event)e, 0));
        clear(world, &owner);
    }
}

static void what_does_not_exist_is_absent(void **state)
{
    struct world *world = *state;
    struct credential nobody = {.attempt_id = "0192e4a0-0000-7000-8000-000000000001"};
    struct settlement settlement;

    settlement_init(&settlement, ATTEMPT_FAILED);
    for (int e = 0; e < ATTEMPT_EVENT_MAX; e++)
        REFUSED(world, RESULT_ABSENT, event_send(world, &nobody, (enum attempt_event)e, 1));
    REFUSED(world, RESULT_ABSENT, store_settle_ask(world->a, &nobody, &settlement, NULL));
    REFUSED(world, RESULT_ABSENT, put_evidence(world->a, &nobody, "key", true));
}

static void a_stale_revision_is_refused_even_for_a_gone_owner(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_COMMAND, "a");
    int64_t rev = revision(world->b, credential.attempt_id);

    OK(renew(world->a, &credential));
    REFUSED(world, RESULT_CONFLICT, retire(world->b, credential.attempt_id, rev, true, NULL));
    REFUSED(world, RESULT_CONFLICT, retire(world->b, credential.attempt_id, rev + 2, true, NULL));
    REFUSED(world, RESULT_CONFLICT, retire(world->b, credential.attempt_id, rev + 1, false, NULL));
    OK(retire(world->b, credential.attempt_id, rev + 1, true, NULL));
}

static void a_terminal_record_stays_byte_for_byte(void **state)
{
    struct world *world = *state;
    static const enum attempt_state ENDS[] = {ATTEMPT_PASSED, ATTEMPT_FAILED, ATTEMPT_CANCELLED};

    for (size_t i = 0; i < ARRAY_SIZE(ENDS); i++) {
        struct credential credential = attempt_in(world, ENDS[i]);
        int64_t rev = revision(world->a, credential.attempt_id);
        for (int e = 0; e < ATTEMPT_EVENT_MAX; e++)
            REFUSED(world, RESULT_RETIRED, event_send(world, &credential, (enum attempt_event)e, rev));
        REFUSED(world, RESULT_RETIRED, put_evidence(world->b, &credential, "key", true));
        REFUSED(world, RESULT_RETIRED, store_request_cancel(world->b, credential.attempt_id, "me", NULL));
    }
}

int test_cells(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_cell_does_what_the_table_says, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(
            another_token_changes_nothing_in_any_cell, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(what_does_not_exist_is_absent, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(
            a_stale_revision_is_refused_even_for_a_gone_owner, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_terminal_record_stays_byte_for_byte, world_setup, world_teardown),
    };

    return cmocka_run_group_tests_name("cells", tests, NULL, NULL);
}
