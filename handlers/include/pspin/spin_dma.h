/* spin_dma.h: the addresses of the clusters' DMA engines, and copies by the engines. The function spin_dma and similar
 * functions are in handler.h. */
#ifndef PSPIN_SPIN_DMA_H
#define PSPIN_SPIN_DMA_H

#include <hal/pulp.h>
#include <libaxidma.h>

#define CLUSTER_BASE 0x10000000
#define DMA_OFFSET 0x1800
/* The engine of the core's own cluster. */
#define PRIVATE_DMA_BASE (ARCHI_DEMUX_PERIPHERALS_ADDR + ARCHI_MCHAN_DEMUX_OFFSET)
/* The engines of all clusters. Here an access to this range stops the handler. The spelling is PsPIN's. */
#define PUPLIC_DMA_BASE (CLUSTER_BASE + ARCHI_CLUSTER_PERIPHERALS_OFFSET + DMA_OFFSET)

#define SPIN_PRIVATE_DMA ((axidma__dma_conf_t *)(PRIVATE_DMA_BASE))
#define SPIN_PUBLIC_DMA(cluster) ((axidma__dma_conf_t *)(PUPLIC_DMA_BASE + (cluster)*ARCHI_CLUSTER_SIZE))

AXIDMA_INLINE uint32_t spin__memcpy_nonblk(void *src_addr, void *dst_addr, uint32_t num_bytes) {
    return axidma__memcpy_nonblk(SPIN_PRIVATE_DMA, src_addr, dst_addr, num_bytes);
}
AXIDMA_INLINE void spin__memcpy(void *src_addr, void *dst_addr, uint32_t num_bytes) {
    axidma__memcpy(SPIN_PRIVATE_DMA, src_addr, dst_addr, num_bytes);
}
AXIDMA_INLINE void spin__wait_for_tf_completion(uint32_t tf_id) {
    axidma__wait_for_tf_completion(SPIN_PRIVATE_DMA, tf_id);
}
AXIDMA_INLINE char spin__tf_completed(uint32_t tf_id) { return axidma__tf_completed(SPIN_PRIVATE_DMA, tf_id); }

AXIDMA_INLINE uint32_t spin__public_memcpy_nonblk(void *src_addr, void *dst_addr, uint32_t num_bytes, uint32_t cluster_id) {
    return axidma__memcpy_nonblk(SPIN_PUBLIC_DMA(cluster_id), src_addr, dst_addr, num_bytes);
}
AXIDMA_INLINE void spin__public_memcpy(void *src_addr, void *dst_addr, uint32_t num_bytes, uint32_t cluster_id) {
    axidma__memcpy(SPIN_PUBLIC_DMA(cluster_id), src_addr, dst_addr, num_bytes);
}
AXIDMA_INLINE void spin__public_wait_for_tf_completion(uint32_t tf_id, uint32_t cluster_id) {
    axidma__wait_for_tf_completion(SPIN_PUBLIC_DMA(cluster_id), tf_id);
}
AXIDMA_INLINE char spin__public_tf_completed(uint32_t tf_id, uint32_t cluster_id) {
    return axidma__tf_completed(SPIN_PUBLIC_DMA(cluster_id), tf_id);
}

#endif
