/* The parts of the provider, which libfabric loads.
 *
 * - addresses.c: address tables; an address is a rank, and a table is a list of ranks;
 * - completions.c: completion queues;
 * - counters.c: counters;
 * - memory.c: registered memory;
 * - messages.c: tagged and untagged messages;
 * - rma.c, atomics.c: accesses to registered memory;
 * - offers.c: the offers to libfabric;
 * - provider.c: endpoints, domain and fabric;
 * - lacking.c: unsupported operations.
 *
 * Set-up is local to this process. Messages and completions are calls of the simulator (process.h). */

#ifndef NICETY_PROVIDER_H
#define NICETY_PROVIDER_H

#include "fabric.h"
#include "process.h"

#define NAME "nicety"
/* The capabilities of each card. */
#define CAPS                                                                                                           \
    (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_LOCAL_COMM |            \
     FI_REMOTE_COMM)
/* The program's bits of a tag. The other bits separate kinds of messages, and processes of a host. */
#define TAG_FORMAT ((1ull << nicety_shared->tag_bits) - 1)
#define RMA_CAPS (FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ATOMIC_ORDER (FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
/* The maximum bytes that a command of a card carries. */
#define INJECT_SIZE 64
#define QUEUE 65536
#define MOST_BYTES (1ull << 40)
/* The maximum number of parts of a message or an access. */
#define MOST_PARTS 8

struct table {
    struct fid_av av;
    uint64_t *ranks;
    size_t count, room;
};

struct queue {
    struct fid_cq cq;
    int format;
    /* Completions from the simulator, from first to count, that the program has not read. */
    struct nicety_completion *kept;
    unsigned room, first, count;
};

struct endpoint {
    struct fid_ep ep;
    struct table *table;
    struct queue *sends, *receives;
    int selective_sends, selective_receives, enabled;
    /* The operations that the endpoint's counters count, as flags of the counters' bindings. */
    uint64_t counted;
    /* Whether the endpoint counts accesses of other processes to its memory. */
    int has_events;
    /* Whether receives name the sources of their messages. */
    int is_directed;
    uint64_t send_flags, receive_flags;
    size_t min_multi_recv;
    /* The maximum number of operations in flight: of sends and accesses, and of receives. */
    size_t most_sends, most_receives;
};

extern struct fi_ops plain_ops;
/* The table of the only endpoint, for the addresses of sources. */
extern struct table *own_table;
/* The only endpoint, or NULL. */
extern struct endpoint *own_endpoint;
extern struct fi_ops_mr memory_ops;
extern struct fi_ops_rma rma_ops;
extern struct fi_ops_atomic atomic_ops;
extern struct fi_ops_tagged tagged_ops;
extern struct fi_ops_msg plain_message_ops;

/* Functions of lacking.c. */
int no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int no_control(struct fid *fid, int command, void *value);
int no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);
int no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);
int no_tostr(const struct fid *fid, char *text, size_t bytes);
int no_tx_context(struct fid_ep *ep, int number, struct fi_tx_attr *attr, struct fid_ep **made, void *context);
int no_rx_context(struct fid_ep *ep, int number, struct fi_rx_attr *attr, struct fid_ep **made, void *context);
int no_setname(struct fid *fid, void *address, size_t bytes);
int no_getpeer(struct fid_ep *ep, void *address, size_t *bytes);
int no_connect(struct fid_ep *ep, const void *address, const void *value, size_t bytes);
int no_listen(void *passive);
int no_accept(struct fid_ep *ep, const void *value, size_t bytes);
int no_reject(void *passive, struct fid *handle, const void *value, size_t bytes);
int no_shutdown(struct fid_ep *ep, uint64_t flags);
int no_join(struct fid_ep *ep, const void *address, uint64_t flags, void **made, void *context);
int no_insertsvc(struct fid_av *av, const char *node, const char *service, fi_addr_t *number, uint64_t flags, void *context);
int no_insertsym(struct fid_av *av, const char *node, size_t nodes, const char *service, size_t services, fi_addr_t *numbers,
                 uint64_t flags, void *context);
int no_av_set(struct fid_av *av, void *attr, void **made, void *context);
int no_insert_auth_key(struct fid_av *av, const void *key, size_t bytes, fi_addr_t *number, uint64_t flags);
int no_lookup_auth_key(struct fid_av *av, fi_addr_t number, void *key, size_t *bytes);
int no_set_user_id(struct fid_av *av, fi_addr_t number, fi_addr_t id, uint64_t flags);
int no_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
int no_poll(struct fid_domain *domain, void *attr, void **made);
int no_shared_sends(struct fid_domain *domain, struct fi_tx_attr *attr, void **made, void *context);
int no_shared_receives(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **made, void *context);
int no_query_collective(struct fid_domain *domain, int collective, void *attr, uint64_t flags);
int no_passive(struct fid_fabric *fabric, struct fi_info *info, void **made, void *context);
int no_wait(struct fid_fabric *fabric, void *attr, void **made);
int no_trywait(struct fid_fabric *fabric, struct fid **fids, int count);
ssize_t no_event(struct fid_eq *eq, uint32_t event, const void *bytes, size_t length, uint64_t flags);
extern struct fi_ops_collective collective_ops;

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

int open_counter(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context);
int query_atomic(struct fid_domain *domain, int type, int op, struct fi_atomic_attr *attr, uint64_t flags);

/* Binds a counter to the operations of these flags. Returns 0 or an error. */
int bind_counter(const struct endpoint *endpoint, struct fid *counter, uint64_t flags);

/* Registers memory that was registered before the endpoint existed. Returns 0 or an error. */
int register_early(void);

/* Gathers several places in a single buffer. The caller frees `copy`, which is a buffer if there are several places.
 * Returns 0 or an error. */
int gather(const struct iovec *parts, size_t count, const void **bytes, size_t *length, void **copy);

/* Returns whether there is room for one more operation of this call. If there is no room, the caller returns
 * -FI_EAGAIN. */
int has_room(const struct endpoint *endpoint, uint32_t call);

/* Returns the flags of an access's call. */
uint32_t access_flags(const struct endpoint *endpoint, uint64_t flags);

/* Checks an access, and finds its target rank. Returns 0 or an error. */
int check_access(const struct endpoint *endpoint, fi_addr_t peer, uint64_t key, uint32_t rights, uint64_t *rank);

/* Lists the offers (fi_getinfo(3)). */
int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
            struct fi_info **info);

/* Returns whether a wait object is supported, and prints a message if it is not. */
int is_wait_known(const char *what, int object);

/* Finds the rank of an address. Returns 0 or -EINVAL. */
int rank_of(const struct endpoint *endpoint, fi_addr_t address, uint64_t *rank);

/* Returns the address of a rank, or FI_ADDR_UNSPEC. */
fi_addr_t address_of(const struct table *table, uint64_t rank);

#endif
