/* packets.h: headers of packets in FPsPIN's form. They begin with the Ethernet header, in network byte order. */
#ifndef FPSPIN_PACKETS_H
#define FPSPIN_PACKETS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct mac_addr {
    uint8_t data[6];
} __attribute__((packed)) mac_addr_t;

typedef struct eth_hdr {
    mac_addr_t dest;
    mac_addr_t src;
    uint16_t length; /* the length, or the type of the contents */
} __attribute__((packed)) eth_hdr_t;

typedef struct ip_hdr {
    uint8_t ihl : 4;
    uint8_t version : 4;
    uint8_t tos;
    uint16_t length;
    uint16_t identification;
    uint16_t offset;
    uint8_t ttl;
    uint8_t protocol;
    uint16_t checksum;
    uint32_t source_id;
    uint32_t dest_id;
} __attribute__((packed)) ip_hdr_t;

typedef struct udp_hdr {
    uint16_t src_port;
    uint16_t dst_port;
    uint16_t length;
    uint16_t checksum;
} __attribute__((packed)) udp_hdr_t;

/* The header of a packet of sPIN's Lightweight Message Protocol. The flags mark the last packet of a message, a request
 * for an acknowledgement, and an acknowledgement. */
typedef struct slmp_hdr {
    uint16_t flags;
    uint32_t msg_id;
    uint32_t pkt_off; /* the packet's offset in the message */
} __attribute__((packed)) slmp_hdr_t;

#define MKEOM 0x8000
#define MKSYN 0x4000
#define MKACK 0x2000
#define EOM(flags) ((flags) & MKEOM)
#define SYN(flags) ((flags) & MKSYN)
#define ACK(flags) ((flags) & MKACK)

/* The headers of a packet with an IP header without options. */
typedef struct pkt_hdr {
    eth_hdr_t eth_hdr;
    ip_hdr_t ip_hdr;
    udp_hdr_t udp_hdr;
} __attribute__((packed)) pkt_hdr_t;

typedef struct slmp_pkt_hdr {
    eth_hdr_t eth_hdr;
    ip_hdr_t ip_hdr;
    udp_hdr_t udp_hdr;
    slmp_hdr_t slmp_hdr;
} __attribute__((packed)) slmp_pkt_hdr_t;

static inline __attribute__((unused)) uint16_t bswap_16(uint16_t v) { return (uint16_t)(v << 8 | v >> 8); }
static inline __attribute__((unused)) uint32_t bswap_32(uint32_t v) {
    return (uint32_t)bswap_16((uint16_t)v) << 16 | bswap_16((uint16_t)(v >> 16));
}
#define htons(x) bswap_16(x)
#define ntohs htons
#define htonl(x) bswap_32(x)
#define ntohl htonl

#define SLMP_PAYLOAD_LEN(hdrs) (ntohs(hdrs->udp_hdr.length) - sizeof(udp_hdr_t) - sizeof(slmp_hdr_t))

/* Returns the Internet checksum (RFC 1071) of `len` bytes, in network byte order. */
static inline __attribute__((unused)) uint16_t ip_checksum(void *vdata, size_t length) {
    const uint8_t *data = vdata;
    uint32_t sum = 0xffff;
    for (size_t at = 0; at < length; at++) {
        sum += at % 2 == 0 ? (uint32_t)data[at] << 8 : data[at];
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return htons((uint16_t)~sum);
}

#endif
