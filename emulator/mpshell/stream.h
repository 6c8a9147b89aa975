/* Records of packets for a file: gathered here and passed to the file's writer 64 kB at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/packet.h"
#include "emulator/mpshell/logfile.h"

#define MP_STREAM_BYTES 65536u

typedef struct {
    mp_logfile *file;
    const char *name; /* of the file, for messages; owned */
    uint32_t snaplen; /* of captures */
    size_t used;
    uint8_t buffer[MP_STREAM_BYTES];
} mp_stream;

/* Creates the file and starts its thread. NULL with errno set. */
mp_stream *mp_stream_open(const char *name);
/* Passes the gathered data to the writer. NULL is allowed. */
void mp_stream_flush(mp_stream *stream);
/* Writes everything and frees the stream. False, after a message, if the file is incomplete. NULL is allowed. */
bool mp_stream_close(mp_stream *stream);

/* Writes the opening comment lines of a file of departures, which has a line for each departure in the link's log. */
void mp_stream_departures_header(mp_stream *stream, uint64_t t0_monotonic_us);
/* Writes a line with times in us since t0: of the opportunity (or the end of the delay) that delivers the packet, of
 * its write to the receiving device, of its arrival at the queue. */
void mp_stream_departure(mp_stream *stream, const link_packet *packet, uint64_t departed_us);

/* Captures in pcap format with ns, link type RAW: packets begin with their IP header. */
void mp_stream_capture_header(mp_stream *stream, uint32_t snaplen);
void mp_stream_capture(mp_stream *stream, const link_packet *packet, uint64_t epoch_ns);
