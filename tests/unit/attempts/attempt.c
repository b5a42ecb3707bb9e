#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "attempts/attempt.h"
#include "attempts/store.h"
#include "base/digest.h"
#include "base/memory.h"

static struct attempt attempt_full(void)
{
    struct attempt attempt = {
        .fence = 42,
        .kind = KIND_DONE,
        .state = ATTEMPT_CANCELLED,
        .repository = mem_string("repository"),
        .subjects = mem_alloc(2 * sizeof(char *)),
        .subject_count = 2,
        .journal_handle = mem_string("T-7K3M-QX9D"),
        .journal_host = mem_string("host"),
        .journal_path = mem_string("/journal"),
        .reason = {.code = mem_string("lapsed"), .text = mem_string("text"), .by_attempt = mem_string("by")},
        .rev = 3,
        .cancel_by = mem_string("somebody"),
    };

    strcpy(attempt.id, "0192e4a0-0000-7000-8000-000000000001");
    attempt.subjects[0] = mem_string("candidate:b");
    attempt.subjects[1] = mem_string("checkout:a");
    return attempt;
}

static void a_copy_owns_everything(void **state _unused_)
{
    struct attempt original = attempt_full(), copy;

    attempt_copy(&original, &copy);
    assert_ptr_not_equal(copy.subjects, original.subjects);
    assert_ptr_not_equal(copy.subjects[1], original.subjects[1]);
    memset(original.repository, 'x', strlen(original.repository));
    memset(original.reason.by_attempt, 'x', 2);
    attempt_done(&original);
    assert_string_equal(copy.id, "0192e4a0-0000-7000-8000-000000000001");
    assert_int_equal(copy.fence, 42);
    assert_string_equal(copy.repository, "repository");
    assert_string_equal(copy.subjects[0], "candidate:b");
    assert_string_equal(copy.subjects[1], "checkout:a");
    assert_string_equal(copy.journal_handle, "T-7K3M-QX9D");
    assert_string_equal(copy.journal_host, "host");
    assert_string_equal(copy.journal_path, "/journal");
    assert_string_equal(copy.reason.code, "lapsed");
    assert_string_equal(copy.reason.text, "text");
    assert_string_equal(copy.reason.by_attempt, "by");
    assert_string_equal(copy.cancel_by, "somebody");
    attempt_done(&copy);
    assert_null(copy.subjects);
}

static void a_copy_may_replace_its_original(void **state _unused_)
{
    struct attempt attempt = attempt_full(), original = attempt;

    attempt_copy(&attempt, &attempt);
    assert_ptr_not_equal(attempt.repository, original.repository);
    attempt_done(&original);
    assert_string_equal(attempt.repository, "repository");
    attempt_done(&attempt);
}

static void an_empty_attempt_copies_and_dies(void **state _unused_)
{
    struct attempt empty = {0}, copy;

    attempt_copy(&empty, &copy);
    assert_null(copy.repository);
    assert_null(copy.subjects);
    attempt_done(&copy);
    attempt_done(&copy);
}

static void holds_compares_whole_names(void **state _unused_)
{
    struct attempt attempt = attempt_full();

    assert_true(attempt_holds(&attempt, "checkout:a"));
    assert_false(attempt_holds(&attempt, "checkout:"));
    assert_false(attempt_holds(&attempt, "checkout:ab"));
    attempt_done(&attempt);
}

static void names_are_parsed_back(void **state _unused_)
{
    for (int s = 0; s < ATTEMPT_STATE_MAX; s++) {
        enum attempt_state parsed = ATTEMPT_STATE_MAX;
        assert_true(attempt_state_parse(attempt_state_name((enum attempt_state)s), &parsed));
        assert_int_equal(parsed, s);
    }
    for (int k = 0; k < ATTEMPT_KIND_MAX; k++) {
        enum attempt_kind parsed = ATTEMPT_KIND_MAX;
        assert_true(attempt_kind_parse(attempt_kind_name((enum attempt_kind)k), &parsed));
        assert_int_equal(parsed, k);
    }
}

