/* Endpoints, and what libfabric is told of them. */

#include "provider.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is not there ---- */

int no_bind(struct fid *fid, struct fid *other, uint64_t flags) {
    (void)fid, (void)other, (void)flags;
    return -ENOSYS;
}

int no_control(struct fid *fid, int command, void *value) {
    (void)fid, (void)command, (void)value;
    return -ENOSYS;
}

int no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context) {
    (void)fid, (void)name, (void)flags, (void)ops, (void)context;
    return -ENOSYS;
}

int no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context) {
    (void)fid, (void)name, (void)flags, (void)ops, (void)context;
    return -ENOSYS;
}

int no_tostr(const struct fid *fid, char *text, size_t bytes) {
    (void)fid, (void)text, (void)bytes;
    return -ENOSYS;
}

static int free_fid(struct fid *fid) {
    free(fid);
    return 0;
}


struct fi_ops plain_ops = FID_OPS(free_fid, no_bind, no_control);

/* ---- endpoints ---- */

static ssize_t endpoint_cancel(struct fid *fid, void *context) {
    (void)fid;
    uint64_t args[] = {(uintptr_t)context};
    return nicety_post(CALL_CANCEL, 0, args, 1, 0);
}

static int endpoint_getopt(struct fid *fid, int level, int name, void *value, size_t *bytes) {
    struct endpoint *endpoint = (struct endpoint *)fid;
    if (level || name != FI_OPT_MIN_MULTI_RECV || *bytes < sizeof(size_t))
        return -ENOPROTOOPT;
    *(size_t *)value = endpoint->min_multi_recv;
    *bytes = sizeof(size_t);
    return 0;
}

static int endpoint_setopt(struct fid *fid, int level, int name, const void *value, size_t bytes) {
    struct endpoint *endpoint = (struct endpoint *)fid;
    if (level || name != FI_OPT_MIN_MULTI_RECV || bytes < sizeof(size_t))
        return -ENOPROTOOPT;
    endpoint->min_multi_recv = *(const size_t *)value;
    return 0;
}

static ssize_t endpoint_room(struct fid_ep *ep) {
    (void)ep;
    return QUEUE;
}

static struct fi_ops_ep endpoint_ops = {
    .size = sizeof(struct fi_ops_ep),
    .cancel = endpoint_cancel,
    .getopt = endpoint_getopt,
    .setopt = endpoint_setopt,
    .rx_size_left = endpoint_room,
    .tx_size_left = endpoint_room,
};

static int endpoint_getname(struct fid *fid, void *address, size_t *bytes) {
    (void)fid;
    uint64_t rank = nicety_rank();
    size_t room = *bytes;
    *bytes = sizeof rank;
    memcpy(address, &rank, room < sizeof rank ? room : sizeof rank);
    return room < sizeof rank ? -257 /* FI_ETOOSMALL */ : 0;
}

static struct fi_ops_cm name_ops = {.size = sizeof(struct fi_ops_cm), .getname = endpoint_getname};

static int endpoint_bind(struct fid *fid, struct fid *other, uint64_t flags) {
    struct endpoint *endpoint = (struct endpoint *)fid;
    switch (other->fclass) {
    case FI_CLASS_AV:
        own_table = endpoint->table = (struct table *)other;
        return 0;
    case FI_CLASS_CQ:
        if (flags & FI_SEND) {
            endpoint->sends = (struct queue *)other;
            endpoint->selective_sends = (flags & FI_SELECTIVE_COMPLETION) != 0;
        }
        if (flags & FI_RECV) {
            endpoint->receives = (struct queue *)other;
            endpoint->selective_receives = (flags & FI_SELECTIVE_COMPLETION) != 0;
        }
        return endpoint->sends && endpoint->receives && endpoint->sends != endpoint->receives ? -ENOSYS : 0;
    case FI_CLASS_EQ:
        return 0;
    case FI_CLASS_CNTR:
        return flags & (FI_SEND | FI_RECV) ? -ENOSYS : 0;
    default:
        return -ENOSYS;
    }
}

