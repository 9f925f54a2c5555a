/* Messages from host to host: processes that take them from their host by channels, send them through the card's port, and
 * hand them to the other host by channels.
 *
 * A message's envelope is one direct message of 56 bytes, whose first word is the rank it goes to on the way out, and
 * the rank it comes from on the way in. What does not fit an envelope follows through a lane, in chunks, once the
 * receiving host has said where: it keeps a lane for it, so that nothing ever waits in here for a host that does not
 * come.
 *
 *     host -> forward_out  -> frame -> forward_port -> forward_in  -> host      envelopes
 *     host -> forward_load -> forward_send -> frame -> forward_port -> forward_hand -> host     chunks, a lane each
 *                             forward_send <- forward_port <- frame <-                           a slot is free again
 *
 * forward_port never waits for its host. It has room for every envelope that may come, as the hosts count them, and for
 * every chunk, since a lane sends a chunk only into a slot that is free. */
#include <nfp.h>

#define LANES 8u
#define SLOTS 2u
#define CHUNK 65536u
#define ENVELOPE CHANNEL_DIRECT
#define ENTRY 64u

/* What every process is told: the first target (out, in, then 8 to send, then 8 to hand over); memory in EMEM (LANES x SLOTS
 * chunks that come, as many that go, what is told of either, and the ring of envelopes); entries of the ring, a
 * power of two; the first of four microengines, with port, out and in; those who load; who send; who hand over. */
#define PLAN_ARGUMENTS uint32_t targets, uint32_t memory, uint32_t entries, uint32_t first

/* Signals: of a slot, that it has been filled, or may be filled again; that a slot of the other end's lane is free; that
 * an envelope has come. */
#define SIGNAL_FREE 2u
#define SIGNAL_ENVELOPE 4u

enum { FRAME_ENVELOPE = 1, FRAME_CHUNK = 2, FRAME_FREE = 3 };

/* The head of every frame; an envelope has its bytes behind the first word. */
struct head {
    uint8_t kind, lane, back, slot; /* the lane at the receiver, that at the sender, and which slot of the lane */
    uint32_t offset;                /* of a piece in its chunk */
    uint32_t chunk;                 /* bytes of the chunk */
    uint32_t last;                  /* whether it is its message's last chunk */
};

/* What a process is told of a chunk: how many bytes, from or to which rank, the lane there, and whether it is the last of its
 * message. */
struct chunk {
    uint32_t bytes, rank, lane, last;
};

#define CHUNKS (LANES * SLOTS)

/* Slots of a lane: chunks that come, and chunks that go. */
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

/* Envelopes that have come; forward_in has taken those before. One for the microengine, which both run on. */
static uint32_t come;

/* Takes every frame from the port. */
__process void forward_port(PLAN_ARGUMENTS) {
    (void)targets;
    union {
        struct head head;
        uint32_t words[NFP_ETH_HEAD / 4];
    } frame;
    for (;;) {
        uint32_t source;
        uint32_t bytes = (uint32_t)nfp_eth_receive(&frame, NFP_ETH_HEAD, &source);
        struct head head = frame.head;
        switch (head.kind) {
        case FRAME_ENVELOPE:
            frame.words[0] = source;
            nfp_write(ring(memory, come & (entries - 1)), &frame, ENVELOPE);
            come++;
            nfp_signal(first, 2, SIGNAL_ENVELOPE);
            break;
        case FRAME_CHUNK: {
            uint32_t piece = bytes - sizeof head;
            nfp_eth_move(coming(memory, head.lane, head.slot) + head.offset, sizeof head, piece);
            if (head.offset + piece == head.chunk) {
                struct chunk chunk = {head.chunk, source, head.back, head.last};
                nfp_write(told(memory, head.lane, head.slot), &chunk, sizeof chunk);
                nfp_signal(first + 3, head.lane, head.slot);
            }
            break;
        }
        case FRAME_FREE: nfp_signal(first + 2, head.back, SIGNAL_FREE + head.slot); break;
        default: break;
        }
    }
}

