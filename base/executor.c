#include "base/executor.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/files.h"
#include "base/json_table.h"
#include "base/memory.h"

#define STAT_LIMIT_BYTES   4096
#define STAT_FIELD_START   22 /* proc(5): starttime */
#define STAT_FIELD_STATE   3  /* the first one behind the command's name */
#define PASSWD_LIMIT_BYTES 16384
#define INCARNATION_BYTES  ((INCARNATION_SIZE - 1) / 2)

static const char *const VERDICT_NAMES[] = {
    [OWNER_UNKNOWN] = "unknown",
    [OWNER_RUNNING] = "running",
    [OWNER_GONE] = "gone",
};

const char *owner_verdict_name(enum owner_verdict verdict)
{
    return (size_t)verdict < ARRAY_SIZE(VERDICT_NAMES) ? VERDICT_NAMES[verdict]
                                                       : VERDICT_NAMES[OWNER_UNKNOWN];
}

char *executor_text(const struct executor *executor)
{
    const char *user = executor->user[0] ? executor->user : "somebody";
    const char *host = executor->host[0] ? executor->host : "an unknown host";

    if (executor->pid <= 0)
        return mem_format("%s on %s, pid unknown", user, host);
    return mem_format("%s on %s, pid %lld", user, host, (long long)executor->pid);
}

/* The command's name may hold spaces and parentheses, so the fields are counted from its last one. */
static bool stat_start(const char *stat, int64_t *ret)
{
    const char *at = strrchr(stat, ')');
    for (int field = STAT_FIELD_STATE; at && field <= STAT_FIELD_START; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return false;
    char number[24] = "";
    size_t length = strcspn(at + 1, " \n");
    if (length >= sizeof(number))
        return false;
    memcpy(number, at + 1, length);
    return text_parse_int(number, 0, INT64_MAX, ret);
}

enum result process_start_ticks(int64_t pid, int64_t *ret, struct error *err)
{
    char path[64];
    _cleanup_(text_done) struct text text = {0};
    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    enum result r = file_read(AT_FDCWD, path, false, STAT_LIMIT_BYTES, &text, err);
    if (r == RESULT_ABSENT)
        return error_set(err, RESULT_ABSENT, ESRCH, "there is no process %lld", (long long)pid);
    if (r != RESULT_OK)
        return r;
    if (!text.length) /* ended between open and read */
        return error_set(err, RESULT_ABSENT, ESRCH, "there is no process %lld", (long long)pid);
    return stat_start(text.bytes, ret) ? RESULT_OK
                                       : error_set(err, RESULT_SYSTEM, 0, "%s cannot be understood", path);
}

static void user_read(uid_t uid, char *ret, size_t size)
{
    char space[PASSWD_LIMIT_BYTES];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(uid, &entry, space, sizeof(space), &found) == 0 && found && strlen(entry.pw_name) < size)
        memcpy(ret, entry.pw_name, strlen(entry.pw_name) + 1);
    else
        snprintf(ret, size, "%u", (unsigned)uid);
}

static void incarnation_make(char ret[INCARNATION_SIZE])
{
    uint8_t bytes[INCARNATION_BYTES];
    random_bytes(bytes, sizeof(bytes));
    hex_encode(bytes, sizeof(bytes), ret);
}

enum result executor_self(const struct machine *machine, struct executor *ret, struct error *err)
{
    struct executor self = {
        .pid_namespace = machine->pid_namespace,
        .pid = getpid(),
        .uid = getuid(),
    };
    enum result r = process_start_ticks(self.pid, &self.start_ticks, err);
    if (r != RESULT_OK)
        return r;
    memcpy(self.machine_id, machine->machine_id, sizeof(self.machine_id));
    memcpy(self.boot_id, machine->boot_id, sizeof(self.boot_id));
    memcpy(self.host, machine->host, sizeof(self.host));
    user_read(getuid(), self.user, sizeof(self.user));
    incarnation_make(self.incarnation);
    *ret = self;
    return RESULT_OK;
}

static const struct json_field FIELDS[] = {
    {"machine_id", JSON_BUFFER, offsetof(struct executor, machine_id), true, 0, MACHINE_ID_SIZE},
    {"boot_id", JSON_BUFFER, offsetof(struct executor, boot_id), true, 0, MACHINE_ID_SIZE},
    {"host", JSON_BUFFER, offsetof(struct executor, host), false, 0, sizeof(((struct executor *)0)->host)},
    {"user", JSON_BUFFER, offsetof(struct executor, user), false, 0, sizeof(((struct executor *)0)->user)},
    {"incarnation", JSON_BUFFER, offsetof(struct executor, incarnation), true, 0, INCARNATION_SIZE},
    {"pid_namespace", JSON_INTEGER, offsetof(struct executor, pid_namespace), true, 0, INT64_MAX},
    {"pid", JSON_INTEGER, offsetof(struct executor, pid), true, 1, INT32_MAX},
    {"start_ticks", JSON_INTEGER, offsetof(struct executor, start_ticks), true, 0, INT64_MAX},
    {"uid", JSON_INTEGER, offsetof(struct executor, uid), true, 0, UINT32_MAX},
};

struct json_object *executor_to_json(const struct executor *executor)
{
    struct json_object *json = json_object_new_object();
    json_add_string(json, "machine_id", executor->machine_id);
    json_add_string(json, "boot_id", executor->boot_id);
    json_add_string(json, "host", executor->host);
    json_add_string(json, "user", executor->user);
    json_add_string(json, "incarnation", executor->incarnation);
    json_add_integer(json, "pid_namespace", (int64_t)executor->pid_namespace);
    json_add_integer(json, "pid", executor->pid);
    json_add_integer(json, "start_ticks", executor->start_ticks);
    json_add_integer(json, "uid", executor->uid);
    return json;
}

enum result executor_from_json(struct json_object *json, struct executor *ret, struct error *err)
{
    struct executor executor = {0};
    enum result r = json_table_read(NULL, "", json, FIELDS, ARRAY_SIZE(FIELDS), false, &executor, err);
    if (r != RESULT_OK) {
        error_wrap(err, "executor: ");
        return r;
    }
    *ret = executor;
    return RESULT_OK;
}
