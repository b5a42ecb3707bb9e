/* Whose rights: the store's functions have their owner's for the store's tables; for the application's they
 * have their caller's, no more. */
#include <stdlib.h>
#include <string.h>

#include "tests/publication/sessions.h"

static void as_admin(struct places *w, const char *format)
{
    _cleanup_(mem_free) char *quoted = mem_format("\"%s\"", w->role);
    _cleanup_(mem_free) char *before = mem_string(format);
    char *place = strstr(before, "ROLE");
    _cleanup_(mem_free) char *sql = NULL;

    *place = '\0';
    sql = mem_format("%s%s%s", before, quoted, place + strlen("ROLE"));
    admin(w, sql);
}

/* ---- the application's table ---- */

static void a_row_that_may_not_be_read_may_not_be_claimed(void **state)
{
    struct places *w = *state;

    REFUSAL(w, &w->a, "!42501", "SELECT result FROM tenure.claim_row('app.secret', 'id', '1')", NULL);
    REFUSAL(w, &w->a, "!42501", "SELECT result FROM tenure.claim_row('app.secret', 'id', '4242')", NULL);
}

static void another_roles_claim_gives_no_right_to_its_row(void **state)
{
    struct places *w = *state;
    struct claim a = {.attempt = "01890000-0000-7000-8000-000000000001"};

    SEEN(w, "ok",
        "SELECT result FROM tenure.claim_row_as('01890000-0000-7000-8000-000000000001', sha256('a'),"
        " 'app.secret', 'id', '1')",
        NULL);
    REFUSAL(w, &w->a, "!42501", "SELECT tenure.publication_begin($1, sha256('a'))", &a);
}

/* A reservation with a source of its maker's choice is read with its maker's rights too. */
static void a_source_made_by_hand_gives_no_right(void **state)
{
    struct places *w = *state;
    struct claim a = {.attempt = "01890000-0000-7000-8000-000000000001"};

    STEP(&w->a, "ok",
        "SELECT result FROM tenure.reserve('01890000-0000-7000-8000-000000000001', sha256('a'),"
        " 'publication', '{x}', bind_if_clear => true, source => jsonb_build_object('table',"
        " 'app.secret'::regclass::oid::bigint, 'key', 'id', 'value', '1'))",
        NULL);
    REFUSAL(w, &w->a, "!42501", "SELECT tenure.publication_begin($1, sha256('a'))", &a);
}

static void a_row_that_a_policy_hides_is_absent(void **state)
{
    struct places *w = *state;

    REFUSAL(w, &w->a, "absent", "SELECT result FROM tenure.claim_row('app.guarded', 'id', '42')", NULL);
    STEP(&w->a, "ok", "SELECT result FROM tenure.claim_row('app.guarded', 'id', '43')", NULL);
}

static void whoever_may_not_change_the_row_may_not_lock_it(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    as_admin(w, "REVOKE UPDATE ON app.source FROM ROLE");
    REFUSAL(w, &w->a, "!42501", PUBLICATION_BEGIN, &a);
    as_admin(w, "GRANT UPDATE ON app.source TO ROLE");
    STEP(&w->a, "t", PUBLICATION_BEGIN, &a);
}

/* ---- the store's tables ---- */

static char *names(struct places *w, const char *sql)
{
    return seen(w, sql, NULL);
}

static void the_stores_tables_are_closed(void **state)
{
    struct places *w = *state;
    static const char *const ACCESS[] = {
        "SELECT * FROM %s", "DELETE FROM %s", "TRUNCATE %s", "INSERT INTO %s DEFAULT VALUES"};
    _cleanup_(mem_free) char *tables =
        names(w, "SELECT oid::regclass FROM pg_class WHERE relkind IN ('r', 'v') AND relnamespace ="
                 " 'tenure'::regnamespace");
    int tried = 0;

    for (char *rest = tables, *table; (table = strtok_r(rest, "\n", &rest)); tried++)
        for (size_t i = 0; i < ARRAY_SIZE(ACCESS); i++) {
            _cleanup_(mem_free) char *sql = mem_format("SELECT format('%s', '%s')", ACCESS[i], table);
            _cleanup_(mem_free) char *access = seen(w, sql, NULL);
            REFUSAL(w, &w->a, "!42501", access, NULL);
        }
    assert_true(tried > 5);
    REFUSAL(w, &w->a, "!42501", "SELECT nextval('tenure.fence')", NULL);
    REFUSAL(w, &w->a, "!42501", "SELECT last_value FROM tenure.fence", NULL);
}

