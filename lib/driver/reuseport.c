/* A group of sockets on one address, one for each worker process, and the program by which the kernel selects one:
 * classic BPF, which needs no privilege. It computes xl_deployment_worker_of() (xlink/deployment.h) and returns the
 * index of a socket, in the order of bind(). */
#include "driver/udp_internal.h"

#include <errno.h>
#include <linux/filter.h>
#include <unistd.h>

#include "xlink/deployment.h"

#define MAX_CODE          1024
#define SHORT_CID_AT      1 /* offset of the destination CID in a short header … */
#define LONG_CID_BYTES_AT 5
#define LONG_CID_AT       6 /* … and in a long one (RFC 8999) */

/* The program's memory words. */
enum { V0, V1, V2, V3, TMP, CID_AT, OCTET_AT, WORD0, WORD1, HASH };

typedef struct {
    struct sock_filter code[MAX_CODE];
    size_t len;
} program;

static size_t emit(program *p, unsigned code, uint32_t k, uint8_t jt, uint8_t jf) {
    if (p->len < MAX_CODE)
        p->code[p->len] = (struct sock_filter){.code = (uint16_t)code, .jt = jt, .jf = jf, .k = k};
    return p->len++;
}

static void load(program *p, uint32_t slot) {
    emit(p, BPF_LD | BPF_MEM, slot, 0, 0);
}

static void load_x(program *p, uint32_t slot) {
    emit(p, BPF_LDX | BPF_MEM, slot, 0, 0);
}

static void store(program *p, uint32_t slot) {
    emit(p, BPF_ST, slot, 0, 0);
}

static void load_constant(program *p, uint32_t k) {
    emit(p, BPF_LD | BPF_IMM, k, 0, 0);
}

static void load_octet(program *p, uint32_t at) {
    emit(p, BPF_LD | BPF_ABS | BPF_B, at, 0, 0);
}

/* slot a = a op slot b */
static void combine(program *p, unsigned op, uint32_t a, uint32_t b) {
    load(p, a);
    load_x(p, b);
    emit(p, BPF_ALU | op | BPF_X, 0, 0, 0);
    store(p, a);
}

static void rotate(program *p, uint32_t slot, uint32_t k) {
    load(p, slot);
    emit(p, BPF_ALU | BPF_LSH | BPF_K, k, 0, 0);
    store(p, TMP);
    load(p, slot);
    emit(p, BPF_ALU | BPF_RSH | BPF_K, 32 - k, 0, 0);
    load_x(p, TMP);
    emit(p, BPF_ALU | BPF_OR | BPF_X, 0, 0, 0);
    store(p, slot);
}

static void half_round(program *p, uint32_t a, uint32_t b, uint32_t turn) {
    combine(p, BPF_ADD, a, b);
    rotate(p, b, turn);
    combine(p, BPF_XOR, b, a);
}

static void sip_round(program *p) {
    half_round(p, V0, V1, 5);
    rotate(p, V0, 16);
    half_round(p, V2, V3, 8);
    half_round(p, V0, V3, 7);
    half_round(p, V2, V1, 13);
    rotate(p, V2, 16);
}

static void set(program *p, uint32_t slot, uint32_t value) {
    load_constant(p, value);
    store(p, slot);
}

/* HASH = hash of the eight bytes at CID_AT */
static void hash(program *p, xl_hash_key key) {
    load_x(p, CID_AT);
    emit(p, BPF_LD | BPF_IND | BPF_W, 0, 0, 0);
    store(p, WORD0);
    emit(p, BPF_LD | BPF_IND | BPF_W, 4, 0, 0);
    store(p, WORD1);
    set(p, HASH, (uint32_t)XL_HASHED_CID_BYTES << 24);
    set(p, V0, key.word[0]);
    set(p, V1, key.word[1]);
    set(p, V2, key.word[0] ^ 0x6c796765);
    set(p, V3, key.word[1] ^ 0x74656462);
    static const uint32_t message[] = {WORD0, WORD1, HASH};
    for (int i = 0; i < 3; i++) {
        combine(p, BPF_XOR, V3, message[i]);
        sip_round(p);
        combine(p, BPF_XOR, V0, message[i]);
    }
    load(p, V2);
    emit(p, BPF_ALU | BPF_XOR | BPF_K, 0xff, 0, 0);
    store(p, V2);
    for (int i = 0; i < 3; i++)
        sip_round(p);
    load(p, V1);
    load_x(p, V3);
    emit(p, BPF_ALU | BPF_XOR | BPF_X, 0, 0, 0);
    store(p, HASH);
}

