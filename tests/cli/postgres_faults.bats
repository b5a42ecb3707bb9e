#!/usr/bin/env bats
# The shared store behind connections that break, are silent, or go through a pooler.

load helpers
load leases
load postgres

setup() {
    postgres_sandbox
    repository
}
teardown() { postgres_sandbox_end; }

# ---- D1: the lost answer ----

# broken WHERE FUNCTION: the next call of it breaks there, in a `done` that must pass all the same.
broken() {
    proxy "at $1 tenure.$2("
    "$TENURE" done --json --rerun >"$SANDBOX/done.json" 2>"$SANDBOX/done.err" || {
        echo "broken $1 $2: exit status $?: $(cat "$SANDBOX/done.json" "$SANDBOX/done.err")" >&2
        return 1
    }
    hits "$1 tenure.$2(" || {
        echo "tenure.$2 was not broken $1" >&2
        return 1
    }
    has_ended passed passed
    [ "$(events reserved)" = 1 ]
    [ "$(events bound)" = 1 ]
    [ "$(events evidence)" = 2 ]
    [ "$(events settled)" = 1 ]
    [ "$(db "SELECT count(*) FROM evidence WHERE attempt = '$(newest)'")" = 2 ]
    [ "$(db "SELECT count(*) FROM proof WHERE attempt = '$(newest)'")" = 1 ]
}
fences_rise() {
    [ "$(db "SELECT count(*) FROM (SELECT fence <= lag(fence) OVER (ORDER BY acquired_at) AS falls FROM attempt) f WHERE falls")" = 0 ]
}

@test "D1: the answer to a reserve is lost: it is asked by its own id, and there is one record with one fence" {
    producers a=true b=true
    proxy_start
    "$TENURE" run --subject first -- true
    log_statements
    for where in before after middle; do
        broken $where reserve
        # Repeated with the same id and token it is a question.
        was_executed reserve $([ $where = before ] && echo 1 || echo 2)
    done
    fences_rise
}

@test "D1: the answer to a bind is lost: it is looked for, and not sent again when it was done" {
    producers a=true b=true
    proxy_start
    "$TENURE" run --subject first -- true
    log_statements
    for where in before after middle; do
        broken $where bind
        was_executed bind 1
    done
}

@test "D1: the answer to a settlement is lost: the record is asked, and the settlement is not sent again" {
    producers a=true b=true
    proxy_start
    "$TENURE" run --subject first -- true
    log_statements
    for where in before after middle; do
        broken $where settle
        was_executed settle 1
        was_executed settle_ask 1
        "$TENURE" verify
    done
    # The question's answer is lost, too.
    proxy "at after tenure.settle("
    background run "$TENURE" done --rerun
    pid=$PID
    wait_for 20 hits "after tenure.settle("
    proxy "at middle tenure.settle_ask("
    finish run "$pid"
    finished_with 0
    [ "$(events settled)" = 1 ]
}

@test "D1: the answer to evidence is lost: it is asked for, and there once" {
    producers a=true b=true
    proxy_start
    "$TENURE" run --subject first -- true
    for where in before after middle; do
        broken $where evidence_put
    done
}

@test "D1: the answer to a renewal is lost: it proves nothing, the next one confirms, and the run passes" {
    proxy_start
    "$TENURE" run --subject first -- true
    watch_store
    for where in before after middle; do
        background run "$TENURE" run --subject s --ttl 4s --heartbeat 300ms -- sh -c "$(waits_for "$SANDBOX/go.$where")"
        pid=$PID
        wait_for 20 running
        id=$(newest)
        wait_for 20 renewed "$id" 1
        proxy "at $where tenure.renew("
        wait_for 20 hits "$where tenure.renew("
        wait_for 20 renewed "$id" $(($(renewals "$id") + 2))
        : >"$SANDBOX/go.$where"
        finish run "$pid"
        finished_with 0
        has_ended passed passed "$id"
        records_of "$id" | grep -q '"kind":"renewal-trouble"'
    done
    terminal_kept
}

# unknown WHERE: a settlement is broken there, and from then on the server is away.
unknown() {
    background run "$TENURE" done --json
    pid=$PID
    wait_for 20 work_runs a
    id=$(newest)
    wait_for 20 is_there "SELECT rev > 2 FROM attempt WHERE id = '$id'"
    proxy refuse
    proxy "at $1 tenure.settle("
    : >"$HOME/go"
    finish run "$pid"
    hits "$1 tenure.settle("
    finished_with 5
    [ "$(jq -r .exit <<<"$OUT")" = 5 ]
    [ "$(jq -r .proof <<<"$OUT")" = null ]
    proxy go
}

@test "D1: settled, and nobody can say so any more: unknown, exit 5; run again it finds its Proof" {
    producers a="$(waits_for "$HOME/go")"
    proxy_start
    unknown after
    has_ended passed passed "$id"
    run "$TENURE" done --json
    assert_exit 0
    [ "$(jq -r .attempt.id <<<"$output")" != null ]
    counts proof 1
    counts attempt 1
}

@test "D1: not settled, and nobody can say so any more: unknown, exit 5; run again it proves from the same evidence" {
    producers a="$(waits_for "$HOME/go")"
    proxy_start
    unknown before
    [ "$(field state "$id")" = running ]
    run "$TENURE" done --json
    assert_exit 0
    has_ended cancelled owner-gone "$id"
    [ "$(jq -r '.producers[0].source' <<<"$output")" = reused ]
    counts proof 1
}

# ---- D2: a pooler ----

@test "D2: twenty at once through a pooler with two connections, and a done: all of them work, and no session is changed" {
    export TENURE_STORE
    TENURE_STORE=$(url_of "$POOLER_PLACE")
    producers a="$(waits_for "$HOME/go")" b=true
    local i pids=()
    background proving "$TENURE" done
    proving=$PID
    for ((i = 0; i < 20; i++)); do
        background "run$i" "$TENURE" run --subject "s$i" --ttl 6s --heartbeat 300ms -- sh -c "$(waits_for "$HOME/go")"
        pids+=("$PID")
    done
    wait_for 60 holds 21
    wait_for 30 is_there "SELECT min(rev) > 4 FROM attempt"
    [ "$(db "SELECT count(*) <= 2 FROM pg_stat_activity WHERE datname = current_database() AND application_name <> 'psql'")" = t ]
    pooled() { sql "$TENURE_STORE" -c "$1"; }
    for ((i = 0; i < 6; i++)); do
        [ "$(pooled "SELECT count(*) FROM pg_prepared_statements")" = 0 ]
        [ "$(pooled "SELECT count(*) FROM pg_listening_channels()")" = 0 ]
        [ "$(pooled "SELECT count(*) FROM pg_settings WHERE source = 'session' AND name NOT IN ('application_name', 'client_encoding',
            'DateStyle', 'TimeZone', 'standard_conforming_strings', 'IntervalStyle', 'search_path')")" = 0 ]
        [ "$(pooled "SHOW search_path")" = '"$user", public' ]
    done
    : >"$HOME/go"
    for ((i = 0; i < 20; i++)); do
        finish "run$i" "${pids[i]}"
        finished_with 0
    done
    finish proving "$proving"
    finished_with 0
    [ "$(db "SELECT count(*) FROM attempt WHERE state = 'passed'")" = 21 ]
    run "$TENURE" done
    assert_exit 0
}
