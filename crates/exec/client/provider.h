/* The parts of the provider that libfabric loads.
 *
 * - addresses.c: an address is a rank, and a table of addresses is a list of ranks;
 * - completions.c: completion queues;
 * - messages.c: tagged and untagged messages;
 * - provider.c: endpoints, and what libfabric is told of them.
 *
 * What is set up is of this process alone; messages and completions are calls of the simulator (process.h). */

#ifndef NICETY_PROVIDER_H
#define NICETY_PROVIDER_H

#include "fabric.h"
#include "process.h"

#define NAME "nicety"
#define CAPS                                                                                                           \
    (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_LOCAL_COMM |            \
     FI_REMOTE_COMM)
/* Bits of a tag that are the program's; the others tell kinds of messages apart, and processes of a host. */
#define TAG_FORMAT ((1ull << nicety_shared->tag_bits) - 1)
/* As much as a command of a card carries with it. */
#define INJECT_SIZE 64
#define QUEUE 65536
#define MOST_BYTES (1ull << 40)

struct table {
    struct fid_av av;
    uint64_t *ranks;
    size_t count, room;
};

struct queue {
    struct fid_cq cq;
    int format;
    /* Completions that the simulator has given, and the program has not read. */
    struct nicety_completion kept[NICETY_MOST_COMPLETIONS];
    unsigned first, count;
};

struct endpoint {
    struct fid_ep ep;
    struct table *table;
    struct queue *sends, *receives;
    int selective_sends, selective_receives, enabled;
    uint64_t send_flags, receive_flags;
    size_t min_multi_recv;
};

extern struct fi_ops plain_ops;
/* The table of the only endpoint, for the addresses of sources. */
extern struct table *own_table;
extern struct fi_ops_tagged tagged_ops;
extern struct fi_ops_msg plain_message_ops;

int no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int no_control(struct fid *fid, int command, void *value);
int no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);
int no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);
int no_tostr(const struct fid *fid, char *text, size_t bytes);

#define FID_OPS(close_, bind_, control_)                                                                               \
    {                                                                                                                  \
        .size = sizeof(struct fi_ops), .close = (close_), .bind = (bind_), .control = (control_),                      \
        .ops_open = no_ops_open, .tostr = no_tostr, .ops_set = no_ops_set                                              \
    }

#define ONE(bytes, length)                                                                                             \
    (const struct iovec[]) {                                                                                           \
        { (void *)(uintptr_t)(bytes), (length) }                                                                       \
    }

int open_table(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);
int open_queue(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);

/* The rank behind an address: 0, or -EINVAL. */
int rank_of(const struct endpoint *endpoint, fi_addr_t address, uint64_t *rank);

/* The address of a rank, or FI_ADDR_UNSPEC. */
fi_addr_t address_of(const struct table *table, uint64_t rank);

#endif
