/* Endpoints, domain and fabric. */

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

struct endpoint *own_endpoint;

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
        return bind_counter(endpoint, other, flags);
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
        return register_early();
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
    own_endpoint = NULL;
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
    own_endpoint = endpoint;
    endpoint->has_events = (info->caps & FI_RMA_EVENT) != 0;
    endpoint->send_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
    endpoint->receive_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
    endpoint->min_multi_recv = 1;
    endpoint->ep = (struct fid_ep){
        .fid = {FI_CLASS_EP, context, &endpoint_fid_ops},
        .ops = &endpoint_ops,
        .cm = &name_ops,
        .msg = &plain_message_ops,
        .rma = &rma_ops,
        .tagged = &tagged_ops,
        .atomic = &atomic_ops,
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

/* ---- domain and fabric ---- */

static int no_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context) {
    (void)domain, (void)info, (void)ep, (void)context;
    return -ENOSYS;
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
    .query_atomic = query_atomic,
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
