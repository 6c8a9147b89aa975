#include "emulator/link/air.h"

#include <stdlib.h>

#include "base/numbers.h"
#include "emulator/link/rng.h"

#define WAYS     2
#define CATCH_UP 16 /* transmissions of others that are simulated at the end of a silence */

typedef enum { STREAM_BACKOFF = 1, STREAM_COLLISION, STREAM_LOSS, STREAM_MOVES } stream;

/* Contention state of any station. */
typedef struct {
    uint32_t counter; /* slots until it sends */
    uint8_t stage;    /* how often CW has doubled */
} backoff;

typedef struct {
    link_packet *packet; /* NULL: it was given up */
    uint8_t retries;
    bool is_acked, is_sent; /* is_sent: in the present transmission */
} mpdu;

typedef struct {
    link_air_user user;
    bool has_joined, is_up;
    bool wants;        /* has packets to send */
    uint64_t ready_us; /* since when it wants to send */
    backoff backoff;
    uint64_t rate_bps;
    link_loss_state loss;
    mpdu window[LINK_WIFI_WINDOW]; /* a ring, in the order of the queue */
    uint32_t first, count, cross;
    uint64_t sending_us; /* duration of its present transmission; 0: there is none */
    link_air_stats stats;
} station;

struct link_air {
    link_wifi set;
    station stations[WAYS];
    backoff others[LINK_WIFI_OTHERS_MOST];
    link_rng rng, collisions;
    uint64_t free_us; /* when the medium became or becomes idle */
    uint64_t end_us;  /* end of the link's present transmission; LINK_AIR_NEVER: there is none */
    bool is_destroyed;
};

/* ---- contention ---- */

static void draw(link_air *air, backoff *b) {
    uint64_t window = (uint64_t)(air->set.cw_min + 1) << b->stage, most = air->set.cw_max + 1;
    window = min_u64(window, most);
    b->counter = (uint32_t)(link_rng_uniform(&air->rng) * (double)window);
}

/* Draws the backoff after a transmission. CW reaches its limit long before stage 16. */
static void draw_after(link_air *air, backoff *b, bool is_success) {
    b->stage = is_success ? 0 : (uint8_t)(b->stage + (b->stage < 16));
    draw(air, b);
}

/* Returns the slot in which the station sends; slot 0 begins at `first`. */
static uint64_t slot_of(const link_air *air, const station *s, uint64_t first) {
    uint64_t counter = s->backoff.counter;
    if (s->ready_us <= first)
        return counter;
    uint64_t ready = (s->ready_us - first + air->set.slot_us - 1) / air->set.slot_us;
    return ready > counter ? ready : counter;
}

/* Returns the next slot in which a station sends. */
static uint64_t least_slot(const link_air *air, uint64_t first) {
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < air->set.others; i++)
        least = min_u64(least, air->others[i].counter);
    for (size_t way = 0; way < WAYS; way++)
        if (air->stations[way].wants)
            least = min_u64(least, slot_of(air, &air->stations[way], first));
    return least;
}

/* Returns the end of the suspension at t; 0: the medium is not suspended. */
static uint64_t suspended_until(const link_wifi *set, uint64_t t) {
    uint64_t start = set->every_us == 0 ? 0 : t - t % set->every_us;
    bool is_suspended = set->every_us > 0 && t - start >= set->every_us - set->suspend_us;
    return is_suspended ? start + set->every_us : 0;
}

/* Returns when the next transmission starts: in slot *slot of the idle time that begins at *idle_us. */
static uint64_t next_start(const link_air *air, uint64_t *idle_us, uint64_t *slot) {
    uint64_t start, resumes;
    *idle_us = air->free_us;
    do {
        uint64_t first = *idle_us + air->set.difs_us;
        *slot = least_slot(air, first);
        start = first + *slot * air->set.slot_us;
        resumes = suspended_until(&air->set, start);
        *idle_us = resumes > 0 ? resumes : *idle_us;
    } while (resumes > 0);
    return start;
}

/* Counts down the others' backoffs by `slot`. Stores those that send in that slot; returns their number. */
static uint32_t count_down_others(link_air *air, uint64_t slot, backoff *senders[LINK_WIFI_OTHERS_MOST]) {
    uint32_t sending = 0;
    for (uint32_t i = 0; i < air->set.others; i++)
        if (air->others[i].counter == slot)
            senders[sending++] = &air->others[i];
        else
            air->others[i].counter -= (uint32_t)slot;
    return sending;
}

/* ---- transmissions ---- */

static mpdu *at(station *s, uint32_t i) {
    return &s->window[(s->first + i) % LINK_WIFI_WINDOW];
}

/* Returns the next MPDU to send: one that was lost, or a packet of the queue; NULL: there is none. */
static mpdu *next_mpdu(station *s, uint32_t *i, uint64_t t) {
    while (*i < s->count && (at(s, *i)->is_acked || !at(s, *i)->packet))
        ++*i;
    if (*i == LINK_WIFI_WINDOW)
        return NULL;
    if (*i == s->count) {
        link_packet *packet = s->user.take(s->user.user, t);
        if (!packet)
            return NULL;
        s->cross += packet->is_cross;
        *at(s, s->count++) = (mpdu){.packet = packet};
    }
    return at(s, (*i)++);
}

