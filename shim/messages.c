/* Tagged and untagged messages. */

#include "provider.h"
#include "waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int gather(const struct iovec *parts, size_t count, const void **bytes, size_t *length, void **copy) {
    *copy = NULL;
    *length = 0;
    if (count <= 1) {
        *bytes = count ? parts->iov_base : NULL;
        *length = count ? parts->iov_len : 0;
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        *length += parts[i].iov_len;
    char *at = *copy = malloc(*length ? *length : 1);
    if (!at)
        return -ENOMEM;
    *bytes = at;
    for (size_t i = 0; i < count; i++) {
        memcpy(at, parts[i].iov_base, parts[i].iov_len);
        at += parts[i].iov_len;
    }
    return 0;
}

struct message {
    const struct iovec *parts;
    size_t count;
    fi_addr_t peer;
    uint64_t tag, ignore, data;
    void *context;
    uint32_t flags; /* flags of the call */
    int is_injected; /* whether the program may overwrite the bytes when the call returns */
};

static ssize_t send_message(struct endpoint *endpoint, const struct message *message) {
    const void *bytes;
    size_t length;
    void *copy;
    uint64_t rank;
    if (!endpoint->enabled)
        return -EOPNOTSUPP;
    int error = rank_of(endpoint, message->peer, &rank);
    if (!error && !has_room(endpoint, CALL_SEND))
        error = -EAGAIN;
    if (!error && message->tag & ~TAG_FORMAT)
        error = -EINVAL;
    if (!error)
        error = gather(message->parts, message->count, &bytes, &length, &copy);
    if (error)
        return error;
    uint64_t args[] = {(uintptr_t)bytes, length, rank, message->tag, message->data, (uintptr_t)message->context};
    if (copy)
        return nicety_post_freed(CALL_SEND, message->flags, args, 6, copy);
    if (message->is_injected && length > INJECT_SIZE)
        return -EMSGSIZE;
    return nicety_post(CALL_SEND, message->flags, args, 6, message->is_injected ? length : 0);
}

static ssize_t receive_message(struct endpoint *endpoint, const struct message *message, uint32_t call) {
    uint64_t rank = NICETY_ANY;
    if (!endpoint->enabled)
        return -EOPNOTSUPP;
    if (message->count > 1)
        return -EINVAL;
    /* Without FI_DIRECTED_RECV, the source of a receive has no effect. */
    if (endpoint->is_directed && message->peer != FI_ADDR_UNSPEC) {
        int error = rank_of(endpoint, message->peer, &rank);
        if (error)
            return error;
    }
    if (call == CALL_RECV && !(message->flags & FLAG_CLAIM) && !has_room(endpoint, call))
        return -EAGAIN;
    const struct iovec none = {0}, *part = message->count ? message->parts : &none;
    uint64_t args[] = {(uintptr_t)part->iov_base, part->iov_len, rank, message->tag & TAG_FORMAT,
                       message->ignore & TAG_FORMAT, (uintptr_t)message->context, endpoint->min_multi_recv};
    /* A claimed message has either arrived already or never arrives, so the call is not posted. */
    if (call == CALL_RECV && message->flags & FLAG_CLAIM)
        return (ssize_t)nicety_call(call, message->flags, args, 7);
    uint32_t repeats = call == CALL_PEEK && nicety_probes() ? FLAG_REPEATS : 0;
    return nicety_post(call, message->flags | repeats, args, 7, 0);
}

static uint32_t send_flags(const struct endpoint *endpoint, uint64_t flags) {
    uint32_t call = flags & FI_REMOTE_CQ_DATA ? FLAG_DATA : 0;
    if (!endpoint->selective_sends || flags & FI_COMPLETION)
        call |= FLAG_COMPLETION;
    return call;
}

static int is_injected(uint64_t flags) {
    return (flags & FI_INJECT) != 0;
}

static uint32_t receive_flags(const struct endpoint *endpoint, uint64_t flags) {
    uint32_t call = flags & FI_MULTI_RECV ? FLAG_MULTI : 0;
    if (!endpoint->selective_receives || flags & FI_COMPLETION)
        call |= FLAG_COMPLETION;
    return call;
}

