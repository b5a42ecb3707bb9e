#!/usr/bin/env bats
# How a run ends and what is said about it: outputs that cannot be kept, what is left behind, known failures, late signals,
# and one line for whoever is waited for.
load helpers
load evidence
setup() { sandbox && repository; }
teardown() { sandbox_end; }

@test "an output that cannot be kept fails its producer, and its leftover does not block the next run" {
    printf '/out\n' >.gitignore
    config '{make: {run: "mkfifo out", outputs: ["out"]}, use: {run: "true", needs: ["make"]}}'
    exits 1
    [ "$(ended_as make)" = output-unfit ]
    was make=ran use=-
    says FIFO
    exits 1 # known: refused at once
    was make=reused use=-

    config '{make: {run: "rm -f out; echo x >out", outputs: ["out"]}, use: {run: "true", needs: ["make"]}}'
    exits 0
    rm out && mkfifo out
    config '{make: {run: "rm -f out; echo x >out", outputs: ["out"]}, use: {run: "true # more", needs: ["make"]}}'
    exits 0
    was make=ran use=ran
}

@test "a program that ended well without its output is told as failed, also where lines scroll by" {
    config '{make: {run: "true", outputs: ["out"]}}'
    run "$TENURE" 'done'
    [ "$status" -eq 1 ]
    grep -q '^make: .*it exited 0 and did not make out' <<<"$output"
}

@test "what is left behind and declared by nobody is named, with what to do" {
    config '{make: {run: "echo x >left"}}'
    exits 6
    says 'left (untracked)' 'producers leave this behind: add' '/left' 'to .gitignore'
    rm left
}

@test "procedures run only where a producer will run" {
    config '{bad: {run: "exit 3"}, after_bad: {run: "true", needs: ["bad"]}}' \
        "{procedures: {deps: {run: \"echo >>'$SANDBOX/deps.ran'\", when: \"before\"}}}"
    exits 1
    [ "$(ran_times "$SANDBOX/deps.ran")" = 1 ]
    exits 1 --keep-going
    was bad=reused after_bad=-
    [ "$(ran_times "$SANDBOX/deps.ran")" = 1 ]
}

@test "a demand that is proved already names every producer as passed, and by which key" {
    config '{one: {run: "true"}, two: {run: "true", needs: ["one"]}}'
    exits 0
    key=$(doc '.producers[] | select(.name == "two").key')
    exits 0
    proved_already
    was one=reused two=reused
    [ "$(ended_as two)" = passed ]
    [ "$(doc '.producers[] | select(.name == "two").key')" = "$key" ]
    [ "$(doc '.producers[0].duration_ms')" = null ]
}

@test "a Proof names the evidence's place in the store's order, of what ran and of what was reused" {
    config '{one: {run: "true"}}'
    exits 0
    sequence() { tenure proof --quiet | jq -r .payload | base64 -d | jq '.predicate.configuration[1].annotations.sequence'; }
    ran=$(sequence)
    [ "$ran" = "$(db 'SELECT max(sequence) FROM evidence')" ]
    git commit -q --allow-empty -m 'The same tree' && echo more >>hello.txt && commit_all && git revert --no-edit HEAD >/dev/null
    db 'DELETE FROM proof'
    exits 0
    was one=reused
    [ "$(sequence)" = "$ran" ]
}

@test "a signal that comes when the work is over: what is recorded is what is told" {
    config '{one: {run: "true"}}'
    TENURE_FAILPOINT=hold-before-drain:delay=2000 background late "$TENURE" 'done' --json
    wait_for 60 eval '[ "$(evidence_count)" = 1 ]'
    kill -TERM "$PID"
    finish late "$PID"
    case $RC:$(doc .outcome):$(doc .attempt.state):$(tenure log --json | jq -r '.attempts[0].state') in
    143:cancelled:cancelled:cancelled | 0:done:passed:passed) ;;
    *) echo "$RC: $DOC" >&2 && return 1 ;;
    esac
}

@test "one line says who is waited for, by a handle that can be typed" {
    config "{one: {run: \"$(asleep)\"}}"
    background first "$TENURE" 'done'
    first=$PID
    wait_for 60 test -e "$SANDBOX/waits"
    background second "$TENURE" 'done' --wait
    second=$PID
    handle=$(tenure status --json | jq -r '.attempts[0].handle')
    wait_for 60 grep -q "waiting for $handle, held by" "$SANDBOX/second.out"
    touch "$SANDBOX/go"
    finish first "$first" && [ "$RC" -eq 0 ]
    finish second "$second" && [ "$RC" -eq 0 ]
    [ "$(grep -c 'waiting for' "$SANDBOX/second.out")" = 1 ]
    head -n 1 "$SANDBOX/first.out" | grep -qE '^(T-[0-9A-Z]{4}-[0-9A-Z]{4}): reconnect with `tenure attach \1`$'
}

