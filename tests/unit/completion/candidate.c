/* The candidate: what counts as clean, which repository is meant, and that looking changes nothing. */
#include "tests/unit/checked_fork.h"
#include "tests/unit/completion/workshop.h"

#include "completion/repository/candidate.h"

/* ---- helpers ---- */

static enum result look(const char *name, struct candidate *ret, struct error *err)
{
    _cleanup_(mem_free) char *directory = place(name);
    return candidate_look(collect_runner(), directory, ret, err);
}

static struct candidate look_well(const char *name)
{
    struct candidate candidate = {.top_fd = -1};
    _cleanup_(error_done) struct error err = {0};
    if (look(name, &candidate, &err) != RESULT_OK)
        fail_msg("%s: %s", name, err.message);
    return candidate;
}

#define REPOSITORY                                                                                           \
    "git init -q .; echo one > a; mkdir d; echo two > d/b; echo build/ > .gitignore; git add .; git commit " \
    "-qm first; "

static void assert_clean(const char *name)
{
    struct candidate candidate = look_well(name);
    _cleanup_(error_done) struct error err = {0};
    if (candidate_check_clean(&candidate, &err) != RESULT_OK)
        fail_msg("%s: %s", name, err.message);
    candidate_done(&candidate);
}

/* Exactly one change, of this kind and at this path. */
static void assert_change(const char *name, enum change_kind kind, const char *path)
{
    struct candidate candidate = look_well(name);
    _cleanup_(error_done) struct error err = {0};
    if (candidate_check_clean(&candidate, &err) != RESULT_INVALID)
        fail_msg("%s is called clean", name);
    if (candidate.change_count != 1 || candidate.changes[0].kind != kind)
        fail_msg("%s: %zu changes, the first of kind %d: %s", name, candidate.change_count,
            (int)candidate.changes[0].kind, err.message);
    assert_string_equal(candidate.changes[0].path, path);
    assert_has(err.message, path);
    assert_non_null(err.remedy);
    candidate_done(&candidate);
}

static void assert_refused(const char *name, const char *what)
{
    struct candidate candidate = {.top_fd = -7};
    _cleanup_(error_done) struct error err = {0};
    if (look(name, &candidate, &err) != RESULT_INVALID)
        fail_msg("%s is not refused", name);
    assert_int_equal(candidate.top_fd, -7);
    assert_has(err.message, what);
}

/* ---- what is looked at ---- */

static void tells_what_is_there(void **state)
{
    (void)state;
    run("plain", REPOSITORY "chmod +x a; ln -s a l; git add .; git commit -qm second;"
                            "git remote add origin https://me:secret@Example.org:8443/acme/widget.git");
    struct candidate candidate = look_well("plain/d");
    _cleanup_(mem_free) char *top = place("plain"), *git_dir = place("plain/.git"),
                             *commit = shell("plain", "printf %s $(git rev-parse HEAD)"),
                             *tree = shell("plain", "printf %s $(git rev-parse HEAD^{tree})"),
                             *blob = shell("plain", "printf %s $(git rev-parse HEAD:d/b)");
    assert_string_equal(candidate.top, top);
    assert_string_equal(candidate.git_dir, git_dir);
    assert_string_equal(candidate.commit, commit);
    assert_string_equal(candidate.tree, tree);
    assert_string_equal(candidate.origin, "https://Example.org:8443/acme/widget.git");
    assert_int_equal(candidate.blob_length, 40);
    assert_int_equal(candidate.entry_count, 4);
    assert_string_equal(candidate.entries[1].path, "a");
    assert_int_equal(candidate.entries[1].mode, 0100755);
    assert_string_equal(candidate.entries[2].path, "d/b");
    assert_memory_equal(candidate.entries[2].blob, blob, 40);
    assert_int_equal(candidate.entries[3].mode, 0120000);
    _cleanup_(mem_free) char *name = candidate_repository(&candidate, NULL);
    assert_string_equal(name, "example.org/acme/widget");
    candidate_done(&candidate);
}

static void knows_the_longer_hash(void **state)
{
    (void)state;
    run("sha256", "git init -q --object-format=sha256 .; echo x > x; git add .; git commit -qm x");
    struct candidate candidate = look_well("sha256");
    assert_int_equal(candidate.blob_length, 64);
    assert_int_equal(strlen(candidate.tree), 64);
    candidate_done(&candidate);
}

