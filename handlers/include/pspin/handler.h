/* handler.h: the arguments, commands and locks of a PsPIN handler, and the function by which a program names its
 * handlers.
 *
 *     __handler__ void packet(handler_args_t *args);
 *
 *     void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
 *         *hh = NULL; *ph = packet; *th = NULL;
 *         *handler_mem_ptr = NULL;
 *     }
 *
 * The header handler hh runs on the first packet of a message, before any other handler of the message. The packet
 * handler ph runs on every packet. The tail handler th runs on the last packet, after all other handlers.
 * *handler_mem_ptr names a variable of the program to which task->handler_mem points. With NULL, task->handler_mem
 * points to the state that the host attached. These headers have the names and signatures of PsPIN's headers. nicety's
 * own interface is nicety.h. */
#ifndef PSPIN_HANDLER_H
#define PSPIN_HANDLER_H

#include <pspin.h>
#include <util.h>
#include <spin_conf.h>
#include <spin_dma.h>
#include <hwsched.h>

#define __handler__ __attribute__((used, noinline))

#define SPIN_OK 0x0
#define SPIN_FAIL 0x1
#define SPIN_SUCCESS SPIN_OK /* nicety's own */

enum { SPIN_DMA_LOC2EXT = 0, SPIN_DMA_EXT2LOC = 1 };

/* Number of a task's registers for the scratchpads of clusters. */
enum { PSPIN_TASK_CLUSTERS = 4 };
_Static_assert(NB_CLUSTERS <= PSPIN_TASK_CLUSTERS, "a task has the scratchpads of 4 clusters: write NB_CLUSTERS of 4 or fewer");

/* A task is in word registers, so it is aligned, although packed. The arrays are at the end of their unions. So the
 * compiler treats the length of an array as open, and does not compare each index with the length. */
typedef struct task {
    void *handler_mem;           /* the program's handler memory, in L2 */
    size_t handler_mem_size;
    void *pkt_mem;               /* the packet, in L1 of the core's cluster */
    size_t pkt_mem_size;
    union {
        uint32_t pspin_scratchpads[PSPIN_TASK_CLUSTERS];
        void *scratchpad[NB_CLUSTERS]; /* handlers' part of each cluster's L1 */
    };
    union {
        uint32_t pspin_scratchpad_sizes[PSPIN_TASK_CLUSTERS];
        size_t scratchpad_size[NB_CLUSTERS];
    };
    uint32_t host_mem_high;      /* host memory of the message: start and number of bytes */
    uint32_t host_mem_low;
    size_t host_mem_size;
    void *l2_pkt_mem;            /* the packet, in L2 */
    uint32_t home_cluster_id;    /* of its message */
    uint32_t flow_id;            /* of its message */
} __attribute__((packed, aligned(4))) task_t;

typedef struct handler_args {
    task_t *task;
    uint32_t hpu_gid;            /* the core's number on the card */
    uint32_t cluster_id;
    uint32_t hpu_id;             /* the core's number in its cluster */
} handler_args_t;

typedef void (*handler_fn)(handler_args_t *);

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr);

/* The payload of a UDP packet at `pkt`, after an IP header of `ihl` words. Its length is computed for an IP packet
 * without options, as in PsPIN. */
#define GET_IP_UDP_PLD(pkt, pld, len)                                                                  \
    {                                                                                                  \
        ip_hdr_t *pspin_header_ = (ip_hdr_t *)(pkt);                                                   \
        (len) = pspin_header_->length - sizeof(ip_hdr_t) - sizeof(udp_hdr_t);                          \
        (pld) = (uint8_t *)(pkt) + pspin_header_->ihl * 4 + sizeof(udp_hdr_t);                         \
    }

/* Commands. The register CMD_INFO has twice the kind, plus 1 for an event at the host. */
typedef uint32_t spin_cmd_t;  /* a command in flight, 0 to 3 */

enum { PSPIN_HOST_DMA = 0, PSPIN_NIC_SEND = 1, PSPIN_HOST_WRITE = 2 };

PSPIN_INLINE int pspin_issue(uint32_t word0, uint32_t word1, uint32_t word2, uint32_t word3, uint32_t word4, uint32_t info,
                             spin_cmd_t *handle) {
    MMIO_WRITE(CMD_WORD0, word0);
    MMIO_WRITE(CMD_WORD1, word1);
    MMIO_WRITE(CMD_WORD2, word2);
    MMIO_WRITE(CMD_WORD3, word3);
    MMIO_WRITE(CMD_WORD4, word4);
    MMIO_WRITE(CMD_INFO, info);
    __asm__ volatile("" ::: "memory");
    *handle = MMIO_READ(CMD_ISSUE);
    return SPIN_OK;
}

/* Sends a packet back to the source of the handler's message. The bytes are read at once. Here this is a put with the
 * match bits of the message, for the same offset. */
PSPIN_INLINE int spin_send_packet(void *data, uint32_t length, spin_cmd_t *handle) {
    return pspin_issue(0, 0, (uint32_t)(uintptr_t)data, 0, length, PSPIN_NIC_SEND << 1, handle);
}

/* Sends a packet to a given rank. */
PSPIN_INLINE int spin_rdma_put(uint32_t dest, void *data, uint32_t length, spin_cmd_t *handle) {
    return pspin_issue(dest, 1, (uint32_t)(uintptr_t)data, 0, length, PSPIN_NIC_SEND << 1, handle);
}

