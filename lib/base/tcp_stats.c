#include "base/tcp_stats.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <linux/mptcp.h>
#include <linux/tcp.h>

#include "base/net.h"

#ifndef SOL_MPTCP
#define SOL_MPTCP 284
#endif
#ifndef MPTCP_INFO_FLAG_FALLBACK
#define MPTCP_INFO_FLAG_FALLBACK (1u << 0)
#endif

#define MAX_SUBFLOWS 16

/* struct mptcp_info of Linux 6.5 and later, which headers may lack. Older kernels fill only a part of it. */
typedef struct {
    uint8_t counts[6];
    uint32_t flags, token;
    uint64_t write_seq, snd_una, rcv_nxt;
    uint8_t more_counts[3];
    uint32_t retransmits;
    uint64_t bytes_retrans, bytes_sent, bytes_received;
} mptcp_info_6_5;

_Static_assert(offsetof(mptcp_info_6_5, bytes_sent) == 56, "the kernel's layout");

static tcp_flow *find_flow(tcp_stats *stats, const xl_addr *local, const xl_addr *remote) {
    for (size_t i = 0; i < stats->count; i++) {
        tcp_flow *flow = &stats->flows[i];
        if (net_same_ip(&flow->local, local) && flow->local.port == local->port && net_same_ip(&flow->remote, remote) &&
            flow->remote.port == remote->port)
            return flow;
    }
    if (stats->count == TCP_STATS_MAX_FLOWS)
        return NULL;
    tcp_flow *flow = &stats->flows[stats->count++];
    *flow = (tcp_flow){.local = *local, .remote = *remote};
    return flow;
}

static void record(tcp_stats *stats, const struct sockaddr *local, const struct sockaddr *remote,
                   const struct tcp_info *info) {
    xl_addr from, to;
    if (!net_from_sockaddr(local, &from) || !net_from_sockaddr(remote, &to))
        return;
    if (to.port == 0) /* after a reset the kernel no longer has the peer and the counts */
        return;
    tcp_flow *flow = find_flow(stats, &from, &to);
    if (flow) {
        flow->bytes_sent = info->tcpi_bytes_sent;
        flow->bytes_received = info->tcpi_bytes_received;
        flow->bytes_retransmitted = info->tcpi_bytes_retrans;
        flow->packets_sent = info->tcpi_data_segs_out;
        flow->packets_lost = info->tcpi_total_retrans;
        flow->srtt_us = info->tcpi_rtt;
        flow->cwnd_bytes = (uint64_t)info->tcpi_snd_cwnd * info->tcpi_snd_mss;
    }
}

static void sample_tcp(tcp_stats *stats, int fd) {
    struct sockaddr_storage local, remote;
    socklen_t local_len = sizeof local, remote_len = sizeof remote;
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    if (getsockname(fd, (struct sockaddr *)&local, &local_len) == 0 &&
        getpeername(fd, (struct sockaddr *)&remote, &remote_len) == 0 &&
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0)
        record(stats, (struct sockaddr *)&local, (struct sockaddr *)&remote, &info);
}

/* mptcpi_bytes_retrans cannot be used: it lacks retransmissions due to a stale or closed subflow. */
uint64_t tcp_stats_reinjected(const tcp_stats *stats) {
    uint64_t first_sent = 0;
    for (size_t i = 0; i < stats->count; i++)
        first_sent += stats->flows[i].bytes_sent - stats->flows[i].bytes_retransmitted;
    return stats->knows_data_sent && first_sent > stats->data_bytes_sent ? first_sent - stats->data_bytes_sent : 0;
}

/* Returns the number of bytes that the kernel filled; 0: plain TCP. */
static size_t read_info(int fd, mptcp_info_6_5 *info) {
    socklen_t len = sizeof *info;
    *info = (mptcp_info_6_5){0};
    bool is_mptcp =
        getsockopt(fd, SOL_MPTCP, MPTCP_INFO, info, &len) == 0 && (info->flags & MPTCP_INFO_FLAG_FALLBACK) == 0;
    return is_mptcp ? len : 0;
}

static void sample_mptcp(tcp_stats *stats, int fd) {
    mptcp_info_6_5 info;
    if (read_info(fd, &info) == 0) {
        stats->fallbacks++;
        sample_tcp(stats, fd);
        return;
    }
    struct {
        struct mptcp_subflow_data head;
        struct mptcp_subflow_addrs addrs[MAX_SUBFLOWS];
    } addrs = {.head = {.size_subflow_data = sizeof addrs.head, .size_user = sizeof addrs.addrs[0]}};
    struct {
        struct mptcp_subflow_data head;
        struct tcp_info info[MAX_SUBFLOWS];
    } infos = {.head = {.size_subflow_data = sizeof infos.head, .size_user = sizeof infos.info[0]}};
    socklen_t addrs_len = sizeof addrs, infos_len = sizeof infos;
    /* Both list the subflows in the same order. If one comes or goes in between, the counts differ. */
    if (getsockopt(fd, SOL_MPTCP, MPTCP_SUBFLOW_ADDRS, &addrs, &addrs_len) != 0 ||
        getsockopt(fd, SOL_MPTCP, MPTCP_TCPINFO, &infos, &infos_len) != 0 ||
        addrs.head.num_subflows != infos.head.num_subflows)
        return;
    for (size_t i = 0; i < addrs.head.num_subflows && i < MAX_SUBFLOWS; i++)
        record(stats, &addrs.addrs[i].sa_local, &addrs.addrs[i].sa_remote, &infos.info[i]);
    /* Read last, so that data sent in between does not count as re-injected. */
    if (read_info(fd, &info) >= offsetof(mptcp_info_6_5, bytes_received)) {
        stats->knows_data_sent = true;
        stats->data_bytes_sent = info.bytes_sent;
    }
}

void tcp_stats_sample(tcp_stats *stats, int fd, bool mptcp) {
    if (mptcp)
        sample_mptcp(stats, fd);
    else
        sample_tcp(stats, fd);
}
