/* The entry: which rows can be claimed, by what name, and by how many. Whatever is in doubt is refused,
 * before anybody would contact anything far away. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/publication/sessions.h"

#define CLAIM_OF(table, key, value)                                                                          \
    "SELECT result FROM tenure.claim_row('" table "', '" key "', '" value "', ttl => '" WINDOW "')"

/* ---- living, missing, deleted ---- */

static void a_living_row_is_claimed(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    SEEN(w, "publication|running|{row:app.source:id=42}", "SELECT kind, state, subjects FROM tenure.attempt",
        NULL);
    SEEN(w, "t", "SELECT token_digest = sha256($2) AND fence > 0 FROM tenure.attempt WHERE id = $1", &a);
    SEEN(w, "reserved\nbound", "SELECT event FROM tenure.history ORDER BY sequence", NULL);
}

static void a_missing_row_is_absent(void **state)
{
    struct places *w = *state;

    REFUSAL(w, &w->a, "absent", CLAIM(4242), NULL);
    REFUSAL(w, &w->a, "absent", "SELECT result FROM tenure.claim_row('app.source', 'id', NULL)", NULL);
}

static void a_soft_deleted_row_is_absent(void **state)
{
    struct places *w = *state;

    admin(w,
        "UPDATE app.source SET deleted_at = now() WHERE id = 42;"
        "UPDATE app.source SET gone = true WHERE id = 43; UPDATE app.source SET gone = false WHERE id = 44");
    REFUSAL(w, &w->a, "absent", CLAIM(42), NULL);
    REFUSAL(
        w, &w->a, "absent", "SELECT result FROM tenure.claim_row('app.source', 'id', '43', 'gone')", NULL);
    STEP(&w->a, "ok", "SELECT result FROM tenure.claim_row('app.source', 'id', '44', 'gone')", NULL);
    STEP(&w->a, "ok", "SELECT result FROM tenure.claim_row('app.source', 'id', '45', 'gone')", NULL);
    STEP(&w->a, "ok", "SELECT result FROM tenure.claim_row('app.source', 'id', '42')", NULL);
}

static void what_is_asked_wrongly_is_refused(void **state)
{
    struct places *w = *state;

    REFUSAL(w, &w->a, "!TN006", CLAIM_OF("app.source", "nowhere", "42"), NULL);
    REFUSAL(w, &w->a, "!TN006", CLAIM_OF("app.source", "ctid", "(0,1)"), NULL);
    REFUSAL(
        w, &w->a, "!TN006", "SELECT result FROM tenure.claim_row('app.source', 'id', '42', 'nowhere')", NULL);
    REFUSAL(w, &w->a, "!TN006", "SELECT result FROM tenure.claim_row(NULL, 'id', '42')", NULL);
    REFUSAL(w, &w->a, "!42P01", CLAIM_OF("app.nowhere", "id", "42"), NULL);
    REFUSAL(w, &w->a, "!22P02", CLAIM_OF("app.source", "id", "forty-two"), NULL);
    REFUSAL(w, &w->a, "!22003", CLAIM_OF("app.source", "id", "99999999999"), NULL);
    REFUSAL(w, &w->a, "invalid",
        "SELECT result FROM tenure.claim_row('app.source', 'id', '42', ttl => '1 s')", NULL);
    REFUSAL(w, &w->a, "invalid",
        "SELECT result FROM tenure.claim_row('app.source', 'id', '42', ttl => '2 h')", NULL);
}

static void a_claim_is_of_one_row(void **state)
{
    struct places *w = *state;

    admin(w, "UPDATE app.source SET name = 'twin' WHERE id IN (42, 43)");
    REFUSAL(w, &w->a, "invalid", CLAIM_OF("app.source", "name", "twin"), NULL);
    admin(w, "UPDATE app.source SET deleted_at = now() WHERE id = 43");
    STEP(
        &w->a, "ok", "SELECT result FROM tenure.claim_row('app.source', 'name', 'twin', 'deleted_at')", NULL);
}

static void a_twin_that_comes_later_stops_the_publication(void **state)
{
    struct places *w = *state;
    struct claim a = {0};

    admin(w, "UPDATE app.source SET name = 'twin' WHERE id = 42");
    STEP(&w->a, "ok",
        "SELECT result FROM tenure.claim_row_as('01890000-0000-7000-8000-000000000001',"
        " sha256('a'), 'app.source', 'name', 'twin')",
        NULL);
    admin(w, "UPDATE app.source SET name = 'twin' WHERE id = 43");
    snprintf(a.attempt, sizeof a.attempt, "01890000-0000-7000-8000-000000000001");
    REFUSAL(w, &w->a, "!TN006", "SELECT tenure.publication_begin($1, sha256('a'))", &a);
}