static ssize_t tagged_sendv(struct fid_ep *ep, const struct iovec *parts, void **desc, size_t count, fi_addr_t peer,
                            uint64_t tag, void *context) {
    (void)desc;
    struct endpoint *endpoint = (struct endpoint *)ep;
    return send_message(endpoint, &(struct message){.parts = parts, .count = count, .peer = peer, .tag = tag,
                                                    .context = context,
                                                    .flags = send_flags(endpoint, endpoint->send_flags),
                                                    .is_injected = is_injected(endpoint->send_flags)});
}

static ssize_t tagged_send(struct fid_ep *ep, const void *bytes, size_t length, void *desc, fi_addr_t peer, uint64_t tag,
                           void *context) {
    return tagged_sendv(ep, ONE(bytes, length), &desc, 1, peer, tag, context);
}

static ssize_t tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags) {
    struct endpoint *endpoint = (struct endpoint *)ep;
    return send_message(endpoint, &(struct message){.parts = msg->msg_iov, .count = msg->iov_count, .peer = msg->addr,
                                                    .tag = msg->tag, .data = msg->data, .context = msg->context,
                                                    .flags = send_flags(endpoint, flags),
                                                    .is_injected = is_injected(flags)});
}

static ssize_t tagged_senddata(struct fid_ep *ep, const void *bytes, size_t length, void *desc, uint64_t data,
                               fi_addr_t peer, uint64_t tag, void *context) {
    (void)desc;
    struct endpoint *endpoint = (struct endpoint *)ep;
    return send_message(endpoint,
                        &(struct message){.parts = ONE(bytes, length), .count = 1, .peer = peer, .tag = tag, .data = data,
                                          .context = context,
                                          .flags = send_flags(endpoint, endpoint->send_flags) | FLAG_DATA,
                                          .is_injected = is_injected(endpoint->send_flags)});
}

static ssize_t tagged_inject(struct fid_ep *ep, const void *bytes, size_t length, fi_addr_t peer, uint64_t tag) {
    return send_message((struct endpoint *)ep, &(struct message){.parts = ONE(bytes, length), .count = 1, .peer = peer,
                                                                 .tag = tag, .flags = FLAG_INJECT, .is_injected = 1});
}

static ssize_t tagged_injectdata(struct fid_ep *ep, const void *bytes, size_t length, uint64_t data, fi_addr_t peer,
                                 uint64_t tag) {
    return send_message((struct endpoint *)ep,
                        &(struct message){.parts = ONE(bytes, length), .count = 1, .peer = peer, .tag = tag, .data = data,
                                          .flags = FLAG_INJECT | FLAG_DATA, .is_injected = 1});
}

static ssize_t tagged_recvv(struct fid_ep *ep, const struct iovec *parts, void **desc, size_t count, fi_addr_t peer,
                            uint64_t tag, uint64_t ignore, void *context) {
    (void)desc;
    struct endpoint *endpoint = (struct endpoint *)ep;
    return receive_message(endpoint,
                           &(struct message){.parts = parts, .count = count, .peer = peer, .tag = tag, .ignore = ignore,
                                             .context = context,
                                             .flags = receive_flags(endpoint, endpoint->receive_flags & ~FI_MULTI_RECV)},
                           CALL_RECV);
}

static ssize_t tagged_recv(struct fid_ep *ep, void *bytes, size_t length, void *desc, fi_addr_t peer, uint64_t tag,
                           uint64_t ignore, void *context) {
    return tagged_recvv(ep, ONE(bytes, length), &desc, 1, peer, tag, ignore, context);
}

static ssize_t tagged_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags) {
    struct endpoint *endpoint = (struct endpoint *)ep;
    struct message message = {.parts = msg->msg_iov, .count = msg->iov_count, .peer = msg->addr, .tag = msg->tag,
                              .ignore = msg->ignore, .context = msg->context,
                              .flags = receive_flags(endpoint, flags & ~FI_MULTI_RECV)};
    if (flags & FI_DISCARD && !(flags & (FI_PEEK | FI_CLAIM)))
        return -EINVAL;
    message.flags |= flags & FI_CLAIM ? FLAG_CLAIM : 0;
    message.flags |= flags & FI_DISCARD ? FLAG_DISCARD : 0;
    return receive_message(endpoint, &message, flags & FI_PEEK ? CALL_PEEK : CALL_RECV);
}

