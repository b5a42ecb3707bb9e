/* tenure.json: what is read, and where and how everything else is refused. */
#include "tests/unit/completion/workshop.h"

#include "completion/demand/config.h"

static enum result parse(const char *text, struct config *ret, struct error *err)
{
    return config_parse(text, strlen(text), ret, err);
}

/* ---- what is read ---- */

static const char WHOLE[] =
    "{\n"
    "  \"$schema\": \"https://example.org/schema.json\",\n"
    "  \"repository\": \"acme/widget\",\n"
    "  \"store\": \"postgresql:///tenure\",\n"
    "  \"lease\": { \"ttl\": \"30s\", \"heartbeat\": \"5s\", \"on_lapse\": \"abort\", \"lapse_patience\": "
    "\"2m\" },\n"
    "  \"procedures\": { \"deps\": { \"run\": \"make deps\", \"when\": \"before\" },\n"
    "                  \"tidy\": { \"run\": [\"make\", \"tidy\"], \"when\": \"after\", \"timeout\": \"1m\" } "
    "},\n"
    "  \"producers\": {\n"
    "    \"test\": { \"run\": [\"./widget\", \"--selftest\"], \"needs\": [\"build\"], \"env\": "
    "[\"WIDGET_SEED\"],\n"
    "              \"timeout\": \"10m\", \"quiet\": \"2m\", \"artifacts\": [\"report.xml\"] },\n"
    "    \"build\": { \"run\": \"make -j2\", \"inputs\": [\"./src//**\", \"Makefile\", \"!src/doc/\"],\n"
    "               \"outputs\": [\"./out//widget/\"], \"tools\": [\"cc\", \"make\"] }\n"
    "  }\n"
    "}\n";

static void reads_everything(void **state)
{
    (void)state;
    struct config config;
    _cleanup_(error_done) struct error err = {0};
    if (parse(WHOLE, &config, &err) != RESULT_OK)
        fail_msg("%s", err.message);
    assert_string_equal(config.repository, "acme/widget");
    assert_string_equal(config.store_url, "postgresql:///tenure");
    assert_int_equal(config.terms.ttl_ms, 30000);
    assert_int_equal(config.terms.heartbeat_ms, 5000);
    assert_int_equal(config.on_lapse, LAPSE_ABORT);
    assert_int_equal(config.lapse_patience_ms, 120000);
    assert_int_equal(config.procedure_count, 2);
    assert_int_equal(config.procedures[0].when, PROCEDURE_BEFORE);
    assert_true(config.procedures[0].run.shell);
    assert_int_equal(config.procedures[1].when, PROCEDURE_AFTER);
    assert_int_equal(config.procedures[1].timeout_ms, 60000);
    assert_int_equal(config.procedures[1].run.words.count, 2);
    assert_int_equal(config.producer_count, 2);
    const struct producer *test = &config.producers[0], *build = &config.producers[1];
    assert_string_equal(test->name, "test");
    assert_false(test->run.shell);
    assert_string_equal(test->run.words.items[1], "--selftest");
    assert_int_equal(test->need_indices[0], 1);
    assert_int_equal(test->timeout_ms, 600000);
    assert_int_equal(test->quiet_ms, 120000);
    assert_int_equal(test->line, 9);
    assert_string_equal(test->env.items[0], "WIDGET_SEED");
    assert_string_equal(test->artifacts.items[0], "report.xml");
    assert_string_equal(build->inputs.items[0], "src/**");
    assert_string_equal(build->inputs.items[2], "!src/doc/");
    assert_int_equal(build->input_places[1].line, 11);
    assert_int_equal(build->input_places[1].column, 59);
    assert_string_equal(build->outputs.items[0], "out/widget");
    assert_string_equal(build->tools.items[1], "make");
    assert_int_equal(config.order[0], 1);
    assert_int_equal(config.order[1], 0);
    char digest[DIGEST_HEX_SIZE];
    digest_hex(WHOLE, strlen(WHOLE), digest);
    assert_string_equal(config.digest, digest);
    assert_int_equal(config_producer(&config, "build"), 1);
    assert_true(config_producer(&config, "biuld") == SIZE_MAX);
    config_done(&config);
}

