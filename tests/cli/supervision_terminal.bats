#!/usr/bin/env bats
# Terminals: producers that want one, and terminals that stop, fill up or go away while a run is on.

load helpers
load leases
load supervision

setup() {
    sandbox
    repository
}
teardown() { sandbox_end; }

# The heartbeats of a run were on time: there were some, and none was later than the lease allows.
on_time() { # on_time LEAST MOST_MS
    local count gap
    count=$(beat_count) gap=$(beat_gap_ms)
    [ "$count" -ge "$1" ] && [ "$gap" -lt "$2" ] || {
        echo "$count renewals, the longest gap $gap ms" >&2
        return 1
    }
}
# From now until the condition holds, the process uses less than four tenths of a processor.
calm_until() { # calm_until PID SECONDS CONDITION...
    local pid=$1 seconds=$2 before used began
    shift 2
    before=$(processor_ms "$pid") began=$(date +%s%3N)
    wait_for "$seconds" "$@"
    used=$(($(processor_ms "$pid") - before))
    [ $used -lt $((200 + ($(date +%s%3N) - began) * 4 / 10)) ] || {
        echo "$used ms of processor time in $(($(date +%s%3N) - began)) ms" >&2
        return 1
    }
}

@test "S4: under a terminal: stdin is empty, there is no controlling terminal, a stopped child is a verdict" {
    producers reader='read x; echo "status $? <$x>"' \
        stty='stty -echo 2>/dev/null; echo "status $?"; [ ! -t 0 ] && [ ! -t 1 ] && [ ! -t 2 ]' \
        tty='exec 3<>/dev/tty; read y <&3' \
        none='ps -o tty= -p $$' \
        stopped='kill -STOP $$; echo woken'
    terminal term "$TENURE" done --keep-going --jobs 5
    wait_for 30 running
    typed 'a line that nobody may have\n'
    finish term "$TERMINAL" 120
    finished_with 1
    [ "$(<"$(log_of reader)")" = "status 1 <>" ]
    [ "$(<"$(log_of stty)")" = "status 1" ]
    verdict_is stty passed
    verdict_is tty failed
    [ "$(tr -d ' \n' <"$(log_of none)")" = '?' ]
    verdict_is stopped stalled
    ! grep -q woken "$(log_of stopped)"
    shown term "stopped itself and stood still"
    none_marked
}

@test "S4: a command may read what we read, and has no controlling terminal either" {
    terminal term "$TENURE" run --subject s -- sh -c 'read x; echo "got <$x>"; (exec 3<>/dev/tty) 2>/dev/null || echo none; exit 4'
    typed 'hello\n'
    finish term "$TERMINAL" 60
    finished_with 4
    shown term 'got <hello>'
    shown term none
}

@test "S5: the terminal goes away: the run is stopped, its producers are gone, it is recorded" {
    producers work='echo $$ >"$HOME/pid"; sleep 600'
    terminal term "$TENURE" done
    wait_for 60 test -s "$HOME/pid"
    attempt=$(newest)
    kill -KILL "$TERMINAL"
    wait_for 60 holds 0
    has_ended cancelled signal "$attempt"
    [ "$(field reason_text "$attempt")" = "ended by SIGHUP" ]
    gone "$(<"$HOME/pid")"
    wait_for 60 gone "$(supervisor_of "$attempt")"
    none_marked
}

@test "S5: nohup: the terminal goes away, and the run finishes" {
    producers work="$(waits_for "$HOME/go")"
    roomy
    terminal term sh -c 'exec nohup "$TENURE" done >"$HOME/out" 2>&1'
    wait_for 60 work_runs work
    attempt=$(newest)
    pid=$(supervisor_of "$attempt")
    kill -KILL "$TERMINAL"
    wait_for 60 ended "$TERMINAL"
    beats
    calm_until "$pid" 60 beaten 4
    : >"$HOME/go"
    wait_for 60 holds 0
    has_ended passed passed "$attempt"
    wait_for 60 gone "$pid"
}

@test "S5: HUP is ignored and the terminal goes away in the middle: frames fail, the run does not" {
    producers work="$(waits_for "$HOME/go")"
    roomy
    terminal term "$HELPERS/launch" -i "$(kill -l HUP)" "$TENURE" done
    wait_for 60 work_runs work
    attempt=$(newest)
    pid=$(supervisor_of "$attempt")
    beats
    kill -KILL "$TERMINAL"
    calm_until "$pid" 60 beaten 4
    : >"$HOME/go"
    wait_for 60 holds 0
    has_ended passed passed "$attempt"
    wait_for 60 gone "$pid"
    on_time 4 6000
}

