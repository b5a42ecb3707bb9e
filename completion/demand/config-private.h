/* What the files that read tenure.json share. A `struct reading` lives for one config_parse(). */
#ifndef COMPLETION_DEMAND_CONFIG_PRIVATE_H
#define COMPLETION_DEMAND_CONFIG_PRIVATE_H

#include "base/json_table.h"
#include "completion/demand/config.h"

#define NAME_LIMIT_BYTES 100

struct reading {
    const struct json_document *document;
    struct config *config;
    struct error *err;
};

/* Refuses one string of a list: NULL when it is good, otherwise what is wrong with it. May rewrite it. */
typedef const char *(*check_string_fn)(char *string);

/* Readers of values; `pointer` is the value's place. */
_must_use_ enum result read_strings(const struct reading *reading, const char *pointer,
    struct json_object *array, check_string_fn check, struct strings *ret);
_must_use_ enum result read_command(
    const struct reading *reading, const char *pointer, struct json_object *value, struct command_line *ret);
void strings_done(struct strings *strings);
void command_line_done(struct command_line *command);

/* The objects below the root. Absent ones are NULL and fine. */
_must_use_ enum result read_lease(const struct reading *reading, struct json_object *object);
_must_use_ enum result read_producers(const struct reading *reading, struct json_object *object);
_must_use_ enum result read_procedures(const struct reading *reading, struct json_object *object);
_must_use_ enum result refuse_later(
    const struct reading *reading, struct json_object *extractors, struct json_object *standards);

/* Names of the members of `object`, which stands at `pointer`: form, and no twin after case folding. */
_must_use_ enum result check_names(
    const struct reading *reading, const char *pointer, struct json_object *object);

/* Over all producers: no output twice, needs known and without a cycle. The latter fills need_indices and
 * order. */
_must_use_ enum result check_outputs(const struct reading *reading);
_must_use_ enum result order_producers(const struct reading *reading);

/* Walks over the places of a container's members in the order of the text. */
struct place_walk {
    const struct json_document *document;
    size_t container, at;
};
/* SIZE_MAX when there is none. `container` is an index too. */
size_t place_member(const struct json_document *document, size_t container, const char *key);
struct place_walk place_walk(const struct json_document *document, size_t container);
size_t place_next(struct place_walk *walk);

/* Checks for read_strings(). */
const char *check_glob(char *glob);
const char *check_output(char *path);
const char *check_need(char *name);
const char *check_variable(char *name);
const char *check_tool(char *name);

#endif
