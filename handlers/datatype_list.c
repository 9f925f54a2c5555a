/* Scattered receive. A message has blocks of any lengths. The blocks go to any places of host memory, by a list in HPU
 * memory. */
#include <datatype.h>

/* Returns the block of the list that contains the byte at an offset of the message. */
static const block_t *find(const list_t *list, ptl_size_t offset) {
    uint32_t low = 0, high = list->blocks;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (list->block[middle].message_offset <= offset)
            low = middle;
        else
            high = middle;
    }
    return &list->block[low];
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
    const block_t *block = find(state, p.offset);
    for (ptl_size_t done = 0; done < p.length; block++) {
        /* A block ends at the start of the next block. One more entry ends the list. */
        const ptl_size_t at = p.offset + done;
        const ptl_size_t left = p.length - done, rest = block[1].message_offset - at;
        const ptl_size_t piece = left < rest ? left : rest;
        const ptl_size_t to = block->host_offset + (at - block->message_offset);
        if (PtlHandlerDMAToHostB(p.base + done, to, piece, PTL_ME_HOST_MEM) != PTL_OK)
            return FAIL;
        done += piece;
    }
    return SUCCESS;
}
