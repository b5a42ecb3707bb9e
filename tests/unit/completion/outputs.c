#include "tests/unit/completion/proof-fixture.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "completion/evidence/evidence.h"

/* One tree: a file, a link, a directory with a file in a directory, an empty directory. */
static char *tree_make(void)
{
    char *top = scratch_make();
    static const char *const DIRECTORIES[] = {"dist", "dist/lib", "dist/empty"};
    for (size_t i = 0; i < ARRAY_SIZE(DIRECTORIES); i++) {
        char *path = mem_format("%s/%s", top, DIRECTORIES[i]);
        assert_int_equal(mkdir(path, 0755), 0);
        assert_int_equal(chmod(path, 0755), 0);
        free(path);
    }
    text_file_put(top, "widget", "binary\n", 0755);
    text_file_put(top, "dist/a.txt", "a\n", 0644);
    text_file_put(top, "dist/lib/b.so", "b\n", 0755);
    char *link = mem_format("%s/current", top);
    assert_int_equal(symlink("widget", link), 0);
    free(link);
    return top;
}

static char *const PATHS[] = {(char *)"widget", (char *)"dist", (char *)"current", (char *)"report.xml"};
static const struct strings ALL = {.items = (char **)PATHS, .count = ARRAY_SIZE(PATHS)};

static enum result look(
    const char *top, const struct strings *paths, struct output_states *ret, struct error *err)
{
    int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    enum result r = outputs_look(fd, paths, NULL, ret, err);
    close(fd);
    return r;
}

static void look_all(const char *top, struct output_states *ret)
{
    _cleanup_(error_done) struct error err = {0};
    if (look(top, &ALL, ret, &err) != RESULT_OK)
        fail_msg("%s", err.message);
}

static void states_are_as_found(void **state _unused_)
{
    char *top = tree_make();
    char digest[DIGEST_HEX_SIZE];
    _cleanup_(output_states_done) struct output_states states = {0};
    look_all(top, &states);
    assert_int_equal(states.count, 4);
    assert_string_equal(states.items[0].path, "widget");
    assert_int_equal(states.items[0].mode, S_IFREG | 0755);
    digest_hex("binary\n", 7, digest);
    assert_string_equal(states.items[0].digest, digest);
    assert_int_equal(states.items[1].mode, S_IFDIR | 0755);
    assert_int_equal(states.items[2].mode & S_IFMT, S_IFLNK);
    digest_hex("widget", 6, digest);
    assert_string_equal(states.items[2].digest, digest);
    assert_int_equal(states.items[3].mode, 0);
    assert_string_equal(states.items[3].digest, "");
    scratch_remove(top);
}

/* What may be done to a tree, as shell below its top; each must be noticed. */
static const char *const CHANGES[] = {
    "rm widget",
    "printf 'Binary\\n' >widget",
    "printf x >>widget",
    ": >widget",
    "chmod 644 widget",
    "chmod u+s widget",
    "mv widget other && ln -s other widget",
    "rm widget && mkdir widget",
    "ln -sf dist current",
    "rm current && cp widget current",
    "rm dist/a.txt",
    "printf A >dist/a.txt",
    "chmod 600 dist/a.txt",
    "mv dist/a.txt dist/b.txt",
    "mv dist/a.txt dist/lib/a.txt",
    "mv dist/a.txt x && ln -s ../x dist/a.txt",
    "touch dist/.hidden",
    "chmod 700 dist/lib",
    "chmod 700 dist",
    "rmdir dist/empty",
    "mkdir dist/empty/more",
    "printf B >dist/lib/b.so",
    "rm -r dist",
    "mv dist d && ln -s d dist",
    "touch report.xml",
};

