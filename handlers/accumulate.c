/* Accumulate: an arriving array of complex numbers is multiplied into an array in host memory, packet by packet. */
#include <nicety.h>

typedef struct {
    float re, im;
} complex_t;

/* Number of complex numbers in host memory that are fetched together. While they are multiplied, the next numbers
 * arrive over the bus. Two lots of 1 KiB each leave half of a stack of 4 KiB. */
#define LOT 128

static void multiply(complex_t *restrict in, const complex_t *restrict there, ptl_size_t count) {
    for (ptl_size_t i = 0; i < count; i++) {
        complex_t a = in[i], b = there[i];
        in[i].re = a.re * b.re - a.im * b.im;
        in[i].im = a.re * b.im + a.im * b.re;
    }
}

/* Fetches the lot that begins with number `first`, if there is one, into its half of `there`. */
static int fetch(const ptl_payload_t *p, ptl_size_t first, complex_t there[2][LOT], ptl_dma_h fetching[2]) {
    const ptl_size_t bytes = first * sizeof(complex_t), lot = first / LOT % 2;
    if (bytes >= p->length)
        return PTL_OK;
    const ptl_size_t left = p->length - bytes, most = sizeof there[lot];
    return PtlHandlerDMAFromHostNB(p->offset + bytes, there[lot], left < most ? left : most, PTL_ME_HOST_MEM,
                                   &fetching[lot]);
}

/* Packets contain whole numbers. The handler may change the bytes of a packet, so the products replace the arrived
 * numbers. */
__handler int payload_handler(const ptl_payload_t p, void *state) {
    (void)state;
    complex_t *in = (complex_t *)p.base, there[2][LOT];
    const ptl_size_t numbers = p.length / sizeof(complex_t);
    ptl_dma_h fetching[2];
    if (fetch(&p, 0, there, fetching) != PTL_OK)
        return FAIL;
    for (ptl_size_t first = 0; first < numbers; first += LOT) {
        const ptl_size_t lot = first / LOT % 2, left = numbers - first;
        if (fetch(&p, first + LOT, there, fetching) != PTL_OK || PtlHandlerDMAWait(fetching[lot]) != PTL_OK)
            return FAIL;
        multiply(in + first, there[lot], left < LOT ? left : LOT);
    }
    return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM) == PTL_OK ? SUCCESS : FAIL;
}
