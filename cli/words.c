#include "cli/words.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/report.h"

static int refuse(struct cli *cli, const struct verb *verbs, size_t count, const char *word)
{
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(text_done) struct text shown = {0};
    const char *names[8];
    for (size_t i = 0; i < count && i < ARRAY_SIZE(names); i++)
        names[i] = verbs[i].name;
    const char *nearest = word ? text_nearest(word, names, count) : NULL;
    text_add_printable(&shown, word ? word : "", word ? strlen(word) : 0, false);
    if (word)
        error_set(&err, RESULT_INVALID, 0, "tenure %s: unknown word '%s'", cli->command->name, shown.bytes);
    else
        error_set(&err, RESULT_INVALID, 0, "tenure %s: what is to be done?", cli->command->name);
    if (nearest)
        error_remedy(&err, "did you mean `tenure %s %s`?", cli->command->name, nearest);
    else
        error_remedy(&err, "the form is: tenure %s", cli->command->synopsis);
    return report_error(cli, &err);
}

int verb_run(struct cli *cli, const struct verb *verbs, size_t count, const char *otherwise)
{
    const struct words *words = &cli->options.words;
    const char *word = words->count > 0 ? words->items[0] : otherwise;
    for (size_t i = 0; word && i < count; i++) {
        if (strcmp(verbs[i].name, word) != 0)
            continue;
        if (words->count > verbs[i].words_max)
            return refuse(cli, verbs, count, words->items[verbs[i].words_max]);
        return verbs[i].run(cli);
    }
    return refuse(cli, verbs, count, word);
}
