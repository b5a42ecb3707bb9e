/* The key of evidence: golden vectors, what must miss, what must hit. And what a producer sees of its caller.
 */
#include "tests/unit/completion/workshop.h"

#include "completion/demand/applicability.h"

/* ---- a small world ---- */

#define BLOB_A "0123456789abcdef0123456789abcdef01234567"
#define BLOB_B "89abcdef0123456789abcdef0123456789abcdef"
#define OUT_1  "1111111111111111111111111111111111111111111111111111111111111111"
#define OUT_2  "2222222222222222222222222222222222222222222222222222222222222222"

static const char WORLD[] =
    "{\"producers\":{"
    "\"one\":{\"run\":\"true\"},\"two\":{\"run\":\"true\"},"
    "\"test\":{\"run\":[\"./widget\",\"--selftest\"],\"inputs\":[\"src/**\"],\"needs\":[\"one\",\"two\"],"
    "\"env\":[\"SEED\",\"ABSENT\"],\"tools\":[\"hammer\"],\"outputs\":[\"out\"],\"artifacts\":[\"report."
    "xml\"]},"
    "\"all\":{\"run\":\"make check\"}}}";

#define TEST 2
#define ALL  3

struct world {
    struct config config;
    struct tree_entry entries[4];
    struct candidate candidate;
    char *path_variable;
    const char *environment[8];
    struct surroundings surroundings;
    const char *outputs[2];
};

static void world_read(struct world *world, const char *text)
{
    _cleanup_(error_done) struct error err = {0};
    config_done(&world->config);
    if (config_parse(text, strlen(text), &world->config, &err) != RESULT_OK)
        fail_msg("%s", err.message);
}

static void world_make(struct world *world)
{
    *world = (struct world){
        .entries = {{0100644, BLOB_A, "Makefile"}, {0100644, BLOB_A, "src/a.c"},
            {0100755, BLOB_B, "src/b\n.sh"}, {0120000, BLOB_B, "src/link"}},
        .path_variable = mem_format("PATH=%s/bin1:%s/bin2", workshop.path, workshop.path),
        .outputs = {OUT_1, OUT_2},
    };
    world->candidate = (struct candidate){
        .top_fd = open(workshop.path, O_DIRECTORY | O_CLOEXEC),
        .entries = world->entries,
        .entry_count = 4,
        .blob_length = 40,
    };
    world->candidate.tree = mem_string(BLOB_B);
    world->environment[0] = world->path_variable;
    world->environment[1] = "SEED=7";
    world->environment[2] = "HOME=/home/me";
    world->environment[3] = "TERM=vt100";
    world->surroundings =
        (struct surroundings){.environment = world->environment, .system = "Linux", .architecture = "x86_64"};
    world_read(world, WORLD);
    run(".", "mkdir -p bin1 bin2; printf hammer > bin2/hammer; chmod +x bin2/hammer; rm -f bin1/*");
}

static void world_done(struct world *world)
{
    config_done(&world->config);
    close(world->candidate.top_fd);
    free(world->candidate.tree);
    free(world->path_variable);
}

static struct applicability compute(struct world *world, size_t producer)
{
    struct applicability made;
    _cleanup_(error_done) struct error err = {0};
    if (applicability_compute(&world->config, producer, &world->candidate, &world->surroundings,
            world->outputs, &made, &err) != RESULT_OK)
        fail_msg("%s", err.message);
    return made;
}

/* ---- golden vectors ---- */

static const char *const GOLDEN_TEST[COMPONENT_MAX] = {
    [COMPONENT_COMMAND] = "e08e185d420fd676cd1ed7c185b62fb7c49de9c02b149f2dd60a2ad0090ba93b",
    [COMPONENT_INPUTS] = "9c631d7821dfadccfd288641c4daebae33c0ba8de2356f2d758640da7df7414e",
    [COMPONENT_NEEDS] = "2959e8b012bc03608a704661da5674c0ed3ecdcd0d50359d28fd5eef6487955f",
    [COMPONENT_ENV] = "574dde669368bcdccd2f95a740e07d6c3230b86e2fab03435355cf138e9bf493",
    [COMPONENT_TOOLS] = "1c8c17e1eec532594e4e5bb50ab369846bd0b97e2590f2236e3fb1d8bd5e46be",
    [COMPONENT_PLATFORM] = "2adc677bf829bccebbd5ae8f22117b73d6c9b30961a3930e63e8ac808af7a2fc",
};
#define GOLDEN_TEST_KEY "582c89c3e13bd9c06913d31ac984b0928f9caf81b19f959dfe53fe1dbd5bdbfd"
#define GOLDEN_ALL_KEY  "50651b60ee7d5f6a6624eb5287cf4eb5066308d01ed1880e3dcc83b1d8a33321"
#define GOLDEN_DEMAND   "961849a79439db2223071de36f3774f25c3ece6913315d42ad90e1c1f724e1a4"

