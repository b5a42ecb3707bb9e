#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/conformance/conformance.h"
#include "tests/unit/checked_fork.h"

static bool world_waits(void *context)
{
    struct world *world = context;

    return !world->waiting || world->waiting(world);
}

struct store_options world_options(struct world *world)
{
    return (struct store_options){
        .url = world->url,
        .clock = &world->clock.clock,
        .machine = &world->machine,
        .deadline_ms = 20000,
        .waiting = world_waits,
        .waiting_context = world,
    };
}

struct store *world_open(struct world *world)
{
    struct store_options options = world_options(world);
    struct store *store = NULL;
    _cleanup_(error_done) struct error err = {0};

    if (store_open(&options, STORE_WRITE, &store, &err) != RESULT_OK)
        fail_msg("%s", err.message);
    return store;
}

static void identity_make(struct world *world)
{
    strcpy(world->machine.machine_id, "0123456789abcdef0123456789abcdef");
    strcpy(world->machine.boot_id, "b0000000000000000000000000000001");
    strcpy(world->machine.host, "host-a");
    world->machine.pid_namespace = 4026531836;
    OK(executor_self(&world->machine, &world->executor, NULL));
}

enum result world_try_open(char *url)
{
    struct world world = {.url = url};
    struct store_options options = {0};
    struct store *store = NULL;
    enum result r = RESULT_OK;

    clock_manual_init(&world.clock, 10000000, INT64_C(1800000000000));
    identity_make(&world);
    options = world_options(&world);
    r = store_open(&options, STORE_WRITE, &store, NULL);
    store_close(store);
    return r;
}

int world_setup(void **state)
{
    struct world *world = mem_alloc(sizeof *world);

    clock_manual_init(&world->clock, 10000000, INT64_C(1800000000000));
    identity_make(world);
    world->url = backend->make();
    world->a = world_open(world);
    world->b = world_open(world);
    backend->prepare(world);
    *state = world;
    return 0;
}

int world_teardown(void **state)
{
    struct world *world = *state;

    store_close(world->a);
    store_close(world->b);
    backend->discard(world->url);
    free(world->url);
    free(world);
    return 0;
}

void world_close(struct world *world)
{
    store_cleanup(&world->a);
    store_cleanup(&world->b);
}

void world_reopen(struct world *world)
{
    world->a = world_open(world);
    world->b = world_open(world);
}

static _Noreturn void child_main(struct world *world, int index, int gate, child_fn child, void *answer)
{
    char byte = 0;

    alarm(60);
    while (read(gate, &byte, 1) > 0)
        ;
    child(world, index, answer);
    _exit(0);
}

