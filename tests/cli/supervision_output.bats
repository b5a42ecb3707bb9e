#!/usr/bin/env bats
# Output without end, without lines, without meaning: memory stays, logs are capped, nobody forges a line of ours.
# TENURE_TEST_ROUNDS=10 makes the 2 GB of zeros 20.

load helpers
load leases
load supervision

setup() {
    sandbox
    repository
}
teardown() { sandbox_end; }

memory_kb() { awk '/^VmHWM/ { print $2 }' "/proc/$1/status"; }

@test "S7: gigabytes of zeros, lines without end, a line without end: constant memory, a capped log, the rest counted" {
    local zeros=$((2000000000 * ROUNDS)) line=$((500000000 * ROUNDS)) before after
    producers first="$(waits_for "$HOME/one")" \
        zeros="head -c $zeros /dev/zero" line="head -c $line /dev/zero | tr '\\0' x" yes="yes | head -c $line" \
        last="$(waits_for "$HOME/two")"
    jq '.lease = {ttl: "12s", heartbeat: "500ms"} | .producers |= with_entries(if .key == "first" then . elif .key == "last"
        then .value.needs = ["zeros", "line", "yes"] else .value.needs = ["first"] end)' tenure.json >"$SANDBOX/t"
    cp "$SANDBOX/t" tenure.json && commit_all
    background run "$TENURE" done --jobs 2
    wait_for 60 work_runs first
    before=$(memory_kb "$PID")
    : >"$HOME/one"
    wait_for $((280 * ROUNDS)) work_runs last
    after=$(memory_kb "$PID")
    : >"$HOME/two"
    finish run "$PID" 120
    finished_with 0
    [ $((after - before)) -lt 32768 ] || {
        echo "from $before kB to $after kB" >&2
        return 1
    }
    for name in zeros line yes; do
        [ "$(stat -c %s "$(log_of $name)")" -lt $((65 * 1024 * 1024)) ]
    done
    # What is kept and what was dropped is all there was, and both are told.
    finished zeros | jq -e --argjson n "$zeros" '.offset_bytes == $n and .dropped_bytes > $n - 70000000' >/dev/null
    finished yes | jq -e --argjson n "$line" '.offset_bytes == $n' >/dev/null
    [[ $OUT == *"zeros: passed in "*"$(finished zeros | jq .dropped_bytes) bytes of its output were dropped"* ]]
}

@test "S7: every byte value, a split character, no final newline: kept as they are, shown so that no terminal obeys" {
    producers bytes='i=0; while [ $i -lt 256 ]; do printf "\\$(printf %03o $i)"; i=$((i+1)); done; printf "\342"; sleep 0.2; printf "\234\223 end"; exit 1'
    local name
    for name in C C.UTF-8; do
        LC_ALL=$name run "$TENURE" done --rerun
        assert_exit 1
        { for ((i = 0; i < 256; i++)); do printf "\\$(printf %03o $i)"; done; printf '\342\234\223 end'; } >"$HOME/bytes"
        cmp "$HOME/bytes" "$(log_of bytes)"
        LC_ALL=C tr -d '\n[:print:]\200-\377' <<<"$output" >"$HOME/control"
        [ ! -s "$HOME/control" ] || [ "$(wc -c <"$HOME/control")" = 0 ]
        [[ $output == *"end"* ]]
    done
    # In the C locale not one byte of it is above ASCII; in UTF-8 all of it is UTF-8.
    LC_ALL=C "$TENURE" done --rerun >"$HOME/out" 2>&1 || true
    ! LC_ALL=C grep -q '[^ -~]' "$HOME/out"
    LC_ALL=C.UTF-8 "$TENURE" done --rerun >"$HOME/out" 2>&1 || true
    iconv -f UTF-8 -t UTF-8 "$HOME/out" >/dev/null
    LC_ALL=C.UTF-8 "$TENURE" done --rerun --json 2>/dev/null | jq -e '.producers[0].exit == 1' >/dev/null
}

@test "S7: lines that look like ours, and commands for the terminal: nothing of a producer stands where ours stand" {
    producers forge='printf "forge: passed in 1 ms\n\033[2J\033[H\r✓ test/repository is proved at 0000 by Proof 1234\n\033]0;owned\007\n{\"outcome\":\"done\"}\n"; exit 1'
    run "$TENURE" done
    assert_exit 1
    [ "$(grep -c '^  | forge: passed in 1 ms$' <<<"$output")" = 1 ]
    ! grep -v '^  | \|^    reproduce ' <<<"$output" | grep -q 'is proved\|passed in\|"outcome"'
    ! grep -q $'[\033\r\007]' <<<"$output"
    [ "$("$TENURE" done --json | jq -s 'length')" = 1 ]
    # The same on a terminal.
    terminal term "$TENURE" done --rerun
    finish term "$TERMINAL" 60
    finished_with 1
    ! grep -qaF $'\033[2J' "$SANDBOX/term.out"
    ! grep -qaF $'\033]0;' "$SANDBOX/term.out"
    ! grep -a $'^\\(\033\\[[0-9;?]*[a-zA-Z]\\)*✓ ' "$SANDBOX/term.out" | grep -q 'is proved'
}

@test "S7: 200 producers at once: all lines are whole, each log is its producer's" {
    local words=() i
    for ((i = 1; i <= 200; i++)); do
        words+=("p$i=for n in 1 2 3 4 5; do echo 'p$i line '\$n' ---------------------------------------'; sleep 0.05; done")
    done
    producers "${words[@]}"
    jq '.lease = {ttl: "12s"}' tenure.json >"$SANDBOX/t" && cp "$SANDBOX/t" tenure.json && commit_all
    timeout 240 "$TENURE" done --jobs 200 >"$HOME/out" 2>&1
    ! grep -vE '^(T-[0-9A-Z]{4}-[0-9A-Z]{4}: reconnect with .*|attempt .*|plan: .*|note: .*|p[0-9]+: (started|passed in [0-9.]+ m?s)|still running: .*|✓ .* is proved at .*)$' "$HOME/out"
    [ "$(grep -c ': started$' "$HOME/out")" = 200 ]
    [ "$(grep -c ': passed in ' "$HOME/out")" = 200 ]
    out=$(dirname "$(journal_of)")/out
    for ((i = 1; i <= 200; i++)); do
        [ "$(grep -c "^p$i line [1-5] -*$" "$out/p$i.log")" = 5 ]
        [ "$(wc -l <"$out/p$i.log")" = 5 ]
    done
    none_marked
}

@test "S7: no file may grow further: an error as on a full disk, and not the end of the run by a signal" {
    producers much='head -c 400000 /dev/zero; grep -c "^SigIgn:.*[1-9a-f]" /proc/self/status || true; sleep 0.2; echo end' after=true
    run "$TENURE" done after # makes the store, which fits
    assert_exit 0
    run bash -c "ulimit -f 200 && exec '$TENURE' done much"
    assert_exit 1
    [[ $output == *"its output could not be kept"*"File too large"* ]]
    [[ $("$TENURE" status --all) == 'no unfinished attempt'* ]]
    # The command meets the limit as it would without us.
    run bash -c "ulimit -f 200 && exec '$TENURE' run --subject s -- head -c 400000 /dev/zero >'$HOME/file'"
    assert_exit $((128 + $(kill -l XFSZ)))
}
