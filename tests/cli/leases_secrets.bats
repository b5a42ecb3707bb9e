#!/usr/bin/env bats
# No token, no key, no secret of the environment is to be seen anywhere but in the memory of those who need it.

load helpers
load leases

setup() {
    sandbox
    repository
    FIND=${HELPERS:?}/find_secret
    mkdir "$SANDBOX/seen"
}
teardown() { sandbox_end; }

seed() { openssl pkey -in "$1" -outform DER | tail -c 32 | od -An -v -tx1 | tr -d ' \n'; }
digests() { db "SELECT lower(hex(token_digest)) FROM attempt"; }

# Everything that others could read while a run goes on: process lists, environments, command lines, open files.
look_around() {
    local process place
    ps -eww -o pid,args >"$SANDBOX/seen/ps.$1"
    ps eww -e >"$SANDBOX/seen/ps-environ.$1"
    for process in /proc/[0-9]*; do
        for place in environ cmdline; do
            tr '\0' '\n' 2>/dev/null <"$process/$place" | grep -qF "$SANDBOX" &&
                cat "$process/$place" >"$SANDBOX/seen/$place.${process#/proc/}.$1" 2>/dev/null
        done
    done
    true
}

# Everything that was written.
everything() {
    find "$XDG_STATE_HOME" "$SANDBOX/seen" "$REPO/.git" "$TMPDIR" -type f
    find "$SANDBOX" -maxdepth 1 -type f
}

@test "the search finds what it looks for, in every form" {
    read -r token digest < <("$FIND" make)
    bytes() { sed 's/../\\x&/g' <<<"$1" | tr -d '\n'; }
    printf "$(bytes "$token")" >raw
    printf "ab$(bytes "$token")cd" >inside
    printf 'x%sx' "${token^^}" >hex
    base64 -w0 <raw >base64
    base64 -w0 <inside >base64-inside
    (printf a; cat raw) | base64 -w0 >base64-odd
    base64 -w0 <raw | tr '+/' '-_' | tr -d = >base64-url
    for form in raw inside hex base64 base64-inside base64-odd base64-url; do
        run "$FIND" token "$digest" -- "$form"
        assert_exit 1
        run "$FIND" bytes "$token" -- "$form"
        assert_exit 1
    done
    run "$FIND" token "$digest" -- hello.txt
    assert_exit 0
}

@test "no token, no key and no secret of the environment is written or shown" {
    export UNDECLARED_SECRET=undeclared-7f3a DECLARED_SECRET=declared-9b2c PGPASSWORD=password-1d4e
    export NOTIFY_SOCKET=/nowhere/notify-5c6d WATCHDOG_USEC=60000000 GITHUB_TOKEN=github-8e9f
    # The producer shows all that it has: that is what anybody could see through it.
    jq -n --arg run "env >'$SANDBOX/seen/producer-env'; ls -l /proc/self/fd >'$SANDBOX/seen/producer-fds'
            tr '\\0' '\\n' </proc/\$PPID/environ >'$SANDBOX/seen/parent-env' || true; $(waits_for "$HOME/go")" \
        '{repository: "test/repository", lease: {ttl: "2s", heartbeat: "500ms"},
          producers: {look: {run: $run, env: ["DECLARED_SECRET"]}, fail: {run: "false"}}}' >tenure.json
    commit_all
    background run "$TENURE" done --json --keep-going --jobs 2
    pid=$PID
    wait_for 30 work_runs look
    wait_for 30 test -s "$SANDBOX/seen/producer-fds"
    look_around during
    "$TENURE" status --json >"$SANDBOX/seen/status.json"
    "$TENURE" status >"$SANDBOX/seen/status"
    "$TENURE" done --json >"$SANDBOX/seen/held.json" || [ $? = 3 ]
    "$TENURE" done >"$SANDBOX/seen/held" 2>&1 || [ $? = 3 ]
    : >"$HOME/go"
    finish run "$pid"
    finished_with 1
    jq '.producers = {look: .producers.look}' tenure.json >new.json && mv new.json tenure.json
    commit_all
    run "$TENURE" done
    assert_exit 0
    run "$TENURE" run --subject s -- true
    assert_exit 0
    "$TENURE" attach "$(db "SELECT journal_handle FROM attempt LIMIT 1")" >"$SANDBOX/seen/attach" 2>&1 || [ $? = 1 ]
    "$TENURE" log --json >"$SANDBOX/seen/log.json"
    "$TENURE" proof >"$SANDBOX/seen/proof"
    "$TENURE" key show >"$SANDBOX/seen/key"
    db .dump >"$SANDBOX/seen/dump"
    mapfile -t files < <(everything)
    mapfile -t digests < <(digests)
    [ ${#digests[@]} = 3 ]
    run "$FIND" token "${digests[@]}" -- "${files[@]}"
    assert_exit 0
    for key in "$XDG_CONFIG_HOME"/tenure/keys/*.key; do
        run "$FIND" bytes "$(seed "$key")" -- "${files[@]}"
        assert_exit 0
        [ "$(stat -c %a "$key")" = 600 ]
    done

    # Of the environment a producer has what it declares, and none of the rest.
    grep -qx DECLARED_SECRET=declared-9b2c "$SANDBOX/seen/producer-env"
    run grep -E 'UNDECLARED|PGPASSWORD|NOTIFY_SOCKET|WATCHDOG|GITHUB_TOKEN|TENURE_(TOKEN|KEY)' "$SANDBOX/seen/producer-env"
    assert_exit 1
    grep -q '^TENURE_ATTEMPT=' "$SANDBOX/seen/producer-env"
    [ "$(grep -c '^TENURE_' "$SANDBOX/seen/producer-env")" = 3 ]
    # 0, 1, 2 and the directory that ls reads.
    [ "$(grep -c ' -> ' "$SANDBOX/seen/producer-fds")" = 4 ]
    # And none of it, declared or not, is in what the program itself wrote or said.
    mapfile -t own < <(find "$XDG_STATE_HOME" -type f; find "$SANDBOX/seen" -name '*.json' -o -name dump -o -name status \
        -o -name held -o -name attach -o -name proof -o -name key; ls "$SANDBOX"/run.*)
    run grep -lE 'undeclared-7f3a|declared-9b2c|password-1d4e|github-8e9f|notify-5c6d' "${own[@]}"
    [ -z "$output" ]
    # The store, the journals and their folders are the owner's alone.
    [ -z "$(find "$XDG_STATE_HOME/tenure" -type f -perm /077)" ]
    [ -z "$(find "$XDG_STATE_HOME/tenure" -type d -perm /077)" ]
}

@test "the address of a store is shown without its password" {
    producers a=true
    local url=postgresql://somebody:password-1d4e@127.0.0.1:1/none command
    for command in "status" "status --json" "done" "done --json" "log" "cancel T-0000-0000" "attach" "store status" "run --subject s -- true"; do
        # shellcheck disable=SC2086
        run timeout 30 "$TENURE" --store "$url" $command
        [ "$status" -ne 0 ]
        [[ $output != *password-1d4e* ]]
        # shellcheck disable=SC2086
        TENURE_STORE=$url run timeout 30 "$TENURE" $command
        [ "$status" -ne 0 ]
        [[ $output != *password-1d4e* ]]
    done
    run grep -rl password-1d4e "$XDG_STATE_HOME"
    [ -z "$output" ]
}