static void is_clean_with_an_ignored_build(void **state)
{
    (void)state;
    run("ignored", REPOSITORY "mkdir build; echo x > build/x");
    assert_clean("ignored");
    run("empty", "git init -q .; git commit -q --allow-empty -m empty");
    assert_clean("empty");
}

/* ---- what is not clean ---- */

struct dirt {
    const char *name, *script;
    enum change_kind kind;
    const char *path;
};

static const struct dirt DIRT[] = {
    {"modified", "echo more >> a", CHANGE_MODIFIED, "a"},
    {"deleted", "rm d/b", CHANGE_MODIFIED, "d/b"},
    {"link", "rm a; ln -s d/b a", CHANGE_MODIFIED, "a"},
    {"staged", "echo more >> a; git add a", CHANGE_STAGED, "a"},
    {"added", "echo new > n; git add n", CHANGE_STAGED, "n"},
    {"intended", "echo new > n; git add -N n", CHANGE_MODIFIED, "n"},
    {"untracked", "mkdir e; echo x > e/x", CHANGE_UNTRACKED, "e/x"},
    {"hidden", "git config status.showUntrackedFiles no; echo x > x", CHANGE_UNTRACKED, "x"},
    {"dotfile", "echo x > d/.x", CHANGE_UNTRACKED, "d/.x"},
    {"assumed", "git update-index --assume-unchanged a; echo more >> a", CHANGE_ASSUME_UNCHANGED, "a"},
    {"assumed-clean", "git update-index --assume-unchanged a", CHANGE_ASSUME_UNCHANGED, "a"},
    {"skipped", "git update-index --skip-worktree a; echo more >> a", CHANGE_SKIP_WORKTREE, "a"},
    {"chmod", "chmod +x a", CHANGE_MODIFIED, "a"},
    {"chmod-hidden", "git config core.fileMode false; chmod +x a; git status >/dev/null", CHANGE_MODIFIED,
        "a"},
    {"restored-time",
        "git config core.trustctime false; git config core.checkStat minimal; touch -d '2001-01-01' a;"
        /* git compares whole seconds of the file system's clock */
        "git update-index --refresh; while :> .git/now; test $(stat -c %Z .git/now) = $(stat -c %Z a); do :; "
        "done;"
        "printf 'eno\\n' > a; touch -d '2001-01-01' a; git status >/dev/null",
        CHANGE_MODIFIED, "a"},
    {"monitor",
        "printf '#!/bin/sh\\nprintf \"token\\\\0\"\\n' > .git/lie; chmod +x .git/lie; git config "
        "core.fsmonitor .git/lie;"
        "git config core.fsmonitorHookVersion 2; git update-index --fsmonitor; git status >/dev/null; echo "
        "more >> a",
        CHANGE_MODIFIED, "a"},
    {"case", "git config core.ignoreCase true; echo x > A", CHANGE_UNTRACKED, "A"},
    {"no-links", "ln -s a l; git add l; git commit -qm l; git config core.symlinks false; rm l; printf a > l",
        CHANGE_MODIFIED, "l"},
    {"conflict",
        "git checkout -qb x; echo x > a; git commit -qam x; git checkout -q main; echo y > a; git commit "
        "-qam y;"
        "git merge -q x >/dev/null || true",
        CHANGE_CONFLICTED, "a"},
    {"replaced", "echo evil > a; git replace $(git rev-parse HEAD:a) $(git hash-object -w a)",
        CHANGE_MODIFIED, "a"},
    /* converted: git itself says nothing about any of these */
    {"lossy",
        "git config filter.drop.clean \"sed /secret/d\"; echo '*.n filter=drop' > .gitattributes; echo kept "
        "> x.n;"
        "git add .; git commit -qm n; echo secret >> x.n; git add x.n; test -z \"$(git status --porcelain)\"",
        CHANGE_FILTERED, "x.n"},
    {"lossy-info",
        "git config filter.drop.clean \"sed /secret/d\"; echo 'd/* filter=drop' > .git/info/attributes;"
        "echo secret >> d/b; git add .; test -z \"$(git status --porcelain)\"",
        CHANGE_FILTERED, "d/b"},
    {"lossy-deep",
        "git config filter.drop.clean \"sed /secret/d\"; mkdir -p e/f/g; echo x > e/f/g/h; git add .; git "
        "commit -qm e;"
        "echo .gitattributes >> .git/info/exclude; echo '* filter=drop' > e/.gitattributes; echo secret >> "
        "e/f/g/h;"
        "git add .; test -z \"$(git status --porcelain)\"",
        CHANGE_FILTERED, "e/f/g/h"},
    {"lossy-user",
        "git config filter.drop.clean \"sed /secret/d\"; git config core.attributesFile \"$PWD/.git/mine\";"
        "echo 'd/* filter=drop' > .git/mine; echo secret >> d/b; git add .; test -z \"$(git status "
        "--porcelain)\"",
        CHANGE_FILTERED, "d/b"},
    {"lossy-name",
        "git config filter.drop.clean \"sed /secret/d\"; echo '*.n filter=drop' > .gitattributes; n=$(printf "
        "' x\\ny.n');"
        "echo kept > \"$n\"; git add .; git commit -qm n; echo secret >> \"$n\"; git add .;"
        "test -z \"$(git status --porcelain)\"",
        CHANGE_FILTERED, " x\ny.n"},
    {"ident",
        "echo 'a ident' > .gitattributes; printf '$Id$\\n' > a; git add .; git commit -qm i; rm a; git "
        "checkout a;"
        "printf '$Id: anything $\\n' > a; git add a; test -z \"$(git status --porcelain)\"",
        CHANGE_FILTERED, "a"},
    {"text",
        "echo '* text=auto' > .gitattributes; git add .; git commit -qm t; printf 'one\\r\\n' > a; git add a;"
        "test -z \"$(git status --porcelain)\"",
        CHANGE_FILTERED, "a"},
    {"autocrlf",
        "git config core.autocrlf input; printf 'one\\r\\n' > a; touch -d 2001-01-01 a; git add a; test -z "
        "\"$(git status "
        "--porcelain)\"",
        CHANGE_FILTERED, "a"},
};

