/* packets.h: headers of packets, in the byte order of the card's cores. */
#ifndef PSPIN_PACKETS_H
#define PSPIN_PACKETS_H

#include <stdint.h>

typedef struct {
    uint8_t version : 4;
    uint8_t ihl : 4;
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

typedef struct {
    uint16_t src_port;
    uint16_t dst_port;
    uint16_t length;
    uint16_t checksum;
} __attribute__((packed)) udp_hdr_t;

typedef struct {
    ip_hdr_t ip_hdr;
    udp_hdr_t udp_hdr;
} __attribute__((packed)) pkt_hdr_t;

/* The payload of a UDP packet at `pkt`, behind a header of IP of `ihl` words, and its length by that of the IP packet
 * without options: as PsPIN has it. */
#define GET_IP_UDP_PLD(pkt, pld, len)                                                                  \
    {                                                                                                  \
        ip_hdr_t *pspin_header_ = (ip_hdr_t *)(pkt);                                                   \
        (len) = pspin_header_->length - sizeof(ip_hdr_t) - sizeof(udp_hdr_t);                          \
        (pld) = (uint8_t *)(pkt) + pspin_header_->ihl * 4 + sizeof(udp_hdr_t);                         \
    }

#endif
