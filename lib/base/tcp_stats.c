#include "base/tcp_stats.h"

#include <netinet/in.h>
#include <string.h>
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

void tcp_stats_sample_tcp(tcp_stats *stats, int fd) {
    struct sockaddr_storage local, remote;
    socklen_t local_len = sizeof local, remote_len = sizeof remote;
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    if (getsockname(fd, (struct sockaddr *)&local, &local_len) == 0 &&
        getpeername(fd, (struct sockaddr *)&remote, &remote_len) == 0 &&
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0)
        record(stats, (struct sockaddr *)&local, (struct sockaddr *)&remote, &info);
}

void tcp_stats_sample_mptcp(tcp_stats *stats, int fd) {
    struct mptcp_info info = {0};
    socklen_t len = sizeof info;
    if (getsockopt(fd, SOL_MPTCP, MPTCP_INFO, &info, &len) != 0 || (info.mptcpi_flags & MPTCP_INFO_FLAG_FALLBACK)) {
        stats->fallbacks++;
        tcp_stats_sample_tcp(stats, fd);
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
    /* Both list the subflows in the same order; one that comes or goes in between shows as different counts. */
    if (getsockopt(fd, SOL_MPTCP, MPTCP_SUBFLOW_ADDRS, &addrs, &addrs_len) != 0 ||
        getsockopt(fd, SOL_MPTCP, MPTCP_TCPINFO, &infos, &infos_len) != 0 ||
        addrs.head.num_subflows != infos.head.num_subflows)
        return;
    for (size_t i = 0; i < addrs.head.num_subflows && i < MAX_SUBFLOWS; i++)
        record(stats, &addrs.addrs[i].sa_local, &addrs.addrs[i].sa_remote, &infos.info[i]);
}
