/* What the store leaves in a session: nothing where a pooler gives it to somebody else afterwards. */
#include <stdlib.h>
#include <string.h>

#include "attempts/store_postgres-private.h"
#include "tests/conformance/postgres.h"

static int64_t kept(struct store *store)
{
    PGresult *result = NULL;
    int64_t count = 0;

    OK(postgres_ask(postgres_of(store), ASKS,
        "SELECT count(*) FROM pg_catalog.pg_prepared_statements WHERE name LIKE 'tenure%'", NULL, 0, &result,
        NULL));
    count = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return count;
}

static void a_statement_that_comes_again_is_kept_where_no_pooler_stands_between(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_COMMAND, "s");
    bool direct = strcmp(backend->name, "postgres") == 0;

    for (int i = 0; i < 2; i++)
        assert_int_equal(renew(world->a, &credential), RESULT_OK);
    assert_int_equal(kept(world->a), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(renew(world->a, &credential), RESULT_OK);
    assert_int_equal(kept(world->a), direct);
    /* A lost connection takes what was kept along, and the store notices. */
    postgres_disconnect(postgres_of(world->a));
    for (int i = 0; i < 5; i++)
        assert_int_equal(renew(world->a, &credential), RESULT_OK);
    assert_int_equal(kept(world->a), direct);
}

static void a_kept_statement_that_is_gone_costs_a_connection(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_COMMAND, "s");
    PGresult *result = NULL;

    for (int i = 0; i < 5; i++)
        assert_int_equal(renew(world->a, &credential), RESULT_OK);
    OK(postgres_ask(postgres_of(world->a), ASKS, "DEALLOCATE ALL", NULL, 0, &result, NULL));
    PQclear(result);
    assert_int_equal(renew(world->a, &credential), RESULT_OK);
}

/* A kept statement is planned for the functions as they were. */
static void a_kept_statement_survives_a_change_of_its_function(void **state)
{
    struct world *world = *state;
    struct credential credential = run(world, world->a, KIND_COMMAND, "s");

    for (int i = 0; i < 5; i++)
        assert_int_equal(renew(world->a, &credential), RESULT_OK);
    backend->execute(world->url, "ALTER FUNCTION tenure.renew(uuid, bytea, text, bigint, bigint) COST 200");
    assert_int_equal(renew(world->a, &credential), RESULT_OK);
    backend->execute(world->url, "UPDATE tenure.meta SET value = '1000' WHERE name = 'schema_version'");
    assert_int_equal(renew(world->a, &credential), RESULT_NEWER);
}

int test_postgres_sessions(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_statement_that_comes_again_is_kept_where_no_pooler_stands_between),
        TEST(a_kept_statement_that_is_gone_costs_a_connection),
        TEST(a_kept_statement_survives_a_change_of_its_function),
    };

    return cmocka_run_group_tests_name("sessions", tests, NULL, NULL);
}
