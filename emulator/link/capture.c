#include "emulator/link/capture.h"

#include <string.h>

#define PCAP_NS_MAGIC 0xa1b23c4du
#define LINKTYPE_RAW  101u
#define NS_PER_S      1000000000u

void link_capture_head(uint8_t out[LINK_CAPTURE_HEAD_BYTES], uint32_t snaplen) {
    const uint16_t version[2] = {2, 4};
    const uint32_t head[] = {PCAP_NS_MAGIC, 0, 0, 0, snaplen, LINKTYPE_RAW};
    _Static_assert(sizeof head == LINK_CAPTURE_HEAD_BYTES, "six words");
    memcpy(out, head, sizeof head);
    memcpy(out + 4, version, sizeof version);
}

void link_capture_record(uint8_t out[LINK_CAPTURE_RECORD_BYTES], uint64_t epoch_ns, uint32_t length, uint32_t kept) {
    const uint32_t head[] = {(uint32_t)(epoch_ns / NS_PER_S), (uint32_t)(epoch_ns % NS_PER_S), kept, length};
    _Static_assert(sizeof head == LINK_CAPTURE_RECORD_BYTES, "four words");
    memcpy(out, head, sizeof head);
}
