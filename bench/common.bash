# bench/common.bash: what the measurements share. Each is a script of its own that prints one table; `holds` ends it.
#
# TENURE names the program measured; without it the release build is made and taken. A place in memory (/dev/shm) keeps
# the disk out of the figures; BENCH_PLACE names another.
set -euo pipefail

BENCH=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
SOURCE=$(cd "$BENCH/.." && pwd)
if [ -z "${TENURE-}" ]; then
    "$SOURCE/tools/build" release
    TENURE=$SOURCE/build/release/tenure
fi
PLACE=$(mktemp -d "${BENCH_PLACE:-/dev/shm}/tenure-bench.XXXXXX")
trap 'chmod -R u+rwx "$PLACE"; rm -rf "$PLACE"' EXIT
MISSED=0

mkdir -p "$PLACE"/{home,state,config,tmp}
for name in $(compgen -e); do
    case $name in TENURE) ;; TENURE_* | GIT_* | XDG_*) unset "$name" ;; esac
done
export HOME=$PLACE/home XDG_STATE_HOME=$PLACE/state XDG_CONFIG_HOME=$PLACE/config TMPDIR=$PLACE/tmp
export LC_ALL=C.UTF-8 TZ=UTC TERM=dumb GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=$PLACE/gitconfig
git config --global user.name 'A Tester'
git config --global user.email tester@example.org
git config --global init.defaultBranch main

"$TENURE" store migrate --quiet
STORE=$(echo "$XDG_STATE_HOME"/tenure/*.db)
cc -O1 -D_GNU_SOURCE -o "$PLACE/peak" "$BENCH/peak.c"

# repository DIR: a git repository, and goes there.
repository() {
    git init -q "$1" && cd "$1"
    [ -d "$XDG_CONFIG_HOME/tenure/keys" ] || "$TENURE" key new >/dev/null
}
commit_all() { git add -A && git commit -q -m "A change"; }
db() { sqlite3 -cmd '.timeout 5000' "$STORE" "$@"; }
now_ms() { date +%s%3N; }
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
maximum() { sort -n | tail -n 1; }
calc() { awk "BEGIN { printf \"%.${2:-1}f\", $1 }"; }

# compare FILE RUNS COMMAND...: all of them in one hyperfine; FILE.json has the figures.
compare() {
    local file=$1 runs=$2
    shift 2
    hyperfine -N --warmup 3 --runs "$runs" --style none --export-json "$PLACE/$file.json" "$@" >/dev/null 2>&1
}
figure() { jq -r ".results[$2].$3 * 1000" "$PLACE/$1.json"; } # figure FILE INDEX median|user|system: milliseconds
processor() { calc "$(figure "$1" "$2" user) + $(figure "$1" "$2" system)" 2; } # processor FILE INDEX: milliseconds

# peak_mib COMMAND...
peak_mib() { { "$PLACE/peak" "$@" 2>&1 >/dev/null || true; } | awk '/^peak / { m = $2 } END { printf "%.1f", m / 1024 }'; }

title() {
    printf '\n%s\n' "$1"
    printf '  %-48s %12s %12s %12s\n' '' here 'beside it' target
}
row() { # row WHAT FIGURE BESIDE TARGET [HOLDS]: HOLDS is an expression, true when the target is held
    local verdict=''
    if [ -n "${5-}" ]; then
        if awk "BEGIN { exit !($5) }"; then verdict=holds; else verdict=MISSED MISSED=1; fi
    fi
    printf '  %-48s %12s %12s %12s  %s\n' "$1" "$2" "$3" "$4" "$verdict"
}
holds() { exit "$MISSED"; }