static void fills_in_defaults(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(parse("{\"producers\":{\"a\":{\"run\":\"true\"}}}", &config, NULL), RESULT_OK);
    assert_null(config.repository);
    assert_null(config.store_url);
    assert_int_equal(config.terms.ttl_ms, 60000);
    assert_int_equal(config.terms.heartbeat_ms, 20000);
    assert_int_equal(config.on_lapse, LAPSE_FREEZE);
    assert_int_equal(config.lapse_patience_ms, 900000);
    assert_int_equal(config.producers[0].timeout_ms, 0);
    assert_int_equal(config.producers[0].inputs.count, 0);
    config_done(&config);
}

/* ---- what is refused ---- */

struct refusal {
    const char *text, *where, *what, *remedy;
};

#define P(body) "{\"producers\":{" body "}}"
#define A(body) P("\"a\":{\"run\":\"true\"," body "}")
#define N99                                                                                                  \
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"

static const struct refusal REFUSALS[] = {
    /* not JSON */
    {"", ":1:1:", NULL, NULL},
    {"{\n  \"producers\": {},\n}", ":2:18:", "trailing comma", NULL},
    {"{ // comment\n}", ":1:3:", NULL, NULL},
    {"\xef\xbb\xbf{}", ":1:1:", NULL, NULL},
    {"{\"producers\":{}}x", ":1:17:", NULL, NULL},
    {"{\n\r\n\"producers\":{\"a\":{\"run\":\"true\"}}}", ":2:1:", "carriage return", "LF"},
    {"{\"producers\":\r\n{}}", ":1:14:", "carriage return", "LF"},
    {"[]", ":1:1:", "object", NULL},
    /* twins */
    {P("\"a\":{\"run\":\"x\"},\n\"a\":{\"run\":\"y\"}"), ":2:1:", "\"a\"", NULL},
    {P("\"Build\":{\"run\":\"x\"},\n\"build\":{\"run\":\"y\"}"), ":2:1:", "upper and lower case",
        "another name"},
    {"{\"procedures\":{\"x\":{\"run\":\"t\"},\"X\":{\"run\":\"t\"}},\"producers\":{\"a\":{\"run\":\"t\"}}}",
        ":1:32:", "upper and lower case", NULL},
    /* unknown keys */
    {A("\"comand\":\"x\""), ":1:33:", "\"comand\" is not a known key", NULL},
    {A("\"input\":[]"), ":1:33:", "\"input\"", "\"inputs\""},
    {"{\"producer\":{}}", ":1:2:", "\"producer\"", "\"producers\""},
    {"{\"lease\":{\"tll\":\"3s\"},\"producers\":{\"a\":{\"run\":\"t\"}}}", ":1:11:", "\"tll\"", "\"ttl\""},
    /* missing and empty */
    {"{}", ":1:1:", "\"producers\" is missing", "tenure init"},
    {P(""), ":1:14:", "at least one producer", NULL},
    {P("\"a\":{}"), ":1:19:", "\"run\" is missing", NULL},
    {P("\"a\":{\"run\":\"\"}"), ":1:26:", "empty", "make test"},
    {P("\"a\":{\"run\":\" \\t\"}"), ":1:26:", "empty", NULL},
    {P("\"a\":{\"run\":[]}"), ":1:26:", "empty", NULL},
    {P("\"a\":{\"run\":[\"\",\"x\"]}"), ":1:26:", "empty", NULL},
    {P("\"a\":{\"run\":[\"x\",3]}"), ":1:31:", "must be a string", NULL},
    {P("\"a\":{\"run\":7}"), ":1:26:", "string or a list", NULL},
    {P("\"a\":{\"run\":\"x\\u0000y\"}"), ":1:26:", "NUL", NULL},
    {"{\"repository\":\"\",\"producers\":{\"a\":{\"run\":\"t\"}}}", ":1:15:", "empty", NULL},
    {"{\"store\":\"\",\"producers\":{\"a\":{\"run\":\"t\"}}}", ":1:10:", "empty", NULL},
    /* names */
    {P("\"\":{\"run\":\"t\"}"), ":1:15:", "must not be empty", NULL},
    {P("\"a/b\":{\"run\":\"t\"}"), ":1:15:", "\"/\"", NULL},
    {P("\"a\\nb\":{\"run\":\"t\"}"), ":1:15:", "control", NULL},
    {P("\"a\\u009bb\":{\"run\":\"t\"}"), ":1:15:", "control", NULL},
    {P("\"..\":{\"run\":\"t\"}"), ":1:15:", "\"..\"", NULL},
    {P("\"" N99 "nn\":{\"run\":\"t\"}"), ":1:15:", "100 bytes", NULL},
    /* needs */
    {A("\"needs\":[\"a\"]"), ":1:42:", "a -> a", NULL},
    {A("\"needs\":[\"b\"]"), ":1:42:", "no producer \"b\"", NULL},
    {P("\"build\":{\"run\":\"t\"},\n\"x\":{\"run\":\"t\",\"needs\":[\"biuld\"]}"), ":2:25:", "\"biuld\"",
        "\"build\""},
    {P("\"a\":{\"run\":\"t\",\"needs\":[\"b\"]},\n\"b\":{\"run\":\"t\",\"needs\":[\"c\"]},\n"
       "\"c\":{\"run\":\"t\",\"needs\":[\"a\"]}"),
        ":3:25:", "a -> b -> c -> a", NULL},
    {P("\"a\":{\"run\":\"t\"},\"x\":{\"run\":\"t\",\"needs\":[\"a\",\"a\"]}"), ":1:59:", "named twice", NULL},
    {A("\"needs\":[\"\"]"), ":1:42:", "empty", NULL},
    /* durations */
    {A("\"timeout\":\"0s\""), ":1:43:", "range", NULL},
    {A("\"quiet\":\"0ms\""), ":1:41:", "range", NULL},
    {A("\"timeout\":\"10 minutes\""), ":1:43:", "duration", NULL},
    {A("\"timeout\":10"), ":1:43:", "duration", NULL},
    {A("\"timeout\":\"-1s\""), ":1:43:", "duration", NULL},
    {"{\"lease\":{\"ttl\":\"1s\"},\"producers\":{\"a\":{\"run\":\"t\"}}}", ":1:17:", "range", NULL},
    {"{\"lease\":{\"ttl\":\"2h\"},\"producers\":{\"a\":{\"run\":\"t\"}}}", ":1:17:", "range", NULL},
    {"{\"lease\":{\"ttl\":\"30s\",\"heartbeat\":\"11s\"},\"producers\":{\"a\":{\"run\":\"t\"}}}",
        ":1:35:", "third", NULL},
    {"{\"lease\":{\"on_lapse\":\"thaw\"},\"producers\":{\"a\":{\"run\":\"t\"}}}",
        ":1:22:", "\"freeze\" or \"abort\"", NULL},
    {"{\"procedures\":{\"p\":{\"run\":\"t\",\"when\":\"now\"}},\"producers\":{\"a\":{\"run\":\"t\"}}}",
        ":1:38:", "\"before\" or \"after\"", NULL},
    /* outputs */
    {A("\"outputs\":[\"/etc/x\"]"), ":1:44:", "absolute", NULL},
    {A("\"outputs\":[\"x/../../y\"]"), ":1:44:", "leads out", NULL},
    {A("\"artifacts\":[\"..\"]"), ":1:46:", "leads out", NULL},
    {A("\"outputs\":[\".\"]"), ":1:44:", "no file", NULL},
    {A("\"outputs\":[\"\"]"), ":1:44:", "no file", NULL},
    {A("\"outputs\":[\".git/x\"]"), ":1:44:", "git's own", NULL},
    {A("\"outputs\":[\"x\",\"./x/\"]"), ":1:48:", "twice", NULL},
    {P("\"a\":{\"run\":\"t\",\"outputs\":[\"x\"]},\n\"b\":{\"run\":\"t\",\"outputs\":[\"./x\"]}"),
        ":2:27:", "an output of both \"a\" and \"b\"", NULL},
    {P("\"a\":{\"run\":\"t\",\"outputs\":[\"d/x\"]},\n\"b\":{\"run\":\"t\",\"artifacts\":[\"e\",\"d\"]}"),
        ":2:33:", "both \"a\" and \"b\"", NULL},
    {P("\"a\":{\"run\":\"t\",\"outputs\":[\"d\",\"d/y\",\"d-x\"]},\n\"b\":{\"run\":\"t\",\"outputs\":[\"d/"
       "z\"]}"),
        ":2:27:", "both \"a\" and \"b\"", NULL},
    /* inputs, variables, tools */
    {A("\"inputs\":[\"/src/**\"]"), ":1:43:", "absolute", NULL},
    {A("\"inputs\":[\"../x\"]"), ":1:43:", "leads out", NULL},
    {A("\"inputs\":[\"\"]"), ":1:43:", "empty", NULL},
    {A("\"inputs\":[\":(icase)x\"]"), ":1:43:", "magic", NULL},
    {A("\"inputs\":\"src\""), ":1:42:", "array", NULL},
    {A("\"env\":[\"A=B\"]"), ":1:40:", "environment variable", NULL},
    {A("\"env\":[\"TENURE_FENCE\"]"), ":1:40:", "supervisor", NULL},
    {A("\"tools\":[\"\"]"), ":1:42:", "empty", NULL},
    /* not yet */
    {"{\"producers\":{\"a\":{\"run\":\"t\"}},\n\"extractors\":{}}",
        ":2:1:", "standards are not in this version", NULL},
    {"{\"producers\":{\"a\":{\"run\":\"t\"}},\n\"extractors\":{\"c\":{\"from\":\"a\",\"run\":\"x\","
     "\"artifact\":\"r\"}},\n"
     "\"standards\":{\"l\":{\"extractor\":\"c\",\"metric\":\"m\",\"direction\":\"up\",\"limit\":80,"
     "\"margin\":0.5}}}",
        ":3:1:", "standards are not in this version", NULL},
    {"{\"producers\":{\"a\":{\"run\":\"t\"}},\n\"extractors\":{\"c\":{\"from\":\"b\",\"run\":\"x\"}}}",
        ":2:27:", "no producer", NULL},
    {"{\"producers\":{\"a\":{\"run\":\"t\"}},\n\"standards\":{\"l\":{\"extractor\":\"c\",\"metric\":\"m\","
     "\"direction\":\"up\","
     "\"limit\":80}}}",
        ":2:31:", "no extractor", NULL},
    {"{\"producers\":{\"a\":{\"run\":\"t\"}},\n\"extractors\":{\"c\":{\"from\":\"a\",\"run\":\"x\"}},\n"
     "\"standards\":{\"l\":{\"extractor\":\"c\",\"metric\":\"m\",\"direction\":\"left\",\"limit\":80}}}",
        ":3:60:", "\"up\" or \"down\"", NULL},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(REFUSALS); i++) {
        const struct refusal *refusal = &REFUSALS[i];
        struct config config = {.producer_count = 77};
        _cleanup_(error_done) struct error err = {0};
        enum result r = parse(refusal->text, &config, &err);
        if (r != RESULT_INVALID || config.producer_count != 77)
            fail_msg("not refused: %s", refusal->text);
        _cleanup_(mem_free) char *beginning = mem_format("tenure.json%s", refusal->where);
        if (strncmp(err.message, beginning, strlen(beginning)) != 0)
            fail_msg("%s: \"%s\" does not begin with %s", refusal->text, err.message, beginning);
        if (refusal->what)
            assert_has(err.message, refusal->what);
        if (refusal->remedy)
            assert_has(err.remedy, refusal->remedy);
        assert_null(strchr(err.message, '\n'));
    }
}

