#!/usr/bin/env bats
# The tree moves while it is being proved: exit 6, the files named, and nothing stored under the key that the tree
# had before.

load helpers
load evidence

setup() {
    sandbox
    repository
    printf '/out/\n' >.gitignore
    echo one >input
    commit_all
}
teardown() { sandbox_end; }

moved() { # moved WORD...: the last run ended so, named these, and stored no Proof; nothing is reused next time
    [ "$(doc .outcome)" = moved ]
    [ "$(doc .proof)" = null ]
    [ "$(doc .attempt.state)" = failed ]
    [ "$(doc .attempt.reason)" != null ]
    says "$@"
    [ "$(proof_count)" = 0 ]
    [ "$(evidence_count)" = "${STORED:-0}" ]
}

# while_running COMMAND...: runs it in the middle of the producer, in $REPO.
while_running() {
    background run "$TENURE" done --json
    wait_for 30 test -e "$SANDBOX/waits"
    (cd "$REPO" && "$@")
    : >"$SANDBOX/go"
    finish run "$PID"
    [ "$RC" -eq 6 ] || {
        echo "exit status $RC: $DOC $ERR" >&2
        return 1
    }
}

@test "E3: an input edited while its producer runs" {
    config "{p: {run: \"$(asleep)\", inputs: [\"input\"]}}"
    while_running sh -c 'echo two >input'
    moved input
    # Put back, it runs anew: nothing was kept.
    git checkout -q input
    exits 0
    was p=ran
}

@test "E3: an input edited and put back, its times too, while its producer runs" {
    config "{p: {run: \"$(asleep)\", inputs: [\"input\"]}}"
    while_running sh -c 'touch -r input ../time; echo two >input; echo one >input; touch -r ../time input'
    moved input
    exits 0
    was p=ran
}

@test "E3: an input replaced by a file of equal bytes while its producer runs" {
    config "{p: {run: \"$(asleep)\"}}"
    while_running sh -c 'cp -p input ../copy && mv ../copy input'
    moved input
}

@test "E3: another file than its inputs, edited while it runs, and one that is new" {
    config "{p: {run: \"$(asleep)\", inputs: [\"input\"]}}"
    while_running sh -c 'echo two >>hello.txt; : >new.txt'
    moved hello.txt new.txt
}

@test "E3: a mode, the index and its flags change while it runs" {
    config "{p: {run: \"rm -f $SANDBOX/go; $(asleep)\"}}"
    while_running chmod +x input
    moved input
    chmod -x input
    rm -f "$SANDBOX/waits"
    while_running git update-index --assume-unchanged input
    moved
    git update-index --no-assume-unchanged input
    rm -f "$SANDBOX/waits"
    while_running sh -c 'echo two >input && git add input && echo one >input'
    moved input
}

@test "E3: a commit while it runs, even of the same tree" {
    config "{p: {run: \"$(asleep)\"}}"
    old=$(git rev-parse --short=12 HEAD)
    while_running git commit -q --allow-empty -m Empty
    moved "$old" "$(git rev-parse --short=12 HEAD)"
    exits 0
    was p=ran
}

@test "E3: HEAD moves to a branch with another tree, and the checkout is replaced by another" {
    config "{p: {run: \"rm -f $SANDBOX/go; $(asleep)\"}}"
    git branch other HEAD~1
    while_running git checkout -q other
    moved
    git checkout -q main
    rm -f "$SANDBOX/waits"
    swap() { mv "$REPO" "$SANDBOX/away" && cp -a "$SANDBOX/away" "$REPO"; }
    while_running swap
    moved
}

@test "E3: a producer that rewrites another's input" {
    config '{a: {run: "true", inputs: ["input"]}, b: {run: "echo two >input", inputs: ["hello.txt"]}, c: {run: "true", needs: ["b"]}}'
    exits 6 --jobs 1
    STORED=1 moved input
    [ "$(db "SELECT producer FROM evidence")" = a ]
    was c=-
}

@test "E3: a formatter that edits and exits 0, and one that edits and exits 1" {
    config '{format: {run: "echo >>input"}}'
    exits 6
    moved input
    git checkout -q input
    config '{format: {run: "echo >>input; exit 1"}}'
    exits 6
    moved input
    git checkout -q input
    # One that writes the very same bytes in place is noticed too: somebody else might have read in between.
    config '{format: {run: "cp input ../kept && cat ../kept >input"}}'
    exits 6
    moved input
}

@test "E3: an edit between the last producer and the Proof" {
    config "{p: {run: \"true\", inputs: [\"input\"]}}" '{procedures: {tidy: {run: "echo two >hello.txt", when: "after"}}}'
    exits 6
    STORED=1 moved hello.txt
}

@test "E3: an edit while a procedure runs before the producers" {
    config "{p: {run: \"true\"}}" '{procedures: {deps: {run: "echo two >input", when: "before"}}}'
    exits 6
    moved input
    was p=-
}

