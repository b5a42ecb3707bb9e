#!/usr/bin/env bats
# Two machines and one database: neither sees the other's processes nor files, so only the lease decides.

load helpers
load leases
load postgres

setup() {
    unshare -rUum true 2>/dev/null || skip "no user and mount namespaces here"
    postgres_sandbox
    repository
    machine_boot near
    machine_boot far
}
teardown() { [ -z "${DATABASE-}" ] || postgres_sandbox_end; }

# start MACHINE NAME CMD...: in the background there; $PID is the program itself.
start() {
    local MACHINE=()
    machine "$1"
    background "$2" "${MACHINE[@]}" "${@:3}"
}
HOLDS='s --ttl 2s --heartbeat 300ms'
journal_on() { echo "$SANDBOX/machines/$1/tenure/journals/$(handle_of "$2")/journal"; }
owner_seen() { on "$1" "$TENURE" status --all --json | jq -r --arg id "$2" '.attempts[] | select(.id == $id) | .owner'; }
is_there_marked() { XDG_STATE_HOME=$SANDBOX/machines/$1 marked_processes | grep -q .; }
none_there() { ! is_there_marked "$1"; }

@test "an owner on another machine is unknown, dead or alive: it holds while it renews, and is taken over after at most ttl" {
    # shellcheck disable=SC2086
    start near holder "$TENURE" run --subject $HOLDS -- sh -c "$(waits_for "$SANDBOX/go")"
    holder=$PID
    wait_for 20 running
    id=$(newest)
    watch_store
    while ! renewed "$id" 10; do
        run on far "$TENURE" run --subject s -- true
        assert_exit 123
        assert_says "$(handle_of "$id")" "near"
    done
    [ "$(owner_seen near "$id")" = running ]
    [ "$(owner_seen far "$id")" = unknown ]
    kill -KILL "$holder"
    wait "$holder" || true
    last=$(db "SELECT tenure.milliseconds(renewed_at) FROM attempt WHERE id = '$id'")
    run on far "$TENURE" run --subject s -- true
    assert_exit 123
    [ "$(owner_seen far "$id")" = unknown ]
    run on far timeout 30 "$TENURE" run --subject s --wait -- true
    assert_exit 0
    has_ended cancelled lapsed "$id"
    took=$(($(db "SELECT tenure.milliseconds(acquired_at) FROM attempt WHERE id = '$(newest)'") - last))
    echo "taken over after $took ms"
    [ $took -ge 2000 ] && [ $took -lt 3500 ]
    # What it left on its machine is for its machine to end.
    is_there_marked near
    counts leftover 1
    run on near timeout 30 "$TENURE" run --subject other -- true
    assert_exit 0
    none_there near
    counts leftover 0
}

@test "on its own machine the same dead owner is recovered at once" {
    start near holder "$TENURE" run --subject s --ttl 60s -- sh -c "$(waits_for "$SANDBOX/go")"
    holder=$PID
    wait_for 20 running
    id=$(newest)
    kill -KILL "$holder"
    wait "$holder" || true
    run on far "$TENURE" run --subject s -- true
    assert_exit 123
    run on near timeout 30 "$TENURE" run --subject s -- true
    assert_exit 0
    has_ended cancelled owner-gone "$id"
    none_there near
}

@test "from another machine: status, attach and log show the host, the progress and where the journal is" {
    producers first=true second="$(waits_for "$HOME/go")"
    start near run "$TENURE" done
    pid=$PID
    wait_for 20 running
    id=$(newest)
    wait_for 20 is_there "SELECT progress_done = 1 AND progress_total = 2 FROM attempt WHERE id = '$id'"
    handle=$(handle_of "$id")
    run on far "$TENURE" status
    assert_exit 0
    assert_says "$handle" "1 of 2" "owner unknown" "on near, pid" "on near: $(journal_on near "$id")"
    run on near "$TENURE" status
    assert_exit 0
    assert_says "owner running"
    [[ $output != *"journal "* ]]
    run on far "$TENURE" status --json
    jq -e --arg path "$(journal_on near "$id")" '.attempts[0] | .executor.host == "near" and .owner == "unknown"
        and .progress == {phase: "producers", done: 1, total: 2}
        and .journal_host == "near" and .journal_path == $path' <<<"$output"
    run on far "$TENURE" log
    assert_exit 0
    assert_says "$handle" running

    start far attached "$TENURE" attach "$handle"
    attached=$PID
    shows() { grep -qF "$1" "$SANDBOX/attached.out" "$SANDBOX/attached.err"; }
    wait_for 20 shows "its journal is on near: $(journal_on near "$id")"
    wait_for 20 shows "producers 1 of 2"
    : >"$HOME/go"
    finish run "$pid"
    finished_with 0
    finish attached "$attached"
    finished_with 0
    [[ $OUT$ERR == *"$handle passed"* ]]
    run on far "$TENURE" log
    assert_says "$handle" passed
}

