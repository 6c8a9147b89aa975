#include "emulator/link/queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every discipline there is. */
static const struct xl_queue_discipline *const disciplines[] = {
    &xl_queue_infinite,
    &xl_queue_droptail,
};
#define DISCIPLINES (sizeof(disciplines) / sizeof(disciplines[0]))

static const struct xl_queue_discipline *find(const char *name, size_t length) {
    for (size_t i = 0; i < DISCIPLINES; i++) {
        if (strlen(disciplines[i]->name) == length && memcmp(disciplines[i]->name, name, length) == 0) {
            return disciplines[i];
        }
    }
    return NULL;
}

static void unknown_discipline(const char *name, size_t length, char *error, size_t error_size) {
    char known[256];
    size_t used = 0;
    known[0] = '\0';
    for (size_t i = 0; i < DISCIPLINES && used < sizeof(known); i++) {
        int n = snprintf(known + used, sizeof(known) - used, "%s%s", i == 0 ? "" : ", ", disciplines[i]->name);
        used += n > 0 ? (size_t)n : 0;
    }
    snprintf(error, error_size, "unknown queue discipline \"%.*s\"; known are %s", (int)length, name, known);
}

static bool parse_number(const char *text, size_t length, uint64_t *value) {
    uint64_t v = 0;
    if (length == 0 || length > 18) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        v = v * 10 + (uint64_t)(text[i] - '0');
    }
    *value = v;
    return true;
}

/* One "key=number" of a specification. */
static bool apply_option(struct xl_queue *queue, const char *text, size_t length, char *error, size_t error_size) {
    const struct xl_queue_discipline *d = queue->discipline;
    const char *equals = memchr(text, '=', length);
    char key[32];
    uint64_t value = 0;
    size_t key_length = equals == NULL ? length : (size_t)(equals - text);
    bool good = equals != NULL && key_length > 0 && key_length < sizeof(key) &&
                parse_number(equals + 1, length - key_length - 1, &value);
    if (good) {
        memcpy(key, text, key_length);
        key[key_length] = '\0';
        good = d->set_option != NULL && d->set_option(queue->state, key, value);
    }
    if (!good) {
        snprintf(error, error_size, "queue %s does not understand \"%.*s\"; its options: %s", d->name,
                 (int)(length < 60 ? length : 60), text, d->options[0] == '\0' ? "none" : d->options);
        return false;
    }
    size_t used = strlen(queue->description);
    bool first = strchr(queue->description, '[') == NULL;
    snprintf(queue->description + used, sizeof(queue->description) - used, "%s%s=%llu", first ? " [" : ", ", key,
             (unsigned long long)value);
    return true;
}

static bool apply_options(struct xl_queue *queue, const char *at, char *error, size_t error_size) {
    bool any = false;
    while (*at == ':') {
        size_t length = strcspn(at + 1, ":");
        if (!apply_option(queue, at + 1, length, error, error_size)) {
            return false;
        }
        at += 1 + length;
        any = true;
    }
    if (any) {
        size_t used = strlen(queue->description);
        snprintf(queue->description + used, sizeof(queue->description) - used, "]");
    }
    const char *missing = queue->discipline->check == NULL ? NULL : queue->discipline->check(queue->state);
    if (missing != NULL) {
        snprintf(error, error_size, "queue %s %s", queue->discipline->name, missing);
        return false;
    }
    return true;
}

struct xl_queue *xl_queue_new(const char *specification, struct xl_link_pool *pool, char *error, size_t error_size) {
    size_t name_length = strcspn(specification, ":");
    const struct xl_queue_discipline *discipline = find(specification, name_length);
    if (discipline == NULL) {
        unknown_discipline(specification, name_length, error, error_size);
        return NULL;
    }
    struct xl_queue *queue = calloc(1, sizeof(*queue));
    void *state = calloc(1, discipline->state_size + 1);
    if (queue == NULL || state == NULL) {
        snprintf(error, error_size, "no memory for a queue");
        free(queue);
        free(state);
        return NULL;
    }
    queue->discipline = discipline;
    queue->pool = pool;
    queue->state = state;
    snprintf(queue->description, sizeof(queue->description), "%s", discipline->name);
    if (!apply_options(queue, specification + name_length, error, error_size)) {
        xl_queue_free(queue);
        return NULL;
    }
    return queue;
}

void xl_queue_free(struct xl_queue *queue) {
    if (queue == NULL) {
        return;
    }
    for (struct xl_link_packet *p = xl_link_fifo_pop(&queue->fifo); p != NULL; p = xl_link_fifo_pop(&queue->fifo)) {
        xl_link_pool_put(queue->pool, p);
    }
    free(queue->state);
    free(queue);
}

void xl_queue_drop(struct xl_queue *queue, struct xl_link_packet *packet) {
    queue->dropped_packets++;
    queue->dropped_bytes += xl_link_packet_bytes(packet);
    xl_link_pool_put(queue->pool, packet);
}
