/* The NAT of a path: any packets from inside and outside, as a command in mpshell may send them. Properties: no access
 * beyond a packet; a reply to a packet from inside is translated back, but not after a rebinding. */
#include "tests/fuzz/input.h"
#include "emulator/link/nat.h"

#define OPERATIONS 400
#define MOST_BYTES 96
#define HEADERS    40 /* IPv4 and TCP */

static const uint8_t protocols[] = {17, 6};

/* Allocates a packet of exact size, so that accesses beyond it are detected. */
static link_packet *packet_of(size_t length) {
    link_packet *p = calloc(1, offsetof(link_packet, data) + length + (length == 0));
    FUZZ_CHECK(p != NULL);
    p->length = (uint32_t)length;
    return p;
}

static void any(link_nat *nat, fuzz_input *in, uint64_t now, bool outward) {
    size_t length = fuzz_u8(in) % MOST_BYTES;
    link_packet *p = packet_of(length);
    p->checksum_start = fuzz_u8(in) % 2;
    for (size_t i = 0; i < length; i++)
        p->data[i] = fuzz_u8(in);
    bool passes = true;
    if (outward)
        link_nat_out(nat, p, now);
    else
        passes = link_nat_in(nat, p, now);
    FUZZ_CHECK(p->length == length);
    fuzz_note(p->data, length);
    fuzz_note_number(passes);
    free(p);
}

/* Makes a packet from one of four inner ports to one of eight remote hosts, or back. */
static link_packet *packet_between(uint8_t which, uint16_t inner_port, bool outward) {
    link_packet *p = packet_of(HEADERS);
    uint8_t *inner = p->data + (outward ? 12 : 16), *remote = p->data + (outward ? 16 : 12);
    uint8_t *inner_at = p->data + (outward ? 20 : 22), *remote_at = p->data + (outward ? 22 : 20);
    p->data[0] = 0x45;
    p->data[9] = protocols[which & 1];
    inner[0] = remote[0] = 100;
    inner[3] = 2;
    remote[3] = (uint8_t)(3 + (which >> 1 & 3));
    inner_at[0] = (uint8_t)(inner_port >> 8);
    inner_at[1] = (uint8_t)inner_port;
    remote_at[1] = (uint8_t)(80 + (which >> 3 & 1));
    return p;
}

static uint16_t port_at(const link_packet *p, size_t at) {
    return (uint16_t)(p->data[at] << 8 | p->data[at + 1]);
}

static uint16_t ask(link_nat *nat, uint8_t which, uint64_t now) {
    link_packet *p = packet_between(which, (uint16_t)(5000 + (which >> 4 & 3)), true);
    link_nat_out(nat, p, now);
    uint16_t outer = port_at(p, 20);
    free(p);
    fuzz_note_number(outer);
    return outer;
}

static void answer(link_nat *nat, uint8_t which, uint16_t outer, uint64_t now, bool must_pass) {
    link_packet *p = packet_between(which, outer, false);
    FUZZ_CHECK(link_nat_in(nat, p, now) == must_pass);
    FUZZ_CHECK(port_at(p, 22) == (must_pass ? 5000 + (which >> 4 & 3) : outer));
    free(p);
}

static void operate(link_nat *nat, fuzz_input *in, uint64_t *now) {
    uint8_t op = fuzz_u8(in), which = fuzz_u8(in);
    uint16_t outer;
    switch (op % 6) {
    case 0:
    case 1:
        any(nat, in, *now, op % 6 == 0);
        break;
    case 2:
        outer = ask(nat, which, *now);
        FUZZ_CHECK(outer >= 1024);
        answer(nat, which, outer, *now, true);
        break;
    case 3:
        outer = ask(nat, which, *now);
        FUZZ_CHECK(ask(nat, which, *now) == outer);
        link_nat_rebind(nat);
        answer(nat, which, outer, *now, false);
        break;
    case 4:
        *now += fuzz_u16(in);
        break;
    default: /* many hosts, which may fill the table */
        for (uint16_t port = 0; port < 600; port++) {
            link_packet *p = packet_between(which, (uint16_t)(port * 64u + which), true);
            link_nat_out(nat, p, *now);
            free(p);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = fuzz_input_of(data, size);
    uint64_t now = 0;
    uint8_t kinds = fuzz_u8(&in);
    uint16_t timeout = fuzz_u16(&in);
    const link_nat_rules rules = {.mapping = (link_nat_kind)(kinds % 3),
                                  .filtering = (link_nat_kind)(kinds / 3 % 3),
                                  .timeout_us = 1 + (uint64_t)timeout};
    link_nat *nat = link_nat_new(&rules, kinds);
    FUZZ_CHECK(nat != NULL);
    for (int i = 0; i < OPERATIONS && fuzz_left(&in) > 0; i++)
        operate(nat, &in, &now);
    fuzz_note_number(link_nat_mappings(nat));
    link_nat_free(nat);
    return 0;
}
