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
        proxy "at $where $id" # a statement that comes again has a name alone
        wait_for 20 hits "$where $id"
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

# ---- D3: the silent peer ----

# unlocked: no session of the program holds a lock.
unlocked() {
    [ "$(db "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE a.datname = current_database()
        AND a.application_name = 'tenure'")" = 0 ]
}
# silent_at WORDS: what has them arrives, and from then on that connection is silent.
silent_at() {
    local before
    before=$(hit_count "silence $1")
    proxy "at silence $1"
    wait_for 30 hit_again "silence $1" "$before"
    wait_for 5 unlocked
}
hit_count() { grep -cxF "hit $1" "$SANDBOX/proxy.out" || true; }
hit_again() { [ "$(hit_count "$1")" -gt "$2" ]; }

@test "D3: silent at a renewal: the heartbeat gives up within its deadline, connects anew, and nothing is frozen" {
    proxy_start
    "$TENURE" run --subject first -- true
    watch_store
    background run "$TENURE" run --subject s --ttl 6s --heartbeat 1s -- sh -c "$(waits_for "$HOME/go")"
    pid=$PID
    wait_for 20 running
    id=$(newest)
    local i
    for i in 1 2 3; do
        wait_for 20 renewed "$id" $(($(renewals "$id") + 1))
        silent_at "$id" # a statement that comes again has a name alone
        wait_for 5 renewed "$id" $(($(renewals "$id") + 2))
    done
    # Half an answer, and then nothing on any connection, for longer than a statement may take.
    proxy "drop down"
    wait_for 5 is_there "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tenure' AND datname = current_database()"
    before=$(renewals "$id")
    wait_for 5 trouble_noted "$id" 4
    proxy go
    wait_for 5 renewed "$id" $((before + 1))
    : >"$HOME/go"
    finish run "$pid"
    finished_with 0
    has_ended passed passed "$id"
    ! records_of "$id" | grep -q '"kind":"frozen"'
    [ "$(widest_gap "$id")" -lt 5000 ]
    terminal_kept
}
trouble_noted() { [ "$(records_of "$1" | grep -c '"kind":"renewal-trouble"')" -ge "$2" ]; }

@test "D3: silent at every statement of a done: each is given up, asked again on a new connection, and the run passes" {
    producers a=true
    jq '.lease = {ttl: "60s", heartbeat: "5s"}' tenure.json >"$SANDBOX/lease" && cp "$SANDBOX/lease" tenure.json && commit_all
    proxy_start
    "$TENURE" run --subject first -- true
    local function
    proxy "at silence tenure.reserve("
    background run "$TENURE" done
    pid=$PID
    wait_for 20 hits "silence tenure.reserve("
    for function in bind evidence_put settle; do silent_at "tenure.$function("; done
    finish run "$pid"
    finished_with 0
    has_ended passed passed
    [ "$(events reserved)" = 1 ]
    [ "$(events bound)" = 1 ]
    [ "$(events evidence)" = 1 ]
    [ "$(events settled)" = 1 ]
    counts proof 1
}

@test "D3: silent in a migration: the server frees its lock within seconds, and another migrates" {
    proxy_start
    proxy "at silence CREATE SCHEMA tenure"
    background first "$TENURE" run --subject s -- true
    first=$PID
    wait_for 20 hits "silence CREATE SCHEMA tenure"
    begun=$(date +%s)
    until TENURE_STORE=$DIRECT "$TENURE" run --subject other -- true; do [ $(($(date +%s) - begun)) -lt 15 ]; done
    [ $(($(date +%s) - begun)) -lt 12 ]
    finish first "$first"
    [ "$RC" = 0 ] || [ "$RC" = 125 ]
    counts meta 3
}

# ---- D4: migrations ----

@test "D4: twenty first runs at once on an empty database: one migration, and all of them pass" {
    local i pids=()
    for ((i = 0; i < 20; i++)); do
        background "run$i" "$TENURE" run --subject "s$i" -- true
        pids+=("$PID")
    done
    for ((i = 0; i < 20; i++)); do
        finish "run$i" "${pids[i]}"
        finished_with 0
    done
    counts meta 3
    [ "$(db "SELECT count(*) FROM attempt WHERE state = 'passed'")" = 20 ]
}

# as_role NAME: the URL of the same database for that role.
as_role() { echo "${DIRECT/postgres@/$1@}"; }

@test "D4: a role that may not create, or not call: the exact GRANT is said, and it is enough" {
    local role=role_${DATABASE#test_}
    server "CREATE ROLE $role LOGIN"
    run "$TENURE" run --store "$(as_role "$role")" --subject s -- true
    assert_exit 122
    assert_says "GRANT CREATE ON DATABASE \"$DATABASE\" TO \"$role\""
    [ "$(db "SELECT to_regnamespace('tenure') IS NULL")" = t ]
    "$TENURE" store migrate --quiet
    run "$TENURE" run --store "$(as_role "$role")" --subject s -- true
    assert_exit 122
    grants=$(sed -n 's/.*let its owner run: //p' <<<"$output")
    [[ $grants == *"GRANT USAGE ON SCHEMA tenure TO \"$role\""* ]]
    db "$grants"
    run "$TENURE" run --store "$(as_role "$role")" --subject s -- true
    assert_exit 0
    [ "$(PGOPTIONS='-c search_path=tenure' sql "$(as_role "$role")" -c 'DELETE FROM tenure.attempt' 2>&1 | grep -c 'permission denied')" = 1 ]
    db "DROP OWNED BY $role"
    server "DROP ROLE $role"
}

@test "D4: a schema that is newer, or cannot be read, is refused before any write" {
    "$TENURE" run --subject s -- true
    state_of() { pg_dump --data-only --schema=tenure --dbname="$DIRECT" | sed '/^\\/d' | sha256sum; }
    local version
    for version in 99 nonsense; do
        db "UPDATE meta SET value = '$version' WHERE name = 'schema_version'"
        before=$(state_of)
        run "$TENURE" run --subject s -- touch "$SANDBOX/ran"
        if [ $version = 99 ]; then assert_exit 122; else assert_exit 125; fi
        run "$TENURE" store migrate
        [ "$status" = 2 ] || [ "$status" = 5 ]
        run "$TENURE" status
        [ "$status" = 2 ] || [ "$status" = 5 ]
        [ "$(state_of)" = "$before" ]
        [ ! -e "$SANDBOX/ran" ]
    done
}
