#!/usr/bin/env bats
# What is refused: exit 2, one clear sentence with what to do, before anything runs, and nothing is changed by it.

bats_require_minimum_version 1.5.0
load helpers
load evidence

setup() {
    sandbox
    repository
    config "{build: {run: \"echo x >>$SANDBOX/ran\"}, test: {run: \"true\"}}"
}
teardown() { sandbox_end; }

# refuse CODE TEXT... -- WORD...: `tenure WORD...` ends so, says each text on standard error alone in at most a sentence
# and a remedy, and neither the store nor the work tree is another afterwards; nor is anything run.
refuse() {
    local code=$1 texts=() before
    shift
    while [ "$1" != -- ]; do texts+=("$1") && shift; done
    shift
    before=$(fingerprint)
    run --separate-stderr tenure "$@"
    # shellcheck disable=SC2154
    [ "$status" -eq "$code" ] && [ -z "$output" ] || {
        echo "exit status $status; out: $output; err: $stderr" >&2
        return 1
    }
    [[ $stderr == *"tenure"* && $(wc -l <<<"$stderr") -le 2 ]] || {
        echo "said: $stderr" >&2
        return 1
    }
    output=$stderr
    assert_says "${texts[@]}" || return 1
    [ "$(fingerprint)" = "$before" ] || {
        echo "the store or the work tree is another: $*" >&2
        return 1
    }
    [ ! -e "$SANDBOX/ran" ] || {
        echo "something ran: $*" >&2
        return 1
    }
}

@test "no command, an unknown one, the nearest suggested" {
    refuse 2 'no command' 'tenure help' --
    refuse 2 "'dnoe'" 'tenure done' -- dnoe
    refuse 2 "'staus'" 'tenure status' -- staus
    refuse 2 'unknown command' 'tenure help' -- xyzzyxyzzy
    refuse 2 'unknown command' -- $'\e[31mred'
    [[ $output != *$'\e'* ]]
    refuse 2 'no such command' -- help nonsense
    refuse 2 'key' 'show' -- key shwo
    refuse 2 'store status' -- store staus
    refuse 2 'journal' -- journal pruen
}

@test "an unknown option, one of another command, one without its value, a value too many" {
    refuse 2 '--rerum' '--rerun' -- done --rerum
    refuse 2 '--ttl' 'tenure run' -- done --ttl 5s
    refuse 2 '--jobs needs a value' -- done --jobs
    refuse 2 '--rerun takes no value' -- done --rerun=yes
    refuse 2 "'0'" '1' -- done --jobs 0
    refuse 2 "'many'" -- done --jobs many
    refuse 2 "'99999999999999999999'" -- done -j 99999999999999999999
    refuse 2 '-x' -- done -x
    refuse 2 'never' -- done --color=nver
    refuse 2 'too many' -- verify a b
    refuse 2 '--store' empty -- --store= status
    refuse 2 'cannot go to' -- -C "$SANDBOX/nowhere" status
}

@test "durations that are none" {
    for bad in '' 5 5x -1s '5 s' 1.s 1e3s 99999999999d 0x5s '5s5' s ' 5s' 5S; do
        refuse 2 --wait -- done "--wait=$bad"
    done
    refuse 2 --older -- journal prune --older 5
    for name in ttl:5 ttl:0s ttl:-1s heartbeat:x; do
        jq -n --arg k "${name%:*}" --arg v "${name#*:}" '{lease: {($k): $v}, producers: {p: {run: "true"}}}' >tenure.json
        refuse 2 'tenure.json:' -- done
    done
    echo '{}' >tenure.json
    refuse 2 '"producers" is missing' 'tenure init' -- done
    echo '{"producers": {"p": {"run": "true", "timeout": "soon"}}}' >tenure.json
    refuse 2 'tenure.json:1:' soon -- done
    echo '{"producers": {"p": {"run": "true", "quiet": 5}}}' >tenure.json
    refuse 2 'tenure.json:1:' -- done
}

@test "names that no producer has" {
    refuse 2 "tset" "test" -- done tset
    refuse 2 'xyzzyxyzzy' -- done build xyzzyxyzzy
    refuse 2 Build build -- done Build
    refuse 2 xyzzyxyzzy 'there is: ' build -- done xyzzyxyzzy
}

