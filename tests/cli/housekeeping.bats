#!/usr/bin/env bats
# What is done beside proving: the first configuration, keys, journals, the store, the log, and an installation.

bats_require_minimum_version 1.5.0
load helpers
load evidence

setup() { sandbox; }
teardown() { sandbox_end; }

project() { # project KIND: a repository that looks like one
    git init -q "$SANDBOX/$1" && cd "$SANDBOX/$1" || return 1
    case $1 in
    make) printf 'all:\n\ttrue\ntest:\n\ttrue\n' >Makefile ;;
    cmake) printf 'cmake_minimum_required(VERSION 3.5)\nproject(x NONE)\n' >CMakeLists.txt ;;
    meson) echo "project('x')" >meson.build ;;
    npm) echo '{"name": "x", "scripts": {"test": "true", "build": "true", "lint": "true"}}' >package.json ;;
    cargo) printf '[package]\nname = "x"\nversion = "0.1.0"\n' >Cargo.toml ;;
    go) printf 'module x\n' >go.mod ;;
    python) printf '[project]\nname = "x"\n' >pyproject.toml && mkdir tests && touch tests/test_x.py ;;
    shell) printf '#!/bin/sh\ntrue\n' >check.sh && chmod +x check.sh ;;
    none) echo text >notes.txt ;;
    esac
}

@test "init: what it writes for each kind of project is accepted, and the next command is told" {
    mkdir "$SANDBOX/bin"
    for tool in make cmake ctest meson ninja npm node cargo go python3 python pytest; do
        [ -x "$(command -v $tool)" ] || { printf '#!/bin/sh\ntrue\n' >"$SANDBOX/bin/$tool" && chmod +x "$SANDBOX/bin/$tool"; }
    done
    export PATH=$PATH:$SANDBOX/bin
    for kind in make cmake meson npm cargo go python shell none; do
        project $kind
        run --separate-stderr tenure init --json
        assert_exit 0
        [ "$(jq -r .config_made <<<"$output")" = true ]
        [ "$(jq -r .found <<<"$output")" = $kind ] || { echo "$kind: $output"; false; }
        jq -e '.producers | length > 0' tenure.json
        commit_all
        done_json --dry-run
        [ "$RC" -eq 0 ] || { echo "$kind: $DOC"; cat tenure.json; false; }
    done
}

