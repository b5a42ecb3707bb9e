#include "base/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/files.h"

#define INITIAL_PID_NS_INO  0xEFFFFFFCU /* PROC_PID_INIT_INO of the kernel's linux/proc_ns.h */
#define ID_DIGITS           32
#define ID_LIMIT_BYTES      256
#define ENVIRON_LIMIT_BYTES ((size_t)256 * 1024)

/* machine-id(5) asks not to show the id itself, but a keyed hash of it. Changing this key makes every machine
 * a new one. */
static const uint8_t APPLICATION_KEY[] = "tenure machine identity, version 1";

static bool is_id(const char *text)
{
    return strspn(text, "0123456789abcdef") == ID_DIGITS && (text[ID_DIGITS] == '\n' || !text[ID_DIGITS]);
}

static void keyed_hash(const void *bytes, size_t length, char ret[MACHINE_ID_SIZE])
{
    uint8_t hash[DIGEST_SHORT_BYTES];
    if (crypto_generichash(hash, sizeof(hash), bytes, length, APPLICATION_KEY, sizeof(APPLICATION_KEY) - 1) !=
        0)
        abort();
    hex_encode(hash, sizeof(hash), ret);
}

static bool id_hash(const char *path, char ret[MACHINE_ID_SIZE])
{
    _cleanup_(text_done) struct text text = {0};
    if (file_read(AT_FDCWD, path, false, ID_LIMIT_BYTES, &text, NULL) != RESULT_OK || !is_id(text.bytes))
        return false;
    keyed_hash(text.bytes, ID_DIGITS, ret);
    return true;
}

/* Images of containers and new roots often have no id. The host's name then stands in: it tells the machines
 * apart that people tell apart. Locks and leases do not rest on it; the embedded store does. */
static void machine_id_read(struct machine *machine)
{
    static const char *const PATHS[] = {"/etc/machine-id", "/var/lib/dbus/machine-id"};
    for (size_t i = 0; i < ARRAY_SIZE(PATHS); i++)
        if (id_hash(PATHS[i], machine->machine_id))
            return;
    keyed_hash(machine->host, strlen(machine->host), machine->machine_id);
    machine->named_by_host = true;
}

static enum result proc_missing(struct error *err, int errnum, const char *path)
{
    error_errno(err, errnum, "cannot read %s", path);
    error_remedy(err, "mount /proc: mount -t proc proc /proc");
    return RESULT_SYSTEM;
}

static enum result boot_id_read(char ret[MACHINE_ID_SIZE], struct error *err)
{
    static const char PATH[] = "/proc/sys/kernel/random/boot_id";
    _cleanup_(text_done) struct text text = {0};
    _cleanup_(error_done) struct error cause = {0};
    if (file_read(AT_FDCWD, PATH, false, ID_LIMIT_BYTES, &text, &cause) != RESULT_OK)
        return proc_missing(err, cause.errnum, PATH);
    char id[MACHINE_ID_SIZE] = "";
    size_t length = 0;
    for (const char *from = text.bytes; *from && *from != '\n' && length < sizeof(id) - 1; from++)
        if (*from != '-')
            id[length++] = *from;
    if (!is_id(id))
        return error_set(err, RESULT_SYSTEM, 0, "%s does not hold a boot id", PATH);
    memcpy(ret, id, sizeof(id));
    return RESULT_OK;
}

static enum result pid_namespace_read(uint64_t *ret, struct error *err)
{
    struct stat status;
    if (stat("/proc/self/ns/pid", &status) != 0)
        return proc_missing(err, errno, "/proc/self/ns/pid");
    *ret = status.st_ino;
    return RESULT_OK;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The variable by which container managers tell the first process (systemd's container interface). */
static bool init_names_container(void)
{
    static const char NAME[] = "container=";
    _cleanup_(text_done) struct text text = {0};
    if (file_read(AT_FDCWD, "/proc/1/environ", false, ENVIRON_LIMIT_BYTES, &text, NULL) != RESULT_OK)
        return false;
    for (const char *at = text.bytes, *end = at + text.length; at < end; at += strlen(at) + 1)
        if (strncmp(at, NAME, sizeof(NAME) - 1) == 0 && at[sizeof(NAME) - 1])
            return true;
    return false;
}

static bool is_container(uint64_t pid_namespace)
{
    return pid_namespace != INITIAL_PID_NS_INO || exists("/run/systemd/container") || exists("/.dockerenv") ||
           exists("/run/.containerenv") || init_names_container();
}

static void host_read(char *ret, size_t size)
{
    if (gethostname(ret, size) != 0 || !*ret)
        memcpy(ret, "localhost", sizeof("localhost"));
    ret[size - 1] = '\0';
}

#ifdef TENURE_FAILPOINTS
static bool pretended(const char *variable, char ret[MACHINE_ID_SIZE])
{
    const char *value = getenv(variable);
    if (!value || !*value || strlen(value) >= MACHINE_ID_SIZE)
        return false;
    memcpy(ret, value, strlen(value) + 1);
    return true;
}
#else
static bool pretended(const char *variable _unused_, char ret[MACHINE_ID_SIZE] _unused_)
{
    return false;
}
#endif

enum result machine_read(struct machine *ret, struct error *err)
{
    struct machine machine = {0};
    enum result r = RESULT_OK;
    host_read(machine.host, sizeof(machine.host));
    if (!pretended("TENURE_TEST_MACHINE_ID", machine.machine_id))
        machine_id_read(&machine);
    if (!pretended("TENURE_TEST_BOOT_ID", machine.boot_id))
        r = boot_id_read(machine.boot_id, err);
    if (r == RESULT_OK)
        r = pid_namespace_read(&machine.pid_namespace, err);
    if (r != RESULT_OK)
        return r;
    machine.container = is_container(machine.pid_namespace);
    *ret = machine;
    return RESULT_OK;
}
