#include "completion/demand/starter.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json_table.h"
#include "base/memory.h"
#include "completion/repository/candidate.h"

/* Where editors find the schema: the build says where it is installed to. */
#ifndef TENURE_SCHEMA_URL
#error "the build must define TENURE_SCHEMA_URL"
#endif

#define PEEK_LIMIT_BYTES (1024 * 1024)
#define WORDS_MAX        4

/* ---- looking ---- */

/* The files that git has, or would have after `git add`: an empty directory is nothing, and neither is what
 * is ignored. */
struct tree {
    int top_fd;
    struct text listing; /* paths, each ended by a NUL */
};

static void tree_done(struct tree *tree)
{
    text_done(&tree->listing);
}

static const char *next_path(const struct tree *tree, const char *path)
{
    const char *next = path ? path + strlen(path) + 1 : tree->listing.bytes;
    return tree->listing.length > 0 && next < tree->listing.bytes + tree->listing.length ? next : NULL;
}

static bool has(const struct tree *tree, const char *file)
{
    for (const char *path = next_path(tree, NULL); path; path = next_path(tree, path))
        if (strcmp(path, file) == 0)
            return true;
    return false;
}

/* Some line of the file matches one of the patterns (fnmatch(3), NULL-terminated). */
static bool file_says(const struct tree *tree, const char *path, const char *const *patterns)
{
    _cleanup_(text_done) struct text text = {0};
    if (!has(tree, path) ||
        file_read(tree->top_fd, path, false, PEEK_LIMIT_BYTES, &text, NULL) != RESULT_OK || !text.length)
        return false;
    char *rest = text.bytes;
    for (char *line = strsep(&rest, "\r\n"); line; line = strsep(&rest, "\r\n"))
        for (const char *const *pattern = patterns; *pattern; pattern++)
            if (fnmatch(*pattern, line, 0) == 0)
                return true;
    return false;
}

/* The name of a file that lies directly in the directory ("." is the top); NULL when it does not. */
static const char *name_in(const char *path, const char *directory)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (strcmp(directory, ".") == 0)
        return slash ? NULL : path;
    return slash && strlen(directory) == length && strncmp(path, directory, length) == 0 ? slash + 1 : NULL;
}

/* Some file of the directory matches one of the patterns. */
static bool directory_has(const struct tree *tree, const char *directory, const char *const *patterns)
{
    for (const char *path = next_path(tree, NULL); path; path = next_path(tree, path)) {
        const char *name = name_in(path, directory);
        for (const char *const *pattern = patterns; name && *pattern; pattern++)
            if (fnmatch(*pattern, name, FNM_PERIOD) == 0)
                return true;
    }
    return false;
}

/* ---- writing ---- */

static struct json_object *words(const char *const *items)
{
    struct json_object *array = json_object_new_array();
    for (; *items; items++)
        json_object_array_add(array, json_object_new_string(*items));
    return array;
}

/* Lists are NULL-terminated; an empty one is left out. */
struct draft {
    const char *name, *run;
    const char *needs[WORDS_MAX], *tools[WORDS_MAX];
};

static void add_list(struct json_object *object, const char *key, const char *const *items)
{
    if (items[0])
        json_object_object_add(object, key, words(items));
}

static void add_producer(struct json_object *producers, const struct draft *draft)
{
    struct json_object *producer = json_object_new_object();
    json_object_object_add(producer, "run", json_object_new_string(draft->run));
    add_list(producer, "needs", draft->needs);
    add_list(producer, "tools", draft->tools);
    json_object_object_add(producers, draft->name, producer);
}

static void add_procedure(struct json_object *root, const char *name, const char *run)
{
    struct json_object *procedures = json_object_new_object(), *procedure = json_object_new_object();
    json_object_object_add(procedure, "run", json_object_new_string(run));
    json_object_object_add(procedure, "when", json_object_new_string("before"));
    json_object_object_add(procedures, name, procedure);
    json_object_object_add(root, "procedures", procedures);
}

/* ---- what it can be ---- */

