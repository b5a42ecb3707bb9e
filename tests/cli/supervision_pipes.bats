#!/usr/bin/env bats
# Producers that leave something behind: helpers on the pipe, daemons, escapees, orphans by the thousand.

load helpers
load leases
load supervision

setup() {
    sandbox
    repository
}
teardown() { sandbox_end; }

# Its leftovers were ended and named: in the journal, and on the screen. A shell may have a child of its own just then.
outlived() {
    local words="(1 process|2 processes) outlived it and had to be ended: pid [0-9]+ [(][a-z]+[)]"
    finished "$1" | jq -e --arg words "$words" '.text | test($words)' >/dev/null &&
        grep -qE "^$1: passed in .*; $words" <<<"$output"
}

@test "S1: a helper that keeps the pipe delays nothing; the verdict is the child's, and says what was ended" {
    producers pipe='sleep 600 & echo hi' \
        daemon='setsid sh -c "exec sleep 600 </dev/null >/dev/null 2>&1" & until ps -o args= --ppid $! | grep -q . || ps -o args= -p $! | grep -q ^sleep; do sleep 0.01; done; echo up' \
        drip='(while :; do echo x; sleep 0.2; done) & echo hi' \
        red='sleep 600 & exit 9'
    run timeout 120 "$TENURE" done --jobs 1 --keep-going
    assert_exit 1
    for name in pipe daemon drip; do verdict_is $name passed; done
    outlived pipe
    outlived daemon
    outlived drip
    verdict_is red failed
    [ "$(finished red | jq .exit_code)" = 9 ]
    finished red | jq -e '.text | contains("had to be ended: pid")' >/dev/null
    [ "$(head -n 1 "$(log_of pipe)")" = hi ]
    none_marked
}

@test "S1: all 50 MB of a producer that exits while a helper holds the pipe are kept" {
    producers big='sleep 600 & head -c 50000000 /dev/zero | tr "\0" a; echo end'
    run timeout 120 "$TENURE" done
    assert_exit 0
    [ "$(stat -c %s "$(log_of big)")" = 50000004 ]
    [ "$(tail -c 4 "$(log_of big)")" = end ]
    [ "$(tr -d 'a\n' <"$(log_of big)")" = end ] || [ "$(tr -d 'a\n' <"$(log_of big)")" = nd ]
    finished big | jq -e '.offset_bytes == 50000004 and (.dropped_bytes // 0) == 0' >/dev/null
    outlived big
    none_marked
}

@test "S1: the same for a command: it is not waited for whoever has its output" {
    run timeout 120 "$TENURE" run --subject s -- sh -c 'sleep 600 & echo $! >"$HOME/left"; exit 5'
    assert_exit 5
    gone "$(<"$HOME/left")"
    has_ended failed command-failed
}

@test "S3: escapees with sessions of their own, deaf to TERM, without our mark: none survives" {
    producers twice='(setsid sh -c "trap \"\" TERM; echo \$\$ >\$HOME/a; (sleep 600 & echo \$! >\$HOME/b; wait) & sleep 600" &) ; until [ -s $HOME/b ]; do sleep 0.01; done' \
        bare='p=$HOME/c; env -i setsid sh -c "trap \"\" TERM HUP INT; echo \$\$ >$p; while :; do sleep 0.1; done" & until [ -s $HOME/c ]; do sleep 0.01; done'
    run timeout 120 "$TENURE" done --jobs 1
    assert_exit 0
    gone "$(<"$HOME/a")" "$(<"$HOME/b")" "$(<"$HOME/c")"
    finished twice | jq -e '.text | contains("had to be ended")' >/dev/null
    finished bare | jq -e '.text | contains("had to be ended")' >/dev/null
    none_marked
}

@test "S3: escapees end with a run that is cancelled, too" {
    producers work='env -i setsid sh -c "trap \"\" TERM; echo \$\$ >'"$HOME"'/c; sleep 600; sleep 600" & trap "exit 0" TERM; sleep 600 & wait'
    background run "$TENURE" done
    wait_for 60 test -s "$HOME/c"
    kill -TERM "$PID"
    finish run "$PID" 120
    finished_with 143
    gone "$(<"$HOME/c")"
    none_marked
}

@test "S3: 2,000 orphans beside producers that end as they end: every status its own, no zombie" {
    local zombies='n=0; while ps -o stat= --ppid $PPID | grep -q ^Z && [ $n -lt 200 ]; do sleep 0.05; n=$((n+1)); done; [ $n -lt 200 ]'
    producers storm="$HELPERS/orphans 2000 \$HOME/n && test \$(cat \$HOME/n) = 2000 && $zombies" \
        three='sleep 0.2; exit 3' four='sleep 0.3; exit 4' none='sleep 0.4' killed='sleep 0.1; kill -9 $$'
    run timeout 120 "$TENURE" done --jobs 5 --keep-going --json
    assert_exit 1
    [ "$(jq -r '.producers[] | "\(.name) \(.verdict) \(.exit) \(.signal)"' <<<"$output" | sort | tr '\n' ',')" = \
        "four failed 4 null,killed signalled null 9,none passed 0 null,storm passed 0 null,three failed 3 null," ]
    none_marked
}

# As the first process of a pid namespace there is nobody else who could reap.
first_process() { unshare --pid --fork --mount-proc "$@"; }
may_unshare() { unshare --pid --fork --mount-proc true 2>/dev/null || skip "no pid namespace may be made here"; }

@test "S3: as the first process of a pid namespace: statuses, orphans and leftovers as elsewhere" {
    may_unshare
    producers storm="$HELPERS/orphans 300 \$HOME/n" red='sleep 0.1; exit 7' left='setsid sleep 600 & echo hi'
    run timeout 120 unshare --pid --fork --mount-proc "$TENURE" done --keep-going --jobs 2
    assert_exit 1
    verdict_is storm passed
    verdict_is left passed
    [ "$(finished red | jq .exit_code)" = 7 ]
    run timeout 120 unshare --pid --fork --mount-proc "$TENURE" run --subject s -- sh -c '(sleep 600 &); exit 3'
    assert_exit 3
}

@test "S3: the first process of a pid namespace obeys TERM" {
    may_unshare
    background run unshare --pid --fork --mount-proc "$TENURE" run --subject s -- \
        sh -c 'trap "exit 0" TERM; : >"$HOME/up"; sleep 600 & wait'
    wait_for 60 test -e "$HOME/up"
    kill -TERM "$(ps -o pid= --ppid "$PID")"
    finish run "$PID" 120
    finished_with 143
    has_ended cancelled signal
}
