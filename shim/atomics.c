/* Atomic operations on registered memory. They are the operations of Portals, under libfabric's names. */

#include "provider.h"

#include <errno.h>

/* Returns the bytes of an item, or 0 for a type that cards do not have. */
static size_t item_bytes(int type) {
    static const size_t bytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16};
    return type < 0 || type > FI_DOUBLE_COMPLEX ? 0 : bytes[type];
}

static int is_integer(int type) {
    return type < FI_DOUBLE - 1;
}

static int is_complex(int type) {
    return type == FI_FLOAT_COMPLEX || type == FI_DOUBLE_COMPLEX;
}

/* Returns whether cards have this operation for items of a type. */
static int is_done(int kind, int type, int op) {
    enum { MIN, MAX, SUM, PROD, CSWAP_NE = FI_CSWAP + 1 };
    if (!item_bytes(type))
        return 0;
    switch (kind) {
    case ATOMIC_COMPARE:
        if (op < FI_CSWAP || op > FI_MSWAP)
            return 0;
        return op <= CSWAP_NE || (op == FI_MSWAP ? is_integer(type) : !is_complex(type));
    case ATOMIC_PLAIN:
        if (op == FI_ATOMIC_READ)
            return 0;
        /* fall through */
    default:
        if (op < MIN || op > FI_ATOMIC_WRITE)
            return 0;
        return op <= MAX ? !is_complex(type) : op <= PROD || op > FI_BXOR || is_integer(type);
    }
}

/* Returns the maximum number of items of one operation, or 0 if the operation is not supported. */
static size_t most_items(int kind, int type, int op) {
    if (!nicety_shared || !(nicety_shared->card & CARD_ATOMIC) || !is_done(kind, type, op))
        return 0;
    if (kind == ATOMIC_COMPARE)
        return 1;
    /* A write is a swap without a result. */
    int has_result = kind == ATOMIC_FETCH || op == FI_ATOMIC_WRITE;
    return (has_result ? nicety_shared->fetch_bytes : nicety_shared->atomic_bytes) / item_bytes(type);
}

int query_atomic(struct fid_domain *domain, int type, int op, struct fi_atomic_attr *attr, uint64_t flags) {
    (void)domain;
    int kind = flags & FI_COMPARE_ATOMIC ? ATOMIC_COMPARE : flags & FI_FETCH_ATOMIC ? ATOMIC_FETCH : ATOMIC_PLAIN;
    size_t most = flags & FI_TAGGED ? 0 : most_items(kind, type, op);
    if (!most)
        return -EOPNOTSUPP;
    *attr = (struct fi_atomic_attr){most, item_bytes(type)};
    return 0;
}

static int valid(int kind, int type, int op, size_t *count) {
    *count = most_items(kind, type, op);
    return *count ? 0 : -EOPNOTSUPP;
}

static int atomic_writevalid(struct fid_ep *ep, int type, int op, size_t *count) {
    (void)ep;
    return valid(ATOMIC_PLAIN, type, op, count);
}

static int atomic_readwritevalid(struct fid_ep *ep, int type, int op, size_t *count) {
    (void)ep;
    return valid(ATOMIC_FETCH, type, op, count);
}

static int atomic_compwritevalid(struct fid_ep *ep, int type, int op, size_t *count) {
    (void)ep;
    return valid(ATOMIC_COMPARE, type, op, count);
}

struct operation {
    int kind, type, op;
    const void *items;
    size_t count;
    const void *compared;
    void *result;
    fi_addr_t peer;
    uint64_t address, key;
    void *context;
    uint32_t flags;
};