static void allows_its_neighbours(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        P("\"" N99 "n\":{\"run\":\"t\"}"),
        P("\"a\":{\"run\":\"t\",\"outputs\":[\"d\",\"d/y\"],\"artifacts\":[\"d/z\",\"d\"]}"),
        P("\"a\":{\"run\":\"t\",\"outputs\":[\"d\"]},\"b\":{\"run\":\"t\",\"outputs\":[\"dd\",\"d-x\",\"d.x/"
          "d\"]}"),
        P("\"a\":{\"run\":[\"x\",\"\",\"\",\"x\",\"x\"]}"),
        P("\"a..b\":{\"run\":\"t\",\"outputs\":[\"..x\",\"x..\",\"...\"],\"inputs\":[\"!x\",\":!y\",\":^z\"]"
          "}"),
        "{\"lease\":{\"ttl\":\"30s\",\"heartbeat\":\"10s\"},\"producers\":{\"a\":{\"run\":\"t\"}}}",
        P("\"\xc3\xa4\":{\"run\":\"t\"},\"\xc3\x84\":{\"run\":\"t\"}"),
        "{\"lease\":{},\"procedures\":{},\"producers\":{\"a\":{\"run\":\"t\"}}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(TEXTS); i++) {
        struct config config;
        _cleanup_(error_done) struct error err = {0};
        if (parse(TEXTS[i], &config, &err) != RESULT_OK)
            fail_msg("%s: %s", TEXTS[i], err.message);
        config_done(&config);
    }
}

