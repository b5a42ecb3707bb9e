/* What is read as a statement reads as the same one after it was written again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "completion/proof/statement.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void read_again(const struct statement *statement)
{
    _cleanup_(text_done) struct text first = {0}, second = {0};
    _cleanup_(statement_done) struct statement again = {0};
    statement_encode(statement, &first);
    require(statement_decode(first.bytes, first.length, &again, NULL) == RESULT_OK);
    statement_encode(&again, &second);
    require(first.length == second.length && memcmp(first.bytes, second.bytes, first.length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    _cleanup_(statement_done) struct statement statement = {0};
    _cleanup_(error_done) struct error err = {0};
    enum result r = statement_decode((const char *)bytes, length, &statement, &err);
    require(r == RESULT_OK || r == RESULT_INVALID || r == RESULT_DENIED);
    require((r == RESULT_OK) == (statement.backing != NULL) && (r == RESULT_OK) == (err.message == NULL));
    if (r == RESULT_OK)
        read_again(&statement);
    return 0;
}