static void every_change_is_noticed(void **state _unused_)
{
    for (size_t i = 0; i < ARRAY_SIZE(CHANGES); i++) {
        char *top = tree_make();
        char *command = mem_format("umask 022; cd %s && { %s; }", top, CHANGES[i]);
        _cleanup_(output_states_done) struct output_states before = {0}, same = {0}, after = {0};
        look_all(top, &before);
        look_all(top, &same);
        assert_true(outputs_equal(&before, &same));
        assert_int_equal(system(command), 0);
        look_all(top, &after);
        if (outputs_equal(&before, &after))
            fail_msg("not noticed: %s", CHANGES[i]);
        free(command);
        scratch_remove(top);
    }
}

static void equal_content_elsewhere_is_equal(void **state _unused_)
{
    char *one = tree_make(), *other = tree_make();
    /* Other times, another order of creation. */
    char *command =
        mem_format("umask 022; cd %s && rm dist/a.txt && touch dist/z && printf 'a\\n' >dist/a.txt && "
                   "rm dist/z && touch -d 2001-01-01 widget dist dist/a.txt",
            other);
    _cleanup_(output_states_done) struct output_states here = {0}, there = {0};
    assert_int_equal(system(command), 0);
    look_all(one, &here);
    look_all(other, &there);
    assert_true(outputs_equal(&here, &there));
    free(command);
    scratch_remove(one);
    scratch_remove(other);
}

static void the_order_of_declaration_does_not_matter(void **state _unused_)
{
    char *const turned[] = {PATHS[3], PATHS[1], PATHS[0], PATHS[2]};
    const struct strings paths = {.items = (char **)turned, .count = 4};
    char *top = tree_make();
    _cleanup_(output_states_done) struct output_states a = {0}, b = {0}, none = {0};
    look_all(top, &a);
    assert_int_equal(look(top, &paths, &b, NULL), RESULT_OK);
    assert_true(outputs_equal(&a, &b));
    assert_false(outputs_equal(&a, &none));
    scratch_remove(top);
}

/* The digest enters keys that live for years. */
static void the_encoding_is_pinned(void **state _unused_)
{
    char *top = tree_make(), digest[DIGEST_HEX_SIZE];
    struct output_states none = {0};
    char *const some[] = {PATHS[0], PATHS[1], PATHS[3]}; /* a link's mode is the file system's */
    const struct strings paths = {.items = (char **)some, .count = 3};
    _cleanup_(output_states_done) struct output_states states = {0};
    assert_int_equal(look(top, &paths, &states, NULL), RESULT_OK);
    outputs_digest(&states, digest);
    assert_string_equal(digest, "37cf7c1e2fa42f4817962a141adf3dc40b4c9663cf1e147dbb8eeba7f6dc7cf0");
    outputs_digest(&none, digest);
    assert_string_equal(digest, "5b0c48287687a37fe61e6dfe089ea25662a228c7627bb9491651e57ad4ffad6c");
    scratch_remove(top);
}

static void assert_look_refused(const char *top, const char *path)
{
    char *const list[] = {(char *)path};
    const struct strings paths = {.items = (char **)list, .count = 1};
    struct output_states states = {0};
    _cleanup_(error_done) struct error err = {0};
    enum result r = look(top, &paths, &states, &err);
    if (r != RESULT_INVALID)
        fail_msg("%s: %s", path, result_name(r));
    assert_null(states.items);
    assert_non_null(err.remedy);
}

static void no_link_is_followed(void **state _unused_)
{
    char *top = tree_make();
    char *command = mem_format("cd %s && ln -s dist inner && ln -s / outer && ln -s .. dist/up", top);
    assert_int_equal(system(command), 0);
    assert_look_refused(top, "inner/a.txt");
    assert_look_refused(top, "inner/lib/b.so");
    assert_look_refused(top, "outer/etc/passwd");
    assert_look_refused(top, "dist/up/widget");
    char *const list[] = {(char *)"outer"};
    const struct strings paths = {.items = (char **)list, .count = 1};
    _cleanup_(output_states_done) struct output_states states = {0};
    char digest[DIGEST_HEX_SIZE];
    assert_int_equal(look(top, &paths, &states, NULL), RESULT_OK);
    digest_hex("/", 1, digest);
    assert_string_equal(states.items[0].digest, digest);
    free(command);
    scratch_remove(top);
}

