/* Answers to datagrams that belong to no connection. They wait in a bounded queue and need no other state. */
#pragma once

#include "endpoint/endpoint.h"

/* RFC 9000 section 6.1 */
void xl_answer_version_negotiation(xl_endpoint *, const xl_datagram *in, const xl_packet_header *);
/* Section 10.3 */
void xl_answer_reset(xl_endpoint *, const xl_datagram *in, const xl_packet_header *);
/* Section 8.1.2 */
void xl_answer_retry(xl_endpoint *, const xl_datagram *in, const xl_packet_header *, uint64_t now);
/* CONNECTION_CLOSE with this code in an Initial packet. Only some are sent each second. */
void xl_answer_refusal(xl_endpoint *, const xl_datagram *in, const xl_packet_header *, uint64_t code, uint64_t now);
/* Takes an answer from the queue, which must not be empty. 0: the buffer is too small for it. */
size_t xl_answer_take(xl_endpoint *, uint8_t *buf, size_t cap, xl_datagram *out);
