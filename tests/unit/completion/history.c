/* What a repository is called, and what it tells of other commits and trees. */
#include "tests/unit/checked_fork.h"
#include "tests/unit/completion/looking.h"

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
        cmocka_unit_test(derives_the_name),
        cmocka_unit_test(gives_a_checkout_one_id),
        cmocka_unit_test(tells_what_changed),
        cmocka_unit_test(shows_and_resolves),
    };
    return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