@test "from another machine: cancel asks the owner, which ends within a heartbeat; a dead one is retired once it lapsed" {
    # shellcheck disable=SC2086
    start near run "$TENURE" run --subject $HOLDS -- sleep 600
    pid=$PID
    wait_for 20 running
    id=$(newest)
    run on far timeout 30 "$TENURE" cancel "$(handle_of "$id")"
    assert_exit 0
    assert_says "is cancelled"
    finish run "$pid"
    finished_with 124
    has_ended cancelled cancel-requested "$id"
    [[ $(field reason_text "$id") == *"on far"* ]]
    none_there near

    # shellcheck disable=SC2086
    start near run "$TENURE" run --subject $HOLDS -- sleep 600
    pid=$PID
    wait_for 20 running
    id=$(newest)
    kill -KILL "$pid"
    wait "$pid" || true
    wait_for 10 lapsed "$id"
    run on far timeout 30 "$TENURE" cancel "$(handle_of "$id")"
    assert_exit 0
    assert_says "is retired" lapsed
    has_ended cancelled lapsed "$id"
}

@test "evidence that was made on one machine is reused on the other, and so is the Proof" {
    producers first="echo x >>'$SANDBOX/first'" second="echo x >>'$SANDBOX/second'"
    jq '.producers[].inputs = ["hello.txt"]' tenure.json >"$SANDBOX/inputs" && cp "$SANDBOX/inputs" tenure.json
    commit_all
    git clone -q "$REPO" "$SANDBOX/far"
    run on near "$TENURE" done
    assert_exit 0
    cd "$SANDBOX/far"
    # The Proof of this tree is there already.
    run on far "$TENURE" done
    assert_exit 0
    assert_says "proved already"
    # Another tree, whose producers see the same.
    jq '.producers.third = {run: "true"}' tenure.json >"$SANDBOX/third" && cp "$SANDBOX/third" tenure.json
    commit_all
    run on far "$TENURE" done --json
    assert_exit 0
    echo "$output"
    [ "$(jq -c '[.producers[] | .name + " " + .source] | sort' <<<"$output")" = '["first reused","second reused","third ran"]' ]
    [ "$(wc -l <"$SANDBOX/first")" = 1 ]
    [ "$(wc -l <"$SANDBOX/second")" = 1 ]
    counts evidence 3
}

@test "a failure counts on its own machine alone" {
    # shellcheck disable=SC2016
    producers where='[ "$(hostname)" = far ]'
    git clone -q "$REPO" "$SANDBOX/far"
    run on near "$TENURE" done
    assert_exit 1
    cd "$SANDBOX/far"
    run on far "$TENURE" done
    assert_exit 0
}

@test "two machines prove one commit at once: one runs, the other is told who does" {
    producers slow="echo x >>'$SANDBOX/runs'; $(waits_for "$HOME/go")"
    git clone -q "$REPO" "$SANDBOX/far"
    start near run "$TENURE" done
    pid=$PID
    wait_for 20 test -s "$SANDBOX/runs"
    cd "$SANDBOX/far"
    run on far "$TENURE" done --json
    assert_exit 3
    [ "$(jq -r '.pending.executor.host' <<<"$output")" = near ]
    start far late "$TENURE" done --wait=30s --json
    late=$PID
    : >"$HOME/go"
    finish run "$pid"
    finished_with 0
    finish late "$late"
    finished_with 0
    [ "$(wc -l <"$SANDBOX/runs")" = 1 ]
    counts proof 1
}

@test "L1(b): longer asleep than the lease, and another machine took over: it ends its work, exit 4, no evidence, no Proof" {
    producers slow="echo \$\$ >>'$SANDBOX/workers'; $(waits_for "$HOME/go")"
    git clone -q "$REPO" "$SANDBOX/far"
    start near old "$TENURE" done --json
    old_pid=$PID
    wait_for 20 test -s "$SANDBOX/workers"
    old=$(newest)
    stop_process "$old_pid"
    wait_for 20 lapsed "$old"
    cd "$SANDBOX/far"
    start far new "$TENURE" done
    new_pid=$PID
    wait_for 20 has_ended cancelled lapsed "$old"
    keep_row "$old"
    kill -CONT "$old_pid"
    finish old "$old_pid"
    finished_with 4
    [[ $(jq -r .attempt.reason <<<"$OUT") == *"its lease had lapsed"* ]]
    none_there near
    : >"$HOME/go"
    finish new "$new_pid"
    finished_with 0
    same_row "$old"
    [ "$(db "SELECT count(*) FROM evidence WHERE attempt = '$old'")" = 0 ]
    counts proof 1
}

@test "L17(c): another machine retires X after its lease and passes; on X's machine the next run ends X's work before its own" {
    # shellcheck disable=SC2086
    start near x "$TENURE" run --subject $HOLDS -- sh -c "$(waits_for "$SANDBOX/never")"
    pid=$PID
    wait_for 20 running
    wait_for 20 is_there_marked near
    x=$(newest)
    kill -KILL "$pid"
    wait "$pid" || true
    run on far timeout 30 "$TENURE" run --subject s --wait -- true
    assert_exit 0
    has_ended cancelled lapsed "$x"
    is_there_marked near
    # The work of the third looks for the first's, and must not find it.
    work=$(XDG_STATE_HOME=$SANDBOX/machines/near marked_processes) || true
    # shellcheck disable=SC2016
    run on near timeout 30 "$TENURE" run --subject s -- sh -c 'for pid; do ! grep -qsv Z "/proc/$pid/stat" || exit 9; done' sh $work
    assert_exit 0
    none_there near
    counts leftover 0
}
