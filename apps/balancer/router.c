#include "balancer/router.h"

#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"

#define MIN_DATAGRAM      21 /* endpoints discard shorter ones (RFC 9000 section 10.3) */
#define MIN_FIRST         1200
#define LONG_CID_BYTES_AT 5
#define LONG_CID_AT       6
#define REMEMBERED        16384
#define REMEMBER_US       UINT64_C(30000000)
#define NO_SERVER         UINT16_MAX

typedef struct {
    uint64_t tag, until; /* until: expiry time, 0: empty */
    uint16_t server;
} remembered;

struct router {
    lb_file file;
    xl_lb *codec;
    uint64_t key;
    uint64_t server_hash[LB_SERVERS_MAX];
    bool is_down[LB_SERVERS_MAX];
    remembered choice[REMEMBERED];
};

const char *route_kind_name(route_kind kind) {
    static const char *const names[ROUTE_KINDS] = {"routed_by_cid", "routed_by_hash", "dropped_malformed",
                                                   "dropped_small", "dropped_no_server"};
    return names[kind];
}

static uint64_t hash_bytes(uint64_t h, const uint8_t *data, size_t len) {
    h = number_mix(h ^ len);
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, data + i, len - i < 8 ? len - i : 8);
        h = number_mix(h ^ word);
    }
    return h;
}

static bool take_file(router *r, const lb_file *file) {
    xl_static_keys keys;
    xl_lb *codec = xl_static_keys_from(file->secret, &keys) == 0 ? lb_file_codec(file) : NULL;
    if (!codec)
        return false;
    xl_lb_free(r->codec);
    r->codec = codec;
    r->file = *file;
    r->key = keys.balancer[0];
    memset(r->is_down, 0, sizeof r->is_down);
    for (size_t i = 0; i < file->server_count; i++)
        r->server_hash[i] = hash_bytes(r->key, file->server[i].id, file->server_id_bytes);
    return true;
}

router *router_new(const lb_file *file) {
    router *r = calloc(1, sizeof *r);
    if (r && !take_file(r, file)) {
        free(r);
        return NULL;
    }
    return r;
}

void router_free(router *r) {
    if (r) {
        xl_lb_free(r->codec);
        free(r);
    }
}

const lb_file *router_file(const router *r) {
    return &r->file;
}

/* ---- Routing ---- */

/* Finds the destination CID of any version (RFC 8999). A short header does not contain its length, so the longest
 * possible CID is taken. The QUIC bit is ignored, because endpoints may make it random (RFC 9287). */
static bool find_cid(const uint8_t *data, size_t len, const uint8_t **cid, size_t *cid_len) {
    if (len < MIN_DATAGRAM)
        return false;
    if (!(data[0] & 0x80)) {
        *cid = data + 1;
        *cid_len = len - 1 < XL_MAX_CID_BYTES ? len - 1 : XL_MAX_CID_BYTES;
        return true;
    }
    *cid = data + LONG_CID_AT;
    *cid_len = data[LONG_CID_BYTES_AT];
    return *cid_len <= XL_MAX_CID_BYTES && LONG_CID_AT + *cid_len < len && memcmp(data + 1, "\0\0\0\0", 4) != 0;
}

/* Whether it is a Handshake packet of QUIC version 1 or 2 (RFC 9369 section 3.2). */
static bool is_handshake(const uint8_t *data) {
    uint8_t type = data[0] & 0x30;
    return (type == 0x20 && memcmp(data + 1, "\0\0\0\1", 4) == 0) ||
           (type == 0x30 && memcmp(data + 1, "\x6b\x33\x43\xcf", 4) == 0);
}

static size_t find_server(const router *r, const uint8_t *id) {
    size_t i = 0;
    while (i < r->file.server_count && memcmp(r->file.server[i].id, id, r->file.server_id_bytes) != 0)
        i++;
    return i;
}

/* Returns the server with the largest weight among those that are up, or if all are down, among all. Draining servers
 * are excluded. */
static uint16_t best_server(const router *r, uint64_t hash) {
    uint16_t best[2] = {NO_SERVER, NO_SERVER};
    uint64_t most[2] = {0, 0};
    for (size_t i = 0; i < r->file.server_count; i++) {
        uint64_t weight = number_mix(hash ^ r->server_hash[i]);
        bool down = r->is_down[i];
        if (!r->file.server[i].drain && (best[down] == NO_SERVER || weight > most[down])) {
            best[down] = (uint16_t)i;
            most[down] = weight;
        }
    }
    return best[false] != NO_SERVER ? best[false] : best[true];
}

static route by_hash(router *r, const xl_addr *client, const uint8_t *cid, size_t cid_len, uint64_t now) {
    uint64_t hash = hash_bytes(r->key, cid, cid_len);
    uint64_t tag = hash_bytes(hash ^ client->port, client->ip, client->family == 4 ? 4 : 16);
    remembered *m = &r->choice[tag % REMEMBERED];
    if (m->tag != tag || m->until <= now || r->is_down[m->server])
        *m = (remembered){.tag = tag, .server = best_server(r, hash)};
    m->until = m->server == NO_SERVER ? 0 : now + REMEMBER_US;
    return m->server == NO_SERVER ? (route){ROUTE_DROP_NO_SERVER, 0} : (route){ROUTE_BY_HASH, m->server};
}

route router_route(router *r, const xl_addr *client, const uint8_t *data, size_t len, uint64_t now) {
    const uint8_t *cid;
    size_t cid_len;
    uint8_t id[XL_LB_SERVER_ID_MAX];
    if (!find_cid(data, len, &cid, &cid_len))
        return (route){ROUTE_DROP_MALFORMED, 0};
    bool is_long = (data[0] & 0x80) != 0;
    if (xl_lb_decode(r->codec, cid, cid_len, id) > 0) {
        size_t server = find_server(r, id);
        if (server < r->file.server_count)
            return (route){ROUTE_BY_CID, server};
    }
    if (is_long && !is_handshake(data) && len < MIN_FIRST)
        return (route){ROUTE_DROP_SMALL, 0};
    return by_hash(r, client, cid, is_long || cid_len < XL_HASHED_CID_BYTES ? cid_len : XL_HASHED_CID_BYTES, now);
}

/* ---- Changes ---- */

void router_set_down(router *r, size_t server, bool is_down) {
    r->is_down[server] = is_down;
}

bool router_update(router *r, const lb_file *file, size_t moved[]) {
    lb_file *old = malloc(sizeof *old);
    if (!old)
        return false;
    *old = r->file;
    bool ok = take_file(r, file);
    for (size_t i = 0; ok && i < old->server_count; i++) {
        size_t now = old->server_id_bytes == file->server_id_bytes ? find_server(r, old->server[i].id) : SIZE_MAX;
        bool same = now < file->server_count && xl_addr_equal(&file->server[now].address, &old->server[i].address);
        moved[i] = same ? now : SIZE_MAX;
    }
    for (size_t i = 0; ok && i < REMEMBERED; i++) {
        remembered *m = &r->choice[i];
        if (m->until > 0 && moved[m->server] == SIZE_MAX)
            m->until = 0;
        else if (m->until > 0)
            m->server = (uint16_t)moved[m->server];
    }
    free(old);
    return ok;
}
