/* Messages from host to host. Processes take messages from their host by channels, and send them through the card's
 * port. Processes of the other card hand the messages to their host by channels.
 *
 * The envelope of a message is one direct message of 56 bytes. The envelope's first word is the target's rank on the
 * transmit path, and the source's rank on the receive path. Bytes that do not fit into an envelope follow through a
 * lane, in chunks, once the receiving host has granted the lane. The host reserves a lane for the bytes, so no process
 * here ever waits for an absent host.
 *
 *     host -> forward_out  -> frame -> forward_port -> forward_in  -> host      envelopes
 *     host -> forward_load -> forward_send -> frame -> forward_port -> forward_hand -> host     chunks, a lane each
 *                             forward_send <- forward_port <- frame <-                           a slot is free again
 *
 * The process forward_port never waits for its host. It has room for every envelope that may arrive, because the hosts
 * limit their number. It has room for every chunk, because a lane sends a chunk only into a free slot.
 *
 * Frames from the network are accepted only where this card expects them. A chunk must be the next one of the lane that
 * its sender was given. Only the rank for which a slot was filled may free the slot. All other frames are counted and
 * dropped.
 *
 * A transfer between host and card may fail, at both ends of the channel. The message is then abandoned, and its lane
 * continues with the next message. A sender notifies the other card, which notifies its host. A receiver takes the
 * remaining chunks and discards them. */
#include <nfp.h>

#define LANES 8u
#define SLOTS 2u
#define CHUNK 65536u
#define ENVELOPE CHANNEL_DIRECT
#define ENTRY 64u

/* The arguments of every process. `targets` is the first target: out, in, 8 targets to send, and 8 to hand over.
 * `memory` is in EMEM. `entries` is the number of entries of the ring, a power of two. `first` is the first of four
 * microengines. These are for port, out and in, for loaders, for senders, and for processes that hand over. The memory
 * has LANES x SLOTS received chunks, as many chunks to send, and a struct chunk for each. The ring of envelopes and
 * struct shared follow. */
#define PLAN_ARGUMENTS uint32_t targets, uint32_t memory, uint32_t entries, uint32_t first

/* Signals. The first SLOTS signals report that a slot was filled or may be filled again. SIGNAL_FREE and the following
 * report a free slot of the other end's lane. SIGNAL_ENVELOPE reports an arrived envelope. */
#define SIGNAL_FREE 2u
#define SIGNAL_ENVELOPE 4u

enum { FRAME_ENVELOPE = 1, FRAME_CHUNK = 2, FRAME_FREE = 3, FRAME_ABANDONED = 4 };

/* Words of an envelope: the kind, the length of the message, and the lane in a CTS. In a message, the last of these
 * words is a part of the tag. */
enum { WORD_KIND = 1, WORD_BYTES = 3, WORD_LANE = 5, KIND_CTS = 3 };

/* The head of every frame. In the frame of an envelope, the envelope's bytes follow the first word. */
struct head {
    uint8_t kind, lane, back, slot; /* the lane at the receiver, that at the sender, and the slot of the lane */
    uint32_t offset;                /* offset of a piece in its chunk */
    uint32_t chunk;                 /* bytes of the chunk */
};

/* The description of a chunk: the number of bytes, the rank of the other end, and the lane there. A flag marks the last
 * chunk of a message, or an abandoned message. */
struct chunk {
    uint32_t bytes, rank, lane, last;
};
enum { CHUNK_LAST = 1, CHUNK_ABANDONED = 2 };

#define CHUNKS (LANES * SLOTS)

/* The slots of a lane for received chunks, and for chunks to send. */
NFP_INLINE volatile uint8_t *coming(uint32_t memory, uint32_t lane, uint32_t slot) {
    return (volatile uint8_t *)(memory + (lane * SLOTS + slot) * CHUNK);
}
NFP_INLINE volatile uint8_t *going(uint32_t memory, uint32_t lane, uint32_t slot) {
    return coming(memory, LANES + lane, slot);
}
NFP_INLINE volatile struct chunk *told(uint32_t memory, uint32_t lane, uint32_t slot) {
    return (volatile struct chunk *)(memory + 2 * CHUNKS * CHUNK) + lane * SLOTS + slot;
}
NFP_INLINE volatile struct chunk *loaded(uint32_t memory, uint32_t lane, uint32_t slot) {
    return told(memory, LANES + lane, slot);
}
NFP_INLINE volatile uint8_t *ring(uint32_t memory, uint32_t entry) {
    return (volatile uint8_t *)told(memory, 2 * LANES, 0) + entry * ENTRY;
}

/* State that the microengines share, zero at first. It has the number of refused frames, and the rank to which each
 * lane sends, plus one. */
struct shared {
    uint32_t refused;
    uint32_t receiver[LANES];
};
NFP_INLINE volatile struct shared *shared(uint32_t memory, uint32_t entries) {
    return (volatile struct shared *)ring(memory, entries);
}