/* Sets CID_AT, and OCTET_AT (offset of the CID's last octet) if the CID has the rotation, and in a long header also the
 * length, of a configuration. */
static void locate(program *p, const xl_lb *lb, bool is_long) {
    uint32_t cid_at = is_long ? LONG_CID_AT : SHORT_CID_AT;
    set(p, CID_AT, cid_at);
    for (size_t i = 0; i < xl_lb_config_count(lb); i++) {
        uint8_t rotation = xl_lb_config_at(lb, i)->rotation;
        uint32_t len = (uint32_t)xl_lb_cid_bytes(lb, (uint8_t)(rotation << 5));
        load_octet(p, cid_at);
        emit(p, BPF_ALU | BPF_RSH | BPF_K, 5, 0, 0);
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, rotation, 0, is_long ? 4 : 2);
        if (is_long) {
            load_octet(p, LONG_CID_BYTES_AT);
            emit(p, BPF_JMP | BPF_JEQ | BPF_K, len, 0, 2);
        }
        set(p, OCTET_AT, cid_at + len - 1);
    }
}

static void compile(program *p, const xl_deployment *d) {
    set(p, OCTET_AT, 0);
    load_octet(p, 0);
    size_t is_short = emit(p, BPF_JMP | BPF_JSET | BPF_K, 0x80, 1, 0);
    size_t to_short = emit(p, BPF_JMP | BPF_JA, 0, 0, 0);
    locate(p, d->lb, true);
    size_t to_hash = emit(p, BPF_JMP | BPF_JA, 0, 0, 0);
    p->code[to_short].k = (uint32_t)(p->len - is_short - 2);
    locate(p, d->lb, false);
    p->code[to_hash].k = (uint32_t)(p->len - to_hash - 1);
    hash(p, d->keys.cid_hash);
    load_x(p, OCTET_AT);
    emit(p, BPF_MISC | BPF_TXA, 0, 0, 0);
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 6, 0);
    emit(p, BPF_LD | BPF_IND | BPF_B, 0, 0, 0);
    load_x(p, HASH);
    emit(p, BPF_ALU | BPF_XOR | BPF_X, 0, 0, 0);
    emit(p, BPF_ALU | BPF_AND | BPF_K, 0xff, 0, 0);
    emit(p, BPF_JMP | BPF_JGE | BPF_K, d->workers, 1, 0);
    emit(p, BPF_RET | BPF_A, 0, 0, 0);
    load(p, HASH);
    emit(p, BPF_ALU | BPF_RSH | BPF_K, 8, 0, 0);
    emit(p, BPF_ALU | BPF_MOD | BPF_K, d->workers, 0, 0);
    emit(p, BPF_RET | BPF_A, 0, 0, 0);
}

static int attach(int fd, const xl_deployment *d) {
    program p = {.len = 0};
    compile(&p, d);
    if (p.len > MAX_CODE)
        return -E2BIG;
    struct sock_fprog f = {.len = (unsigned short)p.len, .filter = p.code};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &f, sizeof f) == 0 ? 0 : -errno;
}

int xl_udp_open_group(const xl_addr *local, const xl_deployment *d, int fds[], xl_addr *bound) {
    xl_addr address = *local;
    int error = local->family == 4 || local->family == 6 ? 0 : -EAFNOSUPPORT;
    unsigned count = 0;
    while (error == 0 && count < d->workers) {
        int fd = udp_open_socket(&address, true, bound);
        if (fd < 0) {
            error = fd;
        } else {
            fds[count++] = fd;
            address = *bound; /* with the port that the kernel chose for the first socket */
        }
    }
    if (error == 0)
        error = attach(fds[0], d);
    while (error != 0 && count > 0)
        close(fds[--count]);
    return error;
}