static void refuses_what_is_too_large(void **state)
{
    (void)state;
    size_t length = 10 * 1024 * 1024;
    _cleanup_(mem_free) char *text = mem_alloc(length + 1);
    for (size_t i = 0; i < length; i++)
        text[i] = i % 2 ? ']' : '[';
    struct config config;
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(config_parse(text, length, &config, &err), RESULT_INVALID);
    assert_has(err.message, "tenure.json:1:1: ");
    int fd = open(workshop.path, O_DIRECTORY | O_CLOEXEC);
    run(".", "head -c 10485760 /dev/zero | tr '\\0' ' ' > tenure.json");
    assert_int_equal(config_read(fd, &config, NULL, &err), RESULT_INVALID);
    assert_has(err.message, "tenure.json:1:1: ");
    close(fd);
}

/* ---- graphs ---- */

#define NODES_MAX 12

struct graph {
    size_t count;
    bool needs[NODES_MAX][NODES_MAX];
};

static uint64_t seed = 20010203;

static size_t dice(size_t sides)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (size_t)(seed >> 33) % sides;
}

static void graph_make(struct graph *graph)
{
    *graph = (struct graph){.count = 1 + dice(NODES_MAX)};
    size_t edges = dice(graph->count * 2 + 1);
    while (edges--)
        graph->needs[dice(graph->count)][dice(graph->count)] = true;
}

