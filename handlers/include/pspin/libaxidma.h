/* libaxidma.h: the registers of the DMA engine of a core's cluster. A load of a transfer's number starts the transfer.
 * Numbers increase by one with each transfer of the engine, and transfers end in this order. Addresses have 32 bits,
 * and the upper words are unused. */
#ifndef PSPIN_LIBAXIDMA_H
#define PSPIN_LIBAXIDMA_H

#include <stdint.h>

typedef struct {
    uint32_t src_addr_low;
    uint32_t src_addr_high;
    uint32_t dst_addr_low;
    uint32_t dst_addr_high;
    uint32_t num_bytes;
    volatile uint32_t tf_id __attribute__((aligned(8)));   /* number of the transfer that the load starts */
    volatile uint32_t done_id __attribute__((aligned(8))); /* number of the last transfer that has ended */
    volatile uint32_t config __attribute__((aligned(8)));
} axidma__dma_conf_t;

#define AXIDMA_INLINE static inline __attribute__((always_inline, unused))
/* Stores to registers. The compiler keeps their order, and omits none. */
#define AXIDMA_SET(field, value) (*(volatile uint32_t *)&axidma__dma_conf->field = (uint32_t)(uintptr_t)(value))

AXIDMA_INLINE void axidma__set_seg_addr(axidma__dma_conf_t *axidma__dma_conf, void *src_seg_addr, void *dst_seg_addr) {
    AXIDMA_SET(src_addr_high, src_seg_addr);
    AXIDMA_SET(dst_addr_high, dst_seg_addr);
}
AXIDMA_INLINE void axidma__clear_seg_addr(axidma__dma_conf_t *axidma__dma_conf) {
    axidma__set_seg_addr(axidma__dma_conf, 0, 0);
}

AXIDMA_INLINE uint32_t axidma__launch_oned(axidma__dma_conf_t *axidma__dma_conf, void *src_addr, void *dst_addr,
                                           uint32_t num_bytes) {
    AXIDMA_SET(src_addr_low, src_addr);
    AXIDMA_SET(dst_addr_low, dst_addr);
    AXIDMA_SET(num_bytes, num_bytes);
    __asm__ volatile("" ::: "memory");
    return axidma__dma_conf->tf_id;
}
AXIDMA_INLINE uint32_t axidma__launch_oned_64(axidma__dma_conf_t *axidma__dma_conf, void *src_addr_low, void *src_addr_high,
                                              void *dst_addr_low, void *dst_addr_high, uint32_t num_bytes) {
    axidma__set_seg_addr(axidma__dma_conf, src_addr_high, dst_addr_high);
    return axidma__launch_oned(axidma__dma_conf, src_addr_low, dst_addr_low, num_bytes);
}

AXIDMA_INLINE uint32_t axidma__read_completed_id(axidma__dma_conf_t *axidma__dma_conf) { return axidma__dma_conf->done_id; }
AXIDMA_INLINE char axidma__tf_completed(axidma__dma_conf_t *axidma__dma_conf, uint32_t tf_id) {
    char completed = tf_id <= axidma__read_completed_id(axidma__dma_conf);
    __asm__ volatile("" ::: "memory");
    return completed;
}
AXIDMA_INLINE void axidma__wait_for_tf_completion(axidma__dma_conf_t *axidma__dma_conf, uint32_t tf_id) {
    while (!axidma__tf_completed(axidma__dma_conf, tf_id)) __asm__ volatile("nop");
}

AXIDMA_INLINE uint32_t axidma__memcpy_nonblk(axidma__dma_conf_t *axidma__dma_conf, void *src_addr, void *dst_addr,
                                             uint32_t num_bytes) {
    return axidma__launch_oned(axidma__dma_conf, src_addr, dst_addr, num_bytes);
}
AXIDMA_INLINE void axidma__memcpy(axidma__dma_conf_t *axidma__dma_conf, void *src_addr, void *dst_addr, uint32_t num_bytes) {
    axidma__wait_for_tf_completion(axidma__dma_conf, axidma__launch_oned(axidma__dma_conf, src_addr, dst_addr, num_bytes));
}

#endif
