/* Looking at repositories in the workshop, and what a look is expected to say. */
#ifndef TESTS_UNIT_COMPLETION_LOOKING_H
#define TESTS_UNIT_COMPLETION_LOOKING_H

#include "tests/unit/completion/workshop.h"

#include "completion/repository/candidate.h"

static _unused_ enum result look(const char *name, struct candidate *ret, struct error *err)
{
    _cleanup_(mem_free) char *directory = place(name);
    return candidate_look(collect_runner(), directory, ret, err);
}

static _unused_ struct candidate look_well(const char *name)
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

static _unused_ void assert_clean(const char *name)
{
    struct candidate candidate = look_well(name);
    _cleanup_(error_done) struct error err = {0};
    if (candidate_check_clean(&candidate, &err) != RESULT_OK)
        fail_msg("%s: %s", name, err.message);
    candidate_done(&candidate);
}

/* Exactly one change, of this kind and at this path. */
static _unused_ void assert_change(const char *name, enum change_kind kind, const char *path)
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

static _unused_ void assert_refused(const char *name, const char *what)
{
    struct candidate candidate = {.top_fd = -7};
    _cleanup_(error_done) struct error err = {0};
    if (look(name, &candidate, &err) != RESULT_INVALID)
        fail_msg("%s is not refused", name);
    assert_int_equal(candidate.top_fd, -7);
    assert_has(err.message, what);
}

#endif
