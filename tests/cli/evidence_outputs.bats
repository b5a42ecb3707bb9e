#!/usr/bin/env bats
# Outputs that other producers need, and what the key is made of as far as the tree goes. A Proof stands although
# outputs are gone, so the dependent is made to run in each of these.

load helpers
load evidence

setup() {
    sandbox
    repository
    printf '/out/\n' >.gitignore
    mkdir src
    echo one >src/one
    echo two >src/two
    config "{
        build: {run: \"mkdir -p out && cat src/one >out/lib && echo x >>$SANDBOX/build.ran\", inputs: [\"src/one\"], outputs: [\"out/lib\"]},
        use: {run: \"cat out/lib >/dev/null && echo x >>$SANDBOX/use.ran\", inputs: [\"src/two\"], needs: [\"build\"]}}"
    exits 0
    was build=ran use=ran
}
teardown() { sandbox_end; }

# The dependent's own input changes, so it runs, and its need is looked at.
touch_use() {
    echo "$RANDOM$RANDOM" >>src/two
    commit_all
}
makes_build_run() {
    touch_use
    exits 0
    was build=ran use=ran
    [ "$(cat out/lib)" = one ]
}

@test "E5: outputs that are as they were: the need is reused" {
    touch_use
    exits 0
    was build=reused use=ran
}

@test "E5: a deleted output is made again for the one that needs it" {
    rm out/lib
    makes_build_run
}

@test "E5: an edited output is made again" {
    echo other >out/lib
    makes_build_run
}

@test "E5: an output edited to the same length, with its time restored, is made again" {
    touch -r out/lib "$SANDBOX/time"
    printf 'eno\n' >out/lib
    touch -r "$SANDBOX/time" out/lib
    makes_build_run
}

@test "E5: an output of another mode is made again" {
    chmod 600 out/lib
    touch_use
    exits 0
    was build=ran
}

@test "E5: an output replaced by a link to the same bytes is made again" {
    mv out/lib out/real && ln -s real out/lib
    sed -i 's/mkdir -p out/rm -rf out; &/' tenure.json
    touch_use
    rm -rf out && mkdir out && echo one >out/real && ln -s real out/lib
    exits 0
    was build=ran use=ran
    # And by another file of the same bytes it is not: the digest is what counts.
    mv out/lib out/moved && cp out/moved out/lib && rm out/moved
    touch_use
    exits 0
    was build=reused use=ran
}

@test "E5: an output that is a pipe, or lies below a link that leads elsewhere, is no output" {
    mkdir "$SANDBOX/elsewhere"
    echo one >"$SANDBOX/elsewhere/lib"
    rm -rf out
    ln -s "$SANDBOX/elsewhere" out
    printf '/out\n' >.gitignore
    touch_use
    exits 1
    was build=ran use=-
    [[ $(ended_as build) == output-* ]]
    says out/lib
    [ "$(proof_count)" = 1 ]
    # It was the checkout's fault, so another run is asked for.
    rm out
    exits 0 --rerun
    config '{build: {run: "mkdir -p out; rm -f out/lib; mkfifo out/lib", outputs: ["out/lib"]}}'
    exits 1
    [[ $(ended_as build) == output-* ]]
}

@test "E5: along a chain only what is needed is made again" {
    config "{
        a: {run: \"mkdir -p out; echo a >out/a; echo a >>$SANDBOX/made\", inputs: [\"src/one\"], outputs: [\"out/a\"]},
        b: {run: \"cat out/a >out/b; echo b >>$SANDBOX/made\", inputs: [\"src/one\"], needs: [\"a\"], outputs: [\"out/b\"]},
        c: {run: \"cat out/b; echo c >>$SANDBOX/made\", inputs: [\"src/two\"], needs: [\"b\"]}}"
    exits 0
    rm out/a
    touch_use
    exits 0
    was a=reused b=reused c=ran
    rm out/b
    touch_use
    exits 0
    was a=ran b=ran c=ran
    rm out/b
    touch_use
    exits 0
    was a=reused b=ran c=ran
    [ "$(tr -d '\n' <"$SANDBOX/made")" = abccabcbc ]
}

@test "E5: what nobody needs may be gone: the Proof stands, and evidence is reused" {
    rm -rf out
    exits 0
    proved_already
    [ "$(doc .proof.id)" != null ]
    # Another commit that neither depends on: both are reused, although the output is gone.
    echo more >>hello.txt
    commit_all
    exits 0
    was build=reused use=reused
    [ ! -e out ]
    # To have it made anew there is --rerun with its name.
    exits 0 --rerun build
    was build=ran
    [ -e out/lib ]
}

@test "E5: of equal outputs after a change the dependent is cut off early" {
    sed -i 's/mkdir -p out/true \&\& &/' tenure.json # another command, equal outputs
    commit_all
    [ "$(plan_of use)" = ran ] # it cannot be known before
    exits 0
    was build=ran use=reused
    [ "$(ran_times "$SANDBOX/build.ran")" = 2 ]
    [ "$(ran_times "$SANDBOX/use.ran")" = 1 ]
    # Other outputs: not.
    echo uno >src/one
    commit_all
    exits 0
    was build=ran use=ran
    # And back: both are known, but the output on the disk is the other one; nobody who runs needs it.
    echo one >src/one && echo more >>hello.txt
    commit_all
    exits 0
    was build=reused use=reused
}

@test "E5: a declared output that is not made is no pass" {
    config '{build: {run: "true", outputs: ["out/never"]}, use: {run: "true", needs: ["build"]}}'
    exits 1
    was build=ran use=-
    [ "$(ended_as build)" = output-missing ]
    says out/never
    config '{a: {run: "true", artifacts: ["out/report"]}}'
    exits 1
    [ "$(ended_as a)" = output-missing ]
}

@test "E5: it is not called passed before its outputs were looked at" {
    config '{build: {run: "true", outputs: ["out/never"]}, sound: {run: "true", needs: []}}'
    run tenure done -k
    assert_exit 1
    assert_says 'did not make out/never' 'sound: passed'
    [[ $output != *'build: passed'* ]]
    journal=$(tenure journal list --json | jq -r '.journals[0].path')
    [ "$(grep -ac '"kind":"finished".*"build".*"output-missing"' "$journal")" = 1 ]
    [ "$(grep -a '"build"' "$journal" | grep -oE '"kind":"(finished|evidence)"' | tr '\n' ' ')" = \
        '"kind":"finished" "kind":"evidence" ' ]
}

@test "E5: what it was made from changed: that is in the record, and not a pass" {
    config '{build: {run: "echo more >>src/one", inputs: ["src/one"]}}'
    run tenure done
    assert_exit 6
    assert_says 'inputs were written to' src/one
    [ "$(tenure log --json | jq -r '.attempts[0].state')" = failed ]
    [[ $output != *'build: passed'* ]]
}

@test "E5: an output that git does not ignore is named with the line for .gitignore" {
    config '{build: {run: "echo x >made.txt", outputs: ["made.txt"]}}'
    exits 6
    says made.txt
    exits 2
    says '/made.txt' .gitignore
    printf '/made.txt\n' >>.gitignore
    commit_all
    exits 0
}

@test "E5: all inputs deleted, a dotfile added, a file renamed with equal content: other keys" {
    config '{all: {run: "true"}, some: {run: "true", inputs: ["src/**"]}}'
    exits 0
    first=$(doc '.producers[] | select(.name == "some").key')
    git mv src/one src/uno && commit_all
    exits 0
    was some=ran all=ran
    [ "$(doc '.producers[] | select(.name == "some").key')" != "$first" ]
    echo dot >src/.hidden && commit_all
    exits 0
    was some=ran all=ran
    mkdir src/sub && git mv src/uno src/sub/uno && commit_all
    exits 0
    was some=ran
    # An input that matches nothing any more is refused, not taken for an empty one.
    git rm -rq src && commit_all
    exits 2
    says 'src/**' 'matches no file'
    # The first tree again: known.
    git checkout -q HEAD~4 -- src
    echo more >>hello.txt
    commit_all
    exits 0
    was some=reused
}

@test "E5: a producer that changes another's output before a third uses it: exit 6, and no evidence for the third" {
    config "{
        a: {run: \"mkdir -p out && echo a >out/a\", outputs: [\"out/a\"]},
        b: {run: \"echo b >out/a\", needs: [\"a\"]},
        c: {run: \"grep -q a out/a\", needs: [\"a\", \"b\"]}}"
    before=$(proof_count)
    exits 6
    says out/a
    [ "$(proof_count)" = "$before" ]
    [ "$(db "SELECT count(*) FROM evidence WHERE producer = 'c'")" = 0 ]
}
