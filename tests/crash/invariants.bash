# tests/crash/invariants.bash: what must hold once the next run has ended, whatever happened before. `complain` is told.

store_broken() {
    local file
    for file in "$HERE/invariants.sql" "$HERE/invariants-$STORE_KIND.sql"; do
        db "
$(<"$file")" || return
    done
}

check_store() {
    local broken
    if ! broken=$(store_broken 2>&1); then
        complain "the store cannot be asked: $broken"
    elif [ -n "$broken" ]; then
        while read -r line; do complain "$line"; done <<<"$broken"
    fi
}

# Whoever was held when its owner was killed was ended for that reason.
check_owner_gone() {
    local wrong
    [ "$ACTION" = kill ] && [ "$RC" = 137 ] || return 0
    wrong=$(db "SELECT id || ' ' || reason_code FROM attempt
        WHERE state = 'cancelled' AND reason_code NOT IN ('owner-gone', 'lapsed', 'signal', 'cancel-requested')")
    [ -z "$wrong" ] || complain "ended for another reason than its owner's death: $wrong"
    wrong=$(db "SELECT id FROM attempt WHERE state = 'cancelled' AND reason_code = 'lapsed'")
    [ -z "$wrong" ] || [ "$SCENARIO" = reboot ] || complain "an owner that is dead was waited for until its lease lapsed: $wrong"
}

check_processes() {
    wait_for 1 none_marked || complain "work lives on: $(marked_processes | xargs -r ps -o pid=,args= -p)"
}

# Every journal reads without damage, and anybody can still attach to it; who does exits as the run itself did, when that
# could still be said.
check_journals() {
    local journal look handle rc
    for journal in "$XDG_STATE_HOME"/tenure/journals/T-*/journal; do
        [ -e "$journal" ] || continue
        handle=$(basename "$(dirname "$journal")")
        look=$("$LOOK" "$journal" 2>&1) || complain "journal $handle is damaged: $look"
        rc=0
        BOUND=5 quietly attach attach "$handle" || rc=$?
        [[ $look != *settled* ]] || [ $rc = "$(tail -n 1 "$journal" | cut -d' ' -f3- | jq .exit_code)" ] ||
            complain "attach to $handle exits $rc: $(cat "$SANDBOX/attach.err")"
        [ $rc != 124 ] || complain "attach to $handle does not end; its owner is gone and its attempt over"
        [[ $look == *settled* ]] || { [ $rc != 70 ] && [ $rc -lt 128 ]; } || complain "attach to $handle exits $rc: $(cat "$SANDBOX/attach.err")"
        grep -qiE 'damage|corrupt' "$SANDBOX/attach.err" && complain "attach to $handle: $(cat "$SANDBOX/attach.err")"
    done
    return 0
}

# The journal of the run that was broken, when it still came to an end of its own, says how it exited.
check_exit() {
    local journal said
    [[ $RC =~ ^[0-9]+$ && $SCENARIO != @(cancel|cancel_dead|waiting|prune|attach|key|trust|init|migrate) ]] || return 0
    [ "$RC" != 137 ] || return 0
    journal=$(find "$XDG_STATE_HOME/tenure/journals" -path '*/T-*/journal' -newer "$SANDBOX/victim.mark" \
        ! -newer "$SANDBOX/victim.end" -printf '%T@ %p\n' 2>/dev/null | sort -n | tail -n 1 | cut -d' ' -f2)
    [ -n "$journal" ] || return 0
    said=$(tail -n 1 "$journal" | cut -d' ' -f3- | jq -r '.exit_code // empty' 2>/dev/null)
    [ -z "$said" ] || [ "$said" = "$RC" ] || complain "it exited $RC, and its journal says $said"
}

check_proof() {
    quietly verify verify || complain "verify exits $?: $(cat "$SANDBOX/verify.err" "$SANDBOX/verify.out")"
}

check_world() {
    check_store
    check_owner_gone
    check_processes
    check_journals
    check_exit
    check_proof
}