static void encodes_as_ever(void **state)
{
    (void)state;
    struct world world;
    world_make(&world);
    struct applicability made = compute(&world, TEST);
    for (enum component component = 0; component < COMPONENT_MAX; component++)
        assert_string_equal(made.components[component], GOLDEN_TEST[component]);
    assert_string_equal(made.key, GOLDEN_TEST_KEY);
    made = compute(&world, ALL);
    assert_string_equal(made.key, GOLDEN_ALL_KEY);
    char demand[DIGEST_HEX_SIZE];
    const bool demanded[] = {true, true, true, false};
    assert_int_equal(
        demand_digest(&world.config, demanded, &world.candidate, &world.surroundings, demand, NULL),
        RESULT_OK);
    assert_string_equal(demand, GOLDEN_DEMAND);
    world_done(&world);
}

static void names_its_components(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"command", "inputs", "needs", "env", "tools", "platform"};
    for (enum component component = 0; component < COMPONENT_MAX; component++)
        assert_string_equal(component_name(component), NAMES[component]);
}

/* ---- what must miss ---- */

static void seed_changes(struct world *world)
{
    world->environment[1] = "SEED=8";
}

static void seed_goes(struct world *world)
{
    world->environment[1] = "SOW=7";
}

static void seed_is_empty(struct world *world)
{
    world->environment[1] = "SEED=";
}

static void absent_appears(struct world *world)
{
    world->environment[4] = "ABSENT=";
}

static void tool_changes(struct world *world)
{
    (void)world;
    run(".", "printf Hammer > bin2/hammer");
}

static void tool_is_shadowed(struct world *world)
{
    (void)world;
    run(".", "printf other > bin1/hammer; chmod +x bin1/hammer");
}

static void need_output_changes(struct world *world)
{
    world->outputs[1] = OUT_1;
}

static void architecture_changes(struct world *world)
{
    world->surroundings.architecture = "aarch64";
}

static void system_changes(struct world *world)
{
    world->surroundings.system = "Minix";
}

static void input_changes(struct world *world)
{
    world->entries[1].blob = BLOB_B;
}

static void input_mode_changes(struct world *world)
{
    world->entries[1].mode = 0100755;
}

static void input_is_renamed(struct world *world)
{
    world->entries[1].path = "src/aa.c";
}

static void input_becomes_link(struct world *world)
{
    world->entries[2].mode = 0120000;
}

static void input_goes(struct world *world)
{
    world->candidate.entry_count = 3;
}

static void inputs_all_go(struct world *world)
{
    world->candidate.entry_count = 1;
}

static void dotfile_appears(struct world *world)
{
    world->entries[0] = (struct tree_entry){0100644, BLOB_A, "src/.x"};
}

/* The configuration with one text for another. */
static void reread(struct world *world, const char *old, const char *new)
{
    const char *at = strstr(WORLD, old);
    assert_non_null(at);
    _cleanup_(mem_free) char *text = mem_format("%.*s%s%s", (int)(at - WORLD), WORLD, new, at + strlen(old));
    world_read(world, text);
}

static void command_changes(struct world *world)
{
    reread(world, "--selftest", "--selftests");
}

static void words_are_split_otherwise(struct world *world)
{
    reread(world, "\"./widget\",\"--selftest\"", "\"./widget--selftest\"");
}

static void list_becomes_shell(struct world *world)
{
    reread(world, "[\"./widget\",\"--selftest\"]", "\"./widget --selftest\"");
}

static void variable_is_declared(struct world *world)
{
    reread(world, "\"ABSENT\"", "\"ABSENT\",\"HOME\"");
}

static void output_is_declared(struct world *world)
{
    reread(world, "\"out\"", "\"out\",\"out2\"");
}

static void output_becomes_artifact(struct world *world)
{
    reread(world, "\"outputs\":[\"out\"],\"artifacts\":[\"report.xml\"]",
        "\"artifacts\":[\"report.xml\",\"out\"]");
}

struct change_of_world {
    const char *name;
    void (*change)(struct world *world);
    enum component component; /* the only one that may differ */
};

