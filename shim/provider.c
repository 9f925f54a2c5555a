/* Endpoints, domain and fabric. */

#include "provider.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int free_fid(struct fid *fid) {
    free(fid);
    return 0;
}

struct fi_ops plain_ops = FID_OPS(free_fid, no_bind, no_control);

int is_wait_known(const char *what, int object) {
    static const char *const names[] = {
        [FI_WAIT_SET] = "FI_WAIT_SET",
        [FI_WAIT_FD] = "FI_WAIT_FD",
        [FI_WAIT_MUTEX_COND] = "FI_WAIT_MUTEX_COND",
        [FI_WAIT_POLLFD] = "FI_WAIT_POLLFD",
    };
    if (object == FI_WAIT_NONE || object == FI_WAIT_UNSPEC || object == FI_WAIT_YIELD)
        return 1;
    int is_named = object > 0 && object < (int)(sizeof names / sizeof *names) && names[object];
    fprintf(stderr, "nicety: rank %u: %s has no wait object %s, since simulated arrivals are not events of this system; use FI_WAIT_UNSPEC\n",
            nicety_rank(), what, is_named ? names[object] : "of that number");
    return 0;
}

/* ---- endpoints ---- */

struct endpoint *own_endpoint;

static ssize_t endpoint_cancel(struct fid *fid, void *context) {
    (void)fid;
    uint64_t args[] = {(uintptr_t)context};
    return nicety_post(CALL_CANCEL, 0, args, 1, 0);
}

/* Returns the maximum of an option that limits bytes, or 0 for another option. */
static size_t most_of(int name) {
    switch (name) {
    case FI_OPT_MAX_MSG_SIZE:
    case FI_OPT_MAX_TAGGED_SIZE:
        return MOST_BYTES;
    case FI_OPT_MAX_RMA_SIZE:
        return nicety_shared->card & CARD_RMA ? MOST_BYTES : 0;
    case FI_OPT_MAX_ATOMIC_SIZE:
        return nicety_shared->atomic_bytes;
    case FI_OPT_INJECT_MSG_SIZE:
    case FI_OPT_INJECT_TAGGED_SIZE:
        return INJECT_SIZE;
    case FI_OPT_INJECT_RMA_SIZE:
        return nicety_shared->card & CARD_RMA ? INJECT_SIZE : 0;
    case FI_OPT_INJECT_ATOMIC_SIZE:
        return nicety_shared->card & CARD_ATOMIC ? INJECT_SIZE : 0;
    default:
        return 0;
    }
}

static int endpoint_getopt(struct fid *fid, int level, int name, void *value, size_t *bytes) {
    struct endpoint *endpoint = (struct endpoint *)fid;
    size_t found = name == FI_OPT_MIN_MULTI_RECV ? endpoint->min_multi_recv : most_of(name);
    if (level || !found || *bytes < sizeof found)
        return -ENOPROTOOPT;
    memcpy(value, &found, sizeof found);
    *bytes = sizeof found;
    return 0;
}

/* A limit may be lowered. This has no effect, because the program itself observes the limit. */
static int endpoint_setopt(struct fid *fid, int level, int name, const void *value, size_t bytes) {
    struct endpoint *endpoint = (struct endpoint *)fid;
    size_t most = most_of(name), wanted;
    if (level || bytes < sizeof wanted || (name != FI_OPT_MIN_MULTI_RECV && !most))
        return -ENOPROTOOPT;
    memcpy(&wanted, value, sizeof wanted);
    if (name == FI_OPT_MIN_MULTI_RECV)
        endpoint->min_multi_recv = wanted;
    return name == FI_OPT_MIN_MULTI_RECV || wanted <= most ? 0 : -EINVAL;
}

static ssize_t endpoint_room_to_send(struct fid_ep *ep) {
    nicety_catch_up();
    size_t most = ((struct endpoint *)ep)->most_sends, own = nicety_slot->sending;
    return (ssize_t)(own < most ? most - own : 0);
}

static ssize_t endpoint_room_to_receive(struct fid_ep *ep) {
    nicety_catch_up();
    size_t most = ((struct endpoint *)ep)->most_receives, own = nicety_slot->receiving;
    return (ssize_t)(own < most ? most - own : 0);
}

/* If there is no room, operations may end before the next reply. A look lets time advance, so that a program can try
 * again. */
int has_room(const struct endpoint *endpoint, uint32_t call) {
    int receives = call == CALL_RECV;
    const uint32_t *own = receives ? &nicety_slot->receiving : &nicety_slot->sending;
    size_t most = receives ? endpoint->most_receives : endpoint->most_sends;
    if (*own >= most)
        nicety_catch_up();
    if (*own >= most) {
        uint64_t none[] = {0, 0, 0};
        nicety_call(CALL_POLL, 0, none, 3);
    }
    return *own < most;
}

