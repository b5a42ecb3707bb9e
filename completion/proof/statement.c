#include "completion/proof/statement.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/json_table.h"
#include "base/memory.h"

#define STATEMENT_TYPE    "https://in-toto.io/Statement/v1"
#define PREDICATE_TYPE    "https://in-toto.io/attestation/test-result/v0.1"
#define RESULT_WORD       "PASSED"
#define CONFIG_DESCRIPTOR "tenure.json"
#define EVIDENCE_PREFIX   "evidence/"
/* BLAKE2b with a result of 256 bits, named as the specification names sha512_256. */
#define DIGEST_NAME "blake2b_256"

#define HEX_DIGITS "0123456789abcdef"

/* ---- writing: the order of the keys is the order of these lines ---- */

static struct json_object *add_object(struct json_object *parent, const char *key)
{
    struct json_object *child = json_object_new_object();
    json_object_object_add(parent, key, child);
    return child;
}

static struct json_object *add_array(struct json_object *parent, const char *key)
{
    struct json_object *child = json_object_new_array();
    json_object_object_add(parent, key, child);
    return child;
}

static void add_subject(const struct statement *statement, struct json_object *root)
{
    struct json_object *subject = json_object_new_object();
    json_object_array_add(add_array(root, "subject"), subject);
    json_add_string(subject, "name", statement->repository);
    struct json_object *digests = add_object(subject, "digest");
    json_add_string(digests, "gitCommit", statement->commit);
    json_add_string(digests, "gitTree", statement->tree);
}

static struct json_object *add_descriptor(struct json_object *list, const char *name, const char *digest)
{
    struct json_object *descriptor = json_object_new_object();
    json_object_array_add(list, descriptor);
    json_add_string(descriptor, "name", name);
    json_add_string(add_object(descriptor, "digest"), DIGEST_NAME, digest);
    return descriptor;
}

static void add_configuration(const struct statement *statement, struct json_object *predicate)
{
    struct json_object *list = add_array(predicate, "configuration");
    add_descriptor(list, CONFIG_DESCRIPTOR, statement->config_digest);
    for (size_t i = 0; i < statement->evidence_count; i++) {
        const struct statement_evidence *evidence = &statement->evidence[i];
        _cleanup_(mem_free) char *name = mem_format(EVIDENCE_PREFIX "%s", evidence->producer);
        struct json_object *notes = add_object(add_descriptor(list, name, evidence->key), "annotations");
        if (evidence->sequence > 0)
            json_add_integer(notes, "sequence", evidence->sequence);
        json_add_boolean(notes, "reused", evidence->reused);
    }
}

static void add_passed_tests(const struct statement *statement, struct json_object *predicate)
{
    struct json_object *list = add_array(predicate, "passedTests");
    for (size_t i = 0; i < statement->evidence_count; i++) {
        const char *producer = statement->evidence[i].producer;
        json_object_array_add(list, json_from_bytes(producer, strlen(producer)));
    }
}

static void add_extension(const struct statement *statement, struct json_object *predicate)
{
    struct json_object *extension = add_object(predicate, "tenure");
    char time[CLOCK_TEXT_SIZE];
    clock_format_utc(statement->wall_ms, time);
    json_add_string(extension, "version", statement->version);
    json_add_string(extension, "time", time);
    json_add_string(extension, "attempt", statement->attempt_id);
    json_add_integer(extension, "fence", statement->fence);
    if (statement->journal_head)
        json_add_string(extension, "journal", statement->journal_head);
    struct json_object *demand = add_object(extension, "demand");
    json_add_string(demand, DIGEST_NAME, statement->demand_digest);
    json_add_boolean(demand, "complete", statement->complete);
}