/* What the functions are made of has no rights of its own. */
static void a_part_called_by_hand_changes_nothing(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    REFUSAL(w, &w->b, "!42501", "SELECT tenure.lock_attempt($1)", &a);
    REFUSAL(w, &w->b, "!42501",
        "SELECT tenure.end_attempt(jsonb_populate_record(NULL::tenure.attempt,"
        " tenure.find($1::text)), 'failed', 'settled', now(), 'x', 'x', 'x', 'x')",
        &a);
    REFUSAL(w, &w->b, "!42501", "SELECT tenure.remember($1, 'settled', 'by nobody', now())", &a);
    REFUSAL(w, &w->b, "!42501", "SELECT tenure.hold_subjects($1, '{x}')", &a);
    REFUSAL(w, &w->b, "!42501", "SELECT tenure.fence_draw()", NULL);
}

static void without_execute_nothing_can_be_called(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    static const char *const CALLS[] = {CLAIM(42), RENEW, RENEW_MANY, RECLAIM, PUBLICATION_BEGIN,
        PUBLICATION_END, FAIL, RELEASE, "SELECT * FROM tenure.status()", "SELECT tenure.find($1::text)"};

    as_admin(w, "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA tenure FROM ROLE");
    for (size_t i = 0; i < ARRAY_SIZE(CALLS); i++)
        REFUSAL(w, &w->b, "!42501", CALLS[i], &a);
    as_admin(w, "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tenure TO ROLE");
}

/* ---- search_path ---- */

/* In `evil`, before pg_catalog in the attacker's path: what the functions use, under the same names. */
static const char EVIL[] =
    "CREATE SCHEMA evil;"
    "CREATE FUNCTION evil.make(signature text, result text) RETURNS void LANGUAGE plpgsql AS $make$"
    " BEGIN EXECUTE format('CREATE FUNCTION evil.%s RETURNS %s LANGUAGE plpgsql AS $$BEGIN"
    "  RAISE EXCEPTION ''evil'' USING ERRCODE = ''EV001''; END$$', signature, result); END $make$;"
    "SELECT evil.make('sha256(bytea)', 'bytea'), evil.make('set_config(text, text, boolean)', 'text'),"
    " evil.make('current_setting(text, boolean)', 'text'), evil.make('format(text, VARIADIC text[])', "
    "'text');"
    "DO $do$ DECLARE type regtype; operator text; BEGIN"
    " FOREACH type IN ARRAY '{uuid,text,bytea,timestamptz,bigint}'::regtype[] LOOP"
    "  PERFORM evil.make(format('compare(%1$s, %1$s)', type), 'boolean');"
    "  FOREACH operator IN ARRAY '{=,<>,<,>}'::text[] LOOP"
    "   EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = %2$s, RIGHTARG = %2$s, FUNCTION = evil.compare)',"
    "    operator, type); END LOOP; END LOOP; END $do$;"
    "CREATE VIEW evil.pg_attribute AS SELECT attname FROM pg_catalog.pg_attribute WHERE false;"
    "CREATE VIEW evil.pg_settings AS SELECT * FROM pg_catalog.pg_settings WHERE false;"
    "GRANT USAGE ON SCHEMA evil TO PUBLIC; GRANT SELECT ON ALL TABLES IN SCHEMA evil TO PUBLIC";

static void attack(struct session *session)
{
    STEP(session, "",
        "CREATE TEMPORARY TABLE attempt (id uuid); CREATE TEMPORARY TABLE subject (subject text);"
        "CREATE TEMPORARY TABLE meta (name text, value text); CREATE TEMPORARY TABLE transition (state text);"
        "CREATE TEMPORARY TABLE history (id int); CREATE TEMPORARY TABLE leftover (id int);"
        "CREATE TEMPORARY TABLE evidence (id int); CREATE TEMPORARY TABLE proof (id int);"
        "CREATE TEMPORARY TABLE pg_attribute (id int); CREATE TEMPORARY TABLE pg_settings (id int);"
        "SET search_path = pg_temp, evil, pg_catalog, tenure",
        NULL);
    STEP(session, "!EV001", "SELECT 'a'::text = 'b'::text", NULL);
}