/* Fills a transmission as long as another full MPDU fits. Returns its duration in us; 0: there are no packets. */
static uint64_t assemble(link_air *air, station *s, uint64_t t) {
    const uint64_t full = link_wifi_bits(LINK_OPPORTUNITY_BYTES - LINK_HEADER_BYTES);
    const uint64_t most = (uint64_t)((double)air->set.airtime_us * (double)s->rate_bps / 1e6);
    uint64_t bits = 0;
    uint32_t i = 0, frames = 0;
    while (frames < air->set.frames && (frames == 0 || bits + full <= most)) {
        mpdu *m = next_mpdu(s, &i, t);
        if (!m)
            break;
        m->is_sent = true;
        bits += link_wifi_bits(m->packet->length);
        frames++;
    }
    if (frames == 0)
        return 0;
    s->stats.transmissions++;
    return air->set.preamble_us + (bits * 1000000u + s->rate_bps - 1) / s->rate_bps;
}

static bool has_work(const station *s) {
    return s->has_joined && (s->count > 0 || s->user.waits(s->user.user));
}

/* Starts the transmissions of the next slot in which a station sends. */
static void begin(link_air *air) {
    backoff *senders[LINK_WIFI_OTHERS_MOST];
    uint64_t idle_us, slot, longest = 0;
    const uint64_t start = next_start(air, &idle_us, &slot);
    uint32_t own = 0;
    air->free_us = idle_us;
    for (size_t way = 0; way < WAYS; way++) {
        station *s = &air->stations[way];
        bool is_turn = s->wants && slot_of(air, s, idle_us + air->set.difs_us) == slot;
        s->sending_us = is_turn ? assemble(air, s, start) : 0;
        s->wants = s->wants && (!is_turn || s->sending_us > 0); /* the queue may have dropped all packets */
        if (s->sending_us == 0)
            s->backoff.counter -= (uint32_t)min_u64(slot, s->backoff.counter);
        own += s->sending_us > 0;
        longest = longest > s->sending_us ? longest : s->sending_us;
    }
    const uint32_t others = count_down_others(air, slot, senders);
    const bool is_alone = own + others == 1;
    if (others > 0)
        longest = longest > air->set.others_us ? longest : air->set.others_us;
    for (uint32_t i = 0; i < others; i++)
        draw_after(air, senders[i], is_alone);
    air->is_destroyed = !is_alone;
    if (own > 0)
        air->end_us = start + longest;
    else
        air->free_us = start + longest + (others == 1 ? air->set.sifs_us + air->set.ack_us : 0);
}

/* Handles the arrival or loss of an MPDU whose transmission has ended. */
static void settle_mpdu(link_air *air, station *s, mpdu *m, bool is_lost, bool *any_given_up) {
    m->is_sent = false;
    m->is_acked = !is_lost;
    if (m->is_acked)
        return;
    if (m->retries++ < air->set.retries) {
        s->stats.retries++;
        return;
    }
    s->cross -= m->packet->is_cross;
    s->user.give_up(s->user.user, m->packet, air->end_us);
    m->packet = NULL;
    *any_given_up = true;
}

/* Delivers the packets that are in order at the receiver. */
static void release(link_air *air, station *s) {
    while (s->count > 0 && (at(s, 0)->is_acked || !at(s, 0)->packet)) {
        link_packet *packet = at(s, 0)->packet;
        s->first = (s->first + 1) % LINK_WIFI_WINDOW;
        s->count--;
        if (packet) {
            s->cross -= packet->is_cross;
            s->user.deliver(s->user.user, packet, air->end_us);
        }
    }
}

/* Ends the station's transmission. Returns whether at least one of its MPDUs arrived. */
static bool settle(link_air *air, station *s) {
    const bool is_destroyed =
        air->is_destroyed || (air->set.collision > 0.0 && link_rng_uniform(&air->collisions) < air->set.collision);
    bool any_given_up = false;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        mpdu *m = at(s, i);
        if (!m->is_sent)
            continue;
        bool is_lost = link_loss_next(&s->loss) || is_destroyed;
        bytes += is_lost ? 0 : link_packet_bytes(m->packet);
        settle_mpdu(air, s, m, is_lost, &any_given_up);
    }
    s->stats.used += bytes > 0;
    s->stats.collisions += is_destroyed;
    s->stats.airtime_us += s->sending_us + (bytes > 0 ? air->set.sifs_us + air->set.ack_us : 0);
    draw_after(air, &s->backoff, bytes > 0 || any_given_up);
    release(air, s);
    s->user.sent(s->user.user, air->end_us, bytes);
    s->wants = s->is_up && has_work(s);
    return bytes > 0;
}