@test "the log says how long a short attempt took, and does not say passed twice" {
    config '{one: {run: "sleep 0.1"}}'
    exits 0
    tenure log -n 1 | grep -qE 'passed +[0-9.]+ m?s$'
    ! tenure log -n 1 | grep -q ' 0 m\?s'
}

@test "a trusted key that is none is named, and not a reason to prove again" {
    config '{one: {run: "true"}}'
    exits 0
    mkdir -p "$XDG_CONFIG_HOME/tenure/trusted"
    echo junk >"$XDG_CONFIG_HOME/tenure/trusted/broken.pub"
    exits 2
    says broken.pub
    rm "$XDG_CONFIG_HOME/tenure/trusted/broken.pub"
    exits 0
    proved_already
}

@test "nothing to do makes no file, in the git directory neither" {
    config '{one: {run: "true"}}'
    exits 0
    git clone -q "$REPO" "$SANDBOX/clone" && cd "$SANDBOX/clone"
    git update-index -q --refresh
    before=$(find .git "$XDG_STATE_HOME" "$XDG_CONFIG_HOME" -printf '%p %T@ %C@\n' | sort)
    exits 0
    proved_already
    [ "$(find .git "$XDG_STATE_HOME" "$XDG_CONFIG_HOME" -printf '%p %T@ %C@\n' | sort)" = "$before" ]
    [ ! -e .git/tenure-checkout ]
}

@test "what is missing only after something has run is a verdict, and not a refusal" {
    printf '/tool\n' >.gitignore && printf '#!/bin/sh\n' >tool && chmod +x tool
    config '{first: {run: "rm -f tool"}, second: {run: "true", needs: ["first"], tools: ["./tool"]}}'
    exits 1
    was first=ran second=-
    [ "$(tenure log --json | jq -r '.attempts[0].reason.code')" = not-proved ]
    exits 2 # and now nothing runs

    config "{open: {run: \"chmod 644 '$XDG_CONFIG_HOME/tenure/keys/default.key'\"}}"
    exits 1
    was open=ran
    says 'open to others'
    exits 2
}

@test "a store that cannot record the end never hides that the work failed" {
    producers bad='touch "$TMPDIR/started"; while [ ! -e "$TMPDIR/go" ]; do sleep 0.02; done; exit 3'
    background 'done' "$TENURE" 'done'
    wait_for 20 test -e "$TMPDIR/started"
    rm "$STORE"
    touch "$TMPDIR/go"
    wait_for 60 ended "$PID"
    wait "$PID" && rc=0 || rc=$?
    [ "$rc" = 1 ]
    grep -q 'bad: exited with status 3; the store could not record it' "$SANDBOX"/done.*

    background run "$TENURE" run --subject x --ttl 2s -- sh -c 'touch "$TMPDIR/ran"; while [ ! -e "$TMPDIR/on" ]; do sleep 0.02; done; exit 7'
    wait_for 20 test -e "$TMPDIR/ran"
    rm "$STORE"
    touch "$TMPDIR/on"
    wait_for 60 ended "$PID"
    wait "$PID" && rc=0 || rc=$?
    [ "$rc" = 7 ]
    grep -q 'the command failed, and its end could not be recorded' "$SANDBOX/run.err"
}

@test "an attempt whose supervisor cannot start is ended at once, not left to its lease" {
    run bash -c 'ulimit -n 9; exec "$TENURE" run --subject x -- true'
    assert_exit 125
    assert_says 'Too many open files'
    [ "$(db "SELECT state || ' ' || reason_code FROM attempt WHERE subjects = 'command:x'")" = 'cancelled internal' ]
    holds 0
}

@test "without libsystemd what needs no loop works, and what needs one names the package" {
    unshare -rUm true 2>/dev/null || skip "no user and mount namespaces here"
    local file
    file=$(ldconfig -p | sed -n 's/.*libsystemd\.so\.0 .*=> //p' | head -n 1)
    [ -n "$file" ] || file=$(echo /usr/lib/*/libsystemd.so.0)
    file=$(realpath "$file")
    run unshare -rUm sh -c "mount --bind /dev/null '$file' && exec \"\$TENURE\" run --subject x -- true"
    assert_exit 125
    assert_says 'libsystemd.so.0 cannot be loaded' 'install the package libsystemd0'
    run unshare -rUm sh -c "mount --bind /dev/null '$file' && exec \"\$TENURE\" status"
    assert_exit 0
}
