/*
 * The journal file, byte by byte. Also tenure-journal(5).
 *
 *     <length> SP <chain> SP <json> LF
 *
 *     length  bytes of json, decimal, no leading zero, at most FORMAT_RECORD_LIMIT
 *     chain   32 hex digits: BLAKE2b-128(previous chain as 16 bytes, json)
 *     json    one object in compact UTF-8 without a line feed; "kind" names it
 *
 * The previous chain of the first record is 16 zero bytes. The first record is the header:
 *
 *     {"kind":"header","format":1,"salt":<32 hex>,"device":N,"inode":N,"handle":..,["attempt":..,]
 *      "tenure":..,"executor":{..},"boot_ms":N,"wall_ms":N}
 *
 * The random salt makes every file's chain its own, and device and inode are those of this very file, so a
 * record copied from elsewhere, reordered, or left over from another file cannot validate, and a copied file
 * is told from the original. Whoever reads stops at the first record that does not validate: an incomplete
 * last line is a torn tail (a crash while appending), anything else is damage, named by its offset.
 *
 * Locks: the executor holds F_OFD_SETLK write locks on bytes 0 and 1 from creation to exit. Byte 0 is probed
 * with F_OFD_GETLK and F_RDLCK; a waiter may block on a read lock of byte 1.
 */
#ifndef JOURNAL_FORMAT_H
#define JOURNAL_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/executor.h"
#include "base/text.h"
#include "base/uuid.h"
#include "journal/handle.h"

#define FORMAT_VERSION      1
#define FORMAT_RECORD_LIMIT (256 * 1024)
#define FORMAT_SALT_SIZE    33

struct chain {
    uint8_t bytes[DIGEST_SHORT_BYTES];
};

struct journal_header {
    int64_t format;
    char salt[FORMAT_SALT_SIZE];
    uint64_t device, inode;
    char handle[HANDLE_SIZE];
    char attempt[UUID_TEXT_SIZE]; /* empty when it was not known at creation */
    char tenure[32];              /* version that wrote it */
    struct executor executor;
    int64_t boot_ms, wall_ms;
};

/* Appends one record line to `ret` and moves the chain on. */
void format_line(struct chain *chain, const char *json, size_t length, struct text *ret);

enum format_step {
    FORMAT_RECORD,  /* *ret_json points into `bytes`, chain moved on, *ret_used bytes consumed */
    FORMAT_PARTIAL, /* an incomplete last line: more bytes may come, or a torn tail */
    FORMAT_DAMAGED, /* does not validate */
};

/* Looks at the line at the start of `bytes`. Pure; never reads past `length`. */
enum format_step format_parse(struct chain *chain, const char *bytes, size_t length, const char **ret_json,
    size_t *ret_json_length, size_t *ret_used);

void format_header_encode(const struct journal_header *header, struct text *ret);
/* NEWER for a format above FORMAT_VERSION, CORRUPT otherwise. */
_must_use_ enum result format_header_decode(
    const char *json, size_t length, struct journal_header *ret, struct error *err);

#endif
