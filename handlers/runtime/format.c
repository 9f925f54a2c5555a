/* format.c: the conversions of printf, and the functions that print to memory. Linked into programs that call one of
 * these functions. */
#include "format.h"
#include "decimal.h"
#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A program may define its own functions instead. */
#pragma weak snprintf
#pragma weak vsnprintf
#pragma weak sprintf
#pragma weak vsprintf

typedef struct {
    nicety_put *put;
    void *to;
    unsigned count;
    bool failed;
} output;

typedef struct {
    bool left, plus, space, alternate, zero;
    int width;
    int precision; /* below zero without a precision */
    int size;      /* bytes of an integer */
    bool wide;     /* long double */
} conversion;

static void put(output *out, const char *text, size_t length) {
    if (length == 0 || out->failed) return;
    out->failed = length > (size_t)INT_MAX - out->count || !out->put(out->to, text, length);
    out->count += length;
}

static void repeat(output *out, char character, int times) {
    char characters[16];
    memset(characters, character, sizeof characters);
    for (; times > 0 && !out->failed; times -= (int)sizeof characters) {
        put(out, characters, times < (int)sizeof characters ? (size_t)times : sizeof characters);
    }
}

/* Writes padding and sign before `length` characters. Returns the padding that must follow on the right. */
static int lead(output *out, const conversion *as, const char *sign, int length, bool zeros) {
    int padding = as->width - (int)strlen(sign) - length;
    if (!as->left && !zeros) repeat(out, ' ', padding);
    put(out, sign, strlen(sign));
    if (!as->left && zeros) repeat(out, '0', padding);
    return as->left ? padding : 0;
}

static const char *sign_of(const conversion *as, bool negative) {
    return negative ? "-" : as->plus ? "+" : as->space ? " " : "";
}

static void put_integer(output *out, conversion *as, uint64_t value, unsigned base, bool capitals, const char *sign) {
    char digits[22], *first = digits + sizeof digits;
    /* The second loop has half the instructions, and is sufficient for a value that fits a word. */
    for (; value > UINT32_MAX; value /= base) *--first = "0123456789abcdef"[value % base];
    for (uint32_t rest = (uint32_t)value; rest; rest /= base) *--first = "0123456789abcdef"[rest % base];
    int length = (int)(digits + sizeof digits - first);
    if (capitals) {
        for (int at = 0; at < length; at++) first[at] = (char)toupper(first[at]);
    }
    int least = as->precision < 0 ? 1 : as->precision;
    if (base == 8 && as->alternate && least <= length) least = length + 1;
    int zeros = least > length ? least - length : 0;
    int behind = lead(out, as, sign, zeros + length, as->zero && as->precision < 0);
    repeat(out, '0', zeros);
    put(out, first, (size_t)length);
    repeat(out, ' ', behind);
}

static void put_text(output *out, const conversion *as, const char *text, size_t length) {
    int behind = lead(out, as, "", (int)length, false);
    put(out, text, length);
    repeat(out, ' ', behind);
}

/* Writes the digits at the places `first` to `last`. Place 0 is the units. */
static void put_digits(output *out, const decimal *number, int first, int last) {
    char digits[16];
    while (first <= last && !out->failed) {
        size_t count = 0;
        while (first <= last && count < sizeof digits) digits[count++] = (char)('0' + digit_at(number, first++));
        put(out, digits, count);
    }
}

