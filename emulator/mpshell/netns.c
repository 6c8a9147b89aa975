#include "emulator/mpshell/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/descriptors.h"
#include "base/text_file.h"
#include "emulator/mpshell/devices.h"
#include "emulator/mpshell/outside.h"
#include "emulator/mpshell/outside_devices.h"
#include "emulator/mpshell/run.h"
#include "emulator/mpshell/tun.h"

#define FIRST_TABLE 1000 /* path k: number of its routing table and priority of its rule are 1000 + k */

static char *const ip6_batch[] = {"ip", "-6", "-batch", "-", NULL};

/* Only COMMAND's paths have default routes in the main table. */
static void add_inside_routes(mp_script *script, const mp_path *path, size_t k, bool is_told) {
    char network[MP_ADDRESS_SIZE];
    const char *name = path->options->name;
    unsigned table = FIRST_TABLE + (unsigned)k;
    mp_network_of(path->ends.inside_address, network);
    mp_script_add(script, "route add %s/30 dev %s src %s\n", network, name, path->ends.inside_address);
    if (is_told)
        mp_script_add(script, "route add default via %s dev %s src %s metric %u\n", path->ends.outside_address, name,
                      path->ends.inside_address, (unsigned)k + 1);
    mp_script_add(script, "route add default via %s dev %s src %s table %u\n", path->ends.outside_address, name,
                  path->ends.inside_address, table);
}

static void add_inside_rule(mp_script *script, const mp_path *path, size_t k) {
    unsigned table = FIRST_TABLE + (unsigned)k;
    mp_script_add(script, "rule add from %s/32 table %u priority %u\n", path->ends.inside_address, table, table);
}

static void add_inside_routes6(mp_script *script, const mp_path *path, size_t k, bool is_told) {
    const char *name = path->options->name;
    unsigned table = FIRST_TABLE + (unsigned)k;
    if (path->ends.inside_address6[0] == '\0')
        return;
    mp_script_add(script, "route add %s/128 dev %s src %s\n", path->ends.outside_address6, name,
                  path->ends.inside_address6);
    if (is_told)
        mp_script_add(script, "route add default via %s dev %s src %s metric %u\n", path->ends.outside_address6, name,
                      path->ends.inside_address6, (unsigned)k + 1);
    mp_script_add(script, "route add %s/128 dev %s table %u\n", path->ends.outside_address6, name, table);
    mp_script_add(script, "route add default via %s dev %s src %s table %u\n", path->ends.outside_address6, name,
                  path->ends.inside_address6, table);
}

static void add_inside_rule6(mp_script *script, const mp_path *path, size_t k) {
    unsigned table = FIRST_TABLE + (unsigned)k;
    if (path->ends.inside_address6[0] != '\0')
        mp_script_add(script, "rule add from %s/128 table %u priority %u\n", path->ends.inside_address6, table, table);
}

static bool configure_inside6(const mp_shell *shell, char error[MP_ERROR_SIZE]) {
    mp_script script = {.used = 0};
    for (size_t k = 0; k < shell->path_count; k++) {
        add_inside_routes6(&script, &shell->paths[k], k, k < shell->told_count);
        add_inside_rule6(&script, &shell->paths[k], k);
    }
    return script.used == 0 || mp_run(ip6_batch, &script, error);
}

/* The kernel takes MP_MAX_SUBFLOWS endpoints in all: IPv4 addresses first, then IPv6 addresses as far as they fit. */
static bool has_endpoint(const mp_shell *shell, size_t k) {
    return shell->options.mptcp && k < shell->told_count && k < MP_MAX_SUBFLOWS;
}

static bool has_endpoint6(const mp_shell *shell, size_t k) {
    return has_endpoint(shell, k) && shell->paths[k].ends.inside_address6[0] != '\0' &&
           shell->told_count + k < MP_MAX_SUBFLOWS;
}

