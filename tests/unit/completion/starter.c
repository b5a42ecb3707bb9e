/* `tenure init`: for every kind of tree a configuration that can be read. */
#include "tests/unit/completion/workshop.h"

#include "completion/demand/config.h"
#include "completion/demand/starter.h"

struct tree {
    const char *kind, *script;
    const char *producer, *run; /* one that must be there, and what it runs */
};

#define NO_TEST                                                                                              \
    "{\"scripts\":{\"test\":\"echo \\\"Error: no test specified\\\" && exit 1\",\"build\":\"tsc\"}}"

static const struct tree TREES[] = {
    {"none", "true", "test", "exit 1"},
    {"none", "echo x > README.md; mkdir test; echo x > test/x", "test", "exit 1"},
    {"make", "printf 'all:\\n\\ttrue\\n' > Makefile", "build", "make"},
    {"make", "printf 'all:\\ncheck: all\\n\\ttrue\\n' > GNUmakefile", "check", "make check"},
    {"make", "printf '.PHONY: test\\ntest :\\n\\ttrue\\n' > makefile", "test", "make test"},
    {"make", "printf 'testing:\\n' > Makefile; : > CMakeLists.txt; : > go.mod", "build", "make"},
    {"cmake", ": > CMakeLists.txt; : > package.json", "test", "ctest"},
    {"meson", ": > meson.build; : > Cargo.toml", "test", "meson test"},
    {"npm", "printf '%s' '{\"scripts\":{\"test\":\"jest\",\"lint\":\"eslint .\"}}' > package.json", "test",
        "npm test"},
    {"npm",
        "printf '%s' '{\"scripts\":{\"test\":\"jest\",\"lint\":\"eslint .\"}}' > package.json; : > "
        "package-lock.json",
        "lint", "npm run lint"},
    {"npm", "printf '%s' '" NO_TEST "' > package.json", "build", "npm run build"},
    {"npm", "printf 'not json' > package.json", "test", "npm test"},
    {"npm", "printf '{\"scripts\":{\"test\":null}}' > package.json", "test", "npm test"},
    {"npm", "printf '[]' > package.json", "test", "npm test"},
    {"npm", "printf '{\"scripts\":null}' > package.json", "test", "npm test"},
    {"cargo", ": > Cargo.toml", "test", "cargo test"},
    {"cargo", ": > Cargo.toml; : > Cargo.lock", "test", "--locked"},
    {"go", ": > go.mod", "vet", "go vet ./..."},
    {"go", ": > go.mod; : > setup.py", "test", "go test ./..."},
    {"python", "echo '[tool.pytest.ini_options]' > pyproject.toml", "test", "python3 -m pytest"},
    {"python", "mkdir tests; : > tests/conftest.py; : > setup.py", "test", "python3 -m pytest"},
    {"python", "mkdir tests; : > tests/test_x.py", "test", "unittest discover -s tests"},
    {"python", ": > x_test.py", "test", "unittest discover"},
    {"shell", "mkdir bin test; : > bin/x.sh; : > test/x.bats", "lint", "shellcheck"},
    {"shell", "mkdir tests; : > tests/x.bats", "test", "bats tests"},
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
    assert_has(config.producers[index].run.words.items[0], tree->run);
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
        _cleanup_(text_done) struct text text = {0};
        const char *kind = NULL;
        run(name, TREES[i].script);
        int fd = open(path, O_DIRECTORY | O_PATH | O_CLOEXEC);
        assert_int_equal(starter_make(fd, &text, &kind, NULL), RESULT_OK);
        close(fd);
        if (strcmp(kind, TREES[i].kind) != 0)
            fail_msg("%s: %s", TREES[i].script, kind);
        read_back(&TREES[i], &text);
        _cleanup_(mem_free) char *left = shell(name, "ls -A | grep -c tenure || true");
        assert_string_equal(left, "0\n");
    }
}

static void needs_a_directory(void **state)
{
    (void)state;
    _cleanup_(text_done) struct text text = {0};
    _cleanup_(error_done) struct error err = {0};
    const char *kind = NULL;
    assert_int_equal(starter_make(-1, &text, &kind, &err), RESULT_SYSTEM);
    assert_null(kind);
    assert_int_equal(text.length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits_every_tree),
        cmocka_unit_test(needs_a_directory),
    };
    return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
