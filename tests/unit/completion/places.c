/* Where one may stand: strange directories, linked work trees, submodules, and what is no work tree. */
#include "tests/unit/completion/looking.h"

/* ---- which repository ---- */

static void stands_in_a_strange_directory(void **state)
{
    (void)state;
    run(".", "mkdir -p \"$(printf 'odd\\n0123456789012345678901234567890123456789\\nx')\"");
    _cleanup_(mem_free) char *directory = place("odd\n0123456789012345678901234567890123456789\nx");
    run(".", "cd odd*; " REPOSITORY);
    struct candidate candidate = {.top_fd = -1};
    assert_int_equal(candidate_look(collect_runner(), directory, &candidate, NULL), RESULT_OK);
    assert_string_equal(candidate.top, directory);
    candidate_done(&candidate);
}

static void ignores_the_callers_git(void **state)
{
    (void)state;
    run("mine", REPOSITORY);
    run("other", "git init -q .; echo other > o; git add .; git commit -qm other");
    _cleanup_(mem_free) char *git_dir = place("other/.git"), *index = place("other/.git/index"),
                             *tree = place("other"), *top = place("mine");
    static const char *const NAMES[] = {
        "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_PREFIX"};
    const char *values[] = {git_dir, tree, index, git_dir, git_dir, "o/"};
    for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++)
        setenv(NAMES[i], values[i], 1);
    setenv("GIT_CONFIG_COUNT", "1", 1);
    setenv("GIT_CONFIG_KEY_0", "core.bare", 1);
    setenv("GIT_CONFIG_VALUE_0", "true", 1);
    struct candidate candidate = {.top_fd = -1};
    _cleanup_(error_done) struct error err = {0};
    enum result r = look("mine", &candidate, &err);
    for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++)
        unsetenv(NAMES[i]);
    unsetenv("GIT_CONFIG_COUNT");
    if (r != RESULT_OK)
        fail_msg("%s", err.message);
    assert_string_equal(candidate.top, top);
    assert_int_equal(candidate.entry_count, 3);
    assert_int_equal(candidate.change_count, 0);
    candidate_done(&candidate);
}

static void looks_in_a_linked_work_tree(void **state)
{
    (void)state;
    run("main", REPOSITORY "git worktree add -q ../linked -b linked; echo more >> a");
    assert_clean("linked");
    assert_change("main", CHANGE_MODIFIED, "a");
    run("main",
        "git config filter.drop.clean 'sed /secret/d'; echo 'd/* filter=drop' > .git/info/attributes");
    run("linked", "echo secret >> d/b; git add .; test -z \"$(git status --porcelain)\"");
    assert_change("linked", CHANGE_FILTERED, "d/b");
    struct candidate candidate = look_well("linked"), of_main = look_well("main");
    _cleanup_(mem_free) char *git_dir = place("main/.git/worktrees/linked"), *id = NULL, *main_id = NULL;
    assert_string_equal(candidate.git_dir, git_dir);
    assert_int_equal(candidate_checkout(&candidate, &id, NULL), RESULT_OK);
    assert_int_equal(candidate_checkout(&of_main, &main_id, NULL), RESULT_OK);
    assert_string_not_equal(id, main_id);
    candidate_done(&candidate);
    candidate_done(&of_main);
}

static void refuses_what_is_no_tree(void **state)
{
    (void)state;
    run("nothing", "true");
    assert_refused("nothing", "not in a git work tree");
    assert_refused("absent", "cannot open");
    run("bare", "git init -q --bare .");
    assert_refused("bare", "bare repository");
    run("unborn", "git init -q .; echo x > x; git add x");
    assert_refused("unborn", "no commit yet");
    run("inside", REPOSITORY);
    assert_refused("inside/.git/objects", "git's own directory");
    run("broken-ref", REPOSITORY "echo garbage > .git/refs/heads/main");
    assert_refused("broken-ref", "HEAD is corrupt");
    run("lost-commit", REPOSITORY "rm -r .git/objects; mkdir .git/objects");
    assert_refused("lost-commit", "git failed");
    run("outer", REPOSITORY
        "mkdir build; cd build; git init -q .; mkdir deep; echo x > x; git add .; git commit -qm x;"
        "echo garbage > .git/HEAD");
    assert_refused("outer/build/deep", "damaged");
    assert_clean("outer");
}

/* ---- submodules ---- */