static __attribute__((noinline)) void put_double(output *out, const conversion *as, uint64_t bits, char letter) {
    const char *sign = sign_of(as, bits >> 63);
    bool capitals = isupper(letter);
    char style = (char)tolower(letter);
    if ((bits >> 52 & 2047) == 2047) {
        bool nan = bits << 12;
        const char *text = nan ? capitals ? "NAN" : "nan" : capitals ? "INF" : "inf";
        int behind = lead(out, as, sign, 3, false);
        put(out, text, 3);
        repeat(out, ' ', behind);
        return;
    }

    decimal number;
    make_decimal(&number, bits);
    int precision = as->precision < 0 ? 6 : as->precision, last;
    if (style == 'f') {
        last = round_decimal(&number, precision);
    } else {
        if (style == 'g' && precision > 0) precision--; /* number of digits after the first */
        int first = first_digit(&number);
        round_decimal(&number, first > INT_MAX - precision ? INT_MAX : first + precision);
        first = first_digit(&number); /* 9.99 has become 10.0 */
        last = first > INT_MAX - precision ? INT_MAX : first + precision;
        bool strip = style == 'g' && !as->alternate;
        if (style == 'g') style = first <= 4 && -first <= precision ? 'f' : 'e';
        if (strip) {
            int end = last_digit(&number), units = style == 'f' ? 0 : first;
            if (last > end) last = end < units ? units : end;
        }
    }

    int first = first_digit(&number);
    char exponent[6];
    size_t exponent_length = 0;
    if (style == 'e') {
        unsigned size = (unsigned)(first > 0 ? first : -first);
        exponent[exponent_length++] = capitals ? 'E' : 'e';
        exponent[exponent_length++] = first > 0 ? '-' : '+';
        if (size >= 100) exponent[exponent_length++] = (char)('0' + size / 100);
        exponent[exponent_length++] = (char)('0' + size / 10 % 10);
        exponent[exponent_length++] = (char)('0' + size % 10);
    }
    /* The style 'e' has one digit before the point, and 'f' at least one. */
    int units = style == 'e' ? first : 0;
    if (style == 'f' && first > 0) first = 0;
    int decimals = last - units;
    bool point = decimals > 0 || as->alternate;
    int length = units - first + 1 + point + (int)exponent_length;
    length = decimals > INT_MAX - length ? INT_MAX : length + decimals;
    int behind = lead(out, as, sign, length, as->zero);
    put_digits(out, &number, first, units);
    put(out, ".", point);
    put_digits(out, &number, units + 1, last);
    put(out, exponent, exponent_length);
    repeat(out, ' ', behind);
}

static int number_in(const char **at) {
    int number = 0;
    for (; isdigit(**at); ++*at) {
        int digit = **at - '0';
        number = number > (INT_MAX - digit) / 10 ? INT_MAX : number * 10 + digit;
    }
    return number;
}

typedef struct {
    va_list list;
} argument_list;

/* Reads flags, width, precision and length, up to the letter. */
static const char *read_conversion(const char *at, conversion *as, argument_list *arguments) {
    *as = (conversion){.precision = -1, .size = 4};
    for (;; at++) {
        if (*at == '-') as->left = true;
        else if (*at == '+') as->plus = true;
        else if (*at == ' ') as->space = true;
        else if (*at == '#') as->alternate = true;
        else if (*at == '0') as->zero = true;
        else break;
    }
    if (*at == '*') {
        at++;
        as->width = va_arg(arguments->list, int);
        if (as->width < 0) {
            as->left = true;
            as->width = as->width == INT_MIN ? INT_MAX : -as->width;
        }
    } else {
        as->width = number_in(&at);
    }
    if (*at == '.') {
        at++;
        if (*at == '*') {
            at++;
            as->precision = va_arg(arguments->list, int);
        } else {
            as->precision = number_in(&at);
        }
    }
    if (*at == 'h') {
        as->size = 2;
        if (*++at == 'h') {
            as->size = 1;
            at++;
        }
    } else if (*at == 'l') {
        as->size = sizeof(long);
        if (*++at == 'l') {
            as->size = 8;
            at++;
        }
    } else if (*at == 'j') {
        as->size = 8;
        at++;
    } else if (*at == 'z' || *at == 't') {
        as->size = sizeof(size_t);
        at++;
    } else if (*at == 'L') {
        as->wide = true;
        at++;
    }
    return at;
}

