/* Parts of frames that several types have: for frame.c, frame_ietf.c and frame_put.c only. */
#ifndef XL_WIRE_FRAME_PARTS_H
#define XL_WIRE_FRAME_PARTS_H

#include "wire/frame.h"

/* Each gives false where the part breaks a rule that needs no state; a reader that came to its end says so itself. */
/* From Largest Acknowledged to the ECN counts, which are there where `has_ecn`. */
bool xl_frame_parse_ack_body(xl_reader *, bool has_ecn, xl_ack_frame *);
/* From Sequence Number on, as in NEW_CONNECTION_ID. */
bool xl_frame_parse_new_cid_body(xl_reader *, xl_frame *);
/* A frame of the dialect `ietf`, after its type. */
bool xl_frame_parse_ietf(xl_reader *, uint64_t type, xl_frame *);

void xl_frame_put_new_cid_body(xl_writer *, uint64_t sequence, uint64_t retire_prior_to, const xl_cid *,
                               const uint8_t token[16]);
/* What qlog calls it; NULL: it is no frame of the dialect. */
const char *xl_frame_ietf_name(uint64_t type);

#endif
