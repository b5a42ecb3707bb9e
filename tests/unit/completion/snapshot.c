/* Snapshots: what git cannot see is seen, and what nobody touched is not. */
#include "tests/unit/completion/workshop.h"

#include "completion/repository/snapshot.h"

#define TREE                                                                                                 \
    "git init -q .; echo one > a; mkdir d; echo two > d/b; ln -s a l; ln -s nowhere dangling; echo out/ > "  \
    ".gitignore; git add .; git commit -qm first"

static struct candidate look_well(const char *name)
{
    struct candidate candidate = {.top_fd = -1};
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(mem_free) char *directory = place(name);
    if (candidate_look(collect_runner(), directory, &candidate, &err) != RESULT_OK)
        fail_msg("%s", err.message);
    return candidate;
}

struct deed {
    const char *name, *script;
    const char *named; /* NULL: must not be noticed */
};

static const struct deed DEEDS[] = {
    {"nothing", "true", NULL}, {"read", "cat a d/b >/dev/null; git status >/dev/null", NULL},
    {"ignored", "mkdir out; echo x > out/x", NULL}, {"new", "echo x > x", NULL}, /* git sees that one */
    {"edited", "echo more >> a", "a"},
    {"reverted",
        "cp -p d/b out.b; echo xxx > d/b; cat out.b > d/b; touch -r out.b d/b; rm out.b; git diff --quiet",
        "d/b"},
    {"replaced", "cp -p a n; mv n a", "a"}, {"gone", "rm d/b", "d/b"},
    {"directory", "rm d/b; mkdir d/b", "d/b"}, {"moved-away", "mv d e; mkdir d; cp -p e/b d/b", "d/b"},
    {"through-link", "mv d e; ln -s e d; cp -p e/b e/n; mv e/n e/b", "d/b"},
    {"mode", "chmod +x a; chmod -x a", "a"}, {"link", "ln -sfn d l; ln -sfn a l", "l"},
    {"target", "ln -sfn a nowhere", NULL}, /* the link itself is the same */
};

static void notices_deeds(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(DEEDS); i++) {
        struct snapshot *snapshot = NULL;
        _cleanup_(error_done) struct error err = {0};
        run(DEEDS[i].name, TREE);
        struct candidate candidate = look_well(DEEDS[i].name);
        assert_int_equal(snapshot_take(&candidate, NULL, 0, &snapshot, NULL), RESULT_OK);
        run(DEEDS[i].name, DEEDS[i].script);
        enum result r = snapshot_check(snapshot, &err);
        if (r != (DEEDS[i].named ? RESULT_CONFLICT : RESULT_OK))
            fail_msg("%s: %s", DEEDS[i].name, r == RESULT_OK ? "not noticed" : err.message);
        if (DEEDS[i].named) {
            _cleanup_(mem_free) char *ending = mem_format(": %s", DEEDS[i].named);
            assert_has(err.message, ending);
        }
        snapshot_free(snapshot);
        candidate_done(&candidate);
    }
}

static void looks_at_what_it_is_given(void **state)
{
    (void)state;
    struct snapshot *snapshot = NULL;
    run("some", TREE);
    struct candidate candidate = look_well("some");
    size_t index = 0;
    while (strcmp(candidate.entries[index].path, "d/b") != 0)
        index++;
    assert_int_equal(snapshot_take(&candidate, &index, 1, &snapshot, NULL), RESULT_OK);
    run("some", "echo more >> a");
    assert_int_equal(snapshot_check(snapshot, NULL), RESULT_OK);
    run("some", "echo more >> d/b");
    assert_int_equal(snapshot_check(snapshot, NULL), RESULT_CONFLICT);
    snapshot_free(snapshot);
    size_t none = 0;
    assert_int_equal(snapshot_take(&candidate, &none, 0, &snapshot, NULL), RESULT_OK);
    assert_int_equal(snapshot_check(snapshot, NULL), RESULT_OK);
    snapshot_free(snapshot);
    snapshot_free(NULL);
    candidate_done(&candidate);
}

/* An ignored file in a submodule changes its directory and nothing else. */
static void passes_over_the_directories_of_submodules(void **state)
{
    (void)state;
    struct snapshot *snapshot = NULL;
    _cleanup_(error_done) struct error err = {0};
    run("sub",
        "git init -q inner; (cd inner; echo '*.o' > .gitignore; echo i > i; git add .; git commit -qm i);"
        "git init -q outer; cd outer; git submodule --quiet add \"$PWD/../inner\" inner; git commit -qm o");
    struct candidate candidate = look_well("sub/outer");
    assert_int_equal(snapshot_take(&candidate, NULL, 0, &snapshot, NULL), RESULT_OK);
    run("sub/outer", "echo x > inner/x.o");
    assert_int_equal(snapshot_check(snapshot, NULL), RESULT_OK);
    run("sub/outer", "echo more >> inner/i");
    assert_int_equal(snapshot_check(snapshot, &err), RESULT_CONFLICT);
    assert_has(err.message, "inner/i");
    snapshot_free(snapshot);
    candidate_done(&candidate);
}

static void names_ten(void **state)
{
    (void)state;
    struct snapshot *snapshot = NULL;
    _cleanup_(error_done) struct error err = {0};
    run("many", "git init -q .; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do echo $i > f$i; done; git add .; "
                "git commit -qm x");
    struct candidate candidate = look_well("many");
    assert_int_equal(snapshot_take(&candidate, NULL, 0, &snapshot, NULL), RESULT_OK);
    run("many", "touch f*");
    assert_int_equal(snapshot_check(snapshot, &err), RESULT_CONFLICT);
    assert_has(err.message, "and 3 more");
    snapshot_free(snapshot);
    candidate_done(&candidate);
}

static size_t turns;

static void count_turn(struct runner *runner)
{
    (void)runner;
    turns++;
}

/* A heartbeat is allowed only while the loop turns: what takes long turns it. */
static void turns_the_loop_in_between(void **state)
{
    (void)state;
    enum { FILES = 20000, TURNS = FILES / 4096 };
    struct snapshot *snapshot = NULL;
    struct runner runner = {.tick = count_turn};
    struct tree_entry *entries = mem_alloc(FILES * sizeof *entries);
    for (size_t i = 0; i < FILES; i++)
        entries[i] = (struct tree_entry){.mode = 0100644, .blob = "", .path = "nowhere"};
    const struct candidate candidate = {
        .top_fd = AT_FDCWD, .entries = entries, .entry_count = FILES, .runner = &runner};
    turns = 0;
    assert_int_equal(snapshot_take(&candidate, NULL, 0, &snapshot, NULL), RESULT_OK);
    assert_int_equal(turns, TURNS);
    assert_int_equal(snapshot_check(snapshot, NULL), RESULT_OK);
    assert_int_equal(turns, 2 * TURNS);
    snapshot_free(snapshot);
    free(entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notices_deeds),
        cmocka_unit_test(turns_the_loop_in_between),
        cmocka_unit_test(looks_at_what_it_is_given),
        cmocka_unit_test(passes_over_the_directories_of_submodules),
        cmocka_unit_test(names_ten),
    };
    return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
