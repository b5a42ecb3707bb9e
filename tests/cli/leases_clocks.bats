#!/usr/bin/env bats
# Clocks that step, and heartbeats that something tries to starve.

load helpers
load leases

setup() {
    sandbox
    repository
    run_once # makes the store
    watch_store
}
run_once() { "$TENURE" run --subject first -- true; }
teardown() { sandbox_end; }

# stepped NAME COMMAND...: in the background, with a wall clock of its own that `step` moves.
stepped() {
    step 0
    CLOCK_STEP_FILE=$SANDBOX/clock LD_PRELOAD=${HELPERS:?}/clock_step.so ASAN_OPTIONS=verify_asan_link_order=0 background "$@"
}
step() { printf '%-31d\n' "$1" | dd of="$SANDBOX/clock" conv=notrunc status=none; }
# A day back, a day forth, thirty years, 1970, 2039, and right again.
steps() { echo "-86400 86400 946080000 -$(($(date +%s) - 1000)) $((2180000000 - $(date +%s))) 0"; }
ticks() { cut -d')' -f2 "/proc/$1/stat" | awk '{print $12 + $13}'; }
own_time_is() { [ "$(field "renewed_wall_ms / 1000 - $(date +%s) BETWEEN $1 - 20 AND $1 + 20")" = 1 ]; }

@test "L5: the wall clock steps during a run: renewed on time, no busy loop, nothing negative" {
    patient_producers slow="$(waits_for "$HOME/go")"
    stepped run "$TENURE" done --json
    pid=$PID
    wait_for 30 work_runs slow
    id=$(newest)
    ticks=$(ticks "$pid")
    begun=$(date +%s%3N)
    for seconds in $(steps); do
        step "$seconds"
        count=$(renewals "$id")
        wait_for 20 renewed "$id" $((count + 2))
        own_time_is "$seconds"
        # Whose clock is right sees a lease like any other.
        run "$TENURE" status --json
        jq -e --arg id "$id" '.attempts[] | select(.id == $id) | .owner == "running" and (.lapsed | not)' <<<"$output"
    done
    # A fifth of the time at most, of one processor.
    [ $((($(ticks "$pid") - ticks) * 1000 / $(getconf CLK_TCK) * 5)) -lt $(($(date +%s%3N) - begun)) ]
    : >"$HOME/go"
    finish run "$pid"
    finished_with 0
    [ "$(widest_gap "$id")" -lt 2500 ]
    [ "$(records_of "$id" | grep -c '"kind":"\(frozen\|renewal-trouble\)"')" = 0 ]
    [ "$(records_of "$id" | jq -s '[.[].duration_ms // 0, .[].boot_ms // 0] | min >= 0')" = true ]
    jq -e '[.. | .duration_ms? // 0] | min >= 0' <<<"$OUT"
    terminal_kept
}

@test "L5: the wall clock steps back before the end: no duration is negative, in no view" {
    patient_producers slow="$(waits_for "$HOME/go")"
    stepped run "$TENURE" done
    pid=$PID
    wait_for 30 work_runs slow
    step -86400
    : >"$HOME/go"
    finish run "$pid"
    finished_with 0
    [[ $OUT$ERR != *" -"[0-9]* ]]
    for view in "log" "log --json" "attach $(handle_of)" "status"; do
        # shellcheck disable=SC2086
        run timeout 30 "$TENURE" $view
        assert_exit 0
        [[ $output != *" -"[0-9]* ]]
        [[ $output != *:-[0-9]* ]]
    done
}

@test "L5: a signal is answered at once, whatever the wall clock does, in a run and in a wait" {
    patient_producers slow='exec sleep 600'
    stepped run "$TENURE" done
    run_pid=$PID
    wait_for 30 work_runs slow
    cp "$SANDBOX/clock" "$SANDBOX/keep"
    stepped waiter "$TENURE" done --wait
    wait_pid=$PID
    wait_for 30 grep -q waiting "$SANDBOX/waiter.out"
    ticks=$(ticks "$wait_pid")
    id=$(newest)
    begun=$(date +%s%3N)
    for seconds in $(steps); do
        step "$seconds"
        wait_for 20 renewed "$id" $(($(renewals "$id") + 1))
    done
    [ $((($(ticks "$wait_pid") - ticks) * 1000 / $(getconf CLK_TCK) * 5)) -lt $(($(date +%s%3N) - begun)) ]
    [ "$(field state)" = running ]
    for name in wait run; do
        step -86400
        pid=${name}_pid
        begun=$(date +%s%3N)
        kill -TERM "${!pid}"
        step 946080000
        finish "${name/wait/waiter}" "${!pid}"
        finished_with 143
        [ $(($(date +%s%3N) - begun)) -lt 2000 ]
    done
    has_ended cancelled signal
    none_marked
}

never_late() { # never_late ATTEMPT BOUND
    [ "$(records_of "$1" | grep -c '"kind":"frozen"')" = 0 ]
    [ "$(widest_gap "$1")" -lt "$2" ]
}

@test "L6: a line of a gigabyte delays no renewal" {
    patient_producers line="head -c 1000000000 /dev/zero | tr '\\0' x; : >'$HOME/written'; $(waits_for "$HOME/go")"
    background run "$TENURE" done
    pid=$PID
    wait_for 30 work_runs line
    id=$(newest)
    wait_for 120 test -e "$HOME/written"
    wait_for 20 renewed "$id" 3
    : >"$HOME/go"
    finish run "$pid"
    finished_with 0
    never_late "$id" 2500
    [ "$(records_of "$id" | jq 'select(.kind == "finished") | .offset_bytes')" = 1000000000 ]
    # The log has a cap, and says what is missing.
    [ "$(stat -c %s "$XDG_STATE_HOME/tenure/journals/$(handle_of)/out/line.log")" -lt 70000000 ]
}

@test "L6: a tree of very many files being listed delays no renewal" {
    local count=$((40000 * ROUNDS)) blob
    blob=$(git hash-object -w hello.txt)
    seq -f "100644 $blob"$'\t'"many/%.0f" "$count" | git update-index --add --index-info
    git commit -q -m 'Many files'
    git checkout -q -- .
    # Listed under the lease: before the producer, after it, and before the Proof.
    patient_producers a='sleep 0.1' b='sleep 0.1'
    background run "$TENURE" done --jobs 1
    finish run "$PID" $((120 + 60 * ROUNDS))
    finished_with 0
    id=$(newest)
    [ "$(records_of "$id" | grep -c '"kind":"frozen"')" = 0 ]
    gap=$(widest_gap "$id")
    [ -z "$gap" ] || [ "$gap" -lt 2500 ]
}

@test "L6: on one processor, at the lowest priority, beside busy work, no renewal is missed" {
    patient_producers one="$(busy)" two="$(busy)" three="$(busy)"
    background run nice -n 19 taskset -c "$(first_processor)" "$TENURE" done --jobs 3
    pid=$PID
    wait_for 60 work_runs three
    id=$(newest)
    wait_for 60 renewed "$id" 8
    : >"$HOME/go"
    finish run "$pid"
    finished_with 0
    never_late "$id" 2500
}
busy() { echo "until [ -e '$HOME/go' ]; do n=0; while [ \$n -lt 10000 ]; do n=\$((n+1)); done; done"; }
first_processor() { taskset -pc $$ | sed 's/.*: //; s/[-,].*//'; }
