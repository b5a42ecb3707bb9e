#!/usr/bin/env bats
# Stopping the runner: signals to the supervisor alone, the first and the second, the death that cannot be caught.

load helpers
load leases
load supervision

setup() {
    sandbox
    repository
}
teardown() { sandbox_end; }

# Producers that take two seconds to obey, and have a child of their own.
eight() {
    local i words=()
    for i in 1 2 3 4 5 6 7 8; do
        words+=("p$i=trap 'sleep 2; exit 0' TERM; sleep 600 & echo \$\$ \$! >\"\$HOME/pids.$i\"; wait")
    done
    producers "${words[@]}"
}
all_up() { [ "$(cat "$HOME"/pids.? 2>/dev/null | wc -l)" = 8 ]; }
begin_eight() {
    rm -f "$HOME"/pids.?
    background run "$TENURE" done --jobs 8
    wait_for 60 all_up
}
all_gone() {
    # shellcheck disable=SC2046
    gone $(cat "$HOME"/pids.?)
}

@test "S2: TERM, INT, HUP, QUIT to the supervisor alone: eight producers gone, cancelled, exit 128+n" {
    local signal number
    eight
    for signal in TERM INT HUP QUIT; do
        number=$(kill -l $signal)
        begin_eight
        kill -"$signal" "$PID"
        finish run "$PID" 120
        finished_with $((128 + number))
        all_gone
        none_marked
        has_ended cancelled signal
        [ "$(records_of | jq -s '[.[] | select(.kind == "finished" and .verdict == "stopped")] | length')" = 8 ]
        [ "$(db "SELECT count(*) FROM proof")" = 0 ]
        [[ $OUT == *"cancelled by signal $number"* ]]
    done
    # What was interrupted is not reused.
    [ "$("$TENURE" done --dry-run --json | jq '[.plan[] | select(.source == "ran")] | length')" = 8 ]
}

@test "S2: SIGKILL: the next run finds what is left, and ends it before it starts anything" {
    eight
    begin_eight
    old=$(newest)
    kill -KILL "$PID"
    wait_for 60 ended "$PID"
    mapfile -t left < <(cat "$HOME"/pids.? | tr ' ' '\n')
    mkdir "$HOME/old" && mv "$HOME"/pids.? "$HOME/old/"
    background run "$TENURE" done --jobs 8
    wait_for 60 all_up
    gone "${left[@]}"
    [ "$(field "state || ' ' || reason_code" "$old")" = "cancelled owner-gone" ]
    grep -q "attempt $(field journal_handle "$old") left work behind: ended pid" "$SANDBOX/run.out"
    # They were gone before the first of ours was started.
    records_of | jq -es 'map(.kind) | index("note") < index("started")' >/dev/null
    kill -TERM "$PID"
    finish run "$PID" 120
    finished_with 143
    none_marked
}

# The first signal has reached the work, and the next is not the same wish passed on twice.
obeyed() { [ -e "$HOME/term" ] && [ $(($(date +%s%3N) - $(date -r "$HOME/term" +%s%3N))) -gt 200 ]; }

@test "a second signal kills at once, and the end is recorded all the same" {
    producers deaf='trap ": >\"\$HOME/term\"" TERM; echo $$ >"$HOME/pid"; while :; do sleep 600; done'
    # At once is sooner than after the grace; a busy machine may have it a few times.
    for ((try = 1; try <= 5; try++)); do
        rm -f "$HOME/pid" "$HOME/term"
        background run "$TENURE" done
        wait_for 60 test -s "$HOME/pid"
        kill -INT "$PID"
        wait_for 60 obeyed
        kill -INT "$PID"
        finish run "$PID" 120
        took=$(($(date +%s%3N) - $(date -r "$HOME/term" +%s%3N)))
        finished_with 130
        gone "$(<"$HOME/pid")"
        has_ended cancelled signal
        verdict_is deaf stopped
        [ "$(finished deaf | jq .signal)" = 9 ]
        none_marked
        [ $took -ge 4500 ] || return 0
    done
    echo "the second signal took $took ms" >&2
    return 1
}

@test "one signal alone: TERM, five seconds later KILL, for who does not obey" {
    producers deaf='trap "" TERM; echo $$ >"$HOME/pid"; sleep 600; sleep 600; sleep 600'
    background run "$TENURE" done
    wait_for 60 test -s "$HOME/pid"
    began=$(date +%s%3N)
    kill -TERM "$PID"
    finish run "$PID" 120
    finished_with 143
    [ $(($(date +%s%3N) - began)) -ge 4900 ]
    gone "$(<"$HOME/pid")"
    verdict_is deaf stopped
    has_ended cancelled signal
}

@test "a command that is stopped: its own end counts for nothing, the signal does" {
    background run "$TENURE" run --subject s -- sh -c 'trap "exit 0" TERM; : >"$HOME/up"; sleep 600 & wait'
    wait_for 60 test -e "$HOME/up"
    kill -HUP "$PID"
    finish run "$PID" 120
    finished_with 129
    has_ended cancelled signal
    none_marked
}

@test "a signal while another attempt is waited for: nothing was held, nothing stays" {
    background holder "$TENURE" run --subject s -- sleep 600
    holder=$PID
    wait_for 60 running
    background run "$TENURE" run --subject s --wait -- sh -c ': >"$HOME/ran"'
    wait_for 60 grep -q 'waiting for' "$SANDBOX/run.err"
    kill -INT "$PID"
    finish run "$PID" 120
    finished_with 130
    [ ! -e "$HOME/ran" ]
    [ "$(db "SELECT count(*) FROM attempt")" = 1 ]
    kill -TERM "$holder"
    finish holder "$holder" 120
    finished_with 143
}
