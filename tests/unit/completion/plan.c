/* The plan: what runs, what is reused, and why. Of a store this needs two questions. */
#include "tests/unit/completion/workshop.h"

#include "attempts/store-private.h"
#include "completion/completion-private.h"

#define BLOB "0123456789abcdef0123456789abcdef01234567"
#define TREE "89abcdef0123456789abcdef0123456789abcdef"

static const char WORLD[] = "{\"producers\":{"
                            "\"lib\":{\"run\":\"make lib\",\"outputs\":[\"out\"]},"
                            "\"app\":{\"run\":\"make app\",\"needs\":[\"lib\"]},"
                            "\"doc\":{\"run\":\"make doc\",\"env\":[\"SEED\"]}}}";
enum { LIB, APP, DOC, PRODUCERS };

/* ---- a store that knows what it was told ---- */

struct memory {
    struct store store;
    struct evidence_row rows[8];
    size_t count;
    enum result answer; /* of both questions; OK: what is known */
};

static struct memory *memory_of(struct store *store)
{
    return (struct memory *)(void *)store;
}

static enum result answer(
    struct store *store, const struct evidence_row *row, struct evidence_row *ret, struct error *err)
{
    enum result broken = memory_of(store)->answer;
    if (broken != RESULT_OK)
        return error_set(err, broken, 0, "the test's store is %s", result_name(broken));
    if (!row)
        return error_set(err, RESULT_ABSENT, 0, "the test's store has no such evidence");
    *ret = *row;
    ret->repository = mem_string(row->repository);
    ret->producer = mem_string(row->producer);
    ret->verdict = mem_string(row->verdict);
    ret->tree = row->tree ? mem_string(row->tree) : NULL;
    ret->payload = mem_string(row->payload);
    return RESULT_OK;
}

static enum result memory_find(
    struct store *store, const char *key, struct evidence_row *ret, struct error *err)
{
    const struct evidence_row *found = NULL;
    struct memory *memory = memory_of(store);
    for (size_t i = 0; i < memory->count; i++)
        if (strcmp(memory->rows[i].key, key) == 0 && memory->rows[i].reusable)
            found = &memory->rows[i];
    return answer(store, found, ret, err);
}

static enum result memory_latest(struct store *store, const char *repository, const char *producer,
    struct evidence_row *ret, struct error *err)
{
    const struct evidence_row *found = NULL;
    struct memory *memory = memory_of(store);
    assert_string_equal(repository, "acme/widget");
    for (size_t i = 0; i < memory->count; i++)
        if (strcmp(memory->rows[i].producer, producer) == 0)
            found = &memory->rows[i];
    return answer(store, found, ret, err);
}

static const struct store_ops MEMORY_OPS = {.evidence_find = memory_find, .evidence_latest = memory_latest};

/* ---- a run of which nothing but the plan is there ---- */

struct world {
    struct memory memory;
    struct completion_options options;
    struct tree_entry entry;
    const char *environment[4];
    struct run run;
    struct step steps[PRODUCERS];
};

static void world_make(struct world *world)
{
    _cleanup_(error_done) struct error err = {0};
    run(".", "rm -rf out");
    *world = (struct world){
        .memory = {.store.ops = &MEMORY_OPS},
        .entry = {0100644, BLOB, "Makefile"},
        .environment = {"PATH=/usr/bin", "SEED=7", NULL},
    };
    struct run *made = &world->run;
    made->options = &world->options;
    made->runner = collect_runner();
    made->repository = mem_string("acme/widget");
    made->surroundings =
        (struct surroundings){.environment = world->environment, .system = "Linux", .architecture = "x86_64"};
    made->candidate = (struct candidate){.top = mem_string(workshop.path),
        .top_fd = open(workshop.path, O_DIRECTORY | O_CLOEXEC),
        .tree = mem_string(TREE),
        .entries = mem_copy(&world->entry, sizeof world->entry),
        .entry_count = 1,
        .blob_length = 40};
    made->steps = world->steps;
    if (config_parse(WORLD, strlen(WORLD), &made->config, &err) != RESULT_OK)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < PRODUCERS; i++)
        world->steps[i] = (struct step){.producer = &made->config.producers[i], .state = STEP_WAITING};
}

