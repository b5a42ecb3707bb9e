#!/usr/bin/env bats
# What only the whole program shows: work does not outlive the attempt that it belongs to.

load ../cli/helpers

setup() {
    sandbox
    repository
}
teardown() { sandbox_end; }

work_lives() { [ -n "$(marked_processes)" ]; }

@test "leftovers: the work of a dead owner has ended before the next one's begins" {
    # shellcheck disable=SC2016
    producers check='if [ -e "$HOME/slow" ]; then sleep 60; fi
        for place in /proc/[0-9]*/environ; do
            tr "\0" "\n" <$place | grep -qx "TENURE_ATTEMPT=$(cat "$HOME/dead" 2>/dev/null || echo none)" && exit 1
        done 2>/dev/null
        true'
    : >"$HOME/slow"
    background dead "$TENURE" done
    wait_for 10 work_lives
    db "SELECT id FROM attempt" >"$HOME/dead"
    kill -KILL "$PID"
    wait_for 5 ended "$PID"
    rm "$HOME/slow"

    run timeout 30 "$TENURE" done
    assert_exit 0
    none_marked
    [ "$(db "SELECT count(*) FROM leftover")" = 0 ]
}

@test "work-dead: nothing is settled while work lives" {
    # shellcheck disable=SC2016
    producers mover='until [ -e "$HOME/sleeps" ]; do sleep 0.02; done; echo moved >>hello.txt' \
        sleeper=': >"$HOME/sleeps"; exec sleep 60'
    run timeout 30 "$TENURE" done --jobs 2
    assert_exit 6
    [ "$(db "SELECT state FROM attempt")" = failed ]
    none_marked
}
