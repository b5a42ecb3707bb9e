/*
 * Which machine, which boot, which container: the facts an identity is made of. Read once per process and
 * handed on; immutable afterwards, so thread-safe. A build with failpoints honours TENURE_TEST_MACHINE_ID and
 * TENURE_TEST_BOOT_ID, so that one kernel can play two machines.
 */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define MACHINE_ID_SIZE 37 /* 32 hex digits, or a UUID for the boot id */

struct machine {
    char machine_id[MACHINE_ID_SIZE]; /* machine-id(5), hashed with an application key as sd_id128 asks; 32
                                         hex */
    char boot_id[MACHINE_ID_SIZE];    /* /proc/sys/kernel/random/boot_id, dashes removed */
    char host[256];                   /* for people */
    bool named_by_host;     /* it has no machine-id, so its id is made of the host's name: another machine may
                               have the same, and another boot id proves nothing about who is gone */
    uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
    bool container;         /* running in a container: its boot id may be its own */
};

/* RESULT_SYSTEM when /proc is not mounted. */
_must_use_ enum result machine_read(struct machine *ret, struct error *err);

#endif
