#!/usr/bin/env bats
# Interrupted is not done, whatever the producer says about itself: it runs again next time.

load helpers
load evidence

setup() {
    sandbox
    repository
}
teardown() { sandbox_end; }

polite() { echo "trap 'exit 0' INT TERM HUP; $(asleep)"; }

begin() { # begin [ENVIRONMENT...]: `done` runs, and its producer waits
    background run env "$@" "$TENURE" done --json
    wait_for 30 test -e "$SANDBOX/waits"
}
# Nothing of it is reused; the same tree with the way free runs and passes.
runs_again() {
    [ "$(evidence_count)" = 0 ]
    [ "$(proof_count)" = 0 ]
    : >"$SANDBOX/go"
    exits 0
    was p=ran
}

@test "E4: a producer that traps the signal and exits 0" {
    config "$(jq -n --arg r "$(polite)" '{p: {run: $r}}')"
    for signal in INT TERM HUP; do
        rm -f "$SANDBOX/waits"
        begin
        kill -"$signal" "$PID"
        finish run "$PID"
        [ "$RC" -eq $((128 + $(kill -l "$signal"))) ]
        [ "$(doc .outcome)" = cancelled ]
        [ "$(doc .attempt.state)" = cancelled ]
        [ "$(doc .proof)" = null ]
        [ "$(evidence_count)" = 0 ]
    done
    runs_again
}

@test "E4: a producer that exits 0 in the grace after its time is over" {
    config "$(jq -n --arg r "$(polite)" '{p: {run: $r, timeout: "300ms"}}')"
    exits 1
    [ "$(ended_as p)" = timed-out ]
    [ "$(doc .proof)" = null ]
    # It is known as a failure, not as a pass.
    exits 1
    was p=reused
    : >"$SANDBOX/go"
    exits 0 --rerun
    was p=ran
}

@test "E4: a producer that exits 0 when it is asked to stop for its silence" {
    config "$(jq -n --arg r "$(polite)" '{p: {run: $r, quiet: "300ms"}}')"
    exits 1
    [ "$(ended_as p)" = quiet ]
    [ "$(doc .proof)" = null ]
}

@test "E4: cancelled by another terminal while it exits 0" {
    config "$(jq -n --arg r "$(polite)" '{p: {run: $r}}')"
    begin
    run tenure cancel "$(db "SELECT journal_handle FROM attempt")"
    assert_exit 0
    finish run "$PID"
    [ "$RC" -eq 4 ]
    [ "$(doc .outcome)" = lost ]
    runs_again
}

@test "E4: the supervisor is killed after the producer exited 0, before the record" {
    local n=0 point
    for point in evidence-before-begin evidence-before-commit; do
        config "{p: {run: \"true # $point\"}}"
        TENURE_FAILPOINT=$point:kill run tenure done --json
        assert_exit 137
        [ "$(evidence_count)" = $n ]
        exits 0
        was p=ran
        n=$((n + 1))
    done
}

@test "E4: the supervisor is killed after the record, before the Proof: the evidence holds, the Proof is made now" {
    config "{p: {run: \"echo x >>$SANDBOX/ran\"}}"
    TENURE_FAILPOINT=evidence-after-commit:kill run tenure done --json
    assert_exit 137
    [ "$(evidence_count)" = 1 ]
    [ "$(proof_count)" = 0 ]
    exits 0
    was p=reused
    [ "$(ran_times "$SANDBOX/ran")" = 1 ]
    [ "$(proof_count)" = 1 ]
    tenure verify -q
}

@test "E4: the lease is lost while it runs: exit 4, and no evidence under the old fence" {
    config "$(jq -n --arg r "$(asleep)" '{p: {run: $r}}')" '{lease: {ttl: "2s", heartbeat: "500ms"}}'
    begin
    old=$PID
    fence=$(db "SELECT fence FROM attempt")
    kill -STOP "$old"
    lapsed() { "$TENURE" status --all --json | jq -e '.attempts[0].lapsed' >/dev/null; }
    wait_for 30 lapsed
    run tenure cancel "$(db "SELECT journal_handle FROM attempt")"
    : >"$SANDBOX/go"
    kill -CONT "$old"
    finish run "$old"
    [ "$RC" -eq 4 ]
    [ "$(evidence_count)" = 0 ]
    [ "$(proof_count)" = 0 ]
    exits 0
    was p=ran
    [ "$(db "SELECT count(*) FROM evidence WHERE attempt = (SELECT id FROM attempt WHERE fence = $fence)")" = 0 ]
}

@test "E4: a producer ended by a signal of its own, one that cannot be started, one that is silent too long: other verdicts" {
    config '{killed: {run: "kill -SEGV $$"}, missing: {run: ["./no-such-program"]}, plain: {run: "exit 7"}, slow: {run: "sleep 60", timeout: "200ms"}}'
    exits 1 --keep-going
    [ "$(doc '[.producers[].verdict] | unique | length')" = 4 ]
    [ "$(doc '.producers[] | select(.name == "killed").signal')" = 11 ]
    [ "$(doc '.producers[] | select(.name == "plain").exit')" = 7 ]
    # What is red stays red, and is told at once; only --rerun tries it again.
    exits 1 --keep-going
    was killed=reused plain=reused slow=reused
    exits 1
    exits 1 --rerun --keep-going
    was killed=ran plain=ran slow=ran
}

@test "E4: an interruption does not erase what was known before" {
    config "$(jq -n --arg r "$(asleep)" '{known: {run: "true", inputs: ["hello.txt"]}, p: {run: $r, needs: ["known"]}}')"
    begin
    kill -INT "$PID"
    finish run "$PID"
    [ "$RC" -eq 130 ]
    [ "$(evidence_count)" = 1 ]
    rm "$SANDBOX/waits"
    background run "$TENURE" done --json --rerun
    wait_for 30 test -e "$SANDBOX/waits"
    kill -INT "$PID"
    finish run "$PID"
    : >"$SANDBOX/go"
    exits 0
    was known=reused p=ran
}
