#!/usr/bin/env bats
# docs/examples: the programs that a reader copies, as they stand there, against a server of the run's own. Each is run by
# a role that has EXECUTE and the application's tables, in a database that psql made from the migrations by hand.

EXAMPLES=$BATS_TEST_DIRNAME/../../docs/examples

setup() {
    : "${TENURE_TEST_POSTGRES:?run this under tests/postgres/with-servers}"
    PLACE=$(mktemp -d)
    NAME=examples-$$-$BATS_TEST_NUMBER
    psql -X -q "$TENURE_TEST_POSTGRES" -c "CREATE DATABASE \"$NAME\"" -c "CREATE ROLE \"$NAME\" LOGIN"
    ADMIN="postgresql://postgres@/$NAME?${TENURE_TEST_POSTGRES#*\?}"
    WORKER="postgresql://$NAME@/$NAME?${TENURE_TEST_POSTGRES#*\?}"
    for file in "$BATS_TEST_DIRNAME"/../../migrations/postgres/*.sql; do
        psql -X -q -1 -v ON_ERROR_STOP=1 "$ADMIN" -f "$file" >/dev/null
    done
    psql -X -q -v ON_ERROR_STOP=1 "$ADMIN" <<SQL
        CREATE SCHEMA app;
        CREATE TABLE app.source (id int PRIMARY KEY, deleted_at timestamptz);
        CREATE TABLE app.item (source int REFERENCES app.source, value text CHECK (value <> 'poison'));
        INSERT INTO app.source VALUES (42), (43);
        INSERT INTO app.item VALUES (42, 'of the last time');
        GRANT USAGE ON SCHEMA tenure, app TO "$NAME";
        GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tenure TO "$NAME";
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA app TO "$NAME";
SQL
}

teardown() {
    psql -X -q "$TENURE_TEST_POSTGRES" -c "DROP DATABASE \"$NAME\" WITH (FORCE)" -c "DROP ROLE \"$NAME\""
    rm -rf "$PLACE"
}

seen() { psql -X -q -At -v ON_ERROR_STOP=1 "$ADMIN" -c "$1"; }
items() { seen "SELECT string_agg(value, ' ' ORDER BY value) FROM app.item WHERE source = 42"; }
attempts() { seen "SELECT state, reason_text FROM tenure.attempt ORDER BY fence"; }

with_psql() { run psql -X -q -v id="$1" -v collect="$2" -f "$EXAMPLES/publish.sql" "$WORKER"; }
with_python() { run /usr/bin/python3 "$EXAMPLES/publish.py" ${TTL:+--ttl "$TTL"} "$WORKER" "$1" sh -c "$2"; }
each() { # FUNCTION: with both; what it needs of the database is there anew
    for with in with_psql with_python; do
        seen "TRUNCATE tenure.attempt, tenure.subject, tenure.leftover, tenure.evidence, tenure.proof, tenure.history, app.item;
            UPDATE app.source SET deleted_at = NULL; INSERT INTO app.item VALUES (42, 'of the last time')"
        echo "# $with"
        "$1"
    done
}

publishes() {
    "$with" 42 'printf "one\ntwo words\n"'
    echo "$output"
    [ "$status" = 0 ]
    [ "$output" = "" ]
    [ "$(items)" = "one two words" ]
    [ "$(attempts)" = "passed|" ]
}
@test "what was collected is published" { each publishes; }

nothing() {
    "$with" 42 'true'
    echo "$output"
    [ "$status" = 0 ]
    [ "$(items)" = "" ]
}
@test "nothing is something to publish, too" { each nothing; }

fails_to_collect() {
    "$with" 42 'echo one; exit 3'
    echo "$output"
    [ "$status" != 0 ]
    [[ $output == *"nothing was published"* ]]
    [ "$(items)" = "of the last time" ]
    [[ $(attempts) == "failed|"* ]]
    "$with" 42 'echo again'
    [ "$status" = 0 ]
    [ "$(items)" = again ]
}
@test "what was not collected whole is not published, and the row can be claimed again" { each fails_to_collect; }

fails_to_publish() {
    "$with" 42 'echo one; echo poison'
    echo "$output"
    [ "$status" != 0 ]
    [[ $output == *"nothing was published"* ]]
    [ "$(items)" = "of the last time" ]
    [[ $(attempts) == "failed|"*item_value_check* ]]
}
@test "a statement that fails undoes all, and its error is kept" { each fails_to_publish; }

held() {
    [ "$(seen "SELECT result FROM tenure.claim_row('app.source', 'id', '42')")" = ok ]
    "$with" 42 "touch $PLACE/contacted"
    echo "$output"
    [ "$status" != 0 ]
    [[ $output == *"row:app.source:id=42 is held by"* ]]
    [ ! -e "$PLACE/contacted" ]
    [ "$(seen "SELECT count(*) FROM tenure.attempt")" = 1 ]
}
@test "a held row is left to its holder, before anything is contacted" { each held; }

absent() {
    seen "UPDATE app.source SET deleted_at = now() WHERE id = 43"
    for id in 43 4242; do
        "$with" "$id" "touch $PLACE/contacted"
        echo "$output"
        [ "$status" != 0 ]
        [[ $output == *"no living row of app.source"* ]]
    done
    [ ! -e "$PLACE/contacted" ]
    [ "$(seen "SELECT count(*) FROM tenure.attempt")" = 0 ]
}
@test "a row that is gone is not claimed, before anything is contacted" { each absent; }

deleted_meanwhile() {
    "$with" 42 "psql -X -q '$ADMIN' -c 'UPDATE app.source SET deleted_at = now() WHERE id = 42'; echo one"
    echo "$output"
    [ "$status" != 0 ]
    [[ $output == *"is gone"* ]]
    [ "$(items)" = "of the last time" ]
    [[ $(attempts) == "failed|"* ]]
}
@test "a row that is deleted during the collection is not published" { each deleted_meanwhile; }

RETIRE="SELECT (SELECT result FROM tenure.retire(id, rev, true, 'taken')) FROM tenure.attempt WHERE state = 'running'"
lost_meanwhile() {
    "$with" 42 "psql -X -q '$ADMIN' -c \"$RETIRE\" >/dev/null; echo one"
    echo "$output"
    [ "$status" != 0 ]
    [[ $output == *"nothing was published"* ]]
    [ "$(items)" = "of the last time" ]
    [ "$(seen "SELECT state, reason_code FROM tenure.attempt")" = "cancelled|taken" ]
}
@test "a claim that was lost publishes nothing, and does not touch its record" { each lost_meanwhile; }

@test "a heartbeat keeps a claim for longer than its ttl" {
    with=with_python TTL=2
    renewals="psql -X -q -At '$ADMIN' -c 'SELECT rev FROM tenure.attempt'"
    with_python 42 "until [ \$($renewals) -gt 5 ]; do sleep 0.1; done; echo one"
    echo "$output"
    [ "$status" = 0 ]
    [ "$(items)" = one ]
    [ "$(seen "SELECT settled_at - acquired_at > interval '2 s', state FROM tenure.attempt")" = "t|passed" ]
}

@test "a lost claim ends what collects" {
    TTL=2
    with_python 42 "psql -X -q '$ADMIN' -c \"$RETIRE\" >/dev/null; exec sleep 100"
    echo "$output"
    [ "$status" = 1 ]
    [[ $output == *"was retired"* || $output == *"has ended"* ]]
    [ "$(items)" = "of the last time" ]
}

no_token() {
    "$with" 42 'echo poison'
    [ "$status" != 0 ]
    log=$(seen "SELECT pg_read_file(current_setting('data_directory') || '/../log/postgres')")
    token=$(seen "SELECT encode(tenure.new_token(), 'hex')")
    [ "$(seen "SELECT token_digest = sha256(tenure.new_token()) FROM tenure.attempt")" = t ]
    [[ $log == *"$NAME"* ]]
    [[ $log$output != *"$token"* ]]
}
@test "no token is in the output, nor in the server's log" {
    seen "CREATE OR REPLACE FUNCTION tenure.new_token() RETURNS bytea LANGUAGE sql AS \$\$ SELECT sha256('$NAME') \$\$;
        ALTER TABLE app.item RENAME CONSTRAINT item_value_check TO \"$NAME\""
    each no_token
}
