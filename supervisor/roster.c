#include "supervisor/roster-private.h"

#include <string.h>
#include <sys/mman.h>

#define MEMBERS_FIRST ((size_t)4096)
#define VISITS_FIRST  ((size_t)4096)

static void *pages_map(size_t count, size_t size_bytes)
{
    void *pages = mmap(NULL, count * size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

static void pages_unmap(void *pages, size_t count, size_t size_bytes)
{
    if (pages)
        munmap(pages, count * size_bytes);
}

bool roster_init(struct roster *roster)
{
    *roster = (struct roster){.capacity = MEMBERS_FIRST, .visit_capacity = VISITS_FIRST};
    roster->members = pages_map(roster->capacity, sizeof(struct member));
    roster->visits = pages_map(roster->visit_capacity, sizeof(struct visit));
    if (roster->members && roster->visits)
        return true;
    roster_done(roster);
    return false;
}

void roster_done(struct roster *roster)
{
    pages_unmap(roster->members, roster->capacity, sizeof(struct member));
    pages_unmap(roster->visits, roster->visit_capacity, sizeof(struct visit));
    *roster = (struct roster){0};
}

void roster_clear(struct roster *roster)
{
    memset(roster->members, 0, roster->capacity * sizeof(struct member));
    roster->count = 0;
}

void roster_begin_pass(struct roster *roster)
{
    roster->pass++;
    roster->visit_count = 0;
}

static bool visits_grow(struct roster *roster)
{
    size_t wanted = roster->visit_capacity * 2;
    void *moved = mremap(roster->visits, roster->visit_capacity * sizeof(struct visit),
        wanted * sizeof(struct visit), MREMAP_MAYMOVE);
    if (moved == MAP_FAILED)
        return false;
    roster->visits = moved;
    roster->visit_capacity = wanted;
    return true;
}

void roster_enqueue(struct roster *roster, pid_t pid, pid_t parent)
{
    if (roster->visit_count == roster->visit_capacity && !visits_grow(roster))
        return;
    roster->visits[roster->visit_count++] = (struct visit){.pid = pid, .parent = parent};
}

/* Where the member is, or the empty place at which it would be put. At most half of the places are taken. */
static struct member *place_of(struct member *members, size_t capacity, pid_t pid)
{
    size_t at = (size_t)pid & (capacity - 1);
    while (members[at].pid != 0 && members[at].pid != pid)
        at = (at + 1) & (capacity - 1);
    return &members[at];
}

static bool members_grow(struct roster *roster)
{
    size_t wanted = roster->capacity * 2;
    struct member *members = pages_map(wanted, sizeof(struct member));
    if (!members)
        return false;
    for (size_t i = 0; i < roster->capacity; i++)
        if (roster->members[i].pid != 0)
            *place_of(members, wanted, roster->members[i].pid) = roster->members[i];
    pages_unmap(roster->members, roster->capacity, sizeof(struct member));
    roster->members = members;
    roster->capacity = wanted;
    return true;
}

struct member *roster_meet(struct roster *roster, pid_t pid, int64_t start_ticks, bool *ret_fresh)
{
    if (roster->count * 2 >= roster->capacity && !members_grow(roster))
        return NULL;
    struct member *member = place_of(roster->members, roster->capacity, pid);
    *ret_fresh = member->pid == 0 || member->start_ticks != start_ticks;
    if (member->pid == 0)
        roster->count++;
    if (*ret_fresh)
        *member = (struct member){.pid = pid, .start_ticks = start_ticks};
    return member;
}

struct member *roster_find(const struct roster *roster, pid_t pid)
{
    struct member *member = place_of(roster->members, roster->capacity, pid);
    return member->pid != 0 ? member : NULL;
}