static int endpoint_control(struct fid *fid, int command, void *value) {
    struct endpoint *endpoint = (struct endpoint *)fid;
    switch (command) {
    case FI_ENABLE:
        if (!endpoint->table || !endpoint->sends || !endpoint->receives)
            return -EINVAL;
        endpoint->enabled = 1;
        return 0;
    case FI_GETOPSFLAG:
        *(uint64_t *)value = endpoint->send_flags;
        return 0;
    case FI_SETOPSFLAG: {
        uint64_t flags = *(uint64_t *)value;
        if (flags & FI_SEND)
            endpoint->send_flags = flags & ~(FI_SEND | FI_RECV);
        if (flags & FI_RECV)
            endpoint->receive_flags = flags & ~(FI_SEND | FI_RECV);
        return 0;
    }
    default:
        return -ENOSYS;
    }
}

static int endpoint_close(struct fid *fid) {
    struct endpoint *endpoint = (struct endpoint *)fid;
    if (endpoint->enabled && nicety_attached()) {
        nicety_call(CALL_END, 0, NULL, 0);
        nicety_slot->ended = 1;
    }
    free(endpoint);
    return 0;
}

static struct fi_ops endpoint_fid_ops = FID_OPS(endpoint_close, endpoint_bind, endpoint_control);

static int open_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context) {
    (void)domain;
    static int opened;
    int error = opened ? EBUSY : nicety_attach();
    if (error)
        return -error;
    struct endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint)
        return -ENOMEM;
    opened = 1;
    endpoint->send_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
    endpoint->receive_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
    endpoint->min_multi_recv = 1;
    endpoint->ep = (struct fid_ep){
        .fid = {FI_CLASS_EP, context, &endpoint_fid_ops},
        .ops = &endpoint_ops,
        .cm = &name_ops,
        .msg = &plain_message_ops,
        .tagged = &tagged_ops,
    };
    *ep = &endpoint->ep;
    return 0;
}

/* ---- event queues, on which nothing comes ---- */

static ssize_t events_read(struct fid_eq *eq, uint32_t *event, void *into, size_t bytes, uint64_t flags) {
    (void)eq, (void)event, (void)into, (void)bytes, (void)flags;
    return -EAGAIN;
}

static ssize_t events_readerr(struct fid_eq *eq, struct fi_eq_err_entry *entry, uint64_t flags) {
    (void)eq, (void)entry, (void)flags;
    return -EAGAIN;
}

static ssize_t events_sread(struct fid_eq *eq, uint32_t *event, void *into, size_t bytes, int ms, uint64_t flags) {
    (void)ms;
    return events_read(eq, event, into, bytes, flags);
}

static struct fi_ops_eq events_ops = {
    .size = sizeof(struct fi_ops_eq),
    .read = events_read,
    .readerr = events_readerr,
    .sread = events_sread,
};

static int open_events(struct fid_fabric *fabric, void *attr, struct fid_eq **eq, void *context) {
    (void)fabric, (void)attr;
    *eq = calloc(1, sizeof **eq);
    if (!*eq)
        return -ENOMEM;
    **eq = (struct fid_eq){.fid = {FI_CLASS_EQ, context, &plain_ops}, .ops = &events_ops};
    return 0;
}

/* ---- counters, which count what there is not: reads and writes of remote memory ---- */

struct counter {
    struct fid_cntr cntr;
    uint64_t value, errors;
};

static uint64_t counter_read(struct fid_cntr *cntr) {
    return ((struct counter *)cntr)->value;
}

static uint64_t counter_readerr(struct fid_cntr *cntr) {
    return ((struct counter *)cntr)->errors;
}

static int counter_set(struct fid_cntr *cntr, uint64_t value) {
    ((struct counter *)cntr)->value = value;
    return 0;
}

static int counter_add(struct fid_cntr *cntr, uint64_t value) {
    return counter_set(cntr, counter_read(cntr) + value);
}

static int counter_seterr(struct fid_cntr *cntr, uint64_t value) {
    ((struct counter *)cntr)->errors = value;
    return 0;
}

static int counter_adderr(struct fid_cntr *cntr, uint64_t value) {
    return counter_seterr(cntr, counter_readerr(cntr) + value);
}

static int counter_wait(struct fid_cntr *cntr, uint64_t threshold, int ms) {
    (void)ms;
    return counter_read(cntr) >= threshold ? 0 : -ETIMEDOUT;
}

