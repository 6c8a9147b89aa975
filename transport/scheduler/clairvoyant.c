/* A clairvoyant scheduler, for simulations only: a reference for what a scheduler could reach with the same transport.
 * For each path it asks the network when a packet would arrive that leaves now, or as soon as the path may send.
 *
 * With n packets left to send, a path may carry the next one if fewer than n packets could arrive before it on the
 * other paths, sent there as fast as windows and pacers allow. Otherwise the packet waits for the other paths, because
 * they complete all that is left earlier without this one. If several paths may carry it, the path with the earliest
 * arrival does. No packet is sent that a full queue would drop.
 *
 * If the condition holds for all streams together, but not for the stream that sends next, the path carries data of the
 * streams after it.
 *
 * Arrivals are as exact as the network's answers (xl_foresight). Future windows follow a model: each packet is
 * acknowledged at once when it arrives, each acknowledged byte makes room for another one, or for two in slow start,
 * and nothing is lost. Future writes of the application are unknown. */
#include "scheduler/clairvoyant.h"
#include "scheduler/scheduler.h"

#define ACK_BYTES      45   /* UDP payload of a packet with an ACK_MP */
#define OVERHEAD_BYTES 40   /* bytes of a packet beside stream data, approximately */
#define ACKS_MAX       1024 /* acknowledgements that are kept; further ones are added to the last */
#define ARRIVED_MAX    256  /* of these, acknowledgements of packets that have already arrived */

/* A packet on its way, then its acknowledgement. `at` is the packet's arrival, and the acknowledgement's once is_back
 * is set. */
typedef struct {
    uint64_t at, bytes;
    bool is_back;
} acknowledgement;

/* A model of a path that sends as fast as it may. */
typedef struct {
    const xl_foresight *network;
    void *there, *back;
    xl_pacer pacer;
    uint64_t now, rate, packet_bytes;
    uint64_t window, first_window, ssthresh, in_flight;
    acknowledgement ack[ACKS_MAX]; /* ack[first .. end), in the order of their times */
    size_t first, end;
    bool was_full; /* a packet was delayed because the queue would have dropped it */
} future;

static uint64_t back_at(const future *f, uint64_t at) {
    return f->back ? f->network->send(f->back, ACK_BYTES, at) : XL_NEVER;
}

static void await(future *f, uint64_t arrives_at, uint64_t bytes) {
    if (arrives_at == XL_NEVER)
        return;
    if (f->end == ACKS_MAX)
        f->ack[f->end - 1].bytes += bytes;
    else
        f->ack[f->end++] = (acknowledgement){.at = arrives_at, .bytes = bytes};
}

/* Adds the acknowledgements of packets that have already arrived: spread evenly over the present delay of the way back,
 * before all others. */
static void await_arrived(future *f, uint64_t bytes) {
    uint64_t last_at = bytes > 0 ? back_at(f, f->now) : XL_NEVER;
    if (last_at == XL_NEVER)
        return;
    uint64_t count = bytes / f->packet_bytes + 1;
    count = count < ARRIVED_MAX ? count : ARRIVED_MAX;
    for (uint64_t i = count; i >= 1; i--)
        f->ack[--f->first] = (acknowledgement){f->now + (last_at - f->now) * i / count, bytes / count, true};
}

static bool begin(future *f, const xl_scheduler_view *view, const xl_foreseen *known, size_t i) {
    const xl_scheduler_path *p = &view->path[i];
    const xl_foreseen_path *k = &known->path[i];
    uint64_t inside = 0, arrives_at;
    size_t bytes;
    f->network = known->network;
    f->there = f->network->ask(f->network->user, k->local, k->remote);
    f->back = f->network->ask(f->network->user, k->remote, k->local);
    if (!f->there)
        return false;
    f->pacer = k->pacer ? *k->pacer : (xl_pacer){0};
    f->rate = f->pacer.rate;
    f->now = view->now;
    f->packet_bytes = p->mtu_bytes;
    f->window = f->first_window = p->window_bytes;
    f->ssthresh = k->ssthresh_bytes;
    f->in_flight = p->in_flight_bytes;
    f->first = f->end = ARRIVED_MAX;
    f->was_full = false;
    while (f->network->inside(f->there, &bytes, &arrives_at)) {
        inside += bytes;
        await(f, arrives_at, bytes);
    }
    await_arrived(f, inside < f->in_flight ? f->in_flight - inside : 0);
    return true;
}

/* Returns the next acknowledgement, or NULL if none comes. */
static const acknowledgement *next_acknowledgement(future *f) {
    for (; f->first < f->end; f->first++) {
        acknowledgement *a = &f->ack[f->first];
        if (!a->is_back)
            a->at = back_at(f, a->at);
        a->is_back = true;
        if (a->at != XL_NEVER)
            return a;
    }
    return NULL;
}

