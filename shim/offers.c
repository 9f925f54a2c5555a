/* The offers to libfabric, which depend on the card and on the program's hints. */

#include "provider.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* libfabric frees each part separately. */
struct offer {
    struct fi_info *info;
    struct fi_tx_attr *tx;
    struct fi_rx_attr *rx;
    struct fi_ep_attr *ep;
    struct fi_domain_attr *domain;
    struct fi_fabric_attr *fabric;
    uint64_t *address, *peer;
    int has_peer;
    char *domain_name, *fabric_name;
};

static void drop(struct offer *offer) {
    free(offer->info), free(offer->tx), free(offer->rx), free(offer->ep), free(offer->domain), free(offer->fabric);
    free(offer->address), free(offer->peer), free(offer->domain_name), free(offer->fabric_name);
}

/* Returns the card's capabilities. FI_RMA_EVENT is offered only on request, because each access has an event then. */
static uint64_t caps_of_card(void) {
    uint32_t card = nicety_shared->card;
    uint64_t caps = CAPS;
    caps |= card & CARD_RMA ? RMA_CAPS : 0;
    caps |= card & CARD_ATOMIC ? FI_ATOMIC : 0;
    return caps;
}

static uint64_t orders_of_card(void) {
    return nicety_shared->card & CARD_ATOMIC ? FI_ORDER_SAS | ATOMIC_ORDER : FI_ORDER_SAS;
}

/* Returns the requirements for registered memory that a program of this version has to meet. */
static int mr_mode(uint32_t version, const struct fi_info *hints) {
    static const int by_address = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    int asked = hints && hints->domain_attr ? hints->domain_attr->mr_mode : 0;
    if (!(nicety_shared->card & CARD_RMA))
        return 0;
    if (nicety_shared->card & CARD_ADDRESSES)
        return version < FI_VERSION(1, 5) || asked == FI_MR_BASIC ? FI_MR_BASIC : by_address;
    return version < FI_VERSION(1, 5) || asked == FI_MR_SCALABLE ? FI_MR_SCALABLE : 0;
}

/* Returns whether the program meets these requirements. */
static int does(uint32_t version, const struct fi_info *hints) {
    int asked = hints->domain_attr ? hints->domain_attr->mr_mode : 0, needed = mr_mode(version, hints);
    if (!hints->domain_attr)
        return 1;
    if (asked == FI_MR_BASIC || needed == FI_MR_BASIC || (version < FI_VERSION(1, 5) && asked))
        return asked == needed;
    return needed == FI_MR_SCALABLE || !(needed & ~asked);
}

/* ---- refusals ---- */

/* The reason for refusing the program's last request. */
static char refused[256];

#define REFUSE(...) (snprintf(refused, sizeof refused, __VA_ARGS__), 0)

/* Prints the reason for the last refusal if the program never took part. Such a program may state no reason itself. */
__attribute__((destructor)) static void tell(void) {
    if (*refused && nicety_slot && !nicety_attached())
        fprintf(stderr, "nicety: rank %u: libfabric has offered the program nothing, since the program asks for %s\n", nicety_rank(), refused);
}

static const char *name_of(uint64_t cap) {
    static const struct {
        uint64_t cap;
        const char *name;
    } names[] = {
        {FI_RMA, "FI_RMA"},
        {FI_ATOMIC, "FI_ATOMIC"},
        {FI_READ, "FI_READ"},
        {FI_WRITE, "FI_WRITE"},
        {FI_REMOTE_READ, "FI_REMOTE_READ"},
        {FI_REMOTE_WRITE, "FI_REMOTE_WRITE"},
        {FI_RMA_EVENT, "FI_RMA_EVENT"},
        {BIT(5), "FI_MULTICAST"},
        {BIT(6), "FI_COLLECTIVE"},
        {BIT(42), "FI_FIREWALL_ADDR"},
        {BIT(43), "FI_PEER"},
        {BIT(44), "FI_XPU"},
        {BIT(45), "FI_TAGGED_DIRECTED_RECV"},
        {BIT(46), "FI_TAGGED_MULTI_RECV"},
        {BIT(47), "FI_HMEM"},
        {BIT(48), "FI_EXACT_DIRECTED_RECV"},
        {BIT(49), "FI_RMA_PMEM"},
        {BIT(50), "FI_SOURCE_ERR"},
        {BIT(53), "FI_SHARED_AV"},
        {BIT(58), "FI_NAMED_RX_CTX"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].cap == cap)
            return names[i].name;
    return NULL;
}

