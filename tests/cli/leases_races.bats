#!/usr/bin/env bats
# Two at one record, in the orders that hurt. The stores' own orders of statements are in the conformance suite;
# here the whole programs race.

load helpers
load leases

setup() {
    sandbox
    "$TENURE" run --subject first -- true # makes the store
    watch_store
}
teardown() { sandbox_end; }

@test "L2: a renewal that was held back until another owned the subject changes nothing" {
    TENURE_FAILPOINT=heartbeat-before-send:delay=4500@2 background old "$TENURE" run --subject s --ttl 2s --heartbeat 500ms -- \
        sh -c "$(waits_for "$SANDBOX/go")"
    old_pid=$PID
    wait_for 20 running
    old=$(newest)
    background new "$TENURE" run --subject s --ttl 2s --wait -- sh -c "$(waits_for "$SANDBOX/go")"
    new_pid=$PID
    wait_for 20 has_ended cancelled lapsed "$old"
    keep_row "$old"
    finish old "$old_pid"
    finished_with 124
    same_row "$old"
    : >"$SANDBOX/go"
    finish new "$new_pid"
    finished_with 0
    same_row "$old"
    terminal_kept
    # What it says is the retirement, and nothing of the time that its lease had run out.
    [ "$(records_of "$old" | jq -rs 'last | .state + " " + .reason')" = "cancelled lapsed" ]
}

@test "L3: renewals against settlements: no record that has ended ever changes" {
    local stream
    for stream in 1 2; do
        background "stream$stream" bash -c '
            for ((i = 1; i <= '$((120 * ROUNDS))'; i++)); do
                TENURE_FAILPOINT=heartbeat-before-send:delay=$((i % 8)),hold-before-drain:delay=$((i / 8 % 8)) \
                    "$TENURE" run --subject s'$stream' --ttl 2s --heartbeat 5ms -- true || exit
                [ -z "$(sqlite3 -cmd ".timeout 5000" "$0" "SELECT 1 FROM seen WHERE what = '\''late'\''")" ] || exit 99
            done' "$STORE"
    done
    finish stream1 "${STARTED[0]}" $((60 * ROUNDS))
    finished_with 0
    finish stream2 "${STARTED[1]}" $((60 * ROUNDS))
    finished_with 0
    terminal_kept
    [ "$(db "SELECT count(*) FROM attempt WHERE state = 'passed' AND subjects IN ('command:s1', 'command:s2')")" = $((240 * ROUNDS)) ]
    # It was a race: renewals did happen.
    is_there "SELECT count(*) FROM seen WHERE what = 'renewal'"
}

# cancel_race SUBJECT ROUND RUN-POINTS CANCEL-POINTS SECONDS: both tell what the record says, for ever.
cancel_race() {
    local name=$1.$2 id state exit
    TENURE_FAILPOINT=$3 "$TENURE" run --json --subject "$name" --ttl 2s -- sleep "$5" >"$SANDBOX/$name.run" 3>&- &
    local pid=$!
    until id=$(db "SELECT id FROM attempt WHERE subjects = 'command:$name'") && [ -n "$id" ]; do kill -0 $pid || break; done
    TENURE_FAILPOINT=$4 timeout 30 "$TENURE" cancel --json "$id" >"$SANDBOX/$name.cancel"
    local cancel_exit=$?
    wait $pid
    exit=$?
    state=$(field "state || ' ' || reason_code" "$id")
    keep_row "$id"
    local told="$exit $(jq -r .attempt.state "$SANDBOX/$name.run") $cancel_exit $(jq -r .attempt.state "$SANDBOX/$name.cancel")"
    case "$state:$told" in
    "passed passed:0 passed 1 passed") ;;
    "cancelled cancel-requested:124 cancelled 0 cancelled") ;;
    *)
        echo "$name with $3 and $4: the record says $state, the programs: $told"
        cat "$SANDBOX/$name.run" "$SANDBOX/$name.cancel"
        return 1
        ;;
    esac
    echo "$id ${state%% *}" >>"$SANDBOX/races.$1"
}

@test "L12: a cancellation races the end of a run: the record says one thing, and so do both programs" {
    local ours=(none:delay=0 hold-before-drain:delay=10 hold-before-settle:delay=10 settle-before-commit:delay=10
        hold-after-settle:delay=10 hold-before-settled-record:delay=20)
    local theirs=(none:delay=0 cancel-before-request:delay=25 cancel-before-begin:delay=15 cancel-before-commit:delay=10
        cancel-after-request:delay=15)
    # Mostly they meet; on a slow machine some are certain to be cancelled, and some to pass.
    local lengths=(0.03 0.1 0.03 1)
    stream() {
        local i
        for ((i = 0; i < 35 * ROUNDS; i++)); do
            cancel_race "$1" $i "${ours[i % 6]}" "${theirs[i / 2 % 5]}" "${lengths[i % 4]}" || return
        done
    }
    stream a 3>&- >"$SANDBOX/a.out" 2>&1 &
    local a=$!
    stream b 3>&- >"$SANDBOX/b.out" 2>&1 &
    local b=$! failed=0
    STARTED+=($a $b)
    wait $a || failed=1
    wait $b || failed=1
    cat "$SANDBOX/a.out" "$SANDBOX/b.out"
    [ $failed = 0 ]
    terminal_kept
    while read -r id _; do same_row "$id"; done < <(cat "$SANDBOX"/races.*)
    # Both endings did occur.
    grep -q passed "$SANDBOX"/races.* && grep -q cancelled "$SANDBOX"/races.*
}

