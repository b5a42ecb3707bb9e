#!/bin/bash
# tests/house/floors.sh [ROOT]: no include runs upward, and attempts/ and journal/ do not know each other.
set -u
cd "${1:-$(dirname "$0")/../..}" || exit 2

declare -A below=(
    [base]="base"
    [journal]="base journal"
    [attempts]="base attempts generated"
    [supervisor]="base journal attempts supervisor"
    [command]="base journal attempts supervisor command"
    [publish]="base journal attempts supervisor publish"
    [completion]="base journal attempts supervisor completion"
    [cli]="base journal attempts supervisor command publish completion cli"
)
failed=0
for room in "${!below[@]}"; do
    while IFS=: read -r file line text; do
        target=${text#*\"}
        target=${target%%/*}
        case " ${below[$room]} " in
        *" $target "*) ;;
        *)
            echo "$file:$line: $room/ must not include from $target/"
            failed=1
            ;;
        esac
    done < <(grep -rnE '^#include "' "$room" --include='*.[ch]')
done

# Nothing below cli/ prints or exits; only the spawner forks; SQL stays with the stores.
forbid() {
    local pattern=$1 where=$2 why=$3
    # shellcheck disable=SC2086
    if grep -rnE "$pattern" $where --include='*.[ch]' | grep -vE '^[^:]+:[0-9]+: ?(/?\*|//)'; then
        echo "^ $why"
        failed=1
    fi
}
forbid '\b(printf|puts|putchar|perror)\(' 'base journal attempts supervisor command publish completion' \
    'nothing below cli/ prints'
forbid '\bexit\(' 'base journal attempts supervisor command completion' 'nothing below cli/ exits'
forbid '\b(fork|vfork|posix_spawn|system|popen)\(' 'base journal attempts command publish completion cli' \
    'only the supervisor spawns'
forbid '\bsqlite3_|SELECT .* FROM' 'base journal supervisor command publish completion cli' 'SQL stays with the stores'
forbid '\bkill\(' "base journal attempts command publish completion $(find supervisor -name '*.[ch]' ! -name process.c)" \
    'signals go through supervisor/process.h: kill(2) takes some numbers for everybody'
forbid '\bfork\(\)' "$(find tests/unit tests/conformance tests/mutants -name '*.[ch]' ! -name checked_fork.h)" \
    'tests fork through tests/unit/checked_fork.h'
exit $failed