static void refuses_every_dirt(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(DIRT); i++) {
        _cleanup_(mem_free) char *script = mem_format(REPOSITORY "%s", DIRT[i].script);
        _cleanup_(mem_free) char *name = mem_format("dirt/%s", DIRT[i].name);
        run(name, script);
        struct candidate candidate = look_well(name);
        _cleanup_(error_done) struct error err = {0};
        if (candidate_check_clean(&candidate, &err) != RESULT_INVALID)
            fail_msg("%s is called clean", DIRT[i].name);
        if (candidate.change_count != 1 || candidate.changes[0].kind != DIRT[i].kind ||
            strcmp(candidate.changes[0].path, DIRT[i].path) != 0)
            fail_msg("%s: %s", DIRT[i].name, err.message);
        assert_non_null(err.remedy);
        assert_null(strchr(err.message, '\n'));
        candidate_done(&candidate);
    }
}

/* Converted, and exactly what git would check out. */
static void accepts_honest_conversions(void **state)
{
    (void)state;
    run("honest", REPOSITORY
        "git config filter.rot.clean 'tr a-z n-za-m'; git config filter.rot.smudge 'tr a-z n-za-m';"
        "printf '*.r filter=rot\\n*.i ident\\n*.c text eol=crlf\\n*.t text\\n*.u "
        "working-tree-encoding=UTF-16LE\\n' > "
        ".gitattributes; for f in 1 2 3; do echo hello $f > $f.r; done; : > empty.r; printf x > ' lead.r'; "
        "printf 'ends without' > e.r; printf '$Id$\\n' > a.i; printf 'a\\nb\\n' > a.c; echo t > a.t; printf "
        "'x\\0y\\0' > u.u;"
        "git add .; git commit -qm conversions 2>/dev/null; rm *.r *.i *.c *.t *.u; git checkout "
        "-q .");
    assert_clean("honest");
    run("honest", "printf 'hello 2' > 2.r; git add 2.r; git commit -qm shorter; git rm -q --cached 3.r; git "
                  "commit -qm less; rm 3.r");
    assert_clean("honest");
    run("honest",
        "printf 'a\\nb\\r\\n' > a.c; git add a.c 2>/dev/null; test -z \"$(git status --porcelain)\"");
    assert_change("honest", CHANGE_FILTERED, "a.c");
}

static void names_ten_files(void **state)
{
    (void)state;
    run("many",
        REPOSITORY "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do : > f$i; done; : > \"$(printf 'esc\\033[31m')\"");
    struct candidate candidate = look_well("many");
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(candidate_check_clean(&candidate, &err), RESULT_INVALID);
    assert_has(err.message, "esc\\x1b[31m");
    assert_has(err.message, "and 3 more");
    assert_has(err.remedy, ".gitignore");
    candidate_done(&candidate);
}

