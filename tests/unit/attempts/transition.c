#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "attempts/transition.h"

static const uint8_t TOKEN[TOKEN_DIGEST_BYTES] = {1, 2, 3};
static const uint8_t OTHER[TOKEN_DIGEST_BYTES] = {1, 2, 4};

/* The protocol's table, written out a second time: where the two differ, one of them is wrong. */
static const struct expected {
    enum transition_by by;
    enum attempt_state to;
    bool strict_needs_lease, needs_proof;
} EXPECTED[ATTEMPT_STATE_MAX][ATTEMPT_EVENT_MAX] = {
    {{BY_OWNER, ATTEMPT_RUNNING, false, false}, {BY_OWNER, ATTEMPT_PLANNING, true, false},
        {BY_NOBODY, 0, false, false}, {BY_OWNER, ATTEMPT_FAILED, false, false},
        {BY_OWNER, ATTEMPT_CANCELLED, false, false}, {BY_OTHER, ATTEMPT_CANCELLED, false, false}},
    {{BY_NOBODY, 0, false, false}, {BY_OWNER, ATTEMPT_RUNNING, true, false},
        {BY_OWNER, ATTEMPT_PASSED, true, true}, {BY_OWNER, ATTEMPT_FAILED, false, false},
        {BY_OWNER, ATTEMPT_CANCELLED, false, false}, {BY_OTHER, ATTEMPT_CANCELLED, false, false}},
};

static const struct store_time NOW = {.ms = 100000, .epoch = "boot", .wall_ms = 1700000000000};

static struct attempt attempt_in(enum attempt_state state, enum attempt_kind kind, bool lapsed)
{
    struct attempt attempt = {.kind = kind, .state = state, .rev = 7};
    struct store_time begun = NOW;

    strcpy(attempt.id, "0192e4a0-0000-7000-8000-000000000001");
    memcpy(attempt.token_digest, TOKEN, sizeof TOKEN);
    begun.ms -= lapsed ? 60001 : 60000;
    lease_begin(&attempt.lease, 60000, &begun);
    return attempt;
}

static enum result ask(
    const struct attempt *attempt, const struct transition_request *request, enum attempt_state *ret_to)
{
    *ret_to = ATTEMPT_STATE_MAX;
    return transition_decide(attempt, request, &NOW, ret_to, NULL);
}

static bool proof_fits(enum attempt_kind kind, enum attempt_event event)
{
    return kind == KIND_DONE && event == EVENT_SETTLE_PASSED;
}

static void the_table_is_the_protocols(void **state _unused_)
{
    for (int s = 0; s < ATTEMPT_STATE_MAX; s++) {
        for (int e = 0; e < ATTEMPT_EVENT_MAX; e++) {
            const struct transition *cell = &TRANSITIONS[s][e];
            assert_int_equal(cell->by, EXPECTED[s][e].by);
            assert_int_equal(cell->to, EXPECTED[s][e].to);
            assert_int_equal(cell->strict_needs_lease, EXPECTED[s][e].strict_needs_lease);
            assert_int_equal(cell->needs_proof, EXPECTED[s][e].needs_proof);
        }
    }
}

static enum result expected_for_owner(
    enum attempt_state from, enum attempt_event event, enum attempt_kind kind, bool lapsed)
{
    const struct expected *cell = &EXPECTED[from][event];

    if (attempt_state_is_terminal(from))
        return RESULT_RETIRED;
    if (cell->by == BY_NOBODY)
        return RESULT_INVALID;
    return cell->strict_needs_lease && kind == KIND_PUBLICATION && lapsed ? RESULT_LAPSED : RESULT_OK;
}

static void the_owner_walks_every_cell(void **state _unused_)
{
    for (int s = 0; s < ATTEMPT_STATE_MAX; s++)
        for (int e = 0; e < EVENT_RETIRE; e++)
            for (int k = 0; k < ATTEMPT_KIND_MAX; k++)
                for (int lapsed = 0; lapsed < 2; lapsed++) {
                    struct attempt attempt = attempt_in((enum attempt_state)s, (enum attempt_kind)k, lapsed);
                    struct transition_request request = {
                        .event = (enum attempt_event)e,
                        .token_digest = TOKEN,
                        .with_proof = proof_fits(attempt.kind, (enum attempt_event)e),
                    };
                    enum attempt_state to;
                    enum result wanted =
                        expected_for_owner(attempt.state, request.event, attempt.kind, lapsed);
                    assert_int_equal(ask(&attempt, &request, &to), wanted);
                    assert_int_equal(to, wanted == RESULT_OK ? EXPECTED[s][e].to : ATTEMPT_STATE_MAX);
                }
}

