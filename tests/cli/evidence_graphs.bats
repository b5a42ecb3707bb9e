#!/usr/bin/env bats
# Graphs of producers: every one finishes or is refused with the path of the cycle, whatever the number of jobs.

load helpers
load evidence

setup() {
    sandbox
    repository
    LOG=$SANDBOX/log
}
teardown() { sandbox_end; }

# note NAME: a producer's shell line that leaves when it began and when it ended.
note() { echo "echo begin $1 >>$LOG; echo end $1 >>$LOG"; }
before() { # before A B: A ended before B began
    local ended began
    ended=$(grep -n "^end $1\$" "$LOG" | tail -n 1 | cut -d: -f1)
    began=$(grep -n "^begin $2\$" "$LOG" | tail -n 1 | cut -d: -f1)
    [ "$ended" -lt "$began" ]
}

@test "E6: an edge to itself, cycles of two and three, one behind others: refused with the path" {
    config '{a: {run: "true", needs: ["a"]}}'
    exits 2
    says 'a -> a' tenure.json:
    config '{a: {run: "true", needs: ["b"]}, b: {run: "true", needs: ["a"]}}'
    exits 2
    says 'a -> b -> a'
    config '{z: {run: "true", needs: ["a"]}, a: {run: "true", needs: ["b"]}, b: {run: "true", needs: ["c"]}, c: {run: "true", needs: ["a"]}}'
    exits 2
    says 'a -> b -> c -> a'
    [ ! -e "$STORE" ]
}

@test "E6: an unknown need is refused, the nearest suggested" {
    config '{build: {run: "true"}, test: {run: "true", needs: ["biuld"]}}'
    exits 2
    says biuld build tenure.json:
    [ ! -e "$STORE" ]
}

@test "E6: a diamond: needs first, the shared one once, with any number of jobs" {
    config "{d: {run: \"$(note d)\", needs: [\"b\", \"c\"]}, c: {run: \"$(note c)\", needs: [\"a\"]}, b: {run: \"$(note b)\", needs: [\"a\"]}, a: {run: \"$(note a)\"}}"
    for jobs in 1 2 8; do
        : >"$LOG"
        exits 0 --rerun --jobs $jobs
        [ "$(grep -c ^begin "$LOG")" = 4 ]
        before a b
        before a c
        before b d
        before c d
    done
    [[ $(doc '[.producers[].name] | join(" ")') =~ ^a\ (b\ c|c\ b)\ d$ ]]
}

@test "E6: --jobs bounds how many run at once, and lets so many" {
    # Each waits until two are there at once, or for long enough to see that nobody else comes.
    meet() { echo "mkdir -p $SANDBOX/in; : >$SANDBOX/in/$1; n=0; until [ \$(ls $SANDBOX/in | wc -l) -ge 2 ] || [ \$n -ge $2 ]; do sleep 0.02; n=\$((n+1)); done; [ \$(ls $SANDBOX/in | wc -l) -ge 2 ] && echo met >>$LOG; rm -f $SANDBOX/in/$1; true"; }
    config "{a: {run: \"$(meet a 5)\"}, b: {run: \"$(meet b 5)\"}, c: {run: \"$(meet c 5)\"}}"
    exits 0 --jobs 1
    [ ! -e "$LOG" ]
    config "{a: {run: \"$(meet a 500)\"}, b: {run: \"$(meet b 500)\"}}"
    exits 0 --jobs 2
    grep -q met "$LOG"
}

@test "E6: several failures are named together" {
    config '{x: {run: "exit 1"}, y: {run: "exit 2"}, z: {run: "exit 3"}, fine: {run: "true"}}'
    exits 1 --keep-going
    [ "$(doc .attempt.reason)" = '3 of 4 failed: x, y, z' ]
    run tenure done --keep-going
    assert_exit 1
    [[ ${lines[-1]} == *'3 of 4 failed: x, y, z'* ]]
    exits 1 --jobs 1 --rerun
    [ "$(doc .attempt.reason)" = 'x: exited with status 1' ]
}

@test "E6: a need that fails: what needs it does not run, and with --keep-going the rest does" {
    config "{bad: {run: \"exit 3\"}, child: {run: \"$(note child)\", needs: [\"bad\"]}, grandchild: {run: \"$(note grandchild)\", needs: [\"child\"]}, free: {run: \"$(note free)\"}, freer: {run: \"$(note freer)\", needs: [\"free\"]}}"
    exits 1 --jobs 1
    was bad=ran child=- grandchild=- free=- freer=-
    [ ! -e "$LOG" ]
    exits 1 --jobs 2 --keep-going
    was bad=reused child=- grandchild=- free=ran freer=ran
    [ "$(grep -c ^begin "$LOG")" = 2 ]
    [ "$(proof_count)" = 0 ]
    exits 1 --keep-going --rerun
    was bad=ran child=- free=ran
}

@test "E6: a known failure is told at once: nothing that comes before it in the file is started" {
    config "{first: {run: \"$(note first); exit \$(test -e $SANDBOX/ok; echo 0)\"}, bad: {run: \"exit 3\"}}" \
        "{procedures: {deps: {run: \"$(note deps)\", when: \"before\"}}}"
    exits 1 bad
    : >"$LOG"
    exits 1
    was first=- bad=reused
    [ ! -s "$LOG" ]
    exits 1 --keep-going
    was first=ran bad=reused
}

