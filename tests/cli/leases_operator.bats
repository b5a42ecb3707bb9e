#!/usr/bin/env bats
# Durations as they are typed, and what a person at the terminal sees and does.

bats_require_minimum_version 1.5.0
load helpers
load leases

setup() { sandbox; }
teardown() { sandbox_end; }

# refused CODE: exit status, and one sentence with the remedy; nothing was made.
refused() {
    assert_exit "$1"
    [ "$(grep -c . <<<"$output")" -le 2 ] # a sentence and its remedy
    [ ! -e "$STORE" ]
    [ -z "$(ls "$XDG_STATE_HOME/tenure/journals" 2>/dev/null)" ]
}

@test "L4: odd durations of an option are refused in one sentence that shows the accepted form" {
    local value
    for value in 0 -1 0.4 60x 99999999999 '' 1h30m 90 0s 1s -5s 99999999999s 99999999999999999999h 1e3s ' 5s' '5s ' 5S 2h NaN; do
        run "$TENURE" run --subject s "--ttl=$value" -- touch "$SANDBOX/ran"
        refused 122
        assert_says --ttl 2s
        [[ $output == *1h* ]]
    done
    for value in 0 -1 '' 0s 21s 90 1h30m; do
        run "$TENURE" run --subject s --ttl 60s "--heartbeat=$value" -- touch "$SANDBOX/ran"
        refused 122
        assert_says heartbeat
    done
    run "$TENURE" run --subject s --ttl 3s --heartbeat 1001ms -- touch "$SANDBOX/ran"
    refused 122
    assert_says third
    [ ! -e "$SANDBOX/ran" ]
    for value in -1 x 90 '' 1h30m 99999999999d; do
        run "$TENURE" run --subject s "--wait=$value" -- touch "$SANDBOX/ran"
        refused 122
        assert_says --wait
    done
}

@test "L4: odd durations of tenure.json are refused with their place" {
    repository
    local value
    for value in '"0"' '"-1"' '"0.4"' '"60x"' '"99999999999"' '""' '"1h30m"' '"90"' 90 null '"1s"' '"2h"' -1 1e9; do
        echo "{\"lease\": {\"ttl\": $value}, \"producers\": {\"a\": {\"run\": \"touch ran\"}}}" >tenure.json
        commit_all
        run "$TENURE" done
        assert_exit 2
        assert_says tenure.json:1: ttl
        [ ! -e "$STORE" ]
    done
    echo '{"lease": {"ttl": "3s", "heartbeat": "2s"}, "producers": {"a": {"run": "touch ran"}}}' >tenure.json
    commit_all
    run "$TENURE" done
    assert_exit 2
    assert_says tenure.json heartbeat
    [ ! -e "$STORE" ]
    [ ! -e ran ]
}

@test "L4: no column of a lease can hold a null or a never" {
    repository
    producers a=true
    run "$TENURE" done
    assert_exit 0
    run "$TENURE" run --subject s --ttl 1h -- true
    assert_exit 0
    [ "$(db "SELECT count(*) FROM attempt WHERE ttl_ms IS NULL OR acquired_at IS NULL OR renewed_at IS NULL OR expires_at IS NULL
        OR epoch IS NULL OR typeof(ttl_ms) <> 'integer' OR typeof(expires_at) <> 'integer' OR ttl_ms NOT BETWEEN 2000 AND 3600000
        OR expires_at <> renewed_at + ttl_ms")" = 0 ]
}

@test "L10: status shows who, since when, the last renewal and when it lapses, also after a kill" {
    repository
    producers slow='sleep 600'
    background run "$TENURE" done
    pid=$PID
    wait_for 30 work_runs slow
    id=$(newest)
    kill -KILL "$pid"
    wait_for 10 ended "$pid"
    run "$TENURE" status
    assert_exit 0
    assert_says "$(handle_of)" "$(uname -n)" "pid $pid" "$(id -un)" "tenure cancel $(handle_of)"
    run "$TENURE" status --json
    assert_exit 0
    jq -e --arg boot "$(tr -d - </proc/sys/kernel/random/boot_id)" --argjson pid "$pid" --arg id "$id" \
        --argjson start "$(field start_ticks)" --arg host "$(uname -n)" '.attempts | length == 1 and (.[0] |
            .id == $id and .executor.host == $host and .executor.boot_id == $boot and .executor.pid == $pid
            and .executor.start_ticks == $start and .owner == "gone" and (.since | length > 0)
            and (.renewed_at | length > 0) and (.lapses_at | length > 0))' <<<"$output"
}

