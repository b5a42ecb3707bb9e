#!/usr/bin/env bats
# Clean is clean: everything but an ignored build directory is named and refused, and nothing is written.

load helpers
load evidence

setup() {
    sandbox
    repository
    mkdir src
    echo one >src/one
    echo two >src/two
    printf '/build/\n' >.gitignore
    config '{p: {run: "true"}}'
    exits 0
    BEFORE=$(cat "$STORE" | sha256sum)
}
teardown() { sandbox_end; }

refused() { # refused WORD...: exit 2, these named, and the store as it was
    exits 2
    says 'not the tree of HEAD' "$@"
    [ "$(doc .error.remedy)" != null ]
    [ "$(cat "$STORE" | sha256sum)" = "$BEFORE" ]
    # It is not proved by chance either: the look-up comes after the look.
    [ "$(doc .proof)" = null ]
}

@test "E8: modified, deleted, with its time restored" {
    touch -r src/one "$SANDBOX/time"
    echo uno >src/one
    touch -r "$SANDBOX/time" src/one
    refused 'src/one (modified)'
    rm src/one
    refused src/one
}
@test "E8: staged, and staged and taken back in the work tree" {
    echo uno >src/one && git add src/one
    refused 'src/one (staged)'
    echo one >src/one
    refused src/one
}
@test "E8: untracked, in a new folder too" {
    mkdir -p new/folder && touch new/folder/file
    refused 'new/folder/file (untracked)'
}
@test "E8: a tenure.json that is ignored and not committed demands nothing of the tree" {
    git rm -q --cached tenure.json
    echo tenure.json >>.gitignore
    git add .gitignore && git commit -qm "Forget what is demanded"
    exits 2
    says 'tenure.json is not committed' 'git add tenure.json'
    [ "$(cat "$STORE" | sha256sum)" = "$BEFORE" ]
    # A trial asks no commit.
    exits 0 --dirty
}
@test "E8: assume-unchanged and skip-worktree, edited or not" {
    git update-index --assume-unchanged src/one
    refused src/one assume-unchanged
    git update-index --no-assume-unchanged src/one
    git update-index --skip-worktree src/two
    echo dos >src/two
    refused src/two skip-worktree
}
@test "E8: a mode only, where git is told not to look at it" {
    git config core.fileMode false
    chmod +x src/one
    refused src/one
}
@test "E8: a clean and smudge filter that hides a change; line ends that are converted" {
    git config filter.hide.clean 'echo fixed'
    git config filter.hide.smudge cat
    echo 'src/one filter=hide' >.gitattributes
    echo fixed >src/one
    commit_all
    exits 0
    BEFORE=$(cat "$STORE" | sha256sum)
    echo 'something else' >src/one
    git update-index --refresh -q || true
    refused src/one
    git checkout -q src/one 2>/dev/null || (rm src/one && git checkout -q src/one)
    git config core.autocrlf true
    sed -i 's/$/\r/' src/two
    refused src/two
}
@test "E8: a file system monitor that lies" {
    printf '#!/bin/sh\nprintf "token\\0"\n' >.git/hooks/lie && chmod +x .git/hooks/lie
    git config core.fsmonitor .git/hooks/lie
    git config core.fsmonitorHookVersion 2
    git status >/dev/null
    echo uno >src/one
    refused src/one
}
@test "E8: a submodule that is dirty, at another commit, or has something untracked" {
    git config --global protocol.file.allow always
    git clone -q . "$SANDBOX/inner"
    git submodule --quiet add "$SANDBOX/inner" sub
    commit_all
    exits 0
    BEFORE=$(cat "$STORE" | sha256sum)
    touch sub/new
    refused sub
    rm sub/new
    echo x >>sub/hello.txt
    refused sub
    git -C sub checkout -q hello.txt
    git config submodule.sub.ignore all
    git -C sub -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
    refused sub
}
@test "E8: a merge that is not ended" {
    git checkout -q -b side && echo side >src/one && commit_all
    git checkout -q main && echo main >src/one && commit_all
    git merge side >/dev/null || true
    refused src/one conflict
}
@test "E8: HEAD moved: another candidate; back: proved" {
    git commit -q --allow-empty -m Empty
    exits 0 # the same tree
    proved_already
    echo uno >src/one && commit_all
    exits 0
    was p=ran
    git checkout -q HEAD~1
    exits 0
    proved_already
}
@test "E8: an ignored build directory is clean, and so is a touched file" {
    mkdir build && echo x >build/made
    touch src/one
    exits 0
    proved_already
    echo '/private' >>.git/info/exclude && touch private
    exits 0
    proved_already
}
@test "E8: git's own index is not rewritten, not even refreshed" {
    touch src/one src/two
    before=$(sha256sum <.git/index; stat -c '%i %Y' .git/index)
    exits 0
    exits 0 --rerun
    [ "$(sha256sum <.git/index; stat -c '%i %Y' .git/index)" = "$before" ]
}
