/*
 * The processes that a walk down the tree has met, in memory that is mapped and never allocated: the guard
 * must not wait for a lock of malloc that a hung loop may hold.
 *
 * A pass visits each process once, in the order of discovery (parents before their children, but for those
 * that were orphaned meanwhile). What is known of a process outlives the pass, for as long as its start time
 * stays the same. One user at a time.
 */
#ifndef SUPERVISOR_ROSTER_PRIVATE_H
#define SUPERVISOR_ROSTER_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct member {
    pid_t pid;     /* 0: an empty place */
    uint32_t pass; /* in which it was last visited */
    int64_t start_ticks;
    bool dead;           /* a zombie when last seen */
    bool stopped_before; /* by somebody else, before the freeze */
    bool ours;           /* stopped by the freeze */
    bool killed;         /* SIGKILL was sent */
    bool denied;         /* may not be signalled */
};

struct visit {
    pid_t pid, parent;
};

struct roster {
    struct member *members; /* open addressing by pid; a power of two */
    size_t capacity, count;
    struct visit *visits; /* of this pass */
    size_t visit_capacity, visit_count;
    uint32_t pass;
};

bool roster_init(struct roster *roster); /* false: no memory (errno) */
void roster_done(struct roster *roster);
void roster_clear(struct roster *roster); /* forgets all members */

void roster_begin_pass(struct roster *roster);
/* Puts a process on the list of this pass. Without memory it is left out: the next pass tries again. */
void roster_enqueue(struct roster *roster, pid_t pid, pid_t parent);

/* The member, made when it is not known or its number was used again (*ret_fresh). NULL without memory. Valid
 * until the next call. */
struct member *roster_meet(struct roster *roster, pid_t pid, int64_t start_ticks, bool *ret_fresh);
struct member *roster_find(const struct roster *roster, pid_t pid); /* NULL when not known */

#endif
