/* The candidate: what counts as clean, what as the same tree, and that looking changes nothing. */
#include "tests/unit/completion/looking.h"

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
        cmocka_unit_test(takes_every_name),
        cmocka_unit_test(writes_nothing),
        cmocka_unit_test(notices_every_move),
        cmocka_unit_test(counts_all_that_moved),
    };
    return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
