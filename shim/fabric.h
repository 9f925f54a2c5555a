/* The binary interface of libfabric's providers, as far as this one needs it. Types, fields and numbers are those of libfabric's ABI,
 * versions 1.17 to 2.5, and names those of its manual pages. These are fi_getinfo(3), fi_endpoint(3), fi_cq(3) and others. */

#ifndef NICETY_FABRIC_H
#define NICETY_FABRIC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define BIT(n) (1ull << (n))
#define FI_VERSION(major, minor) ((uint32_t)(major) << 16 | (minor))

/* Capabilities, and flags of operations and completions. */
#define FI_MSG BIT(1)
#define FI_RMA BIT(2)
#define FI_TAGGED BIT(3)
#define FI_ATOMIC BIT(4)
#define FI_READ BIT(8)
#define FI_WRITE BIT(9)
#define FI_RECV BIT(10)
#define FI_SEND BIT(11)
#define FI_REMOTE_READ BIT(12)
#define FI_REMOTE_WRITE BIT(13)
#define FI_MULTI_RECV BIT(16)
#define FI_REMOTE_CQ_DATA BIT(17)
#define FI_PEEK BIT(19)
#define FI_COMPLETION BIT(24)
#define FI_INJECT BIT(25)
#define FI_INJECT_COMPLETE BIT(26)
#define FI_TRANSMIT_COMPLETE BIT(27)
#define FI_DELIVERY_COMPLETE BIT(28)
#define FI_LOCAL_COMM BIT(51)
#define FI_REMOTE_COMM BIT(52)
#define FI_RMA_EVENT BIT(56)
#define FI_SOURCE BIT(57)
#define FI_FETCH_ATOMIC BIT(58)
#define FI_COMPARE_ATOMIC BIT(59)
#define FI_DISCARD BIT(58)
#define FI_CLAIM BIT(59)
#define FI_DIRECTED_RECV BIT(59)
#define FI_SELECTIVE_COMPLETION BIT(59)

/* Modes of a program. */
#define FI_RX_CQ_DATA BIT(56)
#define FI_ASYNC_IOV BIT(57)
#define FI_CONTEXT BIT(59)
#define FI_CONTEXT2 BIT(52)

#define FI_ORDER_SAS BIT(8)
#define FI_ORDER_ATOMIC_RAR BIT(36)
#define FI_ORDER_ATOMIC_RAW BIT(37)
#define FI_ORDER_ATOMIC_WAR BIT(38)
#define FI_ORDER_ATOMIC_WAW BIT(39)
#define FI_ADDR_UNSPEC UINT64_MAX

enum { FI_EP_UNSPEC = 0, FI_EP_RDM = 3 };
enum { FI_AV_UNSPEC, FI_AV_MAP, FI_AV_TABLE };
enum { FI_PROGRESS_UNSPEC, FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL };
enum { FI_THREAD_UNSPEC, FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_DOMAIN };
enum { FI_RM_UNSPEC, FI_RM_DISABLED, FI_RM_ENABLED };
enum {
    FI_MR_BASIC = 1,
    FI_MR_SCALABLE = 2,
    FI_MR_VIRT_ADDR = 1 << 4,
    FI_MR_ALLOCATED = 1 << 5,
    FI_MR_PROV_KEY = 1 << 6,
    FI_MR_RMA_EVENT = 1 << 8,
    FI_MR_ENDPOINT = 1 << 9,
};
enum { FI_INT8, FI_DOUBLE = 9, FI_FLOAT_COMPLEX, FI_DOUBLE_COMPLEX };
enum { FI_BXOR = 9, FI_ATOMIC_READ, FI_ATOMIC_WRITE, FI_CSWAP, FI_MSWAP = 18 };
enum { FI_FORMAT_UNSPEC = 0 };
enum {
    FI_OPT_MIN_MULTI_RECV = 0,
    FI_OPT_MAX_MSG_SIZE = 12,
    FI_OPT_MAX_TAGGED_SIZE,
    FI_OPT_MAX_RMA_SIZE,
    FI_OPT_MAX_ATOMIC_SIZE,
    FI_OPT_INJECT_MSG_SIZE,
    FI_OPT_INJECT_TAGGED_SIZE,
    FI_OPT_INJECT_RMA_SIZE,
    FI_OPT_INJECT_ATOMIC_SIZE,
};
enum { FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_SET, FI_WAIT_FD, FI_WAIT_MUTEX_COND, FI_WAIT_YIELD, FI_WAIT_POLLFD };
enum { FI_CQ_FORMAT_UNSPEC, FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG, FI_CQ_FORMAT_DATA, FI_CQ_FORMAT_TAGGED };
enum {
    FI_CLASS_FABRIC = 1,
    FI_CLASS_DOMAIN = 2,
    FI_CLASS_EP = 3,
    FI_CLASS_AV = 11,
    FI_CLASS_MR = 12,
    FI_CLASS_EQ = 13,
    FI_CLASS_CQ = 14,
    FI_CLASS_CNTR = 15,
};
enum { FI_GETOPSFLAG = 2, FI_SETOPSFLAG = 3, FI_ENABLE = 6 };
enum { FI_EAVAIL = 259, FI_ENOCQ = 263, FI_ENOAV = 267 };

