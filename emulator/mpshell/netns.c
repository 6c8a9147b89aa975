#include "emulator/mpshell/netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "emulator/mpshell/outside.h"
#include "emulator/mpshell/run.h"
#include "emulator/mpshell/tun.h"

/* Packets that a device holds for mpshell: a late reader must not lose any. Some 150 ms at 1 Gbps. */
#define TUN_QUEUE_PACKETS 12000
#define FIRST_TABLE       1000 /* routing table of path k, and the priority of its rule: 1000 + k */

/* Writes a sysctl; names are paths below /proc/sys. Kernels without that switch do not need it. */
static int write_sysctl(const char *value, const char *name) {
    char path[160];
    snprintf(path, sizeof(path), "/proc/sys/%s", name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, value, strlen(value));
    close(fd);
    return n == (ssize_t)strlen(value) ? 0 : -1;
}

/* In a container /proc/sys is read-only: what its starter has set is good, too. */
static int need_sysctl(const char *value, const char *name) {
    char path[160];
    char now[16] = "";
    if (write_sysctl(value, name) == 0)
        return 0;
    snprintf(path, sizeof(path), "/proc/sys/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, now, sizeof(now) - 1) : -1;
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)strlen(value) + 1 && strncmp(now, value, strlen(value)) == 0 ? 0 : -1;
}

/* IPv6 without its talk: router solicitations and multicast reports would use up opportunities. */
static int quieten_ipv6(const char *device, char error[MP_ERROR_SIZE]) {
    static const char *const settings[][2] = {
        {"disable_ipv6", "0"},
        {"accept_ra", "0"},
        {"router_solicitations", "0"},
        {"addr_gen_mode", "1"},
    };
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        char name[96];
        snprintf(name, sizeof(name), "net/ipv6/conf/%s/%s", device, settings[i][0]);
        if (need_sysctl(settings[i][1], name) != 0 && access("/proc/sys/net/ipv6", F_OK) == 0) {
            return mp_fail(error,
                           "cannot set %s of device %s to %s; give the container "
                           "--sysctl net.ipv6.conf.default.%s=%s",
                           settings[i][0], device, settings[i][1], settings[i][0], settings[i][1]);
        }
    }
    return 0;
}

/* Holds 100.64.N.0/30 in the outside namespace against other mpshells: abstract socket names belong to the network
 * namespace, can be bound once, and vanish with the process. Returns the socket, or -1 if N is taken. */
static int claim_range(unsigned n) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "mpshell/100.64.%u.0", n);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, size) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Is any address of 100.64.N.0/24 configured in the current namespace? */
static bool range_in_use(const struct ifaddrs *list, unsigned n) {
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET) {
            struct sockaddr_in in;
            memcpy(&in, i->ifa_addr, sizeof(in));
            if (ntohl(in.sin_addr.s_addr) >> 8 == ((100u << 16) | (64u << 8) | n))
                return true;
        }
    }
    return false;
}

static void release_claims(struct mp_shell *shell) {
    for (size_t k = 0; k < MP_MAX_PATHS; k++) {
        if (shell->claims[k] >= 0) {
            close(shell->claims[k]);
            shell->claims[k] = -1;
        }
    }
}

static bool claim_ranges(struct mp_shell *shell, const struct ifaddrs *list, unsigned base) {
    for (size_t k = 0; k < shell->path_count; k++) {
        unsigned n = base + (unsigned)k;
        shell->claims[k] = range_in_use(list, n) ? -1 : claim_range(n);
        if (shell->claims[k] < 0) {
            release_claims(shell);
            return false;
        }
    }
    return true;
}

/* Finds consecutive free ranges for the paths and names their addresses. The search starts at a place that differs from
 * run to run: a server that still sends to the address of an earlier run must not reach this one. */
