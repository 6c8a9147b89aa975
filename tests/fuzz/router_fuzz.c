/* A balancer: its file, the routing of any datagrams while servers are added and removed, and its table of flows.
 * Properties: a file is accepted, or refused with a sentence; a connection ID made for a server is routed to it in
 * every configuration; a datagram is routed to a server of the list; the table is bounded, and established flows end
 * only when idle or with their server. */
#include "tests/fuzz/input.h"
#include "balancer/flows.h"
#include "balancer/router.h"

#define OPERATIONS 200
#define FLOWS_MOST 16

typedef struct {
    flows *table;
    size_t now;
} watch;

static void closed(void *user, flow *f) {
    watch *w = user;
    FUZZ_CHECK(f->fd == -1 && w->now > 0);
    w->now--;
}

/* Reads the file from the input's text. The second file is the same text without one line. */
static bool read_file(const uint8_t *text, size_t len, lb_file *file) {
    char error[LB_ERROR_BYTES] = "";
    char *copy = fuzz_string(text, len);
    bool ok = lb_file_parse(copy, "lb.yaml", file, error);
    FUZZ_CHECK(ok || (error[0] != 0 && memchr(error, 0, sizeof error)));
    free(copy);
    if (ok) {
        FUZZ_CHECK(file->config_count <= XL_LB_CONFIGS_MAX && file->server_count <= LB_SERVERS_MAX);
        for (size_t i = 0; i < file->config_count; i++)
            FUZZ_CHECK(file->config[i].rotation < XL_LB_UNROUTABLE &&
                       file->config[i].server_id_bytes == file->server_id_bytes);
    }
    return ok;
}

static void check_cid(router *r, const lb_file *file, fuzz_input *in, const xl_addr *client, uint64_t now) {
    uint8_t nonce[XL_LB_NONCE_MAX], cid[XL_MAX_CID_BYTES] = {0}, id[XL_LB_SERVER_ID_MAX], data[1300] = {0};
    int error;
    if (file->config_count == 0 || file->server_count == 0)
        return;
    size_t config = fuzz_u8(in) % file->config_count, server = fuzz_u8(in) % file->server_count;
    uint8_t random = fuzz_u8(in);
    fuzz_fill(in, nonce, sizeof nonce);
    xl_lb *lb = xl_lb_new(&file->config[config], 1, 0, &error);
    FUZZ_CHECK(lb != NULL);
    int n = xl_lb_encode(lb, file->server[server].id, nonce, random, cid);
    FUZZ_CHECK(n > 0 && n <= XL_MAX_CID_BYTES && xl_lb_cid_bytes(lb, cid[0]) == (size_t)n);
    FUZZ_CHECK(xl_lb_decode(lb, cid, (size_t)n, id) == file->server_id_bytes);
    FUZZ_CHECK(memcmp(id, file->server[server].id, file->server_id_bytes) == 0);
    FUZZ_CHECK(xl_lb_decode(lb, cid, (size_t)n - 1, id) < 0);
    data[0] = 0x40;
    memcpy(data + 1, cid, (size_t)n);
    route to = router_route(r, client, data, 60, now);
    FUZZ_CHECK(to.kind == ROUTE_BY_CID && to.server == server);
    fuzz_note(cid, (size_t)n);
    xl_lb_free(lb);
}

static void check_datagram(router *r, const lb_file *file, fuzz_input *in, const xl_addr *client, uint64_t now) {
    uint8_t data[1300] = {0};
    size_t len = fuzz_bool(in) ? 1200 : fuzz_u8(in);
    fuzz_fill(in, data, 30);
    uint8_t *exact = fuzz_copy(data, len);
    route to = router_route(r, client, exact, len, now);
    FUZZ_CHECK(to.kind < ROUTE_KINDS && route_kind_name(to.kind)[0] != 0);
    if (to.kind == ROUTE_BY_CID || to.kind == ROUTE_BY_HASH) {
        FUZZ_CHECK(to.server < file->server_count);
        route again = router_route(r, client, exact, len, now);
        FUZZ_CHECK(again.kind == to.kind && again.server == to.server);
    }
    fuzz_note_number(to.kind * 1000u + to.server);
    free(exact);
}

