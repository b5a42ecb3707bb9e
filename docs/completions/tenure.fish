# Completion of tenure(1) for fish.

set -l commands init done run publish measure status attach cancel log proof verify key journal store help

# Handles of attempts: the unfinished ones, and for `all` the last of the log. Both only read, and neither creates a store.
function __tenure_handles
    begin
        tenure status --all --json
        test "$argv[1]" = unfinished; or tenure log --all -n 30 --json
    end 2>/dev/null | string match -rag '"handle": ?"([^"]+)"'
end

# Producers of the tenure.json here, also while the tree is being worked on. A plan only reads.
function __tenure_producers
    tenure done --dry-run --dirty --json 2>/dev/null | string match -rg '"plan": ?\[(.*)\]' |
        string match -rag '"name": ?"([^"]+)"'
end

function __tenure_commits
    echo HEAD
    git for-each-ref --format='%(refname:short)' refs/heads refs/tags 2>/dev/null
end

complete -c tenure -f
complete -c tenure -s C -l directory -xa '(__fish_complete_directories)' -d 'Work as if started in DIR'
complete -c tenure -l store -x -d 'The store'
complete -c tenure -l json -d 'One JSON document on standard output'
complete -c tenure -s q -l quiet -d 'No progress, no good news'
complete -c tenure -l color -xa 'auto always never' -d 'When to use colours'
complete -c tenure -s h -l help -d Help
complete -c tenure -l version -d 'The version'

set -l none "not __fish_seen_subcommand_from $commands"
complete -c tenure -n $none -a init -d 'Write a tenure.json that fits what is here, and a key'
complete -c tenure -n $none -a done -d 'Prove HEAD: run what is not proved yet, and sign'
complete -c tenure -n $none -a run -d 'Run a command while a subject is held'
complete -c tenure -n $none -a publish -d 'Claim a row, collect, and publish in one transaction'
complete -c tenure -n $none -a measure -d 'Measure standards (not in this version)'
complete -c tenure -n $none -a status -d 'Unfinished attempts'
complete -c tenure -n $none -a attach -d 'Follow an attempt from any terminal'
complete -c tenure -n $none -a cancel -d 'Ask an attempt to stop, or retire a dead one'
complete -c tenure -n $none -a log -d 'Past attempts with outcome and reason'
complete -c tenure -n $none -a proof -d 'Print the Proof of a commit'
complete -c tenure -n $none -a verify -d 'Check a Proof'
complete -c tenure -n $none -a key -d 'Show, make and trust keys'
complete -c tenure -n $none -a journal -d 'List journals and remove old ones'
complete -c tenure -n $none -a store -d 'Where attempts are kept, and its schema'
complete -c tenure -n $none -a help -d 'Help'

set -l on '__fish_seen_subcommand_from done'
complete -c tenure -n $on -a '(__tenure_producers)' -d Producer
complete -c tenure -n $on -l wait -d 'When another attempt is current, wait'
complete -c tenure -n $on -l rerun -d 'Run although evidence exists'
complete -c tenure -n $on -s k -l keep-going -d 'Go on after a failure'
complete -c tenure -n $on -l dirty -d 'Run on the work tree as it is'
complete -c tenure -n $on -s n -l dry-run -d 'Say what would run and why'
complete -c tenure -n $on -l detach -d 'Not in this version'
complete -c tenure -n $on -s j -l jobs -x -d 'Producers at once'

set -l on '__fish_seen_subcommand_from run'
complete -c tenure -n $on -l subject -xa 'command: object:' -d 'What is held'
complete -c tenure -n $on -l ttl -x -d 'The lease'
complete -c tenure -n $on -l heartbeat -x -d 'How often it is renewed'
complete -c tenure -n $on -l wait -d 'When another attempt is current, wait'
complete -c tenure -n $on -l on-lapse -xa 'freeze abort' -d 'When the lease runs out'
complete -c tenure -n $on -l held-exit -x -d 'Exit status when another attempt is current'
complete -c tenure -n "$on; and contains -- -- (commandline -opc)" -xa '(__fish_complete_command)'

set -l on '__fish_seen_subcommand_from publish'
complete -c tenure -n $on -l row -x -d 'The row that is claimed: TABLE:KEY=VALUE'
complete -c tenure -n $on -l soft-delete -x -d 'Column that tells that the row is gone'
complete -c tenure -n $on -l collect -x -d 'Run by sh under the lease'
complete -c tenure -n $on -l collected -x -d 'What it prints is CSV of these columns'
complete -c tenure -n $on -l sql -r -d 'The statements that publish'
complete -c tenure -n $on -l ttl -x -d 'The lease'
complete -c tenure -n $on -l heartbeat -x -d 'How often it is renewed'
complete -c tenure -n $on -l wait -d 'When another attempt is current, wait'
complete -c tenure -n $on -l data-store -xa 'postgresql://' -d 'Where the rows are'

complete -c tenure -n '__fish_seen_subcommand_from status log' -s a -l all -d 'Of every repository of the store'
complete -c tenure -n '__fish_seen_subcommand_from log' -s n -l number -x -d 'How many'
complete -c tenure -n '__fish_seen_subcommand_from attach' -a '(__tenure_handles all)' -d Attempt
complete -c tenure -n '__fish_seen_subcommand_from cancel' -a '(__tenure_handles unfinished)' -d Attempt
complete -c tenure -n '__fish_seen_subcommand_from proof' -a '(__tenure_commits)' -d Commit

set -l on '__fish_seen_subcommand_from verify'
complete -c tenure -n $on -F -a '(__tenure_commits)' -d Commit
complete -c tenure -n $on -l key -rF -d 'Trust this public key, and no other'
complete -c tenure -n $on -l commit -xa '(__tenure_commits)' -d 'What the Proof in a file must be about'
complete -c tenure -n $on -l partial -d 'Accept a Proof of some producers only'

set -l on '__fish_seen_subcommand_from key'
complete -c tenure -n "$on; and not __fish_seen_subcommand_from show new trust" -a 'show new trust'
complete -c tenure -n "$on; and __fish_seen_subcommand_from trust" -F

set -l on '__fish_seen_subcommand_from journal'
complete -c tenure -n "$on; and not __fish_seen_subcommand_from list prune" -a 'list prune'
complete -c tenure -n $on -l older -x -d 'Finished ones older than this'
complete -c tenure -n $on -l keep -x -d 'Finished ones beyond the newest N'
complete -c tenure -n $on -s n -l dry-run -d 'Say what would go, and keep it'

complete -c tenure -n '__fish_seen_subcommand_from store; and not __fish_seen_subcommand_from status migrate' -a 'status migrate'
complete -c tenure -n '__fish_seen_subcommand_from help' -a "$commands"