struct kind {
    const char *name;
    bool (*found)(const struct tree *tree);
    /* Adds producers, and perhaps procedures to the root. */
    void (*write)(const struct tree *tree, struct json_object *root, struct json_object *producers);
    const char *leaves[WORDS_MAX]; /* directories that its runs leave behind, wherever; NULL-terminated */
    const char *lock;              /* file that a run would make when it is not committed */
};

static const char *makefile(const struct tree *tree)
{
    static const char *const NAMES[] = {"GNUmakefile", "makefile", "Makefile"}; /* in make's own order */
    for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++)
        if (has(tree, NAMES[i]))
            return NAMES[i];
    return NULL;
}

static bool make_found(const struct tree *tree)
{
    return makefile(tree) != NULL;
}

static bool make_has_target(const struct tree *tree, const char *target)
{
    _cleanup_(mem_free) char *alone = mem_format("%s:*", target);
    _cleanup_(mem_free) char *spaced = mem_format("%s[ \t]*:*", target);
    const char *const patterns[] = {alone, spaced, NULL};
    return file_says(tree, makefile(tree), patterns);
}

/* One producer: what a build leaves behind is not known here, and a test that is run without it fails. */
static void make_write(const struct tree *tree, struct json_object *root, struct json_object *producers)
{
    (void)root;
    if (make_has_target(tree, "check"))
        add_producer(producers, &(struct draft){.name = "check", .run = "make check", .tools = {"make"}});
    else if (make_has_target(tree, "test"))
        add_producer(producers, &(struct draft){.name = "test", .run = "make test", .tools = {"make"}});
    else
        add_producer(producers, &(struct draft){.name = "build", .run = "make", .tools = {"make"}});
}

static bool cmake_found(const struct tree *tree)
{
    return has(tree, "CMakeLists.txt");
}

static void cmake_write(const struct tree *tree, struct json_object *root, struct json_object *producers)
{
    (void)tree;
    (void)root;
    add_producer(producers, &(struct draft){.name = "test",
                                .run = "cmake -S . -B build && cmake --build build && "
                                       "ctest --test-dir build --output-on-failure",
                                .tools = {"cmake", "ctest"}});
}

static bool meson_found(const struct tree *tree)
{
    return has(tree, "meson.build");
}

static void meson_write(const struct tree *tree, struct json_object *root, struct json_object *producers)
{
    (void)tree;
    (void)root;
    add_producer(producers,
        &(struct draft){.name = "test",
            .run = "{ test -d build || meson setup build; } && meson test -C build --print-errorlogs",
            .tools = {"meson", "ninja"}});
}

static bool npm_found(const struct tree *tree)
{
    return has(tree, "package.json");
}

/* What `npm init` writes where there are no tests counts as none. */
static bool npm_has_script(const struct tree *tree, const char *name)
{
    _cleanup_(text_done) struct text text = {0};
    struct json_document document = {0};
    struct json_object *scripts, *script;
    if (file_read(tree->top_fd, "package.json", false, PEEK_LIMIT_BYTES, &text, NULL) != RESULT_OK ||
        json_document_parse(text.bytes ? text.bytes : "", text.length, "package.json", &document, NULL) !=
            RESULT_OK)
        return false;
    bool found = json_object_object_get_ex(document.root, "scripts", &scripts) &&
                 json_object_object_get_ex(scripts, name, &script) &&
                 json_object_is_type(script, json_type_string) &&
                 !strstr(json_object_get_string(script), "no test specified");
    json_document_done(&document);
    return found;
}

static void npm_write(const struct tree *tree, struct json_object *root, struct json_object *producers)
{
    static const char *const SCRIPTS[][2] = {
        {"lint", "npm run lint"}, {"test", "npm test"}, {"build", "npm run build"}};
    add_procedure(
        root, "install", has(tree, "package-lock.json") ? "npm ci" : "npm install --no-package-lock");
    for (size_t i = 0; i < ARRAY_SIZE(SCRIPTS); i++)
        if (npm_has_script(tree, SCRIPTS[i][0]))
            add_producer(
                producers, &(struct draft){.name = SCRIPTS[i][0], .run = SCRIPTS[i][1], .tools = {"node"}});
    if (json_object_object_length(producers) == 0)
        add_producer(producers, &(struct draft){.name = "test", .run = "npm test", .tools = {"node"}});
}

