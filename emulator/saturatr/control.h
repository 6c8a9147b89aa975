/* The control connection of a session, TCP: one JSON object per line, then the server's records as they are in memory.
 * Part of the driver.
 *
 *     S: {"saturatr":3,"nonce":HEX}
 *     C: {"nonce":HEX,"proof":HEX,"paths":N,"up":B,"down":B,"packet_bytes":N,"sending_s":F,"ack_via":B,
 *         "via_path":N|-1,"train":N,"every_us":N,     train, every_us: of a light recording, else 0
 *         "sizes":[N,...]}                             of one of single packets, else empty
 *     S: {"proof":HEX,"port":N,"ack_port":N,"host":NAME,"kernel":RELEASE}      or, at any time, {"error":SENTENCE}
 *     C: {"go":true}                    both ends send from here on (channels were opened by HELLO and WELCOME)
 *     C: {"stop":true}
 *     S: {"done":true,"paths":[{"bytes":N,...}]}             and then bytes octets of records for each path
 *
 * Lines have a maximum length; an invalid line ends the connection. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define SAT_PROTOCOL   3
#define SAT_LINE_BYTES 16384u

typedef struct {
    int fd; /* non-blocking; -1: closed */
    size_t used;
    char in[SAT_LINE_BYTES];
} sat_control;

typedef enum { SAT_LINE_BAD = -1, SAT_LINE_NONE = 0, SAT_LINE_READ = 1 } sat_line;

void sat_control_init(sat_control *control, int fd);
void sat_control_close(sat_control *control);
/* Reads a line, if any. SAT_LINE_READ: the caller owns *line. SAT_LINE_BAD: closed, too long, or no JSON object. */
sat_line sat_control_read(sat_control *control, json_t **line);
/* The same, but waits until deadline_us (CLOCK_MONOTONIC); SAT_LINE_NONE: it has passed. */
sat_line sat_control_wait(sat_control *control, json_t **line, uint64_t deadline_us);
/* Sends one line; takes the reference of fields. False if it could not be sent at once. */
bool sat_control_write(sat_control *control, json_t *fields);
/* Reads length octets before the deadline. */
bool sat_control_octets(sat_control *control, uint8_t *out, size_t length, uint64_t deadline_us);
/* Writes as many of length octets as the connection takes; -1 if it is broken. */
ptrdiff_t sat_control_push(sat_control *control, const uint8_t *data, size_t length);
