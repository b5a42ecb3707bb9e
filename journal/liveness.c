#include "journal/liveness.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/files.h"
#include "journal/liveness-private.h"
#include "journal/reader-private.h"

enum answer {
    NO_JOURNAL,
    NOT_OPENED,
    BAD_HEADER,
    OTHER_OWNER,
    NOT_LOCAL,
    LOCK_HELD,
    IS_SETTLED,
    SAME_BOOT,
    EARLIER_BOOT,
    NO_PROOF,
    PROBE_FAILED,
    ANSWER_MAX
};

static const struct liveness ANSWERS[ANSWER_MAX] = {
    [NO_JOURNAL] = {OWNER_UNKNOWN, 1, "its journal is not on this machine"},
    [NOT_OPENED] = {OWNER_UNKNOWN, 1, "its journal cannot be read"},
    [BAD_HEADER] = {OWNER_UNKNOWN, 1, "the header of its journal does not validate"},
    [OTHER_OWNER] = {OWNER_UNKNOWN, 1, "the journal is that of another owner"},
    [NOT_LOCAL] = {OWNER_UNKNOWN, 1, "its journal is on a file system whose locks prove nothing"},
    [LOCK_HELD] = {OWNER_RUNNING, 2, "it holds the lock of its journal"},
    [IS_SETTLED] = {OWNER_GONE, 3, "its journal is settled and the lock free"},
    [SAME_BOOT] = {OWNER_GONE, 4, "the lock of its journal is free"},
    [EARLIER_BOOT] = {OWNER_GONE, 5, "the machine was booted after its last renewal"},
    [NO_PROOF] = {OWNER_UNKNOWN, 6, "the journal is a copy, or from another machine or boot"},
    [PROBE_FAILED] = {OWNER_UNKNOWN, 6, "the lock of its journal cannot be probed"},
};

/* A read lock is asked for, so that only the owner's write lock is in its way and no other reader's. */
static enum answer lock_probe(int fd)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
        return PROBE_FAILED;
    return lock.l_type == F_UNLCK ? NO_PROOF : LOCK_HELD;
}

static bool is_settled(int fd)
{
    _cleanup_(journal_reader_cleanup) struct journal_reader *reader = NULL;
    bool settled = false;
    return journal_reader_open_fd(fd, "", &reader, NULL) == RESULT_OK &&
           journal_reader_skim(reader, &settled, NULL) == RESULT_OK && settled;
}

static bool is_asked_for(const struct journal_header *header, const struct liveness_question *question)
{
    if (question->incarnation != NULL && strcmp(question->incarnation, header->executor.incarnation) != 0)
        return false;
    return question->attempt == NULL || header->attempt[0] == '\0' ||
           strcmp(question->attempt, header->attempt) == 0;
}

static bool is_local(int fd, bool original)
{
    enum file_system kind = FILE_SYSTEM_OTHER;
    if (file_system_of(fd, &kind, NULL) != RESULT_OK)
        return false;
    return kind == FILE_SYSTEM_LOCAL || (kind == FILE_SYSTEM_STACKED && original);
}

/* Rules 3 to 6: the lock is free, so what is in the file is final. */
static enum answer judge_free(
    int fd, bool original, const struct executor *owner, const struct liveness_question *question)
{
    const struct machine *machine = question->machine;
    if (is_settled(fd))
        return IS_SETTLED;
    bool same_boot = strcmp(owner->boot_id, machine->boot_id) == 0;
    if (same_boot && original)
        return SAME_BOOT;
    if (!same_boot && strcmp(owner->machine_id, machine->machine_id) == 0 && !machine->named_by_host &&
        !machine->container && question->renewed_before_boot)
        return EARLIER_BOOT;
    return NO_PROOF;
}