void statement_encode(const struct statement *statement, struct text *ret)
{
    struct json_object *root = json_object_new_object();
    json_add_string(root, "_type", STATEMENT_TYPE);
    add_subject(statement, root);
    json_add_string(root, "predicateType", PREDICATE_TYPE);
    struct json_object *predicate = add_object(root, "predicate");
    json_add_string(predicate, "result", RESULT_WORD);
    add_configuration(statement, predicate);
    add_passed_tests(statement, predicate);
    add_extension(statement, predicate);
    text_add(
        ret, json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(root);
}

/* ---- reading ---- */

/* A statement as it is unwrapped level by level. A read statement points into the strings; the JSON values
 * are borrowed, and gone with the document. */
struct backing {
    char *type, *predicate_type, *result;
    char *repository, *commit, *tree, *config_digest, *demand_digest;
    char *attempt_id, *journal_head, *version, *time;
    int64_t fence;
    bool complete;
    struct statement_evidence *evidence; /* its strings are owned, too */
    size_t evidence_count;
    struct json_object *subjects, *subject_digest, *predicate, *configuration, *passed, *extension, *demand;
};

struct descriptor {
    char *name, *digest;
    struct json_object *digests, *annotations;
    int64_t sequence;
    bool reused;
};

static void backing_free(struct backing *backing)
{
    for (size_t i = 0; i < backing->evidence_count; i++) {
        free((char *)backing->evidence[i].producer);
        free((char *)backing->evidence[i].key);
    }
    char *const strings[] = {backing->type, backing->predicate_type, backing->result, backing->repository,
        backing->commit, backing->tree, backing->config_digest, backing->demand_digest, backing->attempt_id,
        backing->journal_head, backing->version, backing->time};
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        free(strings[i]);
    free(backing->evidence);
    free(backing);
}

static void backing_cleanup(struct backing **backing)
{
    if (*backing)
        backing_free(*backing);
}

static void descriptor_done(struct descriptor *descriptor)
{
    free(descriptor->name);
    free(descriptor->digest);
}

void statement_done(struct statement *statement)
{
    if (statement->backing)
        backing_free(statement->backing);
    *statement = (struct statement){0};
}

#define FIELD(key, kind, type, member, required)                                                             \
    {                                                                                                        \
        key, kind, offsetof(struct type, member), required, 0, 0                                             \
    }

static const struct json_field ROOT_FIELDS[] = {
    FIELD("_type", JSON_STRING, backing, type, true),
    FIELD("subject", JSON_ARRAY, backing, subjects, true),
    FIELD("predicateType", JSON_STRING, backing, predicate_type, true),
    FIELD("predicate", JSON_OBJECT, backing, predicate, true),
};
static const struct json_field SUBJECT_FIELDS[] = {
    FIELD("name", JSON_STRING, backing, repository, true),
    FIELD("digest", JSON_OBJECT, backing, subject_digest, true),
};
static const struct json_field SUBJECT_DIGEST_FIELDS[] = {
    FIELD("gitCommit", JSON_STRING, backing, commit, true),
    FIELD("gitTree", JSON_STRING, backing, tree, true),
};
static const struct json_field RESULT_FIELDS[] = {
    FIELD("result", JSON_STRING, backing, result, true),
};
static const struct json_field PREDICATE_FIELDS[] = {
    FIELD("result", JSON_STRING, backing, result, true),
    FIELD("configuration", JSON_ARRAY, backing, configuration, true),
    FIELD("passedTests", JSON_ARRAY, backing, passed, true),
    FIELD("tenure", JSON_OBJECT, backing, extension, true),
};
static const struct json_field EXTENSION_FIELDS[] = {
    FIELD("version", JSON_STRING, backing, version, true),
    FIELD("time", JSON_STRING, backing, time, true),
    FIELD("attempt", JSON_STRING, backing, attempt_id, true),
    {"fence", JSON_INTEGER, offsetof(struct backing, fence), true, 1, INT64_MAX},
    FIELD("journal", JSON_STRING, backing, journal_head, false),
    FIELD("demand", JSON_OBJECT, backing, demand, true),
};
static const struct json_field DEMAND_FIELDS[] = {
    FIELD(DIGEST_NAME, JSON_STRING, backing, demand_digest, true),
    FIELD("complete", JSON_BOOLEAN, backing, complete, true),
};
static const struct json_field CONFIG_FIELDS[] = {
    FIELD("name", JSON_STRING, descriptor, name, true),
    FIELD("digest", JSON_OBJECT, descriptor, digests, true),
};
static const struct json_field EVIDENCE_FIELDS[] = {
    FIELD("name", JSON_STRING, descriptor, name, true),
    FIELD("digest", JSON_OBJECT, descriptor, digests, true),
    FIELD("annotations", JSON_OBJECT, descriptor, annotations, true),
};
static const struct json_field DESCRIPTOR_DIGEST_FIELDS[] = {
    FIELD(DIGEST_NAME, JSON_STRING, descriptor, digest, true),
};
static const struct json_field ANNOTATION_FIELDS[] = {
    {"sequence", JSON_INTEGER, offsetof(struct descriptor, sequence), false, 1, INT64_MAX},
    FIELD("reused", JSON_BOOLEAN, descriptor, reused, true),
};

/* Strict: in what is signed, an unknown key may well be the one that matters. */
#define READ(document, pointer, object, fields, target, err)                                                 \
    json_table_read(document, pointer, object, fields, ARRAY_SIZE(fields), true, target, err)

static enum result refuse(
    const struct json_document *document, const char *pointer, struct error *err, const char *what)
{
    return json_error_at(document, pointer, false, err, "%s", what);
}

static bool is_hex(const char *text, size_t length)
{
    return strlen(text) == length && strspn(text, HEX_DIGITS) == length;
}

static bool is_digest(const char *text)
{
    return is_hex(text, DIGEST_HEX_SIZE - 1);
}

/* git's object names: SHA-1 or SHA-256 */
static bool is_object_name(const char *text)
{
    return is_hex(text, 40) || is_hex(text, 64);
}

static enum result read_root(const struct json_document *document, struct backing *backing, struct error *err)
{
    enum result r = READ(document, "", document->root, ROOT_FIELDS, backing, err);
    if (r != RESULT_OK)
        return r;
    if (strcmp(backing->type, STATEMENT_TYPE) != 0)
        return refuse(document, "/_type", err, "it is not an in-toto Statement v1");
    if (strcmp(backing->predicate_type, PREDICATE_TYPE) != 0)
        return refuse(document, "/predicateType", err, "it is not a test-result v0.1");
    return RESULT_OK;
}

static enum result read_subject(
    const struct json_document *document, struct backing *backing, struct error *err)
{
    if (json_object_array_length(backing->subjects) != 1)
        return refuse(document, "/subject", err, "exactly one subject is expected");
    enum result r = READ(document, "/subject/0", json_object_array_get_idx(backing->subjects, 0),
        SUBJECT_FIELDS, backing, err);
    if (r == RESULT_OK)
        r = READ(document, "/subject/0/digest", backing->subject_digest, SUBJECT_DIGEST_FIELDS, backing, err);
    if (r != RESULT_OK)
        return r;
    if (!is_object_name(backing->commit) || !is_object_name(backing->tree))
        return refuse(document, "/subject/0/digest", err, "gitCommit and gitTree must be object names");
    return RESULT_OK;
}

/* The word before the rest: a failed result has other members, and is to be told from nonsense. */
static enum result read_result(
    const struct json_document *document, struct backing *backing, struct error *err)
{
    static const char *const OTHERS[] = {"FAILED", "WARNED"};
    enum result r = json_table_read(document, "/predicate", backing->predicate, RESULT_FIELDS,
        ARRAY_SIZE(RESULT_FIELDS), false, backing, err);
    if (r != RESULT_OK)
        return r;
    for (size_t i = 0; i < ARRAY_SIZE(OTHERS); i++)
        if (backing->result && strcmp(backing->result, OTHERS[i]) == 0)
            return error_set(err, RESULT_DENIED, 0, "the result is %s, not " RESULT_WORD, OTHERS[i]);
    if (!backing->result || strcmp(backing->result, RESULT_WORD) != 0)
        return refuse(document, "/predicate/result", err, "the result must be " RESULT_WORD);
    return RESULT_OK;
}

static enum result read_extension(
    const struct json_document *document, struct backing *backing, struct error *err)
{
    enum result r = READ(document, "/predicate/tenure", backing->extension, EXTENSION_FIELDS, backing, err);
    if (r == RESULT_OK)
        r = READ(document, "/predicate/tenure/demand", backing->demand, DEMAND_FIELDS, backing, err);
    if (r != RESULT_OK)
        return r;
    return is_digest(backing->demand_digest) ? RESULT_OK
                                             : refuse(document, "/predicate/tenure/demand/" DIGEST_NAME, err,
                                                   "it must be a digest of 256 bits");
}

/* ---- the descriptors ---- */

static enum result read_digest(const struct json_document *document, const char *pointer,
    struct descriptor *descriptor, struct error *err)
{
    _cleanup_(mem_free) char *below = mem_format("%s/digest", pointer);
    enum result r = READ(document, below, descriptor->digests, DESCRIPTOR_DIGEST_FIELDS, descriptor, err);
    if (r == RESULT_OK && !is_digest(descriptor->digest))
        r = refuse(document, below, err, "it must be a digest of 256 bits");
    return r;
}

static enum result read_config(
    const struct json_document *document, struct backing *backing, struct error *err)
{
    static const char POINTER[] = "/predicate/configuration/0";
    _cleanup_(descriptor_done) struct descriptor descriptor = {0};
    if (json_object_array_length(backing->configuration) < 2)
        return refuse(document, "/predicate/configuration", err, "it must hold tenure.json and evidence");
    enum result r = READ(document, POINTER, json_object_array_get_idx(backing->configuration, 0),
        CONFIG_FIELDS, &descriptor, err);
    if (r == RESULT_OK && strcmp(descriptor.name, CONFIG_DESCRIPTOR) != 0)
        r = refuse(document, POINTER, err, "the first descriptor must be that of " CONFIG_DESCRIPTOR);
    if (r == RESULT_OK)
        r = read_digest(document, POINTER, &descriptor, err);
    if (r == RESULT_OK)
        backing->config_digest = STEAL(descriptor.digest);
    return r;
}

static enum result read_descriptor(const struct json_document *document, const char *pointer,
    struct json_object *object, struct descriptor *ret, struct error *err)
{
    _cleanup_(mem_free) char *notes = mem_format("%s/annotations", pointer);
    enum result r = READ(document, pointer, object, EVIDENCE_FIELDS, ret, err);
    if (r == RESULT_OK)
        r = read_digest(document, pointer, ret, err);
    if (r == RESULT_OK)
        r = READ(document, notes, ret->annotations, ANNOTATION_FIELDS, ret, err);
    if (r == RESULT_OK && strncmp(ret->name, EVIDENCE_PREFIX, strlen(EVIDENCE_PREFIX)) != 0)
        r = refuse(document, pointer, err, "the name must begin with " EVIDENCE_PREFIX);
    return r;
}

/* The producer is named twice, for readers of either list; the two must agree. */
static bool is_passed_test(const struct backing *backing, size_t index, const char *producer)
{
    struct json_object *name = json_object_array_get_idx(backing->passed, index);
    return json_object_is_type(name, json_type_string) &&
           (size_t)json_object_get_string_len(name) == strlen(producer) &&
           strcmp(json_object_get_string(name), producer) == 0;
}

static enum result read_evidence(
    const struct json_document *document, struct backing *backing, size_t index, struct error *err)
{
    _cleanup_(descriptor_done) struct descriptor descriptor = {0};
    _cleanup_(mem_free) char *pointer = mem_format("/predicate/configuration/%zu", index + 1);
    struct json_object *object = json_object_array_get_idx(backing->configuration, index + 1);
    enum result r = read_descriptor(document, pointer, object, &descriptor, err);
    if (r != RESULT_OK)
        return r;
    const char *producer = descriptor.name + strlen(EVIDENCE_PREFIX);
    if (!is_passed_test(backing, index, producer))
        return refuse(document, "/predicate/passedTests", err, "it does not agree with the configuration");
    backing->evidence[backing->evidence_count++] = (struct statement_evidence){
        .producer = mem_string(producer),
        .key = STEAL(descriptor.digest),
        .sequence = descriptor.sequence,
        .reused = descriptor.reused,
    };
    return RESULT_OK;
}

static enum result read_predicate(
    const struct json_document *document, struct backing *backing, struct error *err)
{
    enum result r = read_result(document, backing, err);
    if (r == RESULT_OK)
        r = READ(document, "/predicate", backing->predicate, PREDICATE_FIELDS, backing, err);
    if (r == RESULT_OK)
        r = read_config(document, backing, err);
    if (r != RESULT_OK)
        return r;
    size_t count = json_object_array_length(backing->configuration) - 1;
    if (json_object_array_length(backing->passed) != count)
        return refuse(document, "/predicate/passedTests", err, "it does not agree with the configuration");
    backing->evidence = mem_alloc(count * sizeof(*backing->evidence));
    for (size_t i = 0; r == RESULT_OK && i < count; i++)
        r = read_evidence(document, backing, i, err);
    return r == RESULT_OK ? read_extension(document, backing, err) : r;
}

static void statement_fill(struct backing *backing, int64_t wall_ms, struct statement *ret)
{
    *ret = (struct statement){
        .repository = backing->repository,
        .commit = backing->commit,
        .tree = backing->tree,
        .config_digest = backing->config_digest,
        .demand_digest = backing->demand_digest,
        .evidence = backing->evidence,
        .evidence_count = backing->evidence_count,
        .complete = backing->complete,
        .attempt_id = backing->attempt_id,
        .fence = backing->fence,
        .journal_head = backing->journal_head,
        .version = backing->version,
        .wall_ms = wall_ms,
        .backing = backing,
    };
}

enum result statement_decode(const char *json, size_t length, struct statement *ret, struct error *err)
{
    _cleanup_(json_document_done) struct json_document document = {0};
    _cleanup_(backing_cleanup) struct backing *backing = mem_alloc(sizeof(*backing));
    int64_t wall_ms = 0;
    enum result r = json_document_parse(json, length, "statement", &document, err);
    if (r == RESULT_OK)
        r = read_root(&document, backing, err);
    if (r == RESULT_OK)
        r = read_subject(&document, backing, err);
    if (r == RESULT_OK)
        r = read_predicate(&document, backing, err);
    if (r == RESULT_OK && !clock_parse_utc(backing->time, &wall_ms))
        r = refuse(&document, "/predicate/tenure/time", err, "it must be a time in UTC");
    if (r != RESULT_OK)
        return r;
    statement_fill(STEAL(backing), wall_ms, ret);
    return RESULT_OK;
}
