/* FQ-CoDel (RFC 8290): a hash of the 5-tuple assigns packets to flows, each with its own CoDel. Deficit round robin
 * serves the flows by bytes, and flows that have just begun to send (new) before those with a backlog (old). Over the
 * limit, the flow with the most bytes loses packets from its head. No ECN. */
#include <stdlib.h>

#include "emulator/link/codel.h"
#include "emulator/link/flow.h"
#include "emulator/link/queue.h"

#define STANDARD_FLOWS   1024
#define STANDARD_QUANTUM 1514
#define STANDARD_PACKETS 10240
#define STANDARD_BYTES   (32u << 20)
#define DROP_BATCH       64u /* section 4.1: up to half of the fattest flow is dropped per search for it */

typedef struct fq_flow {
    struct fq_flow *next;
    link_fifo fifo;
    link_codel codel;
    int64_t deficit;
    bool listed; /* in new or old flows */
} fq_flow;

typedef struct {
    fq_flow *head, *tail;
} fq_flow_list;

typedef struct {
    link_queue_limits limits;
    link_codel_parameters parameters;
    uint64_t flow_count, quantum;
    uint64_t perturbation;
    fq_flow *flows;
    fq_flow_list new_flows, old_flows;
} fq_codel;

static const link_queue_option options[] = {
    {"packets", offsetof(fq_codel, limits.packets), LINK_QUEUE_COUNT, 1, LINK_QUEUE_LIMIT_MOST, STANDARD_PACKETS},
    {"bytes", offsetof(fq_codel, limits.bytes), LINK_QUEUE_COUNT, 1, LINK_QUEUE_LIMIT_MOST, STANDARD_BYTES},
    {"flows", offsetof(fq_codel, flow_count), LINK_QUEUE_COUNT, 1, 65536, STANDARD_FLOWS},
    {"quantum", offsetof(fq_codel, quantum), LINK_QUEUE_COUNT, 256, 1000000, STANDARD_QUANTUM},
    LINK_CODEL_OPTIONS(fq_codel, parameters),
    {0},
};

static void append(fq_flow_list *list, fq_flow *flow) {
    flow->next = NULL;
    if (!list->head)
        list->head = flow;
    else
        list->tail->next = flow;
    list->tail = flow;
}

static fq_flow *take_first(fq_flow_list *list) {
    fq_flow *flow = list->head;
    list->head = flow->next;
    return flow;
}

static bool start(link_queue *queue) {
    fq_codel *fq = queue->state;
    fq->perturbation = link_rng_next(&queue->rng);
    fq->flows = calloc(fq->flow_count, sizeof *fq->flows);
    return fq->flows != NULL;
}

static void stop(link_queue *queue) {
    fq_codel *fq = queue->state;
    for (size_t i = 0; fq->flows && i < fq->flow_count; i++) {
        link_fifo *fifo = &fq->flows[i].fifo;
        for (link_packet *p = link_fifo_pop(fifo); p; p = link_fifo_pop(fifo))
            link_pool_put(queue->pool, p);
    }
    free(fq->flows);
}

static void drop_from_fattest(link_queue *queue, fq_codel *fq) {
    fq_flow *fattest = &fq->flows[0];
    for (size_t i = 1; i < fq->flow_count; i++)
        if (fq->flows[i].fifo.bytes > fattest->fifo.bytes)
            fattest = &fq->flows[i];
    uint64_t half = fattest->fifo.bytes / 2;
    for (size_t n = 0; n < DROP_BATCH && (n == 0 || fattest->fifo.bytes > half); n++)
        link_queue_drop(queue, link_fifo_pop(&fattest->fifo));
}

static void enqueue(link_queue *queue, link_packet *packet, uint64_t now) {
    fq_codel *fq = queue->state;
    (void)now;
    fq_flow *flow = &fq->flows[link_flow_hash(packet->data, packet->length, fq->perturbation) % fq->flow_count];
    link_fifo_push(&flow->fifo, packet);
    if (!flow->listed) {
        flow->listed = true;
        flow->deficit = (int64_t)fq->quantum;
        append(&fq->new_flows, flow);
    }
    while (link_queue_exceeds(queue, &fq->limits))
        drop_from_fattest(queue, fq);
}

/* Section 4.2. The loop ends: each turn moves a flow to the old ones, removes it from them, or gives it a quantum. */
static link_packet *dequeue(link_queue *queue, uint64_t now) {
    fq_codel *fq = queue->state;
    while (queue->packets > 0 || fq->new_flows.head || fq->old_flows.head) {
        bool is_new = fq->new_flows.head != NULL;
        fq_flow_list *list = is_new ? &fq->new_flows : &fq->old_flows;
        fq_flow *flow = list->head;
        if (flow->deficit <= 0) {
            flow->deficit += (int64_t)fq->quantum;
            append(&fq->old_flows, take_first(list));
            continue;
        }
        link_packet *packet = link_codel_dequeue(&flow->codel, &fq->parameters, queue, &flow->fifo, now);
        if (packet) {
            flow->deficit -= link_packet_bytes(packet);
            return packet;
        }
        take_first(list);
        if (is_new && fq->old_flows.head)
            append(&fq->old_flows, flow); /* so that a new flow cannot starve the old ones */
        else
            flow->listed = false;
    }
    return NULL;
}

const link_queue_discipline link_queue_fq_codel = {
    .name = "fq_codel",
    .options = options,
    .state_size = sizeof(fq_codel),
    .start = start,
    .stop = stop,
    .enqueue = enqueue,
    .dequeue = dequeue,
};
