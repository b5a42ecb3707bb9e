/* Looking at a store from outside: shared by overview.c and cancel.c. One thread per object. */
#ifndef SUPERVISOR_OVERVIEW_PRIVATE_H
#define SUPERVISOR_OVERVIEW_PRIVATE_H

#include "supervisor/overview.h"

struct look {
    struct machine machine;
    struct store *store;
};

/* Fills `ret` also when the store cannot be opened; look_close() in every case. The object must not move. */
_must_use_ enum result look_open(
    const char *store_url, enum store_access access, struct look *ret, struct error *err);
void look_close(struct look *look);
_must_use_ enum result look_find(
    struct look *look, const char *typed, struct attempt *ret, struct error *err);
/* Takes over `attempt`. */
void look_judge(const struct look *look, struct attempt *attempt, const struct store_time *now,
    struct overview_entry *ret);

#endif
