/* What the tests of Proofs share: a directory of their own, keys that are always the same, a statement. */
#ifndef TESTS_UNIT_COMPLETION_PROOF_FIXTURE_H
#define TESTS_UNIT_COMPLETION_PROOF_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "completion/proof/keys.h"
#include "completion/proof/statement.h"

/* RFC 8410, section 10.3 and 10.1 */
static const char SAMPLE_PRIVATE[] = "-----BEGIN PRIVATE KEY-----\n"
                                     "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
                                     "-----END PRIVATE KEY-----\n";
static const char SAMPLE_PUBLIC[] = "-----BEGIN PUBLIC KEY-----\n"
                                    "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
                                    "-----END PUBLIC KEY-----\n";

#define TREE   "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define HEX64  "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEX64B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"

_unused_ static char *scratch_make(void)
{
    const char *base = getenv("TMPDIR");
    char *path = mem_format("%s/tenure-proof-XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(path));
    return path;
}

_unused_ static void scratch_remove(char *path)
{
    assert_int_equal(directory_remove(AT_FDCWD, path, NULL), RESULT_OK);
    free(path);
}

_unused_ static char *file_put(
    const char *directory, const char *name, const void *bytes, size_t length, mode_t mode)
{
    char *path = mem_format("%s/%s", directory, name);
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, bytes, length, NULL), RESULT_OK);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

_unused_ static void text_file_put(const char *directory, const char *name, const char *text, mode_t mode)
{
    free(file_put(directory, name, text, strlen(text), mode));
}

/* The sample key, and a ring that trusts it. */
_unused_ static void sample_key(struct signing_key *ret, struct key_ring *ret_ring)
{
    char *place = scratch_make();
    text_file_put(place, "default.key", SAMPLE_PRIVATE, 0600);
    text_file_put(place, "default.pub", SAMPLE_PUBLIC, 0644);
    assert_int_equal(key_load(place, ret, NULL), RESULT_OK);
    if (ret_ring)
        assert_int_equal(key_ring_add_directory(ret_ring, place, NULL), RESULT_OK);
    scratch_remove(place);
}

static const struct statement_evidence SAMPLE_EVIDENCE[] = {
    {.producer = "build", .key = HEX64, .sequence = 7, .reused = true},
    {.producer = "test \"quick\"", .key = HEX64B, .sequence = 12, .reused = false},
};
_unused_ static struct statement sample_statement(void)
{
    return (struct statement){
        .repository = "acme/widget",
        .commit = COMMIT,
        .tree = TREE,
        .config_digest = HEX64,
        .demand_digest = HEX64B,
        .evidence = SAMPLE_EVIDENCE,
        .evidence_count = ARRAY_SIZE(SAMPLE_EVIDENCE),
        .complete = true,
        .attempt_id = "01900000-0000-7000-8000-000000000001",
        .fence = 42,
        .journal_head = "00112233445566778899aabbccddeeff",
        .version = "0.1.0",
        .wall_ms = INT64_C(1735603200000),
    };
}

#endif