static int refuse_caps(uint64_t lacking) {
    uint64_t first = lacking & -lacking;
    const char *name = name_of(first);
    if (name)
        return REFUSE("%s, which the card does not have", name);
    return REFUSE("the capability %#llx, which the card does not have", (unsigned long long)first);
}

static int are_sides_met(const struct fi_info *hints) {
    uint64_t orders = orders_of_card();
    const struct fi_tx_attr *tx = hints->tx_attr;
    const struct fi_rx_attr *rx = hints->rx_attr;
    if (tx && tx->inject_size > INJECT_SIZE)
        return REFUSE("an injection of %zu bytes; the maximum is %d", tx->inject_size, INJECT_SIZE);
    if ((tx && tx->msg_order & ~orders) || (rx && rx->msg_order & ~orders))
        return REFUSE("an order of messages (msg_order) that the card does not keep");
    if ((tx && (tx->size > QUEUE || tx->iov_limit > MOST_PARTS || tx->rma_iov_limit > 1)) ||
        (rx && (rx->size > QUEUE || rx->iov_limit > 1)))
        return REFUSE("more operations (size) or parts of a buffer (iov_limit) than fi_getinfo offers without hints");
    return 1;
}

static int is_met(uint32_t version, const struct fi_info *hints) {
    uint64_t own = caps_of_card();
    if (nicety_shared->card & CARD_EVENTS)
        own |= FI_RMA_EVENT;
    if (hints->caps & ~own)
        return refuse_caps(hints->caps & ~own);
    if (hints->caps & (FI_RMA | FI_ATOMIC) && !does(version, hints))
        return REFUSE("registered memory with another mr_mode than %#x, which the card needs", mr_mode(version, hints));
    if (hints->ep_attr && hints->ep_attr->type != FI_EP_UNSPEC && hints->ep_attr->type != FI_EP_RDM)
        return REFUSE("an endpoint of another type than FI_EP_RDM");
    if (hints->ep_attr && hints->ep_attr->max_msg_size > MOST_BYTES)
        return REFUSE("messages of %zu bytes; the maximum is %llu", hints->ep_attr->max_msg_size, MOST_BYTES);
    if (hints->domain_attr && hints->domain_attr->cq_data_size > sizeof(uint32_t))
        return REFUSE("%zu bytes of completion data; the maximum is 4", hints->domain_attr->cq_data_size);
    if (hints->addr_format != FI_FORMAT_UNSPEC)
        return REFUSE("addresses of format %u; a process's address is its rank (FI_FORMAT_UNSPEC)", hints->addr_format);
    if (!are_sides_met(hints))
        return 0;
    const struct fi_fabric_attr *fabric = hints->fabric_attr;
    if (fabric && ((fabric->name && strcmp(fabric->name, NAME)) || (fabric->prov_name && strcmp(fabric->prov_name, NAME))))
        return REFUSE("another provider or fabric than %s", NAME);
    return 1;
}

/* ---- addresses ---- */

/* The number of looks for a service that no process has named yet. */
enum { LOOKS = 30000 };

/* Returns the service that a rank has named as its own. The rank's pages are read from the file, because a process maps
 * only its own pages. */
static uint32_t service_of(int file, uint32_t rank) {
    uint32_t service = 0;
    off_t at = NICETY_SLOTS + (off_t)NICETY_SLOT_BYTES * rank + (off_t)offsetof(struct nicety_slot, service);
    return pread(file, &service, sizeof service, at) == sizeof service ? service : 0;
}

static int is_number(const char *text, uint64_t *number) {
    char *end;
    *number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end;
}

/* Parses a rank such as `nicety:1`, the form of fi_av_straddr(3), or `1`. */
static int is_rank(const char *node, uint64_t *rank) {
    static const char head[] = NAME ":";
    int has_head = !strncmp(node, head, sizeof head - 1);
    return is_number(has_head ? node + sizeof head - 1 : node, rank);
}

