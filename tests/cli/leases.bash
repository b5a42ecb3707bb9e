# tests/cli/leases.bash: what the tests of leases share. Load it after the helpers.
#
# ROUNDS               multiplies what is done often; 1 unless TENURE_TEST_ROUNDS says more
# waits_for FILE       the shell line of work that ends when the file is there, and not never
# newest, field        the id of the newest attempt; one of its columns
# lapsed, standing     an attempt's lease is over; a process is stopped
# watch_store          from now on the store notes what happens to it: table `seen`
# terminal_kept        no record changed after its end, and none was renewed after it
# same_row             a record is, byte for byte, what was kept of it by keep_row
# finish NAME PID      waits for the end of a `background`; RC is its exit status, OUT and ERR are what it said

ROUNDS=${TENURE_TEST_ROUNDS:-1}

waits_for() { echo "n=0; until [ -e '$1' ] || [ \$n -gt 1200 ]; do sleep 0.05; n=\$((n+1)); done"; }

newest() { db "SELECT id FROM attempt ORDER BY fence DESC LIMIT 1"; }
field() { db "SELECT $1 FROM attempt WHERE id = '${2:-$(newest)}'"; }
handle_of() { field journal_handle "$1"; }
journal_of() { echo "$XDG_STATE_HOME/tenure/journals/$(handle_of "$1")/journal"; }
records_of() { sed 's/^[^{]*//' "$(journal_of "$1")"; }

# is_there SQL: the store exists and answers with something other than nothing or 0.
is_there() {
    local answer
    answer=$([ -e "$STORE" ] && db "$1" 2>/dev/null) && [ -n "$answer" ] && [ "$answer" != 0 ]
}
running() { is_there "SELECT count(*) FROM attempt WHERE state = 'running'"; }
is_started() { # is_started ATTEMPT [PRODUCER]: its work runs
    records_of "$1" 2>/dev/null | grep -q "\"kind\":\"started\".*\"producer\":\"${2:-}"
}
work_runs() { running && is_started "$(newest)" "$@"; }

lapsed() { "$TENURE" status --all --json | jq -e --arg id "$1" '.attempts[] | select(.id == $id) | .lapsed' >/dev/null; }
standing() { [ "$(ps -o stat= -p "$1" | cut -c1)" = T ]; }

# stop_process PID...: outside of the store. One that is stopped while it has the store locked keeps everybody out of it.
stop_process() {
    local pid
    for ((; ; )); do
        kill -STOP "$@" || return
        for pid in "$@"; do wait_for 10 standing "$pid"; done
        sqlite3 -cmd '.timeout 300' "$STORE" 'BEGIN IMMEDIATE; ROLLBACK' >/dev/null 2>&1 && return
        kill -CONT "$@"
        sleep 0.05
    done
}

watch_store() {
    db "CREATE TABLE seen (n INTEGER PRIMARY KEY, what TEXT, attempt TEXT, at INTEGER);
        CREATE TRIGGER seen_late AFTER UPDATE ON attempt WHEN OLD.state NOT IN ('planning', 'running')
            BEGIN INSERT INTO seen (what, attempt) VALUES ('late', OLD.id); END;
        CREATE TRIGGER seen_renewal AFTER UPDATE OF renewed_at ON attempt WHEN OLD.state IN ('planning', 'running')
            AND NEW.state = OLD.state AND NEW.renewed_at IS NOT OLD.renewed_at
            BEGIN INSERT INTO seen (what, attempt, at) VALUES ('renewal', OLD.id, NEW.renewed_at); END;
        CREATE TRIGGER seen_evidence AFTER INSERT ON evidence
            BEGIN INSERT INTO seen (what, attempt) VALUES ('evidence', NEW.attempt); END;
        CREATE TRIGGER seen_history AFTER INSERT ON history
            BEGIN INSERT INTO seen (what, attempt) VALUES (NEW.event, NEW.attempt); END;"
}
terminal_kept() {
    [ "$(db "SELECT count(*) FROM seen WHERE what = 'late'")" = 0 ] &&
        [ "$(db "SELECT count(*) FROM attempt WHERE renewed_wall_ms > settled_wall_ms")" = 0 ] || {
        db "SELECT * FROM seen WHERE what = 'late'"
        return 1
    }
}

# patient_producers: producers with a lease that bears some more load.
patient_producers() {
    producers "$@"
    jq '.lease.ttl = "3s"' tenure.json >tenure.new && mv tenure.new tenure.json
    commit_all
}

# The widest gap between two renewals since the store is watched, and how many there were.
widest_gap() { db "SELECT max(gap) FROM (SELECT at - lag(at) OVER (ORDER BY n) AS gap FROM seen WHERE what = 'renewal' AND attempt = '$1') AS each"; }
renewed() { is_there "SELECT count(*) >= $2 FROM seen WHERE what = 'renewal' AND attempt = '$1'"; } # ATTEMPT TIMES
renewals() { db "SELECT count(*) FROM seen WHERE what = 'renewal' AND attempt = '$1'"; }

dump_row() { db -cmd '.mode quote' "SELECT * FROM attempt WHERE id = '$1'"; }
keep_row() { dump_row "$1" >"$SANDBOX/row.$1"; }
same_row() { diff "$SANDBOX/row.$1" <(dump_row "$1"); }

finish() {
    local name=$1 pid=$2
    wait_for "${3:-60}" ended "$pid" || return 1
    RC=0
    wait "$pid" || RC=$?
    OUT=$(<"$SANDBOX/$name.out") ERR=$(<"$SANDBOX/$name.err")
}

# finished_with CODE: of the last `finish`.
finished_with() {
    [ "$RC" -eq "$1" ] || {
        echo "exit status $RC instead of $1; it said: $OUT $ERR" >&2
        return 1
    }
}

# The newest attempt, or the given one, ended so: state and code of the reason.
has_ended() { # has_ended STATE CODE [ATTEMPT]
    local was
    was=$(field "state || ' ' || reason_code" "${3:-}")
    [ "$was" = "$1 $2" ] || {
        echo "ended as $was instead of $1 $2" >&2
        return 1
    }
}

# hold_store: another program holds the lock of the embedded store, until release_store.
hold_store() {
    mkfifo "$SANDBOX/holder.in"
    sqlite3 "$STORE" <"$SANDBOX/holder.in" >"$SANDBOX/holder.out" 2>&1 3>&- 4>&- &
    HOLDER=$!
    STARTED+=("$HOLDER")
    exec 8>"$SANDBOX/holder.in"
    printf '.timeout 5000\nBEGIN IMMEDIATE;\nSELECT 1;\n' >&8
    wait_for 10 test -s "$SANDBOX/holder.out"
}
release_store() {
    printf 'COMMIT;\n.quit\n' >&8
    exec 8>&-
    wait_for 10 ended "$HOLDER"
    rm -f "$SANDBOX"/holder.*
}
