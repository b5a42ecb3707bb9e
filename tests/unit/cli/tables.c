/* The tables of all commands agree with each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "cli/help.h"

static void check_same_shape(const struct option *a, const struct option *b)
{
    bool same_name = strcmp(a->name, b->name) == 0;
    /* -n is a flag here (--dry-run) and takes a value there (log): what follows it decides. No other letter
     * does. */
    bool same_letter = a->letter && a->letter == b->letter && a->letter != 'n';
    if ((same_name || same_letter) && option_takes_value(a) != option_takes_value(b))
        fail_msg("--%s and --%s differ in taking a value", a->name, b->name);
}

static void check_option(const struct option *option)
{
    for (size_t i = 0; i < OPTIONS_EVERYWHERE_COUNT; i++)
        check_same_shape(option, &OPTIONS_EVERYWHERE[i]);
    for (const struct command *const *other = COMMANDS; *other; other++)
        for (size_t i = 0; i < (*other)->option_count; i++)
            check_same_shape(option, &(*other)->options[i]);
}

/* So that an option before the command can be skipped without knowing the command. */
static void an_option_has_one_shape_everywhere(_unused_ void **state)
{
    for (const struct command *const *command = COMMANDS; *command; command++)
        for (size_t i = 0; i < (*command)->option_count; i++)
            check_option(&(*command)->options[i]);
}

static void no_command_hides_an_option_of_everybody(_unused_ void **state)
{
    for (const struct command *const *command = COMMANDS; *command; command++)
        for (size_t i = 0; i < (*command)->option_count; i++)
            for (size_t n = 0; n < OPTIONS_EVERYWHERE_COUNT; n++) {
                const struct option *own = &(*command)->options[i], *common = &OPTIONS_EVERYWHERE[n];
                assert_string_not_equal(own->name, common->name);
                assert_true(!own->letter || own->letter != common->letter);
            }
}

static void check_width(const struct text *text)
{
    char line[256];
    for (const char *at = text->bytes; *at; at += strcspn(at, "\n") + 1) {
        size_t length = strcspn(at, "\n");
        assert_true(length < sizeof(line));
        memcpy(line, at, length);
        line[length] = '\0';
        if (text_columns(line) > 110)
            fail_msg("too wide: %s", line);
    }
}

static void the_help_names_everything_and_fits(_unused_ void **state)
{
    struct look look = {0};
    struct text all = {0};
    help_add(&look, &all);
    check_width(&all);
    for (const struct command *const *command = COMMANDS; *command; command++) {
        struct text one = {0};
        if (*command != &COMMAND_HELP)
            assert_non_null(strstr(all.bytes, (*command)->name));
        help_add_command(&look, *command, &one);
        check_width(&one);
        for (size_t i = 0; i < (*command)->option_count; i++)
            assert_non_null(strstr(one.bytes, (*command)->options[i].name));
        text_done(&one);
    }
    text_done(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_option_has_one_shape_everywhere),
        cmocka_unit_test(no_command_hides_an_option_of_everybody),
        cmocka_unit_test(the_help_names_everything_and_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
