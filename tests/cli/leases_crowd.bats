#!/usr/bin/env bats
# Many at once.

load helpers
load leases

setup() {
    sandbox
    repository
}
teardown() { sandbox_end; }

@test "a hundred done at once in one checkout: one runs, ninety-nine say held, each with one cause" {
    # The work lasts until all the others have answered.
    producers once="echo x >>'$HOME/runs'; $(waits_for "$HOME/go")"
    local i pids=() winners=0 held=0 winner
    for ((i = 0; i < 100; i++)); do
        background "run$i" "$TENURE" done --json
        pids+=("$PID")
    done
    wait_for 100 all_but_one_ended "${pids[@]}"
    : >"$HOME/go"
    for ((i = 0; i < 100; i++)); do
        finish "run$i" "${pids[i]}"
        case $RC in
        0) winners=$((winners + 1)) winner=$(jq -r .attempt.id <<<"$OUT") ;;
        3) held=$((held + 1)) ;;
        *) finished_with "0 or 3" ;;
        esac
    done
    [ $winners = 1 ]
    [ $held = 99 ]
    [ "$(cat "$SANDBOX"/run*.out | jq -s --arg id "$winner" 'map(select(.exit == 3 and (.pending | type == "object"
        and .attempt == $id and (.reconnect | startswith("tenure attach T-"))))) | length')" = 99 ]
    [ "$(wc -l <"$HOME/runs")" = 1 ]
    [ "$(db "SELECT count(*) FROM attempt")" = 1 ]
    has_ended passed passed "$winner"
    # Who was only told that it is held leaves no journal.
    [ "$(ls "$XDG_STATE_HOME/tenure/journals" | wc -l)" = 1 ]
}

@test "two done at once: who comes to its lease after the other's Proof has nothing to do, and makes none" {
    producers once="echo x >>'$HOME/runs'"
    "$TENURE" run --subject first -- true # makes the store
    # One has looked for a Proof and stands before its reserve while the other proves all.
    TENURE_FAILPOINT=hold-before-reserve:stop background late "$TENURE" done --json
    late_pid=$PID
    wait_for 20 standing "$late_pid"
    first=$("$TENURE" done --json | jq -r .attempt.id)
    kill -CONT "$late_pid"
    finish late "$late_pid"
    finished_with 0
    diff <(jq -S . <<<"$OUT") <("$TENURE" done --json | jq -S .) # as if it had found the Proof at once
    [ "$(jq -r .attempt.id <<<"$OUT")" = "$first" ]
    [ "$(db "SELECT count(*) FROM proof")" = 1 ]
    [ "$(wc -l <"$HOME/runs")" = 1 ]
    has_ended cancelled proved-already
    [ "$(records_of "$(newest)" | jq -rs 'last | .kind + " " + .state + " " + .reason')" = "settled cancelled proved-already" ]
    [ "$(records_of "$(newest)" | grep -c '"kind":"plan"')" = 0 ]
    # Who asks for it anew gets it anew.
    TENURE_FAILPOINT=hold-before-reserve:stop background late "$TENURE" done --rerun
    late_pid=$PID
    wait_for 20 standing "$late_pid"
    "$TENURE" done --rerun
    kill -CONT "$late_pid"
    finish late "$late_pid"
    finished_with 0
    [ "$(wc -l <"$HOME/runs")" = 3 ]
    [ "$(db "SELECT count(*) FROM proof")" = 3 ]
}
# No signal waits for the process any more.
heard_all() { grep -q '^ShdPnd:[[:space:]]*0*$' "/proc/$1/status"; }

