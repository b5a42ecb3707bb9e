#!/usr/bin/env bats
# What a person sees, in a real terminal emulator: narrow and wide, UTF-8 and ASCII, running, failing, frozen, attached.

load helpers
load leases
load supervision

setup() {
    type tmux >/dev/null 2>&1 || skip "tmux is not there"
    sandbox
    repository
}
teardown() {
    screen kill-server 2>/dev/null || true
    sandbox_end
}

screen() { tmux -S "$SANDBOX/tmux" -f /dev/null "$@"; }
# open COLUMNS LOCALE: a terminal with a shell in it
open() {
    screen new-session -d -s s -x "$1" -y 24 "env LC_ALL=$2 PS1='$ ' bash --norc --noprofile -i"
    screen set-option -t s status off
}
picture() { screen capture-pane -p -t s; }
shows() { picture | grep -qE -- "$1"; }
enter() { screen send-keys -t s "clear; $1" Enter; }
# All of it is ASCII, and no line is wider than the terminal.
ascii() { ! picture | LC_ALL=C grep -q '[^ -~]'; }

work() {
    producers build="echo compiling; $(waits_for "$HOME/go")" "a-producer-with-a-long-name=$(waits_for "$HOME/go")" \
        red='printf "expected \303\274 in a line that is longer than forty columns, and it goes on\n\033[2Jlast line\n"; exit 3'
    jq '.lease = {ttl: "3s", heartbeat: "500ms"}' tenure.json >"$SANDBOX/t" && cp "$SANDBOX/t" tenure.json && commit_all
}
failed_and_working() { shows "red +[0-9.]+ m?s" && shows 'build +[0-9]'; }

# The whole story, in one size and one locale.
story() { # story COLUMNS LOCALE BAR
    local columns=$1 locale=$2 bar=$3
    work
    open "$columns" "$locale"
    enter "'$TENURE' done --keep-going --jobs 3"
    wait_for 60 failed_and_working
    wait_for 30 shows "$bar"
    # The first line names the handle; the last lines of what failed are there, and obey nobody.
    shows "tenure attach T-"
    shows "last line"
    # One line for each that works, and one bar, however often it was drawn.
    wait_for 30 one_of_each
    [ "$locale" != C ] || ascii
    # Attached from a second terminal.
    screen split-window -t s "env LC_ALL=$locale '$TENURE' attach; read x"
    screen resize-pane -Z -t s
    wait_for 30 failed_and_working
    wait_for 30 shows "$bar"
    screen kill-pane -t s
    # Frozen: another program holds the store for longer than the lease.
    hold_store
    wait_for 30 shows 'frozen since [0-9]'
    one_of_each
    release_store
    wait_for 30 never_or_thawed
    : >"$HOME/go"
    wait_for 60 holds 0
    wait_for 30 shows '^\$ *$'
    ! shows "$bar"
    [ "$locale" != C ] || ascii
}
one_of_each() {
    [ "$(picture | grep -cE '^ *[^ ]+ build +[0-9.]+ s')" = 1 ] && [ "$(picture | grep -cE '(of|/) ?3( |$)')" = 1 ]
}
never_or_thawed() { shows 'thawed after' || holds 0; }

@test "40 columns, UTF-8" { story 40 C.UTF-8 '━.* 1/3'; }
@test "40 columns, ASCII" { story 40 C '#.* 1/3'; }
@test "200 columns, UTF-8" { story 200 C.UTF-8 '━.* 1 of 3'; }
@test "200 columns, ASCII" { story 200 C '#.* 1 of 3'; }

# tmux reflows its lines a quarter of a second before it tells the new size, and a frame drawn in between may leave a
# line behind. But then the live lines stand whole at the end, and nothing is added from frame to frame.
whole() { # whole COLUMNS
    [ "$(screen display-message -p -t s '#{window_width}')" = "$1" ] &&
        [ "$(picture | grep . | tail -n 3 | sed -E 's/^ *[^ ]+ (build|a-prod).* [0-9]+(\.[0-9])? m?s.*/\1/; s/.*1( of |\/)3.*/bar/' |
            tr '\n' ' ')" = "build a-prod bar " ]
}
height() { picture | grep -c .; }
steady() { [ "$(height)" = "$kept" ] || { kept=$(height) && return 1; }; }
told_size() { [ "$(stty size <"$(screen display-message -p -t s '#{pane_tty}')")" = "24 $1" ]; }

@test "made narrower and wider while it runs: the live lines are whole, and stay where they are" {
    work
    open 120 C.UTF-8
    enter "'$TENURE' done --keep-going --jobs 3"
    wait_for 60 failed_and_working
    for columns in 60 45 100 150 50; do
        screen resize-window -t s -x $columns -y 24
        wait_for 30 told_size $columns
        wait_for 30 whole $columns
        kept=$(height) before=$(picture)
        wait_for 30 drawn_again
        wait_for 30 steady
        wait_for 30 whole $columns
    done
    : >"$HOME/go"
    wait_for 60 holds 0
}
drawn_again() { [ "$(picture)" != "$before" ]; }

@test "the cursor is visible, and below the lines that are drawn, however the run ends" {
    work
    open 80 C.UTF-8
    for key in C-c C-z; do
        enter "'$TENURE' done --keep-going --jobs 3 --rerun"
        wait_for 60 failed_and_working
        wait_for 30 cursor 1
        screen send-keys -t s $key
        wait_for 60 cursor 1
    done
}

@test "killed without a word, it leaves the shell a line of its own" {
    work
    open 80 C.UTF-8
    enter "'$TENURE' done --keep-going --jobs 3"
    wait_for 60 failed_and_working
    kill -9 "$("$TENURE" status --json | jq '.attempts[0].executor.pid')"
    wait_for 30 shows '^\$ *$'
    cursor 1
    : >"$HOME/go"
}

@test "a failure is told once, with its log and its command; what was only ended has no last lines" {
    work
    open 80 C.UTF-8
    enter "'$TENURE' done --keep-going --jobs 3"
    wait_for 60 failed_and_working
    screen send-keys -t s C-c
    wait_for 60 shows 'cancelled by signal 2'
    shows '⊘ build .*was stopped'
    [ "$(picture | grep -c ' red ')" = 1 ]
    [ "$(picture | grep -c '→ reproduce')" = 1 ]
    ! shows 'compiling'
}

@test "times of what runs and of what has ended stand in one column" {
    work
    open 80 C.UTF-8
    enter "'$TENURE' done --keep-going --jobs 3"
    wait_for 60 failed_and_working
    columns() { picture | grep -oE "^ *[^ ]+ $1 +[0-9]" | wc -m; }
    [ "$(columns red)" = "$(columns build)" ]
    : >"$HOME/go"
    wait_for 60 holds 0
}

@test "Ctrl-C leaves an attached terminal, says so, and the run goes on" {
    work
    open 80 C.UTF-8
    enter "'$TENURE' done --keep-going --jobs 3 >/dev/null & sleep 1; '$TENURE' attach"
    wait_for 60 failed_and_working
    screen send-keys -t s C-c
    wait_for 30 shows 'detached; T-.* goes on'
    ! shows '1 of 3'
    holds 1
    : >"$HOME/go"
    wait_for 60 holds 0
}
cursor() { [ "$(screen display-message -p -t s '#{cursor_flag}')" = "$1" ]; }
