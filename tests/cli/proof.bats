#!/usr/bin/env bats
# Proofs: verified without a store, by the keys one trusts, of exactly what they say, and by openssl alone.

load helpers
load evidence

setup() {
    sandbox
    repository
    config '{p: {run: "true"}, q: {run: "true"}}'
    exits 0
    ID=$(doc .proof.id) KEY=$(doc .proof.key_id)
    PROOF=$SANDBOX/proof.json
    tenure proof -q >"$PROOF"
    PUB=$XDG_CONFIG_HOME/tenure/keys/default.pub
}
teardown() { sandbox_end; }

# Another user, who has no key and no store, and trusts nobody.
stranger() {
    export XDG_CONFIG_HOME=$SANDBOX/stranger/config XDG_STATE_HOME=$SANDBOX/stranger/state
    mkdir -p "$XDG_CONFIG_HOME" "$XDG_STATE_HOME"
}
refuses() { # refuses REFUSAL WORD...: verification fails for this reason, exit 1
    local refusal=$1
    shift
    run tenure verify --json "$@"
    assert_exit 1
    [ "$(jq -r .refusal <<<"$output")" = "$refusal" ]
    [ "$(jq -r .verified <<<"$output")" = false ]
}

@test "a commit's Proof is printed byte for byte, and a summary beside it" {
    tenure proof HEAD >"$SANDBOX/again" 2>"$SANDBOX/summary"
    cmp "$PROOF" "$SANDBOX/again"
    grep -q "$ID" "$SANDBOX/summary"
    [ "$(jq -r .payloadType "$PROOF")" = application/vnd.in-toto+json ]
    [ "$(b2sum -l 256 <"$PROOF" | cut -d' ' -f1)" = "$ID" ]
    [ "$(tenure proof --json | jq -r .proof.envelope)" = "$(<"$PROOF")" ]
}

@test "the statement says what was proved" {
    jq -r .payload "$PROOF" | base64 -d >"$SANDBOX/statement"
    jq -e --arg c "$(git rev-parse HEAD)" --arg t "$(git rev-parse 'HEAD^{tree}')" '
        ._type == "https://in-toto.io/Statement/v1"
        and .predicateType == "https://in-toto.io/attestation/test-result/v0.1"
        and (.subject | length) == 1 and .subject[0].name == "test/repository"
        and .subject[0].digest == {gitCommit: $c, gitTree: $t}
        and .predicate.result == "PASSED" and .predicate.passedTests == ["p", "q"]
        and .predicate.configuration[0].name == "tenure.json"
        and .predicate.tenure.demand.complete' "$SANDBOX/statement"
    [ "$(jq -r '.predicate.configuration[0].digest.blake2b_256' "$SANDBOX/statement")" = "$(b2sum -l 256 <tenure.json | cut -d' ' -f1)" ]
    [ "$(jq -r '.predicate.configuration[] | select(.name == "evidence/p").digest.blake2b_256' "$SANDBOX/statement")" = \
        "$(doc '.producers[] | select(.name == "p").key')" ]
}

@test "verify: of HEAD, a commit, a tag, another commit of the same tree, and of one that has none" {
    for what in '' HEAD main "$(git rev-parse HEAD)"; do
        run tenure verify $what
        assert_exit 0
        assert_says test/repository "$(git rev-parse HEAD)" "$(git rev-parse 'HEAD^{tree}')" "$KEY"
    done
    git tag here
    tenure verify -q here
    git commit -q --allow-empty -m Empty
    tenure verify -q
    run tenure verify HEAD~2
    assert_exit 1
    assert_says 'no Proof' 'tenure done'
    run tenure verify no-such-thing
    assert_exit 2
    run tenure proof HEAD~2
    assert_exit 1
}

@test "verify: a file needs no store, no repository and no configuration of one's own" {
    cp "$PUB" "$SANDBOX/their.pub"
    stranger
    cd "$SANDBOX"
    run tenure verify --key their.pub "$PROOF"
    assert_exit 0
    assert_says 'compared with no tree' "$KEY"
    run tenure verify --key their.pub - <"$PROOF"
    assert_exit 0
    [ -z "$(find "$SANDBOX/stranger" -type f)" ]
    # Even where the store cannot be had.
    run tenure --store postgresql://127.0.0.1:1/none verify --key their.pub "$PROOF"
    assert_exit 0
}

@test "verify: keys of .tenure/keys of the repository, of the user, trusted ones, and with --key only those" {
    cp "$PUB" "$SANDBOX/their.pub"
    stranger
    refuses untrusted "$PROOF"
    mkdir -p .tenure/keys && cp "$SANDBOX/their.pub" .tenure/keys/
    tenure verify -q "$PROOF"
    (mkdir -p deep && cd deep && tenure verify -q "$PROOF")
    rm -r .tenure
    refuses untrusted "$PROOF"
    run tenure key trust "$SANDBOX/their.pub"
    assert_exit 0
    assert_says "$KEY"
    tenure verify -q "$PROOF"
    run tenure key trust "$SANDBOX/their.pub"
    assert_exit 0
    tenure key new >/dev/null
    refuses untrusted --key "$XDG_CONFIG_HOME/tenure/keys/default.pub" "$PROOF"
    tenure verify -q --key "$XDG_CONFIG_HOME/tenure/keys/default.pub" --key "$SANDBOX/their.pub" "$PROOF"
    run tenure verify --key "$SANDBOX/missing.pub" "$PROOF"
    assert_exit 2
    assert_says missing.pub
    run tenure verify --key "$PROOF" "$PROOF"
    assert_exit 2
    # A key that is none is not passed over.
    mkdir -p .tenure/keys && echo nonsense >.tenure/keys/bad.pub
    run tenure verify "$PROOF"
    assert_exit 2
    assert_says bad.pub
}

