/* decimal.h: a double as an exact decimal number, so that printf rounds only once. A digit is named by its place. Place
 * 0 is the units, 1 is the first digit after the point, and -1 the tens. */
#ifndef NICETY_RUNTIME_DECIMAL_H
#define NICETY_RUNTIME_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

/* Words of nine digits. 2^1024 has 309 digits before the point, and 2^-1074 has 1074 digits after the point. */
#define BASE 1000000000u
#define DIGITS 9
#define UNITS 36
#define WORDS (UNITS + 1 + 1074 / DIGITS + 1)
#define DIGITS_BEHIND_POINT 1074

typedef struct {
    uint32_t words[WORDS];
    int first, last; /* the words before and after are zero */
} decimal;

static const uint32_t powers_of_ten[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/* Return the word that contains the digit at a place, and the value of a one at this place in the word. */
static inline int word_of(int place) { return place > 0 ? UNITS + (place + DIGITS - 1) / DIGITS : UNITS - -place / DIGITS; }
static inline uint32_t weight_of(int place) {
    return powers_of_ten[place > 0 ? (DIGITS - place % DIGITS) % DIGITS : -place % DIGITS];
}

static inline unsigned digit_at(const decimal *number, int place) {
    int word = word_of(place);
    if (word < number->first || word > number->last) return 0;
    return number->words[word] / weight_of(place) % 10;
}

/* Computes the magnitude of the finite double with these bits. */
static void make_decimal(decimal *number, uint64_t bits) {
    int exponent = (int)(bits >> 52 & 2047);
    uint64_t significand = bits & (((uint64_t)1 << 52) - 1);
    if (exponent) significand |= (uint64_t)1 << 52;
    exponent -= exponent ? 1075 : 1074;
    for (int word = 0; word < WORDS; word++) number->words[word] = 0;
    number->words[UNITS] = (uint32_t)(significand % BASE);
    number->words[UNITS - 1] = (uint32_t)(significand / BASE);
    number->first = UNITS - 1;
    number->last = UNITS;
    if (!significand) return;
    for (; exponent > 0; exponent -= exponent < 29 ? exponent : 29) {
        int by = exponent < 29 ? exponent : 29;
        uint32_t carry = 0;
        for (int word = number->last; word >= number->first; word--) {
            uint64_t product = ((uint64_t)number->words[word] << by) + carry;
            carry = (uint32_t)(product / BASE);
            number->words[word] = (uint32_t)(product % BASE);
        }
        if (carry) number->words[--number->first] = carry;
    }
    /* 10^9 is a multiple of 2^9. So the bits that are shifted out of a word are a whole number in the next word. */
    for (; exponent < 0; exponent += exponent > -DIGITS ? -exponent : DIGITS) {
        int by = exponent > -DIGITS ? -exponent : DIGITS;
        uint32_t out = 0;
        for (int word = number->first; word <= number->last; word++) {
            uint32_t lost = number->words[word] & ((1u << by) - 1);
            number->words[word] = (number->words[word] >> by) + out;
            out = (BASE >> by) * lost;
        }
        if (out) number->words[++number->last] = out;
        if (!number->words[number->first] && number->first < number->last) number->first++;
    }
}

static bool zero_behind(const decimal *number, int word) {
    for (word = word < number->first ? number->first : word; word <= number->last; word++) {
        if (number->words[word]) return false;
    }
    return true;
}

/* Rounds to the nearest number without digits after `place`, ties to even. Returns `place`. */
static int round_decimal(decimal *number, int place) {
    if (place > DIGITS_BEHIND_POINT) return place;
    int word = word_of(place);
    if (word > number->last) return place;
    uint32_t one = weight_of(place), rest, half;
    bool exact; /* there is nothing after the rest */
    if (one > 1) {
        rest = number->words[word] % one;
        half = one / 2;
        exact = zero_behind(number, word + 1);
    } else {
        rest = word < number->last ? number->words[word + 1] : 0;
        half = BASE / 2;
        exact = zero_behind(number, word + 2);
    }
    bool odd = number->words[word] / one & 1;
    bool up = rest > half || (rest == half && (!exact || odd));
    number->words[word] -= number->words[word] % one;
    for (int behind = word + 1; behind <= number->last; behind++) number->words[behind] = 0;
    if (word < number->first) number->first = word;
    number->last = word;
    if (up) {
        number->words[word] += one;
        for (; number->words[word] >= BASE; word--) {
            number->words[word] -= BASE;
            number->words[word - 1]++;
            if (word - 1 < number->first) number->first = word - 1;
        }
    }
    return place;
}

/* Returns the place of the first digit that is not 0, or that of the units if all digits are 0. */
static int first_digit(const decimal *number) {
    for (int word = number->first; word <= number->last; word++) {
        if (!number->words[word]) continue;
        int place = (word - UNITS) * DIGITS;
        for (int digit = DIGITS - 1; digit > 0; digit--) {
            if (number->words[word] >= powers_of_ten[digit]) return place - digit;
        }
        return place;
    }
    return 0;
}

/* Returns the place of the last digit that is not 0, or that of the units if all digits are 0. */
static int last_digit(const decimal *number) {
    for (int word = number->last; word >= number->first; word--) {
        if (!number->words[word]) continue;
        int place = (word - UNITS) * DIGITS;
        for (uint32_t value = number->words[word]; value % 10 == 0; value /= 10) place--;
        return place;
    }
    return 0;
}

#endif
