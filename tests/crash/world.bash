# tests/crash/world.bash: a repository and a store to break, how the program is broken in it, and what is then there.
#
# world            a world of this case's own, copied from a template; goes to its repository
# victim ARGS      runs the program with the failpoint of this case to its end; RC is its exit status
# victim_start, victim_wait    the same in two steps, for what must happen in between
# slow_work        from now on producers wait, until `release_work`
# state_words      what the store holds, in words, without touching it: SQLite's own recovery is left to the next run

# shellcheck source=tests/cli/helpers.bash
. "$(dirname "${BASH_SOURCE[0]}")/../cli/helpers.bash"

STORE_KIND=${CRASH_STORE:-embedded}
if [ "$STORE_KIND" = postgres ]; then
    # shellcheck source=tests/cli/postgres.bash
    . "$(dirname "${BASH_SOURCE[0]}")/../cli/postgres.bash"
    SERVER=$TENURE_TEST_POSTGRES
fi

# One template: a home, a key, and a repository that demands three producers, one of which needs another's output.
world_template() {
    BATS_TMPDIR=$WORK sandbox
    TEMPLATE=$SANDBOX
    repository
    # A producer starts slow when it is told so, and then waits to be released; in both cases not for ever.
    local wait='if [ -e "$HOME/slow" ]; then n=0; until [ -e "$HOME/go" ] || [ $n -gt 600 ]; do sleep 0.05; n=$((n+1)); done; fi'
    # shellcheck disable=SC2016
    jq -n --arg build "$wait; if [ -e \"\$HOME/loud\" ]; then head -c 70000000 /dev/zero; fi; echo building; echo built >widget" \
        --arg test "$wait; test -s widget" --arg lint 'if [ -e "$HOME/move" ]; then echo moved >>hello.txt; fi' \
        '{repository: "test/repository", lease: {ttl: "2s", heartbeat: "500ms"}, producers: {
            build: {run: $build, outputs: ["widget"]}, lint: {run: $lint},
            test: {run: $test, needs: ["build"]}}}' >tenure.json
    echo widget >.gitignore
    commit_all "Demand it"
    "$TENURE" store migrate --quiet && STORE_NAME=$(cd "$XDG_STATE_HOME/tenure" && echo *.db) && rm -rf "${XDG_STATE_HOME:?}"/*
    cd "$WORK" || return 1
}

world() {
    SANDBOX=$(mktemp -d "$WORK/case.XXXXXX")
    cp -a "$TEMPLATE/." "$SANDBOX/"
    export HOME=$SANDBOX/home XDG_STATE_HOME=$SANDBOX/state XDG_CONFIG_HOME=$SANDBOX/config TMPDIR=$SANDBOX/tmp
    export GIT_CONFIG_GLOBAL=$SANDBOX/gitconfig
    STORE=$XDG_STATE_HOME/tenure/$STORE_NAME
    STARTED=()
    store_begin
    cd "$SANDBOX/repository" || exit 1
}

# The embedded store is in the world's own state; of a server each world has a database.
store_begin() {
    [ "$STORE_KIND" = postgres ] || return 0
    TENURE_TEST_POSTGRES=$SERVER
    DATABASE=crash_${BASHPID}_$RANDOM
    server "CREATE DATABASE $DATABASE" || exit 1
    DIRECT=$(url_of "$POSTGRES_PLACE")
    export TENURE_STORE=$DIRECT
}
store_end() { [ "$STORE_KIND" != postgres ] || server "DROP DATABASE $DATABASE WITH (FORCE)"; }

slow_work() { rm -f "$HOME/go" && : >"$HOME/slow"; }
release_work() { : >"$HOME/go"; }
fast_work() { rm -f "$HOME/slow"; }

victim_start() {
    : >"$SANDBOX/victim.mark"
    ( trap - INT QUIT; TENURE_FAILPOINT=${ORDER:?} exec "$TENURE" "$@" ) >"$SANDBOX/victim.out" 2>"$SANDBOX/victim.err" \
        </dev/null 3>&- &
    VICTIM=$!
    STARTED+=("$VICTIM")
}

# Also ends one that would not end: a case must name what hangs, not be ended by the clock.
victim_wait() {
    if [ "$ACTION" = stop ]; then
        wait_for 20 is_stopped_or_ended || { RC=hangs; return 1; }
        ! is_stopped || { RC=stopped; return 0; }
    fi
    wait_for 20 ended "$VICTIM" || { RC=hangs; return 1; }
    : >"$SANDBOX/victim.end"
    wait "$VICTIM" 2>/dev/null
    RC=$?
}

victim() { victim_start "$@" && victim_wait; }

# quietly NAME ARGS: the program without failpoint and mutant, its output kept; its exit status is returned.
quietly() {
    local name=$1
    shift
    timeout "${BOUND:-30}" "$TENURE" "$@" >"$SANDBOX/$name.out" 2>"$SANDBOX/$name.err" </dev/null
}

is_stopped_or_ended() { is_stopped || ended "$VICTIM"; }

# A stopped process of the victim's own: the program, or a child of it that has not become a producer yet.
is_stopped() { ps -o stat= -p "$VICTIM" --ppid "$VICTIM" 2>/dev/null | grep -q '^T'; }

work_is_marked() { [ -n "$(marked_processes)" ]; }
marked_processes() {
    local place
    for place in $(grep -lszxF "XDG_STATE_HOME=$XDG_STATE_HOME" /proc/[0-9]*/environ 2>/dev/null); do
        grep -qsz '^TENURE_ATTEMPT=' "$place" && echo "${place//[!0-9]/}"
    done
}

