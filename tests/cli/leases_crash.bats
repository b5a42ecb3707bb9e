#!/usr/bin/env bats
# Owners that died, what they left behind, and who cleans up.

load helpers
load leases

setup() {
    sandbox
    repository
}
teardown() { sandbox_end; }

now_ms() { date +%s%3N; }
crash() { kill -KILL "$1" && wait_for 10 ended "$1"; }

@test "the supervisor is killed: the next done begins within a second, and what was left is ended first" {
    # shellcheck disable=SC2016
    producers check='if [ -e "$HOME/slow" ]; then echo $$ >"$HOME/pid"; exec sleep 600; fi
        ! grep -qs "^State:.[^ZX]" /proc/$(cat "$HOME/pid")/status && : >"$HOME/clean"'
    : >"$HOME/slow"
    background dead "$TENURE" done
    wait_for 30 work_runs check
    wait_for 10 test -s "$HOME/pid"
    dead=$(newest)
    rm "$HOME/slow"
    crash "$PID"
    [ -e "/proc/$(<"$HOME/pid")" ]
    local begun
    begun=$(now_ms)
    run timeout 30 "$TENURE" done
    assert_exit 0
    [ -e "$HOME/clean" ]
    has_ended cancelled owner-gone "$dead"
    [ "$(field reason_by "$dead")" = "$(newest)" ]
    [ $(($(field acquired_wall_ms) - begun)) -lt 1000 ]
    [ "$(field fence)" -gt "$(field fence "$dead")" ]
    [ "$(db "SELECT count(*) FROM leftover")" = 0 ]
    none_marked
}

@test "L9: a child in a session of its own keeps no lock and does not outlive its attempt" {
    # shellcheck disable=SC2016
    producers check='setsid sleep 600 >/dev/null 2>&1 &
        if [ -e "$HOME/slow" ]; then : >"$HOME/begun"; exec sleep 600; fi
        ls /proc/self/fd >"$HOME/descriptors"'
    : >"$HOME/slow"
    background dead "$TENURE" done
    wait_for 30 test -e "$HOME/begun"
    wait_for 10 sleeps 2
    dead=$(newest)
    rm "$HOME/slow"
    crash "$PID"
    local begun
    begun=$(now_ms)
    run timeout 30 "$TENURE" done
    assert_exit 0
    [ $(($(field acquired_wall_ms) - begun)) -lt 1000 ]
    has_ended cancelled owner-gone "$dead"
    # 0, 1, 2, and the one by which ls reads the directory.
    [ "$(tr '\n' ' ' <"$HOME/descriptors")" = "0 1 2 3 " ]
    none_marked
}
sleeps() { [ "$(marked_processes | while read -r pid; do cat "/proc/$pid/comm"; done 2>/dev/null | grep -c '^sleep$')" = "$1" ]; }

@test "L13: a nine-hour claim of the first version: readable, worth its ttl, and then replaced" {
    producers quick=true
    run timeout 30 "$TENURE" done
    assert_exit 0
    subject=$(db "SELECT value FROM json_each(json_array(substr((SELECT subjects FROM attempt), instr((SELECT subjects FROM attempt), 'checkout:'))))")
    # No ttl and no renewal in it: worth 60 s; it was made 57 s ago.
    db "INSERT INTO attempt (fence, id, token_digest, kind, state, repository, subjects, host, user, pid, acquired_at, expires_at, rev, record_version)
            SELECT fence + 1, '01890000-0000-7000-8000-000000000001', randomblob(32), 'done', 'running', 'test/repository', '$subject',
                'elsewhere.example', 'somebody', 4711, strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-57 seconds'),
                strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '+9 hours'), 1, 1 FROM attempt;
        UPDATE fence SET last = last + 1;
        INSERT INTO subject VALUES ('$subject', '01890000-0000-7000-8000-000000000001');"
    run "$TENURE" status --json
    assert_exit 0
    [ "$(jq '.attempts | length' <<<"$output")" = 1 ]
    [ "$(jq -r '.attempts[0].executor.host' <<<"$output")" = elsewhere.example ]
    jq -e '.attempts[0] | .owner == "unknown" and (.lapsed | not) and .lapses_in_ms > 0 and .lapses_in_ms <= 3000' <<<"$output" ||
        jq -e '.attempts[0] | .lapsed' <<<"$output" # a machine that took three seconds
    run "$TENURE" status
    assert_exit 0
    assert_says elsewhere.example somebody
    run timeout 30 "$TENURE" done --rerun --wait=20s
    assert_exit 0
    has_ended cancelled lapsed 01890000-0000-7000-8000-000000000001
    [ "$(field record_version 01890000-0000-7000-8000-000000000001)" = 1 ]
}