static int choose_addresses(struct mp_shell *shell, char error[MP_ERROR_SIZE]) {
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) != 0)
        return mp_fail(error, "cannot list the addresses of this machine: %s", strerror(errno));
    unsigned places = 256u - (unsigned)shell->path_count + 1u;
    unsigned start = (unsigned)getpid() * 37u;
    unsigned tried = 0;
    while (tried < places && !claim_ranges(shell, list, (start + tried) % places))
        tried++;
    freeifaddrs(list);
    if (tried == places)
        return mp_fail(error, "100.64.0.0/16 has no %zu free ranges; stop other mpshells", shell->path_count);
    unsigned base = (start + tried) % places;
    bool has_ipv6 = access("/proc/sys/net/ipv6", F_OK) == 0;
    for (size_t k = 0; k < shell->path_count; k++) {
        struct mp_path *path = &shell->paths[k];
        snprintf(path->outside_address, MP_ADDRESS_SIZE, "100.64.%u.1", (base + (unsigned)k) & 255u);
        snprintf(path->inside_address, MP_ADDRESS_SIZE, "100.64.%u.2", (base + (unsigned)k) & 255u);
        if (has_ipv6) {
            snprintf(path->outside_address6, MP_ADDRESS6_SIZE, "fd6d:7073:6800:%x::1", (base + (unsigned)k) & 255u);
            snprintf(path->inside_address6, MP_ADDRESS6_SIZE, "fd6d:7073:6800:%x::2", (base + (unsigned)k) & 255u);
        }
    }
    return 0;
}

/* The name carries the process ID; in another PID namespace the same number may be in use, then the next one is tried.
 */
static int open_outside(struct mp_path *path, size_t k, bool offload, char error[MP_ERROR_SIZE]) {
    bool busy = true;
    for (unsigned attempt = 0; attempt < 1000 && busy && path->outside_fd < 0; attempt++) {
        snprintf(path->outside_name, MP_NAME_SIZE, "mp%u-%u", ((unsigned)getpid() + attempt) % 100000u,
                 (unsigned)k % 100u);
        path->outside_fd = mp_tun_open(path->outside_name, offload, &busy, error);
    }
    if (path->outside_fd < 0)
        return -1;
    return quieten_ipv6(path->outside_name, error);
}

static char *const ip_batch[] = {"ip", "-batch", "-", NULL};
static char *const ip6_batch[] = {"ip", "-6", "-batch", "-", NULL};
static char *const tc_batch[] = {"tc", "-batch", "-", NULL};

static void add_device(struct mp_script *script, const char *device, const char *address, const char *address6) {
    mp_script_add(script, "link set dev %s mtu 1500 txqueuelen %d multicast off\n", device, TUN_QUEUE_PACKETS);
    mp_script_add(script, "addr add %s/30 dev %s noprefixroute\n", address, device);
    if (address6[0] != '\0')
        mp_script_add(script, "addr add %s/126 dev %s noprefixroute nodad\n", address6, device);
    mp_script_add(script, "link set dev %s up\n", device);
}

/* The network that the devices of a /30 belong to. */
static void network_of(const char *address, char network[MP_ADDRESS_SIZE]) {
    snprintf(network, MP_ADDRESS_SIZE, "%s", address);
    network[strlen(network) - 1] = '0';
}

/* Devices transmit straight into the ring that mpshell reads, so that every drop shows on the device. */
static int remove_qdiscs(const char *const devices[], size_t count, char error[MP_ERROR_SIZE]) {
    struct mp_script script = {.used = 0};
    for (size_t i = 0; i < count; i++)
        mp_script_add(&script, "qdisc replace dev %s root noqueue\n", devices[i]);
    return mp_run(tc_batch, &script, error);
}

static int configure_outside(struct mp_shell *shell, char error[MP_ERROR_SIZE]) {
    struct mp_script script = {.used = 0};
    const char *devices[MP_MAX_PATHS];
    for (size_t k = 0; k < shell->path_count; k++) {
        struct mp_path *path = &shell->paths[k];
        if (open_outside(path, k, !shell->options.no_offload, error) != 0)
            return -1;
        devices[k] = path->outside_name;
        add_device(&script, path->outside_name, path->outside_address, path->outside_address6);
    }
    for (size_t k = 0; k < shell->path_count; k++) {
        char network[MP_ADDRESS_SIZE];
        network_of(shell->paths[k].outside_address, network);
        /* Replies of sockets without an address of their own come from the gateway of path 0 over every path. */
        mp_script_add(&script, "route add %s/30 dev %s src %s\n", network, shell->paths[k].outside_name,
                      shell->paths[0].outside_address);
        if (shell->paths[k].outside_address6[0] != '\0') {
            mp_script_add(&script, "route add %s/128 dev %s src %s\n", shell->paths[k].inside_address6,
                          shell->paths[k].outside_name, shell->paths[0].outside_address6);
        }
    }
    return mp_run(ip_batch, &script, error) != 0 ? -1 : remove_qdiscs(devices, shell->path_count, error);
}