typedef uint64_t fi_addr_t;

struct fid;
struct fi_ops {
    size_t size;
    int (*close)(struct fid *);
    int (*bind)(struct fid *, struct fid *, uint64_t flags);
    int (*control)(struct fid *, int command, void *);
    int (*ops_open)(struct fid *, const char *, uint64_t, void **, void *);
    int (*tostr)(const struct fid *, char *, size_t);
    int (*ops_set)(struct fid *, const char *, uint64_t, void *, void *);
};
struct fid {
    size_t fclass;
    void *context;
    struct fi_ops *ops;
};

struct fi_tx_attr {
    uint64_t caps, mode, op_flags, msg_order, comp_order;
    size_t inject_size, size, iov_limit, rma_iov_limit;
    uint32_t tclass;
};
struct fi_rx_attr {
    uint64_t caps, mode, op_flags, msg_order, comp_order;
    size_t total_buffered_recv, size, iov_limit;
};
struct fi_ep_attr {
    int type;
    uint32_t protocol, protocol_version;
    size_t max_msg_size, msg_prefix_size, max_order_raw_size, max_order_war_size, max_order_waw_size;
    uint64_t mem_tag_format;
    size_t tx_ctx_cnt, rx_ctx_cnt, auth_key_size;
    uint8_t *auth_key;
};
struct fi_domain_attr {
    struct fid_domain *domain;
    char *name;
    int threading, control_progress, data_progress, resource_mgmt, av_type, mr_mode;
    size_t mr_key_size, cq_data_size, cq_cnt, ep_cnt, tx_ctx_cnt, rx_ctx_cnt;
    size_t max_ep_tx_ctx, max_ep_rx_ctx, max_ep_stx_ctx, max_ep_srx_ctx, cntr_cnt, mr_iov_limit;
    uint64_t caps, mode;
    uint8_t *auth_key;
    size_t auth_key_size, max_err_data, mr_cnt;
    uint32_t tclass;
    /* Since 2.0. */
    size_t max_ep_auth_key;
    uint32_t max_group_id;
};
struct fi_fabric_attr {
    struct fid_fabric *fabric;
    char *name, *prov_name;
    uint32_t prov_version, api_version;
};
struct fi_info {
    struct fi_info *next;
    uint64_t caps, mode;
    uint32_t addr_format;
    size_t src_addrlen, dest_addrlen;
    void *src_addr, *dest_addr;
    struct fid *handle;
    struct fi_tx_attr *tx_attr;
    struct fi_rx_attr *rx_attr;
    struct fi_ep_attr *ep_attr;
    struct fi_domain_attr *domain_attr;
    struct fi_fabric_attr *fabric_attr;
    struct fid_nic *nic;
};

struct fi_provider {
    uint32_t version, fi_version;
    void *context[4];
    const char *name;
    int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
                   struct fi_info **);
    int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *context);
    void (*cleanup)(void);
};