@test "E3: an edit between the plan and the first producer, and before the lease was had" {
    config "{p: {run: \"true\"}}"
    TENURE_FAILPOINT=hold-after-bind:stop background run "$TENURE" done --json
    wait_for 30 test -e "$STORE"
    wait_for 30 stands "$PID"
    echo two >input
    kill -CONT "$PID"
    finish run "$PID"
    [ "$RC" -eq 6 ]
    moved input
    was p=-
}
stands() { [ "$(ps -o stat= -p "$1" | cut -c1)" = T ]; }

@test "E3: the output of a need is changed while the one that needs it runs" {
    config "{a: {run: \"mkdir -p out; echo a >out/a\", outputs: [\"out/a\"]}, b: {run: \"$(asleep)\", needs: [\"a\"]}}"
    while_running sh -c 'echo b >out/a'
    STORED=1 moved out/a
    exits 0
    was a=ran b=ran
}

@test "E3: a moved tree stops what has not started, with --keep-going too" {
    config '{a: {run: "echo >>input"}, b: {run: "true", needs: ["a"]}, c: {run: "true", needs: ["b"]}}'
    exits 6 --keep-going
    was b=- c=-
    moved input
}

@test "E3: an output that is not ignored moves the tree; the line for .gitignore is named" {
    config '{a: {run: "echo >made", outputs: ["made"]}}'
    exits 6
    moved made .gitignore
}

@test "E3: a moved tree ends what runs beside at once" {
    config "{a: {run: \"until [ -e $SANDBOX/waits ]; do sleep 0.02; done; echo >>input\"}, b: {run: \"trap '' TERM; $(asleep)\"}}"
    exits 6 --jobs 2
    moved input
    [ ! -e "$SANDBOX/go" ]
    wait_for 20 none_marked
}

# between_looks FILE MARK: a git that leaves $SANDBOX/other as FILE behind the first look at the tree that finds
# $SANDBOX/mark, and puts FILE back in front of the next one: no look sees it.
between_looks() {
    cp -p "$1" "$SANDBOX/kept"
    mkdir "$SANDBOX/bin"
    cat >"$SANDBOX/bin/git" <<END
#!/bin/sh
case " \$* " in
*" status "*) ;;
*) exec '$(command -v git)' "\$@" ;;
esac
[ ! -e '$SANDBOX/swapped' ] || cp -p '$SANDBOX/kept' '$REPO/$1'
'$(command -v git)' "\$@"
rc=\$?
[ -e '$SANDBOX/swapped' ] || [ ! -e '$2' ] || { : >'$SANDBOX/swapped'; cp '$SANDBOX/other' '$REPO/$1'; }
exit \$rc
END
    chmod +x "$SANDBOX/bin/git"
    PATH=$SANDBOX/bin:$PATH
}

@test "E3: a producer never sees the committed input, and both looks around it do" {
    # The second producer starts with a look of its own; behind it, its input is replaced.
    config "{a: {run: \": >'$SANDBOX/mark'\", inputs: [\".gitignore\"]},
        b: {run: \"grep -q two input\", inputs: [\"input\"], needs: [\"a\"]}}"
    echo two >"$SANDBOX/other"
    between_looks input "$SANDBOX/mark"
    exits 6
    [ -e "$SANDBOX/swapped" ]
    STORED=1 moved input
}

@test "E3: the demand is that of the commit, not of a tenure.json that lay there for a moment" {
    config '{a: {run: "true"}, b: {run: "false"}}'
    : >"$SANDBOX/mark"
    jq 'del(.producers.b)' tenure.json >"$SANDBOX/other"
    between_looks tenure.json "$SANDBOX/mark"
    exits 6
    [ -e "$SANDBOX/swapped" ]
    moved tenure.json
}

@test "E3: a HEAD that is another one at every look is a tree that moves, and no trouble of the store" {
    config "{a: {run: \": >'$SANDBOX/mark'\"}, b: {run: \"true\", needs: [\"a\"]}}"
    mkdir "$SANDBOX/bin"
    cat >"$SANDBOX/bin/git" <<END
#!/bin/sh
[ ! -e '$SANDBOX/mark' ] || case " \$* " in
*" status "*) '$(command -v git)' "\$@" | sed 's/branch.oid ......../branch.oid 00000000/' && exit ;;
esac
exec '$(command -v git)' "\$@"
END
    chmod +x "$SANDBOX/bin/git"
    PATH=$SANDBOX/bin:$PATH exits 6
    moved 'HEAD moved'
}

@test "E3: a HEAD that is another one at every look before anything has begun is refused, with what to do" {
    config '{a: {run: "true"}}'
    mkdir "$SANDBOX/bin"
    cat >"$SANDBOX/bin/git" <<SHIM
#!/bin/sh
case " \$* " in
*" status "*) '$(command -v git)' "\$@" | sed 's/branch.oid ......../branch.oid 00000000/' && exit ;;
esac
exec '$(command -v git)' "\$@"
SHIM
    chmod +x "$SANDBOX/bin/git"
    PATH=$SANDBOX/bin:$PATH run "$TENURE" done
    assert_exit 2
    assert_says 'leave the repository alone'
}