static void world_done(struct world *world)
{
    for (size_t i = 0; i < world->memory.count; i++)
        evidence_row_done(&world->memory.rows[i]);
    for (size_t i = 0; i < PRODUCERS; i++) {
        evidence_done(&world->steps[i].evidence);
        free(world->steps[i].reason);
    }
    candidate_done(&world->run.candidate);
    config_done(&world->run.config);
    free(world->run.repository);
}

/* Evidence of a producer as the world is now; a need's outputs as they are in the work tree. */
static struct evidence evidence_of(struct world *world, size_t producer)
{
    struct run *now = &world->run;
    struct evidence evidence = {.producer = mem_string(now->config.producers[producer].name),
        .attempt_id = "00000000-0000-7000-8000-000000000001",
        .verdict = mem_string("passed"),
        .passed = true,
        .reusable = true,
        .exit_code = 0,
        .signal = -1,
        .duration_ms = 1200,
        .handle = mem_string("T-0000-0001"),
        .host = mem_string("elsewhere"),
        .commit = mem_string(BLOB)};
    char digest[DIGEST_HEX_SIZE];
    const char *needs[] = {digest};
    struct output_states made = {0};
    const struct strings *outputs = &now->config.producers[LIB].outputs;
    assert_int_equal(outputs_look(now->candidate.top_fd, outputs, NULL, &made, NULL), RESULT_OK);
    outputs_digest(&made, digest);
    assert_int_equal(applicability_compute(&now->config, producer, &now->candidate, &now->surroundings, needs,
                         &evidence.applicability, NULL),
        RESULT_OK);
    if (producer == LIB)
        evidence.outputs = made;
    else
        output_states_done(&made);
    return evidence;
}

/* Takes over the evidence. */
static void remember(struct world *world, struct evidence evidence)
{
    assert_true(world->memory.count < ARRAY_SIZE(world->memory.rows));
    evidence_to_row(&evidence, "acme/widget", &world->memory.rows[world->memory.count++]);
    evidence_done(&evidence);
}

static void remember_all(struct world *world)
{
    for (size_t i = 0; i < PRODUCERS; i++)
        remember(world, evidence_of(world, i));
}

static void plan(struct world *world)
{
    _cleanup_(error_done) struct error err = {0};
    if (plan_make(&world->run, &world->memory.store, &err) != RESULT_OK)
        fail_msg("%s", err.message);
}

static void assert_step(const struct world *world, size_t producer, bool reuse, const char *reason)
{
    const struct step *step = &world->steps[producer];
    if (step->reuse != reuse || strcmp(step->reason, reason) != 0)
        fail_msg("%s is to be %s: %s", step->producer->name, step->reuse ? "reused" : "run", step->reason);
}

#define REUSED true, "same key as T-0000-0001"

/* ---- stories ---- */

static void what_nobody_knows_runs(void **state)
{
    (void)state;
    struct world world;
    world_make(&world);
    plan(&world);
    assert_step(&world, LIB, false, "it has not run before");
    assert_step(&world, APP, false, "it needs lib, which runs");
    assert_step(&world, DOC, false, "it has not run before");
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(plan_make(&world.run, NULL, &err), RESULT_OK); /* there is no store yet */
    assert_step(&world, LIB, false, "it has not run before");
    world_done(&world);
}

static void what_is_known_is_reused_whether_its_outputs_are_there_or_not(void **state)
{
    (void)state;
    struct world world;
    world_make(&world);
    run(".", "echo made > out");
    remember_all(&world);
    for (int there = 1; there >= 0; there--) {
        plan(&world);
        for (size_t i = 0; i < PRODUCERS; i++)
            assert_step(&world, i, REUSED);
        run(".", "rm -f out");
    }
    world_done(&world);
}

