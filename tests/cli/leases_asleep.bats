#!/usr/bin/env bats
# A supervisor that was stopped for longer than its lease, or between its look and its deed.

load helpers
load leases

setup() {
    sandbox
    repository
}
teardown() { sandbox_end; }

# The name of the first thing that happened to the store after it was watched.
first_seen() { db "SELECT what FROM seen ORDER BY n LIMIT 1"; }
overslept() { lapsed "$1" && [ "$(field "$(date +%s%3N) - renewed_wall_ms > 3000" "$1")" = 1 ]; }

@test "L1a: asleep for longer than the lease, and nobody came: renewed first, then passed, and the gap is told" {
    producers slow="$(waits_for "$HOME/go")"
    background run "$TENURE" done
    wait_for 30 work_runs slow
    attempt=$(newest)
    stop_process "$PID"
    wait_for 20 overslept "$attempt"
    watch_store
    kill -CONT "$PID"
    wait_for 20 is_there "SELECT count(*) FROM seen"
    [ "$(first_seen)" = renewal ]
    : >"$HOME/go"
    finish run "$PID"
    finished_with 0
    has_ended passed passed "$attempt"
    [ "$(db "SELECT count(*) FROM proof")" = 1 ]
    # The time that it slept is told once, in the journal and to whoever looks at it, and the evidence keeps it.
    # Whether the work was frozen after it, until the renewal was confirmed, is a race.
    [[ $(records_of "$attempt" | jq -rs 'map(.kind | select(. == "gap" or . == "frozen" or . == "thawed")) | join(" ")') =~ ^gap(\ frozen\ thawed)*$ ]]
    records_of "$attempt" | jq -es 'map(select(.kind == "gap"))[0].duration_ms >= 2500' >/dev/null
    [[ $OUT$ERR == *"this run was stopped, suspended or held up for "* ]]
    [[ $("$TENURE" attach "$(handle_of "$attempt")" 2>&1) == *"this run was stopped, suspended or held up for "* ]]
    db "SELECT payload FROM evidence" | jq -e '.frozen_ms >= 2500' >/dev/null
    terminal_kept
}

@test "L1b: asleep while another took over: work ended, exit 4, one reason, no evidence, no Proof" {
    producers quick=true slow="$(waits_for "$HOME/go")"
    background old "$TENURE" done --jobs 2
    old_pid=$PID
    wait_for 30 work_runs slow
    wait_for 30 is_there "SELECT count(*) FROM evidence"
    old=$(newest)
    watch_store
    stop_process "$old_pid"
    wait_for 20 lapsed "$old"
    background new "$TENURE" done --wait
    new_pid=$PID
    finish old "$old_pid"
    finished_with 4
    keep_row "$old"
    : >"$HOME/go"
    finish new "$new_pid"
    finished_with 0
    has_ended cancelled lapsed "$old"
    [ "$(field reason_by "$old")" = "$(newest)" ]
    same_row "$old"
    terminal_kept
    [ "$(db "SELECT count(*) FROM proof WHERE attempt = '$old'")" = 0 ]
    [ "$(db "SELECT count(*) FROM seen WHERE what = 'evidence' AND attempt = '$old'
        AND n > (SELECT n FROM seen WHERE what = 'retired')")" = 0 ]
    # One reason, and it is the retirement.
    [ "$(records_of "$old" | jq -s 'map(select(.kind == "retired")) | length')" = 1 ]
    [ "$(records_of "$old" | jq -rs 'last | .kind + " " + .state + " " + .reason')" = "settled cancelled lapsed" ]
    none_marked
}

