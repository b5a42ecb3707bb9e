/* `tenure init`: for every kind of tree a configuration that can be read. */
#include "tests/unit/completion/workshop.h"

#include "completion/demand/config.h"
#include "completion/demand/starter.h"

struct tree {
    const char *kind, *script;
    const char *producer, *run; /* one that must be there, and what it runs */
    const char *chores;         /* what else is to be done; NULL: nothing */
};

#define NO_TEST                                                                                              \
    "{\"scripts\":{\"test\":\"echo \\\"Error: no test specified\\\" && exit 1\",\"build\":\"tsc\"}}"

static const struct tree TREES[] = {
    {"none", "true", "test", "exit 1", NULL},
    {"none", "echo x > README.md; mkdir test; echo x > test/x", "test", "exit 1", NULL},
    {"make", "printf 'all:\\n\\ttrue\\n' > Makefile", "build", "make", NULL},
    {"make", "printf 'all:\\ncheck: all\\n\\ttrue\\n' > GNUmakefile", "check", "make check", NULL},
    {"make", "printf '.PHONY: test\\ntest :\\n\\ttrue\\n' > makefile", "test", "make test", NULL},
    {"make", "printf 'testing:\\n' > Makefile; : > CMakeLists.txt; : > go.mod", "build", "make", NULL},
    {"cmake", ": > CMakeLists.txt; : > package.json", "test", "ctest", "add /build/ to .gitignore"},
    {"cmake", ": > CMakeLists.txt; echo build/ > .gitignore", "test", "ctest", NULL},
    {"meson", ": > meson.build; : > Cargo.toml", "test", "meson test", "add /build/ to .gitignore"},
    {"npm", "printf '%s' '{\"scripts\":{\"test\":\"jest\",\"lint\":\"eslint .\"}}' > package.json", "test",
        "npm test", "add /node_modules/ to .gitignore"},
    {"npm",
        "printf '%s' '{\"scripts\":{\"test\":\"jest\",\"lint\":\"eslint .\"}}' > package.json; : > "
        "package-lock.json",
        "lint", "npm run lint", "add /node_modules/ to .gitignore"},
    {"npm", "printf '%s' '" NO_TEST "' > package.json", "build", "npm run build",
        "add /node_modules/ to .gitignore"},
    {"npm", "printf 'not json' > package.json", "test", "npm test", "add /node_modules/ to .gitignore"},
    {"npm", "printf '{\"scripts\":{\"test\":null}}' > package.json", "test", "npm test",
        "add /node_modules/ to .gitignore"},
    {"npm", "printf '[]' > package.json", "test", "npm test", "add /node_modules/ to .gitignore"},
    {"npm", "printf '{\"scripts\":null}' > package.json", "test", "npm test",
        "add /node_modules/ to .gitignore"},
    {"cargo", ": > Cargo.toml", "test", "cargo test", "add /target/ to .gitignore; commit Cargo.lock"},
    {"cargo", ": > Cargo.toml; : > Cargo.lock", "test", "--locked", "add /target/ to .gitignore"},
    {"go", ": > go.mod", "vet", "go vet ./...", NULL},
    {"go", ": > go.mod; : > setup.py", "test", "go test ./...", NULL},
    {"python", "echo '[tool.pytest.ini_options]' > pyproject.toml", "test", "python3 -m pytest",
        "add __pycache__/ to .gitignore"},
    {"python", "mkdir tests; : > tests/conftest.py; : > setup.py; echo '*.pyc' > .gitignore", "test",
        "python3 -m pytest", "add __pycache__/ to .gitignore"},
    {"python", "mkdir tests; : > tests/test_x.py; : > tests/__init__.py", "test", "discover -s tests -t .",
        "add __pycache__/ to .gitignore"},
    {"python", "mkdir tests; : > tests/test_x.py; echo __pycache__ > .gitignore", "test",
        "discover -s tests\n", NULL},
    {"python", "mkdir tests; : > setup.py", "test", "discover\n", "add __pycache__/ to .gitignore"},
    {"python", ": > x_test.py", "test", "discover\n", "add __pycache__/ to .gitignore"},
    {"none",
        "mkdir build; : > build/x.sh; : > build/CMakeLists.txt; : > build/x_test.py; echo '*' > .gitignore",
        "test", "exit 1", NULL},
    {"shell", "mkdir bin test; : > bin/x.sh; : > test/x.bats", "lint", "shellcheck", NULL},
    {"shell", "mkdir tests; : > tests/x.bats", "test", "bats tests", NULL},
};

static void read_back(const struct tree *tree, const struct text *text)
{
    struct config config;
    _cleanup_(error_done) struct error err = {0};
    if (config_parse(text->bytes, text->length, &config, &err) != RESULT_OK)
        fail_msg("%s: %s\n%s", tree->script, err.message, text->bytes);
    size_t index = config_producer(&config, tree->producer);
    if (index == SIZE_MAX)
        fail_msg("%s: no \"%s\" in %s", tree->script, tree->producer, text->bytes);
    _cleanup_(mem_free) char *line = mem_format("%s\n", config.producers[index].run.words.items[0]);
    assert_has(line, tree->run);
    config_done(&config);
    assert_has(text->bytes, "\"$schema\"");
    assert_has(text->bytes, "tenure.schema.json");
    assert_int_equal(text->bytes[text->length - 1], '\n');
}

static void fits_every_tree(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(TREES); i++) {
        _cleanup_(mem_free) char *name = mem_format("tree%zu", i), *path = place(name);
        _cleanup_(mem_free) char *script = mem_format("git init -q .; %s", TREES[i].script);
        _cleanup_(starter_done) struct starter starter = {0};
        run(name, script);
        int fd = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
        assert_int_equal(starter_make(fd, &starter, NULL), RESULT_OK);
        close(fd);
        if (strcmp(starter.kind, TREES[i].kind) != 0)
            fail_msg("%s: %s", TREES[i].script, starter.kind);
        read_back(&TREES[i], &starter.config);
        assert_string_equal(
            starter.chores.bytes ? starter.chores.bytes : "", TREES[i].chores ? TREES[i].chores : "");
        assert_int_equal(
            starter.ignores, strstr(TREES[i].chores ? TREES[i].chores : "", ".gitignore") != NULL);
        _cleanup_(mem_free) char *left = shell(name, "ls -A | grep -c tenure || true");
        assert_string_equal(left, "0\n");
    }
}

static void needs_a_directory(void **state)
{
    (void)state;
    _cleanup_(error_done) struct error err = {0};
    struct starter starter = {0};
    assert_int_equal(starter_make(-1, &starter, &err), RESULT_SYSTEM);
    assert_null(starter.kind);
    assert_int_equal(starter.config.length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits_every_tree),
        cmocka_unit_test(needs_a_directory),
    };
    return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
