/* Extractors and standards: their form is checked, so that a mistake is told as one, and then they are
 * refused. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "completion/demand/config-private.h"

struct extractor_form {
    char *from, *artifact;
    struct json_object *run;
};

static const struct json_field EXTRACTOR_FIELDS[] = {
    {"from", JSON_STRING, offsetof(struct extractor_form, from), true, 0, 0},
    {"run", JSON_VALUE, offsetof(struct extractor_form, run), true, 0, 0},
    {"artifact", JSON_STRING, offsetof(struct extractor_form, artifact), false, 0, 0},
};

struct standard_form {
    char *extractor, *metric, *direction;
    struct json_object *limit, *margin;
};

static const struct json_field STANDARD_FIELDS[] = {
    {"extractor", JSON_STRING, offsetof(struct standard_form, extractor), true, 0, 0},
    {"metric", JSON_STRING, offsetof(struct standard_form, metric), true, 0, 0},
    {"direction", JSON_STRING, offsetof(struct standard_form, direction), true, 0, 0},
    {"limit", JSON_VALUE, offsetof(struct standard_form, limit), true, 0, 0},
    {"margin", JSON_VALUE, offsetof(struct standard_form, margin), false, 0, 0},
};

typedef enum result (*read_member_fn)(const struct reading *reading, const char *pointer,
    struct json_object *object, struct json_object *around);

static enum result refuse_at(
    const struct reading *reading, const char *pointer, const char *key, const char *what)
{
    _cleanup_(mem_free) char *below = json_pointer_join(pointer, key);
    return json_error_at(reading->document, below, false, reading->err, "%s", what);
}

static enum result check_extractor(
    const struct reading *reading, const char *pointer, const struct extractor_form *form)
{
    struct command_line run = {0};
    _cleanup_(mem_free) char *run_pointer = json_pointer_join(pointer, "run");
    if (config_producer(reading->config, form->from) == SIZE_MAX)
        return refuse_at(reading, pointer, "from", "there is no producer of this name");
    _cleanup_(mem_free) char *artifact = mem_string(form->artifact);
    const char *wrong = artifact ? check_output(artifact) : NULL;
    if (wrong)
        return refuse_at(reading, pointer, "artifact", wrong);
    enum result r = read_command(reading, run_pointer, form->run, &run);
    command_line_done(&run);
    return r;
}

static enum result read_extractor(const struct reading *reading, const char *pointer,
    struct json_object *object, struct json_object *around)
{
    (void)around;
    struct extractor_form form = {0};
    enum result r = json_table_read(reading->document, pointer, object, EXTRACTOR_FIELDS,
        ARRAY_SIZE(EXTRACTOR_FIELDS), true, &form, reading->err);
    if (r == RESULT_OK)
        r = check_extractor(reading, pointer, &form);
    free(form.from);
    free(form.artifact);
    return r;
}

static bool is_number(struct json_object *value)
{
    return json_object_is_type(value, json_type_int) ||
           (json_object_is_type(value, json_type_double) && isfinite(json_object_get_double(value)));
}

static enum result check_standard(const struct reading *reading, const char *pointer,
    const struct standard_form *form, struct json_object *extractors)
{
    if (!extractors || !json_object_object_get_ex(extractors, form->extractor, NULL))
        return refuse_at(reading, pointer, "extractor", "there is no extractor of this name");
    if (!*form->metric)
        return refuse_at(reading, pointer, "metric", "the metric is empty");
    if (strcmp(form->direction, "up") != 0 && strcmp(form->direction, "down") != 0)
        return refuse_at(reading, pointer, "direction", "must be \"up\" or \"down\"");
    if (!is_number(form->limit))
        return refuse_at(reading, pointer, "limit", "must be a number");
    if (form->margin && (!is_number(form->margin) || json_object_get_double(form->margin) < 0))
        return refuse_at(reading, pointer, "margin", "must be a number that is not negative");
    return RESULT_OK;
}

static enum result read_standard(const struct reading *reading, const char *pointer,
    struct json_object *object, struct json_object *around)
{
    struct standard_form form = {0};
    enum result r = json_table_read(reading->document, pointer, object, STANDARD_FIELDS,
        ARRAY_SIZE(STANDARD_FIELDS), true, &form, reading->err);
    if (r == RESULT_OK)
        r = check_standard(reading, pointer, &form, around);
    free(form.extractor);
    free(form.metric);
    free(form.direction);
    return r;
}

static enum result read_members(const struct reading *reading, const char *base, struct json_object *object,
    read_member_fn read, struct json_object *around)
{
    if (!object)
        return RESULT_OK;
    enum result r = check_names(reading, base, object);
    struct json_object_iterator at = json_object_iter_begin(object), end = json_object_iter_end(object);
    for (; r == RESULT_OK && !json_object_iter_equal(&at, &end); json_object_iter_next(&at)) {
        _cleanup_(mem_free) char *pointer = json_pointer_join(base, json_object_iter_peek_name(&at));
        r = read(reading, pointer, json_object_iter_peek_value(&at), around);
    }
    return r;
}

enum result refuse_later(
    const struct reading *reading, struct json_object *extractors, struct json_object *standards)
{
    enum result r = read_members(reading, "/extractors", extractors, read_extractor, NULL);
    if (r == RESULT_OK)
        r = read_members(reading, "/standards", standards, read_standard, extractors);
    if (r != RESULT_OK || (!extractors && !standards))
        return r;
    json_error_at(reading->document, standards ? "/standards" : "/extractors", true, reading->err, "%s",
        standards ? "standards are not in this version"
                  : "standards are not in this version, and extractors serve nothing else");
    return error_remedy(reading->err, "take \"extractors\" and \"standards\" out");
}
