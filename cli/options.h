/*
 * Options: one table per command, one for those that work everywhere, one parser.
 *
 *     options_init(&options);
 *     r = options_parse(COMMANDS, argc, argv, &options, &command, err);     // INVALID: usage
 *     options_done(&options);
 *
 * Options stand before or after the command and its words, as `--opt=value`, `--opt value`, `-nVALUE` or
 * `-n VALUE`. `--` ends them. An optional value (`--wait`) follows `=` only. The last of two wins; lists
 * collect. An option has the same shape wherever it is known, so that one before the command can be skipped
 * (a test checks it). Strings are borrowed from argv. One thread.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attempts/lease.h"
#include "base/error.h"

struct command;

struct words {
    const char **items; /* NULL-terminated once there is one */
    size_t count, capacity;
};

enum color_choice {
    COLOR_AUTO,
    COLOR_ALWAYS,
    COLOR_NEVER,
};

struct options {
    /* everywhere */
    const char *directory, *store_url;
    bool json, quiet, help, version, list_failpoints;
    int color; /* enum color_choice */
    /* done */
    bool rerun, keep_going, dirty, dry_run, detach;
    int64_t jobs; /* 0: as many as there are processors */
    /* done, run */
    int64_t wait_ms;
    /* run */
    struct words subjects;
    int64_t ttl_ms, heartbeat_ms; /* -1 and 0: default */
    int on_lapse;                 /* enum lapse_policy */
    int64_t held_exit;            /* -1: as the table says */
    /* publish */
    const char *row, *soft_delete, *collect, *columns, *sql, *data_store_url;
    /* status, log, journal, verify */
    bool all, partial;
    int64_t count, keep, older_ms;
    struct words keys;
    const char *commit;
    /* what is no option */
    struct words words; /* behind the command */
    struct words child; /* behind `--`, of a command that takes one */
};

enum option_kind {
    OPTION_FLAG,     /* bool */
    OPTION_STRING,   /* const char *; not empty */
    OPTION_LIST,     /* struct words; each not empty */
    OPTION_INTEGER,  /* int64_t within [min, max] */
    OPTION_DURATION, /* int64_t ms within [min, max] */
    OPTION_WAIT,     /* the same, value optional: `max` without one */
    OPTION_CHOICE,   /* int: index into `choices` */
    OPTION_KIND_MAX
};

struct option {
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    enum option_kind kind;
    size_t offset;              /* into struct options */
    const char *value;          /* its placeholder in the help */
    const char *help;           /* NULL: hidden */
    const char *const *choices; /* NULL-terminated */
    int64_t min, max;
};

/* Those that work everywhere. */
extern const struct option OPTIONS_EVERYWHERE[];
extern const size_t OPTIONS_EVERYWHERE_COUNT;

void options_init(struct options *options); /* the defaults */
void options_done(struct options *options);

/* INVALID with one sentence and what to type instead. `ret_command` is set as soon as the command is known,
 * also on failure, and so are `json` and `color` as far as they could be read; NULL when none was named. */
_must_use_ enum result options_parse(const struct command *const *commands, int argc, const char *const *argv,
    struct options *options, const struct command **ret_command, struct error *err);

const struct command *command_find(const struct command *const *commands, const char *name);

/* True when the option takes a value, in any form. */
bool option_takes_value(const struct option *option);

/* What several commands take, for their tables. */
#define OPTIONS_OF_A_LEASE                                                                                   \
    {"ttl", 0, OPTION_DURATION, offsetof(struct options, ttl_ms), "DUR",                                     \
        "the lease (2s to 1h, default 60s)", NULL, LEASE_TTL_MIN_MS, LEASE_TTL_MAX_MS},                      \
    {                                                                                                        \
        "heartbeat", 0, OPTION_DURATION, offsetof(struct options, heartbeat_ms), "DUR",                      \
            "how often it is renewed (at most a third of it)", NULL, 1, LEASE_TTL_MAX_MS / 3                 \
    }
#define OPTION_TO_WAIT                                                                                       \
    {                                                                                                        \
        "wait", 0, OPTION_WAIT, offsetof(struct options, wait_ms), "DUR",                                    \
            "when another attempt is current, wait (up to DUR, else a day)", NULL, 0,                        \
            INT64_C(30) * 24 * 3600 * 1000                                                                   \
    }

#endif