/* A directory that holds nothing tracked is one thing, however much is in it. */
static void folds_untracked_directories(void **state)
{
    (void)state;
    run("folds",
        REPOSITORY "mkdir -p out/deep d/new; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do : > out/deep/$i; "
                   ": > d/new/$i; done; : > out/x; : > d/one; mkdir e; : > e/alone");
    struct candidate candidate = look_well("folds");
    _cleanup_(untracked_list_done) struct untracked_list list;
    _cleanup_(error_done) struct error err = {0};
    candidate_untracked(&candidate, NULL, NULL, &list);
    assert_int_equal(list.count, 4);
    assert_string_equal(list.items[0].path, "d/new/");
    assert_int_equal(list.items[0].files, 12);
    assert_string_equal(list.items[1].path, "d/one");
    assert_string_equal(list.items[2].path, "e/");
    assert_string_equal(list.items[2].first, "e/alone");
    assert_string_equal(list.items[3].path, "out/");
    assert_int_equal(list.items[3].files, 13);
    assert_int_equal(candidate_check_clean(&candidate, &err), RESULT_INVALID);
    assert_has(
        err.message, "d/new/ (12 files, untracked), d/one (untracked), e/alone (untracked), out/ (13 files");
    candidate_done(&candidate);
}

static void counts_all_that_moved(void **state)
{
    (void)state;
    run("counted", REPOSITORY);
    struct candidate before = look_well("counted");
    run("counted", "for i in 1 2 3 4 5 6 7 8 9 10; do : > f$i; : > d/f$i; : > g$i; done");
    struct candidate now = look_well("counted");
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(candidate_check_same(&before, &now, &err), RESULT_CONFLICT);
    assert_has(err.message, "and 20 more");
    candidate_done(&before);
    candidate_done(&now);
}

/* ---- names ---- */

static void takes_every_name(void **state)
{
    (void)state;
    run("names",
        "git init -q .; : > \"$(printf 'new\\nline')\"; : > 'quo\"te'; : > ./-dash; : > ' lead'; : > 'trail "
        "';"
        ": > \"$(printf 'latin\\351')\"; : > \"$(printf '%0255d' 0)\"; : > \"$(printf 'tab\\tx')\"; ln -s b "
        "loop;"
        "ln -s loop b; ln -s / root; ln -s nowhere dangling; : > ':(top)x'; : > '!x'; : > 'back\\slash';"
        "git add .; git commit -qm names");
    static const char *const NAMES[] = {"new\nline", "quo\"te", "-dash", " lead", "trail ", "latin\xe9",
        "tab\tx", "loop", "b", "root", "dangling", ":(top)x", "!x", "back\\slash"};
    assert_clean("names");
    struct candidate candidate = look_well("names");
    assert_int_equal(candidate.entry_count, ARRAY_SIZE(NAMES) + 1);
    for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++) {
        bool found = false;
        for (size_t j = 0; j < candidate.entry_count; j++)
            found |= strcmp(candidate.entries[j].path, NAMES[i]) == 0;
        if (!found)
            fail_msg("%s is missing", NAMES[i]);
    }
    candidate_done(&candidate);
    run("names", "echo x > \"$(printf 'latin\\351')\"");
    candidate = look_well("names");
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(candidate_check_clean(&candidate, &err), RESULT_INVALID);
    assert_string_equal(candidate.changes[0].path, "latin\xe9");
    assert_has(err.message, "latin\\xe9");
    candidate_done(&candidate);
}

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

/* ---- which repository ---- */

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

/* ---- nothing is written ---- */

static void writes_nothing(void **state)
{
    (void)state;
    static const char LIST[] = "find .git -type f -printf '%p %s %T@ %C@ %i\\n' | sort";
    run("quiet", REPOSITORY "touch a d/b");
    _cleanup_(mem_free) char *before = shell("quiet", LIST);
    for (int i = 0; i < 3; i++)
        assert_clean("quiet");
    _cleanup_(mem_free) char *after = shell("quiet", LIST);
    assert_string_equal(before, after);
}

/* ---- the same? ---- */

struct move {
    const char *script, *what;
};

static const struct move MOVES[] = {
    {"echo more >> a", "a (modified)"},
    {"echo new > n", "n (untracked)"},
    {"echo more >> a; git commit -qam more", "HEAD was"},
    {"git commit -q --allow-empty -m same-tree", "HEAD was"},
    {"git update-index --assume-unchanged d/b", "d/b (assume-unchanged"},
    {"git rm -q --cached a", "a"},
    {"cd ..; mv moved elsewhere; cp -a elsewhere moved", "another directory"},
};

