/* Options in every odd form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "supervisor/hold.h"

static int run_nothing(_unused_ struct cli *cli)
{
    return 0;
}

#define AT(field) offsetof(struct options, field)

static const char *const POLICIES[] = {"freeze", "abort", NULL};

static const struct option DONE[] = {
    {"wait", 0, OPTION_WAIT, AT(wait_ms), "DUR", "wait", NULL, 0, 3600000},
    {"rerun", 0, OPTION_FLAG, AT(rerun), NULL, "rerun", NULL, 0, 0},
    {"jobs", 'j', OPTION_INTEGER, AT(jobs), "N", "jobs", NULL, 1, 1024},
    {"dry-run", 'n', OPTION_FLAG, AT(dry_run), NULL, "dry", NULL, 0, 0},
};
static const struct option LOG[] = {
    {"number", 'n', OPTION_INTEGER, AT(count), "N", "number", NULL, 0, 1000},
};
static const struct option RUN[] = {
    {"subject", 0, OPTION_LIST, AT(subjects), "NAME", "subject", NULL, 0, 0},
    {"ttl", 0, OPTION_DURATION, AT(ttl_ms), "DUR", "ttl", NULL, 2000, 3600000},
    {"on-lapse", 0, OPTION_CHOICE, AT(on_lapse), "WHAT", "lapse", POLICIES, 0, 0},
};
static const struct command DONE_COMMAND = {.name = "done",
    .synopsis = "done [NAME]...",
    .options = DONE,
    .option_count = ARRAY_SIZE(DONE),
    .words_max = SIZE_MAX,
    .run = run_nothing};
static const struct command RUN_COMMAND = {.name = "run",
    .synopsis = "run -- CMD",
    .options = RUN,
    .option_count = ARRAY_SIZE(RUN),
    .takes_command = true,
    .run = run_nothing};
static const struct command STATUS_COMMAND = {.name = "status", .synopsis = "status", .run = run_nothing};
static const struct command LOG_COMMAND = {
    .name = "log", .synopsis = "log", .options = LOG, .option_count = ARRAY_SIZE(LOG), .run = run_nothing};
static const struct command *const TABLE[] = {
    &DONE_COMMAND, &RUN_COMMAND, &STATUS_COMMAND, &LOG_COMMAND, NULL};

/* What one parse gave. */
struct parsed {
    enum result result;
    struct options options;
    const struct command *command;
    struct error err;
};

#define PARSE(...)                                                                                           \
    __extension__({                                                                                          \
        const char *const argv_[] = {"tenure", __VA_ARGS__};                                                 \
        parse((int)ARRAY_SIZE(argv_), argv_);                                                                \
    })

static struct parsed parse(int argc, const char *const *argv)
{
    struct parsed parsed = {0};
    options_init(&parsed.options);
    parsed.result = options_parse(TABLE, argc, argv, &parsed.options, &parsed.command, &parsed.err);
    return parsed;
}

static void parsed_done(struct parsed *parsed)
{
    options_done(&parsed->options);
    error_done(&parsed->err);
}

static void options_stand_before_and_after_the_command(_unused_ void **state)
{
    _cleanup_(parsed_done) struct parsed before =
        PARSE("-C", "/tmp", "--rerun", "--jobs", "3", "--json", "done");
    assert_int_equal(before.result, RESULT_OK);
    assert_ptr_equal(before.command, &DONE_COMMAND);
    assert_string_equal(before.options.directory, "/tmp");
    assert_true(before.options.rerun && before.options.json);
    assert_int_equal(before.options.jobs, 3);

    _cleanup_(parsed_done) struct parsed after =
        PARSE("done", "build", "--store=sqlite:/x", "test", "-j4", "-q");
    assert_int_equal(after.result, RESULT_OK);
    assert_string_equal(after.options.store_url, "sqlite:/x");
    assert_int_equal(after.options.words.count, 2);
    assert_string_equal(after.options.words.items[1], "test");
    assert_null(after.options.words.items[2]);
    assert_int_equal(after.options.jobs, 4);
    assert_true(after.options.quiet);
}

