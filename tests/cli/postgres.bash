# tests/cli/postgres.bash: the shared store for tests of the command line. Load it after helpers and leases, whose words it
# makes ask the server. $TENURE_TEST_POSTGRES is a server; tests/postgres/with-servers gives one.
#
# postgres_sandbox     as sandbox, with a fresh database of the server as its store: $DATABASE is its name, $DIRECT its URL
# url_of PLACE [NAME]  a URL of a database on the server, or pooler, whose sockets lie there
# proxy_start          from now on the store is asked through a proxy; `proxy COMMAND` commands it (see tests/postgres/proxy.c)
# hits WHERE WHAT      that `at` has happened
# log_statements       from now on the server logs what it is asked: `executed FUNCTION [ATTEMPT]` counts
# machine_boot NAME    there is a machine of that name: host, machine id, boot id and state are its own
# on MACHINE CMD...    the command as on that machine
# server_store         the store is a server of the test's own: server_stop and server_start it at $PLACE
# machine MACHINE      the array $MACHINE of words that do the same before a command in the background

: "${TENURE_TEST_POSTGRES:?a server: run this with tests/postgres/with-servers}"
POSTGRES_PLACE=${TENURE_TEST_POSTGRES##*host=}
POSTGRES_PLACE=${POSTGRES_PLACE%%&*}
POOLER_PLACE=$POSTGRES_PLACE/pooler

url_of() { echo "postgresql://postgres@/${2:-$DATABASE}?host=$1&port=5432"; }

# sql URL WORD...: psql, which prints rows bare and stops at an error.
sql() { psql -XAtq -v ON_ERROR_STOP=1 -d "$@" 3>&- 4>&-; }
server() { PGOPTIONS="-c client_min_messages=warning" sql "$TENURE_TEST_POSTGRES" -c "$1"; }

postgres_sandbox() {
    local servers=$TENURE_TEST_POSTGRES
    sandbox
    TENURE_TEST_POSTGRES=$servers
    unset "${!PG@}"
    DATABASE=test_$$_$RANDOM$RANDOM
    server "CREATE DATABASE $DATABASE"
    DIRECT=$(url_of "$POSTGRES_PLACE")
    export TENURE_STORE=$DIRECT
    declare -gA MACHINES=()
    SERVERS=()
}

postgres_sandbox_end() {
    local machine
    for machine in "${!MACHINES[@]}"; do
        XDG_STATE_HOME=$SANDBOX/machines/$machine marked_processes | xargs -r kill -KILL 2>/dev/null
    done
    servers_end
    sandbox_end
    server "DROP DATABASE IF EXISTS $DATABASE WITH (FORCE)"
}

# ---- asking ----

db() { PGOPTIONS='-c search_path=tenure' sql "$DIRECT" -c "$1"; }
is_there() {
    local answer
    answer=$(db "$1" 2>/dev/null) && [ -n "$answer" ] && [ "$answer" != 0 ] && [ "$answer" != f ]
}
lapsed() { [ "$(db "SELECT lapsed FROM tenure.status() WHERE attempt = '$1'")" = t ]; }
dump_row() { db "SELECT a FROM attempt a WHERE id = '$1'"; }
events() { db "SELECT count(*) FROM history WHERE event = '$1' AND attempt = '${2:-$(newest)}'"; }
counts() { # counts TABLE N
    local n
    n=$(db "SELECT count(*) FROM $1")
    [ "$n" = "$2" ] || {
        echo "$n rows in $1 instead of $2" >&2
        return 1
    }
}

# Whoever stands still locks nothing here: each statement is a transaction of its own.
stop_process() {
    local pid
    kill -STOP "$@" || return
    for pid in "$@"; do wait_for 10 standing "$pid"; done
}

# As leases.bash has it: what happens to records is noted in the table `seen`.
watch_store() {
    db "CREATE TABLE tenure.seen (n bigserial PRIMARY KEY, what text, attempt uuid, at bigint);
        CREATE FUNCTION tenure.seen_attempt() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
            IF NOT tenure.is_unfinished(OLD.state) THEN
                INSERT INTO tenure.seen (what, attempt) VALUES ('late', OLD.id);
            ELSIF NEW.state = OLD.state AND NEW.renewed_at IS DISTINCT FROM OLD.renewed_at THEN
                INSERT INTO tenure.seen (what, attempt, at) VALUES ('renewal', OLD.id, tenure.milliseconds(NEW.renewed_at));
            END IF;
            RETURN NULL; END \$\$;
        CREATE TRIGGER seen_attempt AFTER UPDATE ON tenure.attempt FOR EACH ROW EXECUTE FUNCTION tenure.seen_attempt();
        CREATE FUNCTION tenure.seen_history() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
            INSERT INTO tenure.seen (what, attempt) VALUES (NEW.event, NEW.attempt); RETURN NULL; END \$\$;
        CREATE TRIGGER seen_history AFTER INSERT ON tenure.history FOR EACH ROW EXECUTE FUNCTION tenure.seen_history();"
}
terminal_kept() {
    [ "$(db "SELECT count(*) FROM seen WHERE what = 'late'")" = 0 ] &&
        [ "$(db "SELECT count(*) FROM attempt WHERE renewed_at > settled_at")" = 0 ] || {
        db "SELECT * FROM seen WHERE what = 'late'" >&2
        return 1
    }
}

# ---- between ----

# proxy_start [TARGET]: to the server, or to what TARGET names.
proxy_start() {
    mkfifo "$SANDBOX/proxy.in"
    "${HELPERS:?}/proxy" "${1:-$POSTGRES_PLACE/.s.PGSQL.5432}" "$SANDBOX/proxy.in" >"$SANDBOX/proxy.out" 2>&1 3>&- 4>&- &
    PROXY=$!
    STARTED+=("$PROXY")
    wait_for 10 test -s "$SANDBOX/proxy.out"
    export TENURE_STORE="postgresql://postgres@127.0.0.1:$(head -n 1 "$SANDBOX/proxy.out")/$DATABASE"
}
obeyed() { [ "$(grep -cxF "ok $1" "$SANDBOX/proxy.out")" -gt "$2" ]; }
proxy() {
    local before
    before=$(grep -cxF "ok $*" "$SANDBOX/proxy.out") || true
    echo "$*" >"$SANDBOX/proxy.in"
    wait_for 10 obeyed "$*" "$before"
}
hits() { grep -qxF "hit $*" "$SANDBOX/proxy.out"; }

log_statements() { server "ALTER DATABASE $DATABASE SET log_statement = 'all'"; }
executed() { # executed FUNCTION [ATTEMPT]
    awk -v call="tenure.$1(" -v id="'${2:-$(newest)}'" '
        / LOG: / { asked = 0 }
        index($0, call) { asked = 1 }
        / DETAIL: / { n += asked && index($0, id) > 0; asked = 0 }
        END { print n + 0 }' "$POSTGRES_PLACE/log/postgres"
}
was_executed() { # was_executed FUNCTION TIMES [ATTEMPT]
    local n
    n=$(executed "$1" "${3:-}")
    [ "$n" = "$2" ] || {
        echo "tenure.$1 was executed $n times instead of $2" >&2
        return 1
    }
}

# ---- machines ----

machine() {
    local id
    id=$(md5sum <<<"$DATABASE $1" | cut -c1-32)
    : "${MACHINES[$1]:?boot it first}"
    # shellcheck disable=SC2034,SC2016
    MACHINE=(env XDG_STATE_HOME="$SANDBOX/machines/$1" TENURE_TEST_MACHINE_ID="$id" TENURE_TEST_BOOT_ID="$(rev <<<"$id")"
        nsenter --preserve-credentials -U -u -m -t "${MACHINES[$1]}" sh -c 'cd "$0" && exec "$@"' "$PWD")
}
# Nobody sees another machine's files, but the repositories, which are carried to and fro.
machine_boot() {
    mkdir -p "$SANDBOX/machines/$1" "$SANDBOX/machines.own"
    # shellcheck disable=SC2016
    unshare -rUum sh -c 'hostname "$1" && mount --bind "$0/$1" "$0.own" && mount -t tmpfs none "$0" && mkdir "$0/$1" &&
        mount --bind "$0.own" "$0/$1" && : >"$0.$1" && exec sleep 1000' "$SANDBOX/machines" "$1" 3>&- 4>&- &
    MACHINES[$1]=$!
    STARTED+=("$!")
    wait_for 10 test -e "$SANDBOX/machines.$1"
}
on() {
    local MACHINE=()
    machine "$1"
    "${MACHINE[@]}" "${@:2}"
}

# ---- servers of a test's own ----

POSTGRES_BIN=${TENURE_TEST_POSTGRES_BIN:-/usr/lib/postgresql/15/bin}
as_server() { # PLACE COMMAND...: in its folder, and not as root; it ends when the shell that started it does
    local as=(setpriv --pdeathsig QUIT)
    [ "$(id -u)" != 0 ] || as=(setpriv --reuid=postgres --regid=postgres --init-groups --pdeathsig QUIT)
    (cd "$1" && exec "${as[@]}" "${@:2}")
}

# server_new NAME: $PLACE is its folder; the server does not run yet.
server_new() {
    local base=/tmp
    [ ! -w /dev/shm ] || base=/dev/shm
    PLACE=$(mktemp -d "$base/tenure-server-XXXXXX")
    SERVERS+=("$PLACE")
    chmod 0755 "$PLACE"
    [ "$(id -u)" != 0 ] || chown postgres: "$PLACE"
    as_server "$PLACE" "$POSTGRES_BIN/initdb" --pgdata="$PLACE/data" --username=postgres --auth=trust --no-sync \
        --no-instructions --encoding=UTF8 --locale=C.UTF-8 >"$SANDBOX/initdb.out" 2>&1
    as_server "$PLACE" tee -a data/postgresql.conf >/dev/null <<CONF
listen_addresses = ''
unix_socket_directories = '$PLACE'
unix_socket_permissions = 0777
port = 5432
max_connections = 60
shared_buffers = 16MB
wal_level = replica
fsync = off
CONF
}

answers() { sql "$(url_of "$1" postgres)" -c 'SELECT 1' >/dev/null 2>&1; }

# server_start PLACE: returns when it answers; its pid stands in PLACE/data/postmaster.pid.
server_start() {
    as_server "$1" "$POSTGRES_BIN/postgres" -D "$1/data" >>"$SANDBOX/server.out" 2>&1 3>&- 4>&- &
    STARTED+=("$!")
    wait_for 30 answers "$1"
}

# server_stop PLACE [SIGNAL]: QUIT is a crash: nothing is written, nobody is told.
server_stop() {
    local pid
    pid=$(head -n 1 "$1/data/postmaster.pid")
    kill "-${2:-QUIT}" "$pid"
    wait_for 30 ended "$pid"
}

# server_store: a server of the test's own is the store from now on; $PLACE is where it lives.
server_store() {
    server_new
    server_start "$PLACE"
    server "DROP DATABASE $DATABASE"
    sql "$(url_of "$PLACE" postgres)" -c "CREATE DATABASE $DATABASE"
    DIRECT=$(url_of "$PLACE")
    export TENURE_STORE=$DIRECT
}
servers_end() {
    local place
    for place in "${SERVERS[@]}"; do
        [ ! -e "$place/data/postmaster.pid" ] || server_stop "$place" || true
        rm -rf "$place"
    done
}