static const struct change_of_world MISSES[] = {
    {"a declared variable", seed_changes, COMPONENT_ENV},
    {"a declared variable gone", seed_goes, COMPONENT_ENV},
    {"a declared variable empty", seed_is_empty, COMPONENT_ENV},
    {"empty instead of absent", absent_appears, COMPONENT_ENV},
    {"one more declared variable", variable_is_declared, COMPONENT_ENV},
    {"a tool in place", tool_changes, COMPONENT_TOOLS},
    {"another tool first on PATH", tool_is_shadowed, COMPONENT_TOOLS},
    {"a needed output", need_output_changes, COMPONENT_NEEDS},
    {"architecture", architecture_changes, COMPONENT_PLATFORM},
    {"system", system_changes, COMPONENT_PLATFORM},
    {"an input", input_changes, COMPONENT_INPUTS},
    {"an input's mode", input_mode_changes, COMPONENT_INPUTS},
    {"a rename with equal content", input_is_renamed, COMPONENT_INPUTS},
    {"a link of equal content", input_becomes_link, COMPONENT_INPUTS},
    {"an input gone", input_goes, COMPONENT_INPUTS},
    {"all inputs gone", inputs_all_go, COMPONENT_INPUTS},
    {"a dotfile more", dotfile_appears, COMPONENT_INPUTS},
    {"the command", command_changes, COMPONENT_COMMAND},
    {"the words", words_are_split_otherwise, COMPONENT_COMMAND},
    {"the form", list_becomes_shell, COMPONENT_COMMAND},
    {"an output more", output_is_declared, COMPONENT_COMMAND},
    {"an artifact instead of an output", output_becomes_artifact, COMPONENT_COMMAND},
};

static void misses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(MISSES); i++) {
        struct world world;
        world_make(&world);
        struct applicability before = compute(&world, TEST);
        MISSES[i].change(&world);
        struct applicability after = compute(&world, TEST);
        if (strcmp(before.key, after.key) == 0)
            fail_msg("%s: the key is the same", MISSES[i].name);
        for (enum component component = 0; component < COMPONENT_MAX; component++)
            if ((strcmp(before.components[component], after.components[component]) != 0) !=
                (component == MISSES[i].component))
                fail_msg("%s: component %s", MISSES[i].name, component_name(component));
        world_done(&world);
    }
}

/* ---- what must hit ---- */

static void surroundings_change(struct world *world)
{
    world->environment[2] = "HOME=/root";
    world->environment[3] = "TERM=dumb";
    world->environment[4] = "OLDPWD=/";
    world->environment[5] = "SSH_AUTH_SOCK=/tmp/x";
}

static void another_checkout(struct world *world)
{
    close(world->candidate.top_fd);
    run("elsewhere", "true");
    _cleanup_(mem_free) char *path = place("elsewhere");
    world->candidate.top_fd = open(path, O_DIRECTORY | O_CLOEXEC);
}

static void other_input(struct world *world)
{
    world->entries[0].blob = BLOB_B;
}

static void needs_swap(struct world *world)
{
    reread(world, "\"one\",\"two\"]", "\"two\",\"one\"]");
    world->outputs[0] = OUT_2;
    world->outputs[1] = OUT_1;
}

static void lists_swap(struct world *world)
{
    reread(world, "\"SEED\",\"ABSENT\"", "\"ABSENT\",\"SEED\"");
}

static void tool_moves(struct world *world)
{
    (void)world;
    run(".", "mv bin2/hammer bin2/real; ln -s ../bin2/real bin1/hammer");
}

static void limits_change(struct world *world)
{
    reread(world, "\"env\"", "\"timeout\":\"5m\",\"quiet\":\"1m\",\"env\"");
}

static void name_changes(struct world *world)
{
    reread(world, "\"test\"", "\"check\"");
}

static const struct change_of_world HITS[] = {
    {"terminal, home, agent", surroundings_change, COMPONENT_MAX},
    {"another checkout", another_checkout, COMPONENT_MAX},
    {"a file that is no input", other_input, COMPONENT_MAX},
    {"needs in another order", needs_swap, COMPONENT_MAX},
    {"variables in another order", lists_swap, COMPONENT_MAX},
    {"the same tool behind a link", tool_moves, COMPONENT_MAX},
    {"time limits", limits_change, COMPONENT_MAX},
    {"the producer's name", name_changes, COMPONENT_MAX},
};

static void hits(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(HITS); i++) {
        struct world world;
        world_make(&world);
        struct applicability before = compute(&world, TEST);
        HITS[i].change(&world);
        struct applicability after = compute(&world, TEST);
        if (strcmp(before.key, after.key) != 0)
            fail_msg("%s: the key differs", HITS[i].name);
        world_done(&world);
    }
}

/* ---- tools ---- */

