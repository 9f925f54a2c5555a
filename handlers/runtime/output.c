/* output.c: the printing functions of stdio.h, through the system call that `nicety hpu run` serves. Linked into
 * programs that call one of these functions. */
#include "format.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A program may define its own functions instead. */
#pragma weak printf
#pragma weak vprintf
#pragma weak fprintf
#pragma weak vfprintf
#pragma weak putchar
#pragma weak puts
#pragma weak fputc
#pragma weak putc
#pragma weak fputs
#pragma weak fwrite
#pragma weak fflush
#pragma weak perror

static size_t write_bytes(FILE *stream, const void *bytes, size_t count) {
    register intptr_t a0 __asm__("a0") = (intptr_t)stream;
    register const void *a1 __asm__("a1") = bytes;
    register size_t a2 __asm__("a2") = count;
    register int a7 __asm__("a7") = 64;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
    return a0 < 0 ? 0 : (size_t)a0;
}

/* Buffered text. With the buffer, there is one system call per line, and not one per conversion. */
typedef struct {
    FILE *stream;
    size_t held;
    char bytes[BUFSIZ];
} pending;

static _Bool flush(pending *text) {
    size_t held = text->held;
    text->held = 0;
    return held == 0 || write_bytes(text->stream, text->bytes, held) == held;
}

static _Bool put_pending(void *to, const char *text, size_t length) {
    pending *into = to;
    if (length > BUFSIZ - into->held && !flush(into)) return 0;
    if (length > BUFSIZ) return write_bytes(into->stream, text, length) == length;
    memcpy(into->bytes + into->held, text, length);
    into->held += length;
    return 1;
}

int vfprintf(FILE *restrict stream, const char *restrict format, va_list arguments) {
    pending text;
    text.stream = stream;
    text.held = 0;
    int length = nicety_format(put_pending, &text, format, arguments);
    return flush(&text) ? length : -1;
}

int vprintf(const char *restrict format, va_list arguments) { return vfprintf(stdout, format, arguments); }

int fprintf(FILE *restrict stream, const char *restrict format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vfprintf(stream, format, arguments);
    va_end(arguments);
    return length;
}

int printf(const char *restrict format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vprintf(format, arguments);
    va_end(arguments);
    return length;
}

int fputc(int character, FILE *stream) {
    unsigned char byte = (unsigned char)character;
    return write_bytes(stream, &byte, 1) == 1 ? byte : EOF;
}

int putc(int character, FILE *stream) { return fputc(character, stream); }
int putchar(int character) { return fputc(character, stdout); }

int fputs(const char *restrict text, FILE *restrict stream) {
    size_t length = strlen(text);
    return length == 0 || write_bytes(stream, text, length) == length ? 0 : EOF;
}

int puts(const char *text) { return fputs(text, stdout) == EOF ? EOF : putchar('\n'); }

size_t fwrite(const void *restrict from, size_t size, size_t count, FILE *restrict stream) {
    return size == 0 || count == 0 ? 0 : write_bytes(stream, from, size * count) / size;
}

int fflush(FILE *stream) {
    (void)stream;
    return 0;
}

void perror(const char *text) {
    const char *meaning = strerror(errno);
    if (text && *text) fprintf(stderr, "%s: %s\n", text, meaning);
    else fprintf(stderr, "%s\n", meaning);
}