/* A call of every function that has its owner's rights, with arguments that find the claim. */
static const char EVERY_CALL[] =
    "SELECT format('SELECT * FROM tenure.%I(%s)', proname, (SELECT string_agg(format('%s::%s', "
    "coalesce(v.value,"
    " 'NULL'), format_type(u.type, NULL)), ', ' ORDER BY u.nr) FROM unnest(proargtypes) WITH ORDINALITY u "
    "(type, nr)"
    " LEFT JOIN (VALUES ('uuid', '$1'), ('uuid[]', 'ARRAY[$1]'), ('bytea', '$2'), ('bytea[]', 'ARRAY[$2]'),"
    " ('text', '''command'''), ('text[]', '''{x}'''), ('boolean', 'true'), ('bigint', '1'), ('integer', "
    "'99'),"
    " ('jsonb', '''{}'''), ('interval', '''60 s''')) v (type, value) ON v.type = format_type(u.type, NULL)))"
    " FROM pg_proc WHERE pronamespace = 'tenure'::regnamespace AND prosecdef ORDER BY oid";

static char *undone(struct session *session, const char *call, const struct claim *claim)
{
    char *text = NULL;

    STEP(session, "", "BEGIN", NULL);
    text = outcome(session, call, claim);
    STEP(session, "", "ROLLBACK", NULL);
    return text;
}

/* Fences and numbers go on from one call to the next; an error must be the same error. */
static void assert_the_same(const char *call, const char *plain, const char *attacked)
{
    if ((plain[0] == '!' || attacked[0] == '!') && strcmp(plain, attacked) != 0)
        fail_msg("%s: %s, and under attack %s", call, plain, attacked);
}

static void no_function_looks_where_its_caller_says(void **state)
{
    struct places *w = *state;
    _cleanup_(mem_free) char *calls = names(w, EVERY_CALL);
    struct claim a = claimed(&w->a, 42);
    int called = 0;

    attack(&w->b);
    for (char *rest = calls, *call; (call = strtok_r(rest, "\n", &rest)); called++) {
        _cleanup_(mem_free) char *plain = undone(&w->a, call, &a), *attacked = undone(&w->b, call, &a);
        assert_the_same(call, plain, attacked);
    }
    assert_true(called > 20);
}

static void a_publication_under_attack_is_the_same(void **state)
{
    struct places *w = *state;
    struct claim a;

    attack(&w->a);
    a = claimed(&w->a, 42);
    clock_pass(w, 181);
    STEP(&w->b, "ok", RECLAIM, &a);
    a = claimed(&w->a, 42);
    STEP(&w->a, "ok", RENEW, &a);
    STEP(&w->a, "ok", RENEW_MANY, &a);
    publication_started(&w->a, &a);
    STEP(&w->a, "", PUBLICATION_END, &a);
    STEP(&w->a, "", "COMMIT", NULL);
    SEEN(w, "passed", STATE, &a);
    a = claimed(&w->a, 42);
    STEP(&w->a, "ok", FAIL, &a);
    a = claimed(&w->a, 42);
    STEP(&w->a, "ok", RELEASE, &a);
}

/* ---- time-outs as they are shipped ---- */

static void no_wait_for_a_lock_is_without_end(void **state)
{
    struct places *w = *state;

    SEEN(w, "",
        "SELECT name FROM test.shipped WHERE prosrc LIKE '%tenure.lock_attempt(%'"
        " AND NOT coalesce(proconfig @> '{lock_timeout=2s}', false)",
        NULL);
    SEEN(w, "t", "SELECT count(*) > 6 FROM test.shipped WHERE proconfig @> '{lock_timeout=2s}'", NULL);
}

static int make(void **state)
{
    places_make(state);
    admin(*state, EVIL);
    admin(*state, "CREATE TABLE app.secret AS SELECT 1 AS id;"
                  "CREATE TABLE app.guarded AS SELECT id FROM generate_series(42, 43) id;"
                  "GRANT ALL ON app.guarded TO PUBLIC; ALTER TABLE app.guarded ENABLE ROW LEVEL SECURITY;"
                  "CREATE POLICY but_one ON app.guarded USING (id <> 42)");
    return 0;
}

int test_rights(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_row_that_may_not_be_read_may_not_be_claimed),
        TEST(another_roles_claim_gives_no_right_to_its_row),
        TEST(a_source_made_by_hand_gives_no_right),
        TEST(a_row_that_a_policy_hides_is_absent),
        TEST(whoever_may_not_change_the_row_may_not_lock_it),
        TEST(the_stores_tables_are_closed),
        TEST(a_part_called_by_hand_changes_nothing),
        TEST(without_execute_nothing_can_be_called),
        TEST(no_function_looks_where_its_caller_says),
        TEST(a_publication_under_attack_is_the_same),
        TEST(no_wait_for_a_lock_is_without_end),
    };

    return cmocka_run_group_tests_name("rights", tests, make, places_discard);
}
