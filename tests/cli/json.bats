#!/usr/bin/env bats
# --json: exactly one JSON document on standard output and nothing else there, whatever happens.

bats_require_minimum_version 1.5.0
load helpers
load evidence

setup() {
    sandbox
    repository
    config '{p: {run: "echo out; echo err >&2"}, q: {run: "true", needs: ["p"]}}'
}
teardown() { sandbox_end; }

# one COMMAND OUTCOME EXIT -- WORD...: one document, of this command, outcome and exit status; nothing on standard
# error unless it is a warning of somebody else; DOC is the document.
one() {
    local command=$1 outcome=$2 code=$3
    shift 4
    run --separate-stderr tenure --json "$@"
    # shellcheck disable=SC2154
    DOC=$output
    jq -e -s --arg c "$command" --arg o "$outcome" --argjson e "$code" 'length == 1 and (.[0] | type == "object"
        and .command == (if $c == "-" then null else $c end) and .outcome == $o and .exit == $e)' <<<"$output" >/dev/null &&
        [ "$status" -eq "$code" ] && [ "$(wc -l <<<"$output")" -eq 1 ] && [ -z "$stderr" ] || {
        echo "status $status; out: $output; err: $stderr" >&2
        return 1
    }
}
keys_of() { doc "$1 | keys | join(\" \")"; }

ATTEMPT='fence handle id reason state'
DOCUMENT='attempt candidate command exit outcome pending producers proof standards'
PRODUCER='duration_ms exit key log name signal source text verdict'

@test "every command answers with one document" {
    one done done 0 -- done
    one done done 0 -- done
    one status done 0 -- status
    one status done 0 -- status --all
    one log done 0 -- log
    one log done 0 -- log -n 1
    one proof done 0 -- proof
    one verify done 0 -- verify
    one key done 0 -- key show
    one key done 0 -- key new other
    one store done 0 -- store status
    one store done 0 -- store migrate
    one journal done 0 -- journal
    one journal done 0 -- journal prune --dry-run
    one init done 0 -- init
}

@test "every refusal is one document with an error: code, message, remedy" {
    local words
    while read -r command outcome code words; do
        # shellcheck disable=SC2086
        one "$command" "$outcome" "$code" -- $words
        [ "$(keys_of .error)" = 'code message remedy' ]
        [ "$(doc '.error.message | type')" = string ]
    done <<'END'
- refused 2 dnoe
- refused 2
done refused 2 done --nonsense
done refused 2 done --jobs 0
done refused 2 done --wait=soon
done refused 2 done nobody
done refused 2 done --detach
measure refused 2 measure
init refused 2 init too many
verify refused 2 verify nonsense
proof refused 2 proof nonsense
verify negative 1 verify HEAD
proof negative 1 proof HEAD
key refused 2 key shwo
key refused 2 key trust /nonexistent
key refused 2 key new a/b
store refused 2 store status extra
journal refused 2 journal prune --older soon
attach refused 2 attach T-0000-0000
cancel refused 2 cancel T-0000-0000
status refused 2 status --store nonsense
log refused 2 log -n x
run refused 122 run --subject
END
}

@test "done: the documented fields and no others, when it passes, fails, is refused, and is only planned" {
    one done done 0 -- done
    [ "$(keys_of .)" = "$DOCUMENT" ]
    [ "$(keys_of .attempt)" = "$ATTEMPT" ]
    [ "$(keys_of .candidate)" = 'commit tree' ]
    [ "$(keys_of '.producers[0]')" = "$PRODUCER" ]
    [ "$(keys_of .proof)" = 'id key_id' ]
    jq -e '.attempt.state == "passed" and (.attempt.fence | type) == "number" and (.attempt.handle | test("^T-"))
        and (.producers | map(.name)) == ["p", "q"] and (.producers | all(.source == "ran" and .verdict == "passed"
        and .exit == 0 and .signal == null and (.duration_ms | type) == "number" and (.key | test("^[0-9a-f]{64}$"))))
        and .standards == [] and .pending == null and (.proof.id | test("^[0-9a-f]{64}$"))
        and (.proof.key_id | startswith("ed25519:"))' <<<"$DOC"
    [ "$(cat "$(doc '.producers[0].log')")" = $'out\nerr' ]
    [ "$(doc .candidate.commit)" = "$(git rev-parse HEAD)" ]
    one done done 0 -- done
    [ "$(keys_of .)" = "$DOCUMENT" ]
    [ "$(doc .proof.id)" != null ]
    one done done 0 -- done --dry-run
    [ "$(doc '.plan | length')" = 0 ]

    config '{p: {run: "exit 3"}, q: {run: "kill -9 $$"}}'
    one done done 0 -- done --dry-run
    [ "$(keys_of .)" = 'attempt candidate command exit outcome pending plan producers proof standards' ]
    [ "$(keys_of '.plan[0]')" = 'name reason source' ]
    [ "$(doc .attempt)" = null ]
    one done negative 1 -- done --keep-going
    [ "$(keys_of .)" = "$DOCUMENT" ]
    jq -e '.attempt.state == "failed" and .proof == null and .producers[0].verdict == "failed" and .producers[0].exit == 3
        and .producers[1].signal == 9' <<<"$DOC"
    one done negative 1 -- done
    [ "$(doc '.producers[0].source')" = reused ]

    echo x >>hello.txt
    one done refused 2 -- done
    [ "$(keys_of .)" = 'attempt candidate command error exit outcome pending producers proof standards' ]
    one done negative 1 -- done --dirty
    [ "$(doc .proof)" = null ]
}

