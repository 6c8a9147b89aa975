#include "emulator/mpshell/live.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/descriptors.h"

#define TERMINAL_PERIOD_MS 250
#define LINE_PERIOD_MS     1000

struct mp_live {
    const mp_shell *shell;
    mp_mailbox *mailbox;
    int stop_fd;
    bool terminal;
    bool drawn;
    pthread_t thread;
    mp_figures now;
    mp_figures before;
    uint64_t now_us;
    uint64_t before_us;
};

/* Prints one direction: rate over the last period, queue, drops since t0. */
static void put_link(FILE *out, const mp_live *live, size_t k, size_t way) {
    const link_stats *now = &live->now.links[k][way].stats;
    const link_stats *before = &live->before.links[k][way].stats;
    uint64_t elapsed = live->now_us > live->before_us ? live->now_us - live->before_us : 1;
    double mbps = (double)(now->departed_bytes - before->departed_bytes) * 8 / (double)elapsed;
    uint64_t lost = now->queue_drops + now->random_losses + now->off_losses + now->oversize_drops + now->nat_drops;
    bool idle = now->departed_packets == before->departed_packets && now->queued_packets == 0;
    fprintf(out, "  %c %8.2f Mbps  queue %5llu, %6.1f ms  lost %-7llu%s", way == 0 ? '^' : 'v', mbps,
            (unsigned long long)now->queued_packets, idle ? 0.0 : (double)now->queueing_us / 1000.0,
            (unsigned long long)lost, live->now.links[k][way].is_up ? "" : " DOWN");
}

static void draw(mp_live *live) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return;
    if (live->terminal && live->drawn)
        fprintf(out, "\033[%zuA", live->shell->link_count + 1);
    const char *clear = live->terminal ? "\033[K" : "";
    if (live->terminal)
        fprintf(out, "mpshell %.1f s%s\n", (double)live->now_us / 1e6, clear);
    for (size_t k = 0; k < live->shell->link_count; k++) {
        if (!live->terminal)
            fprintf(out, "mpshell %.1f s  ", (double)live->now_us / 1e6);
        fprintf(out, "%-10s", live->shell->paths[k].options->name);
        put_link(out, live, k, 0);
        put_link(out, live, k, 1);
        fprintf(out, "%s\n", clear);
    }
    if (fclose(out) == 0) {
        fputs(text, stderr);
        fflush(stderr);
    }
    free(text);
    live->drawn = true;
}

static void *show(void *context) {
    mp_live *live = context;
    int period = live->terminal ? TERMINAL_PERIOD_MS : LINE_PERIOD_MS;
    struct pollfd stop = {.fd = live->stop_fd, .events = POLLIN};
    while (poll(&stop, 1, period) == 0) {
        mp_request request = {.asks_figures = true, .figures = &live->now};
        live->before = live->now;
        live->before_us = live->now_us;
        if (!mp_mailbox_ask(live->mailbox, &request))
            break;
        live->now_us = request.done_us;
        draw(live);
    }
    return NULL;
}

mp_live *mp_live_start(const mp_shell *shell, mp_mailbox *mailbox) {
    mp_live *live = calloc(1, sizeof(*live));
    if (!live)
        return NULL;
    live->shell = shell;
    live->mailbox = mailbox;
    live->terminal = isatty(STDERR_FILENO) == 1;
    live->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (live->stop_fd < 0 || pthread_create(&live->thread, NULL, show, live) != 0) {
        descriptor_close(&live->stop_fd);
        free(live);
        return NULL;
    }
    return live;
}

void mp_live_stop(mp_live *live) {
    uint64_t one = 1;
    if (!live)
        return;
    if (write(live->stop_fd, &one, sizeof one) == (ssize_t)sizeof one)
        pthread_join(live->thread, NULL);
    close(live->stop_fd);
    free(live);
}