static void end(link_air *air) {
    bool is_acked = false;
    for (size_t way = 0; way < WAYS; way++)
        if (air->stations[way].sending_us > 0)
            is_acked |= settle(air, &air->stations[way]);
    air->stations[0].sending_us = air->stations[1].sending_us = 0;
    air->free_us = air->end_us + (is_acked ? air->set.sifs_us + air->set.ack_us : 0);
    air->end_us = LINK_AIR_NEVER;
}

/* ---- the whole ---- */

link_air *link_air_new(const link_wifi *set, uint64_t seed) {
    link_air *air = calloc(1, sizeof *air);
    if (!air)
        return NULL;
    air->set = *set;
    air->end_us = LINK_AIR_NEVER;
    air->rng.state = link_substream(seed, STREAM_BACKOFF);
    air->collisions.state = link_substream(seed, STREAM_COLLISION);
    for (uint32_t way = 0; way < WAYS; way++) {
        station *s = &air->stations[way];
        s->is_up = true;
        s->rate_bps = set->rate_bps;
        s->loss.model = set->loss;
        s->loss.losses.state = link_substream(seed, STREAM_LOSS + WAYS * way);
        s->loss.moves.state = link_substream(seed, STREAM_MOVES + WAYS * way);
        draw(air, &s->backoff);
    }
    for (uint32_t i = 0; i < set->others; i++)
        draw(air, &air->others[i]);
    return air;
}

void link_air_free(link_air *air) {
    free(air);
}

void link_air_join(link_air *air, unsigned way, const link_air_user *user) {
    air->stations[way].user = *user;
    air->stations[way].has_joined = true;
}

void link_air_leave(link_air *air, unsigned way, link_pool *pool) {
    station *s = &air->stations[way];
    for (uint32_t i = 0; i < s->count; i++)
        link_pool_put(pool, at(s, i)->packet);
    s->count = s->cross = 0;
    s->has_joined = s->wants = false;
}

void *link_air_other(const link_air *air, unsigned way) {
    const station *s = &air->stations[1 - way];
    return s->has_joined ? s->user.user : NULL;
}

/* Advances the others to t after a silence: simulates up to CATCH_UP of their transmissions, leaves out the rest. */
static void catch_up(link_air *air, uint64_t t) {
    uint64_t idle_us, slot;
    if (air->set.others == 0 || air->end_us != LINK_AIR_NEVER)
        return;
    for (unsigned i = 0; i < CATCH_UP; i++) {
        if (next_start(air, &idle_us, &slot) >= t)
            return;
        begin(air);
    }
    if (next_start(air, &idle_us, &slot) >= t)
        return;
    uint64_t turn =
        air->set.difs_us + slot * air->set.slot_us + air->set.others_us + air->set.sifs_us + air->set.ack_us;
    uint64_t back = (uint64_t)(link_rng_uniform(&air->rng) * (double)turn);
    air->free_us = t - air->free_us > back ? t - back : air->free_us;
    air->stations[0].backoff.counter = air->stations[1].backoff.counter = 0;
    if (next_start(air, &idle_us, &slot) < t)
        begin(air);
}

/* A packet that comes to a busy medium waits for a backoff, even if the counter is 0 (802.11-2020, 10.3.4.2). */
static void start_to_want(link_air *air, station *s, uint64_t t) {
    if (!air->stations[0].wants && !air->stations[1].wants)
        catch_up(air, t);
    if (s->backoff.counter == 0 && (air->end_us != LINK_AIR_NEVER || t < air->free_us))
        draw(air, &s->backoff);
    s->wants = true;
    s->ready_us = t;
}

void link_air_wake(link_air *air, unsigned way, uint64_t t) {
    station *s = &air->stations[way];
    if (!s->wants && s->is_up && s->sending_us == 0)
        start_to_want(air, s, t);
}

bool link_air_has_work(const link_air *air, unsigned way) {
    return has_work(&air->stations[way]);
}

uint64_t link_air_next(const link_air *air) {
    uint64_t idle_us, slot;
    if (air->end_us != LINK_AIR_NEVER)
        return air->end_us;
    return air->stations[0].wants || air->stations[1].wants ? next_start(air, &idle_us, &slot) : LINK_AIR_NEVER;
}

void link_air_step(link_air *air) {
    if (air->end_us != LINK_AIR_NEVER)
        end(air);
    else
        begin(air);
}

void link_air_set_up(link_air *air, unsigned way, bool up, uint64_t t) {
    station *s = &air->stations[way];
    s->is_up = up;
    if (!up)
        s->wants = false;
    else if (!s->wants && s->sending_us == 0 && has_work(s))
        start_to_want(air, s, t);
}

void link_air_set_rate(link_air *air, unsigned way, uint64_t rate_bps) {
    air->stations[way].rate_bps = rate_bps;
}

link_air_stats link_air_get_stats(const link_air *air, unsigned way) {
    const station *s = &air->stations[way];
    link_air_stats stats = s->stats;
    stats.inside_cross = s->cross;
    stats.inside_packets = 0;
    for (uint32_t i = 0; i < s->count; i++)
        stats.inside_packets += s->window[(s->first + i) % LINK_WIFI_WINDOW].packet != NULL;
    return stats;
}
