/* One look by two gits: whatever happens to the index between them, what is not clean is not called clean. */
#include "tests/unit/completion/workshop.h"

#include "completion/repository/candidate.h"

#define REPOSITORY  "git init -q .; echo one > a; git add .; git commit -qm first; "
#define BLOB_OF_TWO "f719efd430d52bcfc8566a43b2eb655688d38871" /* "two\n" */

/* Runs the programs of the first call one after the other, and a script between any two of them; later calls
 * as they are. */
struct meddler {
    struct runner runner;
    const char *place, *script;
    size_t before; /* which of them */
    bool over;
    size_t calls;
};

static enum result meddle(struct runner *runner, struct collect *collects, size_t count, struct error *err)
{
    struct meddler *meddler = (struct meddler *)(void *)runner;
    struct runner *plain = collect_runner();
    meddler->calls++;
    if (meddler->over)
        return plain->run(plain, collects, count, err);
    meddler->over = true;
    enum result r = RESULT_OK;
    for (size_t i = 0; i < count && r == RESULT_OK; i++) {
        if (i == meddler->before)
            run(meddler->place, meddler->script);
        r = plain->run(plain, &collects[i], 1, err);
    }
    return r;
}

static struct candidate look(struct meddler *meddler, const char *name)
{
    struct candidate candidate = {.top_fd = -1};
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(mem_free) char *directory = place(name);
    meddler->runner.run = meddle;
    if (candidate_look(&meddler->runner, directory, &candidate, &err) != RESULT_OK)
        fail_msg("%s: %s", name, err.message);
    return candidate;
}

struct story {
    const char *name, *before, *script;
};

/* Neither before nor behind any of these the work tree is the tree of HEAD. */
static const struct story STORIES[] = {
    {"added", "echo x > n", "git add n"},
    {"removed", "echo x > n; git add n", "git reset -q"},
    {"intended", "echo x > n", "git add -N n"},
    {"swapped", "echo x > a; echo y > n; git add n", "git reset -q; git checkout -q a"},
    {"assumed", "echo x > n", "git update-index --assume-unchanged a; git add n"},
};

static void nothing_slips_between_two_gits(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(STORIES); i++)
        for (size_t before = 1; before <= 3; before++) {
            const struct story *story = &STORIES[i];
            _cleanup_(mem_free) char *name = mem_format("%s-%zu", story->name, before);
            _cleanup_(mem_free) char *script = mem_format(REPOSITORY "%s", story->before);
            run(name, script);
            struct meddler meddler = {.place = name, .script = story->script, .before = before};
            struct candidate candidate = look(&meddler, name);
            if (candidate_check_clean(&candidate, NULL) != RESULT_INVALID)
                fail_msg("%s before git %zu is called clean", story->name, before);
            candidate_done(&candidate);
        }
}

/* The entries are those of the tree that is named, although the commit came when they were read already. */
static void a_commit_between_two_gits_brings_its_entries(void **state)
{
    (void)state;
    for (size_t before = 1; before <= 3; before++) {
        _cleanup_(mem_free) char *name = mem_format("committed-%zu", before);
        run(name, REPOSITORY "echo two > a");
        struct meddler meddler = {.place = name, .script = "git commit -qam second", .before = before};
        struct candidate candidate = look(&meddler, name);
        assert_int_equal(candidate_check_clean(&candidate, NULL), RESULT_OK);
        assert_int_equal(candidate.entry_count, 1);
        assert_memory_equal(candidate.entries[0].blob, BLOB_OF_TWO, strlen(BLOB_OF_TWO));
        candidate_done(&candidate);
    }
}

/* A linked work tree and a submodule have an index elsewhere; it is known to stand still there, too. */
static void one_look_is_enough_when_nothing_moves(void **state)
{
    (void)state;
    run("plain",
        REPOSITORY "mkdir d; echo x > d/x; git add .; git commit -qm d; git worktree add -q ../linked; "
                   "git init -q ../outer; cd ../outer; git submodule --quiet add ../plain sub; git "
                   "commit -qm sub");
    static const char *const PLACES[] = {"plain", "plain/d", "linked", "outer/sub"};
    for (size_t i = 0; i < ARRAY_SIZE(PLACES); i++) {
        struct meddler meddler = {.over = true};
        struct candidate candidate = look(&meddler, PLACES[i]);
        assert_int_equal(candidate_check_clean(&candidate, NULL), RESULT_OK);
        assert_int_equal(meddler.calls, 1);
        candidate_done(&candidate);
    }
}

/* An index that was only refreshed costs another look and nothing else. */
static void a_refreshed_index_is_no_change(void **state)
{
    (void)state;
    run("refreshed", REPOSITORY);
    struct meddler meddler = {
        .place = "refreshed", .script = "touch a; git update-index --refresh", .before = 1};
    struct candidate candidate = look(&meddler, "refreshed");
    assert_int_equal(candidate_check_clean(&candidate, NULL), RESULT_OK);
    assert_int_equal(meddler.calls, 3);
    candidate_done(&candidate);
}

/* Told once, by whichever git. */
static void what_is_untracked_is_told_once(void **state)
{
    (void)state;
    run("once", REPOSITORY "mkdir e; echo x > e/x; echo x > n; git init -q nested; echo x > nested/x");
    for (int again = 0; again <= 1; again++) {
        struct meddler meddler = {
            .place = "once", .script = "git update-index --force-write-index", .before = 1, .over = !again};
        struct candidate candidate = look(&meddler, "once");
        assert_int_equal(meddler.calls, again ? 3 : 1);
        assert_int_equal(candidate.change_count, 3);
        static const char *const PATHS[] = {"e/x", "n", "nested/"};
        for (size_t i = 0; i < ARRAY_SIZE(PATHS); i++) {
            assert_int_equal(candidate.changes[i].kind, CHANGE_UNTRACKED);
            assert_string_equal(candidate.changes[i].path, PATHS[i]);
        }
        assert_int_equal(candidate.entry_count, 1);
        assert_string_equal(candidate.entries[0].path, "a");
        candidate_done(&candidate);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_slips_between_two_gits),
        cmocka_unit_test(a_commit_between_two_gits_brings_its_entries),
        cmocka_unit_test(one_look_is_enough_when_nothing_moves),
        cmocka_unit_test(a_refreshed_index_is_no_change),
        cmocka_unit_test(what_is_untracked_is_told_once),
    };
    return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