/* The number of arrived envelopes, and the number of those that forward_in has taken. There is one copy per
 * microengine, and all processes that use it run on the same microengine. */
static uint32_t come, taken;

/* The state of a receiving lane: the source rank, and the remaining bytes of the message from the current chunk on. The
 * arrived bytes and the slot of the current chunk follow. */
static struct {
    uint32_t rank, left, at, slot;
} due[LANES];

/* Receives every frame from the port. */
__process void forward_port(PLAN_ARGUMENTS) {
    (void)targets;
    union {
        struct head head;
        uint32_t words[NFP_ETH_HEAD / 4];
    } frame;
    for (;;) {
        uint32_t source;
        uint32_t bytes = (uint32_t)nfp_eth_receive_from(NFP_ETH_MESSAGES, &frame, NFP_ETH_HEAD, &source);
        struct head head = frame.head;
        bool whole = bytes >= sizeof head && head.lane < LANES && head.back < LANES && head.slot < SLOTS;
        bool good = false;
        if (bytes == ENVELOPE && frame.words[0] == FRAME_ENVELOPE) {
            good = come - taken < entries;
            if (good) {
                frame.words[0] = source;
                nfp_write(ring(memory, come & (entries - 1)), &frame, ENVELOPE);
                come++;
                nfp_signal(first, 2, SIGNAL_ENVELOPE);
            }
        } else if (whole && head.kind == FRAME_CHUNK) {
            uint32_t lane = head.lane, piece = bytes - sizeof head;
            uint32_t chunk = due[lane].left < CHUNK ? due[lane].left : CHUNK;
            good = piece > 0 && source == due[lane].rank && head.slot == due[lane].slot && head.chunk == chunk &&
                   head.offset == due[lane].at && piece <= chunk - due[lane].at;
            if (good) {
                nfp_eth_move(coming(memory, lane, head.slot) + head.offset, sizeof head, piece);
                due[lane].at += piece;
                if (due[lane].at == chunk) {
                    struct chunk now = {chunk, source, head.back, due[lane].left == chunk ? CHUNK_LAST : 0};
                    due[lane].left -= chunk;
                    due[lane].at = 0;
                    due[lane].slot ^= 1;
                    nfp_write(told(memory, lane, head.slot), &now, sizeof now);
                    nfp_signal(first + 3, lane, head.slot);
                }
            }
        } else if (whole && head.kind == FRAME_ABANDONED) {
            good = source == due[head.lane].rank && due[head.lane].left > 0;
            if (good) {
                struct chunk now = {0, source, head.back, CHUNK_ABANDONED};
                uint32_t slot = due[head.lane].slot;
                due[head.lane].left = 0;
                nfp_write(told(memory, head.lane, slot), &now, sizeof now);
                nfp_signal(first + 3, head.lane, slot);
            }
        } else if (whole && head.kind == FRAME_FREE) {
            good = shared(memory, entries)->receiver[head.back] == source + 1;
            if (good) nfp_signal(first + 2, head.back, SIGNAL_FREE + head.slot);
        }
        if (!good) nfp_fetch_add(&shared(memory, entries)->refused, 1);
    }
}

/* Sends the envelopes of the host. A CTS describes the message that will arrive through its lane. */
__process int32_t forward_out(PLAN_ARGUMENTS) {
    (void)memory, (void)entries, (void)first;
    uint32_t envelope[ENVELOPE / 4];
    for (;;) {
        int32_t result = channel_read(targets, envelope, ENVELOPE);
        if (result != CHANNEL_OK) return result;
        uint32_t to = envelope[0], lane = envelope[WORD_LANE];
        if (envelope[WORD_KIND] == KIND_CTS && lane < LANES) {
            due[lane].rank = to;
            due[lane].left = envelope[WORD_BYTES];
            due[lane].at = due[lane].slot = 0;
        }
        envelope[0] = FRAME_ENVELOPE;
        nfp_eth_send_to(to, NFP_ETH_MESSAGES, envelope, ENVELOPE, 0, 0);
    }
}

/* Hands envelopes to the host in order of arrival. */
__process int32_t forward_in(PLAN_ARGUMENTS) {
    (void)first;
    uint32_t envelope[ENVELOPE / 4];
    for (;; taken++) {
        while (taken == come) nfp_wait_any(1u << SIGNAL_ENVELOPE);
        nfp_read(envelope, ring(memory, taken & (entries - 1)), ENVELOPE);
        int32_t result = channel_write(targets + 1, envelope, ENVELOPE);
        if (result != CHANNEL_OK) return result;
    }
}