@test "init: never overwrites, makes one key, works from a folder below and without a commit" {
    project make
    mkdir -p deep/er
    run tenure -C deep/er init
    assert_exit 0
    assert_says "$SANDBOX/make/tenure.json" 'made a key' 'git add tenure.json' 'tenure done'
    [ "$(stat -c %a "$XDG_CONFIG_HOME/tenure/keys/default.key")" = 600 ]
    [ "$(stat -c %a "$XDG_CONFIG_HOME/tenure/keys")" = 700 ]
    before=$(sha256sum tenure.json "$XDG_CONFIG_HOME/tenure/keys"/*)
    echo '{"mine": 1}' >tenure.json
    run tenure init
    assert_exit 0
    assert_says kept
    [ "$(<tenure.json)" = '{"mine": 1}' ]
    [ "$(sha256sum "$XDG_CONFIG_HOME/tenure/keys"/*)" = "$(tail -n +2 <<<"$before")" ]
    # It is a first run that ends in a Proof.
    rm tenure.json
    tenure init -q
    commit_all
    tenure done -q
    tenure verify -q
}

@test "key: show, new, trust" {
    run tenure key
    assert_exit 2
    assert_says 'tenure init'
    run tenure key new
    assert_exit 0
    assert_says 'ed25519:'
    run tenure key new
    assert_exit 2
    assert_says 'exists already'
    run tenure key show
    assert_exit 0
    assert_says 'BEGIN PUBLIC KEY'
    tenure key show | tail -n +2 | cmp - "$XDG_CONFIG_HOME/tenure/keys/default.pub"
    run ! grep -r PRIVATE <(tenure key show; tenure key show --json)
    run tenure key new laptop
    assert_exit 0
    run tenure key new ../evil
    assert_exit 2
    [ ! -e "$XDG_CONFIG_HOME/tenure/evil.key" ]
    openssl genpkey -algorithm ed25519 | openssl pkey -pubout >"$SANDBOX/theirs.pub"
    run tenure key trust "$SANDBOX/theirs.pub"
    assert_exit 0
    [ "$(find "$XDG_CONFIG_HOME/tenure/trusted" -name '*.pub' | wc -l)" = 1 ]
    openssl genpkey -algorithm rsa 2>/dev/null | openssl pkey -pubout >"$SANDBOX/rsa.pub"
    run tenure key trust "$SANDBOX/rsa.pub"
    assert_exit 2
    run tenure key trust
    assert_exit 2
}

@test "journal: prune removes finished ones beyond those to keep, never a running one" {
    repository
    config "{p: {run: \"true\"}}"
    for n in 1 2 3; do tenure done -q --rerun; done
    config "{p: {run: \"$(asleep)\"}}"
    background run "$TENURE" done --json
    wait_for 30 test -e "$SANDBOX/waits"
    journals=$XDG_STATE_HOME/tenure/journals
    [ "$(find "$journals" -name journal | wc -l)" = 4 ]
    run tenure journal
    assert_exit 0
    [ "$(wc -l <<<"$output")" = 4 ]
    assert_says running
    run tenure journal prune --keep 0 --dry-run
    assert_says '3 journals would go'
    [ "$(find "$journals" -name journal | wc -l)" = 4 ]
    run tenure journal prune
    assert_says '0 journals removed'
    run tenure journal prune --keep 1
    assert_says removed
    run tenure journal prune --older 0s
    assert_exit 0
    run tenure journal prune --keep 0
    assert_exit 0
    [ "$(find "$journals" -name journal | wc -l)" = 1 ]
    : >"$SANDBOX/go"
    finish run "$PID"
    [ "$RC" -eq 0 ]
    # The store knows the attempts still, and the Proof stands.
    [ "$(tenure log --json | jq '.attempts | length')" = 4 ]
    tenure verify -q
}

@test "store: status without a store makes none; migrate makes it; counts" {
    run tenure store status
    [ ! -e "$STORE" ]
    run tenure store migrate
    assert_exit 0
    [ -s "$STORE" ]
    before=$(sha256sum <"$STORE")
    run tenure store migrate
    assert_exit 0
    [ "$(sha256sum <"$STORE")" = "$before" ]
    repository
    config '{p: {run: "true"}}'
    exits 0
    jq -e '.store | .unfinished == 0 and .ended == 1 and .evidence == 1 and .proofs == 1 and .schema_version == .newest_version' \
        <<<"$(tenure store status --json)"
    run tenure store
    assert_says "$STORE" 'proofs    1'
    [ "$(stat -c %a "$STORE")" = 600 ]
}

@test "log and status: nothing yet, then what there was, newest first" {
    run tenure status
    assert_exit 0
    assert_says 'no unfinished attempt'
    run tenure log
    assert_exit 0
    [ ! -e "$STORE" ]
    repository
    config '{p: {run: "false"}}'
    tenure done -q || true
    config '{p: {run: "true"}}'
    tenure done -q
    run tenure log
    assert_exit 0
    [[ ${lines[0]} == *passed* ]]
    [[ ${lines[1]} == *failed* ]]
    [ "$(tenure log -n 1 | wc -l)" = 1 ]
    [ "$(tenure log --json | jq -r '.attempts | map(.state) | join(" ")')" = 'passed failed' ]
    repository "$SANDBOX/elsewhere"
    [ "$(tenure log --json | jq '.attempts | length')" = 0 ]
    [ "$(tenure log --all --json | jq '.attempts | length')" = 2 ]
}

@test "completions load without an error, and know the commands" {
    folder=$BATS_TEST_DIRNAME/../../docs/completions
    run --separate-stderr bash -c 'set -u; source "$1"; complete -p tenure; COMP_WORDS=(tenure do); COMP_CWORD=1; COMP_LINE="tenure do"; COMP_POINT=9
        f=$(complete -p tenure | sed "s/.*-F \([^ ]*\).*/\1/"); "$f" tenure do tenure; printf "%s\n" "${COMPREPLY[@]}"' - "$folder/tenure.bash"
    assert_exit 0
    assert_says done
    [ -z "$stderr" ]
    if command -v zsh >/dev/null; then
        run --separate-stderr zsh -f -c 'fpath=("$1" $fpath); autoload -Uz compinit && compinit -u -d "$2" && autoload -Uz +X _tenure && print $_comps[tenure]' - "$folder" "$SANDBOX/dump"
        assert_exit 0
        [ "$output" = _tenure ]
        [ -z "$stderr" ]
    fi
    if command -v fish >/dev/null; then
        run --separate-stderr fish --no-config -c 'source $argv[1]; complete -C "tenure do"' "$folder/tenure.fish"
        assert_exit 0
        assert_says done
        [ -z "$stderr" ]
    fi
}

@test "completions know the producers, also of a tree that is being worked on" {
    folder=$BATS_TEST_DIRNAME/../../docs/completions
    repository
    config '{build: {run: "true"}, lint: {run: "false"}}'
    echo more >more
    PATH=$(dirname "$TENURE"):$PATH
    run --separate-stderr bash -c 'source "$1"; COMP_WORDS=(tenure done -k li); COMP_CWORD=3
        _tenure tenure li -k; printf "%s\n" "${COMPREPLY[@]}"' - "$folder/tenure.bash"
    [ "$output" = lint ]
    run --separate-stderr bash -c 'source "$1"; COMP_WORDS=(tenure done build ""); COMP_CWORD=3
        _tenure tenure "" build; printf "%s\n" "${COMPREPLY[@]}"' - "$folder/tenure.bash"
    [ "$output" = $'build\nlint' ]
    if command -v zsh >/dev/null; then
        run --separate-stderr zsh -f -c '_describe() { print -l -- ${(P)4} }; _arguments() { }
            source "$1"; _tenure_producers' - "$folder/_tenure"
        [ "$output" = $'build\nlint' ]
    fi
    if command -v fish >/dev/null; then
        run --separate-stderr fish --no-config -c 'source $argv[1]; complete -C "tenure done li"' "$folder/tenure.fish"
        [ "$output" = $'lint\tProducer' ]
    fi
    # Nothing was run or written.
    [ ! -e "$XDG_STATE_HOME/tenure" ]
}

@test "what init writes names the schema where it is installed to" {
    prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:[A-Z]*=//p' "$(dirname "$TENURE")/CMakeCache.txt")
    repository
    rm -f tenure.json
    tenure init -q
    [ "$(jq -r '."$schema"' tenure.json)" = "file://$prefix/share/tenure/tenure.schema.json" ]
}

@test "init says what the first run would stumble over" {
    repository
    rm -f tenure.json
    touch Cargo.toml
    run tenure init
    assert_exit 0
    assert_says 'next: add /target/ to .gitignore; commit Cargo.lock' 'git add tenure.json .gitignore'
    rm tenure.json
    echo target >.gitignore
    touch Cargo.lock
    run tenure init
    [[ $output != *'add /target/'* && $output != *'commit Cargo.lock'* ]]
}

@test "-n is --dry-run of done and of journal, and the number of log" {
    repository
    config '{p: {run: "touch made"}}'
    run tenure done -n
    assert_exit 0
    assert_says 'run    p'
    run tenure -n done
    assert_exit 0
    [ ! -e made ]
    run tenure journal prune -n --keep 0
    assert_says 'would go'
    run tenure -n 1 log
    assert_exit 0
    run tenure journal prune --older-than 7d
    assert_exit 2
    assert_says 'did you mean --older?'
}

@test "an installation puts every file at its place, and what is installed runs" {
    build=$(dirname "$TENURE")
    DESTDIR=$SANDBOX/root cmake --install "$build" --prefix /usr >"$SANDBOX/install.log"
    root=$SANDBOX/root/usr
    cmp "$TENURE" "$root/bin/tenure" || "$root/bin/tenure" --version
    [ "$("$root/bin/tenure" --version)" = "$("$TENURE" --version)" ]
    source=$BATS_TEST_DIRNAME/../../docs
    for section in 1 3 5 7; do
        for page in "$source"/man/*.$section; do cmp "$page" "$root/share/man/man$section/$(basename "$page")"; done
    done
    cmp "$source/completions/tenure.bash" "$root/share/bash-completion/completions/tenure"
    cmp "$source/completions/_tenure" "$root/share/zsh/site-functions/_tenure"
    cmp "$source/completions/tenure.fish" "$root/share/fish/vendor_completions.d/tenure.fish"
    cmp "$source/tenure.schema.json" "$root/share/tenure/tenure.schema.json"
    for example in "$source"/examples/*; do cmp "$example" "$root/share/doc/tenure/examples/$(basename "$example")"; done
    cmp "$source/../include/tenure.h" "$root/include/tenure.h"
    library=$(find "$root" -name 'libtenure.so.*' -type f)
    [ "$(readlink -f "${library%.so*}.so")" = "$library" ]
    PKG_CONFIG_PATH=$(dirname "$library")/pkgconfig run pkg-config --variable=includedir tenure
    [ "$(readlink -f "$output")" = "$root/include" ]
    # Nothing but the program and an example can be executed, nothing is writable by others, and nothing else was installed.
    [ "$(find "$SANDBOX/root" -type f -perm /111 | sort)" = "$root/bin/tenure"$'\n'"$root/share/doc/tenure/examples/publish.py" ]
    [ -z "$(find "$SANDBOX/root" -perm /022 -not -type l)" ]
    [ "$(find "$SANDBOX/root" -type f | wc -l)" = $((1 + $(find "$source/man" -name '*.[1357]' -type f | wc -l) +
        3 + 1 + $(find "$source/examples" -type f | wc -l) + 3)) ]
}