static struct fi_ops_cntr counter_ops = {
    .size = sizeof(struct fi_ops_cntr),
    .read = counter_read,
    .readerr = counter_readerr,
    .add = counter_add,
    .set = counter_set,
    .wait = counter_wait,
    .adderr = counter_adderr,
    .seterr = counter_seterr,
};

static int open_counter(struct fid_domain *domain, void *attr, struct fid_cntr **cntr, void *context) {
    (void)domain, (void)attr;
    struct counter *counter = calloc(1, sizeof *counter);
    if (!counter)
        return -ENOMEM;
    counter->cntr = (struct fid_cntr){.fid = {FI_CLASS_CNTR, context, &plain_ops}, .ops = &counter_ops};
    *cntr = &counter->cntr;
    return 0;
}

/* ---- memory regions: the card takes any memory of a program ---- */

static int register_parts(struct fid *fid, const struct iovec *parts, size_t count, uint64_t access, uint64_t offset,
                          uint64_t key, uint64_t flags, struct fid_mr **mr, void *context) {
    (void)fid, (void)parts, (void)count, (void)access, (void)offset, (void)flags;
    *mr = calloc(1, sizeof **mr);
    if (!*mr)
        return -ENOMEM;
    **mr = (struct fid_mr){.fid = {FI_CLASS_MR, context, &plain_ops}, .key = key};
    return 0;
}

static int register_memory(struct fid *fid, const void *bytes, size_t length, uint64_t access, uint64_t offset,
                           uint64_t key, uint64_t flags, struct fid_mr **mr, void *context) {
    return register_parts(fid, ONE(bytes, length), 1, access, offset, key, flags, mr, context);
}

static int register_attr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr) {
    return register_parts(fid, attr->mr_iov, attr->iov_count, attr->access, attr->offset, attr->requested_key, flags, mr,
                          attr->context);
}

static struct fi_ops_mr memory_ops = {
    .size = sizeof(struct fi_ops_mr),
    .reg = register_memory,
    .regv = register_parts,
    .regattr = register_attr,
};

/* ---- domain and fabric ---- */

static int no_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context) {
    (void)domain, (void)info, (void)ep, (void)context;
    return -ENOSYS;
}

static int no_atomic(struct fid_domain *domain, int type, int op, void *attr, uint64_t flags) {
    (void)domain, (void)type, (void)op, (void)attr, (void)flags;
    return -EOPNOTSUPP;
}

static int open_endpoint2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, uint64_t flags,
                          void *context) {
    (void)flags;
    return open_endpoint(domain, info, ep, context);
}

static struct fi_ops_domain domain_ops = {
    .size = sizeof(struct fi_ops_domain),
    .av_open = open_table,
    .cq_open = open_queue,
    .endpoint = open_endpoint,
    .scalable_ep = no_endpoint,
    .cntr_open = open_counter,
    .query_atomic = no_atomic,
    .endpoint2 = open_endpoint2,
};

static int open_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context) {
    (void)fabric, (void)info;
    *domain = calloc(1, sizeof **domain);
    if (!*domain)
        return -ENOMEM;
    **domain = (struct fid_domain){
        .fid = {FI_CLASS_DOMAIN, context, &plain_ops}, .ops = &domain_ops, .mr = &memory_ops};
    return 0;
}

static int open_domain2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, uint64_t flags,
                        void *context) {
    (void)flags;
    return open_domain(fabric, info, domain, context);
}

static int no_trywait(struct fid_fabric *fabric, struct fid **fids, int count) {
    (void)fabric, (void)fids, (void)count;
    return -ENOSYS;
}

static struct fi_ops_fabric fabric_ops = {
    .size = sizeof(struct fi_ops_fabric),
    .domain = open_domain,
    .eq_open = open_events,
    .trywait = no_trywait,
    .domain2 = open_domain2,
};

static int open_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context) {
    if (attr->name && strcmp(attr->name, NAME))
        return -ENODATA;
    *fabric = calloc(1, sizeof **fabric);
    if (!*fabric)
        return -ENOMEM;
    **fabric = (struct fid_fabric){.fid = {FI_CLASS_FABRIC, context, &plain_ops}, .ops = &fabric_ops};
    return 0;
}

