#!/usr/bin/env bats
# Names and kinds of files that git can hold and a program can stumble over: each enters the key, or the run refuses.

load helpers
load evidence

setup() {
    sandbox
    repository
    config '{all: {run: "true"}, some: {run: "true", inputs: ["odd/**"]}}'
    mkdir odd
    echo base >odd/base
    commit_all
    exits 0
}
teardown() { sandbox_end; }

key() { doc '.producers[] | select(.name == "some").key'; }

# The candidate with one more file, or that file with other bytes, has another key each time.
enters_the_key() { # enters_the_key PATH
    local before after
    before=$(key)
    printf 'first' >"$1"
    commit_all
    exits 0
    was some=ran all=ran
    after=$(key)
    [ "$before" != "$after" ]
    printf 'later' >"$1"
    commit_all
    exits 0
    was some=ran all=ran
    [ "$(key)" != "$after" ]
    # What is not committed is named, whatever the name.
    printf 'dirty' >"$1"
    exits 2
    says 'not the tree of HEAD'
    git checkout -q -- "$1" 2>/dev/null || git checkout -q .
}

@test "E1: a newline in a name" { enters_the_key $'odd/new\nline'; }
@test "E1: quotes, a backslash and a tab in a name" { enters_the_key $'odd/"q\\uo\'te\t'; }
@test "E1: a leading dash" { enters_the_key 'odd/--help'; }
@test "E1: a leading dash at the top, and a name that is magic for a pathspec" {
    for name in '-rf' ':(exclude)odd' ':!odd' '*' '[a]'; do
        printf x >"./$name"
        commit_all
        exits 0
        was all=ran some=reused
    done
}
@test "E1: spaces, at the end too" { enters_the_key 'odd/ a  b '; }
@test "E1: bytes that are no UTF-8" { enters_the_key $'odd/\xff\xfe\x80'; }
@test "E1: control bytes are not sent to the terminal" {
    printf x >$'odd/\e]0;title\a\x9b2J'
    run tenure done
    assert_exit 2
    [[ $output != *$'\e'* && $output != *$'\a'* ]]
    assert_says 'odd/'
}
@test "E1: a name of 255 bytes, and a path of 4000" {
    enters_the_key "odd/$(printf 'n%.0s' {1..255})"
    deep=odd
    for n in {1..19}; do deep+=/$(printf 'd%.0s' {1..200}); done
    mkdir -p "$deep"
    enters_the_key "$deep/file"
}

@test "E1: a loop of links, a link to /, a dangling link, a link to a directory" {
    links=(odd/loop:loop odd/root:/ odd/dangling:nowhere odd/up:.. odd/base2:base)
    for link in "${links[@]}"; do
        before=$(key)
        ln -s "${link#*:}" "${link%%:*}"
        commit_all
        exits 0
        was some=ran all=ran
        [ "$(key)" != "$before" ]
    done
    # Where it leads is what enters, not what is there.
    before=$(key)
    ln -sfn elsewhere odd/dangling
    commit_all
    exits 0
    was some=ran
    [ "$(key)" != "$before" ]
    # Contents behind a link that leads out of the tree are no input.
    ln -s "$SANDBOX/outside" odd/outside
    commit_all
    exits 0
    echo new >"$SANDBOX/outside"
    exits 0
    proved_already
}

@test "E1: a file that becomes executable, and one that becomes a link with the same bytes" {
    before=$(key)
    chmod +x odd/base
    commit_all
    exits 0
    was some=ran
    [ "$(key)" != "$before" ]
    before=$(key)
    printf target >odd/text
    commit_all
    exits 0
    rm odd/text && ln -s target odd/text # the same blob, another mode
    commit_all
    exits 0
    was some=ran
    [ "$(key)" != "$before" ]
}

@test "E1: an empty file, and an empty tree but for the configuration" {
    before=$(key)
    : >odd/empty
    commit_all
    exits 0
    was some=ran
    [ "$(key)" != "$before" ]
    config '{all: {run: "true"}}'
    git rm -rq odd hello.txt
    commit_all
    exits 0
    was all=ran
}

@test "E1: things that git does not hold are named, and are not followed" {
    mkfifo odd/fifo
    exits 0 # git does not see it at all: it is no part of the tree
    rm odd/fifo
    mkdir odd/sub && git -C odd/sub init -q && git -C odd/sub commit -q --allow-empty -m x
    exits 2
    says odd/sub
}
