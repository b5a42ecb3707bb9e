/* The one cause of a held run: who is in the way, since when, until when at the latest, how to reconnect. */
#ifndef CLI_PENDING_H
#define CLI_PENDING_H

#include <json-c/json.h>

#include "cli/cli.h"
#include "supervisor/hold.h"

void pending_add(const struct look *look, const struct pending *pending, struct text *ret);
struct json_object *pending_json(const struct pending *pending);

/* Says who is in the way, in one document or for people, and returns as report_json() and `status`. */
int pending_report(const struct cli *cli, const struct pending *pending, int status);

/* "tenure attach T-...", owned by the caller; NULL when the holder has no journal. */
char *pending_reconnect(const struct attempt *holder);

#endif