/* IDs are 1 + k for IPv4 and 1 + MP_MAX_SUBFLOWS + k for IPv6. */
static void add_mptcp_endpoints(mp_script *script, const mp_shell *shell, size_t k) {
    static const char line[] = "mptcp endpoint add %s id %zu dev %s subflow\n";
    const mp_path *path = &shell->paths[k];
    if (has_endpoint(shell, k))
        mp_script_add(script, line, path->ends.inside_address, 1 + k, path->options->name);
    if (has_endpoint6(shell, k))
        mp_script_add(script, line, path->ends.inside_address6, 1 + MP_MAX_SUBFLOWS + k, path->options->name);
}

static void remove_mptcp_endpoints(mp_script *script, const mp_shell *shell, size_t k) {
    if (has_endpoint(shell, k))
        mp_script_add(script, "mptcp endpoint delete id %zu\n", 1 + k);
    if (has_endpoint6(shell, k))
        mp_script_add(script, "mptcp endpoint delete id %zu\n", 1 + MP_MAX_SUBFLOWS + k);
}

static bool enable_mptcp(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    mp_script script = {.used = 0};
    if (!mp_sysctl_need("1", "net/mptcp/enabled")) {
        return mp_fail(error, "--mptcp: net.mptcp.enabled cannot be set; use a kernel with MPTCP, and give a container "
                              "--sysctl net.mptcp.enabled=1");
    }
    mp_allow_subflows(shell, &script);
    for (size_t k = 0; k < shell->path_count; k++)
        add_mptcp_endpoints(&script, shell, k);
    return mp_run(mp_ip_batch, &script, error);
}

static bool set_sysctls(const mp_shell *shell, char error[MP_ERROR_SIZE]) {
    for (size_t i = 0; i < shell->options.sysctl_count; i++) {
        const char *given = shell->options.sysctls[i];
        char name[MP_SYSCTL_NAME_SIZE];
        size_t length = (size_t)(strchr(given, '=') - given);
        for (size_t at = 0; at < length; at++)
            name[at] = given[at] == '.' ? '/' : given[at];
        name[length] = '\0';
        if (!mp_sysctl_write(given + length + 1, name))
            return mp_fail(error, "--sysctl %s: cannot be set: %s", given, strerror(errno));
    }
    return true;
}

static bool configure_inside(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    mp_script script = {.used = 0};
    const char *devices[MP_MAX_PATHS];
    mp_sysctl_write("0", "net/ipv4/conf/all/rp_filter");
    mp_sysctl_write("0", "net/ipv4/conf/default/rp_filter");
    mp_sysctl_write("1", "net/ipv4/ip_forward"); /* for mpshells inside this one */
    mp_script_add(&script, "link set dev lo up\n");
    for (size_t k = 0; k < shell->path_count; k++) {
        mp_path *path = &shell->paths[k];
        bool busy;
        path->inside_fd = mp_tun_open(path->options->name, !shell->options.no_offload, &busy, error);
        if (path->inside_fd < 0)
            return false;
        devices[k] = path->options->name;
        if (!mp_device_quieten_ipv6(path->options->name, error))
            return false;
        mp_device_script(&script, path->options->name, path->ends.inside_address, path->ends.inside_address6);
    }
    for (size_t k = 0; k < shell->path_count; k++) {
        add_inside_routes(&script, &shell->paths[k], k, k < shell->told_count);
        add_inside_rule(&script, &shell->paths[k], k);
    }
    if (!mp_run(mp_ip_batch, &script, error) || !configure_inside6(shell, error) ||
        !mp_devices_remove_qdiscs(devices, shell->path_count, error))
        return false;
    if (shell->options.mptcp && !enable_mptcp(shell, error))
        return false;
    return set_sysctls(shell, error);
}

