/* A producer's output through a pipe into its log: all of it, in constant memory, and never a wait for
 * others. */
#include "tests/unit/supervisor/processes.h"

#include <signal.h>
#include <systemd/sd-event.h>

#include "base/text.h"
#include "journal/output.h"
#include "supervisor/capture.h"

struct stage {
    struct folder folder;
    sd_event *event;
    struct output *output;
    struct capture *capture;
    struct process producer;
};

static void stage_open(struct stage *stage, const char *line, bool large, int64_t cap_bytes)
{
    int child_fd = -1;
    *stage = (struct stage){.producer.pidfd = -1};
    folder_make(&stage->folder);
    assert_true(sd_event_new(&stage->event) >= 0);
    assert_int_equal(
        output_create(stage->folder.path, "producer", cap_bytes, &stage->output, NULL), RESULT_OK);
    assert_int_equal(
        capture_open(stage->event, stage->output, large, &stage->capture, &child_fd, NULL), RESULT_OK);
    struct spawn_request request = *SHELL(line);
    request.stdout_fd = request.stderr_fd = child_fd;
    request.directory_fd = open(stage->folder.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    stage->producer = spawn_well(&request);
    close(request.directory_fd);
    close(child_fd);
}

static int on_exit_of_producer(
    sd_event_source *source _unused_, int fd _unused_, uint32_t revents _unused_, void *context)
{
    *(bool *)context = true;
    return 0;
}

/* Turns the loop until the producer has ended, and takes in what is left. */
static void stage_run(struct stage *stage)
{
    bool over = false;
    siginfo_t ended;
    sd_event_source *source = NULL;
    assert_true(sd_event_add_io(
                    stage->event, &source, stage->producer.pidfd, EPOLLIN, on_exit_of_producer, &over) >= 0);
    while (!over)
        assert_true(sd_event_run(stage->event, UINT64_MAX) >= 0);
    sd_event_source_disable_unref(source);
    assert_int_equal(waitid(P_PIDFD, (id_t)stage->producer.pidfd, &ended, WEXITED), 0);
    assert_int_equal(capture_drain(stage->capture, NULL), RESULT_OK);
}

static void stage_close(struct stage *stage)
{
    char digest[DIGEST_HEX_SIZE];
    capture_close(stage->capture);
    stage->capture = NULL;
    if (stage->output)
        assert_int_equal(output_finish(stage->output, digest, NULL), RESULT_OK);
}

static void stage_done(struct stage *stage)
{
    output_close(stage->output);
    sd_event_unref(stage->event);
    process_close(&stage->producer);
    folder_done(&stage->folder);
}

static char *log_of(const struct stage *stage, size_t *ret_length)
{
    struct text log = {0};
    assert_int_equal(
        file_read(AT_FDCWD, output_path(stage->output), true, (size_t)1 << 30, &log, NULL), RESULT_OK);
    *ret_length = log.length;
    return text_steal(&log);
}

static void test_stdout_and_stderr_are_kept_in_order(void **state _unused_)
{
    struct stage stage;
    size_t length;
    stage_open(&stage, "echo one; echo two >&2; printf 'three\\000\\377'", false, OUTPUT_CAP_DEFAULT_BYTES);
    stage_run(&stage);
    assert_int_equal(capture_trouble(stage.capture, NULL), RESULT_OK);
    stage_close(&stage);
    _cleanup_(mem_free) char *log = log_of(&stage, &length);
    assert_int_equal(length, 15);
    assert_memory_equal(log, "one\ntwo\nthree\0\377", 15);
    stage_done(&stage);
}

/* 50 MB, and its end while a helper still holds the pipe. */
static void test_all_is_kept_and_a_helper_is_not_waited_for(void **state _unused_)
{
    for (int large = 0; large <= 1; large++) {
        struct stage stage;
        size_t length;
        int64_t begin_ms = boot_ms();
        stage_open(&stage, "sleep 600 & head -c 50000000 /dev/zero; printf $!", large == 1,
            OUTPUT_CAP_DEFAULT_BYTES);
        stage_run(&stage);
        assert_true(boot_ms() - begin_ms < BOUND_MS);
        assert_int_equal(output_dropped_bytes(stage.output), 0);
        stage_close(&stage);
        _cleanup_(mem_free) char *log = log_of(&stage, &length);
        pid_t helper = atoi(log + 50000000);
        assert_true(length > 50000000 && helper > 1);
        assert_int_equal(kill(helper, SIGKILL), 0); /* it was there all the time */
        stage_done(&stage);
    }
}

/* It fills the pipe faster than anybody could wait for its end. */
static void test_a_helper_that_prints_for_ever_is_not_waited_for(void **state _unused_)
{
    struct stage stage;
    int64_t begin_ms = boot_ms();
    stage_open(&stage, "yes & echo $! >helper; exit 0", true, 1 << 20);
    stage_run(&stage);
    assert_true(boot_ms() - begin_ms < BOUND_MS);
    int64_t taken = output_total_bytes(stage.output);
    assert_true(sd_event_run(stage.event, 0) <= 0 || output_total_bytes(stage.output) == taken);
    stage_close(&stage);
    _cleanup_(text_done) struct text helper = {0};
    _cleanup_(mem_free) char *path = mem_format("%s/helper", stage.folder.path);
    assert_int_equal(file_read(AT_FDCWD, path, true, 64, &helper, NULL), RESULT_OK);
    pid_t pid = atoi(helper.bytes);
    assert_true(pid > 1);
    kill(pid, SIGKILL);
    stage_done(&stage);
}

/* A producer that closes its output and lives on must not make the loop spin. */
static void test_a_closed_pipe_is_left_alone(void **state _unused_)
{
    struct stage stage;
    stage_open(&stage, "echo last; exec >/dev/null 2>&1; exec sleep 600", false, OUTPUT_CAP_DEFAULT_BYTES);
    wait_until((sd_event_run(stage.event, 1000), output_total_bytes(stage.output) == 5));
    for (int turn = 0; turn < 3; turn++) /* the end of the file takes one of them */
        assert_true(sd_event_run(stage.event, 20000) >= 0);
    assert_int_equal(sd_event_run(stage.event, 20000), 0); /* nothing to do, within 20 ms */
    assert_int_equal(process_signal(&stage.producer, SIGKILL, NULL), RESULT_OK);
    stage_run(&stage);
    stage_close(&stage);
    stage_done(&stage);
}

static void test_one_turn_takes_a_bounded_bite(void **state _unused_)
{
    struct stage stage;
    stage_open(&stage, "exec cat /dev/zero", true, 1 << 20);
    for (int turn = 0; turn < 50; turn++) {
        int64_t before = output_total_bytes(stage.output);
        assert_true(sd_event_run(stage.event, 1000000) >= 0);
        assert_true(output_total_bytes(stage.output) - before <= 1 << 20);
    }
    assert_true(output_total_bytes(stage.output) > 1 << 20);
    assert_int_equal(process_signal(&stage.producer, SIGKILL, NULL), RESULT_OK);
    stage_run(&stage);
    stage_close(&stage);
    stage_done(&stage);
}

static void test_the_last_byte_has_a_time(void **state _unused_)
{
    struct stage stage;
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    int64_t before_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    stage_open(&stage, "echo a; read x; exit 0", false, OUTPUT_CAP_DEFAULT_BYTES);
    int64_t opened_us = capture_last_boot_us(stage.capture);
    assert_true(opened_us >= before_us);
    stage_run(&stage);
    assert_true(capture_last_boot_us(stage.capture) >= opened_us);
    stage_close(&stage);
    stage_done(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stdout_and_stderr_are_kept_in_order),
        cmocka_unit_test(test_all_is_kept_and_a_helper_is_not_waited_for),
        cmocka_unit_test(test_a_helper_that_prints_for_ever_is_not_waited_for),
        cmocka_unit_test(test_a_closed_pipe_is_left_alone),
        cmocka_unit_test(test_one_turn_takes_a_bounded_bite),
        cmocka_unit_test(test_the_last_byte_has_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
