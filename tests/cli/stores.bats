#!/usr/bin/env bats
# The embedded store when others lock it, when its file system is full, and when it may not be written.

load helpers
load leases

setup() {
    sandbox
    repository
}
teardown() { sandbox_end; }

# hold_reading: another program reads, and so lets nobody commit, until release_store.
hold_reading() {
    mkfifo "$SANDBOX/holder.in"
    sqlite3 "$STORE" <"$SANDBOX/holder.in" >"$SANDBOX/holder.out" 2>&1 3>&- 4>&- &
    HOLDER=$!
    STARTED+=("$HOLDER")
    exec 8>"$SANDBOX/holder.in"
    printf '.timeout 5000\nBEGIN;\nSELECT count(*) FROM attempt;\n' >&8
    wait_for 10 test -s "$SANDBOX/holder.out"
}
troubled() { [ "$(grep -l '"kind":"renewal-trouble"' "$XDG_STATE_HOME"/tenure/journals/*/journal 2>/dev/null | wc -l)" = "$1" ]; }

@test "D5: thirty at one embedded store: every heartbeat gets through" {
    "$TENURE" run --subject first -- true
    watch_store
    local i pids=()
    for ((i = 0; i < 30; i++)); do
        background "run$i" "$TENURE" run --subject "s$i" --ttl 3s --heartbeat 1s -- sh -c "$(waits_for "$SANDBOX/go")"
        pids+=("$PID")
    done
    wait_for 60 holds 30
    wait_for 60 is_there "SELECT count(*) >= 120 FROM seen WHERE what = 'renewal'"
    : >"$SANDBOX/go"
    for ((i = 0; i < 30; i++)); do
        finish "run$i" "${pids[i]}"
        finished_with 0
    done
    [ "$(db "SELECT count(*) FROM attempt WHERE state = 'passed'")" = 31 ]
    terminal_kept
}

