#include "supervisor/marks-private.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "supervisor/proc-private.h"
#include "supervisor/process.h"

#define ENVIRONMENT_LIMIT_BYTES ((size_t)16 * 1024 * 1024) /* the kernel allows 6 MiB */
#define SEPARATOR               ':'
#define STORE_ID_DIGITS         16 /* at least; an address of a store is no such word */

/* ---- lists ---- */

/* Element `index`; false behind the last one. An empty list has no element. */
static bool list_item(const char *list, size_t index, const char **ret, size_t *ret_length)
{
    while (index > 0 && (list = strchr(list, SEPARATOR))) {
        list++;
        index--;
    }
    if (!list || !*list)
        return false;
    *ret = list;
    *ret_length = strcspn(list, ":");
    return true;
}

static size_t list_count(const char *list)
{
    size_t count = *list ? 1 : 0;
    for (; *list; list++)
        count += *list == SEPARATOR;
    return count;
}

static bool item_is(const char *list, size_t index, const char *wanted)
{
    const char *item;
    size_t length;
    return list_item(list, index, &item, &length) && length == strlen(wanted) &&
           memcmp(item, wanted, length) == 0;
}

static bool list_has(const char *list, const char *wanted)
{
    for (size_t i = 0; i < list_count(list); i++)
        if (item_is(list, i, wanted))
            return true;
    return false;
}

/* Lists of different lengths were not made by us pair by pair: then each is looked at by itself. */
static bool lists_bear(const char *attempts, const char *stores, const struct mark_scan *scan)
{
    if (list_count(attempts) != list_count(stores))
        return list_has(attempts, scan->attempt_id) && list_has(stores, scan->store_id);
    for (size_t i = 0; i < list_count(attempts); i++)
        if (item_is(attempts, i, scan->attempt_id) && item_is(stores, i, scan->store_id))
            return true;
    return false;
}

bool mark_stores_are_ids(const char *stores)
{
    const char *item;
    size_t length, index = 0;
    for (; list_item(stores, index, &item, &length); index++)
        if (length < STORE_ID_DIGITS || strspn(item, "0123456789abcdef") != length)
            return false;
    return index > 0 && index == list_count(stores);
}

static bool are_pairs(const char *attempts, const char *stores)
{
    return attempts && stores && *attempts && mark_stores_are_ids(stores) &&
           list_count(attempts) == list_count(stores);
}

void mark_append(const char *attempts, const char *stores, const char *attempt_id, const char *store_id,
    char **ret_attempts, char **ret_stores)
{
    bool nested = are_pairs(attempts, stores);
    *ret_attempts = nested ? mem_format("%s%c%s", attempts, SEPARATOR, attempt_id) : mem_string(attempt_id);
    *ret_stores = nested ? mem_format("%s%c%s", stores, SEPARATOR, store_id) : mem_string(store_id);
}

bool mark_is_inside(const char *store_id)
{
    const char *stores = getenv("TENURE_STORE");
    return stores && getenv("TENURE_ATTEMPT") && list_has(stores, store_id);
}

bool mark_is_of(const char *attempt_id, const char *store_id)
{
    const char *attempts = getenv("TENURE_ATTEMPT"), *stores = getenv("TENURE_STORE");
    struct mark_scan scan = {.store_id = store_id, .attempt_id = attempt_id};
    return attempts && stores && lists_bear(attempts, stores, &scan);
}

/* ---- environments ---- */

static const char *environment_value(const struct text *environment, const char *name)
{
    size_t length = strlen(name);
    for (size_t at = 0; at < environment->length;) {
        const char *entry = environment->bytes + at;
        if (strncmp(entry, name, length) == 0 && entry[length] == '=')
            return entry + length + 1;
        at += strlen(entry) + 1;
    }
    return NULL;
}

/* DENIED when it may not be looked at; otherwise *ret says whether it bears the mark. */
static enum result process_bears(const struct mark_scan *scan, pid_t pid, bool *ret)
{
    _cleanup_(text_done) struct text environment = {0};
    _cleanup_(mem_free) char *path = mem_format("/proc/%d/environ", pid);
    enum result r = file_read(AT_FDCWD, path, false, ENVIRONMENT_LIMIT_BYTES, &environment, NULL);
    if (r != RESULT_OK)
        return r;
    const char *attempts = environment_value(&environment, "TENURE_ATTEMPT");
    const char *stores = environment_value(&environment, "TENURE_STORE");
    *ret = attempts && stores && lists_bear(attempts, stores, scan);
    return RESULT_OK;
}

