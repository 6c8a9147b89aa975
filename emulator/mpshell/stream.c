#include "emulator/mpshell/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/numbers.h"
#include "base/text_file.h"
#include "emulator/link/capture.h"
#include "emulator/mpshell/lock.h"
#include "emulator/mpshell/offload.h"
#include "emulator/mpshell/result.h"

#define BUFFER_BYTES      65536u
#define LONGEST_LINE      96u
#define MOST_QUEUED_BYTES ((size_t)256 << 20) /* so that a disk slower than the links does not use up the memory */

typedef struct stream_chunk {
    struct stream_chunk *next;
    size_t length;
    char text[];
} stream_chunk;

struct mp_stream {
    char *name; /* of the file, for messages */
    int fd;
    int error; /* errno of the writer's first failure */
    bool lost; /* set by the caller: a chunk had no room */
    size_t queued;
    bool closing;
    pthread_t writer;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    stream_chunk *head;
    stream_chunk **tail;
    /* Of the caller's thread: records that are not queued yet. */
    uint32_t snaplen; /* of captures */
    size_t used;
    uint8_t buffer[BUFFER_BYTES];
};

/* ---- the writer's thread ---- */

/* Takes all queued chunks; NULL: the file is being closed and there are none. */
static stream_chunk *take(mp_stream *stream) {
    pthread_mutex_lock(&stream->mutex);
    while (!stream->head && !stream->closing)
        pthread_cond_wait(&stream->changed, &stream->mutex);
    stream_chunk *list = stream->head;
    stream->head = NULL;
    stream->tail = &stream->head;
    pthread_mutex_unlock(&stream->mutex);
    return list;
}

static void count_written(mp_stream *stream, size_t length) {
    pthread_mutex_lock(&stream->mutex);
    stream->queued -= length;
    pthread_mutex_unlock(&stream->mutex);
}

static void *write_chunks(void *context) {
    mp_stream *stream = context;
    for (stream_chunk *list = take(stream); list; list = take(stream)) {
        while (list) {
            stream_chunk *chunk = list;
            list = chunk->next;
            if (stream->error == 0)
                stream->error = file_write(stream->fd, chunk->text, chunk->length) ? 0 : errno;
            count_written(stream, chunk->length);
            free(chunk);
        }
    }
    return NULL;
}

static int start(mp_stream *stream) {
    mp_lock_init(&stream->mutex);
    pthread_cond_init(&stream->changed, NULL);
    stream->tail = &stream->head;
    pthread_attr_t thread;
    pthread_attr_init(&thread);
    pthread_attr_setstacksize(&thread, 256 * 1024);
    int rc = pthread_create(&stream->writer, &thread, write_chunks, stream);
    pthread_attr_destroy(&thread);
    return rc;
}

/* ---- open, queue, close ---- */

mp_stream *mp_stream_open(const char *name) {
    mp_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->name = strdup(name);
    stream->fd = stream->name ? mp_output_open(name, O_TRUNC) : -1;
    const int problem = stream->fd < 0 ? errno : start(stream);
    if (problem == 0)
        return stream;
    if (stream->fd >= 0)
        close(stream->fd);
    free(stream->name);
    free(stream);
    errno = problem;
    return NULL;
}

const char *mp_stream_name(const mp_stream *stream) {
    return stream->name;
}

void mp_stream_queue(void *context, const char *text, size_t length) {
    mp_stream *stream = context;
    stream_chunk *chunk = malloc(sizeof *chunk + length);
    pthread_mutex_lock(&stream->mutex);
    if (!chunk || stream->queued + length > MOST_QUEUED_BYTES) {
        stream->lost = true;
        free(chunk);
    } else {
        stream->queued += length;
        chunk->next = NULL;
        chunk->length = length;
        memcpy(chunk->text, text, length);
        *stream->tail = chunk;
        stream->tail = &chunk->next;
        pthread_cond_signal(&stream->changed);
    }
    pthread_mutex_unlock(&stream->mutex);
}

void mp_stream_flush(mp_stream *stream) {
    if (stream && stream->used > 0) {
        mp_stream_queue(stream, (const char *)stream->buffer, stream->used);
        stream->used = 0;
    }
}

bool mp_stream_close(mp_stream *stream) {
    if (!stream)
        return true;
    mp_stream_flush(stream);
    pthread_mutex_lock(&stream->mutex);
    stream->closing = true;
    pthread_cond_signal(&stream->changed);
    pthread_mutex_unlock(&stream->mutex);
    pthread_join(stream->writer, NULL);
    int error = stream->error == 0 && stream->lost ? ENOBUFS : stream->error;
    if (close(stream->fd) != 0 && error == 0)
        error = errno;
    if (error != 0)
        fprintf(stderr, "mpshell: %s is incomplete: %s\n", stream->name, strerror(error));
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->mutex);
    free(stream->name);
    free(stream);
    return error == 0;
}

/* ---- records ---- */

/* Returns room for `bytes`, at most BUFFER_BYTES. */
static uint8_t *reserve(mp_stream *stream, size_t bytes) {
    if (stream->used + bytes > BUFFER_BYTES)
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