struct fi_ops_tagged tagged_ops = {
    .size = sizeof(struct fi_ops_tagged),
    .recv = tagged_recv,
    .recvv = tagged_recvv,
    .recvmsg = tagged_recvmsg,
    .send = tagged_send,
    .sendv = tagged_sendv,
    .sendmsg = tagged_sendmsg,
    .inject = tagged_inject,
    .senddata = tagged_senddata,
    .injectdata = tagged_injectdata,
};

static ssize_t plain_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags) {
    struct endpoint *endpoint = (struct endpoint *)ep;
    return send_message(endpoint,
                        &(struct message){.parts = msg->msg_iov, .count = msg->iov_count, .peer = msg->addr,
                                          .data = msg->data, .context = msg->context,
                                          .flags = send_flags(endpoint, flags) | FLAG_UNTAGGED,
                                          .is_injected = is_injected(flags)});
}

static ssize_t plain_sendv(struct fid_ep *ep, const struct iovec *parts, void **desc, size_t count, fi_addr_t peer,
                           void *context) {
    struct fi_msg msg = {.msg_iov = parts, .desc = desc, .iov_count = count, .addr = peer, .context = context};
    return plain_sendmsg(ep, &msg, ((struct endpoint *)ep)->send_flags);
}

static ssize_t plain_send(struct fid_ep *ep, const void *bytes, size_t length, void *desc, fi_addr_t peer, void *context) {
    return plain_sendv(ep, ONE(bytes, length), &desc, 1, peer, context);
}

static ssize_t plain_senddata(struct fid_ep *ep, const void *bytes, size_t length, void *desc, uint64_t data,
                              fi_addr_t peer, void *context) {
    struct fi_msg msg = {.msg_iov = ONE(bytes, length), .desc = &desc, .iov_count = 1, .addr = peer, .context = context,
                         .data = data};
    return plain_sendmsg(ep, &msg, ((struct endpoint *)ep)->send_flags | FI_REMOTE_CQ_DATA);
}

static ssize_t plain_injectdata(struct fid_ep *ep, const void *bytes, size_t length, uint64_t data, fi_addr_t peer) {
    return send_message((struct endpoint *)ep,
                        &(struct message){.parts = ONE(bytes, length), .count = 1, .peer = peer, .data = data,
                                          .flags = FLAG_INJECT | FLAG_DATA | FLAG_UNTAGGED, .is_injected = 1});
}

static ssize_t plain_inject(struct fid_ep *ep, const void *bytes, size_t length, fi_addr_t peer) {
    return send_message((struct endpoint *)ep, &(struct message){.parts = ONE(bytes, length), .count = 1, .peer = peer,
                                                                 .flags = FLAG_INJECT | FLAG_UNTAGGED, .is_injected = 1});
}

static ssize_t plain_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags) {
    struct endpoint *endpoint = (struct endpoint *)ep;
    return receive_message(endpoint,
                           &(struct message){.parts = msg->msg_iov, .count = msg->iov_count, .peer = msg->addr,
                                             .context = msg->context,
                                             .flags = receive_flags(endpoint, flags) | FLAG_UNTAGGED},
                           CALL_RECV);
}

static ssize_t plain_recvv(struct fid_ep *ep, const struct iovec *parts, void **desc, size_t count, fi_addr_t peer,
                           void *context) {
    struct fi_msg msg = {.msg_iov = parts, .desc = desc, .iov_count = count, .addr = peer, .context = context};
    return plain_recvmsg(ep, &msg, ((struct endpoint *)ep)->receive_flags);
}

static ssize_t plain_recv(struct fid_ep *ep, void *bytes, size_t length, void *desc, fi_addr_t peer, void *context) {
    return plain_recvv(ep, ONE(bytes, length), &desc, 1, peer, context);
}

struct fi_ops_msg plain_message_ops = {
    .size = sizeof(struct fi_ops_msg),
    .recv = plain_recv,
    .recvv = plain_recvv,
    .recvmsg = plain_recvmsg,
    .send = plain_send,
    .sendv = plain_sendv,
    .sendmsg = plain_sendmsg,
    .inject = plain_inject,
    .senddata = plain_senddata,
    .injectdata = plain_injectdata,
};