static char *graph_text(const struct graph *graph)
{
    struct text text = {0};
    text_add(&text, "{\"producers\":{");
    for (size_t i = 0; i < graph->count; i++) {
        text_addf(&text, "%s\n\"n%zu\":{\"run\":\"t\",\"needs\":[", i ? "," : "", i);
        const char *comma = "";
        for (size_t j = 0; j < graph->count; j++) {
            if (!graph->needs[i][j])
                continue;
            text_addf(&text, "%s\"n%zu\"", comma, j);
            comma = ",";
        }
        text_add(&text, "]}");
    }
    text_add(&text, "}}");
    return text_steal(&text);
}

static bool graph_has_cycle(const struct graph *graph)
{
    bool reaches[NODES_MAX][NODES_MAX];
    memcpy(reaches, graph->needs, sizeof(reaches));
    for (size_t k = 0; k < graph->count; k++)
        for (size_t i = 0; i < graph->count; i++)
            for (size_t j = 0; j < graph->count; j++)
                reaches[i][j] |= reaches[i][k] && reaches[k][j];
    for (size_t i = 0; i < graph->count; i++)
        if (reaches[i][i])
            return true;
    return false;
}

static void check_order(const struct graph *graph, const struct config *config)
{
    bool done[NODES_MAX] = {false};
    for (size_t i = 0; i < graph->count; i++) {
        size_t node = config->order[i];
        assert_false(done[node]);
        for (size_t j = 0; j < graph->count; j++)
            assert_true(!graph->needs[node][j] || done[j]);
        done[node] = true;
    }
}

/* "...: n1 -> n4 -> n1": every step is an edge, and the end is the beginning. */
static void check_cycle(const struct graph *graph, const char *message)
{
    const char *at = strrchr(message, ':');
    assert_non_null(at);
    size_t steps = 0;
    unsigned long first = strtoul(at + 3, (char **)(uintptr_t)&at, 10), node = first;
    while (strncmp(at, " -> n", 5) == 0) {
        unsigned long next = strtoul(at + 5, (char **)(uintptr_t)&at, 10);
        assert_true(node < graph->count && next < graph->count && graph->needs[node][next]);
        node = next;
        steps++;
    }
    assert_true(*at == '\0' && steps > 0 && node == first);
}

