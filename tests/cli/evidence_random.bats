#!/usr/bin/env bats
# Random graphs of producers with 1 to 8 jobs: all finish in order, or are refused with the path of a cycle, as
# tsort(1) sees it too. TENURE_TEST_ROUNDS multiplies how many are run.

load helpers
load evidence

ROUNDS=${TENURE_TEST_ROUNDS:-1}

setup() {
    sandbox
    repository
    LOG=$SANDBOX/log
}
teardown() { sandbox_end; }

# graph SEED: a random graph in tenure.json, its edges in $SANDBOX/edges, its size in SIZE. Every other one is free of
# cycles by construction, with names in an order that tells nothing.
graph() {
    RANDOM=$1
    local i j edges=() density
    SIZE=$((2 + RANDOM % 9)) density=$((10 + RANDOM % 40))
    for ((i = 0; i < SIZE; i++)); do
        for ((j = 0; j < SIZE; j++)); do
            ((i == j || ($1 % 2 == 0 && j >= i) || ($1 % 2 == 1 && RANDOM % 3 == 0))) && continue
            ((RANDOM % 100 < density)) && edges+=("n$((i * 7 % 11)) n$((j * 7 % 11))")
        done
    done
    for ((i = 0; i < SIZE; i++)); do echo "n$((i * 7 % 11)) n$((i * 7 % 11))"; done >"$SANDBOX/edges"
    printf '%s\n' "${edges[@]}" | sed '/^$/d' >>"$SANDBOX/edges"
    local name json= exit needs
    for ((i = 0; i < SIZE; i++)); do
        name=n$((i * 7 % 11)) exit=0 needs=
        for j in "${edges[@]}"; do [ "${j% *}" = "$name" ] && needs+=",\"${j#* }\""; done
        [ $(($1 % 5)) = 4 ] && [ $name = n0 ] && exit=1
        json+=",\"$name\":{\"run\":\"echo begin $name >>$LOG; echo end $name >>$LOG; exit $exit\"${needs:+,\"needs\":[${needs#,}]}}"
    done
    echo "{\"repository\":\"random/$1\",\"lease\":{\"ttl\":\"5s\",\"heartbeat\":\"1s\"},\"producers\":{${json#,}}}" >tenure.json
}
has_cycle() { ! tsort "$SANDBOX/edges" >/dev/null 2>&1; }

# The refusal's path is one of the graph: each step is an edge, and it ends where it began.
path_is_true() {
    local path from to first
    path=$(doc .error.message | grep -oE 'n[0-9]+( -> n[0-9]+)+') || return 1
    first=${path%% *}
    [ "${path##* }" = "$first" ] || return 1
    from=$first
    for to in $(sed "s/^$first -> //; s/-> //g" <<<"$path"); do
        grep -qx "$from $to" "$SANDBOX/edges" || return 1
        from=$to
    done
}

# Everything that ran began after all that it needs had ended, and ran once.
in_order() {
    awk 'NR == FNR { if ($1 != $2) needs[$1] = needs[$1] " " $2; next }
        $1 == "begin" { if (begun[$2]++) exit 1
            n = split(needs[$2], need, " "); for (i = 1; i <= n; i++) if (!ended[need[i]]) exit 1 }
        $1 == "end" { ended[$2] = 1 }' "$SANDBOX/edges" "$LOG"
}

# What a failure of n0 leaves undone with --keep-going: all that needs it, however far, and nothing else.
all_but_dependents() {
    local before=0 after=1
    echo n0 >"$SANDBOX/lost"
    while [ $before -ne $after ]; do
        before=$(wc -l <"$SANDBOX/lost")
        awk 'NR == FNR { lost[$1] = 1; next } $2 in lost { print $1 }' "$SANDBOX/lost" "$SANDBOX/edges" |
            sort -u - "$SANDBOX/lost" -o "$SANDBOX/lost"
        after=$(wc -l <"$SANDBOX/lost")
    done
    diff <(grep -vx n0 "$SANDBOX/lost") <(doc '.producers[] | select(.source == null).name' | sort)
}

@test "E6: random graphs are planned or refused with the path of a cycle" {
    local seed refused=0
    for ((seed = 0; seed < 100 * ROUNDS; seed++)); do
        graph $seed
        done_json --dirty --dry-run
        if has_cycle; then
            [ "$RC" -eq 2 ] || { echo "graph $seed: $DOC"; false; }
            path_is_true || { echo "graph $seed: $DOC"; cat "$SANDBOX/edges"; false; }
            refused=$((refused + 1))
        else
            [ "$RC" -eq 0 ] || { echo "graph $seed: $DOC"; false; }
            # All of it, and needs first.
            doc '.plan[].name' >"$SANDBOX/plan"
            [ "$(wc -l <"$SANDBOX/plan")" = "$SIZE" ]
            awk 'NR == FNR { at[$1] = FNR; next } $1 != $2 && at[$1] < at[$2] { exit 1 }' "$SANDBOX/plan" "$SANDBOX/edges"
        fi
    done
    # Both kinds were among them.
    [ $refused -gt $((10 * ROUNDS)) ]
    [ $refused -lt $((90 * ROUNDS)) ]
}

@test "E6: random graphs run to their end with 1 to 8 jobs, and what failed stops what needs it" {
    local seed
    for ((seed = 1000; seed < 1000 + 32 * ROUNDS; seed += 2)); do
        graph $seed
        commit_all
        : >"$LOG"
        done_json --jobs $((1 + seed / 2 % 8)) --keep-going
        in_order || { echo "graph $seed: $DOC"; cat "$LOG" "$SANDBOX/edges"; false; }
        if [ $((seed % 5)) = 4 ]; then
            [ "$RC" -eq 1 ] || { echo "graph $seed: $DOC"; false; }
            all_but_dependents || { echo "graph $seed: $DOC"; cat "$SANDBOX/edges"; false; }
        else
            [ "$RC" -eq 0 ] || { echo "graph $seed: $DOC"; false; }
            [ "$(grep -c ^begin "$LOG")" = "$SIZE" ] || { echo "graph $seed: $DOC"; cat "$LOG"; false; }
        fi
    done
}