static uint64_t unsigned_of(const conversion *as, argument_list *arguments) {
    if (as->size == 8) return va_arg(arguments->list, unsigned long long);
    unsigned value = va_arg(arguments->list, unsigned);
    return as->size == 4 ? value : as->size == 2 ? (unsigned short)value : (unsigned char)value;
}

static void put_signed(output *out, conversion *as, uint64_t value) {
    int unused = 64 - 8 * as->size;
    bool negative = value >> (63 - unused) & 1;
    if (negative) value = -(value << unused) >> unused;
    put_integer(out, as, value, 10, false, sign_of(as, negative));
}

/* Writes one conversion. Returns false if the conversion is unknown. */
static bool convert(output *out, conversion *as, char letter, argument_list *arguments) {
    uint64_t value;
    switch (letter) {
    case '%':
        put(out, "%", 1);
        return true;
    case 'd':
    case 'i':
        put_signed(out, as, unsigned_of(as, arguments));
        return true;
    case 'u':
        put_integer(out, as, unsigned_of(as, arguments), 10, false, "");
        return true;
    case 'o':
        put_integer(out, as, unsigned_of(as, arguments), 8, false, "");
        return true;
    case 'x':
    case 'X':
        value = unsigned_of(as, arguments);
        put_integer(out, as, value, 16, letter == 'X', !as->alternate || !value ? "" : letter == 'X' ? "0X" : "0x");
        return true;
    case 'p':
        put_integer(out, as, (uintptr_t)va_arg(arguments->list, void *), 16, false, "0x");
        return true;
    case 'c': {
        char character = (char)va_arg(arguments->list, int);
        put_text(out, as, &character, 1);
        return true;
    }
    case 's': {
        const char *text = va_arg(arguments->list, const char *);
        put_text(out, as, text, as->precision < 0 ? strlen(text) : strnlen(text, (size_t)as->precision));
        return true;
    }
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G': {
        if (as->wide) {
            (void)va_arg(arguments->list, long double);
            return false;
        }
        union {
            double value;
            uint64_t bits;
        } number = {va_arg(arguments->list, double)};
        put_double(out, as, number.bits, letter);
        return true;
    }
    default:
        return false;
    }
}

int nicety_format(nicety_put *taker, void *to, const char *format, va_list list) {
    output out = {.put = taker, .to = to};
    argument_list arguments;
    va_copy(arguments.list, list);
    while (*format && !out.failed) {
        const char *start = format;
        while (*format && *format != '%') format++;
        put(&out, start, (size_t)(format - start));
        if (!*format) break;
        start = format;
        conversion as;
        format = read_conversion(format + 1, &as, &arguments);
        bool known = convert(&out, &as, *format, &arguments);
        if (*format) format++;
        if (!known) put(&out, start, (size_t)(format - start));
    }
    va_end(arguments.list);
    return out.failed ? -1 : (int)out.count;
}

typedef struct {
    char *to;
    size_t room; /* room in bytes, including the zero at the end */
} memory;

static _Bool put_in_memory(void *to, const char *text, size_t length) {
    memory *into = to;
    size_t fits = length < into->room ? length : into->room ? into->room - 1 : 0;
    memcpy(into->to, text, fits);
    into->to += fits;
    into->room -= fits;
    return true;
}

int vsnprintf(char *restrict to, size_t size, const char *restrict format, va_list arguments) {
    memory into = {to, size};
    int length = nicety_format(put_in_memory, &into, format, arguments);
    if (size) *into.to = 0;
    return length;
}

int snprintf(char *restrict to, size_t size, const char *restrict format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(to, size, format, arguments);
    va_end(arguments);
    return length;
}

int vsprintf(char *restrict to, const char *restrict format, va_list arguments) {
    return vsnprintf(to, INT_MAX, format, arguments);
}

int sprintf(char *restrict to, const char *restrict format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsprintf(to, format, arguments);
    va_end(arguments);
    return length;
}