/* Advances the time to the next acknowledgement and processes it. */
static void take(future *f, const acknowledgement *a) {
    f->first++;
    f->now = a->at > f->now ? a->at : f->now;
    f->in_flight -= a->bytes < f->in_flight ? a->bytes : f->in_flight;
    f->window += f->window < f->ssthresh ? a->bytes : 0;
    if (f->rate > 0 && f->first_window > 0)
        xl_pacer_set_rate(&f->pacer, (uint64_t)((double)f->rate * (double)f->window / (double)f->first_window), f->now);
}

/* Sends the next packet as early as the path may. Returns its arrival. */
static uint64_t next_arrival(future *f) {
    for (;;) {
        const acknowledgement *a;
        while ((a = next_acknowledgement(f)) && a->at <= f->now)
            take(f, a);
        if (f->in_flight + f->packet_bytes <= f->window) {
            uint64_t at = xl_pacer_next(&f->pacer, f->now);
            at = at > f->now ? at : f->now;
            uint64_t arrives_at = f->network->send(f->there, f->packet_bytes, at);
            if (arrives_at != XL_NEVER) {
                f->now = at;
                xl_pacer_sent(&f->pacer, f->packet_bytes, at);
                f->in_flight += f->packet_bytes;
                await(f, arrives_at, f->packet_bytes);
                return arrives_at;
            }
            f->was_full = true;
        }
        if (!a)
            return XL_NEVER;
        take(f, a);
    }
}

/* Returns how many packets, at most `most`, the other usable paths could deliver before `at`. */
static uint64_t others_before(const xl_scheduler_view *view, const xl_foreseen *known, size_t self, uint32_t usable,
                              uint64_t at, uint64_t most) {
    uint64_t count = 0;
    for (size_t i = 0; i < view->count; i++) {
        future f;
        if (i == self || !(usable >> i & 1) || !begin(&f, view, known, i))
            continue;
        while (count < most && next_arrival(&f) < at)
            count++;
    }
    return count;
}

static uint64_t packets(const xl_scheduler_path *p, uint64_t bytes) {
    uint64_t payload = p->mtu_bytes > 2 * OVERHEAD_BYTES ? p->mtu_bytes - OVERHEAD_BYTES : 1;
    return bytes == 0 ? 1 : (bytes + payload - 1) / payload;
}

/* Bit set of indices into view->path: the available paths, or all paths if all are on standby. Suspect paths are
 * included, because they may answer in time. */
static uint32_t usable_paths(const xl_scheduler_view *view) {
    uint32_t all = 0, available = 0;
    for (size_t i = 0; i < view->count; i++) {
        all |= 1u << i;
        available |= view->path[i].is_standby ? 0 : 1u << i;
    }
    return available ? available : all;
}

/* Inserts view->path[i] into the order, which is sorted by arrival. */
static void insert(xl_scheduler_decision *out, uint64_t arrival[XL_MAX_PATHS], size_t i) {
    size_t at = out->count++;
    for (; at > 0 && arrival[i] < arrival[out->order[at - 1]]; at--)
        out->order[at] = out->order[at - 1];
    out->order[at] = i;
}

static void clairvoyant_foresee(void *state, const xl_scheduler_view *view, const xl_foreseen *known,
                                xl_scheduler_decision *out) {
    (void)state;
    uint64_t arrival[XL_MAX_PATHS];
    bool is_full[XL_MAX_PATHS];
    uint32_t usable = usable_paths(view);
    if (view->count < 2) {
        xl_scheduler_decide_by_rtt(view, out);
        return;
    }
    *out = (xl_scheduler_decision){.waits_for = -1, .why = "foreseen to arrive first"};
    const xl_scheduler_path *first = NULL;
    uint64_t first_at = XL_NEVER;
    for (size_t i = 0; i < view->count; i++) {
        future f;
        const xl_scheduler_path *p = &view->path[i];
        arrival[i] = usable >> i & 1 && begin(&f, view, known, i) ? next_arrival(&f) : XL_NEVER;
        is_full[i] = arrival[i] == XL_NEVER || f.was_full;
        if (arrival[i] < first_at) {
            first = p;
            first_at = arrival[i];
        }
    }
    for (size_t i = 0; i < view->count; i++) {
        const xl_scheduler_path *p = &view->path[i];
        if (!p->has_window || is_full[i])
            continue;
        uint64_t all = packets(p, view->unsent_bytes), before = others_before(view, known, i, usable, arrival[i], all);
        if (before >= all)
            continue;
        if (before >= packets(p, view->first_bytes))
            out->for_later |= (uint8_t)(1u << p->index);
        insert(out, arrival, i);
    }
    if (out->count > 0)
        return;
    if (first)
        xl_scheduler_wait(out, first, "all is there earlier by another path");
    else
        xl_scheduler_decide_by_rtt(view, out);
}

/* Not called: an endpoint without foresight refuses this scheduler. */
static void clairvoyant_decide(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    (void)state;
    xl_scheduler_decide_by_rtt(view, out);
}

const xl_scheduler_ops xl_scheduler_clairvoyant = {
    .name = "clairvoyant",
    .decide = clairvoyant_decide,
    .passes_paced = true,
    .wants_backlog = true,
    .decide_foreseeing = clairvoyant_foresee,
};