static void add_inside_routes(struct mp_script *script, const struct mp_path *path, size_t k) {
    char network[MP_ADDRESS_SIZE];
    const char *name = path->options->name;
    unsigned table = FIRST_TABLE + (unsigned)k;
    network_of(path->inside_address, network);
    mp_script_add(script, "route add %s/30 dev %s src %s\n", network, name, path->inside_address);
    mp_script_add(script, "route add default via %s dev %s src %s metric %u\n", path->outside_address, name,
                  path->inside_address, (unsigned)k + 1);
    mp_script_add(script, "route add default via %s dev %s src %s table %u\n", path->outside_address, name,
                  path->inside_address, table);
    mp_script_add(script, "rule add from %s/32 table %u priority %u\n", path->inside_address, table, table);
}

static void add_inside_routes6(struct mp_script *script, const struct mp_path *path, size_t k) {
    const char *name = path->options->name;
    unsigned table = FIRST_TABLE + (unsigned)k;
    if (path->inside_address6[0] == '\0')
        return;
    mp_script_add(script, "route add %s/128 dev %s src %s\n", path->outside_address6, name, path->inside_address6);
    mp_script_add(script, "route add default via %s dev %s src %s metric %u\n", path->outside_address6, name,
                  path->inside_address6, (unsigned)k + 1);
    mp_script_add(script, "route add %s/128 dev %s table %u\n", path->outside_address6, name, table);
    mp_script_add(script, "route add default via %s dev %s src %s table %u\n", path->outside_address6, name,
                  path->inside_address6, table);
    mp_script_add(script, "rule add from %s/128 table %u priority %u\n", path->inside_address6, table, table);
}

static int configure_inside6(const struct mp_shell *shell, char error[MP_ERROR_SIZE]) {
    struct mp_script script = {.used = 0};
    for (size_t k = 0; k < shell->path_count; k++)
        add_inside_routes6(&script, &shell->paths[k], k);
    return script.used > 0 ? mp_run(ip6_batch, &script, error) : 0;
}

/* Subflows that a connection may have: as many as there are paths, up to the kernel's maximum. */
static size_t allow_subflows(const struct mp_shell *shell, struct mp_script *script) {
    size_t limit = shell->path_count < 8 ? shell->path_count : 8;
    mp_script_add(script, "mptcp limits set subflow %zu add_addr_accepted %zu\n", limit, limit);
    return limit;
}

static int enable_mptcp(struct mp_shell *shell, char error[MP_ERROR_SIZE]) {
    struct mp_script script = {.used = 0};
    if (need_sysctl("1", "net/mptcp/enabled") != 0) {
        return mp_fail(error, "--mptcp: net.mptcp.enabled cannot be set; use a kernel with MPTCP, and give a container "
                              "--sysctl net.mptcp.enabled=1");
    }
    size_t limit = allow_subflows(shell, &script);
    for (size_t k = 0; k < limit; k++) {
        mp_script_add(&script, "mptcp endpoint add %s dev %s subflow\n", shell->paths[k].inside_address,
                      shell->paths[k].options->name);
    }
    return mp_run(ip_batch, &script, error);
}

static int set_sysctls(const struct mp_shell *shell, char error[MP_ERROR_SIZE]) {
    for (size_t i = 0; i < shell->options.sysctl_count; i++) {
        const char *given = shell->options.sysctls[i];
        char name[MP_SYSCTL_NAME_SIZE];
        size_t length = (size_t)(strchr(given, '=') - given);
        for (size_t at = 0; at < length; at++)
            name[at] = given[at] == '.' ? '/' : given[at];
        name[length] = '\0';
        if (write_sysctl(given + length + 1, name) != 0)
            return mp_fail(error, "--sysctl %s: cannot be set: %s", given, strerror(errno));
    }
    return 0;
}

static int configure_inside(struct mp_shell *shell, char error[MP_ERROR_SIZE]) {
    struct mp_script script = {.used = 0};
    const char *devices[MP_MAX_PATHS];
    write_sysctl("0", "net/ipv4/conf/all/rp_filter");
    write_sysctl("0", "net/ipv4/conf/default/rp_filter");
    write_sysctl("1", "net/ipv4/ip_forward"); /* for shells inside of this one */
    mp_script_add(&script, "link set dev lo up\n");
    for (size_t k = 0; k < shell->path_count; k++) {
        struct mp_path *path = &shell->paths[k];
        bool busy;
        path->inside_fd = mp_tun_open(path->options->name, !shell->options.no_offload, &busy, error);
        if (path->inside_fd < 0)
            return -1;
        devices[k] = path->options->name;
        if (quieten_ipv6(path->options->name, error) != 0)
            return -1;
        add_device(&script, path->options->name, path->inside_address, path->inside_address6);
    }
    for (size_t k = 0; k < shell->path_count; k++)
        add_inside_routes(&script, &shell->paths[k], k);
    if (mp_run(ip_batch, &script, error) != 0 || configure_inside6(shell, error) != 0 ||
        remove_qdiscs(devices, shell->path_count, error) != 0)
        return -1;
    if (shell->options.mptcp && enable_mptcp(shell, error) != 0)
        return -1;
    return set_sysctls(shell, error);
}

