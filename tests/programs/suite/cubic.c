/* Roots of polynomials of degree three, with angles and with powers. */
#include "board.h"
#include <math.h>
#include <stdio.h>

const char *const name = "cubic";
static const double polynomials[][4] = {
    {1, -10.5, 32, -30}, {1, -4.5, 17, -30}, {1, -3.5, 22, -31}, {1, -13.7, 1, -35}, {3, 12.34, 5, 12}, {-8, -67.89, 6, -23.6},
};
#define POLYNOMIALS (sizeof polynomials / sizeof *polynomials)
static double roots[POLYNOMIALS][3];
static int counts[POLYNOMIALS];

static int solve(const double of[4], double to[3]) {
    long double a = (long double)of[1] / of[0], b = (long double)of[2] / of[0], c = (long double)of[3] / of[0];
    double q = (double)((a * a - 3 * b) / 9), r = (double)((2 * a * a * a - 9 * a * b + 27 * c) / 54);
    double shift = (double)(a / 3);
    if (r * r <= q * q * q) {
        double angle = acos(r / sqrt(q * q * q));
        for (int at = 0; at < 3; at++) to[at] = -2 * sqrt(q) * cos((angle + 2 * M_PI * at) / 3) - shift;
        return 3;
    }
    double size = pow(sqrt(r * r - q * q * q) + fabs(r), 1 / 3.0);
    to[0] = copysign(size + q / size, -r) - shift;
    return 1;
}

void initialise(void) {}

int work(int rounds) {
    int found = 0;
    for (; rounds > 0; rounds--) {
        found = 0;
        for (unsigned at = 0; at < POLYNOMIALS; at++) found += counts[at] = solve(polynomials[at], roots[at]);
    }
    return found;
}

bool verify(int result) {
    for (unsigned at = 0; at < POLYNOMIALS; at++) {
        const double *of = polynomials[at];
        for (int root = 0; root < counts[at]; root++) {
            double x = roots[at][root];
            if (fabs(((of[0] * x + of[1]) * x + of[2]) * x + of[3]) > 1e-9 * (1 + fabs(of[0] * x * x * x))) return false;
            printf("%s%.8f", root ? " " : "", x);
        }
        putchar('\n');
    }
    return result >= (int)POLYNOMIALS;
}