@test "not a repository, a bare one, one without a commit, a HEAD that is broken, one that was taken away" {
    mkdir "$SANDBOX/empty" && cd "$SANDBOX/empty"
    refuse 2 'not in a git work tree' 'git init' -C -- done
    refuse 2 'git init' -- init
    git init -q --bare "$SANDBOX/bare" && cd "$SANDBOX/bare"
    refuse 2 'bare' -- done
    cd "$SANDBOX/bare/objects"
    refuse 2 -- done
    git init -q "$SANDBOX/unborn" && cd "$SANDBOX/unborn"
    refuse 2 'commit' -- done
    cd "$REPO"
    cp .git/HEAD "$SANDBOX/HEAD"
    blob=$(git rev-parse HEAD:hello.txt)
    echo nonsense >.git/HEAD
    refuse 2 -- done
    echo 0123456789012345678901234567890123456789 >.git/HEAD
    refuse 2 -- done
    : >.git/HEAD
    refuse 2 -- done
    cp "$SANDBOX/HEAD" .git/HEAD
    echo "$blob" >.git/HEAD
    refuse 2 -- done
    cp "$SANDBOX/HEAD" .git/HEAD
    rm -r .git/objects/"$(git rev-parse 'HEAD^{tree}' | cut -c1-2)"
    refuse 2 -- done
}

@test "a repository of another owner, that git itself refuses" {
    [ "$(id -u)" = 0 ] || skip "only root can give files away"
    chown -R 12345 "$REPO"
    refuse 2 'safe.directory' -- done 2>/dev/null || {
        # git's own advice has several lines; it must be whole, and the exit status the same.
        run tenure done
        assert_exit 2
        assert_says 'dubious ownership' safe.directory
    }
}

@test "no git on the PATH" {
    mkdir "$SANDBOX/bin"
    PATH=$SANDBOX/bin run "$TENURE" done
    assert_exit 2
    assert_says git
}

@test "no configuration, and one that is a folder, a link, or cannot be read" {
    rm tenure.json
    refuse 2 'tenure init' -- done
    mkdir tenure.json
    refuse 2 'tenure.json' -- done
    rmdir tenure.json
    mkfifo tenure.json
    refuse 2 'tenure.json' -- done
}

@test "E7: faults of tenure.json, with line and column" {
    while IFS='|' read -r place text json; do
        printf '%b' "$json" >tenure.json
        refuse 2 "tenure.json:$place: " "$text" -- done || { echo "for: $json" >&2; false; }
    done <<'END'
2:1|duplicate key "a"|{"producers":{"a":{"run":"x"},\n"a":{"run":"y"}}}
2:1|"A"|{"producers":{"a":{"run":"x"},\n"A":{"run":"y"}}}
1:20|"comand" is not a known key|{"producers":{"a":{"comand":"x"}}}
3:2|needs|{"producers":{"b":{"run":"x"},"a":{"run":"x",\n\n "need":["b"]}}}
1:27|empty|{"producers":{"é":{"run": ""}}}
END
}