@test "L10: cancel says whom it waits for, when the answer does not come at once" {
    background run "$TENURE" run --subject s --ttl 60s -- sleep 600
    pid=$PID
    wait_for 30 running
    id=$(newest)
    stop_process "$pid"
    background cancel "$TENURE" cancel --json "$id"
    cancel=$PID
    wait_for 5 grep -q "waiting for $(handle_of "$id") of .*pid $pid.*asked to stop: until 20.*tenure attach $(handle_of "$id")" "$SANDBOX/cancel.err"
    kill -CONT "$pid"
    finish cancel "$cancel"
    finished_with 0
    [ "$(jq -r .cancel <<<"$OUT")" = asked ]
    [ "$(wc -l <<<"$ERR")" = 1 ]
    finish run "$pid"
    finished_with 124
}

@test "L10: cancel stops a living attempt, retires a dead one, and names near handles of a wrong one" {
    repository
    producers slow='sleep 600'
    background run "$TENURE" done
    pid=$PID
    wait_for 30 work_runs slow
    live=$(newest)
    run timeout 30 "$TENURE" cancel "$(handle_of "$live")"
    assert_exit 0
    finish run "$pid"
    finished_with 4
    has_ended cancelled cancel-requested "$live"
    none_marked
    # A second time there is nothing to stop.
    run "$TENURE" cancel "$live"
    assert_exit 0
    assert_says 'had ended before'

    background run "$TENURE" done
    pid=$PID
    wait_for 30 work_runs slow
    dead=$(newest)
    kill -KILL "$pid"
    wait_for 10 ended "$pid"
    handle=$(handle_of "$dead")
    # One symbol mistyped: the check symbol tells, and the near one is named.
    wrong=${handle%?}$([ "${handle: -1}" = 0 ] && echo 1 || echo 0)
    run "$TENURE" cancel "$wrong"
    [ "$status" -ne 0 ]
    assert_says "$handle"
    [ "$(field state "$dead")" = running ]
    # Case and dashes do not matter.
    run timeout 30 "$TENURE" cancel "$(tr -d - <<<"${handle,,}")"
    assert_exit 0
    has_ended cancelled owner-gone "$dead"
    run "$TENURE" cancel
    assert_exit 2
}

@test "L10: Ctrl-C ends a wait within a second, with 130 and nothing left behind" {
    repository
    producers slow="$(waits_for "$HOME/go")"
    background run "$TENURE" done
    run_pid=$PID
    wait_for 30 work_runs slow
    before=$(ls "$XDG_STATE_HOME/tenure/journals")
    background waiter "$TENURE" done --wait
    pid=$PID
    wait_for 30 waits waiter
    local began
    began=$(date +%s%3N)
    kill -INT "$pid"
    finish waiter "$pid"
    finished_with 130
    [ $(($(date +%s%3N) - began)) -lt 1000 ]
    [ "$(ls "$XDG_STATE_HOME/tenure/journals")" = "$before" ]
    [ "$(db "SELECT count(*) FROM attempt")" = 1 ]
    : >"$HOME/go"
    finish run "$run_pid"
    finished_with 0
}
waits() { grep -q 'waiting' "$SANDBOX/$1.out" "$SANDBOX/$1.err"; }

@test "held: one cause, with the command that reconnects, for people and for programs" {
    repository
    producers slow="$(waits_for "$HOME/go")"
    background run "$TENURE" done
    pid=$PID
    wait_for 30 work_runs slow
    run "$TENURE" done
    assert_exit 3
    assert_says "$(handle_of)" "pid $pid" "$(uname -n)" "tenure attach $(handle_of)"
    run --separate-stderr "$TENURE" done --json
    assert_exit 3
    jq -e --arg id "$(newest)" --arg h "$(handle_of)" --argjson pid "$pid" '.exit == 3 and (.pending | .attempt == $id and
        .handle == $h and .reconnect == "tenure attach " + $h and .executor.pid == $pid and (.executor.started_at | length > 0)
        and (.renewed_at | length > 0) and (.lapses_at | length > 0) and (.cause | length > 0))' <<<"$output"
    run "$TENURE" done --wait=100ms
    assert_exit 3
    : >"$HOME/go"
    finish run "$pid"
    finished_with 0
}

@test "L10: attach ends where nothing proves the owner's fate and its lease has run out" {
    # A journal of an earlier boot in a container proves nothing.
    TENURE_TEST_BOOT_ID=11111111111111111111111111111111 background owner "$TENURE" run --subject a -- sleep 60
    wait_for 10 holds
    kill -KILL "$PID"
    handle=$(db "SELECT journal_handle FROM attempt")
    run timeout 20 "$TENURE" attach "$handle"
    assert_exit 4
    assert_says "$handle has lapsed"
}