static void orders_random_graphs(void **state)
{
    (void)state;
    size_t cyclic = 0;
    for (size_t i = 0; i < 300; i++) {
        struct graph graph;
        struct config config;
        _cleanup_(error_done) struct error err = {0};
        graph_make(&graph);
        _cleanup_(mem_free) char *text = graph_text(&graph);
        enum result r = parse(text, &config, &err);
        assert_int_equal(r, graph_has_cycle(&graph) ? RESULT_INVALID : RESULT_OK);
        if (r == RESULT_OK) {
            check_order(&graph, &config);
            config_done(&config);
        } else {
            cyclic++;
            check_cycle(&graph, err.message);
        }
    }
    assert_true(cyclic > 30 && cyclic < 270);
}

/* A chain as long as the file may hold: neither deep nor slow. */
static void follows_a_long_chain(void **state)
{
    (void)state;
    _cleanup_(text_done) struct text text = {0};
    struct config config;
    const size_t count = 20000;
    text_add(&text, "{\"producers\":{");
    for (size_t i = 0; i < count; i++)
        text_addf(&text, "\"%zu\":{\"run\":\"t\",\"needs\":[\"%zu\"]},", i, i + 1);
    text_addf(&text, "\"%zu\":{\"run\":\"t\"}}}", count);
    assert_int_equal(config_parse(text.bytes, text.length, &config, NULL), RESULT_OK);
    assert_int_equal(config.order[0], count);
    assert_int_equal(config.order[count], 0);
    config_done(&config);
}

/* ---- what is demanded ---- */

static void demands_what_is_needed(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(
        parse(P("\"d\":{\"run\":\"t\",\"needs\":[\"b\",\"c\"]},\"b\":{\"run\":\"t\",\"needs\":[\"a\"]},"
                "\"c\":{\"run\":\"t\",\"needs\":[\"a\"]},\"a\":{\"run\":\"t\"},\"lint\":{\"run\":\"t\"}"),
            &config, NULL),
        RESULT_OK);
    bool *demanded = NULL;
    assert_int_equal(config_demand(&config, (const char *const[]){"c"}, 1, &demanded, NULL), RESULT_OK);
    assert_memory_equal(demanded, ((bool[]){false, false, true, true, false}), 5);
    free(demanded);
    assert_int_equal(config_demand(&config, NULL, 0, &demanded, NULL), RESULT_OK);
    assert_memory_equal(demanded, ((bool[]){true, true, true, true, true}), 5);
    free(demanded);
    _cleanup_(error_done) struct error err = {0};
    demanded = NULL;
    assert_int_equal(
        config_demand(&config, (const char *const[]){"a", "lnit"}, 2, &demanded, &err), RESULT_INVALID);
    assert_null(demanded);
    assert_has(err.message, "\"lnit\"");
    assert_has(err.remedy, "\"lint\"");
    config_done(&config);
}

/* ---- against a candidate ---- */

static void refuses_globs_that_match_nothing(void **state)
{
    (void)state;
    struct tree_entry entries[] = {{.path = "Makefile"}, {.path = "src/a.c"}};
    const struct candidate candidate = {.entries = entries, .entry_count = 2};
    struct config config;
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(parse(A("\"inputs\":[\"Makefile\",\n\"src\",\"!nothing\"]"), &config, NULL), RESULT_OK);
    assert_int_equal(config_check_inputs(&config, &candidate, &err), RESULT_OK);
    config_done(&config);
    assert_int_equal(parse(A("\"inputs\":[\"Makefile\",\n\"src/*.h\"]"), &config, NULL), RESULT_OK);
    assert_int_equal(config_check_inputs(&config, &candidate, &err), RESULT_INVALID);
    assert_has(err.message, "tenure.json:2:1: ");
    assert_has(err.message, "src/*.h");
    config_done(&config);
}

