/* UDP sockets with kernel receive timestamps, in batches. Part of the driver. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/xlink.h"

#define SAT_ERROR_SIZE     512
#define SAT_GSO_MOST       40u  /* packets per call: below 64 KiB and the kernel's limit of 64 */
#define SAT_UDP_BYTES      8u   /* header */
#define SAT_IPV4_BYTES     20u  /* header */
#define SAT_IPV6_BYTES     40u  /* header */
#define SAT_ADDRESS_TEXT   64   /* "[IPv6]:port" and a NUL */
#define SAT_DATAGRAM_SEEN  128u /* bytes of each datagram that are read */
#define SAT_PACKET_LEAST   256u
#define SAT_PACKET_MOST    1500u
#define SAT_SOCKET_BUFFERS (32 << 20) /* requested; without root, net.core.rmem_max and wmem_max limit it */

typedef struct {
    const uint8_t *data;
    size_t length;         /* of data, at most SAT_DATAGRAM_SEEN */
    size_t datagram_bytes; /* UDP payload as received */
    uint32_t ip_bytes;     /* of the IP packet */
    uint64_t received_us;  /* CLOCK_MONOTONIC: the kernel's timestamp, else the time of reading */
    xl_addr from;
    xl_addr to; /* local address that it came to, port 0; unset if the kernel does not say it */
} sat_datagram;

typedef struct {
    int fd; /* -1: not open */
    bool v6;
    bool no_gso;      /* the device does not support GSO */
    uint32_t dropped; /* datagrams that the kernel dropped because the program read too slowly */
} sat_socket;

/* Returns the bytes of the IP and UDP headers of a datagram to that address. */
size_t sat_header_bytes(const xl_addr *address);

/* Opens a socket bound to *local, which receives the port that the kernel chose for port 0. device: bind to it too if
 * permitted; NULL: none. False with one phrase in error. */
bool sat_socket_open(sat_socket *s, xl_addr *local, const char *device, char *error);
void sat_socket_close(sat_socket *s);
/* Passes waiting datagrams, a few hundred at most, to on_datagram. */
void sat_socket_receive(sat_socket *s, void (*on_datagram)(void *user, const sat_datagram *datagram), void *user);
/* Sends count datagrams of segment bytes each, which are consecutive at data. local: source address; NULL: the kernel
 * chooses. Returns how many were sent; errno if not all. */
size_t sat_socket_send(sat_socket *s, const xl_addr *to, const xl_addr *local, const uint8_t *data, size_t segment,
                       size_t count);