/* ---- what there is ---- */

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

static int is_met(const struct fi_info *hints) {
    uint64_t own = CAPS;
    if (hints->caps & ~own)
        return 0;
    if (hints->ep_attr && hints->ep_attr->type != FI_EP_UNSPEC && hints->ep_attr->type != FI_EP_RDM)
        return 0;
    if (hints->domain_attr && hints->domain_attr->cq_data_size > sizeof(uint32_t))
        return 0;
    if (hints->tx_attr && (hints->tx_attr->inject_size > INJECT_SIZE || hints->tx_attr->msg_order & ~FI_ORDER_SAS))
        return 0;
    if (hints->rx_attr && hints->rx_attr->msg_order & ~FI_ORDER_SAS)
        return 0;
    const struct fi_fabric_attr *fabric = hints->fabric_attr;
    return !fabric || ((!fabric->name || !strcmp(fabric->name, NAME)) &&
                       (!fabric->prov_name || !strcmp(fabric->prov_name, NAME)));
}

static int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
                   struct fi_info **info) {
    (void)node, (void)service, (void)flags;
    if (!nicety_slot || (hints && !is_met(hints)))
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
    uint64_t caps = hints && hints->caps ? hints->caps : CAPS;
    if (caps & (FI_MSG | FI_TAGGED) && !(caps & (FI_SEND | FI_RECV)))
        caps |= FI_SEND | FI_RECV;
    caps |= FI_LOCAL_COMM | FI_REMOTE_COMM;
    *offer.tx = (struct fi_tx_attr){
        .caps = caps & (FI_MSG | FI_TAGGED | FI_SEND),
        .op_flags = hints && hints->tx_attr ? hints->tx_attr->op_flags : 0,
        .msg_order = FI_ORDER_SAS,
        .inject_size = INJECT_SIZE,
        .size = QUEUE,
        .iov_limit = 8,
        .rma_iov_limit = 1,
    };
    *offer.rx = (struct fi_rx_attr){
        .caps = caps & (FI_MSG | FI_TAGGED | FI_RECV | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE),
        .op_flags = hints && hints->rx_attr ? hints->rx_attr->op_flags : 0,
        .msg_order = FI_ORDER_SAS,
        .size = QUEUE,
        .iov_limit = 1,
    };
    *offer.ep = (struct fi_ep_attr){
        .type = FI_EP_RDM,
        .protocol = 0x80000000u,
        .protocol_version = 1,
        .max_msg_size = MOST_BYTES,
        .mem_tag_format = TAG_FORMAT,
        .tx_ctx_cnt = 1,
        .rx_ctx_cnt = 1,
    };
    const struct fi_domain_attr *wanted = hints ? hints->domain_attr : NULL;
    *offer.domain = (struct fi_domain_attr){
        .name = offer.domain_name,
        .threading = wanted && wanted->threading ? wanted->threading : FI_THREAD_SAFE,
        .control_progress = wanted && wanted->control_progress ? wanted->control_progress : FI_PROGRESS_AUTO,
        .data_progress = wanted && wanted->data_progress ? wanted->data_progress : FI_PROGRESS_AUTO,
        .resource_mgmt = FI_RM_ENABLED,
        .av_type = wanted && wanted->av_type ? wanted->av_type : FI_AV_UNSPEC,
        .mr_mode = 0,
        .mr_key_size = sizeof(uint64_t),
        .cq_data_size = sizeof(uint32_t),
        .cq_cnt = 16,
        .ep_cnt = 1,
        .tx_ctx_cnt = 1,
        .rx_ctx_cnt = 1,
        .max_ep_tx_ctx = 1,
        .max_ep_rx_ctx = 1,
        .mr_iov_limit = 1,
        .caps = FI_LOCAL_COMM | FI_REMOTE_COMM,
        .mr_cnt = QUEUE,
    };
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

static void cleanup(void) {
}

static struct fi_provider provider = {
    .version = FI_VERSION(1, 0),
    /* What 1.17 takes, too. */
    .fi_version = FI_VERSION(2, 5),
    .name = NAME,
    .getinfo = getinfo,
    .fabric = open_fabric,
    .cleanup = cleanup,
};

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void) {
    return &provider;
}