/* ---- one row, one name ---- */

static void every_way_to_write_a_key_is_the_same_claim(void **state)
{
    struct places *w = *state;

    claimed(&w->a, 42);
    REFUSAL(w, &w->b, "held", CLAIM_OF("app.source", "id", "042"), NULL);
    REFUSAL(w, &w->b, "held", CLAIM_OF("app.source", "id", " 42 "), NULL);
    STEP(&w->b, "", "SET search_path = app, tenure", NULL);
    REFUSAL(w, &w->b, "held", "SELECT result FROM claim_row('source', 'id', '42')", NULL);
}

static void a_sessions_settings_do_not_rename_a_row(void **state)
{
    struct places *w = *state;

    STEP(&w->a, "", "SET timezone = 'Asia/Kathmandu'; SET datestyle = 'German'; SET extra_float_digits = -10",
        NULL);
    STEP(&w->b, "",
        "SET timezone = 'America/New_York'; SET datestyle = 'SQL, MDY'; SET intervalstyle = iso_8601", NULL);
    STEP(&w->a, "ok", CLAIM_OF("app.moment", "at", "01.02.2026 00:00:00 UTC"), NULL);
    REFUSAL(w, &w->b, "held", CLAIM_OF("app.moment", "at", "2026-02-01 00:00:00 UTC"), NULL);
    STEP(&w->a, "ok", CLAIM_OF("app.moment", "size", "0.1234567890123"), NULL);
    REFUSAL(w, &w->b, "held", CLAIM_OF("app.moment", "size", "0.1234567890123"), NULL);
    STEP(&w->a, "ok", CLAIM_OF("app.moment", "span", "1 day 2:03:04"), NULL);
    REFUSAL(w, &w->b, "held", CLAIM_OF("app.moment", "span", "1 day 2:03:04"), NULL);
}

/* What is claimed in one session's way of writing is found again in another's. */
static void a_moments_claim_can_be_published(void **state)
{
    struct places *w = *state;
    struct claim a = {0};

    snprintf(a.attempt, sizeof a.attempt, "01890000-0000-7000-8000-000000000001");
    STEP(&w->a, "", "SET timezone = 'Asia/Kathmandu'; SET datestyle = 'German'", NULL);
    STEP(&w->b, "", "SET timezone = 'America/New_York'; SET datestyle = 'SQL, MDY'", NULL);
    STEP(&w->a, "ok",
        "SELECT result FROM tenure.claim_row_as('01890000-0000-7000-8000-000000000001', sha256('a'),"
        " 'app.moment', 'at', '01.02.2026 00:00:00 UTC')",
        NULL);
    STEP(&w->b, "t", "SELECT tenure.publication_begin($1, sha256('a')) > 0", &a);
}

/* A cast would cut or round the value, and another row would be claimed. */
static void a_value_is_never_made_to_fit(void **state)
{
    struct places *w = *state;

    REFUSAL(w, &w->a, "absent", CLAIM_OF("app.narrow", "code", "abcdef"), NULL);
    REFUSAL(w, &w->a, "absent", CLAIM_OF("app.narrow", "price", "1.499"), NULL);
    REFUSAL(w, &w->a, "absent", CLAIM_OF("app.narrow", "fixed", "xyzzy"), NULL);
    STEP(&w->a, "ok", CLAIM_OF("app.narrow", "code", "abc"), NULL);
    STEP(&w->a, "ok", CLAIM_OF("app.narrow", "price", "1.5"), NULL);
    STEP(&w->a, "ok", CLAIM_OF("app.narrow", "fixed", "xyz"), NULL);
}

/* ---- names ---- */

#define ODD "\"Odd \"\"Schema\"\"\".\"Tab'le; --\""

static void odd_names_are_names(void **state)
{
    struct places *w = *state;
    struct claim a = {0};

    snprintf(a.attempt, sizeof a.attempt, "01890000-0000-7000-8000-000000000001");
    STEP(&w->a, "ok",
        "SELECT result FROM tenure.claim_row_as('01890000-0000-7000-8000-000000000001', sha256('a'),"
        " $$" ODD "$$, 'K\"ey', $$it's '; DROP$$, 'Deleted At')",
        NULL);
    REFUSAL(w, &w->b, "held",
        "SELECT result FROM tenure.claim_row($$" ODD "$$, 'K\"ey', $$it's '; DROP$$, 'Deleted At')", NULL);
    REFUSAL(w, &w->b, "absent",
        "SELECT result FROM tenure.claim_row($$" ODD "$$, 'K\"ey', $$dead$$, 'Deleted At')", NULL);
    STEP(&w->a, "t", "SELECT tenure.publication_begin($1, sha256('a')) > 0", &a);
    admin(w, "UPDATE " ODD " SET \"Deleted At\" = now() WHERE \"K\"\"ey\" LIKE 'it%'");
    REFUSAL(w, &w->a, "!TN005", "SELECT tenure.publication_begin($1, sha256('a'))", &a);
}