static void names_the_gitignore_line(void **state)
{
    (void)state;
    struct change changes[] = {
        {CHANGE_UNTRACKED, (char[]){"out/widget"}}, {CHANGE_UNTRACKED, (char[]){"a*b"}}};
    struct candidate candidate = {.changes = changes, .change_count = 2};
    struct config config;
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(
        parse(A("\"outputs\":[\"out\",\"other\"],\"artifacts\":[\"a*b\"]"), &config, NULL), RESULT_OK);
    assert_int_equal(config_check_clean(&config, &candidate, &err), RESULT_INVALID);
    assert_has(err.message, "out/widget");
    assert_has(err.remedy, "\"/out\", \"/a\\*b\"");
    assert_has(err.remedy, ".gitignore");
    _cleanup_(text_done) struct text left = {0};
    assert_true(config_left_behind(&config, &candidate, &left));
    assert_string_equal(left.bytes, "add \"/out\", \"/a\\*b\" to .gitignore");
    changes[0].kind = changes[1].kind = CHANGE_MODIFIED;
    assert_false(config_left_behind(&config, &candidate, &left));
    assert_int_equal(config_check_clean(&config, &candidate, &err), RESULT_INVALID);
    assert_has_not(err.remedy, ".gitignore");
    candidate.change_count = 0;
    assert_int_equal(config_check_clean(&config, &candidate, &err), RESULT_OK);
    config_done(&config);
}

/* What nobody declares is named by its directory; a lock file belongs into the commit. */
static void names_what_is_left_behind(void **state)
{
    (void)state;
    struct change changes[] = {{CHANGE_UNTRACKED, (char[]){"Cargo.lock"}},
        {CHANGE_UNTRACKED, (char[]){"src/x.o"}}, {CHANGE_UNTRACKED, (char[]){"target/a"}},
        {CHANGE_UNTRACKED, (char[]){"target/b/c"}}};
    struct tree_entry entries[] = {{.path = "Cargo.toml"}, {.path = "src/x.c"}};
    struct candidate candidate = {
        .changes = changes, .change_count = 4, .entries = entries, .entry_count = 2};
    struct config config;
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(text_done) struct text left = {0};
    assert_int_equal(parse(A("\"tools\":[]"), &config, NULL), RESULT_OK);
    assert_true(config_left_behind(&config, &candidate, &left));
    assert_string_equal(left.bytes, "commit Cargo.lock; add \"/src/x.o\", \"/target/\" to .gitignore");
    assert_int_equal(config_check_clean(&config, &candidate, &err), RESULT_INVALID);
    assert_has(err.remedy, "commit Cargo.lock; commit the rest or add \"/src/x.o\"");
    candidate.changes++;
    candidate.change_count--;
    assert_int_equal(config_check_clean(&config, &candidate, &err), RESULT_INVALID);
    assert_string_equal(err.remedy, "commit it or add \"/src/x.o\", \"/target/\" to .gitignore");
    config_done(&config);
}

/* ---- the file ---- */

static void reads_the_file(void **state)
{
    (void)state;
    struct config config = {0};
    _cleanup_(text_done) struct text bytes = {0};
    _cleanup_(error_done) struct error err = {0};
    run("file", "rm -f tenure.json");
    _cleanup_(mem_free) char *path = place("file");
    int fd = open(path, O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(config_read(fd, &config, NULL, &err), RESULT_ABSENT);
    assert_has(err.remedy, "tenure init");
    run("file", "printf '{\"producers\":{\"a\":{\"run\":\"true\"}}}' > tenure.json");
    assert_int_equal(config_read(fd, &config, &bytes, &err), RESULT_OK);
    assert_string_equal(bytes.bytes, "{\"producers\":{\"a\":{\"run\":\"true\"}}}");
    config_done(&config);
    run("file", "mv tenure.json x; ln -s x tenure.json");
    assert_int_not_equal(config_read(fd, &config, NULL, &err), RESULT_OK);
    run("file", "rm tenure.json; mkfifo tenure.json");
    assert_int_equal(config_read(fd, &config, NULL, &err), RESULT_INVALID);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_everything),
        cmocka_unit_test(fills_in_defaults),
        cmocka_unit_test(refuses),
        cmocka_unit_test(allows_its_neighbours),
        cmocka_unit_test(refuses_what_is_too_large),
        cmocka_unit_test(orders_random_graphs),
        cmocka_unit_test(follows_a_long_chain),
        cmocka_unit_test(demands_what_is_needed),
        cmocka_unit_test(refuses_globs_that_match_nothing),
        cmocka_unit_test(names_the_gitignore_line),
        cmocka_unit_test(names_what_is_left_behind),
        cmocka_unit_test(reads_the_file),
    };
    return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
