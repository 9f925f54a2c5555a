// Answers a UDP datagram over IPv4 from the card, with stations, addresses and ports swapped. Both checksums stay
// correct, because they are sums of the same words in another order.
#include <frame.h>

__handler int frame_handler(const frame_t *frame, void *state) {
    (void)state;
    uint8_t *data = frame->data;
    if (frame->length < 42)
        return FRAME_HOST;
    frame_swap(data, data + 6, 6);
    frame_swap(data + 26, data + 30, 4);
    frame_swap(data + 34, data + 36, 2);
    return FRAME_WIRE;
}
