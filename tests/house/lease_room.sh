#!/bin/sh
# Only attempts/lease.c compares the times of a lease, and the function tenure.lapsed() where a server does it; a test
# holds that against the former. Prints every comparison found elsewhere, in C or in SQL.
# usage: lease_room.sh [ROOT]
set -eu
cd "${1:-$(dirname "$0")/../..}"

# "->" is no comparison and comments compare nothing; after that, any < or > on a line with a lease's time is one.
comparisons() {
    sed -e '/^CREATE FUNCTION tenure\.lapsed(/,/^\$\$$/s/.*//' -e 's/->/./g' -e 's|/\*.*\*/||' -e 's|^ \*.*||' -e 's|#include.*||' -e 's/--.*//' |
        grep -nE '\b(acquired|renewed|expires)_(ms|at)\b' | grep -E '[<>]|\b(min|max|BETWEEN)\b' || true
}

# A check that cannot find is none.
for sample in 'if (attempt->lease.expires_ms < now.ms)' 'left = now.ms > lease.renewed_ms' 'WHERE expires_at < ?1'; do
    if [ -z "$(echo "$sample" | comparisons)" ]; then
        echo "this check no longer sees: $sample" >&2
        exit 1
    fi
done

found=$(find . \( -path ./build -o -path ./.git -o -path ./tests \) -prune -o \
    \( -name '*.[ch]' -o -name '*.sql' \) ! -path ./attempts/lease.c -print |
    while IFS= read -r file; do
        comparisons <"$file" | sed "s|^|$file:|"
    done)
if [ -n "$found" ]; then
    echo "a lease is compared with a clock outside attempts/lease.c and tenure.lapsed():" >&2
    echo "$found" >&2
    exit 1
fi
