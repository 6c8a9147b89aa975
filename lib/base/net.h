/* Conversion of addresses from text, and to and from struct sockaddr. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "xlink/xlink.h"

/* "192.0.2.1" or "2001:db8::1", without a port. */
bool net_parse_ip(const char *text, xl_addr *out);
/* "192.0.2.1:443" or "[2001:db8::1]:443"; port 0 is allowed. */
bool net_parse_endpoint(const char *text, xl_addr *out);
/* The read() of a setting (base/settings.h) that is the xl_addr of an endpoint. net_read_server: port 0 is refused. */
bool net_read_endpoint(void *addr, const char *text, char *reason, size_t cap);
bool net_read_server(void *addr, const char *text, char *reason, size_t cap);
/* net_read_endpoint(), which takes @:PORT too: the gateway of mpshell, from the environment. */
bool net_read_gateway(void *addr, const char *text, char *reason, size_t cap);

/* Parses an address of this host: "192.0.2.1", "2001:db8::1", or "@I" for the IPv4 address of mpshell's path I, from
 * the environment. False with a phrase in reason. */
bool net_parse_local(const char *text, xl_addr *out, char *reason, size_t cap);
/* Writes the addresses of mpshell's paths in this family, in order. Returns their number; 0 outside of mpshell. */
size_t net_mpshell_paths(uint8_t family, xl_addr *out, size_t cap);

/* Returns the length of the sockaddr. */
socklen_t net_to_sockaddr(const xl_addr *addr, struct sockaddr_storage *out);
bool net_from_sockaddr(const struct sockaddr *sa, xl_addr *out);

/* Same IP address, whatever the ports. */
bool net_same_ip(const xl_addr *a, const xl_addr *b);
