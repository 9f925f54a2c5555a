/* Registered memory. On cards with Portals, a region is a match entry. The entry's match bits are the key of the
 * region, and accesses have offsets in the region. On cards with RDMA, a region is a registration with the card, and
 * accesses have addresses of the process. Other cards have no registered memory. */

#include "provider.h"

#include <errno.h>
#include <stdlib.h>

struct region {
    struct fid_mr mr;
    uint64_t address, bytes, rights, number;
    int is_registered;
    struct region *next; /* the next region that waits for the endpoint */
};

static struct region *early;

static int has(uint32_t what) {
    return (nicety_shared->card & what) == what;
}

static int register_now(struct region *region) {
    uint64_t args[] = {region->address, region->bytes, region->rights, region->mr.key, region->number};
    int64_t result = nicety_call(CALL_REGISTER, own_endpoint->has_events ? FLAG_EVENTS : 0, args, 5);
    region->is_registered = !result;
    return (int)result;
}

int register_early(void) {
    int error = 0;
    while (early) {
        struct region *region = early;
        early = region->next;
        int own = register_now(region);
        error = error ? error : own;
    }
    return error;
}

static int close_region(struct fid *fid) {
    struct region *region = (struct region *)fid;
    for (struct region **at = &early; *at; at = &(*at)->next)
        if (*at == region) {
            *at = region->next;
            break;
        }
    if (region->is_registered && nicety_attached() && !nicety_slot->ended) {
        int64_t result = nicety_call(CALL_DEREGISTER, 0, &region->number, 1);
        if (result)
            return (int)result;
    }
    free(region);
    return 0;
}

/* Every region belongs to the only endpoint. */
static int bind_region(struct fid *fid, struct fid *other, uint64_t flags) {
    (void)fid, (void)flags;
    return other->fclass == FI_CLASS_EP ? 0 : -ENOSYS;
}

static int control_region(struct fid *fid, int command, void *value) {
    (void)fid, (void)value;
    return command == FI_ENABLE ? 0 : -ENOSYS;
}

static struct fi_ops region_ops = FID_OPS(close_region, bind_region, control_region);

static int register_parts(struct fid *fid, const struct iovec *parts, size_t count, uint64_t access, uint64_t offset,
                          uint64_t key, uint64_t flags, struct fid_mr **mr, void *context) {
    (void)fid, (void)flags;
    static uint64_t numbers;
    if (count != 1 || offset)
        return -EINVAL;
    struct region *region = calloc(1, sizeof *region);
    if (!region)
        return -ENOMEM;
    region->address = (uintptr_t)parts->iov_base;
    region->bytes = parts->iov_len;
    region->rights = (access & FI_REMOTE_READ ? RIGHT_READ : 0) | (access & FI_REMOTE_WRITE ? RIGHT_WRITE : 0);
    region->number = ++numbers;
    /* The card does not have the rights, so the initiator reads them from the key. */
    region->mr = (struct fid_mr){.fid = {FI_CLASS_MR, context, &region_ops},
                                 .key = has(CARD_ADDRESSES) ? region->number << 2 | region->rights : key};
    if (has(CARD_RMA) && region->rights) {
        if (own_endpoint && own_endpoint->enabled) {
            int error = register_now(region);
            if (error) {
                free(region);
                return error;
            }
        } else {
            region->next = early;
            early = region;
        }
    }
    *mr = &region->mr;
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

struct fi_ops_mr memory_ops = {
    .size = sizeof(struct fi_ops_mr),
    .reg = register_memory,
    .regv = register_parts,
    .regattr = register_attr,
};
