/* fpspin.c: FPsPIN's runtime for handlers and the host. See pspin.h and spin_host.h of this interface. Linked into
 * programs that use the runtime. */
#include <stdint.h>

/* The answers for 16 cores, and 16 counters. */
volatile uint64_t __host_data[16 + 16] __attribute__((aligned(8)));
volatile uint8_t pspin_dma_idx[16];

/* The heap of umm_malloc, which an example includes. As in FPsPIN's runtime, there is no heap. */
void *UMM_MALLOC_CFG_HEAP_ADDR;
uint32_t UMM_MALLOC_CFG_HEAP_SIZE;