struct fid_eq;
struct fi_eq_err_entry;
struct fi_ops_fabric {
    size_t size;
    int (*domain)(struct fid_fabric *, struct fi_info *, struct fid_domain **, void *context);
    int (*passive_ep)(struct fid_fabric *, struct fi_info *, void **, void *context);
    int (*eq_open)(struct fid_fabric *, void *attr, struct fid_eq **, void *context);
    int (*wait_open)(struct fid_fabric *, void *attr, void **);
    int (*trywait)(struct fid_fabric *, struct fid **, int count);
    int (*domain2)(struct fid_fabric *, struct fi_info *, struct fid_domain **, uint64_t flags, void *context);
};
struct fid_fabric {
    struct fid fid;
    struct fi_ops_fabric *ops;
    uint32_t api_version;
};

struct fi_av_attr {
    int type, rx_ctx_bits;
    size_t count, ep_per_node;
    const char *name;
    void *map_addr;
    uint64_t flags;
};
struct fid_av;
struct fi_ops_av {
    size_t size;
    int (*insert)(struct fid_av *, const void *addr, size_t count, fi_addr_t *, uint64_t flags, void *context);
    int (*insertsvc)(struct fid_av *, const char *, const char *, fi_addr_t *, uint64_t, void *);
    int (*insertsym)(struct fid_av *, const char *, size_t, const char *, size_t, fi_addr_t *, uint64_t, void *);
    int (*remove)(struct fid_av *, fi_addr_t *, size_t count, uint64_t flags);
    int (*lookup)(struct fid_av *, fi_addr_t, void *addr, size_t *bytes);
    const char *(*straddr)(struct fid_av *, const void *addr, char *text, size_t *bytes);
    int (*av_set)(struct fid_av *, void *, void **, void *);
    int (*insert_auth_key)(struct fid_av *, const void *, size_t, fi_addr_t *, uint64_t);
    int (*lookup_auth_key)(struct fid_av *, fi_addr_t, void *, size_t *);
    int (*set_user_id)(struct fid_av *, fi_addr_t, fi_addr_t, uint64_t);
};
struct fid_av {
    struct fid fid;
    struct fi_ops_av *ops;
};

struct fi_mr_attr {
    const struct iovec *mr_iov;
    size_t iov_count;
    uint64_t access, offset, requested_key;
    void *context;
};
struct fid_mr {
    struct fid fid;
    void *mem_desc;
    uint64_t key;
};
struct fi_ops_mr {
    size_t size;
    int (*reg)(struct fid *, const void *, size_t, uint64_t access, uint64_t offset, uint64_t key, uint64_t flags,
               struct fid_mr **, void *context);
    int (*regv)(struct fid *, const struct iovec *, size_t count, uint64_t access, uint64_t offset, uint64_t key,
                uint64_t flags, struct fid_mr **, void *context);
    int (*regattr)(struct fid *, const struct fi_mr_attr *, uint64_t flags, struct fid_mr **);
};

struct fi_rma_iov {
    uint64_t addr;
    size_t len;
    uint64_t key;
};
struct fi_msg_rma {
    const struct iovec *msg_iov;
    void **desc;
    size_t iov_count;
    fi_addr_t addr;
    const struct fi_rma_iov *rma_iov;
    size_t rma_iov_count;
    void *context;
    uint64_t data;
};
struct fi_ioc {
    void *addr;
    size_t count;
};
struct fi_rma_ioc {
    uint64_t addr;
    size_t count;
    uint64_t key;
};
struct fi_msg_atomic {
    const struct fi_ioc *msg_iov;
    void **desc;
    size_t iov_count;
    fi_addr_t addr;
    const struct fi_rma_ioc *rma_iov;
    size_t rma_iov_count;
    int datatype, op;
    void *context;
    uint64_t data;
};
struct fi_atomic_attr {
    size_t count, size;
};