@test "L12: a cancellation reaches a run that is just about to settle, or has just settled" {
    local point
    for point in hold-before-drain hold-before-settle settle-before-begin hold-after-settle hold-before-settled-record; do
        TENURE_FAILPOINT=$point:stop background run "$TENURE" run --json --subject "$point" -- true
        pid=$PID
        wait_for 20 standing "$pid"
        id=$(newest)
        background cancel "$TENURE" cancel --json "$id"
        cancel_pid=$PID
        wait_for 10 asked_or_ended "$id" "$cancel_pid"
        kill -CONT "$pid"
        finish run "$pid"
        local run_exit=$RC run_state
        run_state=$(jq -r .attempt.state <<<"$OUT")
        finish cancel "$cancel_pid"
        state=$(field state "$id")
        [ "$run_state" = "$state" ]
        [ "$(jq -r .attempt.state <<<"$OUT")" = "$state" ]
        case $state in
        passed) [ $run_exit = 0 ] && [ "$RC" = 1 ] ;;
        cancelled) [ $run_exit = 124 ] && [ "$RC" = 0 ] ;;
        *) false ;;
        esac
    done
    terminal_kept
}
asked_or_ended() { is_there "SELECT cancel_by IS NOT NULL FROM attempt WHERE id = '$1'" || ended "$2"; }

@test "a signal reaches a run that is just about to settle: its exit status and the record agree" {
    local point
    for point in hold-before-drain hold-before-settle hold-after-settle hold-before-settled-record; do
        TENURE_FAILPOINT=$point:stop background run "$TENURE" run --json --subject "$point" -- true
        pid=$PID
        wait_for 20 standing "$pid"
        id=$(newest)
        kill -TERM "$pid"
        kill -CONT "$pid"
        finish run "$pid"
        case $(field state "$id") in
        passed) finished_with 0 ;;
        cancelled) finished_with 143 ;;
        *) false ;;
        esac
        [ "$(jq -r .attempt.state <<<"$OUT")" = "$(field state "$id")" ]
    done
    terminal_kept
}

@test "L15: the owner renews between recovery's look and its write: refused, the claim stands" {
    background old "$TENURE" run --subject s --ttl 2s --heartbeat 500ms -- sh -c "$(waits_for "$SANDBOX/go")"
    old_pid=$PID
    wait_for 20 running
    old=$(newest)
    stop_process "$old_pid"
    wait_for 20 lapsed "$old"
    TENURE_FAILPOINT=retire-before-begin:stop background new "$TENURE" run --subject s -- true
    new_pid=$PID
    wait_for 20 standing "$new_pid"
    rev=$(field rev "$old")
    kill -CONT "$old_pid"
    wait_for 20 is_there "SELECT rev > $rev FROM attempt WHERE id = '$old'"
    kill -CONT "$new_pid"
    finish new "$new_pid"
    finished_with 123
    [[ $ERR == *"$(handle_of "$old")"* ]]
    : >"$SANDBOX/go"
    finish old "$old_pid"
    finished_with 0
    has_ended passed passed "$old"
    [ "$(db "SELECT count(*) FROM leftover")" = 0 ]
    terminal_kept
}

@test "L15: the owner renews between the look and the write of a cancellation: it is asked instead" {
    background old "$TENURE" run --subject s --ttl 2s --heartbeat 500ms -- sleep 60
    old_pid=$PID
    wait_for 20 running
    old=$(newest)
    stop_process "$old_pid"
    wait_for 20 lapsed "$old"
    TENURE_FAILPOINT=cancel-before-retire:stop background cancel "$TENURE" cancel "$old"
    cancel_pid=$PID
    wait_for 20 standing "$cancel_pid"
    rev=$(field rev "$old")
    kill -CONT "$old_pid"
    wait_for 20 is_there "SELECT rev > $rev FROM attempt WHERE id = '$old'"
    kill -CONT "$cancel_pid"
    finish cancel "$cancel_pid"
    finished_with 0
    finish old "$old_pid"
    finished_with 124
    has_ended cancelled cancel-requested "$old"
    none_marked
}

@test "L20: whoever holds a subject later has the larger fence, in every order of statements" {
    local point
    for point in reserve-before-begin reserve-before-commit reserve-after-commit; do
        : >"$SANDBOX/fences"
        # shellcheck disable=SC2016
        TENURE_FAILPOINT=$point:stop background slow "$TENURE" run --subject s --wait -- sh -c 'echo $TENURE_FENCE >>'"'$SANDBOX/fences'"
        slow=$PID
        wait_for 20 standing "$slow"
        # shellcheck disable=SC2016
        background quick "$TENURE" run --subject s --wait -- sh -c 'echo $TENURE_FENCE >>'"'$SANDBOX/fences'"
        quick=$PID
        [ $point != reserve-before-begin ] || wait_for 20 ended "$quick"
        kill -CONT "$slow"
        finish slow "$slow"
        finished_with 0
        finish quick "$quick"
        finished_with 0
        [ "$(wc -l <"$SANDBOX/fences")" = 2 ]
        sort -n -u -c "$SANDBOX/fences"
    done
    terminal_kept
}

@test "L20: four that take turns at one subject draw ever larger fences" {
    local i streams=()
    for i in 1 2 3 4; do
        # shellcheck disable=SC2016
        background "stream$i" bash -c 'for ((i = 0; i < '$((8 * ROUNDS))'; i++)); do
            "$TENURE" run --subject s --wait -- sh -c "echo \$TENURE_FENCE >>\"$0\"" || exit; done' "$SANDBOX/fences"
        streams+=("$PID")
    done
    for i in 1 2 3 4; do
        finish "stream$i" "${streams[i - 1]}" $((60 * ROUNDS))
        finished_with 0
    done
    [ "$(wc -l <"$SANDBOX/fences")" = $((32 * ROUNDS)) ]
    sort -n -u -c "$SANDBOX/fences"
    terminal_kept
}