@test "S5: XOFF while a producer prints 10 MB: it is not held up, heartbeats stay on time, nothing spins" {
    local least=$((6 * ROUNDS))
    producers talk="head -c 10000000 /dev/zero | tr '\\0' x | fold; : >\"\$HOME/said\"; $(waits_for "$HOME/go")"
    roomy
    terminal term "$TENURE" done
    wait_for 60 work_runs talk
    typed '\023'
    attempt=$(newest)
    pid=$(supervisor_of "$attempt")
    beats
    calm_until "$pid" 120 beaten $least
    wait_for 60 test -e "$HOME/said"
    : >"$HOME/go"
    wait_for 60 holds 0
    has_ended passed passed "$attempt"
    on_time $least 6000
    # The verdict is written whole, and waits for the terminal; a signal ends that, too.
    typed '\021'
    finish term "$TERMINAL" 60
    finished_with 0
    shown term 'is proved at'
}

# A terminal or pipe that is full before we come.
@test "S5: a terminal that nobody reads: the run finishes, and one signal ends what waits for the terminal" {
    producers work="$(waits_for "$HOME/go")"
    roomy
    background term env TERM=xterm "$HELPERS/pty" -u sh -c \
        'dd if=/dev/zero of=/dev/tty bs=512 oflag=nonblock 2>/dev/null; exec "$TENURE" done'
    wait_for 60 work_runs work
    attempt=$(newest)
    pid=$(supervisor_of "$attempt")
    beats
    calm_until "$pid" 60 beaten 4
    : >"$HOME/go"
    wait_for 60 holds 0
    has_ended passed passed "$attempt"
    on_time 4 6000
    kill -TERM "$pid"
    wait_for 30 gone "$pid"
}

@test "S5: a pipe that nobody reads: the run finishes, and then one signal ends the program" {
    producers work="$(waits_for "$HOME/go")"
    roomy
    mkfifo "$SANDBOX/full"
    exec 6<>"$SANDBOX/full"
    dd if=/dev/zero of="$SANDBOX/full" bs=4096 oflag=nonblock 2>/dev/null || true
    background run sh -c "exec '$TENURE' done >'$SANDBOX/full'"
    pid=$PID
    wait_for 60 work_runs work
    beats
    calm_until "$pid" 60 beaten 4
    : >"$HOME/go"
    wait_for 60 holds 0
    has_ended passed passed
    on_time 4 6000
    # The verdict waits for whoever reads; nobody came.
    ! ended "$pid"
    kill -TERM "$pid"
    finish run "$pid" 30
    exec 6>&-
}

@test "S5: stdout closed, full, or a pipe that was closed: the run finishes, and nothing of ours lands in a wrong place" {
    producers work='echo hello; ls -l /proc/$PPID/fd/0 /proc/$PPID/fd/1 /proc/$PPID/fd/2'
    run sh -c '"$TENURE" done --rerun >&-'
    assert_exit 0
    has_ended passed passed
    run sh -c '"$TENURE" done --rerun >&- 2>&- <&-'
    assert_exit 0
    has_ended passed passed
    ! grep -q journals "$(log_of work)"
    [ "$(grep -c /dev/null "$(log_of work)")" = 3 ]
    run sh -c '"$TENURE" done --rerun >/dev/full'
    assert_says "No space left on device"
    has_ended passed passed
    "$TENURE" done --rerun | true
    has_ended passed passed
    "$TENURE" done --rerun >"$HOME/out" 2>&1
    ! grep -q '"kind"' "$HOME/out"
    # A journal that a closed descriptor had got would not verify.
    for journal in "$XDG_STATE_HOME"/tenure/journals/*/journal; do
        [ "$(grep -c '"kind":"settled"' "$journal")" = 1 ]
    done
}

@test "S5: what only prints says that it could not" {
    producers work=true
    "$TENURE" done >"$HOME/out"
    for command in "log" "status --all" "proof" "help" "store status"; do
        run sh -c "\"\$TENURE\" $command >/dev/full"
        [ "$status" -ne 0 ]
        assert_says "No space left on device"
    done
}