static void unknown_names_are_refused(void **state _unused_)
{
    static const char *const NAMES[] = {"", "Running", "running ", "ended", NULL};
    enum attempt_state parsed_state = ATTEMPT_FAILED;
    enum attempt_kind parsed_kind = KIND_TRIAL;

    for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++) {
        assert_false(attempt_state_parse(NAMES[i], &parsed_state));
        assert_false(attempt_kind_parse(NAMES[i], &parsed_kind));
    }
    assert_int_equal(parsed_state, ATTEMPT_FAILED);
    assert_int_equal(parsed_kind, KIND_TRIAL);
}

static void the_digest_tells_tokens_apart_and_hides_them(void **state _unused_)
{
    uint8_t token[TOKEN_BYTES] = {0}, first[TOKEN_DIGEST_BYTES], second[TOKEN_DIGEST_BYTES];

    token_digest(token, first);
    token[TOKEN_BYTES - 1] = 1;
    token_digest(token, second);
    assert_memory_not_equal(first, second, sizeof first);
    assert_memory_not_equal(token, second, sizeof second);
    token_digest(token, first);
    assert_memory_equal(first, second, sizeof first);
}

static void a_reservation_starts_with_its_own_identity(void **state _unused_)
{
    struct reservation first, second;

    reservation_init(&first, clock_system());
    reservation_init(&second, clock_system());
    assert_true(uuid_is_valid(first.credential.attempt_id));
    assert_string_not_equal(first.credential.attempt_id, second.credential.attempt_id);
    assert_memory_not_equal(first.credential.token, second.credential.token, TOKEN_BYTES);
    assert_int_equal(first.ttl_ms, LEASE_TTL_DEFAULT_MS);
}

static void printable_addresses_bear_no_password(void **state _unused_)
{
    static const struct {
        const char *url, *printable;
    } CASES[] = {
        {"postgresql://me:secret@host:5432/base", "postgresql://me@host:5432/base"},
        {"postgresql://me:se@cr/et@host/base", "postgresql://me@host/base"},
        {"postgresql://me:a@b@host/base", "postgresql://me@host/base"},
        {"postgresql://me:sec/ret@host/base", "postgresql://me@host/base"},
        {"postgresql://me:sec?ret@host/base", "postgresql://me@host/base"},
        {"postgresql://me:secret", "postgresql://me"},
        {"postgresql://one:1,two:2/base?user=me@there", "postgresql://one:1,two:2/base?user=me@there"},
        {"postgresql://[::1]:5432/base", "postgresql://[::1]:5432/base"},
        {"postgresql://me@host/base", "postgresql://me@host/base"},
        {"postgresql://host", "postgresql://host"},
        {"postgresql://host/base?password=secret", "postgresql://host/base"},
        {"postgresql://host/base?password=secret&user=me", "postgresql://host/base?user=me"},
        {"postgresql://host/base?user=me&sslpassword=s&port=1", "postgresql://host/base?user=me&port=1"},
        {"postgresql://host?PASSWORD=s", "postgresql://host"},
        {"sqlite:/a:b@c/store.db", "sqlite:/a:b@c/store.db"},
        {"sqlite:/a\nb", "sqlite:/a\\x0ab"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        _cleanup_(mem_free) char *printable = store_url_printable(CASES[i].url);
        assert_string_equal(printable, CASES[i].printable);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_owns_everything),
        cmocka_unit_test(a_copy_may_replace_its_original),
        cmocka_unit_test(an_empty_attempt_copies_and_dies),
        cmocka_unit_test(holds_compares_whole_names),
        cmocka_unit_test(names_are_parsed_back),
        cmocka_unit_test(unknown_names_are_refused),
        cmocka_unit_test(the_digest_tells_tokens_apart_and_hides_them),
        cmocka_unit_test(a_reservation_starts_with_its_own_identity),
        cmocka_unit_test(printable_addresses_bear_no_password),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