void world_fork(struct world *world, int count, child_fn child, void *answers, size_t size_bytes)
{
    size_t total_bytes = (size_t)count * size_bytes;
    char *shared = mmap(NULL, total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t *children = mem_alloc((size_t)count * sizeof *children);
    int gate[2];

    assert_true(shared != MAP_FAILED);
    assert_int_equal(pipe(gate), 0);
    for (int i = 0; i < count; i++) {
        children[i] = checked_fork();
        if (children[i] == 0) {
            close(gate[1]);
            child_main(world, i, gate[0], child, shared + (size_t)i * size_bytes);
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < count; i++)
        assert_int_equal(waitpid(children[i], NULL, 0), children[i]);
    memcpy(answers, shared, total_bytes);
    munmap(shared, total_bytes);
    free(children);
}

char *world_dump(struct world *world)
{
    return backend->dump(world->url);
}

bool world_same(struct world *world, const char *before)
{
    _cleanup_(mem_free) char *after = world_dump(world);
    const char *left = before, *right = after;

    while (*left || *right) {
        size_t left_length = strcspn(left, "\n"), right_length = strcspn(right, "\n");
        if (left_length != right_length || memcmp(left, right, left_length) != 0) {
            print_error("changed: %.*s -> %.*s\n", (int)left_length, left, (int)right_length, right);
            return false;
        }
        left += left_length + (left[left_length] == '\n');
        right += right_length + (right[right_length] == '\n');
    }
    return true;
}

void assert_ok(enum result result, const char *call, const char *file, int line)
{
    if (result != RESULT_OK)
        print_error("%s: %s\n", call, result_name(result));
    _assert_true(result == RESULT_OK, call, file, line);
}

/* The subject's name must outlive the reservation: kept in a small ring. */
static const char *const *subject_list(const char *subject)
{
    static const char *ring[64];
    static size_t next;

    next = (next + 1) % ARRAY_SIZE(ring);
    ring[next] = subject;
    return &ring[next];
}

struct reservation reservation_of(struct world *world, enum attempt_kind kind, const char *subject)
{
    struct reservation reservation;

    reservation_init(&reservation, &world->clock.clock);
    reservation.kind = kind;
    reservation.repository = "repository-1";
    reservation.subjects = subject_list(subject);
    reservation.subject_count = 1;
    reservation.executor = &world->executor;
    reservation.journal_handle = "T-0000-0000";
    reservation.journal_path = "/journals/T-0000-0000";
    return reservation;
}

enum result try_reserve(struct store *store, struct reservation *reservation)
{
    _cleanup_(attempt_done) struct attempt attempt = {0}, holder = {0};

    return store_reserve(store, reservation, &attempt, &holder, NULL);
}

struct credential reserve(
    struct world *world, struct store *store, enum attempt_kind kind, const char *subject)
{
    struct reservation reservation = reservation_of(world, kind, subject);

    OK(try_reserve(store, &reservation));
    return reservation.credential;
}

struct credential run(struct world *world, struct store *store, enum attempt_kind kind, const char *subject)
{
    struct credential credential = reserve(world, store, kind, subject);

    OK(store_bind(store, &credential, "demand-digest", NULL));
    return credential;
}

enum result renew(struct store *store, const struct credential *credential)
{
    struct renewal renewal = {.credential = credential};
    enum result r = store_renew(store, &renewal, 1, NULL);

    renewal_done(&renewal);
    return r == RESULT_OK ? renewal.result : r;
}

enum result settle_with(struct store *store, const struct credential *credential, enum attempt_state state,
    const struct proof_row *proof, const char *nonce)
{
    struct settlement settlement;

    settlement_init(&settlement, state);
    settlement.reason_code = attempt_state_name(state);
    settlement.proof = proof;
    if (nonce)
        memcpy(settlement.nonce, nonce, sizeof settlement.nonce);
    return store_settle(store, credential, &settlement, NULL);
}

enum result settle(struct store *store, const struct credential *credential, enum attempt_state state)
{
    return settle_with(store, credential, state, NULL, NULL);
}

enum result retire(struct store *store, const char *id, int64_t rev, bool gone, const char *by)
{
    const struct retirement retirement = {
        .attempt_id = id,
        .rev = rev,
        .owner_gone = gone,
        .reason_code = gone ? "owner-gone" : "lapsed",
        .by_attempt = by,
    };

    return store_retire(store, &retirement, NULL);
}

enum result put_evidence(
    struct store *store, const struct credential *credential, const char *key, bool passed)
{
    struct evidence_row row = {
        .producer = (char *)"build",
        .verdict = (char *)(passed ? "passed" : "failed"),
        .passed = passed,
        .reusable = true,
        .payload = (char *)"{}",
    };

    digest_hex(key, strlen(key), row.key);
    return store_evidence_put(store, credential, &row, NULL);
}

struct attempt found(struct store *store, const char *id)
{
    struct attempt attempt = {0};

    OK(store_find(store, id, &attempt, NULL));
    return attempt;
}

int64_t revision(struct store *store, const char *id)
{
    _cleanup_(attempt_done) struct attempt attempt = found(store, id);

    return attempt.rev;
}

struct proof_row proof_of(struct world *world _unused_, const char *id)
{
    struct proof_row proof = {
        .commit = "c0ffee",
        .tree = "7ee",
        .demand = "demand-digest",
        .key_id = "key",
        .envelope = "{\"payload\":\0\"bytes\"}",
        .envelope_length = 20,
    };

    digest_hex(id, strlen(id), proof.id);
    return proof;
}