@test "E7: twins, typing errors, marks and line ends, too much" {
    at() { # at TEXT JSON
        printf '%b' "$2" >tenure.json
        refuse 2 "tenure.json:" "$1" -- done || { echo "for: $2" >&2; return 1; }
        [[ $output =~ tenure.json:[0-9]+:[0-9]+:\  ]]
    }
    at 'duplicate key' '{"producers":{"a":{"run":"x"},"a":{"run":"y"}}}'
    at A '{"producers":{"a":{"run":"x"},"A":{"run":"y"}}}'
    at run '{"producers":{"a":{"run":"x","run":"y"}}}'
    at producers '{"producer":{"a":{"run":"x"}}}'
    at comand '{"producers":{"a":{"comand":"x"}}}'
    at byte-order '\xef\xbb\xbf{"producers":{"a":{"run":"x"}}}'
    at carriage '{"producers":\r\n{"a":{"run":"x"}}}\r\n'
    at 'trailing comma' '{"producers":{"a":{"run":"x",}}}'
    at '' '{"producers":{"a":{"run":"x"}}} // comment'
    at '' "{'producers':{}}"
    at '' '{"producers":{"a":{"run":"x"}}'
    at '' '[]'
    at '' ''
    at '' '{"producers":{"a":{"run":NaN}}}'
    at '' '{"producers":{"a":{"run":"\\u0000"}}}'
    at '' '{"producers":{"a":{"run":"\xff"}}}'
    at empty '{"producers":{"a":{"run":""}}}'
    at empty '{"producers":{"a":{"run":[]}}}'
    at '' '{"producers":{"a":{"run":5}}}'
    at '' '{"producers":{}}'
    at 'out' '{"producers":{"a":{"run":"x","outputs":["out"]},"b":{"run":"x","outputs":["out"]}}}'
    at '..' '{"producers":{"a":{"run":"x","outputs":["../out"]}}}'
    at '' '{"producers":{"a":{"run":"x","outputs":["/out"]}}}'
    at freeze '{"lease":{"on_lapse":"freze"},"producers":{"a":{"run":"x"}}}'
    at before '{"procedures":{"d":{"run":"x","when":"befor"}},"producers":{"a":{"run":"x"}}}'
    printf '{"producers":{"a":{"run":"x","inputs":["nothing/**"]}}}' >tenure.json
    commit_all
    at 'nothing/**' '{"producers":{"a":{"run":"x","inputs":["nothing/**"]}}}'
}

@test "E7: 10 MB of configuration, and brackets without end, are refused at once and cheaply" {
    { printf '{"producers":{"a":{"run":"x","env":['; head -c 10000000 /dev/zero | tr '\0' '['; } >tenure.json
    ( ulimit -v 300000 && refuse 2 tenure.json -- done )
    head -c 20000 /dev/zero | tr '\0' '[' >tenure.json
    ( ulimit -v 300000 && refuse 2 tenure.json: -- done )
}

@test "extractors and standards are not in this version; nor are measure and --detach" {
    jq '.extractors = {c: {from: "test", run: "x"}}' tenure.json >t && mv t tenure.json
    refuse 2 'tenure.json:' 'not in this version' -- done
    git checkout -q tenure.json
    jq '.extractors = {c: {from: "test", run: "x"}} | .standards = {s: {extractor: "c", metric: "lines", direction: "up", limit: 80}}' tenure.json >t && mv t tenure.json
    refuse 2 'not in this version' -- done
    git checkout -q tenure.json
    refuse 2 '--detach is not in this version' attach -- done --detach
    refuse 2 measure 'not in this version' -- measure
}

@test "dirty kinds, each named with what to do" {
    echo x >>hello.txt
    refuse 2 'hello.txt (modified)' commit -- done
    git add hello.txt
    refuse 2 'hello.txt (staged)' unstage -- done
    git reset -q --hard
    touch new
    refuse 2 'new (untracked)' .gitignore -- done
    rm new
    git update-index --assume-unchanged hello.txt
    refuse 2 assume-unchanged --no-assume-unchanged -- done
    git update-index --no-assume-unchanged hello.txt
    git update-index --skip-worktree hello.txt
    refuse 2 skip-worktree --no-skip-worktree -- done
    git update-index --no-skip-worktree hello.txt
    touch {1..30}
    refuse 2 'and 20 more' -- done
}

@test "the key: missing, open to others, a link, a folder, nonsense, several and none is the default" {
    keys=$XDG_CONFIG_HOME/tenure/keys
    chmod 640 "$keys/default.key"
    refuse 2 'open to others' 'chmod 600' -- done
    chmod 600 "$keys/default.key"
    chmod 777 "$keys"
    refuse 2 'written by others' 'chmod 700' -- done
    chmod 700 "$keys"
    mv "$keys/default.key" "$SANDBOX/key" && ln -s "$SANDBOX/key" "$keys/default.key"
    refuse 2 'symbolic link' -- done
    rm "$keys/default.key" && mkdir "$keys/default.key"
    refuse 2 'regular file' -- done
    rmdir "$keys/default.key"
    refuse 2 'no signing key' 'tenure init' -- done
    cp -p "$SANDBOX/key" "$keys/one.key" && cp -p "$SANDBOX/key" "$keys/two.key"
    refuse 2 'none is default.key' -- done
    rm -r "$keys"
    refuse 2 'no signing key' 'tenure key new' -- done
    # Without a Proof there is no need for one.
    tenure done --dirty -q
}

