#include "emulator/link/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "emulator/link/text.h"

static const link_queue_discipline *find(const char *name, size_t length) {
    for (size_t i = 0; link_queue_disciplines[i]; i++)
        if (strlen(link_queue_disciplines[i]->name) == length &&
            memcmp(link_queue_disciplines[i]->name, name, length) == 0)
            return link_queue_disciplines[i];
    return NULL;
}

static void unknown_discipline(const char *name, size_t length, char *error, size_t error_size) {
    char known[256];
    size_t used = 0;
    known[0] = '\0';
    for (size_t i = 0; link_queue_disciplines[i] && used < sizeof known; i++) {
        int n =
            snprintf(known + used, sizeof known - used, "%s%s", i == 0 ? "" : ", ", link_queue_disciplines[i]->name);
        used += n > 0 ? (size_t)n : 0;
    }
    snprintf(error, error_size, "unknown queue discipline \"%.*s\"; known are %s", (int)length, name, known);
}

/* Lists the options of the discipline: "packets=N, target=MS". */
static void list_options(const link_queue_discipline *d, char *text, size_t size) {
    size_t used = 0;
    snprintf(text, size, "none");
    for (const link_queue_option *o = d->options; o && o->name && used < size; o++) {
        int n = snprintf(text + used, size - used, "%s%s=%s", o == d->options ? "" : ", ", o->name,
                         o->unit == LINK_QUEUE_MS ? "MS" : "N");
        used += n > 0 ? (size_t)n : 0;
    }
}

static const link_queue_option *option_of(const link_queue_discipline *d, const link_text_option *given) {
    const link_queue_option *o = d->options;
    while (o && o->name && !link_text_option_is(given, o->name))
        o++;
    return o && o->name ? o : NULL;
}

static bool read_value(const link_queue_option *o, const link_text_option *given, uint64_t *value) {
    bool good = o->unit == LINK_QUEUE_MS ? number_parse_ms(given->value, given->value_length, LINK_MS_MOST, value)
                                         : number_parse(given->value, given->value_length, value);
    return good && *value >= o->least && *value <= o->most;
}

/* Applies one "key=number" of a specification. */
static bool apply_option(link_queue *queue, const link_text_option *given) {
    const link_queue_option *o = option_of(queue->discipline, given);
    uint64_t value;
    if (!o || !read_value(o, given, &value))
        return false;
    memcpy((char *)queue->state + o->offset, &value, sizeof value);
    size_t used = strlen(queue->description);
    bool first = !strchr(queue->description, '[');
    snprintf(queue->description + used, sizeof queue->description - used, "%s%.*s", first ? " [" : ", ",
             (int)(given->key_length + 1 + given->value_length), given->key);
    return true;
}

static bool refuse_option(const link_queue_discipline *d, const link_text_option *given, char *error,
                          size_t error_size) {
    const link_queue_option *o = option_of(d, given);
    const size_t whole = given->key_length + (!given->value ? 0 : 1 + given->value_length);
    const int length = (int)(whole < 60 ? whole : 60);
    if (!o) {
        char known[160];
        list_options(d, known, sizeof known);
        return error_set(error, error_size, "queue %s does not understand \"%.*s\"; its options: %s", d->name, length,
                         given->key, known);
    }
    const double unit = o->unit == LINK_QUEUE_MS ? 1e3 : 1;
    return error_set(error, error_size, "queue %s takes %s of %.15g to %.15g%s, not \"%.*s\"", d->name, o->name,
                     (double)o->least / unit, (double)o->most / unit, o->unit == LINK_QUEUE_MS ? " ms" : "", length,
                     given->key);
}

static bool apply_options(link_queue *queue, const char *list, char *error, size_t error_size) {
    link_text_option given;
    bool any = list[0] == ':';
    for (list += any; link_text_next_option(&list, &given);)
        if (!apply_option(queue, &given))
            return refuse_option(queue->discipline, &given, error, error_size);
    if (any) {
        size_t used = strlen(queue->description);
        snprintf(queue->description + used, sizeof queue->description - used, "]");
    }
    const char *missing = !queue->discipline->check ? NULL : queue->discipline->check(queue->state);
    return !missing || error_set(error, error_size, "queue %s %s", queue->discipline->name, missing);
}

static void set_standards(link_queue *queue) {
    for (const link_queue_option *o = queue->discipline->options; o && o->name; o++)
        memcpy((char *)queue->state + o->offset, &o->standard, sizeof o->standard);
}

static link_queue *allocate(const link_queue_discipline *discipline) {
    link_queue *queue = calloc(1, sizeof *queue);
    void *state = calloc(1, discipline->state_size + 1);
    if (!queue || !state) {
        free(queue);
        free(state);
        return NULL;
    }
    queue->discipline = discipline;
    queue->state = state;
    return queue;
}

link_queue *link_queue_new(const char *specification, link_pool *pool, uint64_t seed, char *error, size_t error_size) {
    size_t name_length = strcspn(specification, ":");
    const link_queue_discipline *discipline = find(specification, name_length);
    if (!discipline) {
        unknown_discipline(specification, name_length, error, error_size);
        return NULL;
    }
    link_queue *queue = allocate(discipline);
    if (!queue)
        return error_null(error, error_size, "no memory for a queue");
    queue->pool = pool;
    queue->rng.state = seed;
    snprintf(queue->description, sizeof queue->description, "%s", discipline->name);
    set_standards(queue);
    if (!apply_options(queue, specification + name_length, error, error_size)) {
        free(queue->state);
        free(queue);
        return NULL;
    }
    if (discipline->start && !discipline->start(queue)) {
        snprintf(error, error_size, "no memory for a queue");
        link_queue_free(queue);
        return NULL;
    }
    return queue;
}

void link_queue_free(link_queue *queue) {
    if (!queue)
        return;
    for (link_packet *p = link_fifo_pop(&queue->fifo); p; p = link_fifo_pop(&queue->fifo))
        link_pool_put(queue->pool, p);
    if (queue->discipline->stop)
        queue->discipline->stop(queue);
    free(queue->state);
    free(queue);
}

link_packet *link_queue_oldest(link_queue *queue, uint64_t now) {
    (void)now;
    return link_fifo_pop(&queue->fifo);
}

void link_queue_drop(link_queue *queue, link_packet *packet) {
    queue->packets--;
    queue->bytes -= link_packet_bytes(packet);
    queue->dropped_packets++;
    queue->dropped_bytes += link_packet_bytes(packet);
    if (packet->is_cross) {
        queue->cross_packets--;
        queue->dropped_cross_packets++;
        queue->dropped_cross_bytes += link_packet_bytes(packet);
    }
    link_pool_put(queue->pool, packet);
}

bool link_queue_is_infinite(const char *specification) {
    return !specification || strcmp(specification, LINK_QUEUE_DEFAULT) == 0;
}
