# tests/cli/helpers.bash: what every test of the command line needs. Load it first:
#
#     load helpers
#     setup() { sandbox; }
#     teardown() { sandbox_end; }
#
# sandbox        a home, a state, a configuration and a temporary directory of the test's own, and nothing of the caller's
# repository     a git repository with one commit in $REPO, and goes there; `commit_all` commits what is there
# producers      writes tenure.json from NAME=COMMAND words and commits it
# wait_for       waits for a condition with a bound, never for time to pass
# background     starts a command in the background, its output in files; $PID is it
# db             asks the store

: "${TENURE:?the program under test}"

sandbox() {
    SANDBOX=$(mktemp -d "${BATS_TMPDIR:-/tmp}/tenure-test.XXXXXX")
    mkdir -p "$SANDBOX"/{home,state,config,tmp}
    for name in $(compgen -e); do
        case $name in
        TENURE_FAILPOINT* | TENURE_MUTANT*) ;; # the matrix's and the mutants' own
        TENURE_* | GIT_* | XDG_* | NOTIFY_SOCKET | WATCHDOG_* | LISTEN_* | CI | NO_COLOR) unset "$name" ;;
        esac
    done
    export HOME=$SANDBOX/home XDG_STATE_HOME=$SANDBOX/state XDG_CONFIG_HOME=$SANDBOX/config TMPDIR=$SANDBOX/tmp
    export LC_ALL=C.UTF-8 TZ=UTC TERM=dumb
    export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=$SANDBOX/gitconfig
    git config --global user.name 'A Tester'
    git config --global user.email tester@example.org
    git config --global init.defaultBranch main
    git config --global commit.gpgSign false
    STORE=$XDG_STATE_HOME/tenure/tenure.db
    STARTED=()
    tenure() { "$TENURE" "$@"; }
    cd "$SANDBOX" || exit 1
}

sandbox_end() {
    local pid
    for pid in "${STARTED[@]}"; do kill -KILL "$pid" 2>/dev/null; done
    for pid in "${STARTED[@]}"; do wait "$pid" 2>/dev/null; done
    marked_processes | while read -r pid; do kill -KILL "$pid" 2>/dev/null; done
    cd / && chmod -R u+rwx "$SANDBOX" 2>/dev/null && rm -rf "$SANDBOX"
}

repository() {
    REPO=${1:-$SANDBOX/repository}
    git init -q "$REPO" && cd "$REPO" || return 1
    [ -d "$XDG_CONFIG_HOME/tenure/keys" ] || "$TENURE" key new >/dev/null || return 1
    printf 'hello\n' >hello.txt
    commit_all
}

commit_all() { git add -A && git commit -q -m "${1:-A change}"; }

# producers build='make' test='./widget --selftest'
producers() {
    local word json='{}'
    for word; do json=$(jq -c --arg n "${word%%=*}" --arg r "${word#*=}" '.[$n] = {run: $r}' <<<"$json"); done
    jq -n --argjson p "$json" '{repository: "test/repository", lease: {ttl: "2s", heartbeat: "500ms"}, producers: $p}' \
        >tenure.json
    commit_all "Demand it"
}

# wait_for SECONDS COMMAND...: the condition holds within the bound, or the test fails.
wait_for() {
    local bound=$(($(date +%s%N) + $1 * 1000000000))
    shift
    until "$@"; do
        [ "$(date +%s%N)" -lt $bound ] || {
            echo "waited in vain for: $*" >&2
            return 1
        }
        read -r -t 0.02 <> <(:) || true
    done
}

# background NAME COMMAND...: $PID runs, with NAME.out, NAME.err and, once it has ended, NAME.rc in the sandbox.
background() {
    local name=$1
    shift
    ( trap - INT QUIT; exec "$@" ) >"$SANDBOX/$name.out" 2>"$SANDBOX/$name.err" </dev/null 3>&- 4>&- &
    PID=$!
    STARTED+=("$PID")
}

# ended PID: the process is gone or a zombie.
ended() { ! kill -0 "$1" 2>/dev/null || [ "$(ps -o stat= -p "$1" | cut -c1)" = Z ]; }

db() { sqlite3 -cmd '.timeout 5000' "$STORE" "$@"; }
unfinished() { db "SELECT count(*) FROM attempt WHERE state IN ('planning','running')"; }
holds() { [ "$(unfinished)" = "${1:-1}" ] 2>/dev/null; }

# Processes that bear a mark of this sandbox's store.
marked_processes() {
    local environ pid
    for environ in /proc/[0-9]*/environ; do
        pid=${environ#/proc/}
        pid=${pid%/environ}
        [ "$pid" = $$ ] && continue
        tr '\0' '\n' <"$environ" 2>/dev/null | grep -qxF "XDG_STATE_HOME=$XDG_STATE_HOME" &&
            tr '\0' '\n' <"$environ" 2>/dev/null | grep -q '^TENURE_ATTEMPT=' && echo "$pid"
    done 2>/dev/null
}
none_marked() { [ -z "$(marked_processes)" ]; }

# A digest of the store and the work tree, to show that a refusal changed nothing.
fingerprint() {
    { [ ! -e "$STORE" ] || sha256sum "$STORE"; git status --porcelain=v2 -uall 2>/dev/null; find "$XDG_STATE_HOME" -type f \
        -printf '%P %s\n' 2>/dev/null | sort; } | sha256sum
}

assert_exit() { # assert_exit CODE: of the last `run`
    # shellcheck disable=SC2154
    [ "$status" -eq "$1" ] || {
        echo "exit status $status instead of $1; output:" >&2
        # shellcheck disable=SC2154
        echo "$output" >&2
        return 1
    }
}
assert_says() { # assert_says TEXT...: each is in the last `run`'s output
    local text
    for text; do
        [[ $output == *"$text"* ]] || {
            echo "not said: $text; output:" >&2
            echo "$output" >&2
            return 1
        }
    done
}