/* Takes the chunks that the host gives to a lane. */
__process int32_t forward_load(PLAN_ARGUMENTS, uint32_t lane) {
    (void)entries;
    uint32_t target = targets + 2 + lane, used = 0;
    for (uint32_t slot = 0;;) {
        uint32_t order[4]; /* the target's rank, its lane, number of bytes */
        int32_t result = channel_read(target, order, sizeof order);
        if (result == CHANNEL_CLOSED) return result;
        if (result != CHANNEL_OK) continue;
        for (uint32_t left = order[2]; left > 0; slot ^= 1) {
            struct chunk chunk = {left < CHUNK ? left : CHUNK, order[0], order[1], left <= CHUNK ? CHUNK_LAST : 0};
            if (used & 1u << slot) nfp_wait_all(1u << slot);
            used |= 1u << slot;
            result = channel_read_ind(target, going(memory, lane, slot), chunk.bytes);
            left -= chunk.bytes;
            if (result != CHANNEL_OK) {
                chunk.last = CHUNK_ABANDONED;
                left = 0;
            }
            nfp_write(loaded(memory, lane, slot), &chunk, sizeof chunk);
            nfp_signal(first + 2, lane, slot);
        }
        if (result == CHANNEL_CLOSED) return result;
    }
}

/* Sends a lane's chunks. */
__process void forward_send(PLAN_ARGUMENTS, uint32_t lane) {
    (void)targets;
    uint32_t used = 0; /* slots that the other end has not freed, as bits */
    bool begun = false;
    struct head head = {FRAME_CHUNK, 0, (uint8_t)lane, 0, 0, 0};
    for (uint32_t slot = 0;; slot ^= 1) {
        struct chunk chunk;
        nfp_wait_all(1u << slot);
        nfp_read(&chunk, loaded(memory, lane, slot), sizeof chunk);
        if (!begun) {
            begun = true;
            /* Excess signals of the last message's receiver must not count for this message. */
            for (uint32_t other = 0; other < SLOTS; other++) nfp_signal(first + 2, lane, SIGNAL_FREE + other);
            nfp_wait_all(((1u << SLOTS) - 1) << SIGNAL_FREE);
            shared(memory, entries)->receiver[lane] = chunk.rank + 1;
        }
        if (used & 1u << head.slot) nfp_wait_all(1u << (SIGNAL_FREE + head.slot));
        head.lane = (uint8_t)chunk.lane;
        head.chunk = chunk.bytes;
        head.kind = chunk.last == CHUNK_ABANDONED ? FRAME_ABANDONED : FRAME_CHUNK;
        head.offset = 0;
        if (head.kind == FRAME_ABANDONED) {
            used &= ~(1u << head.slot);
            nfp_eth_send_to(chunk.rank, NFP_ETH_MESSAGES, &head, sizeof head, 0, 0);
        } else {
            used |= 1u << head.slot;
            for (uint32_t at = 0; at < chunk.bytes;) {
                uint32_t piece = chunk.bytes - at;
                if (piece > NFP_ETH_PAYLOAD - sizeof head) piece = NFP_ETH_PAYLOAD - sizeof head;
                head.offset = at;
                nfp_eth_send_to(chunk.rank, NFP_ETH_MESSAGES, &head, sizeof head, going(memory, lane, slot) + at, piece);
                at += piece;
            }
        }
        nfp_signal(first + 1, lane, slot);
        head.slot ^= 1;
        if (chunk.last) {
            /* The next message has another lane at the receiver, with all slots free. */
            if (used) nfp_wait_all(used << SIGNAL_FREE);
            used = head.slot = 0;
            begun = false;
            shared(memory, entries)->receiver[lane] = 0;
        }
    }
}

/* Hands the chunks of a lane to the host. After a failed chunk, the process discards the other chunks of the message,
 * and notifies the host after the last one. */
__process int32_t forward_hand(PLAN_ARGUMENTS, uint32_t lane) {
    (void)entries, (void)first;
    uint32_t target = targets + 2 + LANES + lane, word = 0;
    bool failed = false;
    for (uint8_t slot = 0;;) {
        struct chunk chunk;
        nfp_wait_all(1u << slot);
        nfp_read(&chunk, told(memory, lane, slot), sizeof chunk);
        if (chunk.last != CHUNK_ABANDONED) {
            if (!failed) {
                int32_t result = channel_write_ind(target, coming(memory, lane, slot), chunk.bytes);
                if (result == CHANNEL_CLOSED) return result;
                failed = result != CHANNEL_OK;
            }
            struct head head = {FRAME_FREE, 0, (uint8_t)chunk.lane, slot, 0, 0};
            nfp_eth_send_to(chunk.rank, NFP_ETH_MESSAGES, &head, sizeof head, 0, 0);
        } else if (!failed) {
            /* The host waits for a chunk. A message of another kind notifies the host of the failure. */
            failed = true;
        }
        slot ^= 1;
        if (chunk.last) {
            if (failed) channel_write(target, &word, sizeof word);
            failed = false;
            slot = 0;
        }
    }
}
