// A load balancer: a flow to a service goes to a server by a table of places, in a tunnel of IP in IP. A cache keeps the servers of
// flows. It does what handlers/xdp/balancer.c does as an XDP program; the state begins with the tables.
#include <frame.h>

#define SERVICES 16u
#define PLACES 251u
#define SERVERS 64u
#define SLOTS 1024u

typedef struct {
    uint32_t address, port, protocol; // protocol 0: a free slot
    uint32_t number;
} service_t;

typedef struct {
    uint32_t address;
    uint8_t station[8];
} server_t;

typedef struct {
    uint32_t source, destination, ports, protocol;
} flow_t;

typedef struct {
    flow_t flow;
    uint32_t server;
    uint32_t lock;
} slot_t;

typedef struct {
    uint32_t own_address;
    uint32_t unused;
    service_t services[SERVICES];
    uint32_t places[SERVICES * PLACES];
    server_t servers[SERVERS];
    slot_t slots[SLOTS];
} balancer_t;

static const service_t *service_of(const balancer_t *balancer, uint32_t address, uint32_t port, uint32_t protocol) {
    for (uint32_t slot = ((address ^ port) * 0x9e3779b1u) >> 28;; slot = (slot + 1) % SERVICES) {
        const service_t *service = &balancer->services[slot];
        if (service->protocol == 0) {
            return 0;
        }
        if (service->address == address && service->port == port && service->protocol == protocol) {
            return service;
        }
    }
}

// FNV-1a over words.
static inline uint32_t hashed(const flow_t *flow) {
    const uint32_t words[4] = {flow->source, flow->destination, flow->ports, flow->protocol};
    uint32_t hash = 2166136261u;
    for (uint32_t word = 0; word < 4; word++) {
        hash = (hash ^ words[word]) * 16777619u;
        hash ^= hash >> 15;
    }
    return hash;
}

static inline int is_same(const flow_t *a, const flow_t *b) {
    return a->source == b->source && a->destination == b->destination && a->ports == b->ports && a->protocol == b->protocol;
}

// The server of a flow. A new flow replaces another one in its slot. A slot that another core has is left alone.
static uint32_t server_of(balancer_t *balancer, const service_t *service, const flow_t *flow) {
    const uint32_t hash = hashed(flow);
    const uint32_t server = balancer->places[service->number * PLACES + hash % PLACES];
    slot_t *slot = &balancer->slots[hash % SLOTS];
    if (__atomic_exchange_n(&slot->lock, 1, __ATOMIC_ACQUIRE)) {
        return server;
    }
    if (!is_same(&slot->flow, flow)) {
        slot->flow = *flow;
        slot->server = server;
    }
    const uint32_t kept = slot->server;
    __atomic_store_n(&slot->lock, 0, __ATOMIC_RELEASE);
    return kept;
}

static int into_tunnel(const frame_t *frame, uint32_t source, const server_t *server) {
    const uint32_t length = frame_get16(frame->data + 16) + 20u;
    uint8_t *data = frame_push(frame, 20);
    __builtin_memcpy(data, server->station, 6);
    __builtin_memcpy(data + 6, data + 20, 6);
    __builtin_memcpy(data + 12, data + 32, 2);
    const uint32_t destination = server->address, bytes = (length >> 8 | length << 8) & 0xffff;
    frame_store16(data + 14, 0x0045);
    frame_store16(data + 16, (uint16_t)bytes);
    frame_store32(data + 18, 0);
    frame_store16(data + 22, 4 << 8 | 64);
    uint32_t sum = 0x0045 + bytes + (4 << 8 | 64);
    sum += (source & 0xffff) + (source >> 16) + (destination & 0xffff) + (destination >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum += sum >> 16;
    frame_store16(data + 24, (uint16_t)~sum);
    frame_store32(data + 26, source);
    frame_store32(data + 30, destination);
    return FRAME_WIRE;
}

__handler int frame_handler(const frame_t *frame, void *state) {
    balancer_t *balancer = state;
    const uint8_t *data = frame->data;
    if (frame->length < 42 || data[12] != 8 || data[13] != 0 || (data[14] & 15) != 5) {
        return FRAME_HOST;
    }
    const flow_t flow = {frame_load32(data + 26), frame_load32(data + 30), frame_load32(data + 34), data[23]};
    const service_t *service = service_of(balancer, flow.destination, flow.ports >> 16, flow.protocol);
    if (!service) {
        return FRAME_HOST;
    }
    const uint32_t server = server_of(balancer, service, &flow);
    return server < SERVERS ? into_tunnel(frame, balancer->own_address, &balancer->servers[server]) : FRAME_DROP;
}
