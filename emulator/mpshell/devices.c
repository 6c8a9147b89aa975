#include "emulator/mpshell/devices.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text_file.h"

/* Packets that a device holds for mpshell, so that a late read loses none. Some 150 ms at 1 Gbps. */
#define TUN_QUEUE_PACKETS 12000

char *const mp_ip_batch[] = {"ip", "-batch", "-", NULL};
static char *const tc_batch[] = {"tc", "-batch", "-", NULL};

bool mp_sysctl_write(const char *value, const char *name) {
    char path[160];
    snprintf(path, sizeof path, "/proc/sys/%s", name);
    return file_put(path, value);
}

bool mp_sysctl_need(const char *value, const char *name) {
    char path[160];
    char now[16];
    if (mp_sysctl_write(value, name))
        return true;
    snprintf(path, sizeof path, "/proc/sys/%s", name);
    return file_peek(path, now, sizeof now) && strlen(now) == strlen(value) + 1 &&
           strncmp(now, value, strlen(value)) == 0;
}

bool mp_device_quieten_ipv6(const char *device, char error[MP_ERROR_SIZE]) {
    static const char *const settings[][2] = {
        {"disable_ipv6", "0"},
        {"accept_ra", "0"},
        {"router_solicitations", "0"},
        {"addr_gen_mode", "1"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        char name[96];
        snprintf(name, sizeof name, "net/ipv6/conf/%s/%s", device, settings[i][0]);
        if (!mp_sysctl_need(settings[i][1], name) && access("/proc/sys/net/ipv6", F_OK) == 0) {
            return mp_fail(error,
                           "cannot set %s of device %s to %s; give the container "
                           "--sysctl net.ipv6.conf.default.%s=%s",
                           settings[i][0], device, settings[i][1], settings[i][0], settings[i][1]);
        }
    }
    return true;
}

void mp_device_script(mp_script *script, const char *device, const char *address, const char *address6) {
    mp_script_add(script, "link set dev %s mtu 1500 txqueuelen %d multicast off\n", device, TUN_QUEUE_PACKETS);
    mp_script_add(script, "addr add %s/30 dev %s noprefixroute\n", address, device);
    if (address6[0] != '\0')
        mp_script_add(script, "addr add %s/126 dev %s noprefixroute nodad\n", address6, device);
    mp_script_add(script, "link set dev %s up\n", device);
}

void mp_network_of(const char *address, char network[MP_ADDRESS_SIZE]) {
    snprintf(network, MP_ADDRESS_SIZE, "%s", address);
    network[strlen(network) - 1] = '0';
}

/* Devices then transmit directly into the ring that mpshell reads, so that the device counts every drop. */
bool mp_devices_remove_qdiscs(const char *const devices[], size_t count, char error[MP_ERROR_SIZE]) {
    mp_script script = {.used = 0};
    for (size_t i = 0; i < count; i++)
        mp_script_add(&script, "qdisc replace dev %s root noqueue\n", devices[i]);
    return mp_run(tc_batch, &script, error);
}

void mp_allow_subflows(const mp_shell *shell, mp_script *script) {
    size_t most = shell->told_count < MP_MAX_SUBFLOWS ? shell->told_count : MP_MAX_SUBFLOWS;
    size_t subflows = shell->options.mptcp_subflows, addresses = shell->options.mptcp_addresses;
    mp_script_add(script, "mptcp limits set subflow %zu add_addr_accepted %zu\n", subflows < most ? subflows : most,
                  addresses < most ? addresses : most);
}
