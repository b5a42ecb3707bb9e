/* Whatever bytes come in, the parser answers with a number in range or a sentence, and both can be printed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/memory.h"

#define MAX_MS INT64_C(3600000)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    _cleanup_(mem_free) char *text = mem_copy(bytes, length);
    _cleanup_(error_done) struct error err = {0};
    int64_t ms = -1;
    enum result r = duration_parse("fuzz", text, 1, MAX_MS, &ms, &err);
    if (r == RESULT_OK && (ms < 1 || ms > MAX_MS || err.message))
        abort();
    if (r != RESULT_OK && (r != RESULT_INVALID || ms != -1 || !err.message))
        abort();
    char shown[DURATION_TEXT_SIZE];
    int64_t any = 0;
    memcpy(&any, bytes, length < sizeof(any) ? length : sizeof(any));
    duration_format(any, shown);
    return strlen(shown) < sizeof(shown) ? 0 : -1;
}