static void a_value_that_looks_like_a_command_is_a_value(_unused_ void **state)
{
    _cleanup_(parsed_done) struct parsed parsed = PARSE("-C", "run", "done");
    assert_int_equal(parsed.result, RESULT_OK);
    assert_ptr_equal(parsed.command, &DONE_COMMAND);
    assert_string_equal(parsed.options.directory, "run");
}

static void one_letter_is_a_flag_here_and_takes_a_value_there(_unused_ void **state)
{
    _cleanup_(parsed_done) struct parsed flag_first = PARSE("-n", "done", "build"),
                                         flag_last = PARSE("done", "build", "-n"),
                                         value_first = PARSE("-n", "5", "log"),
                                         value_last = PARSE("log", "-n", "5");
    assert_ptr_equal(flag_first.command, &DONE_COMMAND);
    assert_ptr_equal(flag_last.command, &DONE_COMMAND);
    assert_true(flag_first.options.dry_run && flag_last.options.dry_run);
    assert_int_equal(flag_first.options.words.count, 1);
    assert_ptr_equal(value_first.command, &LOG_COMMAND);
    assert_ptr_equal(value_last.command, &LOG_COMMAND);
    assert_int_equal(value_first.options.count, 5);
    assert_int_equal(value_last.options.count, 5);
    assert_false(value_first.options.dry_run || value_last.options.dry_run);
}

static void an_optional_value_follows_an_equals_sign_only(_unused_ void **state)
{
    _cleanup_(parsed_done) struct parsed alone = PARSE("done", "--wait", "5s");
    assert_int_equal(alone.result, RESULT_OK);
    assert_int_equal(alone.options.wait_ms, WAIT_DEFAULT_MS);
    assert_string_equal(alone.options.words.items[0], "5s");
    _cleanup_(parsed_done) struct parsed with = PARSE("--wait=5s", "done");
    assert_int_equal(with.options.wait_ms, 5000);
    _cleanup_(parsed_done) struct parsed none = PARSE("done");
    assert_int_equal(none.options.wait_ms, WAIT_NONE);
    _cleanup_(parsed_done) struct parsed empty = PARSE("done", "--wait=");
    assert_int_equal(empty.result, RESULT_INVALID);
}

static void what_follows_two_dashes_is_not_parsed(_unused_ void **state)
{
    _cleanup_(parsed_done) struct parsed parsed =
        PARSE("run", "--subject", "a", "--subject=b", "--", "make", "--json", "--", "-C");
    assert_int_equal(parsed.result, RESULT_OK);
    assert_false(parsed.options.json);
    assert_int_equal(parsed.options.subjects.count, 2);
    assert_string_equal(parsed.options.subjects.items[1], "b");
    assert_int_equal(parsed.options.child.count, 4);
    assert_string_equal(parsed.options.child.items[2], "--");
    assert_null(parsed.options.child.items[4]);
    assert_null(parsed.options.directory);

    _cleanup_(parsed_done) struct parsed words = PARSE("done", "--", "--rerun", "-x");
    assert_int_equal(words.result, RESULT_OK);
    assert_false(words.options.rerun);
    assert_int_equal(words.options.words.count, 2);

    _cleanup_(parsed_done) struct parsed first = PARSE("--", "done", "--rerun");
    assert_int_equal(first.result, RESULT_OK);
    assert_ptr_equal(first.command, &DONE_COMMAND);
    assert_string_equal(first.options.words.items[0], "--rerun");
}

/* One refusal: what is typed, and what message and remedy must say. */
struct refusal {
    const char *argv[6];
    const char *message, *remedy;
};

