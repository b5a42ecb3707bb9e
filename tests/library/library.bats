#!/usr/bin/env bats
# libtenure as it is handed out: what it shows, its example against a real server, and an installed copy.

setup() {
    : "${TENURE_TEST_POSTGRES:?run this under tests/postgres/with-servers}" "${LIBRARY:?}" "${EXAMPLE:?}" "${BUILD:?}"
    PLACE=$(mktemp -d)
    NAME=library_$$_$BATS_TEST_NUMBER
    psql -Xq "$TENURE_TEST_POSTGRES" -c "CREATE DATABASE $NAME"
    URL="postgresql://postgres@/$NAME?${TENURE_TEST_POSTGRES#*\?}"
    "$TENURE" store migrate --store "$URL" >/dev/null
    seen "CREATE SCHEMA app;
        CREATE TABLE app.source (id int PRIMARY KEY, deleted_at timestamptz);
        CREATE TABLE app.item (source int REFERENCES app.source, value text CHECK (value <> 'poison'));
        INSERT INTO app.source VALUES (42), (43);
        INSERT INTO app.item VALUES (42, 'of the last time')"
}
teardown() {
    psql -Xq "$TENURE_TEST_POSTGRES" -c "DROP DATABASE IF EXISTS $NAME WITH (FORCE)"
    rm -rf "$PLACE"
}

seen() { psql -XqAt -v ON_ERROR_STOP=1 "$URL" -c "$1"; }
items() { seen "SELECT string_agg(value, ' ' ORDER BY value) FROM app.item WHERE source = 42"; }

@test "it shows the functions of its header, each with its version, and nothing else" {
    diff <(nm -D --defined-only "$LIBRARY" | awk '$2 == "T" { print $3 }' | sort) \
        <(sed -nE 's/^[a-z].*[ *](tenure_[a-z_]+)\(.*/\1@@TENURE_0.1/p' "$BATS_TEST_DIRNAME/../../include/tenure.h" | sort)
    run nm -D --defined-only "$LIBRARY"
    [ "$(awk '$2 != "T"' <<<"$output" | wc -l)" = 1 ]
}

@test "every function has its page" {
    for name in $(sed -nE 's/^[a-z].*[ *](tenure_[a-z_]+)\(.*/\1/p' "$BATS_TEST_DIRNAME/../../include/tenure.h"); do
        grep -qE "^\.Nm $name( ,)?$" "$BATS_TEST_DIRNAME/../../docs/man/$name.3"
    done
}

@test "the example publishes all" {
    run "$EXAMPLE" "$URL" 42 <<<$'a\nb'
    [ "$status" = 0 ]
    [ "$output" = 'published 2 items' ]
    [ "$(items)" = 'a b' ]
    [ "$(seen "SELECT state FROM tenure.attempt")" = passed ]
}

@test "or none, and says why" {
    run "$EXAMPLE" "$URL" 42 <<<$'a\npoison'
    [ "$status" = 1 ]
    [[ $output == *invalid*violates* ]]
    [ "$(items)" = 'of the last time' ]
    [[ $(seen "SELECT state || ' ' || reason_text FROM tenure.attempt") == failed*violates* ]]
    run "$EXAMPLE" "$URL" 44 <<<a
    [ "$status" = 1 ]
    [[ $output == *absent*'no living row'* ]]
}

@test "it leaks nothing" {
    command -v valgrind >/dev/null || skip "valgrind is not installed"
    ! grep -q '^TENURE_SANITIZE:STRING=.' "$BUILD/CMakeCache.txt" || skip "a sanitizer looks already"
    for lines in $'a\nb' poison; do
        run valgrind --quiet --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect \
            --error-exitcode=99 "$EXAMPLE" "$URL" 42 <<<"$lines"
        [ "$status" != 99 ] || { echo "$output" >&2; return 1; }
    done
}

@test "an installed copy can be built against" {
    DESTDIR=$PLACE cmake --install "$BUILD" >/dev/null
    pc=$(find "$PLACE" -name tenure.pc)
    [ -n "$pc" ]
    export PKG_CONFIG_PATH=${pc%/*}
    # shellcheck disable=SC2046
    cc -o "$PLACE/publish" "$BATS_TEST_DIRNAME/../../docs/examples/publish.c" $(pkg-config --cflags --libs tenure)
    run env LD_LIBRARY_PATH="$(pkg-config --variable=libdir tenure)" "$PLACE/publish" "$URL" 42 <<<a
    [ "$output" = 'published 1 items' ]
}
