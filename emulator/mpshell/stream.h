/* Records of many packets on their way to a file: gathered here, handed to the file's writer 64 kB at a time. */
#ifndef RAILYARD_MPSHELL_STREAM_H
#define RAILYARD_MPSHELL_STREAM_H

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

/* Creates the file; NULL with errno set. It starts a thread. */
mp_stream *mp_stream_open(const char *name);
/* Hands over what is gathered. NULL is allowed. */
void mp_stream_flush(mp_stream *stream);
/* Writes everything and frees the stream; tells on stderr what could not be written, and returns false then. NULL
 * is allowed. */
bool mp_stream_close(mp_stream *stream);

/* The opening comment lines of a file of departures, which has a line for each departure in the link's log. */
void mp_stream_departures_header(mp_stream *stream, uint64_t t0_monotonic_us);
/* Times in us since t0: of the opportunity (or the end of the delay) that delivers the packet, of the moment when the
 * receiving device had it, of its arrival at the queue. */
void mp_stream_departure(mp_stream *stream, const link_packet *packet, uint64_t departed_us);

/* Captures in pcap format with ns, link type RAW: packets begin with their IP header. */
void mp_stream_capture_header(mp_stream *stream, uint32_t snaplen);
void mp_stream_capture(mp_stream *stream, const link_packet *packet, uint64_t epoch_ns);

#endif
