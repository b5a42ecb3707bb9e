/*
 * What the PostgreSQL store has for publications. Its other files are told in store_postgres-private.h.
 *
 *     publication.c                   what needs no server: which statements may be sent, what a tag counts
 *     store_postgres_claim.c          the claim of a row; which database this is
 *     store_postgres_publication.c    the transaction that publishes
 */
#ifndef ATTEMPTS_PUBLICATION_PRIVATE_H
#define ATTEMPTS_PUBLICATION_PRIVATE_H

#include "attempts/publication.h"
#include "attempts/store_postgres-private.h"

/* Reserves by tenure.claim_row_as(): answered like a reserve, and ABSENT. */
_must_use_ enum result postgres_claim(
    struct postgres_store *store, const struct reservation *reservation, PGresult **ret, struct error *err);
enum result postgres_publication_begin(
    struct store *base, const struct credential *credential, struct publication **ret, struct error *err);

/* Adds the rows of a command tag, as "INSERT 0 3". Tags of what changes no rows count nothing. Source:
 * PostgreSQL manual, 55.7, CommandComplete. */
void publication_count(const char *tag, struct publication_counts *counts);

#endif
