#!/usr/bin/env bats
# `tenure done` where git calls it: from hooks, in linked worktrees and submodules, with an environment that points
# elsewhere. It is about the repository where it is, and touches no other.

load helpers
load evidence

setup() {
    sandbox
    repository "$SANDBOX/other"
    config '{wrong: {run: "true"}}'
    repository "$SANDBOX/main"
    config "{right: {run: \"env | grep ^GIT_ >>$SANDBOX/git.seen; pwd -P >>$SANDBOX/where; true\"}}"
    git config --global protocol.file.allow always
}
teardown() {
    [ ! -s "$SANDBOX/git.seen" ] || {
        echo "a producer saw: $(<"$SANDBOX/git.seen")" >&2
        return 1
    }
    sandbox_end
}

# Index, configuration, refs and HEAD of a repository, byte for byte, and when each was written.
state_of() {
    find "$1" \( -name index -o -name config -o -name HEAD -o -path '*/refs/*' -o -name packed-refs \) -type f \
        -printf '%p %T@ ' -exec sha256sum {} \; | sort
}
hook() { # hook REPOSITORY NAME
    mkdir -p "$(git -C "$1" rev-parse --git-common-dir | sed "s|^\.git|$1/.git|")/hooks"
    local file
    file=$(git -C "$1" rev-parse --path-format=absolute --git-path "hooks/$2")
    mkdir -p "$(dirname "$file")"
    printf '#!/bin/sh\nenv | grep ^GIT_ >"%s"\n"%s" done --json >"%s"\n' "$SANDBOX/hook.env" "$TENURE" "$SANDBOX/hook.json" >"$file"
    chmod +x "$file"
}
hook_doc() { jq -r "$1" "$SANDBOX/hook.json"; }
ran_in() { [ "$(tail -n 1 "$SANDBOX/where")" = "$(cd "$1" && pwd -P)" ]; }

@test "E2: pre-push in a main checkout" {
    git init -q --bare "$SANDBOX/remote"
    git remote add origin "$SANDBOX/remote"
    hook . pre-push
    before=$(state_of "$SANDBOX/other" && state_of .)
    git push -q origin main
    [ "$(hook_doc .outcome)" = done ]
    [ "$(hook_doc .producers[0].name)" = right ]
    ran_in .
    git update-ref -d refs/remotes/origin/main && rmdir -p .git/refs/remotes/origin 2>/dev/null || true
    [ "$(state_of "$SANDBOX/other" && state_of .)" = "$before" ]
    # A red one stops the push.
    config '{right: {run: "false"}}'
    run git push -q origin main
    [ "$status" -ne 0 ]
    [ "$(git -C "$SANDBOX/remote" rev-parse main)" != "$(git rev-parse HEAD)" ]
}

@test "E2: pre-commit, where what is staged is not HEAD yet: refused, named, nothing changed" {
    hook . pre-commit
    echo more >>hello.txt
    git add hello.txt
    before=$(git ls-files -s -v && git rev-parse HEAD && cat .git/config)
    run git commit -q -m More
    [ "$status" -ne 0 ]
    [ "$(hook_doc .exit)" = 2 ]
    hook_doc .error.message | grep -q 'hello.txt (staged)'
    [ "$(git ls-files -s -v && git rev-parse HEAD && cat .git/config)" = "$before" ]
    # GIT_INDEX_FILE of a partial commit does not mislead it either.
    run git commit -q -m More hello.txt
    grep -q GIT_INDEX_FILE "$SANDBOX/hook.env"
    [ "$(hook_doc .exit)" = 2 ]
    [ "$(git ls-files -s -v && git rev-parse HEAD && cat .git/config)" = "$before" ]
}

@test "E2: post-commit proves the new commit" {
    hook . post-commit
    echo more >>hello.txt
    commit_all
    [ "$(hook_doc .outcome)" = done ]
    [ "$(hook_doc .candidate.commit)" = "$(git rev-parse HEAD)" ]
    ran_in .
}

@test "E2: in a linked worktree, from its hook and by hand" {
    git worktree add -q "$SANDBOX/linked" -b side
    hook . post-commit
    cd "$SANDBOX/linked"
    main=$(state_of "$SANDBOX/main" | grep -v worktrees | grep -v refs/heads/side)
    echo side >>hello.txt
    commit_all
    [ "$(hook_doc .outcome)" = done ]
    [ "$(hook_doc .candidate.commit)" = "$(git rev-parse side)" ]
    ran_in "$SANDBOX/linked"
    [ "$(state_of "$SANDBOX/main" | grep -v worktrees | grep -v refs/heads/side)" = "$main" ]
    git checkout -q --detach
    exits 0
    says "$(git rev-parse side)"
}

@test "E2: in a submodule: the submodule's tree, and the outer repository is left alone" {
    git submodule --quiet add "$SANDBOX/other" sub
    commit_all
    outer=$(state_of .git | grep -v modules)
    cd sub
    hook . post-commit
    exits 0
    was wrong=ran
    says "$(git rev-parse HEAD)"
    echo x >>hello.txt
    commit_all
    [ "$(hook_doc .candidate.commit)" = "$(git rev-parse HEAD)" ]
    cd ..
    [ "$(state_of .git | grep -v modules)" = "$outer" ]
    # Seen from outside, the submodule is not at its commit now.
    exits 2
    says sub
    git -C sub checkout -q HEAD~1
    exits 0
    was right=ran
    git -C sub checkout -q --detach
    echo dirt >>sub/hello.txt
    exits 2
    says 'sub'
}

@test "E2: GIT_DIR, GIT_WORK_TREE and the rest pointing elsewhere are not followed" {
    before=$(state_of "$SANDBOX/other" && state_of .)
    GIT_DIR=$SANDBOX/other/.git GIT_WORK_TREE=$SANDBOX/other GIT_INDEX_FILE=$SANDBOX/other/.git/index \
        GIT_OBJECT_DIRECTORY=$SANDBOX/other/.git/objects GIT_COMMON_DIR=$SANDBOX/other/.git \
        GIT_NAMESPACE=x GIT_CEILING_DIRECTORIES=/ GIT_PREFIX=sub/ GIT_EXEC_PATH=/nowhere GIT_TRACE=1 \
        GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.worktree GIT_CONFIG_VALUE_0=/ exits 0
    was right=ran
    says "$(git rev-parse HEAD)"
    [ "$(state_of "$SANDBOX/other" && state_of .)" = "$before" ]
    GIT_DIR=$SANDBOX/other/.git run tenure verify
    assert_exit 0
    GIT_DIR=$SANDBOX/other/.git run tenure status --json
    assert_exit 0
    mkdir "$SANDBOX/none" && cd "$SANDBOX/none"
    GIT_DIR=$SANDBOX/main/.git run tenure done
    assert_exit 2
}

@test "E2: from a folder below the top, with -C, and through a link to the checkout" {
    mkdir -p deep/er
    touch deep/er/file
    commit_all
    (cd deep/er && exits 0 && was right=ran)
    ran_in .
    ln -s "$SANDBOX/main" "$SANDBOX/link"
    cd "$SANDBOX"
    exits 0 -C link --rerun
    ran_in main
    exits 0 --rerun -C main/deep
    ran_in main
}
