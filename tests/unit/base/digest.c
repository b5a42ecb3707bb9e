#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/digest.h"
#include "base/memory.h"

/* Vectors made with an independent implementation of RFC 7693; "abc" with 512 bits is the RFC's own, these
 * are its shorter digests. */
#define EMPTY_256   "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"
#define ABC_256     "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"
#define ABC_128     "cf4ab791c62b8d2b2109c90275287816"
#define MILLION_256 "0741850f36cba4259628355d1073e24ddb9ca0e1bfac36fd39ae5dc2101e23a4"
#define FIELDS_256  "09292462ca3b7c538e0cc2a7141f6bf72db411b0d6b027e75be9fd810aaf7dc9"

static void golden_vectors(void **state _unused_)
{
    char hex[DIGEST_HEX_SIZE];
    digest_hex(NULL, 0, hex);
    assert_string_equal(hex, EMPTY_256);
    digest_hex("abc", 3, hex);
    assert_string_equal(hex, ABC_256);
    struct digest digest;
    digest_init(&digest, DIGEST_SHORT_BYTES);
    digest_raw(&digest, "abc", 3);
    digest_final_hex(&digest, hex);
    assert_string_equal(hex, ABC_128);
}

/* The code that a processor is given must not change what is written down for ever. */
static void faster_code_gives_the_same(void **state)
{
    digest_begin();
    golden_vectors(state);
    digest_begin(); /* a second time does nothing */
    golden_vectors(state);
}

static void pieces_do_not_matter(void **state _unused_)
{
    struct digest digest;
    char hex[DIGEST_HEX_SIZE];
    char piece[777];
    memset(piece, 'a', sizeof(piece));
    digest_init(&digest, DIGEST_BYTES);
    for (size_t left = 1000000, part; left > 0; left -= part) {
        part = left < sizeof(piece) ? left : sizeof(piece);
        digest_raw(&digest, piece, part);
    }
    digest_final_hex(&digest, hex);
    assert_string_equal(hex, MILLION_256);
}

/* "tenure", "", no string, and a number: each with its length in front. */
static void the_encoding_of_fields_is_fixed(void **state _unused_)
{
    struct digest digest;
    char hex[DIGEST_HEX_SIZE];
    digest_init(&digest, DIGEST_BYTES);
    digest_string(&digest, "tenure");
    digest_string(&digest, "");
    digest_string(&digest, NULL);
    digest_number(&digest, UINT64_C(0x0102030405060708));
    digest_final_hex(&digest, hex);
    assert_string_equal(hex, FIELDS_256);
}

static void digest_two(const char *first, const char *second, char *ret_hex)
{
    struct digest digest;
    digest_init(&digest, DIGEST_BYTES);
    digest_string(&digest, first);
    digest_string(&digest, second);
    digest_final_hex(&digest, ret_hex);
}

static void different_lists_differ(void **state _unused_)
{
    static const char *const LISTS[][2] = {{"ab", "c"}, {"a", "bc"}, {"abc", ""}, {"abc", NULL}, {"", "abc"}};
    char hex[ARRAY_SIZE(LISTS)][DIGEST_HEX_SIZE];
    for (size_t i = 0; i < ARRAY_SIZE(LISTS); i++) {
        digest_two(LISTS[i][0], LISTS[i][1], hex[i]);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(hex[i], hex[j]);
    }
}

static void hex_round_trip(void **state _unused_)
{
    uint8_t bytes[256], back[256];
    char hex[513];
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    hex_encode(bytes, sizeof(bytes), hex);
    assert_int_equal(strlen(hex), 512);
    assert_true(hex_decode(hex, back, sizeof(back)));
    assert_memory_equal(bytes, back, sizeof(bytes));
}

static void hex_refuses_everything_else(void **state _unused_)
{
    static const char *const BAD[] = {"", "0", "012", "01234", "0g12", "01 2", "ABCD", "0x12", "-123"};
    uint8_t bytes[2] = {7, 7};
    for (size_t i = 0; i < ARRAY_SIZE(BAD); i++)
        assert_false(hex_decode(BAD[i], bytes, sizeof(bytes)));
    assert_memory_equal(bytes, "\7\7", 2);
    assert_true(hex_decode("", bytes, 0));
}

static void random_bytes_differ(void **state _unused_)
{
    uint8_t a[32] = {0}, b[32] = {0};
    random_bytes(a, sizeof(a));
    random_bytes(b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));
    _cleanup_(mem_free) uint8_t *large = mem_alloc(1024 * 1024);
    random_bytes(large, 1024 * 1024); /* more than getrandom() gives at once */
    const uint8_t zero[64] = {0};
    assert_memory_not_equal(large + 1024 * 1024 - sizeof(zero), zero, sizeof(zero));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_vectors),
        cmocka_unit_test(faster_code_gives_the_same),
        cmocka_unit_test(pieces_do_not_matter),
        cmocka_unit_test(the_encoding_of_fields_is_fixed),
        cmocka_unit_test(different_lists_differ),
        cmocka_unit_test(hex_round_trip),
        cmocka_unit_test(hex_refuses_everything_else),
        cmocka_unit_test(random_bytes_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