# Pairs of one that wakes and one that arrives in the same moment, as many at once as two processors bear.
@test "L1c: one arrives as the sleeper wakes: exactly one has the subject, every time" {
    local pairs=10 round i
    for ((round = 1; round <= 2 * ROUNDS; round++)); do
        local old=() new=()
        for ((i = 0; i < pairs; i++)); do
            background "old$i" "$TENURE" run --subject "s$i" --ttl 2s -- \
                sh -c "$(waits_for "$SANDBOX/go$round"); echo '$round.$i old' >>'$SANDBOX/done'"
            old[i]=$PID
        done
        wait_for 30 holds $pairs
        stop_process "${old[@]}"
        wait_for 20 all_lapsed $pairs
        for ((i = 0; i < pairs; i++)); do
            kill -CONT "${old[i]}"
            background "new$i" "$TENURE" run --subject "s$i" --ttl 2s -- sh -c "echo '$round.$i new' >>'$SANDBOX/done'"
            new[i]=$PID
        done
        for ((i = 0; i < pairs; i++)); do
            finish "new$i" "${new[i]}"
            [ $RC -eq 0 ] || [ $RC -eq 123 ]
            echo "$round.$i $RC" >>"$SANDBOX/answers"
        done
        : >"$SANDBOX/go$round"
        for ((i = 0; i < pairs; i++)); do
            finish "old$i" "${old[i]}"
            # The new one was told that it is held (123): then the old one ran to its end. Else the old one lost.
            case "$(grep "^$round\.$i " "$SANDBOX/answers")" in
            *" 0") finished_with 124 ;;
            *" 123") finished_with 0 ;;
            esac
        done
    done
    [ "$(holds 0 && echo none)" = none ]
    # Nobody's work was done twice, and nobody's not at all.
    [ "$(cut -d' ' -f1 "$SANDBOX/done" | sort | uniq -c | awk '$1 != 1' | wc -l)" = 0 ]
    [ "$(wc -l <"$SANDBOX/done")" = "$(wc -l <"$SANDBOX/answers")" ]
    none_marked
}
all_lapsed() { [ "$("$TENURE" status --all --json | jq '[.attempts[] | select(.lapsed)] | length')" = "$1" ]; }

@test "L18: stopped after its last look and before a spawn, taken over, continued: nothing of it runs" {
    local point old=()
    # Each on a subject of its own, all at once.
    for point in supervisor-before-spawn spawn-before-fork spawn-before-exec; do
        TENURE_FAILPOINT=$point:stop background "old-$point" "$TENURE" run --subject "$point" --ttl 2s -- \
            sh -c ": >'$SANDBOX/ran-$point'"
        old+=("$PID")
        wait_for 20 standing "$PID"
    done
    wait_for 20 all_lapsed 3
    for point in supervisor-before-spawn spawn-before-fork spawn-before-exec; do
        run timeout 30 "$TENURE" run --subject "$point" --ttl 2s -- sh -c "test ! -e '$SANDBOX/ran-$point'"
        assert_exit 0
        finish "old-$point" "${old[0]}"
        old=("${old[@]:1}")
        finished_with 124
        [ ! -e "$SANDBOX/ran-$point" ]
    done
    [ "$(db "SELECT count(*) FROM attempt WHERE state = 'cancelled' AND reason_code = 'lapsed'")" = 3 ]
    none_marked
}

@test "L18: stopped before a thaw, taken over, continued: nothing of it runs on" {
    # The store is busy for longer than the lease, so that the work is frozen; then it is free, and the thaw begins.
    TENURE_FAILPOINT=guard-before-thaw:stop background old "$TENURE" run --subject s --ttl 2s -- sh -c \
        "while :; do echo x >>'$SANDBOX/beats'; sleep 0.05; done"
    old_pid=$PID
    wait_for 20 test -s "$SANDBOX/beats"
    old=$(newest)
    hold_store
    wait_for 20 frozen "$old"
    release_store
    wait_for 20 standing "$old_pid"
    wait_for 20 lapsed "$old"
    run timeout 30 "$TENURE" run --subject s --ttl 2s -- sh -c "wc -l <'$SANDBOX/beats' >'$SANDBOX/count'"
    assert_exit 0
    finish old "$old_pid"
    finished_with 124
    [ "$(wc -l <"$SANDBOX/beats")" = "$(<"$SANDBOX/count")" ]
    has_ended cancelled lapsed "$old"
    none_marked
}
frozen() { records_of "$1" | grep -q '"kind":"frozen"'; }