static ssize_t operate(struct fid_ep *ep, const struct operation *of) {
    struct endpoint *endpoint = (struct endpoint *)ep;
    uint64_t rank;
    uint32_t rights = (of->op != FI_ATOMIC_READ ? RIGHT_WRITE : 0) | (of->kind != ATOMIC_PLAIN ? RIGHT_READ : 0);
    int error = check_access(endpoint, of->peer, of->key, rights, &rank);
    if (error)
        return error;
    size_t most = most_items(of->kind, of->type, of->op), bytes = of->count * item_bytes(of->type);
    if (!most)
        return -EOPNOTSUPP;
    if (!of->count || of->count > most)
        return -EINVAL;
    uint64_t what = (uint64_t)of->kind << 16 | (uint64_t)of->type << 8 | (uint64_t)of->op;
    uint64_t args[] = {(uintptr_t)of->items, bytes, rank, of->key, of->address, 0, (uintptr_t)of->context, what,
                       (uintptr_t)of->result, (uintptr_t)of->compared};
    if (of->flags & FLAG_COPY && bytes > INJECT_SIZE)
        return -EMSGSIZE;
    return nicety_post(CALL_ATOMIC, of->flags, args, 10, of->flags & FLAG_COPY && of->items ? bytes : 0);
}

static uint32_t default_flags(struct fid_ep *ep) {
    struct endpoint *endpoint = (struct endpoint *)ep;
    return access_flags(endpoint, endpoint->send_flags);
}

/* The items of an operation must be contiguous. The iov_limit in tx_attr is the limit for messages, and fi_query_atomic
 * has no limit. */
static int is_one(size_t count) {
    return count == 1;
}

static ssize_t atomic_write(struct fid_ep *ep, const void *items, size_t count, void *desc, fi_addr_t peer, uint64_t address,
                            uint64_t key, int type, int op, void *context) {
    (void)desc;
    return operate(ep, &(struct operation){ATOMIC_PLAIN, type, op, items, count, NULL, NULL, peer, address, key, context,
                                           default_flags(ep)});
}

static ssize_t atomic_writev(struct fid_ep *ep, const struct fi_ioc *parts, void **desc, size_t count, fi_addr_t peer,
                             uint64_t address, uint64_t key, int type, int op, void *context) {
    if (!is_one(count))
        return -EINVAL;
    return atomic_write(ep, parts->addr, parts->count, desc, peer, address, key, type, op, context);
}

static ssize_t atomic_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags) {
    if (!is_one(msg->iov_count) || !is_one(msg->rma_iov_count) || msg->rma_iov->count != msg->msg_iov->count)
        return -EINVAL;
    return operate(ep, &(struct operation){ATOMIC_PLAIN, msg->datatype, msg->op, msg->msg_iov->addr, msg->msg_iov->count, NULL,
                                           NULL, msg->addr, msg->rma_iov->addr, msg->rma_iov->key, msg->context,
                                           access_flags((struct endpoint *)ep, flags)});
}

static ssize_t atomic_inject(struct fid_ep *ep, const void *items, size_t count, fi_addr_t peer, uint64_t address,
                             uint64_t key, int type, int op) {
    return operate(ep, &(struct operation){ATOMIC_PLAIN, type, op, items, count, NULL, NULL, peer, address, key, NULL,
                                           FLAG_COPY});
}

static ssize_t atomic_readwrite(struct fid_ep *ep, const void *items, size_t count, void *desc, void *result,
                                void *result_desc, fi_addr_t peer, uint64_t address, uint64_t key, int type, int op,
                                void *context) {
    (void)desc, (void)result_desc;
    return operate(ep, &(struct operation){ATOMIC_FETCH, type, op, items, count, NULL, result, peer, address, key, context,
                                           default_flags(ep)});
}

static ssize_t atomic_readwritev(struct fid_ep *ep, const struct fi_ioc *parts, void **desc, size_t count,
                                 struct fi_ioc *results, void **result_desc, size_t result_count, fi_addr_t peer,
                                 uint64_t address, uint64_t key, int type, int op, void *context) {
    int has_items = op != FI_ATOMIC_READ;
    if (!is_one(result_count) || (has_items && (!is_one(count) || parts->count != results->count)))
        return -EINVAL;
    return atomic_readwrite(ep, has_items ? parts->addr : NULL, results->count, desc, results->addr, result_desc, peer, address,
                            key, type, op, context);
}

