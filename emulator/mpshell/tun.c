#include "emulator/mpshell/tun.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

#define TUN_DEVICE "/dev/net/tun"

/* Leaves checksums and segmentation to mpshell; UDP's segmentation if the kernel supports that (Linux 6.2). */
static void ask_for_offload(int fd) {
    unsigned long tcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
    if (ioctl(fd, TUNSETOFFLOAD, tcp | TUN_F_USO4 | TUN_F_USO6) != 0)
        ioctl(fd, TUNSETOFFLOAD, tcp);
}

int mp_tun_open(const char *name, bool offload, bool *busy, char error[MP_ERROR_SIZE]) {
    *busy = false;
    int fd = open(TUN_DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        const char *remedy = errno == ENOENT || errno == ENODEV || errno == ENXIO
                                 ? "load the tun module, or give the container --device /dev/net/tun"
                                 : MP_AS_ROOT;
        return mp_no_fd(error, "no permission for TUN: cannot open " TUN_DEVICE ": %s; %s", strerror(errno), remedy);
    }
    struct ifreq request;
    memset(&request, 0, sizeof request);
    request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (ioctl(fd, TUNSETIFF, &request) != 0) {
        int saved = errno;
        close(fd);
        *busy = saved == EBUSY || saved == EINVAL || saved == EEXIST;
        return mp_no_fd(error, "no permission for TUN: cannot make device %s: %s; " MP_AS_ROOT, name, strerror(saved));
    }
    if (offload)
        ask_for_offload(fd);
    return fd;
}

mp_device_drops mp_tun_drops(const char *name) {
    mp_device_drops drops = {0, 0};
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) != 0)
        return drops;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_PACKET && i->ifa_data && strcmp(i->ifa_name, name) == 0) {
            const struct rtnl_link_stats *stats = i->ifa_data;
            drops.received = (uint64_t)stats->rx_dropped + stats->rx_errors;
            drops.transmitted = (uint64_t)stats->tx_dropped + stats->tx_errors;
        }
    }
    freeifaddrs(list);
    return drops;
}
