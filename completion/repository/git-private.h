/*
 * Calling git, always in the same way.
 *
 *     struct collect calls[] = {GIT_CALL(fd, "rev-parse", "HEAD"), GIT_CALL(fd, "ls-files", "-z")};
 *     r = runner->run(runner, calls, ARRAY_SIZE(calls), err);
 *     ... collect_check(&calls[0], err) ...
 *     git_calls_done(calls, ARRAY_SIZE(calls));
 *
 * The arguments are borrowed until then. One thread.
 */
#ifndef COMPLETION_REPOSITORY_GIT_PRIVATE_H
#define COMPLETION_REPOSITORY_GIT_PRIVATE_H

#include <sys/stat.h>

#include "completion/repository/candidate.h"

/* With the settings under which git sees everything. Runs in `directory_fd`. */
#define GIT_CALL(directory_fd, ...) git_call((directory_fd), (const char *const[]){__VA_ARGS__, NULL}, true)
/* With the user's own settings: for reading those. */
#define GIT_CALL_PLAIN(directory_fd, ...)                                                                    \
    git_call((directory_fd), (const char *const[]){__VA_ARGS__, NULL}, false)

struct collect git_call(int directory_fd, const char *const *arguments, bool settings);
void git_calls_done(struct collect *calls, size_t count);

/* Runs them at once, whatever their exit statuses. ABSENT when there is no git. */
_must_use_ enum result git_run_all(
    struct runner *runner, struct collect *calls, size_t count, struct error *err);
/* Runs one call and checks that it answered 0. */
_must_use_ enum result git_run(struct runner *runner, struct collect *call, struct error *err);
/* True when it exited with exactly this status. */
bool git_exited(const struct collect *call, int status);
/* The output without its final line feed; owned. */
char *git_line(const struct collect *call);

/* Whether the text is the whole hex name of an object. */
bool git_is_object_name(const char *text, size_t length);

/* ---- one repository: the tree's own, or a submodule's ---- */

struct change_list {
    struct change *items;
    size_t count, capacity;
};
void change_add(struct change_list *list, enum change_kind kind, const char *prefix, const char *path);
void change_list_done(struct change_list *list);

/* What the user's settings say about conversions, and where the origin is. */
struct settings {
    char *attributes_file; /* NULL: the default one */
    bool converts_lines;   /* core.autocrlf is not false */
    char *origin;
};
void settings_done(struct settings *settings);
void settings_parse(const struct text *output, struct settings *ret);
char *origin_without_secrets(const char *url);

struct listing {
    struct tree_entry *entries;
    size_t count, capacity;
    size_t blob_length;
};
/* Whether two descriptors are one directory. */
bool git_same_directory(int a, int b);

/* The nearest directory, this one or one above, that holds a ".git" of any kind; -1: none. The caller's. */
int git_nearest(int directory_fd);

/* The index as it is before gits are asked about it. When it is the same file, unchanged, behind them, all of
 * them read one and the same index. */
struct index_watch {
    int git_dir_fd; /* where it is expected; -1: nobody knows */
    bool present;
    struct stat status;
};
struct index_watch index_watch(int directory_fd);
void index_watch_done(struct index_watch *watch);
/* Also false when that cannot be told, since `git_dir` is not where it was expected. */
bool index_stood_still(const struct index_watch *watch, const char *git_dir);

/* Takes what is untracked out of the answer of `ls-files -o -s -v -z`; it stands before the index. `changes`
 * may be NULL. */
void untracked_take(struct text *text, const char *prefix, struct change_list *changes);
/* Reads the rest of that answer in place, appends to the entries and adds the flags as changes. */
_must_use_ enum result listing_parse(struct runner *runner, struct text *text, struct listing *listing,
    struct change_list *changes, struct error *err);
/* Adds what `status --porcelain=v2 -z --branch` says; `ret_commit` is NULL when HEAD is unborn. */
_must_use_ enum result status_parse(const struct text *text, const char *prefix, struct change_list *changes,
    char **ret_commit, struct error *err);

/* Files whose bytes differ from what git would check out although it calls them unchanged. */
struct conversion_look {
    struct runner *runner;
    int top_fd;
    const char *git_dir, *prefix;
    const struct settings *settings;
    const struct listing *listing; /* of this repository alone, paths relative to its top */
    struct change_list *changes;
};
_must_use_ enum result conversions_look(const struct conversion_look *look, struct error *err);

/* Everything about one repository in one go. CONFLICT when two gits did not see the same HEAD. */
struct repository_look {
    char *top, *git_dir, *tree, *commit;
    char *resolved;      /* the commit whose tree that is, asked for by another git */
    struct text listing; /* as git wrote it */
    struct settings settings;
    struct change_list changes; /* of status, prefixed */
};
void repository_look_done(struct repository_look *look);
_must_use_ enum result repository_look(struct runner *runner, int directory_fd, const char *prefix,
    struct repository_look *ret, struct error *err);

/* All submodules among the entries, and theirs; their records go to `nested` with whole paths. */
_must_use_ enum result submodules_look(struct runner *runner, int top_fd, const struct listing *listing,
    struct text *nested, struct change_list *changes, struct error *err);

#endif
