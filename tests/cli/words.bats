#!/usr/bin/env bats
# What is said to a person who is in the way of somebody, or in whose way somebody is: who, what, where, what to do.

bats_require_minimum_version 1.5.0
load helpers
load leases
load supervision

setup() {
    sandbox
    repository
}
teardown() { sandbox_end; }

the() { "$TENURE" status --all --json | jq -r ".attempts[0].$1"; }
held() { [ "$("$TENURE" status --all --json | jq '.attempts | length')" = 1 ]; }
# Holds `x` until $SANDBOX/go is there.
hold() {
    "$TENURE" run --subject x -- sh -c "$(waits_for "$SANDBOX/go")" 2>"$SANDBOX/holder.err" &
    HOLDER=$!
    wait_for 30 held
}
let_go() { : >"$SANDBOX/go" && wait "$HOLDER"; }

@test "a run that waits for the attempt it runs in is held at once" {
    run -123 timeout 60 "$TENURE" run --subject x -- "$TENURE" run --subject x --wait=50s -- true
    [[ $output == *"the attempt that this command runs in: waiting for it would never end"* ]]
    [[ $output != *"with --wait"* ]]
}

@test "held: what the holder does, where, how to wait, how to end it; no handle of a run that held nothing" {
    hold
    run -123 "$TENURE" run --subject x --wait=300ms -- true
    [[ $output == *"does       sh -c"* && $output == *"in         $PWD"* ]]
    [[ $output == *"wait       the same command with --wait"* && $output == *"end it     tenure cancel $(the handle)"* ]]
    [ "$(grep -c 'waiting for' <<<"$output")" = 1 ]
    [ "$(grep -oE 'T-[0-9A-Z]{4}-[0-9A-Z]{4}' <<<"$output" | sort -u)" = "$(the handle)" ]
    # One form of a date.
    ! grep -E '[0-9]T[0-9]{2}:' <<<"$output"
    let_go
}

@test "an owner that stands still is told, and how it goes on" {
    hold
    kill -STOP "$(the executor.pid)"
    wait_for 10 eval '"$TENURE" status --all | grep -q "owner stopped"'
    run -0 "$TENURE" status --all
    [[ $output == *"kill -CONT $(the executor.pid)"* && $output == *"does       sh -c"* ]]
    run -123 "$TENURE" run --subject x -- true
    [[ $output == *"kill -CONT $(the executor.pid)"* ]]
    kill -CONT "$(the executor.pid)"
    let_go
}

@test "cancelled: by whom and when, on both sides" {
    hold
    handle=$(the handle)
    run -0 "$TENURE" cancel "$handle"
    wait "$HOLDER" || [ $? = 124 ]
    grep -E "$handle was cancelled by .* on .*, pid [0-9]+, at [0-9-]+ [0-9:]+Z" "$SANDBOX/holder.err"
    "$TENURE" log --all -n 1 | grep -E 'cancelled .*by .* on .*, pid [0-9]+'
}

@test "killed: log and attach say that the owner is gone, cancel says why it could" {
    hold
    handle=$(the handle)
    kill -9 "$(the executor.pid)"
    wait "$HOLDER" || true
    : >"$SANDBOX/go"
    "$TENURE" log --all -n 1 | grep 'owner gone'
    run -4 "$TENURE" attach "$handle"
    [[ $output == *"retire it: tenure cancel $handle"* ]]
    run -0 "$TENURE" cancel "$handle"
    [[ $output == *"its owner was gone" ]]
}

@test "a mistyped handle is told apart from an unknown one, by cancel as by attach" {
    "$TENURE" run --subject x -- true
    for command in cancel attach; do
        run -2 "$TENURE" $command T-AAAA-AAAB
        [[ $output == *"its last symbol does not fit"* ]]
    done
}

@test "prune names what goes, and attach what went" {
    "$TENURE" run --subject x -- true
    handle=$("$TENURE" log --all --json | jq -r '.attempts[0].handle')
    "$TENURE" journal prune --older 0s --dry-run | grep "$handle"
    [ "$("$TENURE" journal prune --older 0s --dry-run --json | jq -r '.journals[0]')" = "$handle" ]
    "$TENURE" journal prune --older 0s | grep "$handle"
    run -2 "$TENURE" attach "$handle"
    [[ $output == *"the journal of $handle was pruned; it had passed"* ]]
}

@test "a failure that is known names no log that was pruned" {
    producers red='exit 3'
    run -1 "$TENURE" done
    "$TENURE" journal prune --older 0s
    run -1 "$TENURE" done
    [[ $output == *'removed; `tenure done --rerun red` makes a new one'* ]]
}

@test "no store yet is not an empty store" {
    run -0 "$TENURE" --store "sqlite:$SANDBOX/none.db" status
    [[ $output == *"there is no store at $SANDBOX/none.db yet" ]]
}

@test "verify: what is neither a file nor a commit" {
    run -2 "$TENURE" verify nofile.json
    [[ $output == *"neither a commit of this repository nor a file ($PWD/nofile.json)"* ]]
}

@test "work that does not end at once after a signal is named" {
    "$TENURE" run --subject x -- sh -c 'trap "" TERM; : >"$0"; while :; do sleep 0.1; done' "$SANDBOX/up" 2>"$SANDBOX/err" &
    wait_for 30 test -e "$SANDBOX/up"
    pid=$(the executor.pid)
    kill -TERM "$pid"
    wait_for 30 grep -q 'stopping: command was asked to end; another SIGTERM ends it at once' "$SANDBOX/err"
    kill -TERM "$pid"
    wait $! || [ $? = 143 ]
}

@test "a store that is locked: by whom, after a second, and for how long in words" {
    "$TENURE" run --subject x -- true
    hold_store
    run -125 timeout 100 "$TENURE" run --subject x -- true
    release_store
    [[ $output == *"waiting for the store: locked by "*", pid "* ]]
    [[ $output == *"locked by "*", pid "*" for "*" s"* ]]
    [[ $output != *" ms"* ]]
}

@test "verify: a new commit of the same tree is proved, and it is said why" {
    producers ok=true
    "$TENURE" done -q
    git commit -q --allow-empty -m again
    run -0 "$TENURE" verify
    [[ $output == *"HEAD $(git rev-parse HEAD | cut -c1-12) has the same tree"* ]]
}

@test "taken over while it was stopped: by whom, for how long, what to do" {
    "$TENURE" run --ttl 2s --heartbeat 500ms --subject x -- sleep 60 2>"$SANDBOX/err" &
    lost=$!
    wait_for 30 held
    handle=$(the handle)
    kill -STOP "$(the executor.pid)"
    run -0 timeout 60 "$TENURE" run --subject x --wait=50s -- true
    wait $lost || [ $? = 124 ] # it was continued, so that it could see what became of it
    cat "$SANDBOX/err"
    grep -E "$handle is lost: T-.* took command:x over: its lease had lapsed" "$SANDBOX/err"
    grep -q 'the command was ended; start it again' "$SANDBOX/err"
}
