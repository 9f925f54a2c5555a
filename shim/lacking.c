/* Operations of libfabric that the provider does not support. Programs call them through tables without a check, so no entry may be
 * missing. */

#include "provider.h"

#include <errno.h>

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

/* ---- of endpoints ---- */

int no_tx_context(struct fid_ep *ep, int number, struct fi_tx_attr *attr, struct fid_ep **made, void *context) {
    (void)ep, (void)number, (void)attr, (void)made, (void)context;
    return -ENOSYS;
}

int no_rx_context(struct fid_ep *ep, int number, struct fi_rx_attr *attr, struct fid_ep **made, void *context) {
    (void)ep, (void)number, (void)attr, (void)made, (void)context;
    return -ENOSYS;
}

int no_setname(struct fid *fid, void *address, size_t bytes) {
    (void)fid, (void)address, (void)bytes;
    return -ENOSYS;
}

int no_getpeer(struct fid_ep *ep, void *address, size_t *bytes) {
    (void)ep, (void)address, (void)bytes;
    return -ENOSYS;
}

int no_connect(struct fid_ep *ep, const void *address, const void *value, size_t bytes) {
    (void)ep, (void)address, (void)value, (void)bytes;
    return -ENOSYS;
}

int no_listen(void *passive) {
    (void)passive;
    return -ENOSYS;
}

int no_accept(struct fid_ep *ep, const void *value, size_t bytes) {
    (void)ep, (void)value, (void)bytes;
    return -ENOSYS;
}

int no_reject(void *passive, struct fid *handle, const void *value, size_t bytes) {
    (void)passive, (void)handle, (void)value, (void)bytes;
    return -ENOSYS;
}

int no_shutdown(struct fid_ep *ep, uint64_t flags) {
    (void)ep, (void)flags;
    return -ENOSYS;
}

int no_join(struct fid_ep *ep, const void *address, uint64_t flags, void **made, void *context) {
    (void)ep, (void)address, (void)flags, (void)made, (void)context;
    return -ENOSYS;
}

/* ---- of tables of addresses ---- */

int no_insertsvc(struct fid_av *av, const char *node, const char *service, fi_addr_t *number, uint64_t flags, void *context) {
    (void)av, (void)node, (void)service, (void)number, (void)flags, (void)context;
    return -ENOSYS;
}

int no_insertsym(struct fid_av *av, const char *node, size_t nodes, const char *service, size_t services, fi_addr_t *numbers,
                 uint64_t flags, void *context) {
    (void)av, (void)node, (void)nodes, (void)service, (void)services, (void)numbers, (void)flags, (void)context;
    return -ENOSYS;
}

int no_av_set(struct fid_av *av, void *attr, void **made, void *context) {
    (void)av, (void)attr, (void)made, (void)context;
    return -ENOSYS;
}

int no_insert_auth_key(struct fid_av *av, const void *key, size_t bytes, fi_addr_t *number, uint64_t flags) {
    (void)av, (void)key, (void)bytes, (void)number, (void)flags;
    return -ENOSYS;
}

int no_lookup_auth_key(struct fid_av *av, fi_addr_t number, void *key, size_t *bytes) {
    (void)av, (void)number, (void)key, (void)bytes;
    return -ENOSYS;
}

int no_set_user_id(struct fid_av *av, fi_addr_t number, fi_addr_t id, uint64_t flags) {
    (void)av, (void)number, (void)id, (void)flags;
    return -ENOSYS;
}

/* ---- of domains, the fabric and event queues ---- */

int no_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context) {
    (void)domain, (void)info, (void)ep, (void)context;
    return -ENOSYS;
}

int no_poll(struct fid_domain *domain, void *attr, void **made) {
    (void)domain, (void)attr, (void)made;
    return -ENOSYS;
}

int no_shared_sends(struct fid_domain *domain, struct fi_tx_attr *attr, void **made, void *context) {
    (void)domain, (void)attr, (void)made, (void)context;
    return -ENOSYS;
}

int no_shared_receives(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **made, void *context) {
    (void)domain, (void)attr, (void)made, (void)context;
    return -ENOSYS;
}

int no_query_collective(struct fid_domain *domain, int collective, void *attr, uint64_t flags) {
    (void)domain, (void)collective, (void)attr, (void)flags;
    return -ENOSYS;
}

int no_passive(struct fid_fabric *fabric, struct fi_info *info, void **made, void *context) {
    (void)fabric, (void)info, (void)made, (void)context;
    return -ENOSYS;
}

int no_wait(struct fid_fabric *fabric, void *attr, void **made) {
    (void)fabric, (void)attr, (void)made;
    return -ENOSYS;
}

int no_trywait(struct fid_fabric *fabric, struct fid **fids, int count) {
    (void)fabric, (void)fids, (void)count;
    return -ENOSYS;
}

ssize_t no_event(struct fid_eq *eq, uint32_t event, const void *bytes, size_t length, uint64_t flags) {
    (void)eq, (void)event, (void)bytes, (void)length, (void)flags;
    return -ENOSYS;
}

/* ---- collective operations ---- */

static ssize_t no_collective(void) {
    return -ENOSYS;
}

/* With any arguments: barrier, broadcast, alltoall, allreduce, allgather, reduce_scatter, reduce, scatter, gather, msg, barrier2. */
struct fi_ops_collective collective_ops = {
    .size = sizeof(struct fi_ops_collective),
    .operations = {no_collective, no_collective, no_collective, no_collective, no_collective, no_collective, no_collective,
                   no_collective, no_collective, no_collective, no_collective},
};
