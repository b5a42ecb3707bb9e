# tests/cli/supervision.bash: what the tests of processes, terminals and output share. Load it after helpers and leases.
#
# log_of NAME          the log of a producer of the newest attempt
# finished NAME        its `finished` record, as JSON
# verdict_is NAME TEXT its verdict, as the journal has it
# supervisor_of ID     the process that holds an attempt
# gone PID...          none of the processes lives
# processor_ms PID     the processor time that the process itself has used, without its children
# roomy                after `producers`: a lease of 12 s, renewed every half second
# beats, beat_gap_ms   from `beats` on the store notes each renewal; the longest time between two of them
# terminal NAME CMD    a command under a terminal: $TERMINAL is the process before it, typed "keys" go in, $NAME.out comes out

log_of() { echo "$(dirname "$(journal_of)")/out/$1.log"; }
finished() { records_of "${2:-}" | jq -c --arg n "$1" 'select(.kind == "finished" and .producer == $n)'; }
verdict_is() {
    local was
    was=$(finished "$1" | jq -r .verdict)
    [ "$was" = "$2" ] || {
        echo "$1: $was instead of $2" >&2
        return 1
    }
}
supervisor_of() { records_of "$1" | jq -r 'select(.kind == "header") | .executor.pid'; }

gone() {
    local pid
    for pid; do
        ended "$pid" || return 1
    done
}

processor_ms() { awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($12 + $13) * 1000 / hz) }' "/proc/$1/stat"; }

# A lease that a busy machine does not lose, renewed often.
roomy() {
    jq '.lease = {ttl: "12s", heartbeat: "500ms"}' tenure.json >"$SANDBOX/roomy" && cp "$SANDBOX/roomy" tenure.json
    commit_all
}

beats() {
    [ -e "$STORE" ] || "$TENURE" run --subject first -- true
    db "CREATE TABLE beat (n INTEGER PRIMARY KEY, boot_ms INTEGER);
        CREATE TRIGGER beat_noted AFTER UPDATE OF renewed_at ON attempt WHEN NEW.renewed_at IS NOT OLD.renewed_at
            BEGIN INSERT INTO beat (boot_ms) VALUES (NEW.renewed_wall_ms); END;"
}
beat_gap_ms() { db "SELECT max(gap) FROM (SELECT boot_ms - lag(boot_ms) OVER (ORDER BY n) AS gap FROM beat)"; }
beat_count() { db "SELECT count(*) FROM beat"; }
beaten() { [ "$(beat_count)" -ge "$1" ] 2>/dev/null; }

terminal() {
    local name=$1
    shift
    mkfifo "$SANDBOX/$name.keys"
    exec 7<>"$SANDBOX/$name.keys"
    : >"$SANDBOX/$name.err"
    (exec env TERM=xterm "$HELPERS/pty" "$@" <"$SANDBOX/$name.keys" >"$SANDBOX/$name.out" 2>&1 3>&- 4>&- 7>&-) &
    TERMINAL=$!
    STARTED+=("$TERMINAL")
}
typed() { printf "$@" >&7; }
shown() { grep -aqF -- "$2" "$SANDBOX/$1.out"; }
