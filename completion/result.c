/* What a run became, as a value for whoever prints it. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "completion/completion-private.h"

static void quote_word(struct text *text, const char *word)
{
    if (*word != '\0' && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                      "_-./:=@%+,") == strlen(word)) {
        text_add(text, word);
        return;
    }
    text_add(text, "'");
    for (; *word; word++) {
        if (*word == '\'')
            text_add(text, "'\\''");
        else
            text_append(text, word, 1);
    }
    text_add(text, "'");
}

char *command_line_quote(const struct command_line *line)
{
    if (line->shell)
        return mem_string(line->words.items[0]);
    struct text text = {0};
    for (size_t i = 0; i < line->words.count; i++) {
        if (i > 0)
            text_add(&text, " ");
        quote_word(&text, line->words.items[i]);
    }
    return text_steal(&text);
}

static enum producer_source source_of(const struct step *step)
{
    if (step->state != STEP_ENDED)
        return SOURCE_NONE;
    return step->reuse ? SOURCE_REUSED : SOURCE_RAN;
}

static void fill_producer(const struct step *step, struct completion_producer *ret)
{
    const struct evidence *evidence = &step->evidence;
    *ret = (struct completion_producer){
        .name = mem_string(step->producer->name),
        .source = source_of(step),
        .planned_reuse = step->reuse,
        .reason = mem_string(step->reason),
        .command = command_line_quote(&step->producer->run),
        .exit_code = -1,
        .signal = -1,
    };
    if (step->applicability.key[0] != '\0')
        ret->key = mem_string(step->applicability.key);
    if (step->state != STEP_ENDED)
        return;
    ret->verdict = mem_string(evidence->verdict);
    ret->passed = evidence->passed;
    ret->exit_code = evidence->exit_code;
    ret->signal = evidence->signal;
    ret->duration_ms = evidence->duration_ms;
    ret->dropped_bytes = evidence->dropped_bytes;
    ret->log = mem_string(evidence->log);
    ret->text = mem_string(evidence->text);
}

void result_fill_producers(struct run *run)
{
    struct completion_result *result = run->result;
    if (run->steps == NULL || result->producers != NULL)
        return;
    result->producers = mem_alloc((run->config.producer_count + 1) * sizeof *result->producers);
    for (size_t n = 0; n < run->config.producer_count; n++) {
        const struct step *step = &run->steps[run->config.order[n]];
        if (step->state != STEP_OUT)
            fill_producer(step, &result->producers[result->producer_count++]);
    }
}

void result_fill_hold(struct run *run, const struct hold_result *end)
{
    struct completion_result *result = run->result;
    result->state = end->state;
    result->duration_ms = end->duration_ms;
    reason_done(&result->reason);
    result->reason = (struct reason){
        .code = mem_string(end->reason.code),
        .text = mem_string(end->reason.text),
        .by_attempt = mem_string(end->reason.by_attempt),
    };
}

static void producer_done(struct completion_producer *producer)
{
    free(producer->name);
    free(producer->reason);
    free(producer->verdict);
    free(producer->log);
    free(producer->key);
    free(producer->text);
    free(producer->command);
}

void completion_result_done(struct completion_result *result)
{
    for (size_t i = 0; i < result->producer_count; i++)
        producer_done(&result->producers[i]);
    free(result->producers);
    free(result->sentence);
    free(result->repository);
    free(result->commit);
    free(result->tree);
    free(result->attempt_id);
    free(result->handle);
    free(result->proof_id);
    free(result->key_id);
    reason_done(&result->reason);
    pending_done(&result->pending);
    *result = (struct completion_result){0};
}
