# tests/cli/evidence.bash: what the tests of trees, keys and Proofs share. Load it after the helpers.
#
# config JSON          writes tenure.json around this "producers" object (jq syntax) and commits it
# done_json WORD...    `tenure done --json`; RC is its exit status, DOC the document
# did NAME             of the last done_json: ran, reused or - (not reached)
# ended_as NAME        its verdict
# doc FILTER           jq over DOC, raw
# ran_times FILE       how many lines a producer has left in a file outside of the tree
# proved_already       nothing ran and nothing was written, since a Proof was there
# asleep               the shell line that waits until $SANDBOX/go is there, and tells that it waits

config() {
    jq -n "{repository: \"test/repository\", lease: {ttl: \"5s\", heartbeat: \"1s\"}, producers: $1} + (${2:-{\}})" \
        >tenure.json && commit_all "Demand it"
}

done_json() {
    RC=0
    DOC=$("$TENURE" done --json "$@" 2>"$SANDBOX/done.err") || RC=$?
    jq -e . >/dev/null <<<"$DOC" || {
        echo "no document: $DOC $(<"$SANDBOX/done.err")" >&2
        return 1
    }
}
doc() { jq -r "$1" <<<"$DOC"; }
did() { doc ".producers[] | select(.name == \"$1\") | .source // \"-\""; }
ended_as() { doc ".producers[] | select(.name == \"$1\") | .verdict // \"-\""; }

exits() { # exits CODE [WORD...]: done_json ends so
    local code=$1
    shift
    done_json "$@" || return 1
    [ "$RC" -eq "$code" ] || {
        echo "exit status $RC instead of $code: $DOC" >&2
        return 1
    }
}
was() { # was NAME=SOURCE...: of the last done_json
    local word
    for word; do
        [ "$(did "${word%%=*}")" = "${word#*=}" ] || {
            echo "${word%%=*} was not ${word#*=}: $DOC" >&2
            return 1
        }
    done
}
says() { # says TEXT...: the document's text, wherever it stands
    local text
    for text; do
        [[ $DOC == *"$text"* ]] || {
            echo "not said: $text; it said: $DOC" >&2
            return 1
        }
    done
}
plan_of() { "$TENURE" done --json --dry-run "${@:2}" | jq -r ".plan[] | select(.name == \"$1\") | .source"; }

ran_times() { [ ! -e "$1" ] && echo 0 || wc -l <"$1"; }
asleep() { echo ": >'$SANDBOX/waits'; n=0; until [ -e '$SANDBOX/go' ] || [ \$n -gt 1200 ]; do sleep 0.05; n=\$((n+1)); done"; }
evidence_count() { [ -e "$STORE" ] && db "SELECT count(*) FROM evidence" || echo 0; }
proof_count() { [ -e "$STORE" ] && db "SELECT count(*) FROM proof" || echo 0; }
finish() { # finish NAME PID: waits for the end of a `background`; RC, DOC and ERR are what it left
    wait_for 60 ended "$2" || return 1
    RC=0
    wait "$2" || RC=$?
    DOC=$(<"$SANDBOX/$1.out") ERR=$(<"$SANDBOX/$1.err")
}
proved_already() { # of the last done_json: the Proof was there, and no attempt was made
    [ "$(doc .outcome)" = done ] && [ "$(doc .attempt.handle)" = null ] && [ "$(doc .proof.id)" != null ] || {
        echo "not proved already: $DOC" >&2
        return 1
    }
}