@test "done: held has one pending cause with its holder, and how to reconnect" {
    config "{p: {run: \"$(asleep)\"}}"
    background first "$TENURE" done --json
    wait_for 30 test -e "$SANDBOX/waits"
    one done held 3 -- done
    [ "$(keys_of .)" = "$DOCUMENT" ]
    [ "$(keys_of .pending)" = 'attempt cause executor handle lapses_at reconnect renewed_at' ]
    [ "$(keys_of .pending.executor)" = 'host pid started_at user' ]
    jq -e --argjson pid "$PID" '.pending.executor.pid == $pid and (.pending.cause | length > 0)
        and .pending.reconnect == "tenure attach " + .pending.handle and (.pending.lapses_at | test("^20..-.*Z$"))
        and .proof == null' <<<"$DOC"
    [ "$(doc .pending.handle)" = "$(db "SELECT journal_handle FROM attempt")" ]
    one status done 0 -- status
    [ "$(doc '.attempts | length')" = 1 ]
    : >"$SANDBOX/go"
    finish first "$PID"
    [ "$RC" -eq 0 ]
    [ "$(jq -s length <<<"$DOC")" = 1 ]
}

@test "done: cancelled and lost are documents too" {
    config "{p: {run: \"$(asleep)\"}}"
    background run "$TENURE" done --json
    wait_for 30 test -e "$SANDBOX/waits"
    kill -TERM "$PID"
    finish run "$PID"
    [ "$RC" -eq 143 ]
    jq -e '.outcome == "cancelled" and .exit == 143 and .attempt.state == "cancelled"' <<<"$DOC"
    rm "$SANDBOX/waits"
    background run "$TENURE" done --json
    wait_for 30 test -e "$SANDBOX/waits"
    one cancel done 0 -- cancel "$(db "SELECT journal_handle FROM attempt WHERE state = 'running'")"
    finish run "$PID"
    jq -e '.outcome == "lost" and .exit == 4' <<<"$DOC"
}

@test "run: the document follows what the command says only where it can be told apart" {
    run --separate-stderr tenure run --json --subject s -- sh -c 'echo mine'
    [ "$status" -eq 0 ]
    echo "$output" >"$SANDBOX/out"
    # The command's own output goes elsewhere, or there is no document: never both on one stream.
    if grep -q mine "$SANDBOX/out"; then [ "$(<"$SANDBOX/out")" = mine ]; else jq -e -s 'length == 1' "$SANDBOX/out"; fi
}

@test "odd bytes in names and output stay valid JSON" {
    mkdir $'odd\xff\n"dir'
    git -C "$REPO" worktree add -q --detach "$SANDBOX/"$'w\xff"\n'
    cd "$SANDBOX/"$'w\xff"\n'
    one done done 0 -- done
    one status done 0 -- status
    printf x >$'bad\xff\e"\n'
    one done refused 2 -- done
    doc .error.message | grep -q bad
    one init done 0 -- init
}

@test "colour, quiet, a narrow terminal and an odd locale change nothing in it" {
    one done done 0 -- done --color always
    [[ $DOC != *$'\e'* ]]
    one status done 0 -- status --color=always -q
    LC_ALL=C one done done 0 -- done -q
    COLUMNS=10 one log done 0 -- log
}

@test "a closed or full standard output is told, and the verdict stands" {
    run bash -c '"$TENURE" done --json >&-'
    assert_exit 0
    local words
    for words in status log proof verify 'key show' 'store status' 'journal prune' help --version 'done --help' 'done --rerun --dry-run'; do
        for words in "$words" "$words --json"; do
            run bash -c '"$TENURE" '"$words"' >/dev/full'
            echo "$words: $status: $output"
            assert_exit 70
            assert_says 'cannot write to standard output: No space left'
        done
    done
    # What else was wrong stays what is said, and is not lost with the document.
    run bash -c '"$TENURE" cancel --json T-0000-0000 >/dev/full'
    assert_exit 2
    assert_says 'cannot write to standard output: No space left' 'T-0000-0000'
    for words in done attach "run --subject x --json -- true"; do
        run bash -c '"$TENURE" '"$words"' >/dev/full'
        echo "$words: $status: $output"
        assert_exit 0
        assert_says 'cannot write to standard output: No space left'
    done
    run bash -c '"$TENURE" run --subject x --json -- sh -c "exit 3" >/dev/full'
    assert_exit 3
    echo x >>hello.txt && commit_all
    run bash -c '"$TENURE" done --json >/dev/full'
    assert_exit 0
    tenure verify -q
}
