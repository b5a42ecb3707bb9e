#include <ctype.h>
#include <string.h>

#include "attempts/store_postgres-private.h"
#include "base/memory.h"
#include "base/text.h"

#define GRANTS                                                                                               \
    "let its owner run: GRANT USAGE ON SCHEMA tenure TO {role}; "                                            \
    "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tenure TO {role}"
#define MIGRATE "run: tenure store migrate"
#define AGAIN   "try again"

static const struct sqlstate_meaning MEANINGS[] = {
    /* serialization_failure, deadlock_detected: whole, again */
    {"40001", RESULT_BUSY, REMEDY_REPEAT, AGAIN},
    {"40P01", RESULT_BUSY, REMEDY_REPEAT, AGAIN},
    /* lock_not_available: after lock_timeout, which the functions set */
    {"55P03", RESULT_BUSY, REMEDY_REPEAT, AGAIN "; pg_stat_activity names who holds the lock"},
    /* query_canceled: by our own hand at the deadline, or by an administrator's */
    {"57014", RESULT_BUSY, REMEDY_NONE, AGAIN "; pg_stat_activity names who holds the lock"},
    /* read_only_sql_transaction: a standby, or a primary that became one */
    {"25006", RESULT_UNREACHABLE, REMEDY_RECONNECT,
        "name the primary, or all servers: postgresql://HOST1,HOST2/DATABASE"},
    {"25P03", RESULT_UNREACHABLE, REMEDY_RECONNECT, AGAIN}, /* idle_in_transaction_session_timeout */
    {"57P01", RESULT_UNREACHABLE, REMEDY_LOST, AGAIN},      /* admin_shutdown */
    {"57P02", RESULT_UNREACHABLE, REMEDY_LOST, AGAIN},      /* crash_shutdown */
    {"57P03", RESULT_UNREACHABLE, REMEDY_RECONNECT, AGAIN}, /* cannot_connect_now: starting or stopping */
    {"57P05", RESULT_UNREACHABLE, REMEDY_LOST, AGAIN},      /* idle_session_timeout */
    {"26000", RESULT_UNREACHABLE, REMEDY_RECONNECT, AGAIN}, /* what was prepared is gone */
    {"08", RESULT_UNREACHABLE, REMEDY_LOST, AGAIN},         /* connection exceptions; poolers say this */
    {"42501", RESULT_DENIED, REMEDY_NONE, GRANTS},          /* insufficient_privilege */
    {"28", RESULT_DENIED, REMEDY_NONE,
        "check the user, the password (~/.pgpass holds it) and the server's pg_hba.conf"},
    {"3D000", RESULT_INVALID, REMEDY_NONE, "create it: createdb {database}"},
    {"3F000", RESULT_INVALID, REMEDY_NONE, MIGRATE}, /* invalid_schema_name */
    {"42883", RESULT_INVALID, REMEDY_NONE, MIGRATE}, /* undefined_function */
    {"42P01", RESULT_INVALID, REMEDY_NONE, MIGRATE}, /* undefined_table */
    {"53300", RESULT_UNREACHABLE, REMEDY_REPEAT,
        "raise max_connections on the server, or put a pooler such as pgbouncer before it"},
    {"53100", RESULT_UNREACHABLE, REMEDY_NONE, "make room on the server's disk and run the command again"},
    {"53", RESULT_UNREACHABLE, REMEDY_NONE, "look into the server's log"}, /* insufficient resources */
    {"58", RESULT_UNREACHABLE, REMEDY_NONE, "look into the server's log"}, /* system errors: I/O */
    {"TN002", RESULT_NEWER, REMEDY_NONE, "install the newer version"},
    {"TN003", RESULT_RETIRED, REMEDY_NONE, NULL}, /* of the functions that publish: tenure.lose() */
    {"TN004", RESULT_LAPSED, REMEDY_NONE, NULL},
    {"TN005", RESULT_ABSENT, REMEDY_NONE, NULL},
    {"TN006", RESULT_INVALID, REMEDY_NONE, NULL},
    {"XX", RESULT_CORRUPT, REMEDY_NONE, "look into the server's log"},
    {"22", RESULT_INVALID, REMEDY_NONE, NULL}, /* data exceptions: of what was sent */
    {"23", RESULT_CORRUPT, REMEDY_NONE, NULL}, /* constraints: the functions ask before they write */
    {"42", RESULT_INVALID, REMEDY_NONE, NULL}, /* syntax and names: of what was sent */
    {"", RESULT_UNREACHABLE, REMEDY_NONE, NULL},
};

const struct sqlstate_meaning *sqlstate_look_up(const char *sqlstate)
{
    const struct sqlstate_meaning *found = &MEANINGS[ARRAY_SIZE(MEANINGS) - 1];

    for (size_t i = 0; i < ARRAY_SIZE(MEANINGS); i++) {
        size_t length = strlen(MEANINGS[i].prefix);
        if (strncmp(sqlstate, MEANINGS[i].prefix, length) == 0 && length > strlen(found->prefix))
            found = &MEANINGS[i];
    }
    return found;
}

static bool is_sqlstate(const char *text)
{
    for (size_t i = 0; i < 5; i++)
        if (!isdigit((unsigned char)text[i]) && !(text[i] >= 'A' && text[i] <= 'Z'))
            return false;
    return text[5] == ':';
}

/* Of several hosts' messages the last one counts; the severity before it may be of any language. */
const char *sqlstate_find(const char *message, char ret[6], const char **ret_text)
{
    const char *found = NULL;

    for (const char *at = message; (at = strstr(at, ":  ")); at += 3)
        if (is_sqlstate(at + 3))
            found = at + 3;
    if (!found)
        return NULL;
    memcpy(ret, found, 5);
    ret[5] = '\0';
    if (ret_text)
        *ret_text = found + 6 + strspn(found + 6, " ");
    return ret;
}

static void add_identifier(struct text *text, const char *name)
{
    text_add(text, "\"");
    for (const char *at = name; *at; at++)
        text_append(text, *at == '"' ? "\"\"" : at, *at == '"' ? 2 : 1);
    text_add(text, "\"");
}

char *advice_fill(const char *advice, const char *role, const char *database)
{
    _cleanup_(text_done) struct text filled = {0}, printable = {0};

    for (const char *at = advice; *at;) {
        bool is_role = strncmp(at, "{role}", 6) == 0, is_database = strncmp(at, "{database}", 10) == 0;
        if (is_role || is_database)
            add_identifier(&filled, is_role ? role : database);
        else
            text_append(&filled, at, 1);
        at += is_role ? 6 : is_database ? 10 : 1;
    }
    text_add_printable(&printable, filled.bytes, filled.length, false);
    return text_steal(&printable);
}

static const char *or_none(const char *name)
{
    return name ? name : "";
}

enum result postgres_advise(const struct postgres_store *store, const char *advice, struct error *err)
{
    _cleanup_(mem_free) char *filled = advice_fill(
        advice, or_none(store->pq->user(store->connection)), or_none(store->pq->db(store->connection)));

    return error_remedy(err, "%s", filled);
}

enum result postgres_fail(
    const struct postgres_store *store, const char *sqlstate, const char *text, struct error *err)
{
    const struct sqlstate_meaning *meaning = sqlstate_look_up(sqlstate);
    _cleanup_(text_done) struct text line = {0};

    text_add_printable(&line, text, strcspn(text, "\n"), false);
    error_set(err, meaning->result, 0, "%s: %s (SQLSTATE %s)", store->printable, line.bytes, sqlstate);
    return meaning->advice ? postgres_advise(store, meaning->advice, err) : meaning->result;
}
