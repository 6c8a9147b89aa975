/* ECN counts in ACK frames (RFC 9000 section 19.3.2). */
#include "wire/frame.h"

#include <string.h>

/* For each kind of ACK frame, the type with ECN counts is the type without them plus one. */
void xl_frame_add_ecn_counts(xl_writer *w, uint8_t *frame, size_t tail, uint64_t ect0, uint64_t ect1, uint64_t ce) {
    uint8_t behind[64];
    if (w->failed || tail > sizeof behind || (size_t)(w->p - frame) <= tail)
        return;
    size_t type_len = (size_t)1 << (frame[0] >> 6);
    size_t counts = xl_varint_len(ect0) + xl_varint_len(ect1) + xl_varint_len(ce);
    if (xl_writer_left(w) < counts)
        return;
    frame[type_len - 1] |= 1;
    w->p -= tail;
    memcpy(behind, w->p, tail);
    xl_write_varint(w, ect0);
    xl_write_varint(w, ect1);
    xl_write_varint(w, ce);
    xl_write_bytes(w, behind, tail);
}
