/*
 * Whatever bytes a journal holds: the parser stays inside them, and what it takes for a record is one.
 *
 * The first byte chooses the way: the bytes as a file, or as the json of one event, or put into records whose
 * chain is right (a mutated hash would never get past it). journal_seeds() writes the corpus to begin with:
 *
 *     JOURNAL_SEEDS=DIR fuzz_journal_reader -runs=0
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "journal/event.h"
#include "journal/format.h"
#include "journal/reader-private.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum way { AS_FILE, AS_EVENT, AS_HEADER, AS_RECORDS, WAY_MAX };

static void demand(bool fact)
{
    if (!fact)
        abort();
}

/* An event that decodes also encodes, and the second time around nothing changes any more. */
static void try_event(const char *json, size_t length)
{
    struct journal_event event, again;
    struct text first = {0}, second = {0};
    if (journal_event_decode(json, length, &event, NULL) != RESULT_OK)
        return;
    if (event.kind < JOURNAL_UNKNOWN) {
        journal_event_encode(&event, &first);
        demand(first.length <= FORMAT_RECORD_LIMIT && memchr(first.bytes, '\n', first.length) == NULL);
        demand(journal_event_decode(first.bytes, first.length, &again, NULL) == RESULT_OK);
        demand(again.kind == event.kind && again.plan_count <= event.plan_count);
        journal_event_encode(&again, &second);
        demand(second.length <= FORMAT_RECORD_LIMIT);
        journal_event_done(&again);
    }
    journal_event_done(&event);
    text_done(&first);
    text_done(&second);
}

static void try_header(const char *json, size_t length)
{
    struct journal_header header, again;
    struct text text = {0};
    if (format_header_decode(json, length, &header, NULL) != RESULT_OK)
        return;
    format_header_encode(&header, &text);
    demand(format_header_decode(text.bytes, text.length, &again, NULL) == RESULT_OK);
    demand(again.device == header.device && again.inode == header.inode);
    text_done(&text);
}

static void try_file(const char *bytes, size_t length)
{
    int fd = memfd_create("journal", MFD_CLOEXEC);
    struct journal_reader *reader = NULL;
    struct journal_event event;
    demand(fd >= 0 && fd_write_all(fd, bytes, length, NULL) == RESULT_OK);
    if (journal_reader_open_fd(fd, "journal", &reader, NULL) == RESULT_OK) {
        enum result r;
        while ((r = journal_reader_next(reader, &event, NULL)) == RESULT_OK)
            journal_event_done(&event);
        demand(r == RESULT_ABSENT || r == RESULT_CORRUPT);
        demand(journal_reader_offset(reader) <= (int64_t)length);
    }
    journal_reader_close(reader);
    close(fd);
}

/* Each line of the input becomes a record that validates. */
static void try_records(const char *bytes, size_t length)
{
    struct chain chain = {{0}};
    struct text file = {0};
    for (const char *end = bytes + length; bytes < end;) {
        const char *feed = memchr(bytes, '\n', (size_t)(end - bytes));
        const char *stop = feed != NULL ? feed : end;
        if (stop > bytes && stop - bytes <= FORMAT_RECORD_LIMIT)
            format_line(&chain, bytes, (size_t)(stop - bytes), &file);
        bytes = feed != NULL ? feed + 1 : end;
    }
    if (file.length > 0)
        try_file(file.bytes, file.length);
    text_done(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const WAYS[WAY_MAX])(const char *, size_t) = {
        [AS_FILE] = try_file,
        [AS_EVENT] = try_event,
        [AS_HEADER] = try_header,
        [AS_RECORDS] = try_records,
    };
    if (size == 0)
        return 0;
    /* A copy of the exact size, so that a read past its end is seen. */
    char *bytes = malloc(size);
    demand(bytes != NULL);
    memcpy(bytes, data + 1, size - 1);
    WAYS[data[0] % WAY_MAX](bytes, size - 1);
    free(bytes);
    return 0;
}

static void seed_write(const char *directory, enum way way, const char *name, const struct text *content)
{
    char *path = mem_format("%s/%s", directory, name);
    struct text seed = {0};
    const char choice = (char)way;
    text_append(&seed, &choice, 1);
    text_append(&seed, content->bytes, content->length);
    demand(file_write_atomic(path, 0600, false, seed.bytes, seed.length, NULL) == RESULT_OK);
    text_done(&seed);
    free(path);
}

static void header_seed(struct text *ret)
{
    const struct journal_header header = {
        .format = FORMAT_VERSION,
        .salt = "000102030405060708090a0b0c0d0e0f",
        .device = 1,
        .inode = 2,
        .handle = "T-7K3M-QX9C",
        .tenure = "0.1.0",
        .executor = {.machine_id = "00112233445566778899aabbccddeeff",
            .boot_id = "00112233445566778899aabbccddeeff",
            .host = "host",
            .user = "user",
            .incarnation = "00112233445566778899aabbccddeeff",
            .pid = 12,
            .start_ticks = 34,
            .uid = 1000},
    };
    format_header_encode(&header, ret);
}

static void journal_seeds(const char *directory)
{
    static const struct journal_plan_step STEPS[] = {
        {"build", "changed", false, 5}, {"lint", "same", true, 0}};
    struct chain chain = {{0}};
    struct text file = {0}, lines = {0}, json = {0};
    header_seed(&json);
    seed_write(directory, AS_HEADER, "header", &json);
    for (int kind = JOURNAL_HEADER; kind < JOURNAL_UNKNOWN; kind++) {
        const struct journal_event event = {.kind = (enum journal_kind)kind,
            .producer = "build",
            .text = "t\xc3\xa9xt",
            .plan = STEPS,
            .plan_count = ARRAY_SIZE(STEPS),
            .total = 2};
        if (kind != JOURNAL_HEADER) {
            text_clear(&json);
            journal_event_encode(&event, &json);
            seed_write(directory, AS_EVENT, journal_kind_name(event.kind), &json);
        }
        format_line(&chain, json.bytes, json.length, &file);
        text_append(&lines, json.bytes, json.length);
        text_add(&lines, "\n");
    }
    seed_write(directory, AS_FILE, "file", &file);
    seed_write(directory, AS_RECORDS, "records", &lines);
    text_done(&file);
    text_done(&lines);
    text_done(&json);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    const char *directory = getenv("JOURNAL_SEEDS");
    if (directory != NULL)
        journal_seeds(directory);
    return 0;
}
