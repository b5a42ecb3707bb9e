#include "journal/format.h"

#include <string.h>

#include "base/json_table.h"
#include "base/mutant.h"

#define CHAIN_HEX_LENGTH (2 * DIGEST_SHORT_BYTES)

static struct chain chain_next(const struct chain *chain, const char *json, size_t length)
{
    struct digest digest;
    struct chain next;
    digest_init(&digest, DIGEST_SHORT_BYTES);
    digest_raw(&digest, chain->bytes, sizeof(chain->bytes));
    digest_raw(&digest, json, length);
    digest_final(&digest, next.bytes);
    return next;
}

void format_line(struct chain *chain, const char *json, size_t length, struct text *ret)
{
    char hex[CHAIN_HEX_LENGTH + 1];
    *chain = chain_next(chain, json, length);
    hex_encode(chain->bytes, sizeof(chain->bytes), hex);
    text_addf(ret, "%zu %s ", length, hex);
    text_append(ret, json, length);
    text_append(ret, "\n", 1);
}

/* A scan that stops where the bytes stop: every step says whether to go on, wait, or give up. */
struct scan {
    const char *bytes;
    size_t length, used;
};

static enum format_step scan_length(struct scan *scan, size_t *ret)
{
    size_t value = 0;
    for (; scan->used < scan->length; scan->used++) {
        char c = scan->bytes[scan->used];
        if (c == ' ' && scan->used > 0)
            return *ret = value, FORMAT_RECORD;
        if (c < '0' || c > '9' || (c == '0' && scan->used == 0))
            return FORMAT_DAMAGED;
        value = value * 10 + (size_t)(c - '0');
        if (value > FORMAT_RECORD_LIMIT)
            return FORMAT_DAMAGED;
    }
    return FORMAT_PARTIAL;
}

static enum format_step scan_byte(struct scan *scan, char wanted)
{
    if (scan->used == scan->length)
        return FORMAT_PARTIAL;
    return scan->bytes[scan->used++] == wanted ? FORMAT_RECORD : FORMAT_DAMAGED;
}

static enum format_step scan_chain(struct scan *scan, const char **ret)
{
    *ret = scan->bytes + scan->used;
    for (size_t i = 0; i < CHAIN_HEX_LENGTH; i++, scan->used++) {
        if (scan->used == scan->length)
            return FORMAT_PARTIAL;
        char c = scan->bytes[scan->used];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return FORMAT_DAMAGED;
    }
    return FORMAT_RECORD;
}

static enum format_step scan_json(struct scan *scan, size_t length, const char **ret)
{
    size_t there = scan->length - scan->used;
    size_t look = there < length ? there : length;
    *ret = scan->bytes + scan->used;
    /* A length that grew would swallow the lines behind it and read as a torn tail. */
    if (look > 0 && memchr(*ret, '\n', look) != NULL)
        return FORMAT_DAMAGED;
    scan->used += look;
    return look == length ? FORMAT_RECORD : FORMAT_PARTIAL;
}

enum format_step format_parse(struct chain *chain, const char *bytes, size_t length, const char **ret_json,
    size_t *ret_json_length, size_t *ret_used)
{
    struct scan scan = {.bytes = bytes, .length = length};
    size_t json_length = 0;
    const char *json = NULL, *hex = NULL;
    enum format_step step = scan_length(&scan, &json_length);
    if (step == FORMAT_RECORD)
        step = scan_byte(&scan, ' ');
    if (step == FORMAT_RECORD)
        step = scan_chain(&scan, &hex);
    if (step == FORMAT_RECORD)
        step = scan_byte(&scan, ' ');
    if (step == FORMAT_RECORD)
        step = scan_json(&scan, json_length, &json);
    if (step == FORMAT_RECORD)
        step = scan_byte(&scan, '\n');
    if (step != FORMAT_RECORD)
        return step;

    struct chain next = chain_next(chain, json, json_length);
    char expected[CHAIN_HEX_LENGTH + 1];
    hex_encode(next.bytes, sizeof(next.bytes), expected);
    /* Compared as text: hex digits in capitals are a change too. */
    if (!MUTANT("chain") && memcmp(expected, hex, CHAIN_HEX_LENGTH) != 0)
        return FORMAT_DAMAGED;
    *chain = next;
    *ret_json = json;
    *ret_json_length = json_length;
    *ret_used = scan.used;
    return FORMAT_RECORD;
}

