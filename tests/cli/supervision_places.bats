#!/usr/bin/env bats
# Arguments too long, files too many, and work directories that are not what they were.

load helpers
load leases
load supervision

setup() {
    sandbox
    repository
}
teardown() { sandbox_end; }

kilobytes() { head -c "$1" /dev/zero | tr '\0' "${2:-x}"; }

@test "S8: 200,000 input files" {
    mkdir many
    (cd many && seq 200000 | xargs touch)
    producers count='ls many | wc -l'
    jq '.lease = {ttl: "12s"}' tenure.json >"$SANDBOX/t" && cp "$SANDBOX/t" tenure.json && commit_all
    run timeout 240 "$TENURE" done
    assert_exit 0
    [ "$(<"$(log_of count)")" = 200000 ]
    run timeout 240 "$TENURE" done
    assert_exit 0
    assert_says "nothing to do"
    # One of them, and the tree is another.
    echo x >many/77777
    run timeout 240 "$TENURE" done
    assert_exit 2
    assert_says many/77777
}

@test "S8: the longest value that the kernel passes is passed on; a longer argument is a named verdict" {
    local value
    value=$(kilobytes 131000)
    jq -n '{repository: "test/repository", producers: {long: {run: "echo ${#LONG}", env: ["LONG"]}}}' >tenure.json
    commit_all
    LONG=$value run "$TENURE" done
    assert_exit 0
    [ "$(<"$(log_of long)")" = 131000 ]
    LONG=$value run "$TENURE" run --subject s -- sh -c 'echo "${#LONG} ${#1}"' - "$value"
    assert_exit 0
    [ "${lines[-1]}" = "131000 131000" ]
    kilobytes 131072 >"$HOME/long"
    jq -n --rawfile long "$HOME/long" '{repository: "test/repository", producers: {long: {run: ("echo " + $long)},
        list: {run: ["echo", $long]}, fits: {run: ("test " + $long[:131000])}}}' >tenure.json
    commit_all
    run "$TENURE" done --keep-going
    assert_exit 1
    verdict_is long not-started
    verdict_is list not-started
    verdict_is fits passed
    assert_says "long: failed after" "and the kernel allows 131071 for one" "pass it in a file"
}

# A run in the repository whose work waits, then writes where it is.
begin() {
    producers work="$(waits_for "$HOME/go"); pwd >\"\$HOME/where\"; echo written >>written 2>/dev/null; true"
    background run "$TENURE" -C "$REPO" done
    wait_for 60 work_runs work
}
moved() { # moved WORDS: the end is exit 6, with these words and a named verdict
    : >"$HOME/go"
    finish run "$PID" 120
    finished_with 6
    has_ended failed tree-moved
    [[ $OUT$ERR == *"$1"* ]] || { echo "$OUT $ERR" >&2; return 1; }
    [ "$(db "SELECT count(*) FROM proof")" = 0 ]
    [ "$(db "SELECT count(*) FROM evidence WHERE passed = 1 AND reusable = 1")" = 0 ]
    none_marked
}

@test "S8: the work directory is deleted during the run" {
    begin
    rm -rf "$REPO"
    moved "the work tree was deleted while it was being proved"
    [ ! -e "$REPO" ]
}

@test "S8: the repository is renamed during the run" {
    begin
    mv "$REPO" "$REPO.renamed"
    moved "$REPO"
    [ ! -e "$REPO" ]
}

@test "S8: the root is replaced by a link to another repository: never the other one" {
    cp -a "$REPO" "$SANDBOX/other"
    begin
    mv "$REPO" "$REPO.was"
    ln -s "$SANDBOX/other" "$REPO"
    moved "another directory stands in its place"
    [ ! -e "$SANDBOX/other/written" ]
    [ -z "$(git -C "$SANDBOX/other" status --porcelain)" ]
}

@test "S8: the root is replaced between two producers: the second does not start" {
    producers one="$(waits_for "$HOME/go")" two=': >"$HOME/two"'
    jq '.producers.two.needs = ["one"]' tenure.json >"$SANDBOX/t" && cp "$SANDBOX/t" tenure.json && commit_all
    cp -a "$REPO" "$SANDBOX/other"
    background run "$TENURE" -C "$REPO" done
    wait_for 60 work_runs one
    mv "$REPO" "$REPO.was"
    ln -s "$SANDBOX/other" "$REPO"
    : >"$HOME/go"
    finish run "$PID" 120
    finished_with 6
    [ ! -e "$HOME/two" ]
}

@test "S8: a command whose directory was deleted before it starts is refused by name" {
    mkdir "$SANDBOX/gone" && cd "$SANDBOX/gone" && rmdir "$SANDBOX/gone"
    run "$TENURE" run --subject s -- sh -c ': >"$HOME/ran"'
    [ "$status" -ge 122 ] && [ "$status" -le 126 ]
    [ ! -e "$HOME/ran" ]
    assert_says "directory"
}

@test "S8: a stack of 128 KiB is enough, with a deep tree of outputs, too" {
    local deep
    deep=$(printf 'd/%.0s' {1..90})
    producers tree="mkdir -p out/$deep && echo x >out/${deep}x && head -c 2000000 /dev/zero" needy='test -d out'
    jq '.producers.tree.outputs = ["out"] | .producers.needy.needs = ["tree"]' tenure.json >"$SANDBOX/t" && cp "$SANDBOX/t" tenure.json
    echo out >.gitignore
    commit_all
    run sh -c 'ulimit -s 128; "$TENURE" done'
    assert_exit 0
    run sh -c 'ulimit -s 128; for words in status log attach verify proof "done" "store status" "done --rerun" "run --subject x -- true" "journal prune"; do
        "$TENURE" $words || { echo "$words: $?"; exit 1; }; done'
    assert_exit 0
}
