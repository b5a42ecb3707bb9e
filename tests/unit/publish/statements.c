/* An SQL file as single statements: whatever a semicolon may stand in, and on which line it all is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "publish/statements.h"

struct expected {
    const char *sql;
    int64_t line;
};
struct sample {
    const char *text;
    struct expected statements[4];
};

static const struct sample SAMPLES[] = {
    {"SELECT 1", {{"SELECT 1", 1}}},
    {"SELECT 1;\n;;\n  SELECT 2 ;", {{"SELECT 1", 1}, {"SELECT 2 ", 3}}},
    {"\xef\xbb\xbfSELECT 1;", {{"SELECT 1", 1}}},
    {"-- a; b\n/* c; /* d; */ ; */ SELECT 1; -- e;", {{"SELECT 1", 2}}},
    {"SELECT 1 -- a; b\n + 2; SELECT 3", {{"SELECT 1 -- a; b\n + 2", 1}, {"SELECT 3", 2}}},
    {"SELECT 1 /* ; /* ; */ ; */ + 2", {{"SELECT 1 /* ; /* ; */ ; */ + 2", 1}}},
    {"SELECT 'a;''b;\nc'; SELECT 2", {{"SELECT 'a;''b;\nc'", 1}, {"SELECT 2", 2}}},
    {"SELECT '\\'; SELECT 2", {{"SELECT '\\'", 1}, {"SELECT 2", 1}}},
    {"SELECT E'\\';'; SELECT 2", {{"SELECT E'\\';'", 1}, {"SELECT 2", 1}}},
    {"SELECT e'a\\\\'; SELECT 2", {{"SELECT e'a\\\\'", 1}, {"SELECT 2", 1}}},
    {"SELECT date'\\'; SELECT 2", {{"SELECT date'\\'", 1}, {"SELECT 2", 1}}},
    {"SELECT 1e'\\'; SELECT 2", {{"SELECT 1e'\\'", 1}, {"SELECT 2", 1}}},
    {"SELECT \"a;\"\"b\"; SELECT 2", {{"SELECT \"a;\"\"b\"", 1}, {"SELECT 2", 1}}},
    {"SELECT $$a;'b$$; SELECT 2", {{"SELECT $$a;'b$$", 1}, {"SELECT 2", 1}}},
    {"DO $x$ a; $y$ b; $$ c; $x$; SELECT 2", {{"DO $x$ a; $y$ b; $$ c; $x$", 1}, {"SELECT 2", 1}}},
    {"SELECT $1; SELECT a$b$; SELECT $2", {{"SELECT $1", 1}, {"SELECT a$b$", 1}, {"SELECT $2", 1}}},
    {"CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2); SELECT 3",
        {{"CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2)", 1}, {"SELECT 3", 1}}},
    {"CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; "
     "END; "
     "SELECT 2",
        {{"CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 "
          "END; END",
             1},
            {"SELECT 2", 1}}},
    {"SELECT 'ä;ö';\nSELECT ü", {{"SELECT 'ä;ö'", 1}, {"SELECT ü", 2}}},
    {"PREPARE p AS SELECT 1; SELECT beginning FROM ends",
        {{"PREPARE p AS SELECT 1", 1}, {"SELECT beginning FROM ends", 1}}},
};

static void splits(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(SAMPLES); i++) {
        _cleanup_(statements_done) struct statements statements = {0};
        size_t count = 0;
        assert_int_equal(
            statements_split("f", SAMPLES[i].text, strlen(SAMPLES[i].text), &statements, NULL), RESULT_OK);
        for (; SAMPLES[i].statements[count].sql; count++) {
            assert_true(count < statements.count);
            assert_string_equal(statements.items[count].sql, SAMPLES[i].statements[count].sql);
            assert_int_equal(statements.items[count].line, SAMPLES[i].statements[count].line);
        }
        assert_int_equal(statements.count, count);
    }
}

static const struct {
    const char *text, *message;
} REFUSED[] = {
    {"", "f: there is no statement in it"},
    {" ;\n-- nothing\n/* at all */", "f: there is no statement in it"},
    {"SELECT 1;\nSELECT 'a\n", "f:2: a string is never closed"},
    {"SELECT E'a\\'", "f:1: a string is never closed"},
    {"SELECT \"a", "f:1: a quoted name is never closed"},
    {"\n\nDO $a$ $b$ $$", "f:3: a dollar quote is never closed"},
    {"SELECT 1 /* /* */", "f:1: a comment is never closed"},
    {"SELECT 1;\nSELECT '\xff'", "f:2: this is not UTF-8"},
    {"SELECT 1;\n commit", "f:2: COMMIT may not stand in a publication, which is one transaction"},
    {"/* x */ Begin;", "f:1: BEGIN may not stand in a publication, which is one transaction"},
    {"prepare -- it\n transaction 'x'",
        "f:1: PREPARE TRANSACTION may not stand in a publication, which is one transaction"},
    {"START TRANSACTION", "f:1: START may not stand in a publication, which is one transaction"},
    {"END;", "f:1: END may not stand in a publication, which is one transaction"},
    {"ABORT;", "f:1: ABORT may not stand in a publication, which is one transaction"},
    {"ROLLBACK TO s", "f:1: ROLLBACK may not stand in a publication, which is one transaction"},
    {"SAVEPOINT s", "f:1: SAVEPOINT may not stand in a publication, which is one transaction"},
    {"RELEASE s", "f:1: RELEASE may not stand in a publication, which is one transaction"},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(REFUSED); i++) {
        _cleanup_(error_done) struct error err = {0};
        struct statements statements = {0};
        assert_int_equal(statements_split("f", REFUSED[i].text, strlen(REFUSED[i].text), &statements, &err),
            RESULT_INVALID);
        assert_string_equal(err.message, REFUSED[i].message);
        assert_null(statements.items);
    }
}

static void refuses_nul(void **state)
{
    (void)state;
    static const char TEXT[] = "SELECT 1;\nSELECT '\0'";
    _cleanup_(error_done) struct error err = {0};
    struct statements statements = {0};
    assert_int_equal(statements_split("f", TEXT, sizeof TEXT - 1, &statements, &err), RESULT_INVALID);
    assert_string_equal(err.message, "f:2: a NUL byte cannot stand in SQL");
}

/* Cut anywhere it ends, with statements or with a reason, and reads nothing beyond. */
static void survives_cuts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(SAMPLES); i++) {
        size_t length = strlen(SAMPLES[i].text);
        for (size_t cut = 0; cut < length; cut++) {
            _cleanup_(mem_free) char *text = mem_copy(SAMPLES[i].text, cut);
            _cleanup_(statements_done) struct statements statements = {0};
            enum result r = statements_split("f", text, cut, &statements, NULL);
            assert_true(r == RESULT_INVALID || (r == RESULT_OK && statements.count > 0));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits),
        cmocka_unit_test(refuses),
        cmocka_unit_test(refuses_nul),
        cmocka_unit_test(survives_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
