/*
 * The candidate: the exact committed tree that a run proves, and whether the work tree is that tree.
 *
 *     candidate_look(runner, directory, &candidate, err);   // gits at once, no lock taken, nothing written
 *     candidate_check_clean(&candidate, err);               // INVALID: files named, with the remedy
 *     ... work ...
 *     candidate_look(runner, directory, &now, err);
 *     candidate_check_same(&candidate, &now, err);          // CONFLICT: the tree moved, files named
 *
 * git is the program, always with --no-optional-locks --no-replace-objects, -z, no automatic gc, and the
 * settings that make it see chmod, restored times and CR LF; every GIT_* of the caller is removed. Paths are
 * bytes.
 *
 * Where attributes convert contents, git's own view is not enough: a clean filter that drops things (and
 * `text`, `ident`) hides what it drops. There the bytes of the work tree must be those that git would check
 * out: of files with a filter, `ident`, an encoding or CR LF line ends they are compared with
 * `git cat-file --filters`; of files that are only `text` the size tells, since a line end can only be
 * longer.
 *
 * Submodules that are checked out are looked at in the same way, whatever their own or .gitmodules' settings
 * hide; their entries come behind those of the tree itself. One that is not checked out is its commit alone.
 * One thread.
 */
#ifndef COMPLETION_REPOSITORY_CANDIDATE_H
#define COMPLETION_REPOSITORY_CANDIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "supervisor/collect.h"

struct tree_entry {
    uint32_t mode;    /* 0100644, 0100755, 0120000; 0160000: a submodule, its blob is a commit */
    const char *blob; /* hex, not NUL-terminated: blob_length digits */
    const char *path; /* bytes, NUL-terminated, relative to the top */
};

enum change_kind {
    CHANGE_MODIFIED,
    CHANGE_STAGED,
    CHANGE_UNTRACKED,
    CHANGE_ASSUME_UNCHANGED,
    CHANGE_SKIP_WORKTREE,
    CHANGE_SUBMODULE,
    CHANGE_FILTERED, /* the bytes differ although git's filters hide it */
    CHANGE_CONFLICTED,
    CHANGE_KIND_MAX
};
struct change {
    enum change_kind kind;
    char *path;
};

struct candidate {
    char *top;     /* absolute path of the work tree's root */
    int top_fd;    /* the directory itself, whatever its name becomes */
    char *git_dir; /* of this work tree */
    char *commit, *tree;
    char *origin;               /* URL of remote origin without user or password; NULL when there is none */
    struct tree_entry *entries; /* of the index, in git's order; equal to the tree's when clean */
    size_t entry_count;
    size_t blob_length; /* 40 or 64 */
    struct change *changes;
    size_t change_count;
    struct text listing, nested; /* back the entries of the tree itself and of the submodules */
    struct runner *runner;       /* turned by every loop over the entries; may be NULL; borrowed */
};
/* Of a zeroed one too. */
void candidate_done(struct candidate *candidate);

/* Looks from any directory of the work tree. INVALID: not a repository, bare, unborn or corrupt HEAD, a
 * submodule's own trouble; with git's words. CONFLICT: HEAD moved at every try. */
_must_use_ enum result candidate_look(
    struct runner *runner, const char *directory, struct candidate *ret, struct error *err);

/* INVALID names up to 10 files; an untracked directory counts as one. See config_check_clean() for outputs
 * that are not ignored. */
_must_use_ enum result candidate_check_clean(const struct candidate *candidate, struct error *err);
/* Compares work tree, commit, tree, index with its flags, and changes. */
_must_use_ enum result candidate_check_same(
    const struct candidate *before, const struct candidate *now, struct error *err);

/* What is untracked, in git's order; the files of a directory that holds nothing tracked are one item. */
struct untracked {
    char *path;        /* of a directory with its final slash, or of a file */
    const char *first; /* the first of its files; the candidate's */
    size_t files;
};
struct untracked_list {
    struct untracked *items;
    size_t count, capacity;
};
void untracked_list_done(struct untracked_list *list);
/* Of the paths that are `wanted` (NULL: all). */
void candidate_untracked(const struct candidate *candidate,
    bool (*wanted)(const void *context, const char *path), const void *context, struct untracked_list *ret);

/* The name: `configured` when set, else from the origin URL ("host/path", without port and ".git"), else the
 * directory's name. Owned. */
char *candidate_repository(const struct candidate *candidate, const char *configured);

/* The random id of this checkout, 32 hex digits, kept in the work tree's git directory as "tenure-checkout";
 * made when missing, and of many who make it at once all get the same. CORRUPT when the file holds something
 * else. */
_must_use_ enum result candidate_checkout(
    const struct candidate *candidate, char **ret_id, struct error *err);

/* Paths that changed between two trees and match `globs` (all when count is 0), at most `limit`. Owned, as is
 * each. INVALID: git does not know the old tree. */
_must_use_ enum result candidate_changed(struct runner *runner, const struct candidate *candidate,
    const char *old_tree, const char *const *globs, size_t glob_count, size_t limit, char ***ret_paths,
    size_t *ret_count, struct error *err);

/* The bytes that git would check out for a path of the candidate's commit. INVALID: there is none; with git's
 * words. */
_must_use_ enum result candidate_contents(
    const struct candidate *candidate, const char *path, struct text *ret, struct error *err);
/* The bytes of a file of a commit (git show COMMIT:PATH); ABSENT when it has none. */
_must_use_ enum result repository_show(struct runner *runner, const char *directory, const char *commit,
    const char *path, struct text *ret, struct error *err);
/* The files that git has, or would have after `git add`, by the user's own settings: paths, each ended by a
 * NUL. Also of a repository without a commit. */
_must_use_ enum result repository_files(
    struct runner *runner, int top_fd, struct text *ret, struct error *err);
/* Whether git would pass over this path, which need not exist. */
_must_use_ bool repository_ignores(struct runner *runner, int top_fd, const char *path);
/* Resolves what a person typed (HEAD, a branch, an abbreviation) to commit and tree. ABSENT when unknown. */
_must_use_ enum result repository_resolve(struct runner *runner, const char *directory, const char *typed,
    char **ret_commit, char **ret_tree, struct error *err);

#endif
