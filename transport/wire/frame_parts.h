/* Parts that several frame types share, for frame.c, frame_ietf.c and frame_put.c only. */
#pragma once

#include "wire/frame.h"

/* Each parser returns false if its part breaks a rule that needs no state. At the end of the input the reader fails
 * instead. */
/* From Largest Acknowledged to the ECN counts, which are present if has_ecn. */
bool xl_frame_parse_ack_body(xl_reader *, bool has_ecn, xl_ack_frame *);
/* From Sequence Number on, as in NEW_CONNECTION_ID. */
bool xl_frame_parse_new_cid_body(xl_reader *, xl_frame *);
/* A frame of the dialect `ietf`, after its type. */
bool xl_frame_parse_ietf(xl_reader *, uint64_t type, xl_frame *);

/* Writes integers one after the other. */
void xl_frame_put_numbers(xl_writer *, size_t count, const uint64_t *numbers);
#define XL_FRAME_PUT(w, ...)                                                                                           \
    xl_frame_put_numbers(w, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (const uint64_t[]){__VA_ARGS__})
void xl_frame_put_new_cid_body(xl_writer *, uint64_t sequence, uint64_t retire_prior_to, const xl_cid *,
                               const uint8_t token[16]);
/* The qlog name; NULL: the type is not of the dialect. */
const char *xl_frame_ietf_name(uint64_t type);