@test "D5: a foreign lock shorter than the lease: said in time, and the runs pass" {
    "$TENURE" run --subject first -- true
    local i pids=() lock
    for ((i = 0; i < 5; i++)); do
        background "run$i" "$TENURE" run --subject "s$i" --ttl 60s --heartbeat 300ms -- sh -c "$(waits_for "$SANDBOX/go")"
        pids+=("$PID")
    done
    wait_for 30 holds 5
    for lock in hold_store hold_reading; do
        $lock
        # A start that cannot succeed for now waits for the lock, and gets it.
        background "late-$lock" "$TENURE" run --subject "late-$lock" -- true
        late=$PID
        wait_for 20 troubled 5
        [ "$(ls "$SANDBOX"/run*.out | wc -l)" = 5 ]
        release_store
        finish "late-$lock" "$late"
        finished_with 0
    done
    grep -h '"kind":"renewal-trouble"' "$XDG_STATE_HOME"/tenure/journals/*/journal | grep -q 'busy'
    : >"$SANDBOX/go"
    for ((i = 0; i < 5; i++)); do
        finish "run$i" "${pids[i]}"
        finished_with 0
    done
}

@test "D5: a foreign lock longer than the lease: the work is frozen, then ended, and it is said why; starts give up" {
    "$TENURE" run --subject first -- true
    background run "$TENURE" run --subject s --ttl 2s --heartbeat 500ms -- sh -c \
        "while :; do echo x >>'$SANDBOX/beats'; sleep 0.05; done"
    pid=$PID
    wait_for 30 test -s "$SANDBOX/beats"
    id=$(newest)
    hold_store
    background late "$TENURE" run --subject late -- touch "$SANDBOX/late-ran"
    late=$PID
    finish run "$pid" 40
    echo "$RC $ERR"
    [ "$RC" = 124 ] || [ "$RC" = 125 ]
    [[ $ERR == *lock* ]]
    none_marked
    finish late "$late" 40
    finished_with 125
    [[ $ERR == *lock* ]]
    [ ! -e "$SANDBOX/late-ran" ]
    release_store
    # What could not be written then is put right by the next one.
    run timeout 30 "$TENURE" run --subject s -- true
    assert_exit 0
    [ "$(field state "$id")" = cancelled ]
    [ "$(unfinished)" = 0 ]
}

@test "D6: a full file system, at whichever phase: a clear refusal, no Proof, and the next run works" {
    unshare -rUm true 2>/dev/null || skip "no user and mount namespaces here"
    producers build='echo built' test='echo tested'
    export SANDBOX STORE REPO
    cat >"$SANDBOX/full.sh" <<'END'
        source "$1/helpers.bash"
        source "$1/leases.bash"
        STARTED=()
        passed=0 refused=0
        for size in 64 $(seq 4 $((ROUNDS > 1 ? 4 : 20)) 340); do
            mount -t tmpfs -o size=${size}k none "$XDG_STATE_HOME" || exit 90
            "$TENURE" done --json >"$SANDBOX/full.json" 2>"$SANDBOX/full.err"
            rc=$?
            proofs=$( [ -s "$STORE" ] && db "SELECT count(*) FROM proof" 2>/dev/null || echo 0)
            case $rc in
            0) passed=$((passed + 1)) && [ "$proofs" = 1 ] || { echo "$size: passed without its Proof"; exit 91; } ;;
            1 | 2 | 4 | 5)
                refused=$((refused + 1))
                [ "$proofs" = 0 ] && [ "$(jq -r '.proof' "$SANDBOX/full.json")" = null ] || { echo "$size: $rc with a Proof"; exit 92; }
                grep -qiE 'full|space|kept' "$SANDBOX/full.json" || { echo "$size: $rc:"; cat "$SANDBOX/full.json"; exit 93; }
                ;;
            *) echo "$size: exit status $rc"; cat "$SANDBOX/full.json" "$SANDBOX/full.err"; exit 94 ;;
            esac
            "$TENURE" status >"$SANDBOX/full.status" 2>&1 || { echo "$size: status:"; cat "$SANDBOX/full.status"; exit 95; }
            mount --options-mode ignore -o remount,size=8m none "$XDG_STATE_HOME"
            timeout 60 "$TENURE" done >"$SANDBOX/full.next" 2>&1 || { echo "$size, $rc: then:"; cat "$SANDBOX/full.next"; exit 96; }
            [ "$(db "SELECT count(*) FROM attempt WHERE state IN ('planning', 'running')")" = 0 ] || exit 97
            umount "$XDG_STATE_HOME"
        done
        echo "$passed passed, $refused refused"
        [ $passed -gt 3 ] && [ $refused -gt 5 ]
END
    run unshare -rUm bash "$SANDBOX/full.sh" "$BATS_TEST_DIRNAME"
    echo "$output"
    assert_exit 0
}

@test "D6: full when the command has ended: it is said at once what is waited for, and in the end what was in the way" {
    unshare -rUm true 2>/dev/null || skip "no user and mount namespaces here"
    run timeout 60 unshare -rUm bash -c 'mount -t tmpfs -o size=2m none "$XDG_STATE_HOME" &&
        "$TENURE" run --subject s --ttl 8s -- sh -c "cat /dev/zero >\"$XDG_STATE_HOME/fill\" 2>/dev/null; echo over"'
    echo "$output"
    assert_exit 125
    [ "$(sed -n '/^over$/,$p' <<<"$output" | grep -c 'cannot be recorded yet, tried again until 20.*full')" = 1 ]
    [[ $(sed -n '/tried again until/,$p' <<<"$output" | tail -n +2) == *full* ]]
}

# Root's own right to write everywhere is laid down.
without_rights() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --inh-caps=-dac_override,-dac_read_search,-fowner --bounding-set=-dac_override,-dac_read_search,-fowner "$@"
    else
        "$@"
    fi
}

@test "D6: a state directory or a store that may not be written: a clear refusal, and status reads what it can" {
    producers build=true
    # Nothing there yet, and nothing can be made.
    chmod 0555 "$XDG_STATE_HOME"
    run without_rights "$TENURE" done
    [ "$status" = 5 ] || [ "$status" = 2 ]
    assert_says "$XDG_STATE_HOME"
    run without_rights "$TENURE" status
    assert_exit 0
    chmod 0755 "$XDG_STATE_HOME"

    "$TENURE" run --subject s --ttl 60s -- true
    TENURE_FAILPOINT=supervisor-job-started:kill "$TENURE" run --subject left -- sleep 600 || [ $? = 137 ]
    id=$(newest)
    for place in "$STORE:0444" "$XDG_STATE_HOME/tenure:0555" "$XDG_STATE_HOME/tenure/journals:0555"; do
        before=$(fingerprint)
        mode=$(stat -c %a "${place%:*}")
        chmod "${place#*:}" "${place%:*}"
        run without_rights timeout 30 "$TENURE" done
        echo "$place: $status: $output"
        [ "$status" = 5 ] || [ "$status" = 2 ]
        assert_says "${place%:*}"
        run without_rights "$TENURE" status --all
        assert_exit 0
        assert_says "$(handle_of "$id")"
        chmod "$mode" "${place%:*}"
        [ "$(db "SELECT count(*) FROM proof")" = 0 ]
        [ "$(fingerprint)" = "$before" ]
    done
    run timeout 30 "$TENURE" done
    assert_exit 0
}