@test "verify: the wrong tree" {
    echo more >>hello.txt && commit_all
    refuses other-tree "$PROOF"
    run tenure verify "$PROOF"
    assert_says --commit
    tenure verify -q "$PROOF" --commit HEAD~1
    refuses other-tree "$PROOF" --commit HEAD~2
    run tenure verify "$PROOF" --commit nonsense
    assert_exit 2
}

@test "verify: one changed byte fails, wherever it is" {
    local length step at byte
    length=$(stat -c %s "$PROOF")
    step=$((length / 100))
    cp "$PROOF" "$SANDBOX/changed"
    cd "$SANDBOX"
    for ((at = 0; at < length; at += step)); do
        byte=$(od -An -tu1 -j $at -N 1 "$PROOF")
        # The lowest bit, then any other: what base64 or JSON would pass over is not passed over here.
        for change in 1 32; do
            # shellcheck disable=SC2059
            printf "\\x$(printf %x $((byte ^ change)))" | dd of=changed bs=1 seek=$at conv=notrunc status=none
            status=0
            "$TENURE" verify -q --key "$PUB" changed 2>"$SANDBOX/said" || status=$?
            [ "$status" -eq 1 ] || { echo "byte $at changed by $change: exit $status"; cat "$SANDBOX/said"; false; }
            [ -s "$SANDBOX/said" ]
        done
        dd if="$PROOF" of=changed bs=1 skip=$at seek=$at count=1 conv=notrunc status=none
    done
    cmp changed "$PROOF"
    tenure verify -q --key "$PUB" changed
}

@test "verify: shortened, longer, empty, something else, two in one, a folder" {
    cd "$SANDBOX"
    head -c -1 "$PROOF" >short
    head -c 100 "$PROOF" >shorter
    cat "$PROOF" <(echo) >longer
    cat "$PROOF" "$PROOF" >twice
    jq . "$PROOF" >pretty
    : >empty
    echo '{}' >object
    head -c 3000000 /dev/zero >huge
    jq -c '. + {more: 1}' "$PROOF" >more
    jq -c '.signatures += .signatures' "$PROOF" >signatures
    for file in short shorter longer twice pretty empty object more signatures; do
        status=0
        "$TENURE" verify --json --key "$PUB" $file >said || status=$?
        [ "$status" -eq 1 ] || { echo "$file: exit $status"; cat said; false; }
        [ "$(jq -r .verified said)" = false ]
    done
    for file in huge "$SANDBOX"; do
        run tenure verify --key "$PUB" $file
        [ "$status" -ne 0 ]
    done
}

@test "verify: a Proof of some producers is refused unless --partial, and does not hide one of all" {
    echo more >>hello.txt && commit_all
    exits 0 p
    run tenure done --dry-run
    assert_exit 0
    tenure proof -q >"$SANDBOX/partial"
    refuses partial
    refuses partial "$SANDBOX/partial"
    run tenure verify --partial
    assert_exit 0
    assert_says 'not all'
    exits 0
    exits 0 --rerun q
    tenure verify -q
}

@test "verify: a failed result is refused although it is signed" {
    sign() { # sign STATEMENT: an envelope by the user's key, made with openssl
        local payload signature type=application/vnd.in-toto+json
        payload=$(base64 -w0 <"$1")
        { printf 'DSSEv1 %d %s %d ' ${#type} $type "$(stat -c %s "$1")"; cat "$1"; } >"$SANDBOX/pae"
        signature=$(openssl pkeyutl -sign -rawin -inkey "$XDG_CONFIG_HOME/tenure/keys/default.key" -in "$SANDBOX/pae" | base64 -w0)
        jq --arg p "$payload" --arg s "$signature" -c '.payload = $p | .signatures[0].sig = $s' "$PROOF"
    }
    jq -r .payload "$PROOF" | base64 -d >"$SANDBOX/statement"
    # As a check of this recipe: the same statement signed anew is the same envelope.
    sign "$SANDBOX/statement" >"$SANDBOX/same"
    cmp "$SANDBOX/same" "$PROOF"
    sed 's/"PASSED"/"FAILED"/' "$SANDBOX/statement" >"$SANDBOX/failed"
    sign "$SANDBOX/failed" >"$SANDBOX/failed.json"
    refuses failed-result "$SANDBOX/failed.json"
    sed 's/"result":"PASSED"/"result":"PASSED","result":"PASSED"/' "$SANDBOX/statement" >"$SANDBOX/twice"
    sign "$SANDBOX/twice" >"$SANDBOX/twice.json"
    refuses malformed "$SANDBOX/twice.json"
    sed 's|Statement/v1|Statement/v2|' "$SANDBOX/statement" >"$SANDBOX/version"
    sign "$SANDBOX/version" >"$SANDBOX/version.json"
    refuses malformed "$SANDBOX/version.json"
}

@test "openssl verifies the signature, with base64 and jq beside it" {
    cd "$SANDBOX"
    cp "$PUB" key.pub
    # The recipe, as it stands in the README:
    jq -r .payload proof.json | base64 -d >statement.json
    jq -r '.signatures[0].sig' proof.json | base64 -d >signature
    { printf 'DSSEv1 28 application/vnd.in-toto+json %d ' "$(wc -c <statement.json)"; cat statement.json; } >signed
    run openssl pkeyutl -verify -rawin -pubin -inkey key.pub -in signed -sigfile signature
    assert_exit 0
    assert_says 'Signature Verified Successfully'
    printf x >>signed
    run openssl pkeyutl -verify -rawin -pubin -inkey key.pub -in signed -sigfile signature
    [ "$status" -ne 0 ]
    [ "$(openssl pkey -pubin -in key.pub -noout -text | head -n 1)" = 'ED25519 Public-Key:' ]
}
