#include "balancer/flows.h"

#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"

typedef struct {
    flow *first, *last; /* in order of use; first: unused for the longest time */
    size_t count;
    uint64_t timeout_us;
} flow_class;

enum { NEW, ESTABLISHED, CLASSES };

struct flows {
    flow **bucket;
    size_t bucket_count;
    uint64_t key;
    flow_class class[CLASSES];
    flows_stats stats;
    void (*closed)(void *user, flow *);
    void *user;
};

static flow **bucket_of(const flows *t, const xl_addr *client, size_t server) {
    uint64_t half[2];
    memcpy(half, client->ip, sizeof half);
    uint64_t h = number_mix(t->key ^ client->port ^ (uint64_t)server << 32);
    h = number_mix(number_mix(h ^ half[0]) ^ half[1]);
    return &t->bucket[h & (t->bucket_count - 1)];
}

static flow_class *class_of(flows *t, const flow *f) {
    return &t->class[f->established ? ESTABLISHED : NEW];
}

static void unlink_from_class(flows *t, flow *f) {
    flow_class *c = class_of(t, f);
    *(f->previous ? &f->previous->next : &c->first) = f->next;
    *(f->next ? &f->next->previous : &c->last) = f->previous;
    c->count--;
}

static void link_last(flows *t, flow *f) {
    flow_class *c = class_of(t, f);
    f->previous = c->last;
    f->next = NULL;
    *(c->last ? &c->last->next : &c->first) = f;
    c->last = f;
    c->count++;
}

flows *flows_new(size_t most, uint64_t new_timeout_us, uint64_t idle_timeout_us, uint64_t hash_key,
                 void (*closed)(void *user, flow *), void *user) {
    flows *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    *t = (flows){.bucket_count = 64, .key = hash_key, .closed = closed, .user = user};
    t->class[NEW].timeout_us = new_timeout_us;
    t->class[ESTABLISHED].timeout_us = idle_timeout_us;
    t->stats.most = most;
    while (t->bucket_count < most)
        t->bucket_count *= 2;
    t->bucket = calloc(t->bucket_count, sizeof(flow *));
    if (t->bucket)
        return t;
    free(t);
    return NULL;
}

void flows_free(flows *t) {
    if (!t)
        return;
    for (int i = 0; i < CLASSES; i++)
        while (t->class[i].first)
            flows_remove(t, t->class[i].first);
    free(t->bucket);
    free(t);
}

flow *flows_find(const flows *t, const xl_addr *client, const xl_addr *local, size_t server) {
    flow *f = *bucket_of(t, client, server);
    while (f && !(f->server == server && xl_addr_equal(&f->client, client) && xl_addr_equal(&f->local, local)))
        f = f->chain;
    return f;
}

static void unlink_from_bucket(flows *t, const flow *f) {
    flow **at = bucket_of(t, &f->client, f->server);
    while (*at != f)
        at = &(*at)->chain;
    *at = f->chain;
}

void flows_remove(flows *t, flow *f) {
    unlink_from_bucket(t, f);
    unlink_from_class(t, f);
    t->stats.now--;
    t->closed(t->user, f);
    free(f);
}

bool flows_evict(flows *t, const flow *keep) {
    flow *oldest = t->class[NEW].first;
    if (oldest && oldest == keep)
        oldest = oldest->next;
    if (!oldest)
        return false;
    t->stats.evicted++;
    flows_remove(t, oldest);
    return true;
}

static bool make_room(flows *t) {
    bool full = t->stats.now >= t->stats.most, too_many_new = t->class[NEW].count >= (t->stats.most + 1) / 2;
    if (!full && !too_many_new)
        return true;
    bool has_room = flows_evict(t, NULL);
    t->stats.refused += !has_room;
    return has_room;
}

flow *flows_add(flows *t, const xl_addr *client, const xl_addr *local, size_t server, uint64_t now) {
    flow *f = make_room(t) ? malloc(sizeof *f) : NULL;
    if (!f)
        return NULL;
    *f = (flow){.client = *client, .local = *local, .server = server, .fd = -1, .used_at = now};
    flow **at = bucket_of(t, client, server);
    f->chain = *at;
    *at = f;
    link_last(t, f);
    t->stats.now++;
    t->stats.opened++;
    return f;
}

static void touch(flows *t, flow *f, bool established, uint64_t now) {
    unlink_from_class(t, f);
    t->stats.established += established && !f->established;
    f->established = established;
    f->used_at = now;
    link_last(t, f);
}

void flows_used_by_client(flows *t, flow *f, bool by_cid, uint64_t now) {
    touch(t, f, f->established || (by_cid && f->answered), now);
}

void flows_used_by_server(flows *t, flow *f, uint64_t now) {
    f->answered = true;
    touch(t, f, f->established, now);
}

uint64_t flows_expire(flows *t, uint64_t now) {
    uint64_t next = XL_NEVER;
    for (int i = 0; i < CLASSES; i++) {
        flow_class *c = &t->class[i];
        while (c->first && c->first->used_at + c->timeout_us <= now) {
            t->stats.expired++;
            flows_remove(t, c->first);
        }
        if (c->first && c->first->used_at + c->timeout_us < next)
            next = c->first->used_at + c->timeout_us;
    }
    return next;
}

void flows_move(flows *t, const size_t moved[]) {
    for (int i = 0; i < CLASSES; i++) {
        for (flow *f = t->class[i].first, *next; f; f = next) {
            next = f->next;
            if (moved[f->server] == SIZE_MAX)
                flows_remove(t, f);
        }
    }
    /* Unlink all before linking any: the bucket of a flow depends on its server's index. */
    for (int i = 0; i < CLASSES; i++)
        for (flow *f = t->class[i].first; f; f = f->next)
            unlink_from_bucket(t, f);
    for (int i = 0; i < CLASSES; i++) {
        for (flow *f = t->class[i].first; f; f = f->next) {
            f->server = moved[f->server];
            flow **at = bucket_of(t, &f->client, f->server);
            f->chain = *at;
            *at = f;
        }
    }
}

void flows_get_stats(const flows *t, flows_stats *out) {
    *out = t->stats;
}