#define SUBMODULES                                                                                           \
    "git init -q inner; (cd inner; echo i > i; git add .; git commit -qm i); git init -q middle; (cd "       \
    "middle; echo m > m;"                                                                                    \
    "git submodule --quiet add \"$PWD/../inner\" inner; git add .; git commit -qm m); git init -q outer; "   \
    "cd outer;"                                                                                              \
    "echo o > o; git submodule --quiet add \"$PWD/../middle\" sub; git add .; git commit -qm o;"             \
    "git submodule --quiet update --init --recursive; "

static void looks_into_submodules(void **state)
{
    (void)state;
    run("sub", SUBMODULES);
    assert_clean("sub/outer");
    struct candidate candidate = look_well("sub/outer");
    static const char *const PATHS[] = {
        ".gitmodules", "o", "sub", "sub/.gitmodules", "sub/inner", "sub/m", "sub/inner/i"};
    assert_int_equal(candidate.entry_count, ARRAY_SIZE(PATHS));
    for (size_t i = 0; i < ARRAY_SIZE(PATHS); i++)
        assert_string_equal(candidate.entries[i].path, PATHS[i]);
    assert_int_equal(candidate.entries[4].mode, 0160000);
    _cleanup_(mem_free) char *blob = shell("sub/inner", "printf %s $(git rev-parse HEAD:i)");
    assert_memory_equal(candidate.entries[6].blob, blob, 40);
    candidate_done(&candidate);
    assert_clean("sub/outer/sub"); /* a submodule is a repository of its own */
}

struct submodule_dirt {
    const char *name, *script, *path;
    enum change_kind kind;
};

static const struct submodule_dirt SUBMODULE_DIRT[] = {
    {"modified", "echo more >> sub/m", "sub/m", CHANGE_MODIFIED},
    {"untracked", "git -C sub config status.showUntrackedFiles no; echo x > sub/x", "sub/x",
        CHANGE_UNTRACKED},
    {"moved", "git -C sub commit -q --allow-empty -m more", "sub", CHANGE_SUBMODULE},
    {"assumed", "git -C sub update-index --assume-unchanged m; echo more >> sub/m", "sub/m",
        CHANGE_ASSUME_UNCHANGED},
    {"deep",
        "git config submodule.sub.ignore all; git -C sub config submodule.inner.ignore all; echo x > "
        "sub/inner/x",
        "sub/inner/x", CHANGE_UNTRACKED},
    {"lossy",
        "cd sub/inner; git config filter.drop.clean 'sed /secret/d';"
        "echo '* filter=drop' > \"$(git rev-parse --git-dir)/info/attributes\"; echo secret >> i; git add i;"
        "test -z \"$(git status --porcelain)\"",
        "sub/inner/i", CHANGE_FILTERED},
};

static void refuses_dirty_submodules(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(SUBMODULE_DIRT); i++) {
        const struct submodule_dirt *dirt = &SUBMODULE_DIRT[i];
        _cleanup_(mem_free) char *name = mem_format("sub-%s", dirt->name);
        _cleanup_(mem_free) char *script = mem_format(SUBMODULES "%s", dirt->script);
        _cleanup_(mem_free) char *outer = mem_format("%s/outer", name);
        run(name, script);
        struct candidate candidate = look_well(outer);
        _cleanup_(error_done) struct error err = {0};
        bool found = false;
        for (size_t c = 0; c < candidate.change_count; c++)
            found |=
                candidate.changes[c].kind == dirt->kind && strcmp(candidate.changes[c].path, dirt->path) == 0;
        assert_int_equal(candidate_check_clean(&candidate, &err), RESULT_INVALID);
        if (!found)
            fail_msg("%s: %s", name, err.message);
        candidate_done(&candidate);
    }
    run("sub-absent", SUBMODULES "git submodule --quiet deinit -f --all");
    assert_clean("sub-absent/outer");
    run("sub-broken", SUBMODULES "rm sub/.git; mkdir sub/.git");
    assert_refused("sub-broken/outer", "sub");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stands_in_a_strange_directory),
        cmocka_unit_test(ignores_the_callers_git),
        cmocka_unit_test(looks_in_a_linked_work_tree),
        cmocka_unit_test(refuses_what_is_no_tree),
        cmocka_unit_test(looks_into_submodules),
        cmocka_unit_test(refuses_dirty_submodules),
    };
    return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
