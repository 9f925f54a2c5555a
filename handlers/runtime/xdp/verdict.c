/* verdict.c: the function for programs that are a card's frame handler themselves. Their code has the usual verdicts. */
#include "verdict.h"

int nicety_xdp_verdict(uint32_t verdict) { return destination_of(verdict); }
