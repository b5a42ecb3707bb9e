/* Globs, side by side with git's own. */
#include "tests/unit/completion/workshop.h"

#include "completion/demand/pathspec.h"
#include "completion/repository/candidate.h"

/* ---- what is meant ---- */

struct sample {
    const char *glob, *path;
    bool matches;
};

static const struct sample SAMPLES[] = {
    {"src", "src", true},
    {"src", "src/a/b.c", true},
    {"src", "srcs", false},
    {"src/", "src/a", true},
    {"src/", "src", false},
    {"*.c", "a.c", true},
    {"*.c", "d/a.c", false},
    {"**/*.c", "a.c", true},
    {"**/*.c", "d/e/a.c", true},
    {"src/**", "src/a", true},
    {"src/**", "src", false},
    {"src/**/x", "src/x", true},
    {"src/**/x", "src/a/b/x", true},
    {"src/**/x", "src/a/b/xx", false},
    {"s?c/a", "src/a", true},
    {"s?c", "s/c", false},
    {"s*", "src/a", false},
    {"[a-c]x", "bx", true},
    {"[!a-c]x", "bx", false},
    {"[^a-c]x", "dx", true},
    {"[[:digit:]]", "7", true},
    {"[[:nonsense:]]", "7", false},
    {"[]x]", "]", true},
    {"[a", "[a", true}, /* literally, as git does */
    {"a[/]b", "a/b", false},
    {"\\*", "*", true},
    {"\\*", "x", false},
    {"x\\", "x\\", true},
    {"**", "a/b/c", true},
    {"a/**/**/b", "a/b", true},
    {"*/*/*", "a/b/c", true},
    {"*/*", "a/b/c", false},
    {"", "a", true},
    {"[\xe0-\xff]", "\xe9", true},
    {"[[:alpha:]]", "\xe9", false},
};

static void matches_what_is_meant(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(SAMPLES); i++)
        if (pathspec_match(SAMPLES[i].glob, SAMPLES[i].path) != SAMPLES[i].matches)
            fail_msg("\"%s\" on \"%s\"", SAMPLES[i].glob, SAMPLES[i].path);
}

/* A glob that would make a naive matcher try for ever. */
static void is_never_slow(void **state)
{
    (void)state;
    char path[2001];
    memset(path, 'a', 2000);
    for (size_t i = 10; i < 2000; i += 10)
        path[i] = '/';
    path[2000] = '\0';
    assert_false(
        pathspec_match("**/*a*a*a*a*a*a*a*a/**/*a*a*a*a*a*a*a*a/**/*a*a*a*a*a*a*a*a/**/*a*a*a*b", path));
    assert_true(pathspec_match("**/*a*a*a*a*a*a/**/*a*a*a*a*a*a*a/**/*a*a*a*a*a*a*a*a", path));
}

/* ---- selections ---- */

static void check_selection(
    const struct candidate *candidate, const struct strings *globs, const char *expected)
{
    _cleanup_(mem_free) size_t *indices = NULL;
    _cleanup_(text_done) struct text text = {0};
    size_t count;
    text_add(&text, "");
    pathspec_select(candidate, globs, &indices, &count);
    for (size_t i = 0; i < count; i++)
        text_addf(&text, "%zu", indices[i]);
    assert_string_equal(text.bytes, expected);
}

#define GLOBS(...)                                                                                           \
    (struct strings)                                                                                         \
    {                                                                                                        \
        .items = (char *[]){__VA_ARGS__}, .count = sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)          \
    }

static void selects_and_excludes(void **state)
{
    (void)state;
    struct tree_entry entries[] = {
        {.path = "a.c"}, {.path = "doc/x"}, {.path = "src/a.c"}, {.path = "src/b.h"}};
    const struct candidate candidate = {.entries = entries, .entry_count = 4};
    char source[] = "src", no_header[] = "!**/*.h", no_doc[] = ":!doc", no_doc_too[] = ":^doc",
         all_c[] = "**/*.c";
    check_selection(&candidate, &(struct strings){0}, "0123");
    check_selection(&candidate, &GLOBS(source), "23");
    check_selection(&candidate, &GLOBS(source, no_header), "2");
    check_selection(&candidate, &GLOBS(no_header, source), "2");
    check_selection(&candidate, &GLOBS(no_doc), "023");
    check_selection(&candidate, &GLOBS(no_doc_too, no_header), "02");
    check_selection(&candidate, &GLOBS(all_c, source), "023");
}

/* ---- beside git ---- */

