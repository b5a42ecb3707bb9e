/*
 * An executor: the process that runs an attempt. The record (attempts/) and the journal's header (journal/)
 * both carry it, and neither knows the other; so it lives here, as a plain value, beside the verdict about
 * it.
 *
 * pid and start time are for people and for ending leftovers. They are never the proof of life; `incarnation`
 * tells two processes apart even when everything else is equal. Values are self-contained and immutable.
 */
#ifndef BASE_EXECUTOR_H
#define BASE_EXECUTOR_H

#include <json-c/json.h>
#include <stdint.h>

#include "base/error.h"
#include "base/machine.h"

#define INCARNATION_SIZE 33 /* 16 random bytes in hex */

struct executor {
    char machine_id[MACHINE_ID_SIZE];
    char boot_id[MACHINE_ID_SIZE];
    char host[256];
    char user[256];
    char incarnation[INCARNATION_SIZE];
    uint64_t pid_namespace;
    int64_t pid;
    int64_t start_ticks; /* field 22 of /proc/PID/stat (proc(5)), clock ticks since boot */
    int64_t uid;
};

/* What a probe of an owner's journal can say. Brought from journal/ to attempts/ as a plain value. */
enum owner_verdict {
    OWNER_UNKNOWN, /* no proof either way: only the lease decides */
    OWNER_RUNNING, /* never extends a lease */
    OWNER_GONE,    /* proven; only shortens the wait */
};

const char *owner_verdict_name(enum owner_verdict verdict); /* "unknown", "running", "gone" */

/* This process, with a fresh random incarnation. */
_must_use_ enum result executor_self(const struct machine *machine, struct executor *ret, struct error *err);

/* How every sentence describes an owner: "alice on build7, pid 4711"; of one that told less, "somebody on an
 * unknown host, pid unknown". Owned by the caller. */
char *executor_text(const struct executor *executor);

struct json_object *executor_to_json(const struct executor *executor); /* caller puts it */
_must_use_ enum result executor_from_json(struct json_object *json, struct executor *ret, struct error *err);

/* Start time of a process in clock ticks, from /proc/PID/stat; RESULT_ABSENT when there is none. */
_must_use_ enum result process_start_ticks(int64_t pid, int64_t *ret, struct error *err);

#endif
