/* A sink that stores. Every arriving message is deposited in host memory, and its completion is handled. */
#include <nicety.h>

__handler int header_handler(const ptl_header_t h, void *state) {
    (void)h, (void)state;
    return PROCEED;
}

__handler int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
    (void)dropped_bytes, (void)flow_control_triggered, (void)state;
    return SUCCESS;
}