static const struct refusal REFUSALS[] = {
    {{"done", "--rerum"}, "tenure done: unknown option --rerum", "--rerun"},
    {{"done", "--subject=x"}, "unknown option --subject", "belongs to `tenure run`"},
    {{"--rerun", "status"}, "tenure status: unknown option --rerun", "belongs to `tenure done`"},
    {{"--jsn", "done"}, "unknown option --jsn", "--json"},
    {{"done", "-x"}, "unknown option -x", "--help"},
    {{"done", "--rerun=yes"}, "--rerun takes no value", "alone"},
    {{"done", "--jobs"}, "--jobs needs a value", "--jobs N"},
    {{"done", "--jobs="}, "--jobs: '' is not a whole number", NULL},
    {{"done", "--jobs=0"}, "from 1 to 1024", NULL},
    {{"done", "--jobs=99999999999999999999"}, "from 1 to 1024", NULL},
    {{"done", "--jobs", "2x"}, "'2x'", NULL},
    {{"run", "--ttl=90"}, "--ttl: \"90\" is not a duration", NULL},
    {{"run", "--ttl", "-1"}, "--ttl", NULL},
    {{"run", "--ttl="}, "--ttl", NULL},
    {{"run", "--ttl", "1h30m"}, "not a duration", NULL},
    {{"run", "--ttl", "99999999999s"}, "out of range", NULL},
    {{"run", "--on-lapse=freez"}, "none of freeze or abort", "freeze"},
    {{"run", "make"}, "one word too many", "put -- before"},
    {{"status", "x"}, "'x' is one word too many", "tenure status"},
    {{"status", "--store="}, "--store: the value is empty", NULL},
    {{"--color=blue", "status"}, "none of auto, always or never", NULL},
    {{"stauts"}, "unknown command 'stauts'", "tenure status"},
    {{"\x1b[2Jdone"}, "\\x1b[2Jdone", NULL},
};

static void what_is_wrong_is_refused_in_one_sentence(_unused_ void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(REFUSALS); i++) {
        const char *argv[8] = {"tenure"};
        int argc = 1;
        for (; argc <= 6 && REFUSALS[i].argv[argc - 1]; argc++)
            argv[argc] = REFUSALS[i].argv[argc - 1];
        _cleanup_(parsed_done) struct parsed parsed = parse(argc, argv);
        assert_int_equal(parsed.result, RESULT_INVALID);
        if (!strstr(parsed.err.message, REFUSALS[i].message))
            fail_msg("%s: %s", REFUSALS[i].message, parsed.err.message);
        if (REFUSALS[i].remedy && (!parsed.err.remedy || !strstr(parsed.err.remedy, REFUSALS[i].remedy)))
            fail_msg("%s: %s", REFUSALS[i].remedy, parsed.err.remedy ? parsed.err.remedy : "(no remedy)");
    }
}

/* The refusal itself must come as a document. */
static void json_and_color_are_known_to_a_refusal(_unused_ void **state)
{
    _cleanup_(parsed_done) struct parsed before = PARSE("--nonsense", "done", "--color", "never", "--json");
    assert_int_equal(before.result, RESULT_INVALID);
    assert_true(before.options.json);
    assert_int_equal(before.options.color, COLOR_NEVER);
    assert_ptr_equal(before.command, &DONE_COMMAND);
    _cleanup_(parsed_done) struct parsed unknown = PARSE("--json", "nonsense");
    assert_true(unknown.options.json);
    assert_null(unknown.command);
}

static void help_needs_no_right_words(_unused_ void **state)
{
    _cleanup_(parsed_done) struct parsed parsed = PARSE("status", "a", "b", "-h");
    assert_int_equal(parsed.result, RESULT_OK);
    assert_true(parsed.options.help);
    _cleanup_(parsed_done) struct parsed none = PARSE("--version");
    assert_int_equal(none.result, RESULT_OK);
    assert_null(none.command);
    assert_true(none.options.version);
}

static void a_dash_alone_is_a_word_and_the_last_of_two_wins(_unused_ void **state)
{
    _cleanup_(parsed_done) struct parsed parsed = PARSE("done", "-", "-j1", "--jobs=9");
    assert_int_equal(parsed.result, RESULT_OK);
    assert_string_equal(parsed.options.words.items[0], "-");
    assert_int_equal(parsed.options.jobs, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_stand_before_and_after_the_command),
        cmocka_unit_test(a_value_that_looks_like_a_command_is_a_value),
        cmocka_unit_test(one_letter_is_a_flag_here_and_takes_a_value_there),
        cmocka_unit_test(an_optional_value_follows_an_equals_sign_only),
        cmocka_unit_test(what_follows_two_dashes_is_not_parsed),
        cmocka_unit_test(what_is_wrong_is_refused_in_one_sentence),
        cmocka_unit_test(json_and_color_are_known_to_a_refusal),
        cmocka_unit_test(help_needs_no_right_words),
        cmocka_unit_test(a_dash_alone_is_a_word_and_the_last_of_two_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