static bool cargo_found(const struct tree *tree)
{
    return has(tree, "Cargo.toml");
}

static void cargo_write(const struct tree *tree, struct json_object *root, struct json_object *producers)
{
    add_producer(producers, &(struct draft){.name = "test",
                                .run = has(tree, "Cargo.lock") ? "cargo test --locked" : "cargo test",
                                .tools = {"cargo", "rustc"}});
    (void)root;
}

static bool go_found(const struct tree *tree)
{
    return has(tree, "go.mod");
}

static void go_write(const struct tree *tree, struct json_object *root, struct json_object *producers)
{
    (void)tree;
    (void)root;
    add_producer(producers, &(struct draft){.name = "vet", .run = "go vet ./...", .tools = {"go"}});
    add_producer(producers, &(struct draft){.name = "test", .run = "go test ./...", .tools = {"go"}});
}

static const char *const PYTHON_TESTS[] = {"test_*.py", "*_test.py", NULL};

static bool python_found(const struct tree *tree)
{
    return has(tree, "pyproject.toml") || has(tree, "setup.py") || has(tree, "setup.cfg") ||
           has(tree, "tox.ini") || has(tree, "pytest.ini") || has(tree, "requirements.txt") ||
           directory_has(tree, ".", PYTHON_TESTS) || directory_has(tree, "tests", PYTHON_TESTS) ||
           directory_has(tree, "test", PYTHON_TESTS);
}

static bool python_uses_pytest(const struct tree *tree)
{
    static const char *const FILES[] = {"pyproject.toml", "setup.cfg", "setup.py", "tox.ini",
        "requirements.txt", "requirements-dev.txt", "dev-requirements.txt"};
    static const char *const SAYS[] = {"*pytest*", NULL};
    if (has(tree, "pytest.ini") || has(tree, "conftest.py") || has(tree, "tests/conftest.py"))
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(FILES); i++)
        if (file_says(tree, FILES[i], SAYS))
            return true;
    return false;
}

static void python_write(const struct tree *tree, struct json_object *root, struct json_object *producers)
{
    (void)root;
    const char *run = "python3 -m unittest discover";
    if (python_uses_pytest(tree))
        run = "python3 -m pytest";
    else if (has(tree, "tests/__init__.py"))
        run = "python3 -m unittest discover -s tests -t ."; /* -t wants a package */
    else if (directory_has(tree, "tests", PYTHON_TESTS))
        run = "python3 -m unittest discover -s tests";
    add_producer(producers, &(struct draft){.name = "test", .run = run, .tools = {"python3"}});
}

static const char *const SHELL_DIRECTORIES[] = {".", "bin", "scripts", "tools", "src"};
static const char *const BATS_DIRECTORIES[][2] = {
    {"test", "bats test"}, {"tests", "bats tests"}, {".", "bats ."}};

static const char *bats_command(const struct tree *tree)
{
    static const char *const TESTS[] = {"*.bats", NULL};
    for (size_t i = 0; i < ARRAY_SIZE(BATS_DIRECTORIES); i++)
        if (directory_has(tree, BATS_DIRECTORIES[i][0], TESTS))
            return BATS_DIRECTORIES[i][1];
    return NULL;
}

static bool shell_has_scripts(const struct tree *tree)
{
    static const char *const SCRIPTS[] = {"*.sh", "*.bash", NULL};
    for (size_t i = 0; i < ARRAY_SIZE(SHELL_DIRECTORIES); i++)
        if (directory_has(tree, SHELL_DIRECTORIES[i], SCRIPTS))
            return true;
    return false;
}

static bool shell_found(const struct tree *tree)
{
    return shell_has_scripts(tree) || bats_command(tree);
}

