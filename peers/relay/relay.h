/* The part of a relay in C that does not depend on its stack: local sockets, buffers, the event loop and the records
 * on standard output. docs/reference/stacks.md describes relays.
 *
 * A client relay listens on a Unix socket. A server relay opens connections to an upstream server. Each local
 * connection is a relay_stream, whose bytes the stack carries as one bidirectional stream. Bytes wait in two buffers of
 * RELAY_BUFFER_BYTES each:
 *
 *     local socket --read--> [in] --relay_peek(), relay_consume()--> stack
 *     local socket <--write-- [out] <--relay_push(), relay_finish()-- stack
 *
 * The peer's bytes are written to the socket without a copy if it takes them at once. A stack with its own memory for
 * local bytes may offer it by space() instead of [in]. A full buffer stops its reader, so flow control works end to
 * end. The stack keeps its data on a relay_stream in that stream's state. udp.h has the rest of the program for stacks
 * over UDP. */
#pragma once

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

/* The command line of every relay: `PROGRAM client|server` and options. Strings point into argv. */
typedef struct {
    bool is_server, help;
    const char *socket_file;           /* client: the Unix socket to listen on */
    xl_addr server;                    /* client: address of the server relay */
    relay_path paths[RELAY_MAX_PATHS]; /* client: paths[0] is the primary path */
    size_t path_count;
    xl_addr listen, upstream; /* server: UDP or TCP address to listen on; TCP address of the HTTP/1.1 server */
    const char *certificate_file, *key_file; /* server: PEM */
} relay_options;

/* The stack's own options: rows for `into`, see base/settings.h. If rows have sides, a client takes those of
 * SETTING_OF_PLAYER and a server those of SETTING_OF_SERVER. */
typedef struct {
    const setting *rows;
    void *into;
} relay_own_options;

/* Reads the command line. False with a sentence in error[SETTINGS_ERROR_BYTES]. With --help, prints the usage and sets
 * out->help. `own` may be NULL. */
bool relay_options_read(int argc, char **argv, const relay_own_options *own, relay_options *out, char *error);

typedef struct {
    const char *state; /* a word of the stack; static string */
    uint64_t bytes_sent, bytes_received;
    uint64_t srtt_us; /* 0: unknown */
} relay_path_facts;

/* The operations of a stack; `stack` is its own data. Only relay_run() calls them, except release(). */
typedef struct {
    size_t state_bytes; /* size of relay_state() */
    /* Client: opens a stream for a new local connection, now or after the handshake. The first call starts the
     * connection, so that the handshake is part of the first request. Server: never called. */
    void (*open)(void *stack, relay_stream *);
    /* Sets *at to the stack's memory for the next local bytes, and returns its size; 0: use [in]. If bytes or the end
     * are read, filled() follows at once, else nothing. Not called while bytes wait in [in]. NULL: always use [in]. */
    size_t (*space)(void *stack, relay_stream *, uint8_t **at);
    void (*filled)(void *stack, relay_stream *, size_t len, bool fin);
    /* relay_peek() has new bytes, or the end. */
    void (*readable)(void *stack, relay_stream *);
    /* relay_push() has room again. */
    void (*writable)(void *stack, relay_stream *);
    /* Resets the stream in both directions, because the local connection has failed. release() follows. Never called
     * within another function of the relay or the stack. */
    void (*gone)(void *stack, relay_stream *);
    /* Frees what the state of an ended relay_stream holds. Called once per stream, as its last call, also within
     * relay_consume(), relay_finish(), relay_abort(), relay_release_all() and relay_free(). The memory of stream and
     * state stays valid until the stack has returned. A stream for which no other call came is released too, with a
     * state of zeros. NULL: nothing to free. */
    void (*release)(void *stack, relay_stream *);
    /* Absolute time, CLOCK_MONOTONIC, us; XL_NEVER: none. */
    uint64_t (*next_timeout)(void *stack);
    /* Receives, runs due timers and sends, after every wake-up. `now` is *relay_clock(). */
    void (*step)(void *stack, uint64_t now);
    /* Client: writes the record of a path; leaves *out unchanged if the path was not opened yet. NULL: paths are
     * unknown. */
    void (*path)(void *stack, size_t path, relay_path_facts *out);
} relay_stack;

/* Returns NULL with a sentence in error[RELAY_ERROR_BYTES] on failure. The caller keeps `options` and `stack`. */
relay *relay_new(const relay_options *options, const relay_stack *ops, void *stack, char *error);
/* Makes relay_run() wake up when fd is readable. False with errno set. */
bool relay_watch(relay *, int fd);
/* Prints `ready` and runs until SIGTERM, SIGINT or relay_close(). Returns the exit status. */
int relay_run(relay *);
/* Ends the run and prints `closed` with the reason. is_failure: exit status 1. */
void relay_close(relay *, const char *reason, bool is_failure);
/* Ends all relay_streams, calling only release(). relay_free() does so too. Both accept NULL. */
void relay_release_all(relay *);
void relay_free(relay *);
/* Returns the place of the time of the last wake-up, CLOCK_MONOTONIC, us. The stack uses it for all calls until the
 * next wake-up, because in virtual time every reading of the clock takes time. The place never changes. */
uint64_t *relay_clock(relay *);

/* Accepts a connection; -1: none. If the process has no descriptor for it, the connection is closed, because the
 * listening socket would stay readable. */
int relay_accept(relay *, int listener);
/* Server: starts a connection to the upstream server. NULL: it fails at once, or no memory or descriptor is left. */
relay_stream *relay_connect(relay *);
/* Iterate over all relay_streams, newest first; NULL after the last one. */
relay_stream *relay_first(const relay *);
relay_stream *relay_next(const relay_stream *);

/* The stack's state of a relay_stream, at first state_bytes zeros; and the relay_stream of a state. */
void *relay_state(relay_stream *);
relay_stream *relay_stream_of(void *state);
/* Returns the number of bytes that wait for the stack, at *data. *fin: no more follow. */
size_t relay_peek(const relay_stream *, const uint8_t **data, bool *fin);
/* Removes `len` bytes that the stack has taken; fin: it has taken the end too. May end the relay_stream. */
void relay_consume(relay_stream *, size_t len, bool fin);
/* Returns the room for the peer's bytes. 0: writable() follows. */
size_t relay_room(const relay_stream *);
/* Takes bytes of the peer. Returns their number, at least min(len, relay_room()). */
size_t relay_push(relay_stream *, const uint8_t *data, size_t len);
/* Ends the peer's direction after the bytes pushed so far. May end the relay_stream. */
void relay_finish(relay_stream *);
/* Ends the relay_stream, and the local connection with an error, because the peer has reset the stream. */
void relay_abort(relay_stream *);
