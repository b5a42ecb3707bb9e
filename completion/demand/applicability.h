/*
 * Applicability: the key of evidence, the digest of all that a producer's outcome depends on, and of nothing
 * else.
 *
 * BLAKE2b-256 over length-prefixed fields in a fixed order; the schema number first. The order in which
 * needs, variables, tools and outputs are listed does not enter: they are sorted first. The name of the
 * producer does not enter either. The components are kept beside the key, so that a plan can say which one
 * changed. Golden vectors in the tests pin the encoding. Thread-safe on own objects.
 */
#ifndef COMPLETION_DEMAND_APPLICABILITY_H
#define COMPLETION_DEMAND_APPLICABILITY_H

#include "completion/demand/config.h"

#define APPLICABILITY_SCHEMA 1

enum component {
    COMPONENT_COMMAND,  /* words, shell or list form, work directory, outputs and artifacts that must be left
                         */
    COMPONENT_INPUTS,   /* path, mode, blob or link target of every input */
    COMPONENT_NEEDS,    /* digests of the outputs of what it needs */
    COMPONENT_ENV,      /* declared names and values */
    COMPONENT_TOOLS,    /* digests of the declared programs' files */
    COMPONENT_PLATFORM, /* OS and architecture */
    COMPONENT_MAX
};
const char *component_name(enum component component); /* "command", "inputs", ... */

struct applicability {
    char key[DIGEST_HEX_SIZE];
    char components[COMPONENT_MAX][DIGEST_HEX_SIZE];
};

/* What surrounds a run and enters keys; gathered once per run. */
struct surroundings {
    const char *const *environment;    /* of the caller */
    const char *system, *architecture; /* uname(2) sysname and machine; replaceable by tests */
};

/* `need_outputs[i]`: digest of the outputs of the i-th need. A tool without a slash is looked up on the PATH
 * of the surroundings, one with a slash from the top of the work tree; links are followed, the bytes of the
 * file enter, nothing is cached. INVALID: a tool cannot be found or read. */
_must_use_ enum result applicability_compute(const struct config *config, size_t producer,
    const struct candidate *candidate, const struct surroundings *surroundings,
    const char *const *need_outputs, struct applicability *ret, struct error *err);

/* Digest of the demand: what must be established, for the Proof's look-up before anything is written. Covers
 * the tree, the configuration, the demanded producers with their command, env, tools and platform. */
_must_use_ enum result demand_digest(const struct config *config, const bool *demanded,
    const struct candidate *candidate, const struct surroundings *surroundings, char ret[DIGEST_HEX_SIZE],
    struct error *err);

/* The environment of a producer: the documented base of the caller's, its declared names, CI=1, and `marks`
 * (TENURE_ATTEMPT=..., may be NULL). NULL-terminated, owned; strings_free-like by environment_free. */
char **environment_make(const struct producer *producer, const char *const *caller, const char *const *marks);
void environment_free(char **environment);

#endif
