#include "tests/unit/completion/proof-fixture.h"

#include <sys/wait.h>

static void a_made_key_loads_and_its_files_are_closed(void **state _unused_)
{
    char *place = scratch_make();
    char *keys = mem_format("%s/deep/keys", place);
    _cleanup_(public_key_done) struct public_key made = {0}, read = {0};
    _cleanup_(signing_key_done) struct signing_key loaded = {0};
    struct stat status;
    assert_int_equal(key_make(keys, "default", &made, NULL), RESULT_OK);
    assert_int_equal(key_check(keys, NULL), RESULT_OK);
    assert_int_equal(key_load(keys, &loaded, NULL), RESULT_OK);
    assert_memory_equal(loaded.public.bytes, made.bytes, sizeof(made.bytes));
    assert_string_equal(loaded.public.id, made.id);
    assert_int_equal(strncmp(made.id, "ed25519:", 8), 0);
    assert_int_equal(strlen(made.id), 8 + 64);

    char *private_path = mem_format("%s/default.key", keys),
         *public_path = mem_format("%s/default.pub", keys);
    assert_string_equal(made.origin, public_path);
    assert_int_equal(stat(keys, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    assert_int_equal(stat(private_path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(public_key_read(public_path, &read, NULL), RESULT_OK);
    assert_memory_equal(read.bytes, made.bytes, sizeof(made.bytes));
    free(private_path);
    free(public_path);
    free(keys);
    scratch_remove(place);
}

/* Killed between the two files, `key new` left a key whose signatures nobody could check. */
static void a_missing_public_half_is_written_again(void **state _unused_)
{
    char *place = scratch_make();
    _cleanup_(mem_free) char *file = mem_format("%s/default.pub", place);
    _cleanup_(public_key_done) struct public_key made = {0}, read = {0};
    _cleanup_(signing_key_done) struct signing_key key = {0};
    assert_int_equal(key_make(place, "default", &made, NULL), RESULT_OK);
    assert_int_equal(unlink(file), 0);

    assert_int_equal(key_load(place, &key, NULL), RESULT_OK);

    assert_int_equal(public_key_read(file, &read, NULL), RESULT_OK);
    assert_string_equal(read.id, made.id);
    scratch_remove(place);
}

static void a_key_is_never_replaced(void **state _unused_)
{
    char *place = scratch_make();
    struct public_key made = {0}, other = {0};
    struct signing_key loaded = {0};
    assert_int_equal(key_make(place, "default", &made, NULL), RESULT_OK);
    assert_int_equal(key_make(place, "default", &other, NULL), RESULT_CONFLICT);
    assert_null(other.origin);
    assert_int_equal(key_load(place, &loaded, NULL), RESULT_OK);
    assert_string_equal(loaded.public.id, made.id);
    text_file_put(place, "lone.pub", SAMPLE_PUBLIC, 0644);
    assert_int_equal(key_make(place, "lone", &other, NULL), RESULT_CONFLICT);
    char *lone = mem_format("%s/lone.key", place);
    assert_int_equal(access(lone, F_OK), -1);
    free(lone);
    signing_key_done(&loaded);
    public_key_done(&made);
    scratch_remove(place);
}

static void names_are_plain(void **state _unused_)
{
    static const char *const BAD[] = {"", ".", "..", ".hidden", "a/b", "../x", "a b", "a\n", "\xc3\xa9",
        "0123456789012345678901234567890123456789012345678901234567890123456789"};
    char *place = scratch_make();
    struct public_key made = {0};
    for (size_t i = 0; i < ARRAY_SIZE(BAD); i++)
        assert_int_equal(key_make(place, BAD[i], &made, NULL), RESULT_INVALID);
    scratch_remove(place);
}

static void the_published_sample_is_read(void **state _unused_)
{
    _cleanup_(signing_key_done) struct signing_key key = {0};
    _cleanup_(key_ring_done) struct key_ring ring = {0};
    _cleanup_(mem_free) char *pem = NULL;
    sample_key(&key, &ring);
    assert_int_equal(ring.count, 1);
    assert_memory_equal(key.public.bytes, ring.keys[0].bytes, 32);
    public_key_pem(&key.public, &pem);
    assert_string_equal(pem, SAMPLE_PUBLIC);
    assert_string_equal(
        key.public.id, "ed25519:87cce7e43c8e561387c6b540908c4d805f01acc46ec16dc11e3fe9c02419fa4b");
}

static void without_a_key_the_remedy_is_init(void **state _unused_)
{
    char *place = scratch_make();
    char *missing = mem_format("%s/none", place);
    const char *const places[] = {place, missing};
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        _cleanup_(error_done) struct error err = {0};
        struct signing_key key = {0};
        assert_int_equal(key_load(places[i], &key, &err), RESULT_ABSENT);
        assert_non_null(strstr(err.remedy, "tenure init"));
        assert_int_equal(key_check(places[i], NULL), RESULT_ABSENT);
    }
    free(missing);
    scratch_remove(place);
}

static void the_default_or_the_only_one(void **state _unused_)
{
    char *place = scratch_make();
    struct public_key first = {0}, second = {0}, third = {0};
    struct signing_key loaded = {0};
    assert_int_equal(key_make(place, "one", &first, NULL), RESULT_OK);
    assert_int_equal(key_load(place, &loaded, NULL), RESULT_OK);
    assert_string_equal(loaded.public.id, first.id);
    signing_key_done(&loaded);
    assert_int_equal(key_make(place, "two", &second, NULL), RESULT_OK);
    assert_int_equal(key_load(place, &loaded, NULL), RESULT_INVALID);
    assert_int_equal(key_make(place, "default", &third, NULL), RESULT_OK);
    assert_int_equal(key_load(place, &loaded, NULL), RESULT_OK);
    assert_string_equal(loaded.public.id, third.id);
    signing_key_done(&loaded);
    public_key_done(&first);
    public_key_done(&second);
    public_key_done(&third);
    scratch_remove(place);
}

/* Neither the check nor the load lets it through, and the secret is not handed out. */
static void assert_denied(const char *place)
{
    struct signing_key key = {0}, untouched = {0};
    assert_int_equal(key_check(place, NULL), RESULT_DENIED);
    assert_int_equal(key_load(place, &key, NULL), RESULT_DENIED);
    assert_memory_equal(&key, &untouched, sizeof(key));
}

static void looser_modes_are_refused(void **state _unused_)
{
    char *place = scratch_make();
    static const mode_t LOOSE[] = {0640, 0604, 0620, 0602, 0610, 0601, 0700, 0666, 04600};
    text_file_put(place, "default.key", SAMPLE_PRIVATE, 0600);
    char *path = mem_format("%s/default.key", place);
    for (size_t i = 0; i < ARRAY_SIZE(LOOSE); i++) {
        assert_int_equal(chmod(path, LOOSE[i]), 0);
        assert_denied(place);
    }
    static const mode_t TIGHT[] = {0600, 0400};
    for (size_t i = 0; i < ARRAY_SIZE(TIGHT); i++) {
        assert_int_equal(chmod(path, TIGHT[i]), 0);
        assert_int_equal(key_check(place, NULL), RESULT_OK);
    }
    assert_int_equal(chmod(place, 0770), 0);
    assert_denied(place);
    assert_int_equal(chmod(place, 0755), 0);
    assert_int_equal(key_check(place, NULL), RESULT_OK);
    free(path);
    scratch_remove(place);
}

static void links_and_other_things_are_refused(void **state _unused_)
{
    char *place = scratch_make();
    char *path = mem_format("%s/default.key", place);
    text_file_put(place, "elsewhere", SAMPLE_PRIVATE, 0600);
    assert_int_equal(symlink("elsewhere", path), 0);
    assert_denied(place);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("nowhere", path), 0);
    assert_denied(place);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_denied(place);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_denied(place);
    free(path);
    scratch_remove(place);
}

static void another_owner_is_refused(void **state _unused_)
{
    if (geteuid() != 0) {
        assert_denied("/"); /* root's */
        return;
    }
    char *place = scratch_make();
    text_file_put(place, "default.key", SAMPLE_PRIVATE, 0600);
    char *path = mem_format("%s/default.key", place);
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_denied(place);
    assert_int_equal(chown(path, 0, 0), 0);
    assert_int_equal(key_check(place, NULL), RESULT_OK);
    assert_int_equal(chown(place, 65534, 65534), 0);
    assert_denied(place);
    free(path);
    scratch_remove(place);
}

/* Every single-bit change, every truncation and a byte too many. The seed's own bits make another good key.
 */
static void private_pem_has_one_form(void **state _unused_)
{
    char *place = scratch_make();
    size_t length = strlen(SAMPLE_PRIVATE), accepted = 0;
    for (size_t i = 0; i < length; i++) {
        char changed[sizeof(SAMPLE_PRIVATE)];
        memcpy(changed, SAMPLE_PRIVATE, sizeof(changed));
        changed[i] ^= 1;
        struct signing_key key = {0};
        text_file_put(place, "default.key", changed, 0600);
        enum result r = key_load(place, &key, NULL);
        assert_true(r == RESULT_OK || r == RESULT_INVALID);
        bool in_seed = i >= 28 + 21 && i < 28 + 64;
        assert_true(in_seed || r == RESULT_INVALID);
        accepted += r == RESULT_OK;
        signing_key_done(&key);
    }
    assert_true(accepted > 0 && accepted <= 43);
    for (size_t cut = 0; cut < length; cut++) {
        struct signing_key key = {0};
        free(file_put(place, "default.key", SAMPLE_PRIVATE, cut, 0600));
        assert_int_equal(key_load(place, &key, NULL), RESULT_INVALID);
    }
    static const char *const LONGER[] = {"\n", " ", "x"};
    for (size_t i = 0; i < ARRAY_SIZE(LONGER); i++) {
        struct signing_key key = {0};
        char *longer = mem_format("%s%s", SAMPLE_PRIVATE, LONGER[i]);
        text_file_put(place, "default.key", longer, 0600);
        assert_int_equal(key_load(place, &key, NULL), RESULT_INVALID);
        free(longer);
    }
    scratch_remove(place);
}

static void public_files_are_strict(void **state _unused_)
{
    /* The neutral element and a point of order eight: signatures by them mean nothing. */
    static const char *const BAD[] = {
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
        "-----END PUBLIC KEY-----\n",
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAxxdqcD1N2E+6PAt2DRBnDyogU/osOczGTsf9d5KsA3o=\n"
        "-----END PUBLIC KEY-----\n",
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VuAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
        "-----END PUBLIC KEY-----\n",
        "", "nonsense\n", SAMPLE_PRIVATE};
    char *place = scratch_make();
    for (size_t i = 0; i < ARRAY_SIZE(BAD); i++) {
        struct public_key key = {0};
        struct key_ring ring = {0};
        char *path = file_put(place, "a.pub", BAD[i], strlen(BAD[i]), 0644);
        _cleanup_(error_done) struct error err = {0};
        assert_int_equal(public_key_read(path, &key, &err), RESULT_INVALID);
        assert_non_null(strstr(err.message, "a.pub"));
        assert_int_equal(key_ring_add_directory(&ring, place, NULL), RESULT_INVALID);
        assert_int_equal(ring.count, 0);
        free(path);
    }
    scratch_remove(place);
}

static void a_ring_takes_each_key_once(void **state _unused_)
{
    char *place = scratch_make();
    _cleanup_(key_ring_done) struct key_ring ring = {0};
    _cleanup_(public_key_done) struct public_key made = {0};
    assert_int_equal(key_make(place, "own", &made, NULL), RESULT_OK);
    text_file_put(place, "a.pub", SAMPLE_PUBLIC, 0644);
    text_file_put(place, "b.pub", SAMPLE_PUBLIC, 0644);
    text_file_put(place, "notes.txt", "not a key", 0644);
    text_file_put(place, ".hidden.pub", "not a key", 0644);
    assert_int_equal(key_ring_add_directory(&ring, place, NULL), RESULT_OK);
    assert_int_equal(ring.count, 2);
    assert_non_null(strstr(ring.keys[0].origin, "/a.pub"));
    assert_string_equal(ring.keys[1].id, made.id);
    assert_int_equal(key_ring_add_file(&ring, made.origin, NULL), RESULT_OK);
    assert_int_equal(ring.count, 2);
    assert_int_equal(key_ring_add_directory(&ring, "/nonexistent/keys", NULL), RESULT_OK);
    assert_int_equal(key_ring_add_file(&ring, "/nonexistent/a.pub", NULL), RESULT_ABSENT);
    scratch_remove(place);
}

static void trusting_copies_into_the_configuration(void **state _unused_)
{
    char *place = scratch_make();
    char *path = file_put(place, "theirs.pub", SAMPLE_PUBLIC, strlen(SAMPLE_PUBLIC), 0644);
    char *trusted = mem_format("%s/tenure/trusted", place);
    struct key_ring ring = {0};
    assert_int_equal(setenv("XDG_CONFIG_HOME", place, 1), 0);
    for (int i = 0; i < 2; i++) {
        _cleanup_(public_key_done) struct public_key key = {0};
        assert_int_equal(key_trust(path, &key, NULL), RESULT_OK);
        assert_int_equal(strncmp(key.origin, trusted, strlen(trusted)), 0);
        assert_non_null(strstr(key.origin, key.id + 8));
    }
    assert_int_equal(key_ring_add_directory(&ring, trusted, NULL), RESULT_OK);
    assert_int_equal(ring.count, 1);
    key_ring_done(&ring);
    free(trusted);
    free(path);
    scratch_remove(place);
}

static void the_default_directory_is_the_configurations(void **state _unused_)
{
    char *place = scratch_make();
    char *expected = mem_format("%s/tenure/keys/default.pub", place);
    _cleanup_(public_key_done) struct public_key made = {0};
    assert_int_equal(setenv("XDG_CONFIG_HOME", place, 1), 0);
    assert_int_equal(key_check(NULL, NULL), RESULT_ABSENT);
    assert_int_equal(key_make(NULL, "default", &made, NULL), RESULT_OK);
    assert_string_equal(made.origin, expected);
    assert_int_equal(key_check(NULL, NULL), RESULT_OK);
    free(expected);
    scratch_remove(place);
}

static void openssl_reads_both_files(void **state _unused_)
{
    if (system("openssl version >/dev/null 2>&1") != 0)
        skip();
    char *place = scratch_make();
    _cleanup_(public_key_done) struct public_key made = {0};
    assert_int_equal(key_make(place, "default", &made, NULL), RESULT_OK);
    char *command =
        mem_format("cd %s && openssl pkey -in default.key -pubout -out theirs.pub && "
                   "cmp theirs.pub default.pub && openssl genpkey -algorithm ed25519 -out o.key && "
                   "openssl pkey -in o.key -pubout -out o.pub",
            place);
    assert_int_equal(system(command), 0);
    _cleanup_(public_key_done) struct public_key theirs = {0};
    char *path = mem_format("%s/o.pub", place);
    assert_int_equal(public_key_read(path, &theirs, NULL), RESULT_OK);
    free(path);
    free(command);
    scratch_remove(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_made_key_loads_and_its_files_are_closed),
        cmocka_unit_test(a_missing_public_half_is_written_again),
        cmocka_unit_test(a_key_is_never_replaced),
        cmocka_unit_test(names_are_plain),
        cmocka_unit_test(the_published_sample_is_read),
        cmocka_unit_test(without_a_key_the_remedy_is_init),
        cmocka_unit_test(the_default_or_the_only_one),
        cmocka_unit_test(looser_modes_are_refused),
        cmocka_unit_test(links_and_other_things_are_refused),
        cmocka_unit_test(another_owner_is_refused),
        cmocka_unit_test(private_pem_has_one_form),
        cmocka_unit_test(public_files_are_strict),
        cmocka_unit_test(a_ring_takes_each_key_once),
        cmocka_unit_test(trusting_copies_into_the_configuration),
        cmocka_unit_test(the_default_directory_is_the_configurations),
        cmocka_unit_test(openssl_reads_both_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
