#include "completion/demand/starter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json_table.h"
#include "base/memory.h"

/* Where editors find the schema: the build says where it is installed to. */
#ifndef TENURE_SCHEMA_URL
#error "the build must define TENURE_SCHEMA_URL"
#endif

#define PEEK_LIMIT_BYTES (1024 * 1024)
#define WORDS_MAX        4

/* ---- looking ---- */

static bool has(int top_fd, const char *path)
{
    return faccessat(top_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Some line of the file matches one of the patterns (fnmatch(3), NULL-terminated). */
static bool file_says(int top_fd, const char *path, const char *const *patterns)
{
    _cleanup_(text_done) struct text text = {0};
    if (file_read(top_fd, path, false, PEEK_LIMIT_BYTES, &text, NULL) != RESULT_OK || !text.length)
        return false;
    char *rest = text.bytes;
    for (char *line = strsep(&rest, "\r\n"); line; line = strsep(&rest, "\r\n"))
        for (const char *const *pattern = patterns; *pattern; pattern++)
            if (fnmatch(*pattern, line, 0) == 0)
                return true;
    return false;
}

/* Some file of the directory matches one of the patterns. */
static bool directory_has(int top_fd, const char *path, const char *const *patterns)
{
    int fd = openat(top_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (!directory) {
        fd_close(fd);
        return false;
    }
    bool found = false;
    for (struct dirent *entry = readdir(directory); entry && !found; entry = readdir(directory))
        for (const char *const *pattern = patterns; *pattern && !found; pattern++)
            found = fnmatch(*pattern, entry->d_name, FNM_PERIOD) == 0;
    closedir(directory);
    return found;
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
    bool (*found)(int top_fd);
    /* Adds producers, and perhaps procedures to the root. */
    void (*write)(int top_fd, struct json_object *root, struct json_object *producers);
};

static const char *makefile(int top_fd)
{
    static const char *const NAMES[] = {"GNUmakefile", "makefile", "Makefile"}; /* in make's own order */
    for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++)
        if (has(top_fd, NAMES[i]))
            return NAMES[i];
    return NULL;
}

static bool make_found(int top_fd)
{
    return makefile(top_fd) != NULL;
}

static bool make_has_target(int top_fd, const char *target)
{
    _cleanup_(mem_free) char *alone = mem_format("%s:*", target);
    _cleanup_(mem_free) char *spaced = mem_format("%s[ \t]*:*", target);
    const char *const patterns[] = {alone, spaced, NULL};
    return file_says(top_fd, makefile(top_fd), patterns);
}

/* One producer: what a build leaves behind is not known here, and a test that is run without it fails. */
static void make_write(int top_fd, struct json_object *root, struct json_object *producers)
{
    (void)root;
    if (make_has_target(top_fd, "check"))
        add_producer(producers, &(struct draft){.name = "check", .run = "make check", .tools = {"make"}});
    else if (make_has_target(top_fd, "test"))
        add_producer(producers, &(struct draft){.name = "test", .run = "make test", .tools = {"make"}});
    else
        add_producer(producers, &(struct draft){.name = "build", .run = "make", .tools = {"make"}});
}

static bool cmake_found(int top_fd)
{
    return has(top_fd, "CMakeLists.txt");
}

static void cmake_write(int top_fd, struct json_object *root, struct json_object *producers)
{
    (void)top_fd;
    (void)root;
    add_producer(producers, &(struct draft){.name = "test",
                                .run = "cmake -S . -B build && cmake --build build && "
                                       "ctest --test-dir build --output-on-failure",
                                .tools = {"cmake", "ctest"}});
}

static bool meson_found(int top_fd)
{
    return has(top_fd, "meson.build");
}

static void meson_write(int top_fd, struct json_object *root, struct json_object *producers)
{
    (void)top_fd;
    (void)root;
    add_producer(producers,
        &(struct draft){.name = "test",
            .run = "{ test -d build || meson setup build; } && meson test -C build --print-errorlogs",
            .tools = {"meson", "ninja"}});
}

static bool npm_found(int top_fd)
{
    return has(top_fd, "package.json");
}

/* What `npm init` writes where there are no tests counts as none. */
static bool npm_has_script(int top_fd, const char *name)
{
    _cleanup_(text_done) struct text text = {0};
    struct json_document document = {0};
    struct json_object *scripts, *script;
    if (file_read(top_fd, "package.json", false, PEEK_LIMIT_BYTES, &text, NULL) != RESULT_OK ||
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

static void npm_write(int top_fd, struct json_object *root, struct json_object *producers)
{
    static const char *const SCRIPTS[][2] = {
        {"lint", "npm run lint"}, {"test", "npm test"}, {"build", "npm run build"}};
    add_procedure(
        root, "install", has(top_fd, "package-lock.json") ? "npm ci" : "npm install --no-package-lock");
    for (size_t i = 0; i < ARRAY_SIZE(SCRIPTS); i++)
        if (npm_has_script(top_fd, SCRIPTS[i][0]))
            add_producer(
                producers, &(struct draft){.name = SCRIPTS[i][0], .run = SCRIPTS[i][1], .tools = {"node"}});
    if (json_object_object_length(producers) == 0)
        add_producer(producers, &(struct draft){.name = "test", .run = "npm test", .tools = {"node"}});
}

static bool cargo_found(int top_fd)
{
    return has(top_fd, "Cargo.toml");
}

static void cargo_write(int top_fd, struct json_object *root, struct json_object *producers)
{
    add_producer(producers, &(struct draft){.name = "test",
                                .run = has(top_fd, "Cargo.lock") ? "cargo test --locked" : "cargo test",
                                .tools = {"cargo", "rustc"}});
    (void)root;
}

static bool go_found(int top_fd)
{
    return has(top_fd, "go.mod");
}

static void go_write(int top_fd, struct json_object *root, struct json_object *producers)
{
    (void)top_fd;
    (void)root;
    add_producer(producers, &(struct draft){.name = "vet", .run = "go vet ./...", .tools = {"go"}});
    add_producer(producers, &(struct draft){.name = "test", .run = "go test ./...", .tools = {"go"}});
}

static bool python_found(int top_fd)
{
    static const char *const TESTS[] = {"test_*.py", "*_test.py", NULL};
    return has(top_fd, "pyproject.toml") || has(top_fd, "setup.py") || has(top_fd, "setup.cfg") ||
           has(top_fd, "tox.ini") || has(top_fd, "pytest.ini") || has(top_fd, "requirements.txt") ||
           directory_has(top_fd, ".", TESTS) || directory_has(top_fd, "tests", TESTS) ||
           directory_has(top_fd, "test", TESTS);
}

static bool python_uses_pytest(int top_fd)
{
    static const char *const FILES[] = {"pyproject.toml", "setup.cfg", "setup.py", "tox.ini",
        "requirements.txt", "requirements-dev.txt", "dev-requirements.txt"};
    static const char *const SAYS[] = {"*pytest*", NULL};
    if (has(top_fd, "pytest.ini") || has(top_fd, "conftest.py") || has(top_fd, "tests/conftest.py"))
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(FILES); i++)
        if (file_says(top_fd, FILES[i], SAYS))
            return true;
    return false;
}

static void python_write(int top_fd, struct json_object *root, struct json_object *producers)
{
    (void)root;
    const char *run = "python3 -m unittest discover";
    if (python_uses_pytest(top_fd))
        run = "python3 -m pytest";
    else if (has(top_fd, "tests"))
        run = "python3 -m unittest discover -s tests -t .";
    add_producer(producers, &(struct draft){.name = "test", .run = run, .tools = {"python3"}});
}

static const char *const SHELL_DIRECTORIES[] = {".", "bin", "scripts", "tools", "src"};
static const char *const BATS_DIRECTORIES[][2] = {
    {"test", "bats test"}, {"tests", "bats tests"}, {".", "bats ."}};

static const char *bats_command(int top_fd)
{
    static const char *const TESTS[] = {"*.bats", NULL};
    for (size_t i = 0; i < ARRAY_SIZE(BATS_DIRECTORIES); i++)
        if (directory_has(top_fd, BATS_DIRECTORIES[i][0], TESTS))
            return BATS_DIRECTORIES[i][1];
    return NULL;
}

static bool shell_has_scripts(int top_fd)
{
    static const char *const SCRIPTS[] = {"*.sh", "*.bash", NULL};
    for (size_t i = 0; i < ARRAY_SIZE(SHELL_DIRECTORIES); i++)
        if (directory_has(top_fd, SHELL_DIRECTORIES[i], SCRIPTS))
            return true;
    return false;
}

static bool shell_found(int top_fd)
{
    return shell_has_scripts(top_fd) || bats_command(top_fd);
}

static void shell_write(int top_fd, struct json_object *root, struct json_object *producers)
{
    (void)root;
    const char *bats = bats_command(top_fd);
    if (shell_has_scripts(top_fd))
        add_producer(producers, &(struct draft){.name = "lint",
                                    .run = "git ls-files -z -- '*.sh' '*.bash' | xargs -0 shellcheck",
                                    .tools = {"shellcheck"}});
    if (bats)
        add_producer(producers, &(struct draft){.name = "test", .run = bats, .tools = {"bats"}});
}

static bool anything(int top_fd)
{
    (void)top_fd;
    return true;
}

/* Fails until somebody has filled it in: a Proof of nothing would be worse than none. */
static void none_write(int top_fd, struct json_object *root, struct json_object *producers)
{
    (void)top_fd;
    (void)root;
    add_producer(
        producers, &(struct draft){.name = "test",
                       .run = "echo 'write the command that tests this tree into tenure.json' >&2; exit 1"});
}

/* The first that is found counts. */
static const struct kind KINDS[] = {
    {"make", make_found, make_write},
    {"cmake", cmake_found, cmake_write},
    {"meson", meson_found, meson_write},
    {"npm", npm_found, npm_write},
    {"cargo", cargo_found, cargo_write},
    {"go", go_found, go_write},
    {"python", python_found, python_write},
    {"shell", shell_found, shell_write},
    {"none", anything, none_write},
};

static const struct kind *kind_find(int top_fd)
{
    const struct kind *kind = KINDS;
    while (!kind->found(top_fd))
        kind++;
    return kind;
}

enum result starter_make(int top_fd, struct text *ret, const char **ret_kind, struct error *err)
{
    if (fcntl(top_fd, F_GETFD) < 0)
        return error_errno(err, errno, "cannot look into the work tree");
    const struct kind *kind = kind_find(top_fd);
    struct json_object *root = json_object_new_object(), *producers = json_object_new_object();
    json_object_object_add(root, "$schema", json_object_new_string(TENURE_SCHEMA_URL));
    kind->write(top_fd, root, producers);
    json_object_object_add(root, "producers", producers);
    text_add(ret, json_object_to_json_string_ext(root,
                      JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE));
    text_add(ret, "\n");
    json_object_put(root);
    *ret_kind = kind->name;
    return RESULT_OK;
}
