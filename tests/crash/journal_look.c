/*
 * crash_journal FILE: how a journal reads after a crash, in one line: "<records> <kind of the last> [torn]".
 * Exit status 1 when it is damaged, with what the reader says.
 */
#include <stdio.h>

#include "journal/reader.h"

int main(int argc, char **argv)
{
    _cleanup_(journal_reader_cleanup) struct journal_reader *reader = NULL;
    _cleanup_(error_done) struct error err = {0};
    struct journal_event event = {0};
    enum journal_kind last = JOURNAL_HEADER;
    int records = 1;
    enum result r = argc == 2 ? journal_reader_open(argv[1], &reader, &err) : RESULT_INVALID;

    while (r == RESULT_OK && (r = journal_reader_next(reader, &event, &err)) == RESULT_OK) {
        last = event.kind;
        records++;
        journal_event_done(&event);
    }
    if (r != RESULT_ABSENT || !reader) {
        fprintf(stderr, "%s: %s\n", argc == 2 ? argv[1] : "usage: crash_journal FILE",
            err.message ? err.message : result_name(r));
        return 1;
    }
    printf("%d %s%s\n", records, journal_kind_name(last), journal_reader_torn(reader) ? " torn" : "");
    return 0;
}
