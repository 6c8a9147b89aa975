/* Explicit Congestion Notification of a path: RFC 9000 section 13.4 and appendix A.4. Only 1-RTT packets are marked. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The ECN field of an IP header (RFC 3168 section 5). */
enum { XL_IP_NOT_ECT = 0, XL_IP_ECT1 = 1, XL_IP_ECT0 = 2, XL_IP_CE = 3 };

typedef enum {
    XL_ECN_OFF,
    XL_ECN_TESTING, /* the first packets are marked */
    XL_ECN_UNKNOWN, /* these were sent, and no acknowledgement with valid counts has arrived */
    XL_ECN_CAPABLE,
    XL_ECN_FAILED,
} xl_ecn_state;

typedef struct {
    xl_ecn_state state;
    unsigned marked;  /* packets marked while testing */
    bool last_marked; /* the packet built last is marked */
    uint64_t since;   /* packets sent up to this time used another network path; their acknowledgements are ignored */
} xl_ecn;

typedef struct {
    uint64_t ect0, ect1, ce;
} xl_ecn_counts;

/* ECN counts of a packet number space. */
typedef struct {
    xl_ecn_counts received; /* the peer's packets, by the mark with which they arrived */
    xl_ecn_counts reported; /* the peer's latest valid counts */
    uint64_t sent;          /* packets that we marked ECT(0) */
} xl_ecn_space;

void xl_ecn_start(xl_ecn *, bool enabled);
/* Whether to mark the next packet, on a path with pto_count. Call it once for each packet. */
bool xl_ecn_mark(xl_ecn *, uint64_t pto_count);
void xl_ecn_validated(xl_ecn *, bool is_valid); /* after an acknowledgement of a marked packet */
void xl_ecn_count(xl_ecn_space *, uint8_t ip_field);
/* Checks the counts of an ACK frame (NULL: it has none) that newly acknowledges newly_acked marked packets. Returns
 * whether they are valid, and stores them if so. *new_ce: packets that arrived with CE since the last valid counts. */
bool xl_ecn_take_counts(xl_ecn_space *, const xl_ecn_counts *, uint64_t newly_acked, uint64_t *new_ce);
const char *xl_ecn_state_name(xl_ecn_state);