/* Finds the only process that has named a service as its own. Returns whether there is exactly one. */
static int has_named(uint64_t port, uint64_t *rank) {
    int found = 0, file = open(getenv("NICETY_EXEC"), O_RDONLY | O_CLOEXEC);
    for (uint32_t each = 0; file >= 0 && each < nicety_shared->ranks; each++)
        if (service_of(file, each) == port) {
            *rank = each;
            found++;
        }
    if (file >= 0)
        close(file);
    return found == 1;
}

/* Finds the rank of a name. The name of a machine means the process that has named the service as its own, as a server
 * does. For programs, all processes are on this machine. Before processes take part in the simulation, time is that of
 * this machine. */
static int is_found(const char *node, const char *service, uint64_t *rank) {
    static const struct timespec span = {.tv_nsec = 1000000};
    uint64_t port;
    if (is_rank(node, rank))
        return *rank < nicety_shared->ranks ? 1 : REFUSE("the address of rank %s; there are %u ranks", node, nicety_shared->ranks);
    if (!service || !is_number(service, &port) || !port || port > UINT16_MAX)
        return REFUSE("the address of %s without a port; name a rank, such as %s:0", node, NAME);
    int others_go_on = nicety_leave(), is_there = 0;
    for (int looks = 0; looks < LOOKS && !(is_there = has_named(port, rank)) && !nicety_is_alone(); looks++)
        syscall(SYS_nanosleep, &span, NULL);
    if (others_go_on)
        nicety_return();
    return is_there ? 1 : REFUSE("the address of %s, port %s, which none or several processes have named as their own; name a rank, such as %s:0",
                                 node, service, NAME);
}

/* Finds the address of the other process, if the program has named one. Records the service that the program has named
 * as its own. */
static int are_addresses_met(const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
                             struct offer *offer) {
    uint64_t rank = UINT64_MAX;
    if (flags & FI_SOURCE) {
        if (node && is_rank(node, &rank) && rank != nicety_rank())
            return REFUSE("the address of rank %s as its own", node);
        uint64_t port;
        if (service && is_number(service, &port) && port && port <= UINT16_MAX)
            atomic_store(&nicety_slot->service, (uint32_t)port);
        return 1;
    }
    if (node && !is_found(node, service, &rank))
        return 0;
    if (!node && hints && hints->dest_addr && hints->dest_addrlen >= sizeof rank) {
        memcpy(&rank, hints->dest_addr, sizeof rank);
        if (rank >= nicety_shared->ranks)
            return REFUSE("an address that no process has");
    }
    *offer->peer = rank;
    offer->has_peer = rank != UINT64_MAX;
    return 1;
}

/* Returns the capabilities of an endpoint. These are the requested capabilities with those that they imply, or all
 * capabilities that the program can use. */
static uint64_t caps_for(uint32_t version, const struct fi_info *hints) {
    uint64_t caps = hints ? hints->caps : 0;
    if (!caps) {
        caps = caps_of_card();
        if (hints && !does(version, hints))
            caps &= ~(RMA_CAPS | FI_ATOMIC);
    }
    if (caps & (FI_MSG | FI_TAGGED) && !(caps & (FI_SEND | FI_RECV)))
        caps |= FI_SEND | FI_RECV;
    if (caps & (FI_RMA | FI_ATOMIC) && !(caps & RMA_CAPS & ~FI_RMA))
        caps |= RMA_CAPS & ~FI_RMA;
    return caps | FI_LOCAL_COMM | FI_REMOTE_COMM;
}

static void fill_endpoint(struct offer *offer, uint64_t caps, const struct fi_info *hints) {
    uint64_t both = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
    *offer->tx = (struct fi_tx_attr){
        .caps = caps & (both | FI_SEND | FI_READ | FI_WRITE),
        .op_flags = hints && hints->tx_attr ? hints->tx_attr->op_flags : 0,
        .msg_order = orders_of_card(),
        .inject_size = INJECT_SIZE,
        .size = hints && hints->tx_attr && hints->tx_attr->size ? hints->tx_attr->size : QUEUE,
        .iov_limit = MOST_PARTS,
        .rma_iov_limit = 1,
    };
    *offer->rx = (struct fi_rx_attr){
        .caps = caps & (both | FI_RECV | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_REMOTE_READ | FI_REMOTE_WRITE |
                        FI_RMA_EVENT),
        .op_flags = hints && hints->rx_attr ? hints->rx_attr->op_flags : 0,
        .msg_order = orders_of_card(),
        .size = hints && hints->rx_attr && hints->rx_attr->size ? hints->rx_attr->size : QUEUE,
        .iov_limit = 1,
    };
    size_t ordered = nicety_shared->card & CARD_ATOMIC ? MOST_BYTES : 0;
    *offer->ep = (struct fi_ep_attr){
        .type = FI_EP_RDM,
        .protocol = 0x80000000u,
        .protocol_version = 1,
        .max_msg_size = MOST_BYTES,
        .max_order_raw_size = ordered,
        .max_order_war_size = ordered,
        .max_order_waw_size = ordered,
        .mem_tag_format = TAG_FORMAT,
        .tx_ctx_cnt = 1,
        .rx_ctx_cnt = 1,
    };
}

