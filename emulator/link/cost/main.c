/* link-bench PACKETS [KEY=VALUE...]: sends full packets through an uplink with these keys of mpshell's --path, five at
 * a time every 6 ms over 12 Mbps, and prints how many arrived and departed. The study simulator-speed counts its
 * instructions. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/numbers.h"
#include "emulator/link/settings.h"

#define ERROR_BYTES 1024
#define ROUND       5u /* packets at one time */
#define ROUND_US    6000u
#define PACKET      1500u

static int fail(const char *what) {
    fprintf(stderr, "link-bench: %s.\n", what);
    return 2;
}

static bool read_keys(link_settings settings[2], char **keys, char *error) {
    static char rate[] = "12mbps", delay[] = "20";
    for (char **key = keys; *key; key++) {
        char *equals = strchr(*key, '=');
        if (!equals)
            return error_set(error, ERROR_BYTES, "'%s' is not KEY=VALUE", *key);
        *equals = '\0';
        if (!link_settings_set(settings, *key, equals + 1, error, ERROR_BYTES))
            return false;
    }
    return link_settings_set(settings, "up", rate, error, ERROR_BYTES) &&
           link_settings_set(settings, "down", rate, error, ERROR_BYTES) &&
           (settings[0].light_trace || settings[0].delay_trace ||
            link_settings_set(settings, "delay", delay, error, ERROR_BYTES)) &&
           link_settings_check(settings, true, error, ERROR_BYTES);
}

/* UDP over IPv4, with no checksum. */
static void fill(link_packet *packet) {
    static const uint8_t headers[28] = {0x45, 0, 0x05, 0xdc, 0, 0, 0x40, 0,  64,   17,   0,    0,    100, 64,
                                        0,    2, 100,  64,   0, 1, 0x9c, 64, 0x11, 0x51, 0x05, 0xc8, 0,   0};
    memcpy(packet->data, headers, sizeof headers);
    packet->length = PACKET;
    packet->checksum_start = 0;
}

static void drain(emulated_link *link, uint64_t now) {
    while (link_next_deadline(link) <= now) {
        uint64_t at = link_next_deadline(link);
        link_advance(link, at);
        for (link_packet *p = link_pull(link); p; p = link_pull(link))
            link_departed(link, p, at);
    }
}

static uint64_t send_all(emulated_link *link, link_pool *pool, uint64_t packets) {
    uint64_t now = 0;
    for (uint64_t sent = 0; sent < packets; sent++) {
        link_packet *packet = link_pool_get(pool);
        if (!packet)
            break;
        fill(packet);
        link_enqueue(link, packet, now);
        if (sent % ROUND == ROUND - 1) {
            now += ROUND_US;
            drain(link, now);
        }
    }
    drain(link, now + 10000000);
    return now;
}

int main(int argc, char **argv) {
    link_settings settings[2];
    link_parts parts = {0};
    char error[ERROR_BYTES];
    uint64_t packets;
    memset(settings, 0, sizeof settings);
    if (argc < 2 || !number_parse(argv[1], strlen(argv[1]), &packets))
        return fail("usage: link-bench PACKETS [KEY=VALUE...]");
    if (!read_keys(settings, argv + 2, error))
        return fail(error);
    link_trace trace = link_trace_constant(12000000);
    link_config config = link_settings_config(&settings[0], 0);
    config.trace = &trace;
    config.pool = link_pool_new(0);
    config.seed = 1;
    emulated_link *link = link_settings_make(&settings[0], &config, &parts, &parts, error, sizeof error);
    if (!link)
        return fail(error);
    (void)send_all(link, config.pool, packets);
    link_stats s = link_get_stats(link);
    printf("{\"arrived\": %" PRIu64 ", \"departed\": %" PRIu64 ", \"inside\": %" PRIu64 "}\n", s.arrived_packets,
           s.departed_packets, s.inside_packets);
    link_free(link);
    link_parts_free(&parts);
    link_settings_free(settings);
    link_pool_free(config.pool);
    return 0;
}