@test "INT to the done that has nothing to do any more: it and whoever follows it say so alike" {
    producers quick=true
    "$TENURE" run --subject first -- true # makes the store
    TENURE_FAILPOINT=hold-before-reserve:stop,hold-before-leftovers:stop background late "$TENURE" done --json
    late_pid=$PID
    wait_for 20 standing "$late_pid"
    "$TENURE" done
    kill -CONT "$late_pid"
    # It holds its own attempt and sees the other's Proof as soon as the store can be read. Before that, the signal.
    wait_for 20 holds 1
    wait_for 20 standing "$late_pid"
    hold_store
    printf 'COMMIT;\nBEGIN EXCLUSIVE;\nSELECT 2;\n' >&8
    wait_for 10 grep -q 2 "$SANDBOX/holder.out"
    kill -INT "$late_pid"
    kill -CONT "$late_pid"
    wait_for 10 heard_all "$late_pid"
    release_store
    finish late "$late_pid"
    finished_with 130
    attempt=$(newest)
    has_ended cancelled signal "$attempt"
    [ "$(jq -r '[.outcome, .attempt.id, .attempt.state, .proof] | join(" ")' <<<"$OUT")" = "cancelled $attempt cancelled " ]
    run "$TENURE" attach "$(jq -r .attempt.handle <<<"$OUT")"
    assert_exit 130
    "$TENURE" done --json | jq -e '.exit == 0 and (.proof | type == "object")' >/dev/null
}

all_but_one_ended() {
    local pid lives=0
    for pid; do ended "$pid" || lives=$((lives + 1)); done
    [ $lives = 1 ]
}

@test "with --wait all of them end with 0, and each producer ran exactly once" {
    producers first="echo x >>'$HOME/first'" second="echo x >>'$HOME/second'; sleep 0.5"
    local i pids=() count=100
    for ((i = 0; i < count; i++)); do
        background "run$i" "$TENURE" done --wait
        pids+=("$PID")
    done
    for ((i = 0; i < count; i++)); do
        finish "run$i" "${pids[i]}" 120
        finished_with 0
    done
    [ "$(wc -l <"$HOME/first")" = 1 ]
    [ "$(wc -l <"$HOME/second")" = 1 ]
    # Whoever looked for a Proof just before there was one looks again under the lease.
    [ "$(db "SELECT count(*) FROM proof")" = 1 ]
    [ "$(db "SELECT count(*) FROM attempt WHERE state <> 'passed' AND reason_code <> 'proved-already'")" = 0 ]
    [ "$(db "SELECT count(*) FROM evidence")" = 2 ]
}

@test "L11: never rescued while alive: one is renewed, while ten others start, die and are recovered" {
    patient_producers slow="$(waits_for "$HOME/go")"
    background run "$TENURE" done
    pid=$PID
    wait_for 30 work_runs slow
    id=$(newest)
    watch_store
    subject=$(db "SELECT subject FROM subject WHERE attempt = '$id' AND subject LIKE 'checkout:%'")
    # Waves of ten, for some lease times: each wants what is held, dies on a subject of its own, and recovers itself.
    local i others wave
    for ((wave = 1; wave <= 3 * ROUNDS || $(renewals "$id") < 15 * ROUNDS; wave++)); do
        others=()
        for ((i = 0; i < 10; i++)); do
            # shellcheck disable=SC2016
            background "other$i" bash -c '"$TENURE" run --subject "$0" -- true
                [ $? = 123 ] || exit 1
                TENURE_FAILPOINT=supervisor-job-started:kill "$TENURE" run --subject "$1" -- true
                [ $? = 137 ] || exit 2
                "$TENURE" run --subject "$1" -- true || exit 3' "$subject" "own:$i"
            others+=("$PID")
        done
        for ((i = 0; i < 10; i++)); do
            finish "other$i" "${others[i]}"
            finished_with 0
        done
        wait_for 30 renewed "$id" $(($(renewals "$id") + 1))
    done
    [ "$(db "SELECT count(*) FROM attempt WHERE reason_code = 'owner-gone'")" -ge $((30 * ROUNDS)) ]
    [ "$(field state "$id")" = running ]
    : >"$HOME/go"
    finish run "$pid"
    finished_with 0
    has_ended passed passed "$id"
    [ "$(db "SELECT count(*) FROM seen WHERE what = 'retired' AND attempt = '$id'")" = 0 ]
    terminal_kept
}
