#!/usr/bin/env bats
# Job control, and the places in which the program is started: Ctrl-Z, fg, bg, &, a git hook, another run.

load helpers
load leases
load supervision

setup() {
    sandbox
    repository
}
teardown() { sandbox_end; }

beating="while [ ! -e \"\$HOME/go\" ]; do echo x >>\"\$HOME/work\"; sleep 0.05; done; echo \$? >\"\$HOME/end\""
progress() { wc -l <"$HOME/work"; }
worked() { [ "$(progress)" -gt "$1" ]; }
in_state() { ps -o stat= -p "$1" | grep -q "^$2"; }
kinds() { records_of "$1" | jq -rs '[.[].kind | select(. == "frozen" or . == "thawed")] | join(" ")'; }

# An interactive shell in which `$1` was typed; its supervisor is $supervisor, its attempt $attempt.
begin() {
    terminal term bash --norc --noprofile -i
    typed "%s\n" "$1"
    wait_for 60 test -s "$HOME/work"
    attempt=$(newest)
    supervisor=$(supervisor_of "$attempt")
}
end() {
    : >"$HOME/go"
    wait_for 60 holds 0
    wait_for 60 gone "$supervisor"
    typed 'exit\nexit\n'
    wait_for 60 ended "$TERMINAL"
}

@test "Ctrl-Z: the work stands still before the program does; fg renews first and then thaws" {
    producers work="$beating"
    begin "'$TENURE' done; echo status \$?"
    typed '\032'
    wait_for 60 standing "$supervisor"
    # Frozen, and written down, before it stopped: every process of the work stands.
    [[ $(kinds "$attempt") == *frozen ]]
    worker=$(records_of "$attempt" | jq -r 'select(.kind == "started").pid')
    wait_for 10 in_state "$worker" T
    done_before=$(progress)
    wait_for 60 shown term Stopped
    # Longer than the lease.
    wait_for 60 lapsed "$attempt"
    [ "$(progress)" = "$done_before" ]
    beats
    typed 'fg\n'
    wait_for 60 worked "$done_before"
    [[ $(kinds "$attempt") == *"frozen thawed" ]]
    thawed=$(records_of "$attempt" | jq -s 'map(select(.kind == "thawed"))[0].wall_ms')
    [ "$(db "SELECT boot_ms FROM beat ORDER BY n LIMIT 1")" -le "$thawed" ]
    end
    has_ended passed passed "$attempt"
    shown term 'is proved at'
    # The time that it stood still is not its own.
    records_of "$attempt" | jq -es '(map(select(.kind == "finished"))[0].frozen_ms) >= 1500' >/dev/null
}

@test "Ctrl-Z and bg: the work goes on, and nothing is drawn over the shell's prompt" {
    producers work="$beating"
    begin "'$TENURE' done"
    typed '\032'
    wait_for 60 standing "$supervisor"
    done_before=$(progress)
    wait_for 60 shown term Stopped
    typed 'bg\n'
    wait_for 60 worked "$((done_before + 20))"
    sed -n '/Stopped/,$p' "$SANDBOX/term.out" >"$HOME/after"
    ! grep -qaF $'\033[?25l' "$HOME/after"
    ! grep -qaF '0 of 1' "$HOME/after"
    end
    has_ended passed passed "$attempt"
}

@test "Ctrl-Z and kill: a frozen run is stopped for good" {
    producers work="$beating"
    begin "'$TENURE' done"
    typed '\032'
    wait_for 60 standing "$supervisor"
    wait_for 60 shown term Stopped
    kill -TERM "$supervisor"
    kill -CONT "$supervisor"
    wait_for 60 holds 0
    has_ended cancelled signal "$attempt"
    none_marked
    end
}

@test "Ctrl-C: the whole foreground gets INT, the run ends once, the cursor is back" {
    producers work="$beating"
    begin "'$TENURE' done; echo status \$?"
    typed '\003'
    wait_for 60 holds 0
    wait_for 60 shown term 'cancelled by signal 2'
    has_ended cancelled signal "$attempt"
    # Never left hidden.
    [ "$(grep -ao $'\033\[?25[lh]' "$SANDBOX/term.out" | tail -n 1)" != $'\033[?25l' ]
    none_marked
    end
}

@test "INT before there is an attempt: git ends with it, and the filter that git waits for" {
    producers quick=true
    printf '#!/bin/sh\necho $$ >"%s.new"; mv "%s.new" "%s"\nsleep 600\n' "$HOME"/{filter,filter,filter} >"$HOME/slow"
    chmod +x "$HOME/slow"
    echo 'data filter=slow' >.gitattributes
    echo x >data
    commit_all "Filter it"
    git config filter.slow.clean "$HOME/slow"
    touch -d '1 hour ago' data # git has to look into it
    background one "$TENURE" done
    wait_for 20 test -s "$HOME/filter"
    kill -INT "$PID"
    finish one "$PID"
    [ "$RC" = 130 ]
    ended "$(<"$HOME/filter")"
}

@test "in the background of an interactive shell, with tostop: it runs to its end" {
    producers work="$beating"
    begin "stty tostop; '$TENURE' done & echo"
    wait_for 60 worked 20
    ! standing "$supervisor"
    end
    has_ended passed passed "$attempt"
    ! grep -qaF $'\033[?25l' "$SANDBOX/term.out"
}

@test "a command is frozen by Ctrl-Z and thawed by fg, too" {
    begin "'$TENURE' run --subject s --ttl 2s -- sh -c '$(sed "s/'/'\\\\''/g" <<<"$beating")'; echo status \$?"
    typed '\032'
    wait_for 60 standing "$supervisor"
    done_before=$(progress)
    wait_for 60 lapsed "$attempt"
    [ "$(progress)" = "$done_before" ]
    typed 'fg\n'
    wait_for 60 worked "$done_before"
    [[ $(kinds "$attempt") == *"frozen thawed" ]]
    end
    has_ended passed passed "$attempt"
}

@test "in a git hook: its repository, whatever the hook's environment says" {
    producers top='git rev-parse --show-toplevel; env | grep ^GIT_; true'
    git init -q --bare "$SANDBOX/up.git"
    git init -q "$SANDBOX/other"
    git remote add origin "$SANDBOX/up.git"
    printf '#!/bin/sh\nexport GIT_DIR="%s/other/.git" GIT_INDEX_FILE=/nowhere\nexec "%s" done\n' "$SANDBOX" "$TENURE" >.git/hooks/pre-push
    chmod +x .git/hooks/pre-push
    run git push -q origin main
    assert_exit 0
    assert_says "is proved at"
    [ "$(<"$(log_of top)")" = "$REPO" ]
    # And it refuses what is red.
    producers top=false
    run git push -q origin main
    [ "$status" -ne 0 ]
    assert_says "exited with status 1"
    [ "$(git --git-dir="$SANDBOX/up.git" rev-list --count main)" = 2 ]
}

@test "in another done: refused with 2, before anything; a command inside of a command runs" {
    producers nested="'$TENURE' done; echo \"status \$?\""
    run "$TENURE" done
    assert_exit 0
    grep -q 'was called by a producer of attempt' "$(log_of nested)"
    [ "$(tail -n 1 "$(log_of nested)")" = "status 2" ]
    [ "$(db "SELECT count(*) FROM attempt")" = 1 ]
    run "$TENURE" run --subject a -- "$TENURE" run --subject b -- sh -c 'exit 11'
    assert_exit 11
}