/* ---- the scan ---- */

static void pids_add(pid_t **pids, size_t *count, size_t *capacity, pid_t pid)
{
    mem_grow(pids, capacity, *count, sizeof(pid_t));
    (*pids)[(*count)++] = pid;
}

static bool pids_have(const pid_t *pids, size_t count, pid_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

/* Up to the first process, or to the border of the pid namespace, beyond which the parent's number is 0. */
static void ancestors_collect(struct mark_scan *scan)
{
    struct proc_stat stat;
    for (pid_t pid = getpid(); pid > 0 && !mark_scan_is_kin(scan, pid); pid = stat.parent) {
        pids_add(&scan->ancestors, &scan->ancestor_count, &scan->ancestor_capacity, pid);
        if (!proc_stat_read(pid, &stat))
            return;
    }
}

void mark_scan_init(struct mark_scan *scan, const char *store_id, const char *attempt_id, int signal)
{
    *scan = (struct mark_scan){.store_id = store_id, .attempt_id = attempt_id, .signal = signal};
    ancestors_collect(scan);
}

void mark_scan_done(struct mark_scan *scan)
{
    text_done(&scan->named);
    text_done(&scan->unseen);
    free(scan->known);
    free(scan->ancestors);
    *scan = (struct mark_scan){0};
}

bool mark_scan_is_kin(const struct mark_scan *scan, pid_t pid)
{
    return pids_have(scan->ancestors, scan->ancestor_count, pid);
}

static void found_name(struct mark_scan *scan, pid_t pid, bool denied)
{
    struct proc_stat stat = {.name = "gone"};
    if (pids_have(scan->known, scan->known_count, pid))
        return;
    proc_stat_read(pid, &stat);
    proc_name_add(&scan->named, pid, stat.name, denied ? "may not be signalled" : NULL);
    pids_add(&scan->known, &scan->known_count, &scan->known_capacity, pid);
    scan->signalled += !denied;
}

/* The mark is read once more behind the pidfd: what bears it then is the process that the pidfd is of. */
static void found_signal(struct mark_scan *scan, pid_t pid)
{
    struct process process;
    bool bears = false;
    if (process_open(pid, 0, &process, NULL) != RESULT_OK)
        return;
    if (process_bears(scan, pid, &bears) == RESULT_OK && bears && !process_is_gone(&process)) {
        bool denied = process_signal(&process, scan->signal, NULL) == RESULT_DENIED;
        scan->found++;
        scan->denied += denied;
        found_name(scan, pid, denied);
    }
    process_close(&process);
}

/* Another user's process cannot be of this user's work, but for what changed its user, which asked for that.
 * One of this user that hides its environment, though, may be. */
static void unseen_note(struct mark_scan *scan, pid_t pid)
{
    struct proc_stat stat;
    uid_t user;
    if (!proc_user(pid, &user) || user != getuid() || !proc_stat_read(pid, &stat))
        return;
    if (proc_stat_is_dead(&stat) || stat.start_ticks < scan->attempt_start_ticks)
        return;
    if (pids_have(scan->known, scan->known_count, pid))
        return;
    proc_name_add(&scan->unseen, pid, stat.name, NULL);
    pids_add(&scan->known, &scan->known_count, &scan->known_capacity, pid);
}

static void scan_visit(void *context, pid_t pid)
{
    struct mark_scan *scan = context;
    bool bears = false;
    enum result r = process_bears(scan, pid, &bears);
    if (r == RESULT_DENIED)
        unseen_note(scan, pid);
    if (r != RESULT_OK || !bears)
        return;
    if (mark_scan_is_kin(scan, pid))
        scan->kin++;
    else
        found_signal(scan, pid);
}

void mark_scan_run(struct mark_scan *scan)
{
    scan->found = scan->kin = scan->denied = 0;
    proc_each(scan_visit, scan);
}

size_t mark_kill(const char *store_id, const char *attempt_id, int signal, struct text *named)
{
    struct mark_scan scan;
    mark_scan_init(&scan, store_id, attempt_id, signal);
    mark_scan_run(&scan);
    size_t found = scan.found;
    if (named && scan.named.length) {
        if (named->length)
            text_add(named, ", ");
        text_append(named, scan.named.bytes, scan.named.length);
    }
    mark_scan_done(&scan);
    return found;
}
