# tests/crash/scenarios.bash: the ways to a failpoint. Each scenario_NAME prepares a world and drives the program, with
# the failpoint of the case ($ORDER), to where it hits; RC is then the victim's exit status.
#
# SCENARIOS_OF POINT lists those to try, likeliest first; a point with a name that nobody has heard of tries them all.

SCENARIOS=(done beat dead reboot run run_dead cancel cancel_dead lost_answer waiting interrupt moved suspend frozen loud key trust
    migrate prune init attach)

declare -A MEANING=(
    [done]="a first \`done\`"
    [beat]="a \`done\` that renews"
    [dead]="a \`done\` after a killed one whose work lives"
    [reboot]="a \`done\` after one that a reboot ended"
    [run]="\`run\`"
    [run_dead]="\`run\` after a killed one whose work lives"
    [cancel]="\`cancel\` of a running \`done\`"
    [cancel_dead]="\`cancel\` of a killed \`done\`"
    [lost_answer]="a \`done\` whose settlement's answer was lost"
    [waiting]="\`done --wait\` behind a running one"
    [interrupt]="a \`done\` that gets SIGINT"
    [moved]="a \`done\` whose tree is changed while work runs"
    [suspend]="a \`done\` that gets SIGTSTP"
    [frozen]="a \`done\` that slept past its lease"
    [loud]="a \`done\` with 70 MB of output"
    [key]="\`key new\`"
    [trust]="\`key trust\`"
    [migrate]="\`store migrate\` of a new store"
    [prune]="\`journal prune\`"
    [init]="\`init\`"
    [attach]="\`attach\` to an ended run"
)

scenarios_of() {
    case $1 in
    migrate-*) echo migrate done ;;
    key-*trust) echo trust ;;
    key-*) echo key ;;
    leftovers-before-begin | leftovers-*-commit) echo reboot ;;
    retire-* | leftover*) echo dead cancel_dead run_dead ;;
    cancel-*) echo cancel cancel_dead ;;
    renew-* | heartbeat-*) echo beat ;;
    settle-ask-*) echo lost_answer ;;
    guard-*) echo frozen ;;
    journal-remove-*) echo prune done ;;
    journal-watch*) echo waiting attach ;;
    output-*join) echo loud ;;
    supervisor-*suspend*) echo suspend ;;
    supervisor-*end-work*) echo moved interrupt done ;;
    command-*) echo run ;;
    file-*) echo key init done trust ;;
    journal-* | output-* | hold-* | spawn-* | supervisor-* | reserve-* | bind-* | evidence-* | settle-* | completion-* | checkout-*)
        echo done run dead interrupt beat waiting moved suspend frozen ;;
    *) echo "${SCENARIOS[@]}" ;;
    esac
}

# Further ways to points that matter on each of them.
extra_scenarios_of() {
    case $1 in
    reserve-before-commit | reserve-after-commit) echo run dead ;;
    settle-before-commit | settle-after-commit) echo run interrupt ;;
    retire-before-commit | retire-after-commit) echo cancel_dead run_dead ;;
    leftover-delete-*commit) echo run_dead ;;
    esac
}

# One producer after the other: so that what is there at a point is always the same.
PROVE=(done --jobs 1)
scenario_done() { victim "${PROVE[@]}"; }

has_renewed() { [ "$(db "SELECT count(*) FROM attempt WHERE rev > 2")" -gt 0 ] 2>/dev/null || ended "$VICTIM"; }
scenario_beat() {
    slow_work
    victim_start "${PROVE[@]}"
    wait_for 10 has_renewed && release_work
    victim_wait
}

# A dead owner: killed, its work alive, its subjects held.
leave_dead() {
    slow_work
    TENURE_FAILPOINT=supervisor-job-started:kill timeout 30 "$TENURE" "$@" >"$SANDBOX/dead.out" 2>&1 </dev/null
    [ $? = 137 ] && wait_for 5 work_is_marked || return 1
    fast_work
}
scenario_dead() { leave_dead "${PROVE[@]}" && victim "${PROVE[@]}"; }
# An owner of another boot: its record, its journal, and nothing that lives.
scenario_reboot() {
    TENURE_TEST_BOOT_ID=$(printf '%032d' 1) leave_dead "${PROVE[@]}" || return
    marked_processes | xargs -r kill -KILL
    # The embedded store's times are of that boot; a server's go on.
    [ "$STORE_KIND" = embedded ] || wait_for 10 has_lapsed
    victim "${PROVE[@]}"
}
scenario_run() { victim run --subject object:thing --ttl 2s --heartbeat 500ms -- true; }
# shellcheck disable=SC2016
scenario_run_dead() {
    leave_dead run --subject object:thing --ttl 2s --heartbeat 500ms -- \
        sh -c 'until [ -e "$HOME/go" ]; do sleep 0.05; done' &&
        victim run --subject object:thing --ttl 2s --heartbeat 500ms -- true
}

