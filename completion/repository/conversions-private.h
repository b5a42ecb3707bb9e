/* Between the question whether anything converts contents and the comparison of what does. */
#ifndef COMPLETION_REPOSITORY_CONVERSIONS_PRIVATE_H
#define COMPLETION_REPOSITORY_CONVERSIONS_PRIVATE_H

#include "completion/repository/git-private.h"

/* How a file may be converted. */
#define CONVERTS_BYTES 1U /* in any way: compare the bytes */
#define CONVERTS_LINES 2U /* CR LF becomes LF: the size tells */
#define CONVERTS_ALL   (CONVERTS_BYTES | CONVERTS_LINES)

/* What any attributes or settings that apply to this repository may ask for; 0: nothing converts. Starts no
 * program. Source: gitattributes(5). */
unsigned attributes_convert(const struct conversion_look *look);

#endif