struct fi_cq_attr {
    size_t size;
    uint64_t flags;
    int format, wait_obj, signaling_vector, wait_cond;
    void *wait_set;
};
struct fi_cq_tagged_entry {
    void *op_context;
    uint64_t flags;
    size_t len;
    void *buf;
    uint64_t data, tag;
};
struct fi_cq_err_entry {
    void *op_context;
    uint64_t flags;
    size_t len;
    void *buf;
    uint64_t data, tag;
    size_t olen;
    int err, prov_errno;
    void *err_data;
    size_t err_data_size;
};
struct fid_cq;
struct fi_ops_cq {
    size_t size;
    ssize_t (*read)(struct fid_cq *, void *entries, size_t count);
    ssize_t (*readfrom)(struct fid_cq *, void *entries, size_t count, fi_addr_t *);
    ssize_t (*readerr)(struct fid_cq *, struct fi_cq_err_entry *, uint64_t flags);
    ssize_t (*sread)(struct fid_cq *, void *entries, size_t count, const void *cond, int ms);
    ssize_t (*sreadfrom)(struct fid_cq *, void *entries, size_t count, fi_addr_t *, const void *cond, int ms);
    int (*signal)(struct fid_cq *);
    const char *(*strerror)(struct fid_cq *, int error, const void *data, char *text, size_t bytes);
};
struct fid_cq {
    struct fid fid;
    struct fi_ops_cq *ops;
};

struct fi_ops_eq {
    size_t size;
    ssize_t (*read)(struct fid_eq *, uint32_t *event, void *, size_t, uint64_t flags);
    ssize_t (*readerr)(struct fid_eq *, struct fi_eq_err_entry *, uint64_t flags);
    ssize_t (*write)(struct fid_eq *, uint32_t event, const void *, size_t, uint64_t flags);
    ssize_t (*sread)(struct fid_eq *, uint32_t *event, void *, size_t, int ms, uint64_t flags);
    const char *(*strerror)(struct fid_eq *, int error, const void *data, char *text, size_t bytes);
};
struct fid_eq {
    struct fid fid;
    struct fi_ops_eq *ops;
};

struct fi_cntr_attr {
    int events, wait_obj;
    void *wait_set;
    uint64_t flags;
};
struct fid_cntr;
struct fi_ops_cntr {
    size_t size;
    uint64_t (*read)(struct fid_cntr *);
    uint64_t (*readerr)(struct fid_cntr *);
    int (*add)(struct fid_cntr *, uint64_t);
    int (*set)(struct fid_cntr *, uint64_t);
    int (*wait)(struct fid_cntr *, uint64_t threshold, int ms);
    int (*adderr)(struct fid_cntr *, uint64_t);
    int (*seterr)(struct fid_cntr *, uint64_t);
};
struct fid_cntr {
    struct fid fid;
    struct fi_ops_cntr *ops;
};

struct fid_ep;
struct fi_ops_domain {
    size_t size;
    int (*av_open)(struct fid_domain *, struct fi_av_attr *, struct fid_av **, void *context);
    int (*cq_open)(struct fid_domain *, struct fi_cq_attr *, struct fid_cq **, void *context);
    int (*endpoint)(struct fid_domain *, struct fi_info *, struct fid_ep **, void *context);
    int (*scalable_ep)(struct fid_domain *, struct fi_info *, struct fid_ep **, void *context);
    int (*cntr_open)(struct fid_domain *, struct fi_cntr_attr *, struct fid_cntr **, void *context);
    int (*poll_open)(struct fid_domain *, void *, void **);
    int (*stx_ctx)(struct fid_domain *, struct fi_tx_attr *, void **, void *);
    int (*srx_ctx)(struct fid_domain *, struct fi_rx_attr *, struct fid_ep **, void *);
    int (*query_atomic)(struct fid_domain *, int type, int op, struct fi_atomic_attr *, uint64_t flags);
    int (*query_collective)(struct fid_domain *, int, void *, uint64_t);
    int (*endpoint2)(struct fid_domain *, struct fi_info *, struct fid_ep **, uint64_t flags, void *context);
};
struct fid_domain {
    struct fid fid;
    struct fi_ops_domain *ops;
    struct fi_ops_mr *mr;
};

struct fi_msg {
    const struct iovec *msg_iov;
    void **desc;
    size_t iov_count;
    fi_addr_t addr;
    void *context;
    uint64_t data;
};
struct fi_msg_tagged {
    const struct iovec *msg_iov;
    void **desc;
    size_t iov_count;
    fi_addr_t addr;
    uint64_t tag, ignore;
    void *context;
    uint64_t data;
};