# Somebody else's run that goes on: HOLDER is its process, HANDLE its journal.
start_holder() {
    slow_work
    background holder "$TENURE" "${PROVE[@]}"
    HOLDER=$PID
    wait_for 10 holds 1 && wait_for 10 work_is_marked && HANDLE=$(db 'SELECT journal_handle FROM attempt')
}
end_holder() {
    release_work
    fast_work
    wait_for 15 ended "$HOLDER"
}
# What was asked for reaches the holder with its next renewal; what was not leaves it to go on.
scenario_cancel() {
    start_holder && victim cancel "$HANDLE"
    [ "$(db 'SELECT count(*) FROM attempt WHERE cancel_by IS NOT NULL')" = 0 ] || wait_for 10 ended "$HOLDER"
    end_holder
}
scenario_cancel_dead() { leave_dead "${PROVE[@]}" && victim cancel "$(db 'SELECT journal_handle FROM attempt')"; }
scenario_lost_answer() { ORDER=settle-after-commit:error@1,$ORDER victim "${PROVE[@]}"; }
waits() { grep -qsiE 'wait' "$SANDBOX/victim.out" "$SANDBOX/victim.err" || ended "$VICTIM"; }
scenario_waiting() {
    start_holder || return
    victim_start "${PROVE[@]}" --wait=20s
    wait_for 10 waits
    end_holder
    victim_wait
}
scenario_interrupt() {
    slow_work
    victim_start "${PROVE[@]}"
    wait_for 10 work_is_marked
    kill -INT "$VICTIM"
    victim_wait
}
scenario_moved() {
    slow_work
    : >"$HOME/move"
    victim done --jobs 2
    rm "$HOME/move"
    git checkout -q hello.txt
}
scenario_suspend() {
    slow_work
    victim_start "${PROVE[@]}"
    wait_for 10 work_is_marked
    kill -TSTP "$VICTIM"
    wait_for 5 is_stopped_or_ended
    kill -CONT "$VICTIM" 2>/dev/null
    release_work
    victim_wait
}
# Stopped until its lease has run out: continued, its guard freezes the work before a renewal lets it go on.
has_lapsed() {
    [ "$STORE_KIND" = embedded ] || { is_there "SELECT bool_and(lapsed) FROM tenure.status()"; return; }
    [ "$(cut -d' ' -f1 /proc/uptime | awk '{ printf "%d", $1 * 1000 }')" -gt "$(db 'SELECT expires_at FROM attempt')" ]
}
scenario_frozen() {
    slow_work
    victim_start "${PROVE[@]}"
    wait_for 10 work_is_marked
    kill -STOP "$VICTIM"
    wait_for 10 has_lapsed
    kill -CONT "$VICTIM"
    wait_for 10 was_frozen
    release_work
    victim_wait
}
was_frozen() { grep -qs '"kind":"thawed"' "$XDG_STATE_HOME"/tenure/journals/T-*/journal || ended "$VICTIM"; }
scenario_loud() { : >"$HOME/loud"; victim "${PROVE[@]}"; rm -f "$HOME/loud"; }
scenario_key() { rm -rf "$XDG_CONFIG_HOME/tenure"; victim key new; }
scenario_trust() {
    mkdir "$SANDBOX/other"
    XDG_CONFIG_HOME=$SANDBOX/other quietly other key new
    victim key trust "$(find "$SANDBOX/other" -name '*.pub' | head -n 1)"
}
scenario_migrate() { victim store migrate; }
scenario_prune() { quietly before done && victim journal prune --keep 0 --older 0s; }
scenario_init() { rm tenure.json; victim init; git clean -fdq && git checkout -q .; }
scenario_attach() { quietly before done && victim attach; }
