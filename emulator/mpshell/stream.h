/* Files that grow while the links run, each written by its own thread, so that a slow disk does not delay packets.
 * Records of packets are gathered here and passed to the thread 64 kB at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/packet.h"

typedef struct mp_stream mp_stream;

/* Creates or truncates the file and starts its thread. NULL with errno set. */
mp_stream *mp_stream_open(const char *name);
/* Returns the file's name. */
const char *mp_stream_name(const mp_stream *stream);
/* A link_log_sink: queues a copy of the text for the thread; context is the mp_stream. Text is lost if more than 256 MB
 * wait for the disk or there is no memory; then the file is incomplete. */
void mp_stream_queue(void *context, const char *text, size_t length);
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