@test "the key: nonsense in its file is told before anything runs" {
    keys=$XDG_CONFIG_HOME/tenure/keys
    head -c 300 /dev/zero >"$keys/default.key"
    refuse 2 'Ed25519' -- done
}

@test "the key: of another owner" {
    [ "$(id -u)" = 0 ] || skip "only root can give files away"
    chown 12345 "$XDG_CONFIG_HOME/tenure/keys/default.key"
    refuse 2 'belongs to user 12345' -- done
    chown -R 12345 "$XDG_CONFIG_HOME/tenure/keys"
    refuse 2 'belongs to user 12345' -- done
}

@test "the store: corrupt, newer, of another program, of another machine, a URL that is none" {
    tenure done -q
    rm -f "$SANDBOX/ran"
    commit_more() { echo x >>hello.txt && commit_all; }
    commit_more
    cp "$STORE" "$SANDBOX/good"
    head -c 5000 /dev/urandom >"$STORE"
    refuse 5 "$STORE" -- done
    refuse 5 "$STORE" -- status
    cp "$SANDBOX/good" "$STORE" && db 'PRAGMA user_version = 99'
    refuse 2 'newer' -- done
    refuse 2 'newer' -- store status
    rm "$STORE" && db 'CREATE TABLE somebody (x); PRAGMA user_version = 0'
    run tenure done
    [ "$status" -eq 2 ] || [ "$status" -eq 5 ]
    [ ! -e "$SANDBOX/ran" ]
    [ "$(db .tables)" = somebody ]
    cp "$SANDBOX/good" "$STORE"
    TENURE_TEST_MACHINE_ID=$(printf '5%.0s' {1..32}) refuse 2 'the embedded store of another machine' 'postgresql://' 'another host name' -- done
    refuse 2 'sqlite:' -- --store mysql://x status
    TENURE_STORE=nonsense refuse 2 'nonsense' -- done
    refuse 2 -- --store sqlite: done
    echo 'no database' >"$SANDBOX/plain"
    refuse 5 'no store' 'restore' -- --store "sqlite:$SANDBOX/plain" status
    refuse 5 -- --store "sqlite:$SANDBOX/no/such/folder/x.db" store status || refuse 2 -- --store "sqlite:$SANDBOX/no/such/folder/x.db" store status
}

@test "a state directory that cannot be written" {
    mkdir -p "$XDG_STATE_HOME/tenure"
    chmod 555 "$XDG_STATE_HOME" "$XDG_STATE_HOME/tenure"
    if [ "$(id -u)" = 0 ]; then
        # Root may write everywhere but on what is mounted so.
        unshare -m true 2>/dev/null || skip "no mount namespace"
        run unshare -m sh -c "mount --bind '$XDG_STATE_HOME' '$XDG_STATE_HOME' && mount -o remount,ro,bind '$XDG_STATE_HOME' && exec '$TENURE' done"
    else
        run tenure done
    fi
    [ "$status" -eq 2 ] || [ "$status" -eq 5 ]
    assert_says "$XDG_STATE_HOME"
    [ ! -e "$SANDBOX/ran" ]
}

@test "done inside of done: refused at once, and the outer one tells it" {
    config "{outer: {run: \"$TENURE done --json >$SANDBOX/inner.json; echo \$? >$SANDBOX/inner.rc\"}}"
    exits 0
    [ "$(<"$SANDBOX/inner.rc")" = 2 ]
    [ "$(jq -r .error.message "$SANDBOX/inner.json" | grep -c 'called by a producer')" = 1 ]
    # With the store out of reach of its environment too: it knows it by the store's id.
    config "{outer: {run: \"cd / && $TENURE -C $REPO done --json >$SANDBOX/inner.json; echo \$? >$SANDBOX/inner.rc\"}}"
    exits 0
    [ "$(<"$SANDBOX/inner.rc")" = 2 ]
    # Inside of `tenure run` it is welcome.
    config '{other: {run: "true"}}'
    run tenure run --subject s -- "$TENURE" done
    assert_exit 0
}