static void a_temporary_table_is_not_taken_for_the_row(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    admin(w, "DELETE FROM app.source WHERE id = 43");
    STEP(&w->b, "",
        "CREATE TEMPORARY TABLE source (LIKE app.source); INSERT INTO source (id) VALUES (42), (43);"
        "CREATE TEMPORARY TABLE attempt (LIKE app.source); CREATE TEMPORARY TABLE subject (subject text);"
        "SET search_path = pg_temp, app",
        NULL);
    REFUSAL(w, &w->b, "absent", CLAIM(43), NULL);
    REFUSAL(w, &w->b, "held", CLAIM(42), NULL);
    STEP(&w->b, "ok", CLAIM_OF("source", "id", "43"), NULL);
    SEEN(w, "running", STATE, &a);
}

static void a_table_that_is_dropped_is_no_longer_published(void **state)
{
    struct places *w = *state;
    struct claim a = {0};

    snprintf(a.attempt, sizeof a.attempt, "01890000-0000-7000-8000-000000000001");
    admin(w, "CREATE TABLE app.passing AS SELECT 1 AS id");
    admin(w, "GRANT ALL ON app.passing TO PUBLIC");
    STEP(&w->a, "ok",
        "SELECT result FROM tenure.claim_row_as('01890000-0000-7000-8000-000000000001', sha256('a'),"
        " 'app.passing', 'id', '1')",
        NULL);
    admin(w, "DROP TABLE app.passing");
    REFUSAL(w, &w->a, "!TN006", "SELECT tenure.publication_begin($1, sha256('a'))", &a);
}

/* ---- many ---- */

#define CLAIM_NAMED                                                                                          \
    "SELECT result || coalesce(' by ' || substring(message FROM 'held by (\\S+) of'), '') FROM"              \
    " tenure.claim_row('app.source', 'id', '42', 'deleted_at', '" WINDOW "')"

static void of_two_claims_at_once_one_wins_and_the_other_names_it(void **state)
{
    struct places *w = *state;
    _cleanup_(mem_free) char *winner = NULL, *held = NULL;

    STEP(&w->a, "", "BEGIN", NULL);
    STEP(&w->a, "ok", CLAIM(42), NULL);
    start(&w->b, CLAIM_NAMED, NULL);
    assert_waits(w, &w->b);
    STEP(&w->a, "", "COMMIT", NULL);
    winner = seen(w, "SELECT id FROM tenure.attempt", NULL);
    held = mem_format("held by %s", winner);
    FINISH(&w->b, held);
    SEEN(w, "1", "SELECT count(*) FROM tenure.attempt", NULL);
}

static void a_claim_rolled_back_is_none(void **state)
{
    struct places *w = *state;

    STEP(&w->a, "", "BEGIN", NULL);
    STEP(&w->a, "ok", CLAIM(42), NULL);
    start(&w->b, CLAIM(42), NULL);
    assert_waits(w, &w->b);
    STEP(&w->a, "", "ROLLBACK", NULL);
    FINISH(&w->b, "ok");
    SEEN(w, "1", "SELECT count(*) FROM tenure.attempt", NULL);
}

static void of_three_that_start_together_one_wins(void **state)
{
    struct places *w = *state;
    struct session *sessions[] = {&w->a, &w->b, &w->c};
    _cleanup_(mem_free) char *winner = NULL, *held = NULL;
    int ok = 0;

    admin(w, "BEGIN; LOCK TABLE tenure.subject");
    for (size_t i = 0; i < ARRAY_SIZE(sessions); i++) {
        start(sessions[i], CLAIM_NAMED, NULL);
        assert_waits(w, sessions[i]);
    }
    admin(w, "COMMIT");
    char *results[] = {finish(&w->a), finish(&w->b), finish(&w->c)};
    winner = seen(w, "SELECT id FROM tenure.attempt", NULL);
    held = mem_format("held by %s", winner);
    for (size_t i = 0; i < ARRAY_SIZE(sessions); i++) {
        ok += strcmp(results[i], "ok") == 0;
        if (strcmp(results[i], "ok") != 0)
            assert_string_equal(results[i], held);
        free(results[i]);
    }
    assert_int_equal(ok, 1);
}

