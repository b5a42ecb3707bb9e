/* What the files of this room that deal with paths share. */
#ifndef BASE_FILES_PRIVATE_H
#define BASE_FILES_PRIVATE_H

#include "base/error.h"

/* "cannot DOING PATH: reason". Missing things are RESULT_ABSENT, missing permission is RESULT_DENIED, the
 * rest RESULT_SYSTEM. */
enum result files_error(struct error *err, int errnum, const char *doing, const char *path);

#endif