static void refuses_tools_that_are_not_there(void **state)
{
    (void)state;
    struct world world;
    struct applicability made;
    world_make(&world);
    static const char *const SCRIPTS[] = {"rm bin2/hammer", "chmod -x bin2/hammer",
        "rm bin2/hammer; mkdir bin2/hammer", "rm -r bin2/hammer; ln -s hammer bin2/hammer"};
    for (size_t i = 0; i < ARRAY_SIZE(SCRIPTS); i++) {
        _cleanup_(error_done) struct error err = {0};
        run(".", "rm -rf bin2/hammer; printf hammer > bin2/hammer; chmod +x bin2/hammer");
        run(".", SCRIPTS[i]);
        assert_int_equal(applicability_compute(&world.config, TEST, &world.candidate, &world.surroundings,
                             world.outputs, &made, &err),
            RESULT_INVALID);
        assert_has(err.message, "\"hammer\"");
        assert_has(err.message, "\"test\"");
        assert_non_null(err.remedy);
    }
    run(".", "rm -f bin2/hammer");
    world_done(&world);
}

/* Relative parts of PATH, and tools with a slash, start at the top of the work tree. */
static void finds_tools_in_the_work_tree(void **state)
{
    (void)state;
    struct world world;
    world_make(&world);
    struct applicability before = compute(&world, TEST);
    world.environment[0] = "PATH=/nowhere::bin2";
    struct applicability after = compute(&world, TEST);
    assert_string_equal(before.key, after.key);
    reread(&world, "\"hammer\"", "\"bin2/hammer\"");
    world.environment[0] = "PATH=/nowhere";
    after = compute(&world, TEST);
    assert_string_not_equal(before.key, after.key); /* another name, the same file */
    world_done(&world);
}

/* ---- the demand ---- */

static void demand_follows_what_counts(void **state)
{
    (void)state;
    struct world world;
    char digests[6][DIGEST_HEX_SIZE];
    const bool some[] = {true, true, true, false}, fewer[] = {true, true, false, false};
    world_make(&world);
    const bool *demanded[] = {some, fewer, some, some, some, some};
    for (size_t i = 0; i < 6; i++) {
        if (i == 2)
            world.candidate.tree[0] = 'f';
        if (i == 3)
            world.environment[1] = "SEED=9";
        if (i == 4)
            run(".", "printf Hammer > bin2/hammer");
        if (i == 5)
            reread(&world, "make check", "make -k check"); /* of a producer that is not demanded */
        assert_int_equal(demand_digest(&world.config, demanded[i], &world.candidate, &world.surroundings,
                             digests[i], NULL),
            RESULT_OK);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(digests[i], digests[j]);
    }
    world_done(&world);
}

/* ---- the environment ---- */

static void passes_the_base_and_what_is_declared(void **state)
{
    (void)state;
    const struct producer producer = {
        .env = {.items = (char *[]){(char[]){"SEED"}, (char[]){"CI"}}, .count = 2}};
    static const char *const CALLER[] = {"PATH=/bin", "HOME=/h", "USER=u", "LOGNAME=u", "SHELL=/bin/sh",
        "LANG=C", "LC_ALL=C", "LC_=x", "TZ=UTC", "TMPDIR=/t", "XDG_RUNTIME_DIR=/r", "SEED=1", "SEED=2",
        "SEEDS=3", "CI=0", "TERM=vt100", "SSH_AUTH_SOCK=/s", "TENURE_TOKEN=x", "TENURE_ATTEMPT=old",
        "NOTIFY_SOCKET=/n", "WATCHDOG_USEC=1", "LISTEN_FDS=3", "PGPASSWORD=p", "GIT_DIR=/g", "LD_PRELOAD=/l",
        "PATHS=x", "junk", NULL};
    static const char *const MARKS[] = {"TENURE_ATTEMPT=a", "TENURE_STORE=s", "TENURE_FENCE=4", NULL};
    static const char *const EXPECTED[] = {"PATH=/bin", "HOME=/h", "USER=u", "LOGNAME=u", "SHELL=/bin/sh",
        "LANG=C", "LC_ALL=C", "TZ=UTC", "TMPDIR=/t", "XDG_RUNTIME_DIR=/r", "SEED=1", "CI=1",
        "TENURE_ATTEMPT=a", "TENURE_STORE=s", "TENURE_FENCE=4", NULL};
    char **made = environment_make(&producer, CALLER, MARKS);
    size_t i = 0;
    for (; made[i] && EXPECTED[i]; i++)
        assert_string_equal(made[i], EXPECTED[i]);
    assert_null(made[i]);
    assert_null(EXPECTED[i]);
    environment_free(made);
    made = environment_make(&producer, NULL, NULL);
    assert_string_equal(made[0], "CI=1");
    assert_null(made[1]);
    environment_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_as_ever),
        cmocka_unit_test(names_its_components),
        cmocka_unit_test(misses),
        cmocka_unit_test(hits),
        cmocka_unit_test(refuses_tools_that_are_not_there),
        cmocka_unit_test(finds_tools_in_the_work_tree),
        cmocka_unit_test(demand_follows_what_counts),
        cmocka_unit_test(passes_the_base_and_what_is_declared),
    };
    return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