static void paths_stay_below_the_top(void **state _unused_)
{
    static const char *const BAD[] = {
        "", "/", "/etc/passwd", "..", "../x", "dist/../widget", "dist/..", ".", "./dist"};
    char *top = tree_make();
    for (size_t i = 0; i < ARRAY_SIZE(BAD); i++)
        assert_look_refused(top, BAD[i]);
    scratch_remove(top);
}

static void what_is_not_there_is_missing(void **state _unused_)
{
    static char *const list[] = {(char *)"none/at/all", (char *)"widget/below", (char *)"dist/none"};
    const struct strings paths = {.items = (char **)list, .count = 3};
    char *top = tree_make();
    _cleanup_(output_states_done) struct output_states states = {0};
    assert_int_equal(look(top, &paths, &states, NULL), RESULT_OK);
    for (size_t i = 0; i < states.count; i++)
        assert_int_equal(states.items[i].mode, 0);
    scratch_remove(top);
}

static void devices_fifos_and_sockets_are_refused(void **state _unused_)
{
    char *top = tree_make();
    char *fifo = mem_format("%s/dist/lib/fifo", top);
    assert_int_equal(mkfifo(fifo, 0644), 0);
    assert_look_refused(top, "dist");
    assert_look_refused(top, "dist/lib/fifo");
    assert_int_equal(unlink(fifo), 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_true((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/dist/s", top) <
                sizeof(address.sun_path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_look_refused(top, "dist");
    close(fd);
    assert_look_refused("/dev", "null");
    free(fifo);
    scratch_remove(top);
}

static void depth_has_a_bound(void **state _unused_)
{
    char *top = scratch_make();
    static char *const list[] = {(char *)"d"};
    const struct strings paths = {.items = (char **)list, .count = 1};
    char *command =
        mem_format("cd %s && i=0; while [ $i -lt 100 ]; do mkdir d && cd d; i=$((i+1)); done", top);
    _cleanup_(output_states_done) struct output_states states = {0};
    assert_int_equal(system(command), 0);
    assert_int_equal(look(top, &paths, &states, NULL), RESULT_OK);
    free(command);
    command = mem_format("cd %s && i=0; while [ $i -lt 100 ]; do cd d; i=$((i+1)); done; mkdir d", top);
    assert_int_equal(system(command), 0);
    assert_look_refused(top, "d");
    free(command);
    scratch_remove(top);
}

struct counting {
    struct runner runner;
    int ticks;
};
static void count_tick(struct runner *runner)
{
    ((struct counting *)runner)->ticks++;
}

static void the_runner_is_ticked(void **state _unused_)
{
    char *top = tree_make();
    struct counting counting = {.runner.tick = count_tick};
    _cleanup_(output_states_done) struct output_states states = {0};
    int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(outputs_look(fd, &ALL, &counting.runner, &states, NULL), RESULT_OK);
    assert_true(counting.ticks >= 7);
    close(fd);
    scratch_remove(top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_as_found),
        cmocka_unit_test(every_change_is_noticed),
        cmocka_unit_test(equal_content_elsewhere_is_equal),
        cmocka_unit_test(the_order_of_declaration_does_not_matter),
        cmocka_unit_test(the_encoding_is_pinned),
        cmocka_unit_test(no_link_is_followed),
        cmocka_unit_test(paths_stay_below_the_top),
        cmocka_unit_test(what_is_not_there_is_missing),
        cmocka_unit_test(devices_fifos_and_sockets_are_refused),
        cmocka_unit_test(depth_has_a_bound),
        cmocka_unit_test(the_runner_is_ticked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