# A copy may be looked at: the store itself would be rolled back by the look. A server is just asked.
store_copy() {
    [ "$STORE_KIND" = embedded ] || { [ "$(db "SELECT to_regclass('tenure.attempt') IS NOT NULL")" = t ]; return; }
    rm -rf "$SANDBOX/copy" && mkdir "$SANDBOX/copy"
    [ -s "$STORE" ] || return 1
    cp "$STORE" "$SANDBOX/copy/s.db" && { [ ! -e "$STORE-journal" ] || cp "$STORE-journal" "$SANDBOX/copy/s.db-journal"; }
}
ask_copy() { if [ "$STORE_KIND" = embedded ]; then sqlite3 "$SANDBOX/copy/s.db" "$1"; else db "$1"; fi; }
store_is_empty() { [ "$STORE_KIND" = embedded ] && [ "$(ask_copy 'PRAGMA user_version')" = 0 ]; }

count_words() { # count_words N ONE MANY
    if [ "$1" = 1 ]; then echo "1 $2"; elif [ "$1" -gt 1 ]; then echo "$1 $3"; fi
}

joined() { paste -sd, | sed 's/,/, /g'; }

state_words() {
    local attempts
    store_copy || { echo "no store"; return; }
    ! store_is_empty || { echo "an empty store"; return; }
    attempts=$(ask_copy "SELECT kind || ' ' || state ||
        CASE reason_code WHEN 'owner-gone' THEN ' (owner gone)' WHEN 'lapsed' THEN ' (lapsed)' ELSE '' END
        FROM attempt ORDER BY fence")
    # Whether an owner of another boot is gone cannot be proven inside a container: there its lease has lapsed.
    [ "$SCENARIO" != reboot ] || attempts=$(sed '1s/(.*)/(gone with its boot)/' <<<"$attempts")
    {
        echo "${attempts:-no attempt}"
        count_words "$(ask_copy 'SELECT count(*) FROM evidence')" "evidence" "evidences"
        count_words "$(ask_copy 'SELECT count(*) FROM proof')" "Proof" "Proofs"
        count_words "$(ask_copy 'SELECT count(*) FROM leftover')" "leftovers row" "leftovers rows"
    } | joined
}
