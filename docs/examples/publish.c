/*
 * Fenced publication with libtenure:
 *
 *     cc -o publish publish.c $(pkg-config --cflags --libs tenure)
 *     collect | ./publish DATABASE ID
 *
 * Claims the row ID of app.source, reads what is collected for it from standard input for as long as that
 * takes, and publishes each line as an item of the row: all of them, or none. Ends with status 0 only when
 * they are published.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenure.h>

#define TTL_MS 60000

static int complain(struct tenure_claim *claim, enum tenure_result result)
{
    fprintf(stderr, "publish: %s: %s\n", tenure_result_name(result), tenure_claim_message(claim));
    return 1;
}

struct lines {
    char **items;
    size_t count;
};

static void lines_free(struct lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        free(lines->items[i]);
    free(lines->items);
}

/* Minutes, perhaps. Once the claim is lost nothing that is collected can be published. */
static int collect(const struct tenure_claim *claim, struct lines *ret)
{
    char *line = NULL;
    size_t size = 0;

    while (getline(&line, &size, stdin) > 0) {
        char **items = realloc(ret->items, (ret->count + 1) * sizeof *items);
        if (!items || !tenure_claim_is_live(claim))
            break;
        line[strcspn(line, "\n")] = '\0';
        ret->items = items;
        ret->items[ret->count++] = line;
        line = NULL;
        size = 0;
    }
    free(line);
    return feof(stdin) && !ferror(stdin) ? 0 : -1;
}

/* From begin to commit nobody else can take the row over, and it cannot be deleted. */
static enum tenure_result publish(struct tenure_claim *claim, const char *id, const struct lines *lines)
{
    const char *values[] = {id, NULL};
    int64_t rows = 0, all = 0;
    enum tenure_result result = tenure_publication_begin(claim);

    if (result == TENURE_OK)
        result =
            tenure_publication_query(claim, "DELETE FROM app.item WHERE source = $1::int", values, 1, NULL);
    for (size_t i = 0; result == TENURE_OK && i < lines->count; i++) {
        values[1] = lines->items[i];
        result =
            tenure_publication_query(claim, "INSERT INTO app.item VALUES ($1::int, $2)", values, 2, &rows);
        all += rows;
    }
    if (result == TENURE_OK)
        result = tenure_publication_commit(claim);
    if (result == TENURE_OK)
        printf("published %" PRId64 " items\n", all);
    return result;
}

static int claim_and_publish(const char *database, const char *id)
{
    struct tenure_row row = {.table = "app.source", .key = "id", .value = id, .soft_delete = "deleted_at"};
    struct tenure_claim *claim = NULL;
    struct lines lines = {NULL, 0};
    enum tenure_result result = tenure_claim(database, &row, TTL_MS, &claim);
    int status = result == TENURE_OK ? 0 : complain(claim, result);

    if (status == 0 && collect(claim, &lines) != 0) {
        fprintf(stderr, "publish: not all could be collected\n");
        status = 1;
    }
    if (status == 0) {
        result = publish(claim, id, &lines);
        status = result == TENURE_OK ? 0 : complain(claim, result);
    }
    /* Why it failed is kept for people: tenure log shows it. */
    if (status != 0 && tenure_claim_is_live(claim)) {
        char why[512];
        snprintf(why, sizeof why, "%s", tenure_claim_message(claim));
        if (tenure_claim_fail(claim, *why ? why : "not all could be collected") != TENURE_OK)
            fprintf(stderr, "publish: %s\n", tenure_claim_message(claim));
    }
    lines_free(&lines);
    tenure_claim_free(claim);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: publish DATABASE ID <ITEMS\n");
        return 2;
    }
    return claim_and_publish(argv[1], argv[2]);
}
