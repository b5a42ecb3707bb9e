/* An attempt as it is told: by `status`, `log`, `cancel` and a far `attach`. Pure. */
#ifndef CLI_ENTRY_H
#define CLI_ENTRY_H

#include <json-c/json.h>

#include "cli/terminal.h"
#include "supervisor/overview.h"

/* A block of short lines: who, where, since when, last renewal, lapses when, progress, what to type. */
void entry_add(const struct look *look, const struct overview_entry *entry, const struct store_time *now,
    struct text *ret);
/* One line: when, handle, kind, state, how long, why; cut to `columns` (0: not). */
void entry_add_line(
    const struct look *look, const struct overview_entry *entry, int columns, struct text *ret);

/* One field of a block, wrapped on a terminal: "  owner     alice on build7, pid 4711". */
void entry_add_field(const struct look *look, const char *name, const char *value, struct text *ret);
/* What runs and where, and that its owner stands still: as far as the witness knows. For `status` and a held
 * run.
 */
void entry_add_witness(
    const struct look *look, const struct witness *witness, const struct executor *owner, struct text *ret);

/* The record; with `entry` also what is known of its owner and lease. */
struct json_object *entry_json(const struct attempt *attempt, const struct overview_entry *entry);

/* "producers 2 of 4". */
void progress_add(const struct attempt *attempt, struct text *ret);

#endif