static enum answer judge(
    int fd, const struct journal_header *header, const struct liveness_question *question)
{
    struct stat status;
    if (!is_asked_for(header, question))
        return OTHER_OWNER;
    if (fstat(fd, &status) < 0)
        return NOT_OPENED;
    bool original = status.st_dev == header->device && status.st_ino == header->inode;
    if (!is_local(fd, original))
        return NOT_LOCAL;
    enum answer answer = lock_probe(fd);
    return answer == NO_PROOF ? judge_free(fd, original, &header->executor, question) : answer;
}

struct liveness liveness_probe_fd(
    int fd, const struct journal_header *header, const struct liveness_question *question)
{
    return ANSWERS[judge(fd, header, question)];
}

struct liveness liveness_probe(const struct liveness_question *question)
{
    _cleanup_(journal_reader_cleanup) struct journal_reader *reader = NULL;
    enum result r = journal_reader_open(question->path, &reader, NULL);
    if (r == RESULT_OK)
        return liveness_probe_fd(journal_reader_fd(reader), journal_reader_header(reader), question);
    if (r == RESULT_ABSENT)
        return ANSWERS[NO_JOURNAL];
    return ANSWERS[r == RESULT_CORRUPT || r == RESULT_NEWER ? BAD_HEADER : NOT_OPENED];
}

int liveness_watch(const char *path, bool writes)
{
    uint32_t mask = IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_DONT_FOLLOW | (writes ? IN_MODIFY : 0);
    _cleanup_(fd_cleanup) int fd =
        FAILPOINT_ERROR("journal-watch") ? -1 : inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0 || inotify_add_watch(fd, path, mask) < 0)
        return -1;
    int watch = fd;
    fd = -1;
    return watch;
}

static bool is_parting(const struct inotify_event *event)
{
    return (event->mask & (IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_IGNORED | IN_Q_OVERFLOW)) != 0;
}

bool liveness_watch_drain(int watch_fd)
{
    char bytes[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    bool parting = false;
    ssize_t got;
    while (watch_fd >= 0 && (got = read(watch_fd, bytes, sizeof(bytes))) > 0)
        for (const char *at = bytes; at < bytes + got;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)at;
            parting = parting || is_parting(event);
            at += sizeof(*event) + event->len;
        }
    return parting;
}

bool liveness_poll(int watch_fd, int wake_fd, int64_t timeout_ms)
{
    struct pollfd fds[] = {{.fd = watch_fd, .events = POLLIN}, {.fd = wake_fd, .events = POLLIN}};
    int timeout = timeout_ms < 0 ? 0 : timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms;
    return poll(fds, ARRAY_SIZE(fds), timeout) > 0 && fds[1].revents != 0;
}

/* How long to sleep before the next probe. */
static int64_t next_nap(int64_t now, int64_t deadline, int64_t parting_until, int watch_fd)
{
    int64_t nap = watch_fd >= 0 ? LIVENESS_POLL_MS : LIVENESS_BLIND_MS;
    if (now < parting_until)
        nap = LIVENESS_BEAT_MS;
    return deadline - now < nap ? deadline - now : nap;
}

struct liveness liveness_wait(const struct liveness_question *question, int64_t timeout_ms, int wake_fd)
{
    const struct clock *clock = clock_system();
    int64_t now = clock->boot_ms(clock), parting_until = now, deadline = 0;
    if (__builtin_add_overflow(now, timeout_ms > 0 ? timeout_ms : 0, &deadline))
        deadline = INT64_MAX;
    /* Watched before the first probe: a death between the two is then an event and not a gap. */
    _cleanup_(fd_cleanup) int watch_fd = liveness_watch(question->path, false);
    for (;;) {
        struct liveness seen = liveness_probe(question);
        now = clock->boot_ms(clock);
        if (seen.verdict != OWNER_RUNNING || now >= deadline ||
            liveness_poll(watch_fd, wake_fd, next_nap(now, deadline, parting_until, watch_fd)))
            return seen;
        if (liveness_watch_drain(watch_fd))
            parting_until = clock->boot_ms(clock) + LIVENESS_SETTLE_MS;
    }
}