int mp_netns_build_outside(struct mp_shell *shell, char error[MP_ERROR_SIZE]) {
    struct mp_script script = {.used = 0};
    if (choose_addresses(shell, error) != 0 || configure_outside(shell, error) != 0)
        return -1;
    if (shell->options.lend_outside && shell->options.mptcp) {
        allow_subflows(shell, &script); /* of the server beside it, which may not */
        return mp_run(ip_batch, &script, error);
    }
    return 0;
}

int mp_netns_build(struct mp_shell *shell, char error[MP_ERROR_SIZE]) {
    if (shell->options.outside)
        return mp_outside_borrow(shell, error) != 0 ? -1 : configure_inside(shell, error);
    shell->outside_netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (shell->outside_netns < 0)
        return mp_fail(error, "cannot open /proc/self/ns/net: %s; is /proc mounted?", strerror(errno));
    if (mp_netns_build_outside(shell, error) != 0)
        return -1;
    if (unshare(CLONE_NEWNET) != 0) {
        return mp_fail(error, "cannot make a network namespace: %s; run mpshell as root (CAP_SYS_ADMIN)",
                       strerror(errno));
    }
    shell->inside_netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int rc = shell->inside_netns < 0 ? mp_fail(error, "cannot open /proc/self/ns/net: %s", strerror(errno))
                                     : configure_inside(shell, error);
    if (setns(shell->outside_netns, CLONE_NEWNET) != 0 && rc == 0)
        rc = mp_fail(error, "cannot return to the outer network namespace: %s", strerror(errno));
    return rc;
}

static void count_inside_drops(struct mp_shell *shell) {
    for (size_t k = 0; k < shell->path_count; k++)
        shell->paths[k].inside_drops = mp_tun_drops(shell->paths[k].options->name);
}

void mp_netns_count_drops(struct mp_shell *shell) {
    if (shell->lender >= 0) {
        mp_outside_count_drops(shell);
        count_inside_drops(shell);
        return;
    }
    for (size_t k = 0; k < shell->path_count; k++)
        shell->paths[k].outside_drops = mp_tun_drops(shell->paths[k].outside_name);
    if (setns(shell->inside_netns, CLONE_NEWNET) != 0)
        return;
    count_inside_drops(shell);
    if (setns(shell->outside_netns, CLONE_NEWNET) != 0)
        perror("mpshell: cannot return to the outer network namespace");
}

/* The whole of a small file. Returns its length, or -1 with errno set. */
static ssize_t read_whole(const char *name, char *text, size_t size) {
    size_t used = 0;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size) : -1;
    for (; n > 0; n = read(fd, text + used, size - used))
        used += (size_t)n;
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return n == 0 ? (ssize_t)used : -1;
}

int mp_netns_write_counters(struct mp_shell *shell, char error[MP_ERROR_SIZE]) {
    char text[65536];
    bool other = shell->inside_netns >= 0;
    ssize_t length = -1;
    if (!other || setns(shell->inside_netns, CLONE_NEWNET) == 0)
        length = read_whole("/proc/net/netstat", text, sizeof(text));
    int rc = length >= 0 ? mp_result_write(&shell->netstat, text, (size_t)length) : -1;
    if (rc != 0)
        mp_fail(error, "cannot write the counters %s: %s", shell->netstat.path, strerror(errno));
    if (other && setns(shell->outside_netns, CLONE_NEWNET) != 0)
        perror("mpshell: cannot return to the outer network namespace");
    return rc;
}

static void close_fd(int *fd) {
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

void mp_netns_destroy(struct mp_shell *shell) {
    for (size_t k = 0; k < shell->path_count; k++) {
        close_fd(&shell->paths[k].outside_fd);
        close_fd(&shell->paths[k].inside_fd);
    }
    release_claims(shell);
    close_fd(&shell->inside_netns);
    close_fd(&shell->outside_netns);
    close_fd(&shell->lender);
}
