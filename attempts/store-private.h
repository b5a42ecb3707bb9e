/*
 * What a kind of store provides: the functions of store.h, behind one table. store.c checks arguments that
 * are wrong for every store and dispatches; nothing else includes this file but the stores.
 */
#ifndef ATTEMPTS_STORE_PRIVATE_H
#define ATTEMPTS_STORE_PRIVATE_H

#include "attempts/publication.h"
#include "attempts/store.h"
#include "base/failpoint.h"

struct store_ops {
    void (*close)(struct store *store);
    const char *(*id)(const struct store *store);
    enum result (*now)(struct store *store, struct store_time *ret, struct error *err);
    enum result (*status)(struct store *store, struct store_status *ret, struct error *err);
    enum result (*migrate)(struct store *store, struct error *err);
    enum result (*reserve)(struct store *store, struct reservation *reservation, struct attempt *ret,
        struct attempt *ret_holder, struct error *err);
    enum result (*bind)(
        struct store *store, const struct credential *credential, const char *demand, struct error *err);
    enum result (*renew)(struct store *store, struct renewal *renewals, size_t count, struct error *err);
    enum result (*settle)(struct store *store, const struct credential *credential,
        const struct settlement *settlement, struct error *err);
    enum result (*settle_ask)(struct store *store, const struct credential *credential,
        const struct settlement *settlement, struct error *err);
    enum result (*retire)(struct store *store, const struct retirement *retirement, struct error *err);
    enum result (*request_cancel)(
        struct store *store, const char *attempt_id, const char *by, struct error *err);
    enum result (*list)(
        struct store *store, const struct attempt_query *query, struct attempt_list *ret, struct error *err);
    enum result (*find)(
        struct store *store, const char *id_or_handle, struct attempt *ret, struct error *err);
    enum result (*leftovers)(struct store *store, struct leftover_list *ret, struct error *err);
    enum result (*leftover_delete)(struct store *store, const char *attempt_id, struct error *err);
    enum result (*evidence_put)(struct store *store, const struct credential *credential,
        struct evidence_row *row, struct error *err);
    enum result (*evidence_find)(
        struct store *store, const char *key, struct evidence_row *ret, struct error *err);
    enum result (*evidence_latest)(struct store *store, const char *repository, const char *producer,
        struct evidence_row *ret, struct error *err);
    enum result (*proof_find)(
        struct store *store, const struct proof_query *query, struct proof *ret, struct error *err);
    enum result (*history)(
        struct store *store, const char *attempt_id, struct history *ret, struct error *err);
    /* Of a store that shares its database with the application; NULL: of no such store. */
    enum result (*publication_begin)(struct store *store, const struct credential *credential,
        struct publication **ret, struct error *err);
};

struct store {
    const struct store_ops *ops;
};

/* The embedded store of a user lies in the state directory under this name. */
#define STORE_FILE_NAME "tenure.db"

/* The kinds. `location` is the URL without its scheme. */
_must_use_ enum result store_sqlite_open(const struct store_options *options, const char *location,
    enum store_access access, struct store **ret, struct error *err);
/* Takes the whole of options->url. */
_must_use_ enum result store_postgres_open(const struct store_options *options, const char *location,
    enum store_access access, struct store **ret, struct error *err);

/* The commit of every write, with its points for tests: an error that is injected before it (then it is not
 * sent) or after it is an answer that was lost. */
#define STORE_COMMIT(name, commit, lose)                                                                     \
    __extension__({                                                                                          \
        enum result commit_ = FAILPOINT_ERROR(name "-before-commit") ? (lose) : (commit);                    \
        if (commit_ == RESULT_OK && FAILPOINT_ERROR(name "-after-commit"))                                   \
            commit_ = (lose);                                                                                \
        commit_;                                                                                             \
    })

/* ---- store_values.c ---- */

/* What every store says of a commit whose answer was lost: UNKNOWN, and what to do. `where` names the store.
 */
enum result store_fail_unknown(const char *where, struct error *err);
/* HELD, in the words that every store has. */
enum result store_fail_held(const struct attempt *holder, const char *subject, struct error *err);
/* INVALID: this store lies beside the application's rows, not among them. */
enum result store_fail_rows(struct error *err);
/* NEWER. `where` names the store. */
enum result store_fail_newer(const char *where, int64_t version, int64_t known, struct error *err);

/* store_locker.c: who has the file locked, for people; NULL when nobody can be seen. Owned by the caller. */
char *locker_of(const char *path);

#endif
