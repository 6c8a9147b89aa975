/* Captures of packets in pcap format with nanoseconds; packets begin with their IP header (link type RAW). Makes the
 * bytes; the driver writes them. */
#pragma once

#include <stdint.h>

#define LINK_CAPTURE_HEAD_BYTES   24u
#define LINK_CAPTURE_RECORD_BYTES 16u

/* Makes the file header; of each packet at most `snaplen` bytes are kept. */
void link_capture_head(uint8_t out[LINK_CAPTURE_HEAD_BYTES], uint32_t snaplen);
/* Makes the record header of a packet of `length` bytes, of which the first `kept` follow. */
void link_capture_record(uint8_t out[LINK_CAPTURE_RECORD_BYTES], uint64_t epoch_ns, uint32_t length, uint32_t kept);