static void outputs_that_somebody_needs_are_made_again(void **state)
{
    (void)state;
    static const char *const SCRIPTS[] = {"rm out", "echo other > out", "rm out; mkdir out", "chmod +x out"};
    for (size_t i = 0; i < ARRAY_SIZE(SCRIPTS); i++) {
        struct world world;
        world_make(&world);
        run(".", "echo made > out");
        remember(&world, evidence_of(&world, LIB));
        remember(&world, evidence_of(&world, DOC));
        plan(&world);
        assert_step(&world, LIB, REUSED);
        assert_step(&world, APP, false, "it has not run before");
        run(".", SCRIPTS[i]);
        plan(&world);
        assert_step(&world, LIB, false, "an output that another producer needs is missing or differs");
        assert_int_equal(world.steps[LIB].expected_ms, 1200);
        assert_step(&world, DOC, REUSED);
        world_done(&world);
    }
}

/* The key of who needs something that runs is open until that has ended. */
static void who_needs_what_runs_has_no_key_yet(void **state)
{
    (void)state;
    struct world world;
    world_make(&world);
    run(".", "echo made > out");
    remember(&world, evidence_of(&world, APP));
    plan(&world);
    assert_step(&world, LIB, false, "it has not run before");
    assert_step(&world, APP, false, "it needs lib, which runs");
    assert_int_equal(world.steps[APP].expected_ms, 1200);

    /* It ran, and made the same: then there is evidence after all. */
    _cleanup_(error_done) struct error err = {0};
    struct step *lib = &world.steps[LIB];
    lib->evidence = evidence_of(&world, LIB);
    lib->state = STEP_ENDED;
    assert_int_equal(plan_resolve(&world.run, &world.memory.store, APP, &err), RESULT_OK);
    assert_step(&world, APP, REUSED);

    /* It ran, and made something else: the reason of the plan stays. */
    evidence_done(&lib->evidence);
    run(".", "echo other > out");
    lib->evidence = evidence_of(&world, LIB);
    lib->reuse = false;
    free(world.steps[APP].reason);
    world.steps[APP].reason = mem_string("as planned");
    assert_int_equal(plan_resolve(&world.run, &world.memory.store, APP, &err), RESULT_OK);
    assert_step(&world, APP, false, "as planned");
    world_done(&world);
}

static void a_failure_is_reused_as_a_failure(void **state)
{
    (void)state;
    struct world world;
    world_make(&world);
    struct evidence failed = evidence_of(&world, DOC);
    failed.passed = false;
    failed.exit_code = 1;
    remember(&world, failed);
    plan(&world);
    assert_step(&world, DOC, REUSED);
    assert_false(world.steps[DOC].evidence.passed);
    world_done(&world);
}

struct difference {
    enum component component;
    const char *reason;
};

static const struct difference DIFFERENCES[] = {
    {COMPONENT_COMMAND, "its command changed"},
    {COMPONENT_INPUTS, "its inputs changed"},
    {COMPONENT_NEEDS, "the outputs that it needs changed"},
    {COMPONENT_ENV, "a declared variable changed"},
    {COMPONENT_TOOLS, "a declared tool changed"},
    {COMPONENT_PLATFORM, "it ran on another platform"},
};

static void the_reason_is_what_differs_from_the_last_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(DIFFERENCES); i++) {
        struct world world;
        world_make(&world);
        struct evidence last = evidence_of(&world, DOC);
        memset(last.applicability.key, '0', DIGEST_HEX_SIZE - 1);
        memset(last.applicability.components[DIFFERENCES[i].component], '0', DIGEST_HEX_SIZE - 1);
        remember(&world, last);
        plan(&world);
        assert_step(&world, DOC, false, DIFFERENCES[i].reason);
        assert_int_equal(world.steps[DOC].expected_ms, 1200);
        world_done(&world);
    }
}