/* Copy `length` bytes between the card's memory at `nic_addr` and host memory. The host memory is that of the task, or
 * the handlers' second region. Bytes to the host are read at once. Bytes from the host are in place after a wait for
 * the command. With `generate_event`, the match entry's counter counts one. */
PSPIN_INLINE int spin_dma_to_host(uint64_t host_addr, uint32_t nic_addr, uint32_t length, bool generate_event,
                                  spin_cmd_t *xfer) {
    return pspin_issue((uint32_t)host_addr, (uint32_t)(host_addr >> 32), nic_addr, length, 1,
                       PSPIN_HOST_DMA << 1 | generate_event, xfer);
}
PSPIN_INLINE int spin_dma_from_host(uint64_t host_addr, uint32_t nic_addr, uint32_t length, bool generate_event,
                                    spin_cmd_t *xfer) {
    return pspin_issue((uint32_t)host_addr, (uint32_t)(host_addr >> 32), nic_addr, length, 0,
                       PSPIN_HOST_DMA << 1 | generate_event, xfer);
}

/* Writes 8 bytes to host memory. */
PSPIN_INLINE int spin_write_to_host(uint64_t host_addr, uint64_t user_data, spin_cmd_t *xfer) {
    return pspin_issue((uint32_t)host_addr, (uint32_t)(host_addr >> 32), 8 << 1 | 1, (uint32_t)user_data,
                       (uint32_t)(user_data >> 32), PSPIN_HOST_WRITE << 1, xfer);
}
#define spin_host_write spin_write_to_host

/* Wait until a command is done, or test whether it is done. */
PSPIN_INLINE int spin_cmd_wait(spin_cmd_t handle) {
    MMIO_WRITE(CMD_WAIT, handle);
    __asm__ volatile("" ::: "memory");
    return SPIN_OK;
}
PSPIN_INLINE int spin_cmd_test(spin_cmd_t handle, bool *completed) {
    MMIO_WRITE(CMD_TEST, handle);
    *completed = MMIO_READ(CMD_TEST) == 1;
    __asm__ volatile("" ::: "memory");
    return SPIN_OK;
}

/* Copies on the card by the DMA engine of the core's cluster, which also copies packets. The direction and the options
 * are arguments of PsPIN without an effect, because the addresses select the memories. The bytes are copied at once,
 * and the copy is done after its time. */
typedef dma_t spin_dma_t;  /* the number of a copy in flight */

PSPIN_INLINE int spin_dma(void *source, void *dest, size_t size, int direction, int options, spin_dma_t *xfer) {
    (void)direction;
    (void)options;
    if (size == 0) return SPIN_FAIL;
    *xfer = spin__memcpy_nonblk(source, dest, (uint32_t)size);
    return SPIN_OK;
}
PSPIN_INLINE int spin_dma_wait(spin_dma_t xfer) {
    spin__wait_for_tf_completion(xfer);
    return SPIN_OK;
}
PSPIN_INLINE int spin_dma_test(spin_dma_t xfer, uint32_t *completed) {
    *completed = spin__tf_completed(xfer);
    return SPIN_OK;
}

/* Locks. */
typedef futex_t spin_lock_t;

PSPIN_INLINE int spin_lock_init(spin_lock_t *lock) {
    futex_init(lock);
    return SPIN_OK;
}
/* Returns 1 if the lock was free and is taken now, or 0 if it was not free. */
PSPIN_INLINE int spin_lock_try_lock(spin_lock_t *lock) { return futex_try_lock(lock); }
PSPIN_INLINE int spin_lock_lock(spin_lock_t *lock) {
    futex_lock_s(lock);
    return SPIN_OK;
}
PSPIN_INLINE int spin_lock_unlock(spin_lock_t *lock) {
    futex_unlock(lock);
    return SPIN_OK;
}

/* Locks of several readers or one writer, as in PsPIN. The first reader takes the lock, and the last reader releases
 * it. A reader that finds another reader counted does not wait until that reader has the lock. */
typedef struct spin_rw_lock {
    spin_lock_t glock;
    volatile int32_t num_readers;
} spin_rw_lock_t;

/* This function is nicety's own. Handlers of PsPIN write zeros instead. */
PSPIN_INLINE int spin_rw_lock_init(spin_rw_lock_t *rwlock) {
    rwlock->num_readers = 0;
    return spin_lock_init(&rwlock->glock);
}
PSPIN_INLINE int spin_rw_lock_r_lock(spin_rw_lock_t *rwlock) {
    return amo_add(&rwlock->num_readers, 1) == 0 ? spin_lock_lock(&rwlock->glock) : SPIN_OK;
}
PSPIN_INLINE int spin_rw_lock_r_unlock(spin_rw_lock_t *rwlock) {
    return amo_add(&rwlock->num_readers, -1) == 1 ? spin_lock_unlock(&rwlock->glock) : SPIN_OK;
}
PSPIN_INLINE int spin_rw_lock_w_lock(spin_rw_lock_t *rwlock) { return spin_lock_lock(&rwlock->glock); }
PSPIN_INLINE int spin_rw_lock_w_unlock(spin_rw_lock_t *rwlock) { return spin_lock_unlock(&rwlock->glock); }

#endif
