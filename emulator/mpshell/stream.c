#include "emulator/mpshell/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "emulator/link/capture.h"
#include "emulator/mpshell/offload.h"

#define LONGEST_LINE 96u

mp_stream *mp_stream_open(const char *name) {
    mp_stream *stream = calloc(1, sizeof(*stream));
    char *copy = strdup(name);
    mp_logfile *file = stream && copy ? mp_logfile_open(name) : NULL;
    if (!file) {
        int saved = !stream || !copy ? ENOMEM : errno;
        free(stream);
        free(copy);
        errno = saved;
        return NULL;
    }
    stream->file = file;
    stream->name = copy;
    return stream;
}

void mp_stream_flush(mp_stream *stream) {
    if (stream && stream->used > 0) {
        mp_logfile_write(stream->file, (const char *)stream->buffer, stream->used);
        stream->used = 0;
    }
}

bool mp_stream_close(mp_stream *stream) {
    if (!stream)
        return true;
    mp_stream_flush(stream);
    int rc = mp_logfile_close(stream->file);
    if (rc != 0)
        fprintf(stderr, "mpshell: %s is incomplete: %s\n", stream->name, strerror(rc));
    free((char *)stream->name);
    free(stream);
    return rc == 0;
}

/* Returns room for `bytes`, at most MP_STREAM_BYTES. */
static uint8_t *reserve(mp_stream *stream, size_t bytes) {
    if (stream->used + bytes > MP_STREAM_BYTES)
        mp_stream_flush(stream);
    return stream->buffer + stream->used;
}

void mp_stream_departures_header(mp_stream *stream, uint64_t t0_monotonic_us) {
    char *at = (char *)reserve(stream, 256);
    int n = snprintf(at, 256,
                     "# railyard departures 1: one line for each departure of the link's log, in its order\n"
                     "# t0: %llu us of CLOCK_MONOTONIC\n"
                     "# scheduled_us departed_us arrived_us bytes\n",
                     (unsigned long long)t0_monotonic_us);
    stream->used += (size_t)n;
}

static char *put_number(char *at, uint64_t value, char end) {
    at = number_put(at, value);
    *at++ = end;
    return at;
}

void mp_stream_departure(mp_stream *stream, const link_packet *packet, uint64_t departed_us) {
    char *start = (char *)reserve(stream, LONGEST_LINE);
    char *at = put_number(start, packet->due_us, ' ');
    at = put_number(at, departed_us, ' ');
    at = put_number(at, packet->arrival_us, ' ');
    at = put_number(at, link_packet_bytes(packet), '\n');
    stream->used += (size_t)(at - start);
}

void mp_stream_capture_header(mp_stream *stream, uint32_t snaplen) {
    stream->snaplen = snaplen;
    link_capture_head(reserve(stream, LINK_CAPTURE_HEAD_BYTES), snaplen);
    stream->used += LINK_CAPTURE_HEAD_BYTES;
}

void mp_stream_capture(mp_stream *stream, const link_packet *packet, uint64_t epoch_ns) {
    uint32_t length = packet->length < LINK_PACKET_CAPACITY ? packet->length : LINK_PACKET_CAPACITY;
    uint32_t kept = length < stream->snaplen ? length : stream->snaplen;
    uint8_t *at = reserve(stream, LINK_CAPTURE_RECORD_BYTES + LINK_PACKET_CAPACITY);
    link_capture_record(at, epoch_ns, length, kept);
    memcpy(at + LINK_CAPTURE_RECORD_BYTES, packet->data, length);
    mp_checksum_complete(at + LINK_CAPTURE_RECORD_BYTES, length, packet->checksum_start, packet->checksum_offset);
    stream->used += LINK_CAPTURE_RECORD_BYTES + kept;
}