@test "E6: a running one is left to its end when another fails; it is evidence" {
    config "{slow: {run: \"$(asleep)\"}, bad: {run: \"until [ -e $SANDBOX/waits ]; do sleep 0.02; done; : >$SANDBOX/go; exit 1\"}, late: {run: \"true\", needs: [\"slow\"]}}"
    exits 1 --jobs 2
    was slow=ran bad=ran late=-
    [ "$(ended_as slow)" = passed ]
    exits 1 --keep-going
    was slow=reused bad=reused late=ran
}

@test "E6: names: what they need and nothing else; a partial Proof; --rerun with a name" {
    config "{a: {run: \"$(note a)\"}, b: {run: \"$(note b)\", needs: [\"a\"]}, c: {run: \"$(note c)\"}}"
    exits 0 b
    [ "$(doc '[.producers[].name] | join(" ")')" = "a b" ]
    run tenure verify
    assert_exit 1
    tenure verify -q --partial
    exits 0
    was a=reused b=reused c=ran
    tenure verify -q
    : >"$LOG"
    exits 0 --rerun c
    was c=ran
    [ "$(grep -c ^begin "$LOG")" = 1 ]
    # Its Proof is a partial one; the complete one is not lost by it.
    exits 0
    proved_already
    tenure verify -q
    exits 2 d
    says "d"
    exits 0 a a
    exits 2 bb
}

@test "E6: procedures before and after: in order of the file, under the lease, and no evidence" {
    config "{p: {run: \"$(note p)\"}}" "{procedures: {
        last: {run: \"$(note last)\", when: \"after\"}, one: {run: \"$(note one)\", when: \"before\"},
        two: {run: [\"/bin/sh\", \"-c\", \"$(note two); [ -n \\\"\$TENURE_ATTEMPT\\\" ]\"], when: \"before\"}}}"
    exits 0
    [ "$(grep ^begin "$LOG" | tr '\n' ' ')" = "begin one begin two begin p begin last " ]
    [ "$(evidence_count)" = 1 ]
    # Nothing has to run: nor do they.
    echo more >>hello.txt
    commit_all
    config "{p: {run: \"$(note p)\", inputs: [\"hello.txt\"]}}" "{procedures: {one: {run: \"$(note one)\", when: \"before\"}}}"
    exits 0
    touch other
    commit_all
    : >"$LOG"
    exits 0
    was p=reused
    [ ! -s "$LOG" ]
}

@test "E6: a procedure that fails stops the run, names itself, and is run again next time" {
    config "{p: {run: \"$(note p)\"}}" "{procedures: {deps: {run: \"$(note deps); [ -e $SANDBOX/ok ]\", when: \"before\"}}}"
    exits 1
    says deps
    was p=-
    : >"$SANDBOX/ok"
    exits 0
    was p=ran
    rm "$SANDBOX/ok"
    config "{p: {run: \"$(note p) # 2\"}}" "{procedures: {tidy: {run: \"[ -e $SANDBOX/ok ]\", when: \"after\"}}}"
    exits 1
    says tidy
    was p=ran
    [ "$(doc .proof)" = null ]
    # One that takes too long is stopped.
    config "{p: {run: \"true\"}}" '{procedures: {deps: {run: "sleep 60", when: "before", timeout: "200ms"}}}'
    exits 1
    says deps
}

@test "E6: --dirty runs everything, on what lies there, and leaves neither evidence nor Proof" {
    config "{a: {run: \"$(note a); cat hello.txt >$SANDBOX/saw\"}, b: {run: \"$(note b)\", needs: [\"a\"]}}"
    exits 0
    proofs=$(proof_count) evidence=$(evidence_count)
    echo dirt >hello.txt
    exits 2
    : >"$LOG"
    exits 0 --dirty
    was a=ran b=ran
    [ "$(<"$SANDBOX/saw")" = dirt ]
    [ "$(doc .proof)" = null ]
    [ "$(proof_count)" = "$proofs" ]
    [ "$(evidence_count)" = "$evidence" ]
    before a b
    config "{a: {run: \"exit 4\"}}"
    echo dirt >>hello.txt
    exits 1 --dirty
    git checkout -q hello.txt
    exits 1
    was a=ran # the dirty failure is not reused
    run tenure done --dirty
    assert_exit 1
    assert_says dirty
}

@test "E6: 300 producers in a chain, and 300 side by side" {
    chain=$(jq -n -c '[range(300)] | map({key: "p\(.)", value: ({run: ["/bin/true"]} + (if . > 0 then {needs: ["p\(. - 1)"]} else {} end))}) | from_entries')
    config "$chain"
    plan=$(tenure done --json --dry-run)
    [ "$(jq '.plan | length' <<<"$plan")" = 300 ]
    wide=$(jq -n -c '[range(300)] | map({key: "p\(.)", value: {run: ["/bin/true"]}}) | from_entries')
    config "$wide"
    [ "$(tenure done --json --dry-run | jq '.plan | length')" = 300 ]
}
