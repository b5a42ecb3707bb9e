# Completion of tenure(1) for bash. It needs nothing but bash; with bash-completion the command of `tenure run` is completed, too.

_tenure_commands='init done run publish measure status attach cancel log proof verify key journal store help'
_tenure_everywhere='-C --directory --store --json -q --quiet --color -h --help --version'

# Handles of attempts: the unfinished ones first, then the last of the log. Both only read, and neither creates a store.
_tenure_handles() {
    { tenure status --all --json; [ "$1" = unfinished ] || tenure log --all -n 30 --json; } 2>/dev/null |
        grep -oE '"handle": ?"[^"]+"' | sed 's/.*"\([^"]*\)"$/\1/' | awk '!seen[$0]++'
}

_tenure_options() {
    case $1 in
    done) echo '--wait --rerun -k --keep-going --dirty -n --dry-run --detach -j --jobs' ;;
    run) echo '--subject --ttl --heartbeat --wait --on-lapse --held-exit --' ;;
    publish) echo '--row --soft-delete --collect --collected --sql --ttl --heartbeat --wait --data-store' ;;
    status) echo '-a --all' ;;
    log) echo '-n --number -a --all' ;;
    verify) echo '--key --commit --partial' ;;
    journal) echo '--older --keep -n --dry-run' ;;
    esac
}

# Producers of the tenure.json here, also while the tree is being worked on. A plan only reads.
_tenure_producers() {
    tenure 'done' --dry-run --dirty --json 2>/dev/null | grep -oE '"plan": ?\[.*' |
        grep -oE '"name": ?"[^"]+"' | sed 's/.*"\([^"]*\)"$/\1/'
}

# What may stand behind the command; $2 counts the words that stand there already.
_tenure_words() {
    case $1:$2 in
    done:*) _tenure_producers ;;
    attach:0) _tenure_handles all ;;
    cancel:0) _tenure_handles unfinished ;;
    key:0) echo 'show new trust' ;;
    journal:0) echo 'list prune' ;;
    store:0) echo 'status migrate' ;;
    help:0) echo "$_tenure_commands" ;;
    proof:0 | verify:0) git for-each-ref --format='%(refname:short)' refs/heads refs/tags 2>/dev/null; echo HEAD ;;
    esac
}

_tenure_takes_value() {
    case $1 in
    -C | --directory | --store | --color | -j | --jobs | --subject | --ttl | --heartbeat | --on-lapse | --held-exit | \
        --number | --key | --commit | --older | --keep | --row | --soft-delete | --collect | --collected | --sql | \
        --data-store) return 0 ;;
    -n) [ "$2" = log ] ;;
    *) return 1 ;;
    esac
}

_tenure_value() {
    case $1 in
    -C | --directory) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
    --key | --sql) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
    --color) mapfile -t COMPREPLY < <(compgen -W 'auto always never' -- "$2") ;;
    --on-lapse) mapfile -t COMPREPLY < <(compgen -W 'freeze abort' -- "$2") ;;
    --subject) mapfile -t COMPREPLY < <(compgen -W 'command: object:' -- "$2"); compopt -o nospace 2>/dev/null ;;
    --data-store) mapfile -t COMPREPLY < <(compgen -W 'postgresql://' -- "$2"); compopt -o nospace 2>/dev/null ;;
    --store) mapfile -t COMPREPLY < <(compgen -W 'sqlite: postgresql://' -- "$2"); compopt -o nospace 2>/dev/null ;;
    --commit) mapfile -t COMPREPLY < <(compgen -W "$(_tenure_words proof 0)" -- "$2") ;;
    esac
}

_tenure() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' count=0 i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [ "${COMP_WORDS[i]}" = -- ]; then
            [ "$command" = run ] || return
            if declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            else
                mapfile -t COMPREPLY < <(compgen -c -- "$word")
            fi
            return
        elif _tenure_takes_value "${COMP_WORDS[i]}" "$command"; then
            ((i++))
        elif [[ ${COMP_WORDS[i]} == -* ]]; then
            :
        elif [ -z "$command" ]; then
            command=${COMP_WORDS[i]}
        else
            ((count++))
        fi
    done
    if _tenure_takes_value "$previous" "$command"; then
        _tenure_value "$previous" "$word"
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$_tenure_everywhere $(_tenure_options "$command")" -- "$word")
    elif [ -z "$command" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$_tenure_commands" -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -W "$(_tenure_words "$command" "$count")" -- "$word")
        case $command in
        verify | key)
            compopt -o filenames 2>/dev/null
            [ "$command$count" = key0 ] || mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
            ;;
        esac
    fi
}

complete -F _tenure tenure
