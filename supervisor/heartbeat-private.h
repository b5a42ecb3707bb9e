/* The heartbeat's arithmetic, for the thread and for tests. */
#ifndef SUPERVISOR_HEARTBEAT_PRIVATE_H
#define SUPERVISOR_HEARTBEAT_PRIVATE_H

#include <stdint.h>

/* Bound of one statement: half a heartbeat, at most 5 s. Never 0, which a store takes for its own default. */
int64_t heartbeat_statement_ms(int64_t heartbeat_ms);
/* How long the loop may take to turn: a quarter of the heartbeat, at least 500 ms. */
int64_t heartbeat_patience_ms(int64_t heartbeat_ms);
/* The pause after a failure, from the pause before it (0: none): decorrelated jitter, from 200 ms to a
 * quarter of the heartbeat, and never longer than a heartbeat. `random` is any number. */
int64_t heartbeat_pause_ms(int64_t before_ms, int64_t heartbeat_ms, uint64_t random);

#endif
