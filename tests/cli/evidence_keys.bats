#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# The key explains itself: what enters it must miss when it changes, what does not must hit; and the plan says why.

load helpers
load evidence

setup() {
    sandbox
    repository
    printf '/out\n' >.gitignore
    mkdir "$SANDBOX/bin" "$SANDBOX/bin2" src
    printf '#!/bin/sh\necho 1\n' >"$SANDBOX/bin/tool"
    printf '#!/bin/sh\necho 2\n' >"$SANDBOX/bin2/tool"
    chmod +x "$SANDBOX"/bin*/tool
    echo one >src/one
    export PATH=$SANDBOX/bin:$PATH SEED=1
    config '{p: {run: "true", inputs: ["src/**"], env: ["SEED"], tools: ["tool"]}}'
    exits 0
    was p=ran
}
teardown() { sandbox_end; }

# The very same tree is proved: for the key to be asked, a commit that p does not depend on is added.
another_commit() {
    echo "$RANDOM$RANDOM" >>hello.txt
    commit_all
}
misses() { # misses REASON [WORD...]: p runs, and the plan says why
    local reason=$1
    shift
    another_commit
    [[ $(tenure done --json --dry-run "$@" | jq -r '.plan[0].source + ": " + .plan[0].reason') == "ran: "*"$reason"* ]] || {
        tenure done --json --dry-run "$@" >&2
        return 1
    }
    exits 0 "$@"
    was p=ran
}
hits() {
    another_commit
    [[ $(plan_of p) == reused ]]
    exits 0
    was p=reused
}

@test "E9: nothing changed: a hit" { hits; }
@test "E9: a declared variable: another value, none, empty" {
    SEED=2 misses variable
    (unset SEED && misses variable)
    SEED='' misses variable
    hits
}
@test "E9: a tool's file in place, and the same bytes again" {
    printf '#!/bin/sh\necho 3\n' >"$SANDBOX/bin/tool"
    misses tool
    printf '#!/bin/sh\necho 1\n' >"$SANDBOX/bin/tool"
    hits
}
@test "E9: the order of PATH, so that another tool is found" {
    PATH=$SANDBOX/bin2:$PATH misses tool
    # Another order that finds the same tool is none.
    PATH=$SANDBOX/bin:$SANDBOX/bin2:$PATH hits
}
@test "E9: a tool behind a link, and one that is not there any more" {
    mv "$SANDBOX/bin/tool" "$SANDBOX/bin/real" && ln -s real "$SANDBOX/bin/tool"
    hits
    printf '#!/bin/sh\necho 4\n' >"$SANDBOX/bin/real"
    misses tool
    rm "$SANDBOX/bin/tool"
    another_commit
    exits 2
    says tool
}
@test "E9: the command's text, and a list of the same words" {
    config '{p: {run: "true ", inputs: ["src/**"], env: ["SEED"], tools: ["tool"]}}'
    misses command
    config '{p: {run: ["true"], inputs: ["src/**"], env: ["SEED"], tools: ["tool"]}}'
    misses command
    config '{p: {run: ["true"], inputs: ["src/**"], env: ["SEED"], tools: ["tool"], outputs: []}}'
    hits
}
@test "E9: an input: its bytes, its name, its mode; the plan names it" {
    echo two >src/one
    misses src/one
    chmod +x src/one
    misses src/one
    git mv src/one src/uno
    misses src/
}
@test "E9: the outputs of what it needs" {
    config "{need: {run: \"cat src/one >out\", inputs: [\"src/one\"], outputs: [\"out\"]}, p: {run: \"true\", inputs: [\"tenure.json\"], needs: [\"need\"]}}"
    exits 0
    echo two >src/one
    commit_all
    exits 0
    was need=ran p=ran
}
@test "E9: another architecture" {
    other=$(setarch --list | grep -vx "$(uname -m)" | while read -r a; do
        [ "$(setarch "$a" uname -m 2>/dev/null)" != "$(uname -m)" ] && setarch "$a" true 2>/dev/null && echo "$a" && break
    done)
    [ -n "$other" ] || skip "no other personality here"
    real=$TENURE
    TENURE=$SANDBOX/foreign
    printf '#!/bin/sh\nexec setarch %s "%s" "$@"\n' "$other" "$real" >"$TENURE"
    chmod +x "$TENURE"
    misses platform
}
@test "E9: TERM, OLDPWD, SSH_AUTH_SOCK, HOME, USER, LANG, a variable that is not declared: hits" {
    mkdir "$SANDBOX/home2"
    TERM=xterm hits
    OLDPWD=/ hits
    SSH_AUTH_SOCK=/tmp/agent hits
    HOME=$SANDBOX/home2 hits
    USER=other LOGNAME=other hits
    LANG=de_DE.UTF-8 TZ=Asia/Tokyo hits
    OTHER=1 CI=false COLUMNS=40 hits
    DISPLAY=:1 hits
}
@test "E9: another checkout of the same tree, elsewhere and with another name: proved already" {
    git clone -q . "$SANDBOX/clone"
    cd "$SANDBOX/clone"
    exits 0
    proved_already
    [ "$(doc .proof.id)" != null ]
    another_commit
    exits 0
    was p=reused
}
@test "E9: what is proved is not proved with another value, and another store knows nothing" {
    exits 0
    proved_already
    SEED=2 exits 0
    was p=ran
    exits 0
    proved_already
    exits 0 --store "sqlite:$SANDBOX/other.db"
    was p=ran
    TENURE_STORE=sqlite:$SANDBOX/other.db exits 0
    proved_already
}
@test "E9: producers see the declared environment and nothing else" {
    config "{p: {run: \"env | cut -d= -f1 | sort >$SANDBOX/env; ls /proc/self/fd | wc -l >$SANDBOX/fds; cat >$SANDBOX/stdin; ps -o sid= -p \$\$ >$SANDBOX/sid\", env: [\"SEED\"]}}"
    export OTHER=1 TENURE_STORE=sqlite:$SANDBOX/secret.db NOTIFY_SOCKET=/x WATCHDOG_USEC=1 LISTEN_FDS=3 GIT_DIR=/x SSH_AUTH_SOCK=/x
    exec 7</dev/null
    exits 0
    exec 7<&-
    run ! grep -xE 'OTHER|NOTIFY_SOCKET|WATCHDOG_.*|LISTEN_.*|GIT_.*|SSH_AUTH_SOCK|TERM' "$SANDBOX/env"
    for name in SEED CI PATH HOME TENURE_ATTEMPT TENURE_STORE TENURE_FENCE; do grep -qx $name "$SANDBOX/env"; done
    [ "$(<"$SANDBOX/fds")" -le 4 ]
    [ ! -s "$SANDBOX/stdin" ]
    run ! grep -r "$SANDBOX/secret.db" "$XDG_STATE_HOME"/tenure/journals
}
