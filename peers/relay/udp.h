/* The common part of relays over UDP, from command line to exit status, for stacks that do no I/O: they take and return
 * datagrams, and return when to call them again. Example: peers/picoquic/main.c. */
#pragma once

#include "peers/relay/relay.h"
#include "xlink/udp.h"

typedef struct {
    relay_options options; /* server: options.listen has the bound port */
    relay *relay;
    xl_udp *udp;
    xl_addr local[RELAY_MAX_PATHS]; /* client: bound addresses of the paths, after relay_udp_bind() */
} relay_udp;

typedef struct {
    const char *name;       /* of the program, printed before its errors */
    const char *version;    /* output of PROGRAM version; NULL: no such command */
    bool needs_certificate; /* a server requires --certificate and --key */
    relay_stack ops;
    /* Creates the stack, after the options are read and a server's socket is bound. False with a sentence in
     * error[RELAY_ERROR_BYTES]. */
    bool (*start)(void *stack, char *error);
    /* Closes the connections at the end of the run. Queued datagrams are sent afterwards. */
    void (*close)(void *stack);
    /* Frees the stack, after all relay_streams are released; also after a failed start(). */
    void (*destroy)(void *stack);
} relay_program;

/* The complete main(): returns the exit status. The relay_udp is part of `stack` and all zero; `own`: the stack's
 * options. */
int relay_over_udp(int argc, char **argv, const relay_program *, const relay_own_options *own, void *stack,
                   relay_udp *);
/* Client: binds a socket for each of the first `count` paths. If an address cannot be used, ends the relay with a
 * reason and returns false. */
bool relay_udp_bind(relay_udp *, size_t count);
/* Writes the sentence to error[RELAY_ERROR_BYTES]. Returns false. */
bool relay_refuse(char *error, const char *sentence);
