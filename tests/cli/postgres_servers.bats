#!/usr/bin/env bats
# Servers that stop, come back, and are replaced, in the middle of a run.

load helpers
load leases
load postgres

setup() {
    postgres_sandbox
    repository
}
teardown() { postgres_sandbox_end; }

# lease TTL HEARTBEAT: of the producers that are there.
lease() {
    jq --arg ttl "$1" --arg heartbeat "$2" '.lease = {ttl: $ttl, heartbeat: $heartbeat}' tenure.json >"$SANDBOX/lease" &&
        cp "$SANDBOX/lease" tenure.json
    commit_all
}
# away SECONDS: the server dies, and is back after that time. Waiting is the matter here.
away() {
    server_stop "$PLACE"
    sleep "$1"
    server_start "$PLACE"
}
renewed_since() { is_there "SELECT rev > $2 AND state = 'running' FROM attempt WHERE id = '$1'"; }
# The only journal that there is: the store cannot be asked for its place.
frozen() { grep -q '"kind":"frozen"' "$XDG_STATE_HOME"/tenure/journals/*/journal; }
thawed() { grep -q '"kind":"thawed"' "$XDG_STATE_HOME"/tenure/journals/*/journal; }

@test "D7: the server is restarted at once, immediately, in a done and a run: both pass" {
    server_store
    producers a="$(waits_for "$HOME/go")" b=true
    lease 6s 500ms
    background proving "$TENURE" done
    proving=$PID
    wait_for 20 work_runs a
    id=$(newest)
    background run "$TENURE" run --subject s --ttl 6s --heartbeat 500ms -- sh -c "$(waits_for "$HOME/go")"
    run=$PID
    wait_for 20 holds 2
    away 0
    rev=$(field rev "$id")
    wait_for 20 renewed_since "$id" "$rev"
    : >"$HOME/go"
    finish proving "$proving"
    finished_with 0
    finish run "$run"
    finished_with 0
    ! frozen
    [ "$(db "SELECT count(*) FROM attempt WHERE state = 'passed'")" = 2 ]
}

@test "D7: an outage shorter than the lease: the run passes, and nothing is frozen" {
    server_store
    producers a="$(waits_for "$HOME/go")" b=true
    lease 12s 500ms
    background proving "$TENURE" done
    proving=$PID
    wait_for 20 work_runs a
    id=$(newest)
    # What ends while the server is away is recorded when it is back.
    server_stop "$PLACE"
    : >"$HOME/go"
    sleep 6.5
    server_start "$PLACE"
    finish proving "$proving"
    finished_with 0
    has_ended passed passed "$id"
    ! frozen
    [ "$(events evidence "$id")" = 2 ]
}

@test "D7: an outage longer than the lease: frozen in time, thawed, and the run passes" {
    server_store
    producers a="echo >'$SANDBOX/begun'; $(waits_for "$HOME/go")" b=true
    lease 4s 500ms
    background proving "$TENURE" done
    proving=$PID
    wait_for 20 work_runs a
    id=$(newest)
    server_stop "$PLACE"
    wait_for 10 frozen
    sleep 3
    server_start "$PLACE"
    wait_for 20 thawed
    : >"$HOME/go"
    finish proving "$proving"
    finished_with 0
    has_ended passed passed "$id"
    # Before it could be taken over.
    [ "$(records_of "$id" | jq -rs 'map(select(.kind == "frozen")) | length')" = 1 ]
}

@test "D7: the work ends in an outage longer than the lease: its evidence waits for the server, and the run passes" {
    server_store
    producers a="$(waits_for "$HOME/go")" b=true
    lease 4s 500ms
    background proving "$TENURE" done
    proving=$PID
    wait_for 20 work_runs a
    id=$(newest)
    server_stop "$PLACE"
    : >"$HOME/go"
    sleep 7
    server_start "$PLACE"
    finish proving "$proving"
    finished_with 0
    has_ended passed passed "$id"
}

@test "D7: 45 seconds away with the usual lease of a minute: passes" {
    [ "$ROUNDS" -gt 1 ] || skip "45 s long: TENURE_TEST_ROUNDS above 1"
    server_store
    producers a="$(waits_for "$HOME/go")" b=true
    lease 60s 20s
    background proving "$TENURE" done
    proving=$PID
    wait_for 20 work_runs a
    id=$(newest)
    away 45
    : >"$HOME/go"
    finish proving "$proving"
    finished_with 0
    has_ended passed passed "$id"
    ! frozen
}

# The wait is cancelled at its deadline, and the server then says that all went well.
@test "a commit that no synchronous standby has is not taken for one: nothing is started" {
    server_store
    "$TENURE" run --subject first -- true
    sql "$DIRECT" -c "ALTER SYSTEM SET synchronous_standby_names = 'nobody'"
    sql "$DIRECT" -c "SELECT pg_reload_conf()" >/dev/null
    run "$TENURE" run --subject s -- touch "$HOME/ran"
    [ "$status" = 125 ]
    [[ $output == *"it is not known whether the last write was committed"* ]]
    [ ! -e "$HOME/ran" ]
}

@test "a synchronous standby is promoted in the middle: the run passes, its token holds, fences go on rising" {
    server_store
    primary=$PLACE
    sql "$DIRECT" -c "ALTER SYSTEM SET synchronous_standby_names = '*'"
    server_new
    standby=$PLACE
    rm -rf "$standby/data"
    as_server "$standby" "$POSTGRES_BIN/pg_basebackup" --pgdata="$standby/data" --write-recovery-conf --no-sync \
        --dbname="$(url_of "$primary" postgres)" --checkpoint=fast >"$SANDBOX/basebackup.out" 2>&1
    as_server "$standby" sed -i '/synchronous_standby_names/d' data/postgresql.auto.conf
    as_server "$standby" tee -a data/postgresql.conf >/dev/null <<<"unix_socket_directories = '$standby'"
    server_start "$standby"
    sql "$DIRECT" -c "SELECT pg_reload_conf()" >/dev/null
    in_step() { [ "$(sql "$DIRECT" -c "SELECT sync_state FROM pg_stat_replication")" = sync ]; }
    wait_for 20 in_step
    export TENURE_STORE="postgresql://postgres@/$DATABASE?host=$standby,$primary&port=5432"
    "$TENURE" run --subject first -- true

    producers a="$(waits_for "$HOME/go")" b=true
    lease 12s 500ms
    background proving "$TENURE" done
    proving=$PID
    wait_for 20 work_runs a
    id=$(newest)
    fence=$(field fence)
    server_stop "$primary"
    DIRECT=$(url_of "$standby")
    sql "$DIRECT" -c "SELECT pg_promote()" >/dev/null
    rev=$(field rev "$id")
    wait_for 20 renewed_since "$id" "$rev"
    : >"$HOME/go"
    finish proving "$proving"
    finished_with 0
    has_ended passed passed "$id"
    "$TENURE" run --subject after -- true
    [ "$(field fence)" -gt "$fence" ]
    # On the new timeline they begin above the clock, whatever the old one still handed out.
    [ "$(field fence)" -gt "$(db "SELECT floor(extract(epoch FROM now() - interval '1 hour') * 1000000)::bigint")" ]
    [ "$(db "SELECT count(*) FROM attempt")" = 3 ]
}