static struct fi_ops_ep endpoint_ops = {
    .size = sizeof(struct fi_ops_ep),
    .cancel = endpoint_cancel,
    .getopt = endpoint_getopt,
    .setopt = endpoint_setopt,
    .tx_ctx = no_tx_context,
    .rx_ctx = no_rx_context,
    .rx_size_left = endpoint_room_to_receive,
    .tx_size_left = endpoint_room_to_send,
};

static int endpoint_getname(struct fid *fid, void *address, size_t *bytes) {
    (void)fid;
    uint64_t rank = nicety_rank();
    size_t room = *bytes;
    *bytes = sizeof rank;
    memcpy(address, &rank, room < sizeof rank ? room : sizeof rank);
    return room < sizeof rank ? -257 /* FI_ETOOSMALL */ : 0;
}

static struct fi_ops_cm name_ops = {
    .size = sizeof(struct fi_ops_cm),
    .setname = no_setname,
    .getname = endpoint_getname,
    .getpeer = no_getpeer,
    .connect = no_connect,
    .listen = no_listen,
    .accept = no_accept,
    .reject = no_reject,
    .shutdown = no_shutdown,
    .join = no_join,
};

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
        return 0;
    case FI_CLASS_EQ:
        return 0;
    case FI_CLASS_CNTR:
        endpoint->counted |= flags;
        return bind_counter(endpoint, other, flags);
    default:
        return -ENOSYS;
    }
}

static int is_told_of(const struct queue *queue, uint64_t counted) {
    return queue || counted;
}

static int endpoint_control(struct fid *fid, int command, void *value) {
    struct endpoint *endpoint = (struct endpoint *)fid;
    switch (command) {
    case FI_ENABLE:
        if (!endpoint->table)
            return -FI_ENOAV;
        /* The program must be able to learn of the end of operations of each side. */
        if (!is_told_of(endpoint->sends, endpoint->counted & (FI_SEND | FI_READ | FI_WRITE)) ||
            !is_told_of(endpoint->receives, endpoint->counted & (FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE)))
            return -FI_ENOCQ;
        endpoint->enabled = 1;
        /* A side without a queue needs no completions by default. */
        endpoint->selective_sends |= !endpoint->sends;
        endpoint->selective_receives |= !endpoint->receives;
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
    endpoint->is_directed = (info->caps & FI_DIRECTED_RECV) != 0;
    endpoint->send_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
    endpoint->receive_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
    endpoint->min_multi_recv = 1;
    endpoint->most_sends = info->tx_attr && info->tx_attr->size ? info->tx_attr->size : QUEUE;
    endpoint->most_receives = info->rx_attr && info->rx_attr->size ? info->rx_attr->size : QUEUE;
    endpoint->ep = (struct fid_ep){
        .fid = {FI_CLASS_EP, context, &endpoint_fid_ops},
        .ops = &endpoint_ops,
        .cm = &name_ops,
        .msg = &plain_message_ops,
        .rma = &rma_ops,
        .tagged = &tagged_ops,
        .atomic = &atomic_ops,
        .collective = &collective_ops,
    };
    *ep = &endpoint->ep;
    return 0;
}

/* ---- event queues, which have no events ---- */

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

static const char *events_strerror(struct fid_eq *eq, int error, const void *data, char *text, size_t bytes) {
    (void)eq, (void)data;
    if (text && bytes)
        snprintf(text, bytes, "%s", strerror(error));
    return strerror(error);
}

static struct fi_ops_eq events_ops = {
    .size = sizeof(struct fi_ops_eq),
    .read = events_read,
    .readerr = events_readerr,
    .write = no_event,
    .sread = events_sread,
    .strerror = events_strerror,
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
    .poll_open = no_poll,
    .stx_ctx = no_shared_sends,
    .srx_ctx = no_shared_receives,
    .query_atomic = query_atomic,
    .query_collective = no_query_collective,
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

static struct fi_ops_fabric fabric_ops = {
    .size = sizeof(struct fi_ops_fabric),
    .domain = open_domain,
    .passive_ep = no_passive,
    .wait_open = no_wait,
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
    /* libfabric 1.17 also accepts this version. */
    .fi_version = FI_VERSION(2, 5),
    .name = NAME,
    .getinfo = getinfo,
    .fabric = open_fabric,
    .cleanup = cleanup,
};

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void) {
    return &provider;
}