static void use_flow(watch *w, const lb_file *file, const xl_addr *client, uint64_t now, uint8_t how) {
    const xl_addr local = {.family = 4, .ip = {192, 0, 2, 9}, .port = 443};
    flows_stats stats;
    size_t server = file->server_count > 0 ? how % file->server_count : 0;
    flow *f = flows_find(w->table, client, &local, server);
    if (!f && (f = flows_add(w->table, client, &local, server, now)))
        w->now++;
    if (f) {
        FUZZ_CHECK(f == flows_find(w->table, client, &local, server) && f->server == server);
        if (how & 0x40)
            flows_used_by_server(w->table, f, now);
        flows_used_by_client(w->table, f, how & 0x80, now);
        if ((how & 0x30) == 0x30)
            flows_remove(w->table, f);
    }
    flows_get_stats(w->table, &stats);
    FUZZ_CHECK(stats.now == w->now && stats.now <= FLOWS_MOST && stats.most <= FLOWS_MOST);
}

static void change_servers(router *r, watch *w, const lb_file *from, const lb_file *to) {
    static size_t moved[LB_SERVERS_MAX];
    memset(moved, 0xff, sizeof moved);
    FUZZ_CHECK(router_update(r, to, moved));
    for (size_t i = 0; i < from->server_count; i++)
        FUZZ_CHECK(moved[i] == SIZE_MAX || moved[i] < to->server_count);
    flows_move(w->table, moved);
}

static void operate(router *r, watch *w, const lb_file *file, fuzz_input *in, uint64_t *now) {
    uint8_t op = fuzz_u8(in), who = fuzz_u8(in);
    const xl_addr client = {.family = who & 0x80 ? 6 : 4, .ip = {198, 51, 100, who}, .port = 5000};
    switch (op % 6) {
    case 0:
        check_cid(r, file, in, &client, *now);
        break;
    case 1:
    case 2:
        check_datagram(r, file, in, &client, *now);
        break;
    case 3:
    case 4:
        use_flow(w, file, &client, *now, fuzz_u8(in));
        break;
    default:
        *now += 100000 * (uint64_t)fuzz_u8(in);
        uint64_t next = flows_expire(w->table, *now);
        FUZZ_CHECK(next > *now && (next == XL_NEVER) == (w->now == 0));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = fuzz_input_of(data, size);
    static lb_file files[2];
    size_t len = fuzz_u16(&in) % 1024;
    len = len < fuzz_left(&in) ? len : fuzz_left(&in);
    const uint8_t *text = in.p;
    in.p += len;
    memset(files, 0, sizeof files);
    if (!read_file(text, len, &files[0]))
        return 0;
    size_t shorter = len;
    while (shorter > 0 && text[shorter - 1] != '\n')
        shorter--;
    while (shorter > 0 && text[shorter - 1] == '\n')
        shorter--;
    bool has_two = read_file(text, shorter, &files[1]);
    router *r = router_new(&files[0]);
    watch w = {0};
    w.table = flows_new(FLOWS_MOST, 2000000, 10000000, 7, closed, &w);
    FUZZ_CHECK(r && w.table);
    uint64_t now = 1000000;
    int at = 0;
    for (int i = 0; i < OPERATIONS && fuzz_left(&in) > 0; i++) {
        if (has_two && fuzz_u8(&in) >= 0xf0) {
            change_servers(r, &w, &files[at], &files[1 - at]);
            at = 1 - at;
        }
        operate(r, &w, &files[at], &in, &now);
    }
    flows_free(w.table);
    FUZZ_CHECK(w.now == 0);
    router_free(r);
    return 0;
}
