/* What libfabric is told of: it depends on the card, and on what the program asks for. */

#include "provider.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* libfabric frees all of it, one by one. */
struct offer {
    struct fi_info *info;
    struct fi_tx_attr *tx;
    struct fi_rx_attr *rx;
    struct fi_ep_attr *ep;
    struct fi_domain_attr *domain;
    struct fi_fabric_attr *fabric;
    uint64_t *address;
    char *domain_name, *fabric_name;
};

static void drop(struct offer *offer) {
    free(offer->info), free(offer->tx), free(offer->rx), free(offer->ep), free(offer->domain), free(offer->fabric);
    free(offer->address), free(offer->domain_name), free(offer->fabric_name);
}

/* What the card does: FI_RMA_EVENT only where it is asked for, since then each access has an event. */
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

/* What a program has to do for registered memory, as it is written for this version. */
static int mr_mode(uint32_t version, const struct fi_info *hints) {
    static const int by_address = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    int asked = hints && hints->domain_attr ? hints->domain_attr->mr_mode : 0;
    if (!(nicety_shared->card & CARD_RMA))
        return 0;
    if (nicety_shared->card & CARD_ADDRESSES)
        return version < FI_VERSION(1, 5) || asked == FI_MR_BASIC ? FI_MR_BASIC : by_address;
    return version < FI_VERSION(1, 5) || asked == FI_MR_SCALABLE ? FI_MR_SCALABLE : 0;
}

/* Whether the program does that. */
static int does(uint32_t version, const struct fi_info *hints) {
    int asked = hints->domain_attr ? hints->domain_attr->mr_mode : 0, needed = mr_mode(version, hints);
    if (!hints->domain_attr)
        return 1;
    if (asked == FI_MR_BASIC || needed == FI_MR_BASIC || (version < FI_VERSION(1, 5) && asked))
        return asked == needed;
    return needed == FI_MR_SCALABLE || !(needed & ~asked);
}

static int is_met(uint32_t version, const struct fi_info *hints) {
    uint64_t own = caps_of_card(), orders = orders_of_card();
    if (nicety_shared->card & CARD_EVENTS)
        own |= FI_RMA_EVENT;
    if (hints->caps & ~own || (hints->caps & (FI_RMA | FI_ATOMIC) && !does(version, hints)))
        return 0;
    if (hints->ep_attr && hints->ep_attr->type != FI_EP_UNSPEC && hints->ep_attr->type != FI_EP_RDM)
        return 0;
    if (hints->domain_attr && hints->domain_attr->cq_data_size > sizeof(uint32_t))
        return 0;
    if (hints->tx_attr && (hints->tx_attr->inject_size > INJECT_SIZE || hints->tx_attr->msg_order & ~orders))
        return 0;
    if (hints->rx_attr && hints->rx_attr->msg_order & ~orders)
        return 0;
    const struct fi_fabric_attr *fabric = hints->fabric_attr;
    return !fabric || ((!fabric->name || !strcmp(fabric->name, NAME)) &&
                       (!fabric->prov_name || !strcmp(fabric->prov_name, NAME)));
}

/* The capabilities of an endpoint: those that were asked for, with what each implies, or all that the program can use. */
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
        .size = QUEUE,
        .iov_limit = MOST_PARTS,
        .rma_iov_limit = 1,
    };
    *offer->rx = (struct fi_rx_attr){
        .caps = caps & (both | FI_RECV | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_REMOTE_READ | FI_REMOTE_WRITE |
                        FI_RMA_EVENT),
        .op_flags = hints && hints->rx_attr ? hints->rx_attr->op_flags : 0,
        .msg_order = orders_of_card(),
        .size = QUEUE,
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
    (void)node, (void)service, (void)flags;
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
        .domain_name = strdup(NAME),
        .fabric_name = strdup(NAME),
    };
    if (!offer.info || !offer.tx || !offer.rx || !offer.ep || !offer.domain || !offer.fabric || !offer.address ||
        !offer.domain_name || !offer.fabric_name) {
        drop(&offer);
        return -ENOMEM;
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
        .tx_attr = offer.tx,
        .rx_attr = offer.rx,
        .ep_attr = offer.ep,
        .domain_attr = offer.domain,
        .fabric_attr = offer.fabric,
    };
    *info = offer.info;
    return 0;
}
