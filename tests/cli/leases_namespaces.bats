#!/usr/bin/env bats
# Process ids that were used before, and two containers that share one state directory.

load helpers
load leases

setup() {
    sandbox
    unshare -rUpf --mount-proc true 2>/dev/null || skip "no user and pid namespaces here"
    export SANDBOX STORE
}
teardown() { sandbox_end; }

# contained NAME SCRIPT: the script runs in a pid namespace of its own, under a shell that is its pid 1, with the
# helpers at hand. In the background; $PID is the outermost process.
contained() {
    printf '%s\n' "source '$BATS_TEST_DIRNAME/helpers.bash'" "source '$BATS_TEST_DIRNAME/leases.bash'" 'STARTED=()' "$2" \
        >"$SANDBOX/$1.sh"
    background "$1" unshare -rUpf --kill-child --mount-proc bash "$SANDBOX/$1.sh"
}
# take_pid PID: a sleep gets this very process id in this namespace; $! is it.
TAKE_PID='take_pid() {
    local try
    for try in $(seq 100); do
        echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid
        sleep 600 &
        [ $! = $1 ] && return
        kill -KILL $!
        wait $! 2>/dev/null
    done
    return 1
}'
last_words() { tail -n1 "$SANDBOX/$1.out"; }

@test "L7: the process id of a killed owner was given to another: recovered at once, and that one is left alone" {
    # shellcheck disable=SC2016
    contained inner "$TAKE_PID"'
        work="until [ -e \"$SANDBOX/go\" ]; do sleep 0.05; done"
        background dead "$TENURE" run --subject s -- sh -c "$work"
        dead=$PID
        wait_for 20 work_runs
        kill -KILL $dead
        wait $dead
        take_pid $dead || exit 10
        begun=$(date +%s%3N)
        timeout 30 "$TENURE" run --subject s -- true || exit 11
        [ $(($(field acquired_wall_ms) - begun)) -lt 1000 ] || exit 12
        [ "$(db "SELECT reason_code FROM attempt WHERE pid = $dead")" = owner-gone ] || exit 13
        [ "$(cat /proc/$dead/comm)" = sleep ] && ! ended $dead || exit 14
        kill -KILL $dead
        wait $dead
        [ $? = 137 ] || exit 15'
    finish inner "$PID"
    finished_with 0
}

# One in a container holds; others come from another container. Then it is killed.
two_containers() { # two_containers SCRIPT-BEFORE-B
    # shellcheck disable=SC2016
    contained a 'background run "$TENURE" run --subject s --ttl 2s --heartbeat 200ms -- sh -c "$(waits_for "$SANDBOX/never")"
        wait_for 20 work_runs
        echo $PID >"$SANDBOX/a-pid"
        wait_for 60 test -e "$SANDBOX/kill"
        kill -KILL $PID
        wait $PID
        date +%s%3N >"$SANDBOX/killed.new"
        mv "$SANDBOX/killed.new" "$SANDBOX/killed"
        wait_for 60 test -e "$SANDBOX/end"'
    a=$PID
    wait_for 30 test -s "$SANDBOX/a-pid"
    id=$(newest)
    watch_store
    # shellcheck disable=SC2016
    contained b "$TAKE_PID
        $1"'
        while [ "$(db "SELECT count(*) FROM seen WHERE what = '\''renewal'\''")" -lt 12 ]; do
            timeout 30 "$TENURE" run --subject s -- true
            [ $? = 123 ] || exit 10
        done
        : >"$SANDBOX/kill"
        wait_for 20 test -e "$SANDBOX/killed"
        timeout 30 "$TENURE" run --subject s -- true || exit 11'
    b=$PID
    finish b "$b"
    finished_with 0
    has_ended cancelled owner-gone "$id"
    [ $(($(field acquired_wall_ms) - $(<"$SANDBOX/killed"))) -lt 1000 ]
    # What it left in its container is ended by the first that can see it.
    [ "$(db "SELECT count(*) FROM leftover")" = 1 ]
    [ -n "$(marked_processes)" ]
    run timeout 30 "$TENURE" run --subject s -- true
    assert_exit 0
    [ "$(db "SELECT count(*) FROM leftover")" = 0 ]
    none_marked
    : >"$SANDBOX/end"
    finish a "$a"
}

@test "L8: two containers, and the owner's process id is not there in the other one" {
    # shellcheck disable=SC2016
    two_containers '[ ! -e "/proc/$(cat "$SANDBOX/a-pid")" ] || { echo 90000 >/proc/sys/kernel/ns_last_pid; }'
}

@test "L8: two containers, and the owner's process id belongs to somebody else in the other one" {
    # shellcheck disable=SC2016
    two_containers 'take_pid "$(cat "$SANDBOX/a-pid")" || exit 9'
}

@test "L8: two containers, both with the program as pid 1 and with one host name" {
    background a unshare -rUpf --kill-child --mount-proc "$TENURE" run --subject s --ttl 2s --heartbeat 200ms -- sh -c "$(waits_for "$SANDBOX/never")"
    a=$PID
    wait_for 30 work_runs
    id=$(newest)
    [ "$(field pid "$id")" = 1 ]
    watch_store
    while ! is_there "SELECT count(*) >= 12 FROM seen WHERE what = 'renewal'"; do
        run timeout 30 unshare -rUpf --kill-child --mount-proc "$TENURE" run --subject s -- true
        assert_exit 123
    done
    [ "$(field state "$id")" = running ]
    kill -KILL "$a" # and with it, by --kill-child, the program
    local begun
    begun=$(date +%s%3N)
    wait_for 10 no_lock "$id"
    run timeout 30 unshare -rUpf --kill-child --mount-proc "$TENURE" run --subject s -- true
    assert_exit 0
    [ $(($(field acquired_wall_ms) - begun)) -lt 1000 ]
    has_ended cancelled owner-gone "$id"
    [ "$(db "SELECT count(*) FROM leftover")" = 0 ]
    none_marked
}
no_lock() { [ "$("$TENURE" status --all --json | jq -r '.attempts[0].owner')" = gone ]; }
