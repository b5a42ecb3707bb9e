#!/usr/bin/env bats
# tenure publish: what was collected is published whole and by the holder of the claim, or not at all.

load helpers
load leases
load postgres

setup() {
    postgres_sandbox
    tenure store migrate >/dev/null
    db "CREATE SCHEMA app;
        CREATE TABLE app.source (id int PRIMARY KEY, name text, deleted_at timestamptz);
        CREATE TABLE app.reading (line text PRIMARY KEY);
        INSERT INTO app.source VALUES (42, 'one'), (43, 'two')"
    cat >publish.sql <<'SQL'
-- What was collected; and a mark on its source.
INSERT INTO app.reading SELECT line FROM collected;
UPDATE app.source SET name = 'read; done' WHERE id = 42;
SQL
    export -n TENURE_FAILPOINT
}
teardown() { postgres_sandbox_end; }

publish() { "$TENURE" publish --row app.source:id=42 --soft-delete deleted_at --sql publish.sql --ttl 2s "$@"; }
readings() { db "SELECT count(*) FROM app.reading"; }
untouched() { # nothing of a publication stayed, and the row can be claimed again
    [ "$(readings)" = 0 ] && [ "$(db "SELECT name FROM app.source WHERE id = 42")" = one ] &&
        [ "$(db "SELECT count(*) FROM subject")" = 0 ]
}
published() { # published N
    [ "$(readings)" = "$1" ] && [ "$(db "SELECT name FROM app.source WHERE id = 42")" = 'read; done' ] &&
        [ "$(db "SELECT count(*) FROM subject")" = 0 ]
}

@test "what was collected is published, and the rows are counted" {
    run publish --collect 'printf "a\nb\tc\\\\d\nlast"'
    assert_exit 0
    assert_says 'published app.source:id=42' '3 inserted' '1 updated'
    published 3
    [ "$(field state)" = passed ]
    [ "$(db "SELECT line FROM app.reading WHERE line LIKE 'b%'")" = "b"$'\t''c\d' ]
}

@test "columns of one's own are read as CSV" {
    echo 'INSERT INTO app.reading SELECT name || id FROM collected' >publish.sql
    run publish --collect 'echo 1,x; echo "2,\"y,z\""' --collected 'id int, name text' --json
    assert_exit 0
    jq -e '.published and .rows.inserted == 2 and .collected == 2 and .collector_exit == 0 and .attempt.state == "passed"' \
        <<<"$output"
    [ "$(db "SELECT count(*) FROM app.reading WHERE line IN ('x1', 'y,z2')")" = 2 ]
}

@test "nothing needs to be collected" {
    echo "UPDATE app.source SET name = 'read; done' WHERE id = 42" >publish.sql
    run publish
    assert_exit 0
    published 0
}

@test "a collector that fails publishes nothing" {
    run publish --collect 'echo a; exit 3'
    assert_exit 1
    assert_says 'the collector failed with exit status 3' 'nothing was published'
    untouched
    [ "$(field "state || ' ' || reason_code")" = 'failed collector-failed' ]
}

@test "a statement that fails undoes those before it, and the attempt keeps why" {
    printf "INSERT INTO app.reading VALUES ('first');\n\nINSERT INTO app.reading\nVALUES ('x', 'y');\n" >publish.sql
    run publish --json
    assert_exit 1
    jq -e '.published == false and ([.rows[]] | add) == 0 and .outcome == "negative"' <<<"$output"
    untouched
    run tenure log --all
    assert_says failed 'publish.sql:4:' 'more expressions than target columns'
}

@test "a row that does not live is not collected for" {
    run publish --row app.source:id=44 --collect 'touch ran'
    assert_exit 2
    assert_says 'no living row'
    db "UPDATE app.source SET deleted_at = now() WHERE id = 42"
    run publish --collect 'touch ran'
    assert_exit 2
    assert_says 'no living row'
    [ ! -e ran ]
    counts attempt 0
}

@test "a row that is soft-deleted while it is collected for is not published" {
    run publish --collect "echo a; psql -Xq -d '$DIRECT' -c 'UPDATE app.source SET deleted_at = now() WHERE id = 42'"
    assert_exit 1
    assert_says gone 'nothing was published'
    untouched
    [ "$(field "state || ' ' || reason_code")" = 'failed row-gone' ]
}

@test "a claim that is lost ends the collector, and the command with 4" {
    background publish "$TENURE" publish --row app.source:id=42 --sql publish.sql --ttl 2s \
        --collect "echo a; echo \$\$ >collector; exec sleep 60"
    wait_for 10 test -s collector
    collector=$(cat collector)
    db "SELECT r.result FROM attempt a, tenure.retire(a.id, a.rev, true, 'owner-gone', 'by a test') r WHERE a.state = 'running'"
    rc=0
    wait "$PID" || rc=$?
    [ "$rc" = 4 ]
    ended "$collector"
    grep -q 'is lost' "$SANDBOX/publish.err"
    untouched
}