void format_header_encode(const struct journal_header *header, struct text *ret)
{
    struct json_object *json = json_object_new_object();
    json_add_string(json, "kind", "header");
    json_add_integer(json, "format", header->format);
    json_add_string(json, "salt", header->salt);
    json_object_object_add(json, "device", json_object_new_uint64(header->device));
    json_object_object_add(json, "inode", json_object_new_uint64(header->inode));
    json_add_string(json, "handle", header->handle);
    if (header->attempt[0] != '\0')
        json_add_string(json, "attempt", header->attempt);
    json_add_string(json, "tenure", header->tenure);
    json_object_object_add(json, "executor", executor_to_json(&header->executor));
    json_add_integer(json, "boot_ms", header->boot_ms);
    json_add_integer(json, "wall_ms", header->wall_ms);
    text_add(
        ret, json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(json);
}

struct header_draft {
    struct journal_header header;
    char kind[16];
    struct json_object *device, *inode, *executor; /* borrowed from the document */
};

static const struct json_field HEADER_FIELDS[] = {
    {"kind", JSON_BUFFER, offsetof(struct header_draft, kind), true, 0, 16},
    {"format", JSON_INTEGER, offsetof(struct header_draft, header.format), true, 1, FORMAT_VERSION},
    {"salt", JSON_BUFFER, offsetof(struct header_draft, header.salt), true, 0, FORMAT_SALT_SIZE},
    {"device", JSON_VALUE, offsetof(struct header_draft, device), true, 0, 0},
    {"inode", JSON_VALUE, offsetof(struct header_draft, inode), true, 0, 0},
    {"handle", JSON_BUFFER, offsetof(struct header_draft, header.handle), true, 0, HANDLE_SIZE},
    {"attempt", JSON_BUFFER, offsetof(struct header_draft, header.attempt), false, 0, UUID_TEXT_SIZE},
    {"tenure", JSON_BUFFER, offsetof(struct header_draft, header.tenure), true, 0, 32},
    {"executor", JSON_OBJECT, offsetof(struct header_draft, executor), true, 0, 0},
    {"boot_ms", JSON_INTEGER, offsetof(struct header_draft, header.boot_ms), true, 0, INT64_MAX},
    {"wall_ms", JSON_INTEGER, offsetof(struct header_draft, header.wall_ms), true, INT64_MIN, INT64_MAX},
};

static bool header_number(struct json_object *json, uint64_t *ret)
{
    if (!json_object_is_type(json, json_type_int))
        return false;
    *ret = json_object_get_uint64(json);
    return true;
}

static enum result header_damage(struct error *err, const char *what)
{
    return error_set(err, RESULT_CORRUPT, 0, "the header is damaged: %s", what);
}

/* Looked at before anything else: a newer format may have other fields. */
static enum result header_version(struct json_object *root, struct error *err)
{
    struct json_object *format = NULL;
    if (!json_object_is_type(root, json_type_object) || !json_object_object_get_ex(root, "format", &format) ||
        !json_object_is_type(format, json_type_int))
        return header_damage(err, "it has no format number");
    int64_t number = json_object_get_int64(format);
    if (number <= FORMAT_VERSION)
        return RESULT_OK;
    error_set(err, RESULT_NEWER, 0, "the journal has format %lld, this program reads up to %d",
        (long long)number, FORMAT_VERSION);
    return error_remedy(err, "use the version of tenure that wrote it");
}

static enum result header_check(struct header_draft *draft, struct error *err)
{
    struct journal_header *header = &draft->header;
    uint8_t salt[FORMAT_SALT_SIZE / 2];
    char handle[HANDLE_SIZE];
    if (strcmp(draft->kind, "header") != 0)
        return header_damage(err, "its kind is not header");
    if (!hex_decode(header->salt, salt, sizeof(salt)))
        return header_damage(err, "its salt is not 32 hex digits");
    if (!header_number(draft->device, &header->device) || !header_number(draft->inode, &header->inode))
        return header_damage(err, "device and inode are not numbers");
    if (handle_parse(header->handle, handle, NULL) != RESULT_OK || strcmp(handle, header->handle) != 0)
        return header_damage(err, "its handle is not one");
    return RESULT_OK;
}

static enum result header_read(struct json_object *root, struct journal_header *ret, struct error *err)
{
    struct header_draft draft = {.kind = ""};
    _cleanup_(error_done) struct error why = {0};
    enum result r = header_version(root, err);
    if (r != RESULT_OK)
        return r;
    if (json_table_read(NULL, "", root, HEADER_FIELDS, ARRAY_SIZE(HEADER_FIELDS), false, &draft, &why) !=
            RESULT_OK ||
        executor_from_json(draft.executor, &draft.header.executor, &why) != RESULT_OK)
        return header_damage(err, why.message);
    r = header_check(&draft, err);
    if (r == RESULT_OK)
        *ret = draft.header;
    return r;
}

enum result format_header_decode(
    const char *json, size_t length, struct journal_header *ret, struct error *err)
{
    struct json_document document = {0};
    _cleanup_(error_done) struct error why = {0};
    if (json_document_parse(json, length, "header", &document, &why) != RESULT_OK)
        return header_damage(err, why.message);
    enum result r = header_read(document.root, ret, err);
    json_document_done(&document);
    return r;
}