bool mp_netns_build(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    if (shell->options.outside)
        return mp_outside_borrow(shell, error) && configure_inside(shell, error);
    shell->outside_netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (shell->outside_netns < 0)
        return mp_fail(error, "cannot open /proc/self/ns/net: %s; is /proc mounted?", strerror(errno));
    if (!mp_outside_build(shell, error))
        return false;
    if (unshare(CLONE_NEWNET) != 0)
        return mp_fail(error, "cannot make a network namespace: %s; " MP_AS_ROOT, strerror(errno));
    shell->inside_netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    bool good = shell->inside_netns < 0 ? mp_fail(error, "cannot open /proc/self/ns/net: %s", strerror(errno))
                                        : configure_inside(shell, error);
    if (setns(shell->outside_netns, CLONE_NEWNET) != 0 && good)
        good = mp_fail(error, "cannot return to the outer network namespace: %s", strerror(errno));
    return good;
}

/* Removes or restores addresses and routes. Rules by source address, queue and sysctls stay. */
static bool change_interface(mp_shell *shell, size_t k, bool up, char error[MP_ERROR_SIZE]) {
    mp_script script = {.used = 0};
    const mp_path *path = &shell->paths[k];
    bool is_told = k < shell->told_count;
    if (up) {
        mp_device_script(&script, path->options->name, path->ends.inside_address, path->ends.inside_address6);
        add_inside_routes(&script, path, k, is_told);
        add_inside_routes6(&script, path, k, is_told);
        add_mptcp_endpoints(&script, shell, k);
    } else {
        remove_mptcp_endpoints(&script, shell, k);
        mp_script_add(&script, "link set dev %s down\naddr flush dev %s\n", path->options->name, path->options->name);
    }
    return mp_run(mp_ip_batch, &script, error);
}

/* Changes only the calling thread's network namespace. */
bool mp_netns_set_interface(mp_shell *shell, size_t k, bool up, char error[MP_ERROR_SIZE]) {
    bool other = shell->inside_netns >= 0;
    if (other && setns(shell->inside_netns, CLONE_NEWNET) != 0)
        return mp_fail(error, "cannot enter the inside: %s", strerror(errno));
    const bool good = change_interface(shell, k, up, error);
    if (other && setns(shell->outside_netns, CLONE_NEWNET) != 0)
        return mp_fail(error, "cannot return to the outer network namespace: %s", strerror(errno));
    return good;
}

static void count_inside_drops(mp_shell *shell) {
    for (size_t k = 0; k < shell->path_count; k++)
        shell->paths[k].inside_drops = mp_tun_drops(shell->paths[k].options->name);
}

void mp_netns_count_drops(mp_shell *shell) {
    if (shell->lender >= 0) {
        mp_outside_count_drops(shell);
        count_inside_drops(shell);
        return;
    }
    for (size_t k = 0; k < shell->path_count; k++)
        shell->paths[k].outside_drops = mp_tun_drops(shell->paths[k].ends.outside_name);
    if (setns(shell->inside_netns, CLONE_NEWNET) != 0)
        return;
    count_inside_drops(shell);
    if (setns(shell->outside_netns, CLONE_NEWNET) != 0)
        perror("mpshell: cannot return to the outer network namespace");
}

bool mp_netns_write_counters(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    char *text = NULL;
    bool other = shell->inside_netns >= 0;
    size_t length = 0;
    if (!shell->netstat.path)
        return true;
    if (!other || setns(shell->inside_netns, CLONE_NEWNET) == 0)
        text = file_read_at("/proc/net/netstat", SIZE_MAX, &length);
    const bool good = text ? mp_result_write(&shell->netstat, text, length, error)
                           : mp_fail(error, "cannot read the counters: %s", strerror(errno));
    free(text);
    if (other && setns(shell->outside_netns, CLONE_NEWNET) != 0)
        perror("mpshell: cannot return to the outer network namespace");
    return good;
}

void mp_netns_destroy(mp_shell *shell) {
    for (size_t k = 0; k < shell->path_count; k++) {
        descriptor_close(&shell->paths[k].outside_fd);
        descriptor_close(&shell->paths[k].inside_fd);
    }
    mp_outside_release_addresses(shell);
    descriptor_close(&shell->inside_netns);
    descriptor_close(&shell->outside_netns);
    descriptor_close(&shell->lender);
}