static void another_token_is_refused_in_every_cell(void **state _unused_)
{
    static const uint8_t *const TOKENS[] = {OTHER, NULL};

    for (int s = 0; s < ATTEMPT_STATE_MAX; s++)
        for (int e = 0; e < EVENT_RETIRE; e++)
            for (size_t t = 0; t < ARRAY_SIZE(TOKENS); t++) {
                struct attempt attempt = attempt_in((enum attempt_state)s, KIND_COMMAND, false);
                struct transition_request request = {
                    .event = (enum attempt_event)e,
                    .token_digest = TOKENS[t],
                };
                enum attempt_state to;
                assert_int_equal(ask(&attempt, &request, &to), RESULT_RETIRED);
                assert_int_equal(to, ATTEMPT_STATE_MAX);
            }
}

static void retire_needs_the_revision_and_a_gone_or_lapsed_owner(void **state _unused_)
{
    for (int s = 0; s < ATTEMPT_STATE_MAX; s++)
        for (int gone = 0; gone < 2; gone++)
            for (int lapsed = 0; lapsed < 2; lapsed++)
                for (int64_t rev = 6; rev <= 8; rev++) {
                    struct attempt attempt = attempt_in((enum attempt_state)s, KIND_DONE, lapsed);
                    struct transition_request request = {
                        .event = EVENT_RETIRE,
                        .rev = rev,
                        .owner_gone = gone,
                    };
                    enum attempt_state to;
                    enum result wanted = rev == 7 && (gone || lapsed) ? RESULT_OK : RESULT_CONFLICT;
                    if (attempt_state_is_terminal(attempt.state))
                        wanted = RESULT_RETIRED;
                    assert_int_equal(ask(&attempt, &request, &to), wanted);
                    assert_int_equal(to, wanted == RESULT_OK ? ATTEMPT_CANCELLED : ATTEMPT_STATE_MAX);
                }
}

static void done_passes_if_and_only_if_with_its_proof(void **state _unused_)
{
    for (int k = 0; k < ATTEMPT_KIND_MAX; k++)
        for (int e = EVENT_SETTLE_PASSED; e <= EVENT_SETTLE_CANCELLED; e++)
            for (int with = 0; with < 2; with++) {
                struct attempt attempt = attempt_in(ATTEMPT_RUNNING, (enum attempt_kind)k, false);
                struct transition_request request = {
                    .event = (enum attempt_event)e,
                    .token_digest = TOKEN,
                    .with_proof = with,
                };
                enum attempt_state to;
                bool fits = with == proof_fits(attempt.kind, request.event);
                assert_int_equal(ask(&attempt, &request, &to), fits ? RESULT_OK : RESULT_INVALID);
            }
}

static void evidence_needs_the_token_and_an_unfinished_attempt(void **state _unused_)
{
    for (int s = 0; s < ATTEMPT_STATE_MAX; s++) {
        struct attempt attempt = attempt_in((enum attempt_state)s, KIND_DONE, true);
        enum result wanted = attempt_state_is_terminal(attempt.state) ? RESULT_RETIRED : RESULT_OK;
        assert_int_equal(transition_check_owner(&attempt, TOKEN, NULL), wanted);
        assert_int_equal(transition_check_owner(&attempt, OTHER, NULL), RESULT_RETIRED);
        assert_int_equal(transition_check_owner(&attempt, NULL, NULL), RESULT_RETIRED);
    }
}

static void a_refusal_says_who_and_why(void **state _unused_)
{
    struct attempt attempt = attempt_in(ATTEMPT_CANCELLED, KIND_DONE, false);
    struct transition_request request = {.event = EVENT_RENEW, .token_digest = TOKEN};
    _cleanup_(error_done) struct error err = {0};
    enum attempt_state to;

    attempt.reason = (struct reason){.code = (char *)"lapsed", .by_attempt = (char *)"THE-OTHER"};
    assert_int_equal(transition_decide(&attempt, &request, &NOW, &to, &err), RESULT_RETIRED);
    assert_non_null(strstr(err.message, attempt.id));
    assert_non_null(strstr(err.message, "lapsed"));
    assert_non_null(strstr(err.message, "THE-OTHER"));
}

static void every_event_has_a_name(void **state _unused_)
{
    for (int e = 0; e < ATTEMPT_EVENT_MAX; e++) {
        assert_string_not_equal(attempt_event_name((enum attempt_event)e), "unknown");
        for (int f = 0; f < e; f++)
            assert_string_not_equal(
                attempt_event_name((enum attempt_event)e), attempt_event_name((enum attempt_event)f));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_the_protocols),
        cmocka_unit_test(the_owner_walks_every_cell),
        cmocka_unit_test(another_token_is_refused_in_every_cell),
        cmocka_unit_test(retire_needs_the_revision_and_a_gone_or_lapsed_owner),
        cmocka_unit_test(done_passes_if_and_only_if_with_its_proof),
        cmocka_unit_test(evidence_needs_the_token_and_an_unfinished_attempt),
        cmocka_unit_test(a_refusal_says_who_and_why),
        cmocka_unit_test(every_event_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
