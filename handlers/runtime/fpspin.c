/* fpspin.c: FPsPIN's runtime for handlers and the host; see pspin.h and spin_host.h of that interface. Linked into
 * programs that use it. */
#include <stdint.h>

/* An answer for each of 16 cores, and 16 counters. */
volatile uint64_t __host_data[16 + 16] __attribute__((aligned(8)));
volatile uint8_t pspin_dma_idx[16];

/* The heap of umm_malloc, which an example includes. FPsPIN's runtime does not set one up either. */
void *UMM_MALLOC_CFG_HEAP_ADDR;
uint32_t UMM_MALLOC_CFG_HEAP_SIZE;
