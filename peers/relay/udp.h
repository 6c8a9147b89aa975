/* The program of a relay over UDP, around a stack that does no input or output of its own: it takes datagrams, hands
 * datagrams out, and says when it wants to be called again. What is common to such relays is here, from the command
 * line to the exit status. peers/picoquic/main.c is an example. */
#ifndef PEERS_RELAY_UDP_H
#define PEERS_RELAY_UDP_H

#include "peers/relay/relay.h"
#include "xlink/udp.h"

typedef struct {
    relay_options options; /* a server's options.listen has the port that was bound */
    relay *relay;
    xl_udp *udp;
    xl_addr local[RELAY_MAX_PATHS]; /* client: where the paths are bound, after relay_udp_bind() */
} relay_udp;

typedef struct {
    const char *name;       /* of the program, before its errors */
    const char *version;    /* what PROGRAM version prints; NULL: there is no such command */
    bool needs_certificate; /* of a server: --certificate and --key are required */
    relay_stack ops;
    /* Makes the stack; the options are read, and the sockets of a server are bound. False with a sentence in
     * error[RELAY_ERROR_BYTES]. */
    bool (*start)(void *stack, char *error);
    /* The relay is over: tells the peer. What is queued on the sockets is sent afterwards. */
    void (*close)(void *stack);
    /* Frees the stack, once all relay_streams are released; also after a start() that failed. */
    void (*destroy)(void *stack);
} relay_program;

/* The whole of main(): returns the exit status. `udp` is part of `stack`, and zero; `own` are the stack's options. */
int relay_over_udp(int argc, char **argv, const relay_program *, const relay_own_options *own, void *stack,
                   relay_udp *);
/* Client: binds a socket to the address of each of the first `count` paths. False, and the relay ends with a sentence:
 * an address cannot be used. */
bool relay_udp_bind(relay_udp *, size_t count);
/* Writes the sentence to error[RELAY_ERROR_BYTES]; false. */
bool relay_refuse(char *error, const char *sentence);

#endif
