/*
 * Capturing a producer's output: one pipe for its stdout and stderr, read by the loop into an output log.
 *
 * Constant memory whatever comes. The producer's verdict comes from its exit, not from the end of the pipe:
 * after the exit exactly what the pipe then holds is read (FIONREAD), and a helper that still holds the other
 * end is not waited for. Pipes are 1 MiB while few are open, and of default size beyond, for the user's pipe
 * limit (pipe(7), /proc/sys/fs/pipe-user-pages-soft). Loop thread only.
 */
#ifndef SUPERVISOR_CAPTURE_H
#define SUPERVISOR_CAPTURE_H

#include <systemd/sd-event.h>

#include "journal/output.h"

struct capture;

/* `large` asks for a 1 MiB pipe. The write end is *ret_child_fd, the caller's to close after the spawn. */
_must_use_ enum result capture_open(sd_event *event, struct output *output, bool large, struct capture **ret,
    int *ret_child_fd, struct error *err);
int64_t capture_last_boot_us(
    const struct capture *capture); /* CLOCK_BOOTTIME of the last byte, for `quiet` */
/* After the child's exit: takes in what the pipe holds now, and no more. */
_must_use_ enum result capture_drain(struct capture *capture, struct error *err);
/* The first error of the log (disk full ...): OK while all was kept. */
enum result capture_trouble(const struct capture *capture, struct error *err);
void capture_close(struct capture *capture);

#endif