static ssize_t atomic_readwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, struct fi_ioc *results,
                                   void **result_desc, size_t result_count, uint64_t flags) {
    (void)result_desc;
    int has_items = msg->op != FI_ATOMIC_READ;
    if (!is_one(result_count) || !is_one(msg->rma_iov_count) || msg->rma_iov->count != results->count ||
        (has_items && (!is_one(msg->iov_count) || msg->msg_iov->count != results->count)))
        return -EINVAL;
    return operate(ep, &(struct operation){ATOMIC_FETCH, msg->datatype, msg->op, has_items ? msg->msg_iov->addr : NULL,
                                           results->count, NULL, results->addr, msg->addr, msg->rma_iov->addr,
                                           msg->rma_iov->key, msg->context, access_flags((struct endpoint *)ep, flags)});
}

static ssize_t atomic_compwrite(struct fid_ep *ep, const void *items, size_t count, void *desc, const void *compared,
                                void *compared_desc, void *result, void *result_desc, fi_addr_t peer, uint64_t address,
                                uint64_t key, int type, int op, void *context) {
    (void)desc, (void)compared_desc, (void)result_desc;
    return operate(ep, &(struct operation){ATOMIC_COMPARE, type, op, items, count, compared, result, peer, address, key,
                                           context, default_flags(ep)});
}

static ssize_t atomic_compwritev(struct fid_ep *ep, const struct fi_ioc *parts, void **desc, size_t count,
                                 const struct fi_ioc *compared, void **compared_desc, size_t compared_count,
                                 struct fi_ioc *results, void **result_desc, size_t result_count, fi_addr_t peer,
                                 uint64_t address, uint64_t key, int type, int op, void *context) {
    (void)compared_desc, (void)result_desc;
    if (!is_one(count) || !is_one(compared_count) || !is_one(result_count) || parts->count != results->count ||
        parts->count != compared->count)
        return -EINVAL;
    return atomic_compwrite(ep, parts->addr, parts->count, desc, compared->addr, NULL, results->addr, NULL, peer, address, key,
                            type, op, context);
}

static ssize_t atomic_compwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_ioc *compared,
                                   void **compared_desc, size_t compared_count, struct fi_ioc *results, void **result_desc,
                                   size_t result_count, uint64_t flags) {
    (void)compared_desc, (void)result_desc;
    if (!is_one(msg->iov_count) || !is_one(msg->rma_iov_count) || !is_one(compared_count) || !is_one(result_count) ||
        msg->msg_iov->count != results->count || msg->msg_iov->count != compared->count ||
        msg->msg_iov->count != msg->rma_iov->count)
        return -EINVAL;
    return operate(ep, &(struct operation){ATOMIC_COMPARE, msg->datatype, msg->op, msg->msg_iov->addr, msg->msg_iov->count,
                                           compared->addr, results->addr, msg->addr, msg->rma_iov->addr, msg->rma_iov->key,
                                           msg->context, access_flags((struct endpoint *)ep, flags)});
}

struct fi_ops_atomic atomic_ops = {
    .size = sizeof(struct fi_ops_atomic),
    .write = atomic_write,
    .writev = atomic_writev,
    .writemsg = atomic_writemsg,
    .inject = atomic_inject,
    .readwrite = atomic_readwrite,
    .readwritev = atomic_readwritev,
    .readwritemsg = atomic_readwritemsg,
    .compwrite = atomic_compwrite,
    .compwritev = atomic_compwritev,
    .compwritemsg = atomic_compwritemsg,
    .writevalid = atomic_writevalid,
    .readwritevalid = atomic_readwritevalid,
    .compwritevalid = atomic_compwritevalid,
};
