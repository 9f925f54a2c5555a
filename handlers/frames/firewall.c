// A firewall: UDP and TCP frames of a flow in the table have its verdict, others the default. Flows are five-tuples in network
// order. Each verdict is counted. It does what handlers/xdp/firewall.c does as an XDP program; the state begins with the table.
#include <frame.h>

#define FIREWALL_SLOTS 8192u
#define FIREWALL_CORES 64u

// FRAME_DROP and FRAME_HOST, and FRAME_WIRE, have the numbers of XDP_DROP, XDP_PASS and XDP_TX less one.
enum { ABORTED = 0, DROPPED = 1, PASSED = 2, SENT = 3 };

typedef struct {
    uint32_t source, destination, ports, protocol; // protocol 0: a free slot
    uint32_t verdict, unused;
} flow_t;

typedef struct {
    flow_t flows[FIREWALL_SLOTS];
    uint64_t verdicts[FIREWALL_CORES][8];
} firewall_t;

static inline int counted(firewall_t *firewall, uint32_t verdict) {
    uintptr_t core;
    __asm__ volatile("csrr %0, mhartid" : "=r"(core));
    firewall->verdicts[core % FIREWALL_CORES][verdict]++;
    return verdict < DROPPED ? FRAME_DROP : (int)verdict - 1;
}

__handler int frame_handler(const frame_t *frame, void *state) {
    firewall_t *firewall = state;
    const uint8_t *data = frame->data;
    if (frame->length < 34) {
        return counted(firewall, DROPPED);
    }
    if (data[12] != 8 || data[13] != 0) {
        return counted(firewall, PASSED);
    }
    const uint32_t header = (data[14] & 15) * 4u;
    if (header < 20 || 14 + header + 8 > frame->length) {
        return counted(firewall, DROPPED);
    }
    const uint32_t protocol = data[23];
    if (protocol != 17 && protocol != 6) {
        return counted(firewall, DROPPED);
    }
    const uint32_t source = frame_load32(data + 26), destination = frame_load32(data + 30);
    const uint32_t ports = frame_load32(data + 14 + header);
    uint32_t hash = (source * 0x9e3779b1u ^ destination) * 0x85ebca6bu ^ ports ^ protocol;
    hash *= 0xc2b2ae35u;
    for (uint32_t slot = hash >> 19;; slot = (slot + 1) % FIREWALL_SLOTS) {
        const flow_t *flow = &firewall->flows[slot];
        if (flow->protocol == 0) {
            return counted(firewall, DROPPED);
        }
        if (flow->source == source && flow->destination == destination && flow->ports == ports &&
            flow->protocol == protocol) {
            return counted(firewall, flow->verdict & 3);
        }
    }
}
