/* The part of a relay in C that does not depend on its stack: local sockets, buffers, the event loop and the records
 * on standard output. docs/reference/stacks.md says what a relay is.
 *
 * A client relay listens on a Unix socket. A server relay opens connections to an upstream server. Each local
 * connection is a relay_stream, whose bytes the stack carries as one bidirectional stream. Bytes wait in two buffers of
 * RELAY_BUFFER_BYTES each:
 *
 *     local socket --read--> [in] --relay_peek(), relay_consume()--> stack
 *     local socket <--write-- [out] <--relay_push(), relay_finish()-- stack
 *
 * Bytes of the peer that the socket takes at once are not copied, and a stack with memory of its own for local bytes
 * may offer it by space() instead of [in]. A full buffer stops its reader, so that flow control works from end to
 * end. The stack keeps what it knows of a relay_stream in that stream's state. A stack over UDP gets the program
 * around it from udp.h. */
#ifndef PEERS_RELAY_RELAY_H
#define PEERS_RELAY_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/settings.h"
#include "xlink/xlink.h"

#define RELAY_BUFFER_BYTES ((size_t)65536)
#define RELAY_MAX_PATHS    8
#define RELAY_NAME_BYTES   32
#define RELAY_ERROR_BYTES  256

typedef struct relay relay;
typedef struct relay_stream relay_stream;

typedef struct {
    char name[RELAY_NAME_BYTES];
    xl_addr local; /* port 0 */
} relay_path;

/* The command line of every relay: `PROGRAM client|server` and options. Strings are those of argv. */
typedef struct {
    bool is_server, help;
    const char *socket_file;           /* client: the Unix socket to listen on */
    xl_addr server;                    /* client: where the server relay is */
    relay_path paths[RELAY_MAX_PATHS]; /* client: paths[0] is the primary path */
    size_t path_count;
    xl_addr listen, upstream; /* server: UDP or TCP address to listen on; TCP address of the HTTP/1.1 server */
    const char *certificate_file, *key_file; /* server: PEM */
} relay_options;

/* Options of the stack's own: rows over `into`, see base/settings.h. If rows have sides, a client takes those of
 * SETTING_OF_PLAYER and a server those of SETTING_OF_SERVER. */
typedef struct {
    const setting *rows;
    void *into;
} relay_own_options;

/* False with one sentence in error[SETTINGS_ERROR_BYTES]. Where --help was given, prints a usage and sets out->help.
 * `own` may be NULL. */
bool relay_options_read(int argc, char **argv, const relay_own_options *own, relay_options *out, char *error);

typedef struct {
    const char *state; /* one word of the stack's, static */
    uint64_t bytes_sent, bytes_received;
    uint64_t srtt_us; /* 0: not known */
} relay_path_facts;

/* What a stack does. `stack` is its own. All are called from within relay_run(), but for release(). */
typedef struct {
    size_t state_bytes; /* of relay_state() */
    /* Client: a local connection has come; open a stream for it, now or once the handshake is done. The first call is
     * the moment to connect, so that the handshake counts to the first request. Server: never. */
    void (*open)(void *stack, relay_stream *);
    /* NULL, or where a stack can take local bytes without a copy: sets *at to its own memory for the next ones, and
     * returns how many fit there. If some come, or the end, filled() follows at once; if not, nothing. 0: they go to
     * [in]. Never called while bytes wait in [in]. */
    size_t (*space)(void *stack, relay_stream *, uint8_t **at);
    void (*filled)(void *stack, relay_stream *, size_t len, bool fin);
    /* There are new bytes to peek at, or the end. */
    void (*readable)(void *stack, relay_stream *);
    /* relay_push() takes bytes again. */
    void (*writable)(void *stack, relay_stream *);
    /* The local connection has failed: reset the stream in both directions. release() follows. This call never comes
     * within another call of the relay's or of the stack's. */
    void (*gone)(void *stack, relay_stream *);
    /* The relay_stream ends, cleanly or not: free what its state holds. It is the last call for this stream, once for
     * each, and may come within relay_consume(), relay_push(), relay_finish(), relay_abort() and relay_free(). The
     * memory of the stream and of its state stays until the stack has returned. A stream that the stack has not been
     * told of is released, too, with a state of zeros. NULL: there is nothing to free. */
    void (*release)(void *stack, relay_stream *);
    /* Absolute, CLOCK_MONOTONIC in us; XL_NEVER for none. */
    uint64_t (*next_timeout)(void *stack);
    /* After every wake-up: receive, run due timers, send. `now` is *relay_clock(). */
    void (*step)(void *stack, uint64_t now);
    /* The client's paths, for the records: leaves *out alone while the path is not there yet. NULL: not known. */
    void (*path)(void *stack, size_t path, relay_path_facts *out);
} relay_stack;

/* NULL with a sentence in error[RELAY_ERROR_BYTES]. `options` and `stack` stay the caller's. */
relay *relay_new(const relay_options *options, const relay_stack *ops, void *stack, char *error);
/* Calls step() when fd is readable. False: errno says why. */
bool relay_watch(relay *, int fd);
/* Prints `ready` and runs until SIGTERM, SIGINT or relay_close(). Returns the exit status. */
int relay_run(relay *);
/* Ends the run: prints `closed` with the reason; is_failure: the exit status is 1. */
void relay_close(relay *, const char *reason, bool is_failure);
/* Ends all relay_streams, without a call but release(). relay_free() does so, too; NULL is accepted. */
void relay_release_all(relay *);
void relay_free(relay *);
/* When the relay woke up last: CLOCK_MONOTONIC in us. It is the time for all calls of the stack until it sleeps again,
 * since in virtual time each look at the clock takes some. The place stays the same. */
uint64_t *relay_clock(relay *);

/* A new connection of a listening socket, -1 if there is none. One that there is no descriptor for is refused: the
 * socket would stay readable. */
int relay_accept(relay *, int listener);
/* Server: a new connection to the upstream server. NULL: out of memory or of descriptors. */
relay_stream *relay_connect(relay *);
/* All relay_streams, the newest first; NULL after the last one. */
relay_stream *relay_first(const relay *);
relay_stream *relay_next(const relay_stream *);

/* The stack's own memory of a relay_stream, state_bytes of zeros at first; and the relay_stream that a state is of. */
void *relay_state(relay_stream *);
relay_stream *relay_stream_of(void *state);
/* The bytes that wait for the stack, and whether the local end has said that no more follow. */
size_t relay_peek(const relay_stream *, const uint8_t **data, bool *fin);
/* The stack took that many of them; with `fin` it took the end too. May end the relay_stream. */
void relay_consume(relay_stream *, size_t len, bool fin);
/* Room for bytes of the peer. 0: writable() will say when there is some. */
size_t relay_room(const relay_stream *);
/* Bytes of the peer: how many were taken, which is at least relay_room() of them. */
size_t relay_push(relay_stream *, const uint8_t *data, size_t len);
/* The peer has finished its direction. May end the relay_stream. */
void relay_finish(relay_stream *);
/* The peer has reset the stream: ends the local connection with an error, and the relay_stream. */
void relay_abort(relay_stream *);

#endif