/* Sends the host's envelopes. */
__process int32_t forward_out(PLAN_ARGUMENTS) {
    (void)memory, (void)entries, (void)first;
    uint32_t envelope[ENVELOPE / 4];
    for (;;) {
        int32_t result = channel_read(targets, envelope, ENVELOPE);
        if (result != CHANNEL_OK) return result;
        uint32_t to = envelope[0];
        envelope[0] = FRAME_ENVELOPE;
        nfp_eth_send(to, envelope, ENVELOPE, 0, 0);
    }
}

/* Hands envelopes to the host, in the order in which they came. */
__process int32_t forward_in(PLAN_ARGUMENTS) {
    (void)first;
    uint32_t envelope[ENVELOPE / 4];
    for (uint32_t taken = 0;; taken++) {
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
        uint32_t order[4]; /* to whom, its lane, how many bytes */
        int32_t result = channel_read(target, order, sizeof order);
        if (result != CHANNEL_OK) return result;
        for (uint32_t left = order[2]; left > 0; slot ^= 1) {
            struct chunk chunk = {left < CHUNK ? left : CHUNK, order[0], order[1], left <= CHUNK};
            if (used & 1u << slot) nfp_wait_all(1u << slot);
            used |= 1u << slot;
            result = channel_read_ind(target, going(memory, lane, slot), chunk.bytes);
            if (result != CHANNEL_OK) return result;
            nfp_write(loaded(memory, lane, slot), &chunk, sizeof chunk);
            nfp_signal(first + 2, lane, slot);
            left -= chunk.bytes;
        }
    }
}

/* Sends a lane's chunks. */
__process void forward_send(PLAN_ARGUMENTS, uint32_t lane) {
    (void)targets, (void)entries;
    uint32_t used = 0; /* slots of the other end's lane that it has not given back */
    struct head head = {FRAME_CHUNK, 0, (uint8_t)lane, 0, 0, 0, 0};
    for (uint32_t slot = 0;; slot ^= 1) {
        struct chunk chunk;
        nfp_wait_all(1u << slot);
        nfp_read(&chunk, loaded(memory, lane, slot), sizeof chunk);
        if (used & 1u << head.slot) nfp_wait_all(1u << (SIGNAL_FREE + head.slot));
        used |= 1u << head.slot;
        head.lane = (uint8_t)chunk.lane;
        head.chunk = chunk.bytes;
        head.last = chunk.last;
        for (uint32_t at = 0; at < chunk.bytes;) {
            uint32_t piece = chunk.bytes - at;
            if (piece > NFP_ETH_PAYLOAD - sizeof head) piece = NFP_ETH_PAYLOAD - sizeof head;
            head.offset = at;
            nfp_eth_send(chunk.rank, &head, sizeof head, going(memory, lane, slot) + at, piece);
            at += piece;
        }
        nfp_signal(first + 1, lane, slot);
        head.slot ^= 1;
        if (chunk.last) {
            /* The next message has another lane there, whose slots are all free. */
            nfp_wait_all(used << SIGNAL_FREE);
            used = head.slot = 0;
        }
    }
}

/* Hands the chunks that come through a lane to the host. */
__process int32_t forward_hand(PLAN_ARGUMENTS, uint32_t lane) {
    (void)entries, (void)first;
    uint32_t target = targets + 2 + LANES + lane;
    for (uint8_t slot = 0;;) {
        struct chunk chunk;
        nfp_wait_all(1u << slot);
        nfp_read(&chunk, told(memory, lane, slot), sizeof chunk);
        int32_t result = channel_write_ind(target, coming(memory, lane, slot), chunk.bytes);
        if (result != CHANNEL_OK) return result;
        struct head head = {FRAME_FREE, 0, (uint8_t)chunk.lane, slot, 0, 0, 0};
        nfp_eth_send(chunk.rank, &head, sizeof head, 0, 0);
        slot = chunk.last ? 0 : slot ^ 1;
    }
}
