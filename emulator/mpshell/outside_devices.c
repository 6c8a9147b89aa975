#include "emulator/mpshell/outside_devices.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "emulator/mpshell/machine.h"
#include "emulator/mpshell/devices.h"
#include "emulator/mpshell/tun.h"

/* Reserves 100.64.N.0/30 in the outside namespace: abstract socket names belong to the network namespace, can be bound
 * once, and vanish with the process. Returns the socket, or -1 if another mpshell has N. */
static int claim_range(unsigned n) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "mpshell/100.64.%u.0", n);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, size) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Whether any address of 100.64.N.0/24 is configured in the current namespace. */
static bool range_in_use(const struct ifaddrs *list, unsigned n) {
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET) {
            struct sockaddr_in in;
            memcpy(&in, i->ifa_addr, sizeof in);
            if (ntohl(in.sin_addr.s_addr) >> 8 == ((100u << 16) | (64u << 8) | n))
                return true;
        }
    }
    return false;
}

void mp_outside_release_addresses(mp_shell *shell) {
    for (size_t k = 0; k < MP_MAX_PATHS; k++)
        descriptor_close(&shell->claims[k]);
}

static bool claim_ranges(mp_shell *shell, const struct ifaddrs *list, unsigned base) {
    for (size_t k = 0; k < shell->path_count; k++) {
        unsigned n = base + (unsigned)k;
        shell->claims[k] = range_in_use(list, n) ? -1 : claim_range(n);
        if (shell->claims[k] < 0) {
            mp_outside_release_addresses(shell);
            return false;
        }
    }
    return true;
}

/* Finds consecutive free ranges for the paths and sets their addresses. The search starts at a different range in each
 * run, so that a server that still sends to an address of an earlier run does not reach this one. In virtual time the
 * machine is new, and the addresses are those of the simulator, which requests contain. */
static bool choose_addresses(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) != 0)
        return mp_fail(error, "cannot list the addresses of this machine: %s", strerror(errno));
    unsigned places = 256u - (unsigned)shell->path_count + 1u;
    unsigned start = mp_clock_is_virtual() ? 0 : (unsigned)getpid() * 37u;
    unsigned tried = 0;
    while (tried < places && !claim_ranges(shell, list, (start + tried) % places))
        tried++;
    freeifaddrs(list);
    if (tried == places)
        return mp_fail(error, "100.64.0.0/16 has no %zu free ranges; stop other mpshells", shell->path_count);
    unsigned base = (start + tried) % places;
    bool has_ipv6 = access("/proc/sys/net/ipv6", F_OK) == 0;
    for (size_t k = 0; k < shell->path_count; k++) {
        mp_ends *ends = &shell->paths[k].ends;
        const unsigned n = (base + (unsigned)k) & 255u;
        snprintf(ends->outside_address, MP_ADDRESS_SIZE, "100.64.%u.1", n);
        snprintf(ends->inside_address, MP_ADDRESS_SIZE, "100.64.%u.2", n);
        if (has_ipv6) {
            snprintf(ends->outside_address6, MP_ADDRESS6_SIZE, "fd6d:7073:6800:%x::1", n);
            snprintf(ends->inside_address6, MP_ADDRESS6_SIZE, "fd6d:7073:6800:%x::2", n);
        }
    }
    return true;
}

/* The device's name contains the process ID. If a process of another PID namespace uses it, tries the next number. */
static bool open_outside(mp_path *path, size_t k, bool offload, char error[MP_ERROR_SIZE]) {
    bool busy = true;
    for (unsigned attempt = 0; attempt < 1000 && busy && path->outside_fd < 0; attempt++) {
        snprintf(path->ends.outside_name, MP_NAME_SIZE, "mp%u-%u", ((unsigned)getpid() + attempt) % 100000u,
                 (unsigned)k % 100u);
        path->outside_fd = mp_tun_open(path->ends.outside_name, offload, &busy, error);
    }
    if (path->outside_fd < 0)
        return false;
    return mp_device_quieten_ipv6(path->ends.outside_name, error);
}

static bool configure_outside(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    mp_script script = {.used = 0};
    const char *devices[MP_MAX_PATHS];
    for (size_t k = 0; k < shell->path_count; k++) {
        mp_path *path = &shell->paths[k];
        if (!open_outside(path, k, !shell->options.no_offload, error))
            return false;
        devices[k] = path->ends.outside_name;
        mp_device_script(&script, path->ends.outside_name, path->ends.outside_address, path->ends.outside_address6);
    }
    for (size_t k = 0; k < shell->path_count; k++) {
        char network[MP_ADDRESS_SIZE];
        mp_network_of(shell->paths[k].ends.outside_address, network);
        /* Sockets that are not bound to an address reply from the gateway address of path 0 on every path. */
        mp_script_add(&script, "route add %s/30 dev %s src %s\n", network, shell->paths[k].ends.outside_name,
                      shell->paths[0].ends.outside_address);
        if (shell->paths[k].ends.outside_address6[0] != '\0') {
            mp_script_add(&script, "route add %s/128 dev %s src %s\n", shell->paths[k].ends.inside_address6,
                          shell->paths[k].ends.outside_name, shell->paths[0].ends.outside_address6);
        }
    }
    return mp_run(mp_ip_batch, &script, error) && mp_devices_remove_qdiscs(devices, shell->path_count, error);
}

bool mp_outside_build(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    mp_script script = {.used = 0};
    if (!choose_addresses(shell, error) || !configure_outside(shell, error))
        return false;
    if (shell->options.lend_outside && shell->options.mptcp) {
        mp_allow_subflows(shell, &script); /* for the server in this namespace, which may not */
        return mp_run(mp_ip_batch, &script, error);
    }
    return true;
}