/* The store finds a failure on its own machine alone, and nothing of a run that was interrupted. */
static void what_is_not_found_with_the_same_key_runs(void **state)
{
    (void)state;
    struct world world;
    world_make(&world);
    struct evidence last = evidence_of(&world, DOC);
    last.reusable = false;
    remember(&world, last);
    plan(&world);
    assert_step(&world, DOC, false, "no completed outcome for this key");
    last = evidence_of(&world, DOC);
    last.reusable = last.passed = false;
    remember(&world, last);
    plan(&world);
    assert_step(&world, DOC, false, "it failed on elsewhere");
    world_done(&world);
}

static void a_declared_variable_is_part_of_the_key(void **state)
{
    (void)state;
    struct world world;
    world_make(&world);
    run(".", "echo made > out");
    remember_all(&world);
    world.environment[1] = "SEED=8";
    plan(&world);
    assert_step(&world, LIB, REUSED);
    assert_step(&world, DOC, false, "a declared variable changed");
    world_done(&world);
}

static void to_run_everything_nothing_is_reused(void **state)
{
    (void)state;
    struct world world;
    world_make(&world);
    run(".", "echo made > out");
    remember_all(&world);
    world.options.rerun = true;
    plan(&world);
    assert_step(&world, LIB, false, "--rerun");
    assert_step(&world, APP, false, "it needs lib, which runs");
    assert_int_equal(world.steps[LIB].expected_ms, 1200);
    world.options.dirty = true;
    plan(&world);
    assert_step(&world, DOC, false, "--dirty runs everything");
    world_done(&world);
}

static void what_is_not_demanded_is_not_asked_for(void **state)
{
    (void)state;
    struct world world;
    world_make(&world);
    world.steps[DOC].state = STEP_OUT;
    plan(&world);
    assert_null(world.steps[DOC].reason);
    assert_string_equal(world.steps[DOC].applicability.key, "");
    world_done(&world);
}

static void a_store_in_trouble_is_no_reason_to_run(void **state)
{
    (void)state;
    struct world world;
    world_make(&world);
    world.memory.answer = RESULT_UNREACHABLE;
    assert_int_equal(plan_make(&world.run, &world.memory.store, NULL), RESULT_UNREACHABLE);
    world.options.rerun = true;
    assert_int_equal(plan_make(&world.run, &world.memory.store, NULL), RESULT_UNREACHABLE);
    world_done(&world);
}

static void an_output_that_was_changed_since_is_a_moved_tree(void **state)
{
    (void)state;
    struct world world;
    world_make(&world);
    run(".", "echo made > out");
    world.steps[LIB].evidence = evidence_of(&world, LIB);
    assert_int_equal(plan_check_needs(&world.run, &world.steps[APP], NULL), RESULT_OK);
    static const char *const SCRIPTS[] = {"echo other > out", "rm out", "mkfifo out"};
    for (size_t i = 0; i < ARRAY_SIZE(SCRIPTS); i++) {
        _cleanup_(error_done) struct error err = {0};
        run(".", SCRIPTS[i]);
        assert_int_equal(plan_check_needs(&world.run, &world.steps[APP], &err), RESULT_CONFLICT);
        assert_has(err.message, "out");
        assert_non_null(err.remedy);
        assert_int_equal(plan_check_needs(&world.run, &world.steps[DOC], NULL), RESULT_OK);
    }
    world_done(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_knows_runs),
        cmocka_unit_test(what_is_known_is_reused_whether_its_outputs_are_there_or_not),
        cmocka_unit_test(outputs_that_somebody_needs_are_made_again),
        cmocka_unit_test(who_needs_what_runs_has_no_key_yet),
        cmocka_unit_test(a_failure_is_reused_as_a_failure),
        cmocka_unit_test(the_reason_is_what_differs_from_the_last_time),
        cmocka_unit_test(what_is_not_found_with_the_same_key_runs),
        cmocka_unit_test(a_declared_variable_is_part_of_the_key),
        cmocka_unit_test(to_run_everything_nothing_is_reused),
        cmocka_unit_test(what_is_not_demanded_is_not_asked_for),
        cmocka_unit_test(a_store_in_trouble_is_no_reason_to_run),
        cmocka_unit_test(an_output_that_was_changed_since_is_a_moved_tree),
    };
    return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