@test "L14: a copied state directory: its owner is not taken for dead" {
    producers slow="$(waits_for "$HOME/go")"
    background run "$TENURE" done
    pid=$PID
    wait_for 30 work_runs slow
    original=$XDG_STATE_HOME
    cp -a "$XDG_STATE_HOME" "$SANDBOX/copy"
    # The copy alone, and the copy in the place of the original.
    export XDG_STATE_HOME=$SANDBOX/copy
    sqlite3 "$SANDBOX/copy/tenure/tenure.db" "UPDATE attempt SET journal_path = replace(journal_path, '$original', '$SANDBOX/copy')"
    run "$TENURE" status --json
    assert_exit 0
    echo "$output"
    [ "$(jq -r '.attempts[0].owner' <<<"$output")" = unknown ]
    run "$TENURE" done
    assert_exit 3
    assert_says unknown
    export XDG_STATE_HOME=$original
    # Moved away and restored from the copy while it runs: another inode, and the lock is on the old one.
    mv "$original" "$SANDBOX/moved"
    cp -a "$SANDBOX/moved" "$original"
    run "$TENURE" status --json
    assert_exit 0
    [ "$(jq -r '.attempts[0].owner' <<<"$output")" = unknown ]
    [ "$(db "SELECT state FROM attempt")" = running ]
    rm -rf "$original"
    mv "$SANDBOX/moved" "$original"
    run "$TENURE" status --json
    [ "$(jq -r '.attempts[0].owner' <<<"$output")" = running ]
    : >"$HOME/go"
    finish run "$pid"
    finished_with 0
}

@test "L16: one attempt that blocks twenty producers is one pending cause" {
    local i words=()
    for i in $(seq 20); do words+=("p$i=$(waits_for "$HOME/go")"); done
    producers "${words[@]}"
    background run "$TENURE" done
    pid=$PID
    wait_for 30 work_runs
    run "$TENURE" done
    assert_exit 3
    [ "$(grep -c 'held by' <<<"$output")" = 1 ]
    [ "$(grep -c "tenure attach $(handle_of)" <<<"$output")" = 1 ]
    run "$TENURE" done --json
    assert_exit 3
    [ "$(jq -r '.pending | type' <<<"$output")" = object ]
    [ "$(jq -r '.pending.handle' <<<"$output")" = "$(handle_of)" ]
    [ "$(jq -r '.pending.attempt' <<<"$output")" = "$(newest)" ]
    [ "$(db "SELECT count(*) FROM attempt")" = 1 ]
    : >"$HOME/go"
    finish run "$pid"
    finished_with 0
}

# A dead one that left work: X's supervisor is killed, its producer lives.
leave_work() {
    background x "$TENURE" run --subject s --ttl 2s -- sh -c "echo \$\$ >'$SANDBOX/x-pid'; exec sleep 600"
    local pid=$PID
    wait_for 30 test -s "$SANDBOX/x-pid"
    X=$(newest)
    crash "$pid"
    x_lives
}
# What was killed may be a zombie for a while, until its new parent has looked.
no_work_of_x() { echo "! grep -qs '^State:.[^ZX]' /proc/$(<"$SANDBOX/x-pid")/status"; }
x_lives() { grep -qs '^State:.[^ZX]' "/proc/$(<"$SANDBOX/x-pid")/status"; }

