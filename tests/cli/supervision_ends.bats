#!/usr/bin/env bats
# The ways in which work ends, each told apart; what `run` passes on; what an odd parent left us with.

bats_require_minimum_version 1.5.0
load helpers
load leases
load supervision

setup() {
    sandbox
    repository
}
teardown() { sandbox_end; }

@test "S6: each way to end is told apart in the journal, in evidence, in --json and on the screen; none is a pass" {
    mkdir adirectory && echo x >adirectory/file
    echo 'echo no' >notexecutable
    printf '#!/no/such/interpreter\n' >badinterpreter
    printf '#!/bin/sh\r\necho hi\r\n' >crlf
    chmod +x badinterpreter crlf
    jq -n '{repository: "test/repository", lease: {ttl: "2s", heartbeat: "500ms"}, producers: {
        killed: {run: "kill -9 $$"}, segv: {run: "kill -SEGV $$"}, e137: {run: "exit 137"}, e126: {run: "exit 126"},
        missing: {run: ["nosuchcommand"]}, indirect: {run: "nosuchcommand"}, directory: {run: ["./adirectory"]},
        notexecutable: {run: ["./notexecutable"]}, badinterpreter: {run: ["./badinterpreter"]}, crlf: {run: ["./crlf"]},
        slow: {run: "sleep 600", timeout: "300ms"}, silent: {run: "echo x; sleep 600", quiet: "300ms"}}}' >tenure.json
    commit_all
    run timeout 120 "$TENURE" done --keep-going --jobs 4
    assert_exit 1
    cat >"$HOME/expected" <<'END'
badinterpreter not-started - - its #! line names /no/such/interpreter, which does not exist
crlf not-started - - the line ends in CR LF
directory not-started - - it is a directory
e126 failed 126 - exited with status 126
e137 failed 137 - exited with status 137
indirect failed 127 - exited with status 127
killed signalled - 9 ended by SIGKILL
missing not-started - - there is no such program on PATH
notexecutable not-started - - it is not executable
segv signalled - 11 ended by SIGSEGV
silent quiet - 15 printed nothing for 300 ms
slow timed-out - 15 did not end within 300 ms
END
    local screen=$output document
    document=$("$TENURE" done --keep-going --jobs 4 --json --rerun) && return 1
    while read -r name verdict exit signal words; do
        # The screen says in a sentence what the journal of that run has as a word:
        grep -F "$name: failed" <<<"$screen" | grep -qF -- "$words"
        records_of "$(db "SELECT id FROM attempt ORDER BY fence LIMIT 1")" | jq -es --arg n "$name" --arg v "$verdict" --arg e "$exit" \
            --arg s "$signal" --arg w "$words" 'map(select(.kind == "finished" and .producer == $n)) | length == 1 and (.[0] |
            .verdict == $v and (.text | contains($w)) and ($e == "-" or (.exit_code | tostring) == $e) and
            ($s == "-" or (.signal | tostring) == $s))' >/dev/null
        # Evidence:
        [ "$(db "SELECT count(*) FROM evidence WHERE producer = '$name' AND verdict = '$verdict' AND passed = 0")" = 2 ]
        # And the document:
        jq -e --arg n "$name" --arg v "$verdict" --arg e "${exit/-/null}" --arg s "${signal/-/null}" --arg w "$words" \
            '.producers[] | select(.name == $n) | .verdict == $v and (.exit | tostring) == $e and
            (.signal | tostring) == $s and (.text | contains($w))' <<<"$document" >/dev/null
    done <"$HOME/expected"
    [ "$(db "SELECT count(*) FROM proof")" = 0 ]
    none_marked
}

@test "S6: a status is a command's own: run passes on 0 to 255" {
    local status
    for status in 0 1 2 3 42 70 122 123 124 125 126 127 128 129 137 143 200 254 255; do
        got=0
        timeout 60 "$TENURE" run --subject s -- sh -c "exit $status" || got=$?
        [ $got = "$status" ]
        [ "$(field state)" = "$([ "$status" = 0 ] && echo passed || echo failed)" ]
    done
}

@test "S6: a command that a signal ended is 128+n" {
    local signal
    for signal in HUP INT QUIT ABRT KILL SEGV PIPE ALRM TERM USR1; do
        run timeout 60 "$TENURE" run --subject s -- sh -c "ulimit -c 0; kill -$signal \$\$; sleep 60"
        assert_exit $((128 + $(kill -l $signal)))
        has_ended failed command-failed
    done
}

