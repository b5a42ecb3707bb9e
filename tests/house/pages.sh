#!/bin/bash
# tests/house/pages.sh [ROOT]: the pages and completions against the program. Every command has its page, every option
# of --help stands in the page and in each shell's completion, no page promises one that is not there, and the tables
# of exit statuses are the program's. The program is $TENURE, or the newest that was built here.
set -u
cd "${1:-$(dirname "$0")/../..}" || exit 2
: "${TENURE:=$(find build -maxdepth 2 -name tenure -type f -printf '%T@ %p\n' 2>/dev/null | sort -rn | head -n 1 | cut -d' ' -f2-)}"
[ -x "$TENURE" ] || {
    echo "pages.sh: build the program first, or name it in TENURE" >&2
    exit 1
}
failed=0
complain() {
    echo "$*" >&2
    failed=1
}

# help_options [COMMAND]: "-k --keep-going" of one section, one option a line.
help_options() {
    local section=$1
    shift
    "$TENURE" "$@" --help | awk -v section="$section" '
        /^[A-Z]/ { inside = $0 == section }
        inside && /^  +-/ { line = ""; for (i = 1; i <= NF && $i ~ /^-/; i++) line = line (line == "" ? "" : " ") $i
            gsub(/,|\[?=[^ ]*/, "", line); print line }'
}
# page_options PAGE: the same of a page's list.
page_options() {
    sed -n 's/^\.It Fl \(.*\)/\1/p' "$1" | sed 's/ , Fl /\n/g' |
        sed -E 's/^(-?[A-Za-z-]+).*/-\1/' | sed 's/^-\(-[a-z]\)/--\1/; s/^---/--/'
}
commands=$("$TENURE" help | awk '/^(Work|Watch|Proofs|Housekeeping)/ { inside = 1; next } /^Options/ { inside = 0 } inside && NF { print $1 }')
[ "$(wc -w <<<"$commands")" -ge 12 ] || complain "the commands of \`tenure help\` cannot be read"

check_options() { # check_options PAGE SECTION [COMMAND]
    local page=$1 section=$2 line option
    shift 2
    local said
    said=$(help_options "$section" "$@")
    while read -r line; do
        for option in $line; do
            page_options "$page" | grep -qxF -- "$option" || complain "$page: $option of \`tenure $* --help\` is missing"
            for completion in docs/completions/*; do
                case $completion in
                *.fish) grep -qE -- "(-l |-s |-o )${option##*-}|-l ${option#--}( |\$)" "$completion" ;;
                *) grep -qE -- "(^|[^a-z-])$option([^a-z-]|\$)" "$completion" ;;
                esac || complain "$completion: $option of \`tenure $* --help\` is missing"
            done
        done
    done <<<"$said"
    while read -r option; do
        tr ' ' '\n' <<<"$said" | grep -qxF -- "$option" || complain "$page: $option is no option of \`tenure $*\`"
    done < <(page_options "$page")
}

for command in $commands; do
    page=docs/man/tenure-$command.1
    [ -e "$page" ] || {
        complain "$page is missing"
        continue
    }
    check_options "$page" Options "$command"
    grep -q "tenure-$command" docs/man/tenure.1 || complain "docs/man/tenure.1 does not name tenure-$command"
    for completion in docs/completions/*; do
        grep -qw "$command" "$completion" || complain "$completion: the command $command is missing"
    done
done
for page in docs/man/tenure-*.1; do
    command=${page#docs/man/tenure-}
    grep -qx "${command%.1}" <<<"$commands" || complain "$page is of no command"
done
check_options docs/man/tenure.1 'Options everywhere' 'done'

# The table in the code is what `tenure help` prints; tenure(1) repeats it word for word.
table() { "$TENURE" help | sed -n '/^Exit status/,/^$/p' | sed -nE 's/^ +([0-9]+|128\+n)  (.*)/\1 \2/p'; }
page_table() { awk '/^\.Sh EXIT STATUS/ { inside = 1; next } /^\.Sh/ { inside = 0 }
    inside && /^\.It / { if (code != "") print code text; code = $2; text = ""; next }
    inside && /^\.El/ { if (code != "") print code text; code = "" }
    inside && code != "" && !/^\./ { text = text " " $0 }' "$1"; }
diff <(table | grep -v '^128') <(page_table docs/man/tenure.1 | grep -v '^128') >&2 ||
    complain "docs/man/tenure.1: its exit statuses are not those of the program"
[ "$(table | wc -l)" -ge 8 ] || complain "the exit statuses of \`tenure help\` cannot be read"
run_statuses=' 122 123 124 125 126 127 '
for page in docs/man/tenure-*.1; do
    while read -r code text; do
        case "$page $run_statuses" in
        *tenure-run.1*" $code "*) continue ;;
        esac
        table | grep -q "^$code " || complain "$page: $code is no exit status of the program"
        # What is held, moved or internal means the same everywhere.
        case $code in
        3 | 6 | 70) table | grep -qF "$code $text" || complain "$page: $code means: $(table | grep "^$code ")" ;;
        esac
    done < <(page_table "$page")
done

if command -v mandoc >/dev/null; then
    mandoc -T lint -W error docs/man/*.[1357] >&2 || complain "mandoc(1) finds errors"
fi
# Debian's man(1) sets pages with groff, which is less patient than mandoc.
if command -v groff >/dev/null; then
    for page in docs/man/*.[1357]; do
        said=$(groff -mdoc -ww -Tutf8 -Kutf8 "$page" 2>&1 >/dev/null)
        [ -z "$said" ] || complain "$page: $said"
    done
fi
exit $failed