@test "L17a: one retires the dead and is stopped before it ends what was left: the next ends it first" {
    leave_work
    TENURE_FAILPOINT=hold-before-leftovers:stop background b "$TENURE" run --subject s --ttl 2s -- sh -c "$(no_work_of_x)"
    b_pid=$PID
    wait_for 20 standing "$b_pid"
    b=$(newest)
    has_ended cancelled owner-gone "$X"
    x_lives
    wait_for 20 lapsed "$b"
    run timeout 30 "$TENURE" run --subject s --ttl 2s -- sh -c "$(no_work_of_x)"
    assert_exit 0
    finish b "$b_pid"
    finished_with 124
    [ "$(db "SELECT count(*) FROM leftover")" = 0 ]
    none_marked
}

@test "L17b: one retires the dead and is killed before it ends what was left: the next ends it first" {
    local point
    for point in hold-before-leftovers leftovers-before-marked leftovers-before-delete; do
        rm -f "$SANDBOX/x-pid"
        leave_work
        TENURE_FAILPOINT=$point:kill run timeout 30 "$TENURE" run --subject s --ttl 2s -- true
        assert_exit 137
        has_ended cancelled owner-gone "$X"
        is_there "SELECT count(*) FROM leftover WHERE attempt = '$X'"
        run timeout 30 "$TENURE" run --subject s --ttl 2s -- sh -c "$(no_work_of_x)"
        assert_exit 0
        [ "$(db "SELECT count(*) FROM leftover")" = 0 ]
        none_marked
    done
}

@test "L17c: another subject's run ends what was left before its own start, too" {
    leave_work
    # Retired by hand, as another machine would have: nothing was ended yet.
    run "$TENURE" cancel "$X"
    assert_exit 0
    has_ended cancelled owner-gone "$X"
    x_lives
    [ "$(db "SELECT count(*) FROM leftover")" = 1 ]
    run timeout 30 "$TENURE" run --subject another -- sh -c "$(no_work_of_x)"
    assert_exit 0
    [ "$(db "SELECT count(*) FROM leftover")" = 0 ]
    none_marked
}

@test "L19: five are frozen by an outage; it ends as a sixth starts: all five are confirmed, none retired" {
    producers slow="$(waits_for "$HOME/go")"
    local i pids=()
    for i in 1 2 3 4 5; do
        git clone -q "$REPO" "$SANDBOX/clone$i"
        echo "$i" >"$SANDBOX/clone$i/number"
        ( cd "$SANDBOX/clone$i" && commit_all )
    done
    for i in 1 2 3 4 5; do
        background "run$i" "$TENURE" -C "$SANDBOX/clone$i" done
        pids+=("$PID")
    done
    wait_for 30 all_run 5
    hold_store
    wait_for 30 all_frozen 5
    background sixth "$TENURE" run --subject sixth --ttl 2s -- true
    sixth=$PID
    release_store
    finish sixth "$sixth"
    finished_with 0
    wait_for 30 all_thawed 5
    : >"$HOME/go"
    for i in 1 2 3 4 5; do
        finish "run$i" "${pids[i - 1]}"
        finished_with 0
    done
    [ "$(db "SELECT count(*) FROM attempt WHERE state = 'passed' AND kind = 'done'")" = 5 ]
    [ "$(db "SELECT count(*) FROM attempt WHERE state = 'cancelled'")" = 0 ]
}
kinds_in_journals() { grep -l "\"kind\":\"$1\"" "$XDG_STATE_HOME"/tenure/journals/*/journal 2>/dev/null | wc -l; }
all_run() { [ "$(kinds_in_journals started)" = "$1" ]; }
all_frozen() { [ "$(kinds_in_journals frozen)" = "$1" ]; }
all_thawed() { [ "$(kinds_in_journals thawed)" = "$1" ]; }

@test "L17: what several dead attempts left behind is told in a line for each" {
    for subject in a b; do
        background "$subject" "$TENURE" run --subject "$subject" -- sh -c "echo \$\$ >'$HOME/$subject'; exec sleep 60"
        wait_for 20 test -s "$HOME/$subject"
        crash "$PID"
    done
    run "$TENURE" run --subject a --subject b -- true
    assert_exit 0
    [ "$(grep -c 'left work behind: ended pid' <<<"$output")" = 2 ]
    [[ $output != *'\x0a'* ]]
}