struct fid_ep;
struct fi_ops_ep {
    size_t size;
    ssize_t (*cancel)(struct fid *, void *context);
    int (*getopt)(struct fid *, int level, int name, void *value, size_t *bytes);
    int (*setopt)(struct fid *, int level, int name, const void *value, size_t bytes);
    int (*tx_ctx)(struct fid_ep *, int, struct fi_tx_attr *, struct fid_ep **, void *);
    int (*rx_ctx)(struct fid_ep *, int, struct fi_rx_attr *, struct fid_ep **, void *);
    ssize_t (*rx_size_left)(struct fid_ep *);
    ssize_t (*tx_size_left)(struct fid_ep *);
};
struct fi_ops_cm {
    size_t size;
    int (*setname)(struct fid *, void *addr, size_t bytes);
    int (*getname)(struct fid *, void *addr, size_t *bytes);
    int (*getpeer)(struct fid_ep *, void *addr, size_t *bytes);
    int (*connect)(struct fid_ep *, const void *, const void *, size_t);
    int (*listen)(void *);
    int (*accept)(struct fid_ep *, const void *, size_t);
    int (*reject)(void *, struct fid *, const void *, size_t);
    int (*shutdown)(struct fid_ep *, uint64_t flags);
    int (*join)(struct fid_ep *, const void *, uint64_t, void **, void *);
};
struct fi_ops_msg {
    size_t size;
    ssize_t (*recv)(struct fid_ep *, void *, size_t, void *desc, fi_addr_t, void *context);
    ssize_t (*recvv)(struct fid_ep *, const struct iovec *, void **desc, size_t, fi_addr_t, void *context);
    ssize_t (*recvmsg)(struct fid_ep *, const struct fi_msg *, uint64_t flags);
    ssize_t (*send)(struct fid_ep *, const void *, size_t, void *desc, fi_addr_t, void *context);
    ssize_t (*sendv)(struct fid_ep *, const struct iovec *, void **desc, size_t, fi_addr_t, void *context);
    ssize_t (*sendmsg)(struct fid_ep *, const struct fi_msg *, uint64_t flags);
    ssize_t (*inject)(struct fid_ep *, const void *, size_t, fi_addr_t);
    ssize_t (*senddata)(struct fid_ep *, const void *, size_t, void *desc, uint64_t data, fi_addr_t, void *context);
    ssize_t (*injectdata)(struct fid_ep *, const void *, size_t, uint64_t data, fi_addr_t);
};
struct fi_ops_tagged {
    size_t size;
    ssize_t (*recv)(struct fid_ep *, void *, size_t, void *desc, fi_addr_t, uint64_t tag, uint64_t ignore, void *context);
    ssize_t (*recvv)(struct fid_ep *, const struct iovec *, void **desc, size_t, fi_addr_t, uint64_t tag, uint64_t ignore,
                     void *context);
    ssize_t (*recvmsg)(struct fid_ep *, const struct fi_msg_tagged *, uint64_t flags);
    ssize_t (*send)(struct fid_ep *, const void *, size_t, void *desc, fi_addr_t, uint64_t tag, void *context);
    ssize_t (*sendv)(struct fid_ep *, const struct iovec *, void **desc, size_t, fi_addr_t, uint64_t tag, void *context);
    ssize_t (*sendmsg)(struct fid_ep *, const struct fi_msg_tagged *, uint64_t flags);
    ssize_t (*inject)(struct fid_ep *, const void *, size_t, fi_addr_t, uint64_t tag);
    ssize_t (*senddata)(struct fid_ep *, const void *, size_t, void *desc, uint64_t data, fi_addr_t, uint64_t tag,
                        void *context);
    ssize_t (*injectdata)(struct fid_ep *, const void *, size_t, uint64_t data, fi_addr_t, uint64_t tag);
};
struct fi_ops_rma {
    size_t size;
    ssize_t (*read)(struct fid_ep *, void *, size_t, void *desc, fi_addr_t, uint64_t addr, uint64_t key, void *context);
    ssize_t (*readv)(struct fid_ep *, const struct iovec *, void **desc, size_t, fi_addr_t, uint64_t addr, uint64_t key,
                     void *context);
    ssize_t (*readmsg)(struct fid_ep *, const struct fi_msg_rma *, uint64_t flags);
    ssize_t (*write)(struct fid_ep *, const void *, size_t, void *desc, fi_addr_t, uint64_t addr, uint64_t key, void *context);
    ssize_t (*writev)(struct fid_ep *, const struct iovec *, void **desc, size_t, fi_addr_t, uint64_t addr, uint64_t key,
                      void *context);
    ssize_t (*writemsg)(struct fid_ep *, const struct fi_msg_rma *, uint64_t flags);
    ssize_t (*inject)(struct fid_ep *, const void *, size_t, fi_addr_t, uint64_t addr, uint64_t key);
    ssize_t (*writedata)(struct fid_ep *, const void *, size_t, void *desc, uint64_t data, fi_addr_t, uint64_t addr,
                         uint64_t key, void *context);
    ssize_t (*injectdata)(struct fid_ep *, const void *, size_t, uint64_t data, fi_addr_t, uint64_t addr, uint64_t key);
};
struct fi_ops_atomic {
    size_t size;
    ssize_t (*write)(struct fid_ep *, const void *, size_t, void *desc, fi_addr_t, uint64_t addr, uint64_t key, int type, int op,
                     void *context);
    ssize_t (*writev)(struct fid_ep *, const struct fi_ioc *, void **desc, size_t, fi_addr_t, uint64_t addr, uint64_t key,
                      int type, int op, void *context);
    ssize_t (*writemsg)(struct fid_ep *, const struct fi_msg_atomic *, uint64_t flags);
    ssize_t (*inject)(struct fid_ep *, const void *, size_t, fi_addr_t, uint64_t addr, uint64_t key, int type, int op);
    ssize_t (*readwrite)(struct fid_ep *, const void *, size_t, void *desc, void *result, void *result_desc, fi_addr_t,
                         uint64_t addr, uint64_t key, int type, int op, void *context);
    ssize_t (*readwritev)(struct fid_ep *, const struct fi_ioc *, void **desc, size_t, struct fi_ioc *result,
                          void **result_desc, size_t, fi_addr_t, uint64_t addr, uint64_t key, int type, int op, void *context);
    ssize_t (*readwritemsg)(struct fid_ep *, const struct fi_msg_atomic *, struct fi_ioc *result, void **result_desc, size_t,
                            uint64_t flags);
    ssize_t (*compwrite)(struct fid_ep *, const void *, size_t, void *desc, const void *compare, void *compare_desc,
                         void *result, void *result_desc, fi_addr_t, uint64_t addr, uint64_t key, int type, int op,
                         void *context);
    ssize_t (*compwritev)(struct fid_ep *, const struct fi_ioc *, void **desc, size_t, const struct fi_ioc *compare,
                          void **compare_desc, size_t, struct fi_ioc *result, void **result_desc, size_t, fi_addr_t,
                          uint64_t addr, uint64_t key, int type, int op, void *context);
    ssize_t (*compwritemsg)(struct fid_ep *, const struct fi_msg_atomic *, const struct fi_ioc *compare, void **compare_desc,
                            size_t, struct fi_ioc *result, void **result_desc, size_t, uint64_t flags);
    int (*writevalid)(struct fid_ep *, int type, int op, size_t *count);
    int (*readwritevalid)(struct fid_ep *, int type, int op, size_t *count);
    int (*compwritevalid)(struct fid_ep *, int type, int op, size_t *count);
};
/* The provider has none of these. */
struct fi_ops_collective {
    size_t size;
    ssize_t (*operations[11])(void);
};
struct fid_ep {
    struct fid fid;
    struct fi_ops_ep *ops;
    struct fi_ops_cm *cm;
    struct fi_ops_msg *msg;
    struct fi_ops_rma *rma;
    struct fi_ops_tagged *tagged;
    struct fi_ops_atomic *atomic;
    struct fi_ops_collective *collective;
};

#endif
