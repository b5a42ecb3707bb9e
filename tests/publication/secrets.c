/* A token is shown to its owner once. No view, no function that looks, no error and no log of a server with
 * default settings has it, nor the digest that is stored of it. */
#include <stdlib.h>
#include <string.h>

#include "tests/publication/sessions.h"

static void assert_without(const char *text, const struct claim *claim, struct places *w)
{
    _cleanup_(mem_free) char *digest = seen(w, "SELECT encode(sha256($2), 'hex')", claim);
    _cleanup_(mem_free) char *base64 = seen(w, "SELECT encode($2, 'base64')", claim);

    assert_null(strstr(text, claim->token + strlen("\\x")));
    assert_null(strstr(text, digest));
    assert_null(strstr(text, base64));
}

/* ---- views ---- */

static void nothing_that_looks_shows_a_token(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    static const char *const LOOKS[] = {
        "SELECT s::text FROM tenure.status() s",
        "SELECT tenure.find($1::text)",
        "SELECT tenure.attempts()",
        "SELECT tenure.unfinished()",
        "SELECT e::text FROM tenure.events() e",
        "SELECT c::text FROM tenure.claim_row('app.source', 'id', '42') c",
        "SELECT r::text FROM tenure.renew($1, $2) r",
        "SELECT r::text FROM tenure.reclaim($1) r",
    };

    for (size_t i = 0; i < ARRAY_SIZE(LOOKS); i++) {
        _cleanup_(mem_free) char *text = outcome(&w->b, LOOKS[i], &a);
        assert_int_not_equal(text[0], '!');
        assert_int_not_equal(text[0], '\0');
        assert_without(text, &a, w);
    }
}

static void nothing_stored_is_a_token(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    _cleanup_(mem_free) char *dump = NULL;

    STEP(&w->a, "ok", FAIL, &a);
    dump = places_dump(w);
    assert_null(strstr(dump, a.token + strlen("\\x")));
    SEEN(w, "0",
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'tenure'::regnamespace AND relkind IN ('v', 'm')",
        NULL);
}

/* ---- the server's log ---- */

static char *server_log(struct places *w)
{
    return pg_text(w->admin, "SELECT pg_read_file(current_setting('data_directory') || '/../log/postgres')");
}

/* A statement with the token from the transaction's setting, as the pages advise, that fails. */
static void fails(struct session *session, const struct claim *claim, const char *expected, const char *sql)
{
    STEP(session, "", "BEGIN", NULL);
    STEP(session, "t", "SELECT set_config('tenure.token', encode($2, 'hex'), true) <> ''", claim);
    STEP(session, expected, sql, claim);
    STEP(session, "", "ROLLBACK", NULL);
}

static void the_setting_stands_for_the_token(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42), b = claimed(&w->a, 43);

    STEP(&w->a, "", "BEGIN", NULL);
    STEP(&w->a, "t", "SELECT set_config('tenure.token', encode($2, 'hex'), true) <> ''", &a);
    STEP(&w->a, "ok", "SELECT result FROM tenure.renew($1)", &a);
    STEP(&w->a, "t", "SELECT tenure.publication_begin($1) > 0", &a);
    STEP(&w->a, "", "SELECT tenure.publication_end($1, nonce => 'nonce')", &a);
    STEP(&w->a, "ok", "SELECT result FROM tenure.settle_ask($1, NULL, 'nonce')", &a);
    STEP(&w->a, "", "COMMIT", NULL);
    SEEN(w, "passed", STATE, &a);
    REFUSAL(w, &w->a, "!TN003", "SELECT tenure.publication_begin($1)",
        &b); /* the setting went with its transaction */
    fails(&w->a, &a, "!TN003", "SELECT tenure.publication_begin($1)");

    STEP(&w->a, "", "BEGIN", NULL);
    STEP(&w->a, "t", "SELECT set_config('tenure.token', encode($2, 'hex'), true) <> ''", &b);
    STEP(&w->a, "ok", "SELECT result FROM tenure.fail($1, NULL, 'why')", &b);
    STEP(&w->a, "", "COMMIT", NULL);
    SEEN(w, "failed|why", "SELECT state, reason_text FROM tenure.attempt WHERE id = $1", &b);
}

static void the_servers_log_has_no_token(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42), b;
    _cleanup_(mem_free) char *log = NULL;

    clock_pass(w, 181);
    fails(&w->a, &a, "!TN004", "SELECT tenure.publication_begin($1)");
    fails(&w->a, &a, "!TN004", "SELECT tenure.publication_begin($1, $2)");
    b = claimed(&w->b, 42);
    fails(&w->a, &a, "!TN003", "SELECT tenure.publication_begin($1)");
    fails(&w->a, &a, "!TN006", "SELECT tenure.publication_end($1)");
    fails(&w->b, &b, "!22012", "SELECT tenure.publication_begin($1) / 0");
    fails(&w->b, &b, "!22012", "SELECT result, 1 / 0 FROM tenure.fail($1, $2, 'why')");
    publication_started(&w->b, &b);
    lock_timeouts(w, "50ms");
    session_open(w, &w->a);
    fails(&w->a, &b, "!55P03", "SELECT tenure.settle_ask($1, NULL, 'nonce')");
    fails(&w->a, &b, "!55P03", "SELECT tenure.settle_ask($1, $2, 'nonce')");
    fails(&w->a, &b, "!22P02", "SELECT 'what the log does show'::int");
    log = server_log(w);
    assert_non_null(strstr(log, "SELECT 'what the log does show'::int"));
    assert_non_null(strstr(log, "SELECT tenure.publication_begin($1) / 0"));
    assert_without(log, &a, w);
    assert_without(log, &b, w);
}

/* A setting that is no token says nothing of what it is. */
static void a_setting_that_is_no_token_is_refused(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    static const char *const WRONG[][2] = {
        {"", "!TN003"}, {"00ff", "!TN003"}, {"zz", "!22023"}, {"0", "!22023"}};

    for (size_t i = 0; i < ARRAY_SIZE(WRONG); i++) {
        _cleanup_(mem_free) char *set = mem_format("SET tenure.token = '%s'", WRONG[i][0]);
        STEP(&w->b, "", set, NULL);
        REFUSAL(w, &w->b, WRONG[i][1], "SELECT tenure.publication_begin($1)", &a);
    }
}

int test_secrets(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_that_looks_shows_a_token),
        TEST(nothing_stored_is_a_token),
        TEST(the_setting_stands_for_the_token),
        TEST(the_servers_log_has_no_token),
        TEST(a_setting_that_is_no_token_is_refused),
    };

    return RUN("secrets", tests);
}