@test "a row that is held is waited for only when asked" {
    background publish "$TENURE" publish --row app.source:id=42 --sql publish.sql \
        --collect "echo a; $(waits_for "$PWD/go")"
    wait_for 10 running
    run publish --collect 'echo b'
    assert_exit 3
    assert_says 'held by' 'row:app.source:id=42' 'tenure attach'
    run publish --collect 'echo b' --json
    assert_exit 3
    jq -e '.pending.reconnect | startswith("tenure attach")' <<<"$output"
    first=$PID
    background waiting "$TENURE" publish --row app.source:id=42 --sql publish.sql --wait=30s --collect 'echo b'
    wait_for 10 grep -q 'waiting for' "$SANDBOX/waiting.err"
    touch go
    wait "$first"
    wait "$PID"
    published 2
}

@test "a dead owner on this machine delays nobody" {
    background publish "$TENURE" publish --row app.source:id=42 --sql publish.sql --ttl 1h --collect "exec sleep 60"
    wait_for 10 running
    kill -KILL "$PID"
    wait_for 10 ended "$PID"
    run publish --collect 'echo a'
    assert_exit 0
    published 1
    none_marked
}

@test "killed anywhere it publishes all or nothing, and can be run again" {
    for point in publish-before-begin publish-after-begin publish-before-commit publish-after-commit; do
        db "TRUNCATE app.reading; UPDATE app.source SET name = 'one'"
        TENURE_FAILPOINT=$point:kill run publish --collect 'echo a'
        [ "$status" = 137 ] || { echo "$point: $status" >&2; return 1; }
        case $point in
        publish-after-commit) wait_for 10 published 1; db "TRUNCATE app.reading" ;;
        *) [ "$(readings)" = 0 ] ;;
        esac
        run publish --collect 'echo b'
        assert_exit 0
        published 1
    done
}

@test "a lost answer is asked for, and nothing is published twice" {
    for point in publish-before-commit publish-after-commit; do
        db "TRUNCATE app.reading; UPDATE app.source SET name = 'one'"
        TENURE_FAILPOINT=$point:error@1 run publish --collect 'echo a'
        assert_exit 0
        published 1
        [ "$(field state)" = passed ]
    done
}

@test "a signal while something is published undoes it" {
    printf "INSERT INTO app.reading VALUES ('a'); SELECT pg_sleep(60);" >publish.sql
    background publish "$TENURE" publish --row app.source:id=42 --sql publish.sql
    wait_for 10 is_there "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'"
    kill -TERM "$PID"
    rc=0
    wait "$PID" || rc=$?
    [ "$rc" = 143 ]
    wait_for 10 untouched
    [ "$(field "state || ' ' || reason_code")" = 'cancelled signal' ]
}

@test "what takes longer than the lease is not published" {
    printf "INSERT INTO app.reading VALUES ('a'); SELECT pg_sleep(60);" >publish.sql
    run publish
    assert_exit 4
    untouched
    [ "$(field "state || ' ' || reason_code")" = 'cancelled lease-lost' ]
}

@test "a file that ends transactions is refused before anything is claimed" {
    for word in COMMIT 'commit;' 'ROLLBACK' "PREPARE TRANSACTION 'x'" 'SAVEPOINT s' '/* a */ End'; do
        printf 'SELECT 1;\n%s' "$word" >publish.sql
        run publish --collect 'touch ran'
        assert_exit 2
        assert_says 'publish.sql:2:' 'may not stand in a publication'
    done
    printf "SELECT 'never closed" >publish.sql
    run publish
    assert_exit 2
    run publish --sql nowhere.sql
    assert_exit 2
    [ ! -e ran ]
    counts attempt 0
}

@test "a function cannot end the transaction either" {
    printf 'DO $$ BEGIN COMMIT; END $$;' >publish.sql
    run publish
    assert_exit 1
    assert_says 'invalid transaction termination'
    printf 'COPY app.reading FROM STDIN;' >publish.sql
    run publish
    assert_exit 1
    assert_says 'COPY FROM STDIN'
    untouched
}

@test "rows elsewhere are refused before anything is claimed" {
    run publish --collect 'touch ran' --data-store "$TENURE_TEST_POSTGRES"
    assert_exit 2
    assert_says 'is not the database of the store'
    run publish --collect 'touch ran' --data-store postgresql://somebody:secret@127.0.0.1:1/app
    assert_exit 2
    [[ $output != *secret* ]]
    run publish --collect 'touch ran' --store "sqlite:$SANDBOX/store.db"
    assert_exit 2
    assert_says 'embedded store cannot claim rows'
    [ ! -e ran ]
    counts attempt 0
    run publish --collect 'echo a' --data-store "$DIRECT&application_name=other"
    assert_exit 0
}

@test "the token is in no log, no environment and no list of processes" {
    FIND=${HELPERS:?}/find_secret
    run publish --collect 'env >seen.env; ps -eww -o args >seen.ps; cat /proc/$PPID/environ /proc/$PPID/cmdline >seen.parent'
    assert_exit 0
    digest=$(db "SELECT encode(token_digest, 'hex') FROM attempt")
    [ ${#digest} = 64 ]
    mapfile -t files < <(find "$XDG_STATE_HOME" seen.* -type f)
    [ ${#files[@]} -ge 4 ]
    run "$FIND" token "$digest" -- "${files[@]}"
    assert_exit 0
}