static void notices_every_move(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(MOVES); i++) {
        run("moved", "rm -rf ./* .git .gitignore ../elsewhere; " REPOSITORY);
        struct candidate before = look_well("moved"), still = look_well("moved");
        _cleanup_(error_done) struct error err = {0};
        assert_int_equal(candidate_check_same(&before, &still, &err), RESULT_OK);
        run("moved", MOVES[i].script);
        struct candidate now = look_well("moved");
        assert_int_equal(candidate_check_same(&before, &now, &err), RESULT_CONFLICT);
        assert_has(err.message, MOVES[i].what);
        candidate_done(&before);
        candidate_done(&still);
        candidate_done(&now);
    }
}

/* ---- what it is called ---- */

static void derives_the_name(void **state)
{
    (void)state;
    static const char *const NAMES[][2] = {
        {"https://github.com/acme/widget.git", "github.com/acme/widget"},
        {"https://GitHub.com/Acme/widget/", "github.com/Acme/widget"},
        {"git@github.com:acme/widget.git", "github.com/acme/widget"},
        {"github.com:/acme/widget", "github.com/acme/widget"},
        {"ssh://git@github.com:2222/acme/widget.git", "github.com/acme/widget"},
        {"ssh://a@b:c@github.com/acme/widget.git/", "github.com/acme/widget"},
        {"https://host/acme/widget?token=secret#x", "host/acme/widget"},
        {"https://[::1]:80/widget", "[::1]/widget"},
        {"file:///srv/git/widget.git", "widget"},
        {"/srv/git/widget.git", "widget"},
        {"../widget", "widget"},
        {"./a:b/widget", "widget"},
        {"https://host/", NULL},
    };
    run("named", REPOSITORY "git remote add origin x");
    for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++) {
        _cleanup_(mem_free) char *script = mem_format("git remote set-url origin '%s'", NAMES[i][0]);
        run("named", script);
        struct candidate candidate = look_well("named");
        _cleanup_(mem_free) char *name = candidate_repository(&candidate, NULL);
        _cleanup_(mem_free) char *configured = candidate_repository(&candidate, "acme/other");
        assert_has_not(candidate.origin, "secret");
        assert_has_not(candidate.origin, "@");
        if (NAMES[i][1])
            assert_string_equal(name, NAMES[i][1]);
        assert_string_equal(configured, "acme/other");
        candidate_done(&candidate);
    }
    run("named", "git remote remove origin");
    struct candidate candidate = look_well("named");
    _cleanup_(mem_free) char *name = candidate_repository(&candidate, NULL);
    assert_null(candidate.origin);
    assert_string_equal(name, "named");
    candidate_done(&candidate);
}

#define RACERS 100