static void after_every_end_the_row_can_be_claimed_again(void **state)
{
    struct places *w = *state;
    struct claim first = claimed(&w->a, 42), second, third, fourth;

    STEP(&w->a, "ok", FAIL, &first);
    second = claimed(&w->b, 42);
    STEP(&w->b, "ok", RELEASE, &second);
    third = claimed(&w->c, 42);
    publication_started(&w->c, &third);
    STEP(&w->c, "", PUBLICATION_END, &third);
    STEP(&w->c, "", "COMMIT", NULL);
    fourth = claimed(&w->a, 42);
    assert_true(first.fence < second.fence && second.fence < third.fence && third.fence < fourth.fence);
    SEEN(w, "failed|failed|why\ncancelled|released|\npassed|passed|\nrunning||",
        "SELECT state, reason_code, reason_text FROM tenure.attempt ORDER BY fence", NULL);
}

static void a_lapsed_claim_is_retired_on_the_way(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42), b;

    clock_pass(w, 181);
    b = claimed(&w->b, 42);
    assert_true(a.fence < b.fence);
    SEEN(w, "cancelled|lapsed", "SELECT state, reason_code FROM tenure.attempt WHERE id = $1", &a);
    SEEN(w, "t",
        "SELECT reason_by = (SELECT id::text FROM tenure.attempt WHERE state = 'running') FROM"
        " tenure.attempt WHERE id = $1",
        &a);
    SEEN(w, "running", STATE, &b);
}

static void a_claim_whose_answer_was_lost_is_asked_again(void **state)
{
    struct places *w = *state;
#define AGAIN(token)                                                                                         \
    "SELECT result FROM tenure.claim_row_as('01890000-0000-7000-8000-000000000001', sha256('" token "'),"    \
    " 'app.source', 'id', '42')"

    STEP(&w->a, "ok", AGAIN("a"), NULL);
    REFUSAL(w, &w->b, "ok", AGAIN("a"), NULL);
    REFUSAL(w, &w->b, "retired", AGAIN("b"), NULL);
}

static const char TABLES[] =
    "CREATE TABLE app.moment (at timestamptz, size float8, span interval);"
    "INSERT INTO app.moment VALUES ('2026-02-01 00:00:00+00', 0.1234567890123, '1 day 2:03:04');"
    "CREATE TABLE app.narrow (code varchar(3), price numeric(5, 1), fixed char(3));"
    "INSERT INTO app.narrow VALUES ('abc', 1.5, 'xyz');"
    "CREATE SCHEMA \"Odd \"\"Schema\"\"\";"
    "CREATE TABLE " ODD " (\"K\"\"ey\" text, \"Deleted At\" timestamptz);"
    "INSERT INTO " ODD " VALUES ('it''s ''; DROP', NULL), ('dead', now());"
    "GRANT USAGE ON SCHEMA \"Odd \"\"Schema\"\"\" TO PUBLIC;"
    "GRANT ALL ON app.moment, app.narrow, " ODD " TO PUBLIC";

static int make(void **state)
{
    places_make(state);
    admin(*state, TABLES);
    return 0;
}

int test_claims(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_living_row_is_claimed),
        TEST(a_missing_row_is_absent),
        TEST(a_soft_deleted_row_is_absent),
        TEST(what_is_asked_wrongly_is_refused),
        TEST(a_claim_is_of_one_row),
        TEST(a_twin_that_comes_later_stops_the_publication),
        TEST(every_way_to_write_a_key_is_the_same_claim),
        TEST(a_sessions_settings_do_not_rename_a_row),
        TEST(a_moments_claim_can_be_published),
        TEST(a_value_is_never_made_to_fit),
        TEST(odd_names_are_names),
        TEST(a_temporary_table_is_not_taken_for_the_row),
        TEST(a_table_that_is_dropped_is_no_longer_published),
        TEST(of_two_claims_at_once_one_wins_and_the_other_names_it),
        TEST(a_claim_rolled_back_is_none),
        TEST(of_three_that_start_together_one_wins),
        TEST(after_every_end_the_row_can_be_claimed_again),
        TEST(a_lapsed_claim_is_retired_on_the_way),
        TEST(a_claim_whose_answer_was_lost_is_asked_again),
    };

    return cmocka_run_group_tests_name("claims", tests, make, places_discard);
}