static void fill_domain(struct offer *offer, uint32_t version, const struct fi_info *hints) {
    const struct fi_domain_attr *wanted = hints ? hints->domain_attr : NULL;
    *offer->domain = (struct fi_domain_attr){
        .name = offer->domain_name,
        .threading = wanted && wanted->threading ? wanted->threading : FI_THREAD_SAFE,
        .control_progress = wanted && wanted->control_progress ? wanted->control_progress : FI_PROGRESS_AUTO,
        .data_progress = wanted && wanted->data_progress ? wanted->data_progress : FI_PROGRESS_AUTO,
        .resource_mgmt = FI_RM_ENABLED,
        .av_type = wanted && wanted->av_type ? wanted->av_type : FI_AV_UNSPEC,
        .mr_mode = hints && !does(version, hints) ? 0 : mr_mode(version, hints),
        .mr_key_size = sizeof(uint64_t),
        .cq_data_size = sizeof(uint32_t),
        .cq_cnt = 16,
        .ep_cnt = 1,
        .tx_ctx_cnt = 1,
        .rx_ctx_cnt = 1,
        .max_ep_tx_ctx = 1,
        .max_ep_rx_ctx = 1,
        .cntr_cnt = 16,
        .mr_iov_limit = 1,
        .caps = FI_LOCAL_COMM | FI_REMOTE_COMM,
        .mr_cnt = QUEUE,
    };
}

int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
            struct fi_info **info) {
    if (!nicety_slot || (hints && !is_met(version, hints)))
        return -ENODATA;
    struct offer offer = {
        .info = calloc(1, sizeof *offer.info),
        .tx = calloc(1, sizeof *offer.tx),
        .rx = calloc(1, sizeof *offer.rx),
        .ep = calloc(1, sizeof *offer.ep),
        .domain = calloc(1, sizeof *offer.domain),
        .fabric = calloc(1, sizeof *offer.fabric),
        .address = calloc(1, sizeof *offer.address),
        .peer = calloc(1, sizeof *offer.peer),
        .domain_name = strdup(NAME),
        .fabric_name = strdup(NAME),
    };
    if (!offer.info || !offer.tx || !offer.rx || !offer.ep || !offer.domain || !offer.fabric || !offer.address ||
        !offer.peer || !offer.domain_name || !offer.fabric_name) {
        drop(&offer);
        return -ENOMEM;
    }
    if (!are_addresses_met(node, service, flags, hints, &offer)) {
        drop(&offer);
        return -ENODATA;
    }
    uint64_t caps = caps_for(version, hints);
    fill_endpoint(&offer, caps, hints);
    fill_domain(&offer, version, hints);
    *offer.fabric = (struct fi_fabric_attr){
        .name = offer.fabric_name, .prov_version = FI_VERSION(1, 0), .api_version = version};
    *offer.address = nicety_rank();
    *offer.info = (struct fi_info){
        .caps = caps,
        .addr_format = FI_FORMAT_UNSPEC,
        .src_addrlen = sizeof(uint64_t),
        .src_addr = offer.address,
        .dest_addrlen = offer.has_peer ? sizeof(uint64_t) : 0,
        .dest_addr = offer.has_peer ? offer.peer : NULL,
        .tx_attr = offer.tx,
        .rx_attr = offer.rx,
        .ep_attr = offer.ep,
        .domain_attr = offer.domain,
        .fabric_attr = offer.fabric,
    };
    if (!offer.has_peer)
        free(offer.peer);
    *info = offer.info;
    return 0;
}