static void gives_a_checkout_one_id(void **state)
{
    (void)state;
    run("raced", REPOSITORY);
    struct candidate candidate = look_well("raced");
    int start[2], answers[2];
    assert_int_equal(pipe2(start, O_CLOEXEC) | pipe2(answers, O_CLOEXEC), 0);
    for (int i = 0; i < RACERS; i++) {
        pid_t pid = checked_fork();
        if (pid == 0) {
            char *id = NULL, go;
            close(start[1]);
            bool ok = read(start[0], &go, 1) == 0 && candidate_checkout(&candidate, &id, NULL) == RESULT_OK &&
                      strlen(id) == 32 && write(answers[1], id, 32) == 32;
            _exit(ok ? 0 : 1);
        }
    }
    close(start[1]); /* all at once */
    for (int i = 0; i < RACERS; i++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    char first[33] = {0}, id[33] = {0};
    assert_int_equal(read(answers[0], first, 32), 32);
    for (int i = 1; i < RACERS; i++) {
        assert_int_equal(read(answers[0], id, 32), 32);
        assert_string_equal(id, first);
    }
    close(start[0]);
    close(answers[0]);
    close(answers[1]);
    assert_clean("raced");
    run("raced", "test -z \"$(ls .git | grep tenure-checkout.)\"; echo short > .git/tenure-checkout");
    _cleanup_(error_done) struct error err = {0};
    char *corrupt = NULL;
    assert_int_equal(candidate_checkout(&candidate, &corrupt, &err), RESULT_CORRUPT);
    assert_null(corrupt);
    assert_has(err.remedy, "remove it");
    candidate_done(&candidate);
}

/* ---- history ---- */

static void tells_what_changed(void **state)
{
    (void)state;
    run("history", REPOSITORY);
    _cleanup_(mem_free) char *old = shell("history", "printf %s $(git rev-parse HEAD^{tree})");
    run("history", "echo more >> a; echo x > d/x; echo y > \"$(printf 'd/y\\nz')\"; git rm -q d/b; git add "
                   ".; git commit -qm more");
    struct candidate candidate = look_well("history");
    char **paths = NULL;
    size_t count = 0;
    assert_int_equal(
        candidate_changed(collect_runner(), &candidate, old, NULL, 0, 10, &paths, &count, NULL), RESULT_OK);
    assert_int_equal(count, 4);
    assert_string_equal(paths[0], "a");
    assert_string_equal(paths[3], "d/y\nz");
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
    const char *const globs[] = {"d", "!d/x"};
    assert_int_equal(
        candidate_changed(collect_runner(), &candidate, old, globs, 2, 1, &paths, &count, NULL), RESULT_OK);
    assert_int_equal(count, 1);
    assert_string_equal(paths[0], "d/b");
    free(paths[0]);
    free(paths);
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(candidate_changed(collect_runner(), &candidate,
                         "0123456789012345678901234567890123456789", NULL, 0, 1, &paths, &count, &err),
        RESULT_INVALID);
    candidate_done(&candidate);
}

static void shows_and_resolves(void **state)
{
    (void)state;
    run("shown", REPOSITORY "printf 'x\\0y' > n; git add .; git commit -qm n; git tag -a v1 -m v1");
    _cleanup_(mem_free) char *directory = place("shown"),
                             *head = shell("shown", "printf %s $(git rev-parse HEAD)"),
                             *head_tree = shell("shown", "printf %s $(git rev-parse HEAD^{tree})");
    _cleanup_(text_done) struct text text = {0};
    struct runner *runner = collect_runner();
    assert_int_equal(repository_show(runner, directory, "HEAD", "n", &text, NULL), RESULT_OK);
    assert_int_equal(text.length, 3);
    assert_memory_equal(text.bytes, "x\0y", 3);
    assert_int_equal(repository_show(runner, directory, "HEAD", "nothing", &text, NULL), RESULT_ABSENT);
    assert_int_equal(repository_show(runner, directory, "HEAD~1", "n", &text, NULL), RESULT_ABSENT);
    _cleanup_(mem_free) char *abbreviated = mem_format("%.8s", head);
    const char *const typed[] = {"HEAD", "main", "v1", abbreviated};
    for (size_t i = 0; i < ARRAY_SIZE(typed); i++) {
        _cleanup_(mem_free) char *commit = NULL, *tree = NULL;
        assert_int_equal(repository_resolve(runner, directory, typed[i], &commit, &tree, NULL), RESULT_OK);
        assert_string_equal(commit, head);
        assert_string_equal(tree, head_tree);
    }
    char *commit = NULL, *tree = NULL;
    assert_int_equal(repository_resolve(runner, directory, "nobody", &commit, &tree, NULL), RESULT_ABSENT);
    assert_int_equal(repository_resolve(runner, directory, "--all", &commit, &tree, NULL), RESULT_ABSENT);
    assert_null(commit);
    assert_int_equal(repository_resolve(runner, "/", "HEAD", &commit, &tree, NULL), RESULT_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_what_is_there),
        cmocka_unit_test(knows_the_longer_hash),
        cmocka_unit_test(is_clean_with_an_ignored_build),
        cmocka_unit_test(refuses_every_dirt),
        cmocka_unit_test(accepts_honest_conversions),
        cmocka_unit_test(names_ten_files),
        cmocka_unit_test(folds_untracked_directories),
        cmocka_unit_test(counts_all_that_moved),
        cmocka_unit_test(takes_every_name),
        cmocka_unit_test(stands_in_a_strange_directory),
        cmocka_unit_test(ignores_the_callers_git),
        cmocka_unit_test(looks_in_a_linked_work_tree),
        cmocka_unit_test(refuses_what_is_no_tree),
        cmocka_unit_test(looks_into_submodules),
        cmocka_unit_test(refuses_dirty_submodules),
        cmocka_unit_test(writes_nothing),
        cmocka_unit_test(notices_every_move),
        cmocka_unit_test(derives_the_name),
        cmocka_unit_test(gives_a_checkout_one_id),
        cmocka_unit_test(tells_what_changed),
        cmocka_unit_test(shows_and_resolves),
    };
    return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
