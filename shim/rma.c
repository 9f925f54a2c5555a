/* Writes and reads of registered memory. */

#include "provider.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t access_flags(const struct endpoint *endpoint, uint64_t flags) {
    uint32_t call = flags & FI_REMOTE_CQ_DATA ? FLAG_DATA : 0;
    call |= flags & FI_INJECT ? FLAG_COPY : 0;
    if (flags & FI_INJECT_COMPLETE && !(flags & (FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)))
        call |= FLAG_EARLY;
    if (!endpoint->selective_sends || flags & FI_COMPLETION)
        call |= FLAG_COMPLETION;
    return call;
}

int check_access(const struct endpoint *endpoint, fi_addr_t peer, uint64_t key, uint32_t rights, uint64_t *rank) {
    if (!endpoint->enabled || !(nicety_shared->card & CARD_RMA))
        return -EOPNOTSUPP;
    if (nicety_shared->card & CARD_ADDRESSES && (key & rights) != rights)
        return -EACCES;
    int error = rank_of(endpoint, peer, rank);
    return error ? error : has_room(endpoint, CALL_WRITE) ? 0 : -EAGAIN;
}

static ssize_t write_parts(struct fid_ep *ep, const struct iovec *parts, size_t count, fi_addr_t peer, uint64_t address,
                           uint64_t key, uint64_t data, uint32_t flags, void *context) {
    struct endpoint *endpoint = (struct endpoint *)ep;
    const void *bytes;
    size_t length;
    void *copy;
    uint64_t rank;
    int error = check_access(endpoint, peer, key, RIGHT_WRITE, &rank);
    if (!error)
        error = gather(parts, count, &bytes, &length, &copy);
    if (error)
        return error;
    uint64_t args[] = {(uintptr_t)bytes, length, rank, key, address, data, (uintptr_t)context};
    if (copy)
        return nicety_post_freed(CALL_WRITE, flags | FLAG_COPY, args, 7, copy);
    if (!(flags & FLAG_COPY))
        return nicety_post(CALL_WRITE, flags, args, 7, 0);
    return length > INJECT_SIZE ? -EMSGSIZE : nicety_post(CALL_WRITE, flags, args, 7, length);
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags) {
    size_t length = 0;
    for (size_t i = 0; i < msg->iov_count; i++)
        length += msg->msg_iov[i].iov_len;
    if (msg->rma_iov_count != 1 || msg->rma_iov->len != length)
        return -EINVAL;
    return write_parts(ep, msg->msg_iov, msg->iov_count, msg->addr, msg->rma_iov->addr, msg->rma_iov->key, msg->data,
                       access_flags((struct endpoint *)ep, flags), msg->context);
}

static ssize_t rma_writev(struct fid_ep *ep, const struct iovec *parts, void **desc, size_t count, fi_addr_t peer,
                          uint64_t address, uint64_t key, void *context) {
    (void)desc;
    struct endpoint *endpoint = (struct endpoint *)ep;
    return write_parts(ep, parts, count, peer, address, key, 0, access_flags(endpoint, endpoint->send_flags), context);
}

static ssize_t rma_write(struct fid_ep *ep, const void *bytes, size_t length, void *desc, fi_addr_t peer, uint64_t address,
                         uint64_t key, void *context) {
    return rma_writev(ep, ONE(bytes, length), &desc, 1, peer, address, key, context);
}

static ssize_t rma_writedata(struct fid_ep *ep, const void *bytes, size_t length, void *desc, uint64_t data, fi_addr_t peer,
                             uint64_t address, uint64_t key, void *context) {
    (void)desc;
    struct endpoint *endpoint = (struct endpoint *)ep;
    return write_parts(ep, ONE(bytes, length), 1, peer, address, key, data,
                       access_flags(endpoint, endpoint->send_flags | FI_REMOTE_CQ_DATA), context);
}

static ssize_t rma_injectdata(struct fid_ep *ep, const void *bytes, size_t length, uint64_t data, fi_addr_t peer,
                              uint64_t address, uint64_t key) {
    return write_parts(ep, ONE(bytes, length), 1, peer, address, key, data, FLAG_COPY | FLAG_DATA, NULL);
}

static ssize_t rma_inject(struct fid_ep *ep, const void *bytes, size_t length, fi_addr_t peer, uint64_t address, uint64_t key) {
    return write_parts(ep, ONE(bytes, length), 1, peer, address, key, 0, FLAG_COPY, NULL);
}

static ssize_t read_parts(struct fid_ep *ep, const struct iovec *parts, size_t count, fi_addr_t peer, uint64_t address,
                          uint64_t key, uint64_t flags, void *context) {
    struct endpoint *endpoint = (struct endpoint *)ep;
    uint64_t rank;
    int error = check_access(endpoint, peer, key, RIGHT_READ, &rank);
    if (error)
        return error;
    uint32_t call = access_flags(endpoint, flags) & FLAG_COMPLETION;
    const struct iovec none = {0};
    if (count <= 1) {
        parts = count ? parts : &none;
        uint64_t args[] = {(uintptr_t)parts->iov_base, parts->iov_len, rank, key, address, 0, (uintptr_t)context};
        return nicety_post(CALL_READ, call, args, 7, 0);
    }
    if (count > MOST_PARTS)
        return -EINVAL;
    struct iovec *copy = malloc(count * sizeof *copy);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, parts, count * sizeof *copy);
    uint64_t args[] = {(uintptr_t)copy, count, rank, key, address, 0, (uintptr_t)context};
    return nicety_post_freed(CALL_READ, call | FLAG_PARTS, args, 7, copy);
}

static ssize_t rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags) {
    size_t length = 0;
    for (size_t i = 0; i < msg->iov_count; i++)
        length += msg->msg_iov[i].iov_len;
    if (msg->rma_iov_count != 1 || msg->rma_iov->len != length)
        return -EINVAL;
    return read_parts(ep, msg->msg_iov, msg->iov_count, msg->addr, msg->rma_iov->addr, msg->rma_iov->key, flags, msg->context);
}

static ssize_t rma_readv(struct fid_ep *ep, const struct iovec *parts, void **desc, size_t count, fi_addr_t peer,
                         uint64_t address, uint64_t key, void *context) {
    (void)desc;
    return read_parts(ep, parts, count, peer, address, key, ((struct endpoint *)ep)->send_flags, context);
}

static ssize_t rma_read(struct fid_ep *ep, void *bytes, size_t length, void *desc, fi_addr_t peer, uint64_t address,
                        uint64_t key, void *context) {
    return rma_readv(ep, ONE(bytes, length), &desc, 1, peer, address, key, context);
}

struct fi_ops_rma rma_ops = {
    .size = sizeof(struct fi_ops_rma),
    .read = rma_read,
    .readv = rma_readv,
    .readmsg = rma_readmsg,
    .write = rma_write,
    .writev = rma_writev,
    .writemsg = rma_writemsg,
    .inject = rma_inject,
    .writedata = rma_writedata,
    .injectdata = rma_injectdata,
};
