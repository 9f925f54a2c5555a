/* A finite impulse response filter over a tone, in floating point. */
#include "board.h"
#include <float.h>
#include <math.h>
#include <stdio.h>

#define TAPS 15
#define SAMPLES 96

const char *const name = "filter";
static double taps[TAPS], samples[SAMPLES], filtered[SAMPLES - TAPS + 1];
static float narrow;

void initialise(void) {
    for (int tap = 0; tap < TAPS; tap++) {
        double at = tap - (TAPS - 1) / 2.0;
        taps[tap] = (at == 0 ? 0.25 : sin(M_PI * at / 4) / (M_PI * at)) * (0.5 - 0.5 * cos(2 * M_PI * (tap + 1) / (TAPS + 1)));
    }
    for (int at = 0; at < SAMPLES; at++) samples[at] = sin(2 * M_PI * at / 32) + 0.5 * sin(2 * M_PI * at * 7 / 16);
}

int work(int rounds) {
    const int last = SAMPLES - TAPS;
    for (; rounds > 0; rounds--) {
        narrow = 0;
        for (int at = 0; at <= last; at++) {
            double sum = 0;
            for (int tap = 0; tap < TAPS; tap++) sum += taps[tap] * samples[at + tap];
            filtered[at] = sum;
            narrow += (float)sum * (float)sum;
        }
    }
    return last + 1;
}

bool verify(int result) {
    double squares = 0, largest = -DBL_MAX;
    for (int at = 0; at < result; at++) {
        squares += filtered[at] * filtered[at];
        largest = fmax(largest, filtered[at]);
    }
    double effective = sqrt(squares / result);
    printf("%.9f %.6e %g\n", effective, largest, round(effective * 100) / 100);
    return fabsf(narrow - (float)squares) < 1e-4f && largest < 1.05;
}
