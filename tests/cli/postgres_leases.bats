#!/usr/bin/env bats
# Races for one record, many at once, and containers that share a state directory, on the shared store.

load helpers
load leases
load postgres

setup() {
    postgres_sandbox
    "$TENURE" run --subject first -- true # makes the store
    watch_store
}
teardown() { postgres_sandbox_end; }

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
}

@test "L2: a renewal that the network holds back until another owns the subject changes nothing" {
    proxy_start
    background old "$TENURE" run --subject s --ttl 3s --heartbeat 500ms -- sh -c "$(waits_for "$SANDBOX/go")"
    old_pid=$PID
    wait_for 20 running
    old=$(newest)
    wait_for 20 renewed "$old" 2
    # What it sends from now on lies in the proxy's and the kernel's buffers.
    proxy stop
    TENURE_STORE=$DIRECT background new "$TENURE" run --subject s --ttl 2s --wait -- sh -c "$(waits_for "$SANDBOX/go")"
    new_pid=$PID
    wait_for 20 has_ended cancelled lapsed "$old"
    keep_row "$old"
    proxy go
    finish old "$old_pid"
    finished_with 124
    same_row "$old"
    : >"$SANDBOX/go"
    finish new "$new_pid"
    finished_with 0
    same_row "$old"
    terminal_kept
}

@test "an old token with the right id, the right token with another id, and a finished attempt: nothing changes" {
    background run "$TENURE" run --subject s --ttl 30s -- sh -c "$(waits_for "$SANDBOX/go")"
    pid=$PID
    wait_for 20 running
    id=$(newest)
    first=$(db "SELECT id FROM attempt ORDER BY fence LIMIT 1")
    token="sha256('another')"
    keep_row "$id"
    keep_row "$first"
    for attempt in "$id" "$first"; do
        for call in "renew('$attempt'::uuid, $token)" "settle('$attempt', $token, 'passed', 'nonce')" \
            "bind('$attempt', $token)" "evidence_put('$attempt', $token, 'm', 'p', 'k', 'passed', true, true)"; do
            [ "$(db "SELECT result FROM tenure.$call")" = retired ]
        done
    done
    same_row "$id"
    same_row "$first"
    : >"$SANDBOX/go"
    finish run "$pid"
    finished_with 0
}

# cancel_race SUBJECT ROUND RUN-POINTS CANCEL-POINTS SECONDS: both tell what the record says, for ever.
cancel_race() {
    local name=$1.$2 id state exit pid cancel_exit told
    TENURE_FAILPOINT=$3 "$TENURE" run --json --subject "$name" --ttl 2s -- sleep "$5" >"$SANDBOX/$name.run" 3>&- &
    pid=$!
    until id=$(db "SELECT id FROM attempt WHERE subjects = ARRAY['command:$name']") && [ -n "$id" ]; do kill -0 $pid || break; done
    TENURE_FAILPOINT=$4 timeout 30 "$TENURE" cancel --json "$id" >"$SANDBOX/$name.cancel"
    cancel_exit=$?
    wait $pid
    exit=$?
    state=$(field "state || ' ' || reason_code" "$id")
    keep_row "$id"
    told="$exit $(jq -r .attempt.state "$SANDBOX/$name.run") $cancel_exit $(jq -r .attempt.state "$SANDBOX/$name.cancel")"
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
    local lengths=(0.03 0.1 0.03 1)
    stream() {
        local i
        for ((i = 0; i < 30 * ROUNDS; i++)); do
            cancel_race "$1" $i "${ours[i % 6]}" "${theirs[i / 2 % 5]}" "${lengths[i % 4]}" || return
        done
    }
    stream a 3>&- >"$SANDBOX/a.out" 2>&1 &
    local a=$!
    stream b 3>&- >"$SANDBOX/b.out" 2>&1 &
    local b=$! failed=0 id
    STARTED+=($a $b)
    wait $a || failed=1
    wait $b || failed=1
    cat "$SANDBOX/a.out" "$SANDBOX/b.out"
    [ $failed = 0 ]
    terminal_kept
    while read -r id _; do same_row "$id"; done < <(cat "$SANDBOX"/races.*)
    grep -q passed "$SANDBOX"/races.* && grep -q cancelled "$SANDBOX"/races.*
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
    counts leftover 0
    terminal_kept
}

@test "L8: two containers with one state directory: the owner is never retired while it lives, and recovered at once when killed" {
    unshare -rUpf --mount-proc true 2>/dev/null || skip "no user and pid namespaces here"
    contained() { background "$1" unshare -rUpf --kill-child --mount-proc "${@:2}"; }
    contained a "$TENURE" run --subject s --ttl 2s --heartbeat 200ms -- sh -c "$(waits_for "$SANDBOX/never")"
    a=$PID
    wait_for 30 running
    id=$(newest)
    [ "$(field "executor ->> 'pid'" "$id")" = 1 ]
    while ! renewed "$id" 12; do
        run timeout 30 unshare -rUpf --kill-child --mount-proc "$TENURE" run --subject s -- true
        assert_exit 123
    done
    [ "$(field state "$id")" = running ]
    kill -KILL "$a"
    no_lock() { [ "$("$TENURE" status --all --json | jq -r '.attempts[0].owner')" = gone ]; }
    wait_for 10 no_lock
    begun=$(db "SELECT tenure.milliseconds(tenure.now())")
    run timeout 30 unshare -rUpf --kill-child --mount-proc "$TENURE" run --subject s -- true
    assert_exit 0
    [ $(($(field "tenure.milliseconds(acquired_at)") - begun)) -lt 1000 ]
    has_ended cancelled owner-gone "$id"
    counts leftover 0
    none_marked
}

all_but_one_ended() {
    local pid lives=0
    for pid; do ended "$pid" || lives=$((lives + 1)); done
    [ $lives = 1 ]
}

@test "a hundred done at once: one runs, ninety-nine say held, each with one cause" {
    repository
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
    counts attempt 2
    counts subject 0
    terminal_kept
}

@test "who waits takes over when the subject is released, in turn, and fences rise" {
    background holder "$TENURE" run --subject s --ttl 10s -- sh -c "$(waits_for "$SANDBOX/go")"
    holder=$PID
    wait_for 20 running
    local i pids=()
    for ((i = 0; i < 10; i++)); do
        # shellcheck disable=SC2016
        background "run$i" "$TENURE" run --subject s --wait=60s -- sh -c 'echo $TENURE_FENCE >>"$0"' "$SANDBOX/fences"
        pids+=("$PID")
    done
    waiting() { [ "$(grep -l 'waiting for' "$SANDBOX"/run*.err | wc -l)" = 10 ]; }
    wait_for 20 waiting
    : >"$SANDBOX/go"
    finish holder "$holder"
    for ((i = 0; i < 10; i++)); do
        finish "run$i" "${pids[i]}"
        finished_with 0
    done
    [ "$(wc -l <"$SANDBOX/fences")" = 10 ]
    sort -n -u -c "$SANDBOX/fences"
    terminal_kept
}
