#include "cli/wrap.h"

#include <stdlib.h>
#include <string.h>

#define NARROWEST 8 /* below that nothing can be arranged */

/* Bytes of one character, or of an escape sequence, which has no width. */
static size_t unit(const char *at, int *ret_columns)
{
    char buffer[8] = {0};
    size_t bytes = 1;
    *ret_columns = 0;
    if (at[0] == '\x1b' && at[1] == '[') {
        size_t length = 2 + strspn(at + 2, "0123456789;?");
        return at[length] ? length + 1 : length;
    }
    while (((unsigned char)at[bytes] & 0xC0) == 0x80 && bytes + 1 < sizeof(buffer))
        bytes++;
    memcpy(buffer, at, bytes);
    *ret_columns = bytes == 1 ? 1 : text_columns(buffer);
    return bytes;
}

static size_t word_bytes(const char *at, int *ret_columns)
{
    size_t bytes = 0;
    *ret_columns = 0;
    while (at[bytes] && at[bytes] != ' ' && at[bytes] != '\n') {
        int columns = 0;
        bytes += unit(at + bytes, &columns);
        *ret_columns += columns;
    }
    return bytes;
}

/* One line, without its line feed. */
static size_t wrap_line(const char *line, int indent, int columns, struct text *ret)
{
    size_t at = 0;
    int column = 0;
    bool bare = true; /* nothing but spaces on this row yet */
    while (line[at] && line[at] != '\n') {
        size_t spaces = strspn(line + at, " ");
        int width = 0;
        size_t bytes = word_bytes(line + at + spaces, &width);
        if (!bare && width > 0 && column + (int)spaces + width > columns - 1) {
            text_addf(ret, "\n%*s", indent, "");
            column = indent;
        } else {
            text_append(ret, line + at, spaces);
            column += (int)spaces;
        }
        text_append(ret, line + at + spaces, bytes);
        column += width;
        bare = bare && width == 0;
        at += spaces + bytes;
    }
    return at;
}

void wrap_from(struct text *text, size_t start, int indent, int columns)
{
    _cleanup_(text_done) struct text wrapped = {0};
    if (columns < NARROWEST || text->length <= start)
        return;
    for (const char *line = text->bytes + start; *line;) {
        line += wrap_line(line, indent, columns, &wrapped);
        if (*line == '\n') {
            text_add(&wrapped, "\n");
            line++;
        }
    }
    text->length = start;
    text_append(text, wrapped.bytes ? wrapped.bytes : "", wrapped.length);
}

int look_columns(const struct look *look)
{
    return look->terminal ? terminal_size_of(look->fd).columns : 0;
}

void look_add_path(const struct look *look, struct text *text, const char *path)
{
    const char *home = getenv("HOME");
    size_t length = home ? strlen(home) : 0;
    bool below = look->terminal && length > 1 && strncmp(path, home, length) == 0 && path[length] == '/';
    if (below)
        text_add(text, "~");
    look_add_foreign(look, text, below ? path + length : path);
}
