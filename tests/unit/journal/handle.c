/* Handles: golden vectors, every way to type one, and every way to mistype it. */
#include "fixture.h"

#include "journal/handle.h"

static const char SYMBOLS[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U";

/* Computed independently of the code. */
static const char *const GOLDEN[] = {"T-0000-0000", "T-0000-0011", "T-7K3M-QX9C", "T-ZZZZ-ZZZJ",
    "T-1234-567B", "T-ABCD-EFGN", "T-HJKM-NPQ0", "T-RSTV-WXYG", "T-7777-777G"};

static void assert_refused(const char *typed)
{
    struct error err = {0};
    char handle[HANDLE_SIZE] = "untouched";
    if (handle_parse(typed, handle, &err) != RESULT_INVALID)
        fail_msg("'%s' was taken for a handle", typed);
    assert_string_equal(handle, "untouched");
    assert_non_null(err.message);
    assert_non_null(err.remedy);
    error_done(&err);
}

static void assert_parsed(const char *typed, const char *expected)
{
    struct error err = {0};
    char handle[HANDLE_SIZE];
    if (handle_parse(typed, handle, &err) != RESULT_OK)
        fail_msg("%s", err.message);
    assert_string_equal(handle, expected);
}

static void golden(void **state _unused_)
{
    for (size_t i = 0; i < ARRAY_SIZE(GOLDEN); i++)
        assert_parsed(GOLDEN[i], GOLDEN[i]);
}

static void typed_in_many_ways(void **state _unused_)
{
    assert_parsed("t-7k3m-qx9c", "T-7K3M-QX9C");
    assert_parsed("T7K3MQX9C", "T-7K3M-QX9C");
    assert_parsed("--t7k-3m-qx9C--", "T-7K3M-QX9C");
    assert_parsed("t-oooo-oooo", "T-0000-0000");
    assert_parsed("t-oooo-ooIl", "T-0000-0011");
}

static void refused(void **state _unused_)
{
    static const char *const WRONG[] = {"", "T", "T-", "T-7K3M", "7K3MQX9", "X-0000-0000", "T-0000-00000",
        "T-0000-000", "T-0000-000\x80", "T-0U00-0000", "T-0000-000 ", "T 0000 0000", "T-0000-000\n"};
    for (size_t i = 0; i < ARRAY_SIZE(WRONG); i++)
        assert_refused(WRONG[i]);
}

static bool is_symbol_place(size_t place)
{
    return place >= 2 && place != 6;
}

static void every_single_typo(void **state _unused_)
{
    for (size_t i = 0; i < ARRAY_SIZE(GOLDEN); i++)
        for (size_t place = 0; place < HANDLE_SIZE - 1; place++)
            for (const char *symbol = SYMBOLS; *symbol != '\0' && is_symbol_place(place); symbol++) {
                char typed[HANDLE_SIZE];
                memcpy(typed, GOLDEN[i], sizeof(typed));
                if (typed[place] == *symbol)
                    continue;
                typed[place] = *symbol;
                assert_refused(typed);
            }
}

static void every_swap_of_neighbours(void **state _unused_)
{
    static const size_t PLACES[] = {2, 3, 4, 5, 7, 8, 9, 10};
    for (size_t i = 0; i < ARRAY_SIZE(GOLDEN); i++)
        for (size_t at = 0; at + 2 < ARRAY_SIZE(PLACES); at++) {
            char typed[HANDLE_SIZE];
            memcpy(typed, GOLDEN[i], sizeof(typed));
            typed[PLACES[at]] = GOLDEN[i][PLACES[at + 1]];
            typed[PLACES[at + 1]] = GOLDEN[i][PLACES[at]];
            if (strcmp(typed, GOLDEN[i]) != 0)
                assert_refused(typed);
        }
}

static int compare(const void *one, const void *other)
{
    return strcmp(one, other);
}

static void made(void **state _unused_)
{
    static char handles[1000][HANDLE_SIZE];
    for (size_t i = 0; i < ARRAY_SIZE(handles); i++) {
        handle_make(handles[i]);
        assert_parsed(handles[i], handles[i]);
        /* Nothing that a shell reads in its own way. */
        assert_null(strpbrk(handles[i], "*~$=U"));
    }
    qsort(handles, ARRAY_SIZE(handles), sizeof(handles[0]), compare);
    for (size_t i = 1; i < ARRAY_SIZE(handles); i++)
        assert_string_not_equal(handles[i - 1], handles[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden),
        cmocka_unit_test(typed_in_many_ways),
        cmocka_unit_test(refused),
        cmocka_unit_test(every_single_typo),
        cmocka_unit_test(every_swap_of_neighbours),
        cmocka_unit_test(made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