static const char *const PARTS[] = {
    "a", "b", "ab", "a.c", "b.c", "x-y", "[a]", "*", "A1", "\xc3\xa9", "a b", "!z", "\\q"};
static const char *const PIECES[] = {"*", "**", "**/", "/**", "/", "?", "a", "b", ".c", "[ab]", "[!a]",
    "[a-z]", "[^b-z]x", "[[:alnum:]]", "[[:upper:]]", "\\*", "\\a", "ab", "x-y", "a/b", "*/", "/*", "[", "]",
    "[]a]", "[a-", "[*]", "!z", "\\", "-", "*.c", "**/*.c", "[[:bad:]]", "[a\\]b]", "***", " "};

static uint64_t seed = 7;

static size_t dice(size_t sides)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (size_t)(seed >> 33) % sides;
}

/* Two in five paths are deep; a name is a file or a directory, whoever comes first. */
static void make_tree(int fd)
{
    for (size_t i = 0; i < 400; i++) {
        char path[256] = "";
        size_t depth = dice(4);
        for (size_t level = 0; level < depth; level++) {
            strcat(strcat(path, level ? "/" : ""), PARTS[dice(ARRAY_SIZE(PARTS))]);
            (void)mkdirat(fd, path, 0755);
        }
        strcat(strcat(path, depth ? "/" : ""), PARTS[dice(ARRAY_SIZE(PARTS))]);
        int file = openat(fd, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        if (file >= 0)
            close(file);
    }
}

static char *make_glob(void)
{
    struct text text = {0};
    size_t pieces = 1 + dice(5);
    text_add(&text, dice(3) ? "" : "**/"); /* so that more of them match something */
    while (pieces--)
        text_add(&text, PIECES[dice(dice(3) ? ARRAY_SIZE(PIECES) : 8)]);
    return text_steal(&text);
}

/* What git would normalise or refuse before it matches. */
static bool is_plain(const char *glob)
{
    return *glob && *glob != '/' && *glob != '!' && !strstr(glob, "//");
}

static char *by_git(int fd, const char *glob)
{
    _cleanup_(mem_free) char *pathspec = mem_format(":(glob)%s", glob);
    const char *const argv[] = {"git", "ls-files", "-z", "--", pathspec, NULL};
    struct collect call = {.argv = argv, .directory_fd = fd};
    _cleanup_(error_done) struct error err = {0};
    if (collect_runner()->run(collect_runner(), &call, 1, &err) != RESULT_OK ||
        collect_check(&call, &err) != RESULT_OK)
        fail_msg("%s: %s", glob, err.message);
    for (size_t i = 0; i < call.output.length; i++)
        if (!call.output.bytes[i])
            call.output.bytes[i] = '\n';
    char *paths = mem_string(call.output.bytes ? call.output.bytes : "");
    collect_done(&call);
    return paths;
}

static char *by_us(const struct candidate *candidate, const char *glob)
{
    struct text text = {0};
    text_add(&text, "");
    for (size_t i = 0; i < candidate->entry_count; i++)
        if (pathspec_match(glob, candidate->entries[i].path))
            text_addf(&text, "%s\n", candidate->entries[i].path);
    return text_steal(&text);
}

static void agrees_with_git(void **state)
{
    (void)state;
    run("tree", "git init -q .");
    _cleanup_(mem_free) char *path = place("tree");
    int fd = open(path, O_DIRECTORY | O_CLOEXEC);
    make_tree(fd);
    run("tree", "git add .; git commit -qm tree");
    struct candidate candidate = {.top_fd = -1};
    assert_int_equal(candidate_look(collect_runner(), path, &candidate, NULL), RESULT_OK);
    assert_true(candidate.entry_count > 100);
    size_t compared = 0, matched = 0;
    while (compared < 1000) {
        _cleanup_(mem_free) char *glob = make_glob();
        if (!is_plain(glob))
            continue;
        _cleanup_(mem_free) char *theirs = by_git(fd, glob), *ours = by_us(&candidate, glob);
        if (strcmp(theirs, ours) != 0)
            fail_msg("\"%s\": git takes\n%s\nwe take\n%s", glob, theirs, ours);
        compared++;
        matched += *theirs != '\0';
    }
    if (matched < 200)
        fail_msg("only %zu globs match anything", matched);
    candidate_done(&candidate);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_what_is_meant),
        cmocka_unit_test(is_never_slow),
        cmocka_unit_test(selects_and_excludes),
        cmocka_unit_test(agrees_with_git),
    };
    return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
