/*
 * `tenure init`: a tenure.json that fits what the tree holds (make, cmake, meson, npm, cargo, go, python,
 * shell). Never overwrites. One thread.
 */
#ifndef COMPLETION_DEMAND_STARTER_H
#define COMPLETION_DEMAND_STARTER_H

#include "base/error.h"
#include "base/text.h"

/* Looks into the directory and writes the text of a configuration; `ret_kind` names what was found ("cmake",
 * or "none" with a producer that the user has to fill in). */
_must_use_ enum result starter_make(int top_fd, struct text *ret, const char **ret_kind, struct error *err);

#endif