@test "S6: run's own failures are 122 to 127, and none is taken for the command's" {
    printf '#!/no/such/interpreter\n' >bad && chmod +x bad
    run -127 "$TENURE" run --subject s -- nosuchcommand
    assert_says "cannot start nosuchcommand: there is no such program on PATH" "install it"
    run -127 "$TENURE" run --subject s -- /no/such/file
    assert_says /no/such/file
    for command in . ./hello.txt ./bad; do
        run "$TENURE" run --subject s -- "$command"
        assert_exit 126
    done
    [ "$(db "SELECT count(*) FROM attempt WHERE state = 'failed' AND reason_code = 'not-started'")" = 5 ]
    run "$TENURE" run -- true
    assert_exit 122
    run "$TENURE" run --subject s --ttl 1s -- true
    assert_exit 122
    run "$TENURE" run --subject s --store sqlite:/proc/nowhere/x.db -- sh -c ': >"$HOME/ran"'
    [ "$status" = 122 ] || [ "$status" = 125 ]
    [ ! -e "$HOME/ran" ]
}

@test "S6: a held subject is 123, or what --held-exit says" {
    background holder "$TENURE" run --subject s -- sleep 600
    wait_for 60 running
    for want in 123 0 75; do
        run "$TENURE" run --subject s --held-exit $want -- sh -c ': >"$HOME/ran"'
        assert_exit $want
        assert_says "held by" "tenure attach $(handle_of "$(newest)")"
    done
    run "$TENURE" run --subject s -- true
    assert_exit 123
    [ ! -e "$HOME/ran" ]
    # Cancelled by another: 124.
    "$TENURE" cancel "$(newest)"
    finish holder "$PID" 60
    finished_with 124
}

@test "S6: a stop of the command is no end of it, and its output and input are its own" {
    run timeout 60 "$TENURE" run --subject s -- sh -c '(sleep 0.2; kill -CONT $$) & kill -STOP $$; wait; exit 8'
    assert_exit 8
    head -c 300000 /dev/urandom >"$HOME/bytes"
    "$TENURE" run --subject s -- cat <"$HOME/bytes" >"$HOME/copy" 2>"$HOME/err"
    cmp "$HOME/bytes" "$HOME/copy"
    [ ! -s "$HOME/err" ]
}

@test "S9: SIGCHLD and SIGPIPE ignored, TERM blocked, 32 descriptors: same results, and producers get defaults" {
    producers ok='grep -E "^Sig(Blk|Ign)" /proc/self/status; ulimit -n; (exit 3); echo "status $?"; yes | head -n 1; ls /proc/self/fd | tr "\n" " "' \
        red='exit 9' gone='kill -9 $$'
    local hard
    for hard in H S; do
        run bash -c "ulimit -$hard$([ $hard = H ] && echo S)n 32; exec '$HELPERS/launch' -i $(kill -l CHLD) -i $(kill -l PIPE) \
            -i $(kill -l TTOU) -b $(kill -l TERM) -b $(kill -l USR1) '$TENURE' done --keep-going --jobs 3 --rerun --json 3>&- 4>&- 10<&-"
        assert_exit 1
        [ "$(jq -r '.producers[] | "\(.name) \(.verdict) \(.exit) \(.signal)"' <<<"$output" | sort | tr '\n' ',')" = \
            "gone signalled null 9,ok passed 0 null,red failed 9 null," ]
        [ "$(tr '\n\t' ', ' <"$(log_of ok)")" = \
            "SigBlk: 0000000000000000,SigIgn: 0000000000000000,32,status 3,y,0 1 2 3 " ]
    done
}

@test "S9: TERM that was blocked when we came still stops a command" {
    background run "$HELPERS/launch" -i "$(kill -l CHLD)" -b "$(kill -l TERM)" "$TENURE" run --subject s -- \
        sh -c ': >"$HOME/up"; sleep 600'
    wait_for 60 test -e "$HOME/up"
    kill -TERM "$PID"
    finish run "$PID" 120
    finished_with 143
    has_ended cancelled signal
    none_marked
}

@test "S9: descriptors that were left open reach nobody" {
    producers a='ls /proc/self/fd | tr "\n" " "'
    run "$HELPERS/launch" -o 3 -o 7 -o 11 -o 100 "$TENURE" done
    assert_exit 0
    [ "$(<"$(log_of a)")" = "0 1 2 3 " ]
    run "$HELPERS/launch" -o 3 -o 7 "$TENURE" run --subject s -- sh -c 'ls /proc/self/fd | tr "\n" " "'
    assert_exit 0
    [ "$output" = "0 1 2 3 " ]
}

@test "S6: the store lost the attempt under the work: nothing is claimed, and nothing is called refused that has run" {
    producers one="$(waits_for "$HOME/go")"
    background run "$TENURE" done
    wait_for 60 work_runs one
    db "PRAGMA foreign_keys = OFF; DELETE FROM subject; DELETE FROM attempt"
    : >"$HOME/go"
    finish run "$PID" 60
    finished_with 5
    [[ "$OUT $ERR" == *"the store that attempt "*" was begun in is there no more"* ]]
}