static void shell_write(const struct tree *tree, struct json_object *root, struct json_object *producers)
{
    (void)root;
    const char *bats = bats_command(tree);
    if (shell_has_scripts(tree))
        add_producer(producers, &(struct draft){.name = "lint",
                                    .run = "git ls-files -z -- '*.sh' '*.bash' | xargs -0 shellcheck",
                                    .tools = {"shellcheck"}});
    if (bats)
        add_producer(producers, &(struct draft){.name = "test", .run = bats, .tools = {"bats"}});
}

static bool anything(const struct tree *tree)
{
    (void)tree;
    return true;
}

/* Fails until somebody has filled it in: a Proof of nothing would be worse than none. */
static void none_write(const struct tree *tree, struct json_object *root, struct json_object *producers)
{
    (void)tree;
    (void)root;
    add_producer(
        producers, &(struct draft){.name = "test",
                       .run = "echo 'write the command that tests this tree into tenure.json' >&2; exit 1"});
}

/* The first that is found counts. */
static const struct kind KINDS[] = {
    {"make", make_found, make_write, {NULL}, NULL},
    {"cmake", cmake_found, cmake_write, {"/build/"}, NULL},
    {"meson", meson_found, meson_write, {"/build/"}, NULL},
    {"npm", npm_found, npm_write, {"/node_modules/"}, NULL},
    {"cargo", cargo_found, cargo_write, {"/target/"}, "Cargo.lock"},
    {"go", go_found, go_write, {NULL}, NULL},
    {"python", python_found, python_write, {"__pycache__/"}, NULL},
    {"shell", shell_found, shell_write, {NULL}, NULL},
    {"none", anything, none_write, {NULL}, NULL},
};

static const struct kind *kind_find(const struct tree *tree)
{
    const struct kind *kind = KINDS;
    while (!kind->found(tree))
        kind++;
    return kind;
}

/* ---- what has to be done besides ---- */

/* Something in it would be ignored. */
static bool is_ignored(int top_fd, const char *line)
{
    _cleanup_(mem_free) char *path = mem_format("%sx", line + (*line == '/'));
    return repository_ignores(collect_runner(), top_fd, path);
}

static void add_chores(const struct tree *tree, const struct kind *kind, struct starter *starter)
{
    struct text *ret = &starter->chores;
    const char *between = "add ";
    for (const char *const *line = kind->leaves; *line; line++) {
        if (is_ignored(tree->top_fd, *line))
            continue;
        text_addf(ret, "%s%s", between, *line);
        between = ", ";
    }
    starter->ignores = ret->length > 0;
    if (starter->ignores)
        text_add(ret, " to .gitignore");
    if (kind->lock && !has(tree, kind->lock))
        text_addf(ret, "%scommit %s", ret->length > 0 ? "; " : "", kind->lock);
}

static void write_config(const struct tree *tree, const struct kind *kind, struct text *ret)
{
    struct json_object *root = json_object_new_object(), *producers = json_object_new_object();
    json_object_object_add(root, "$schema", json_object_new_string(TENURE_SCHEMA_URL));
    kind->write(tree, root, producers);
    json_object_object_add(root, "producers", producers);
    text_add(ret, json_object_to_json_string_ext(root,
                      JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE));
    text_add(ret, "\n");
    json_object_put(root);
}

enum result starter_make(int top_fd, struct starter *ret, struct error *err)
{
    _cleanup_(tree_done) struct tree tree = {.top_fd = top_fd};
    if (fcntl(top_fd, F_GETFD) < 0)
        return error_errno(err, errno, "cannot look into the work tree");
    enum result r = repository_files(collect_runner(), top_fd, &tree.listing, err);
    if (r != RESULT_OK)
        return r;
    const struct kind *kind = kind_find(&tree);
    *ret = (struct starter){.kind = kind->name};
    write_config(&tree, kind, &ret->config);
    add_chores(&tree, kind, ret);
    return RESULT_OK;
}

void starter_done(struct starter *starter)
{
    text_done(&starter->config);
    text_done(&starter->chores);
}
