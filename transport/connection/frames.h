/* What each received frame does (RFC 9000 section 19). */
#pragma once

#include "crypto/crypto.h"
#include "path/path.h"
#include "wire/frame.h"
#include "wire/packet.h"

/* The packet that contains a frame. */
typedef struct {
    const xl_datagram *datagram;
    xl_path *path; /* the path on which it arrived */
    xl_packet_type type;
    xl_level level;
    xl_space *space;
    uint64_t local_id;     /* 1-RTT: path ID */
    uint64_t cid_sequence; /* 1-RTT: sequence number of its destination CID */
    uint64_t pn;
    bool is_newest; /* no packet with a higher number came in the space before */
} xl_packet_context;

/* 0 or the transport error to close with. */
uint64_t xl_conn_take_frame(xl_connection *, const xl_frame *, const xl_packet_context *);
