/* Completion queues. */

#include "provider.h"
#include "waits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct table *own_table;

static uint64_t flags_of(const struct nicety_completion *done) {
    if (done->flags & DONE_REMOTE)
        return FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
    if (done->flags & (DONE_READ | DONE_WRITE))
        return (done->flags & DONE_ATOMIC ? FI_ATOMIC : FI_RMA) | (done->flags & DONE_READ ? FI_READ : FI_WRITE);
    uint64_t kind = done->flags & DONE_UNTAGGED ? FI_MSG : FI_TAGGED;
    kind |= done->flags & DONE_RECV ? FI_RECV : FI_SEND;
    kind |= done->flags & DONE_DATA ? FI_REMOTE_CQ_DATA : 0;
    return kind | (done->flags & DONE_USED_UP ? FI_MULTI_RECV : 0);
}

static size_t entry_bytes(int format) {
    switch (format) {
    case FI_CQ_FORMAT_CONTEXT:
        return offsetof(struct fi_cq_tagged_entry, flags);
    case FI_CQ_FORMAT_MSG:
        return offsetof(struct fi_cq_tagged_entry, buf);
    case FI_CQ_FORMAT_DATA:
        return offsetof(struct fi_cq_tagged_entry, tag);
    default:
        return sizeof(struct fi_cq_tagged_entry);
    }
}

/* Reserves room for `more` completions. Returns 0 or an error. */
static int reserve(struct queue *queue, unsigned more) {
    if (queue->first == queue->count)
        queue->first = queue->count = 0;
    if (queue->room - queue->count >= more)
        return 0;
    memmove(queue->kept, queue->kept + queue->first, (queue->count - queue->first) * sizeof *queue->kept);
    queue->count -= queue->first;
    queue->first = 0;
    if (queue->room - queue->count >= more)
        return 0;
    unsigned room = 2 * (queue->count + more);
    struct nicety_completion *kept = realloc(queue->kept, room * sizeof *kept);
    if (!kept)
        return -ENOMEM;
    queue->kept = kept;
    queue->room = room;
    return 0;
}

/* Returns the queue of a completion, on the receiving or the sending side of the only endpoint. Returns NULL if this
 * side has only counters. */
static struct queue *queue_of(const struct nicety_completion *done) {
    return done->flags & (DONE_RECV | DONE_REMOTE) ? own_endpoint->receives : own_endpoint->sends;
}

/* Fetches the completions of the process, and sorts them into their queues. Returns the number of completions, or an error. */
static int fetch(uint32_t call, uint64_t how, uint64_t deferred) {
    uint64_t args[] = {NICETY_MOST_COMPLETIONS, how, deferred};
    if (!own_endpoint)
        return 0;
    struct queue *queues[] = {own_endpoint->sends, own_endpoint->receives};
    for (int i = 0; i < 2; i++)
        if (queues[i] && reserve(queues[i], NICETY_MOST_COMPLETIONS))
            return -ENOMEM;
    int64_t result = nicety_call(call, 0, args, 3);
    if (result < 0)
        return (int)result;
    for (unsigned i = 0; i < nicety_slot->completions; i++) {
        struct queue *queue = queue_of(&nicety_slot->completion[i]);
        if (queue)
            queue->kept[queue->count++] = nicety_slot->completion[i];
    }
    return (int)nicety_slot->completions;
}

static ssize_t take(struct queue *queue, char *entries, size_t count, fi_addr_t *sources) {
    size_t taken = 0, bytes = entry_bytes(queue->format);
    /* Without room for an entry, the call is only a look. */
    if (!count)
        return queue->first == queue->count ? -EAGAIN : 0;
    while (taken < count && queue->first < queue->count) {
        const struct nicety_completion *done = &queue->kept[queue->first];
        if (done->error)
            return taken ? (ssize_t)taken : -FI_EAVAIL;
        struct fi_cq_tagged_entry entry = {
            .op_context = (void *)(uintptr_t)done->context,
            .flags = flags_of(done),
            .len = done->bytes,
            .buf = (void *)(uintptr_t)done->address,
            .data = done->data,
            .tag = done->tag,
        };
        memcpy(entries + taken * bytes, &entry, bytes);
        if (sources)
            sources[taken] = done->flags & (DONE_RECV | DONE_REMOTE) ? address_of(own_table, done->source) : FI_ADDR_UNSPEC;
        queue->first++, taken++;
    }
    return taken ? (ssize_t)taken : -EAGAIN;
}

/* Carries out the deferred looks. Returns the number of completions, or an error. */
static int carry_out(void) {
    int looks = nicety_take_deferred();
    return looks ? fetch(CALL_POLL, nicety_kind_of_look(), (uint64_t)looks - 1) : 0;
}

void nicety_catch_up(void) {
    if (nicety_attached() && carry_out())
        nicety_read_late();
}

/* Looks at the queue. `stack` is the start of the caller's stack. */
static int look(struct queue *queue, const void *stack) {
    int come = 0;
    if (!own_endpoint || nicety_is_idle())
        return 0;
    int repeats = nicety_repeats(stack);
    if (repeats)
        come = fetch(CALL_POLL, (uint64_t)repeats, (uint64_t)nicety_take_deferred());
    else if (!nicety_defers_more() && !(come = carry_out()) && !nicety_look() && !nicety_defers())
        come = fetch(CALL_POLL, nicety_kind_of_look(), 0);
    nicety_looked(come || queue->first < queue->count);
    return come < 0 ? come : 0;
}

/* The callee-saved registers of the caller are on the stack below the frame. */
#define CALLERS_STACK() (__builtin_unwind_init(), (const char *)__builtin_frame_address(0) - SAVED_BYTES)
#ifdef __x86_64__
#define SAVED_BYTES 40
#else
#define SAVED_BYTES 0
#endif

static ssize_t queue_readfrom(struct fid_cq *cq, void *entries, size_t count, fi_addr_t *sources) {
    struct queue *queue = (struct queue *)cq;
    int error = queue->first == queue->count ? look(queue, CALLERS_STACK()) : 0;
    return error ? error : take(queue, entries, count, sources);
}

static ssize_t queue_read(struct fid_cq *cq, void *entries, size_t count) {
    struct queue *queue = (struct queue *)cq;
    int error = queue->first == queue->count ? look(queue, CALLERS_STACK()) : 0;
    return error ? error : take(queue, entries, count, NULL);
}

static ssize_t queue_sreadfrom(struct fid_cq *cq, void *entries, size_t count, fi_addr_t *sources, const void *cond,
                               int ms) {
    (void)cond;
    struct queue *queue = (struct queue *)cq;
    uint64_t left = ms < 0 ? NICETY_ANY : (uint64_t)ms * 1000000000ull, since = nicety_now_ps();
    /* A completion for the other queue ends the call, too. The wait then continues. */
    for (int come = 1; come && queue->first == queue->count;) {
        uint64_t spent = nicety_now_ps() - since;
        come = fetch(CALL_WAIT, ms < 0 ? NICETY_ANY : left > spent ? left - spent : 0, 0);
        if (come < 0)
            return come;
    }
    return take(queue, entries, count, sources);
}

static ssize_t queue_sread(struct fid_cq *cq, void *entries, size_t count, const void *cond, int ms) {
    return queue_sreadfrom(cq, entries, count, NULL, cond, ms);
}

static ssize_t queue_readerr(struct fid_cq *cq, struct fi_cq_err_entry *entry, uint64_t flags) {
    (void)flags;
    struct queue *queue = (struct queue *)cq;
    const struct nicety_completion *done = &queue->kept[queue->first];
    if (queue->first == queue->count || !done->error)
        return -EAGAIN;
    entry->op_context = (void *)(uintptr_t)done->context;
    entry->flags = flags_of(done);
    entry->len = done->bytes;
    entry->buf = (void *)(uintptr_t)done->address;
    entry->data = done->data;
    entry->tag = done->tag;
    entry->olen = done->cut;
    entry->err = entry->prov_errno = done->error;
    if (done->flags & (DONE_READ | DONE_WRITE)) {
        entry->olen = 0;
        entry->prov_errno = (int)done->cut;
    }
    entry->err_data_size = 0;
    queue->first++;
    return 1;
}

/* Returns the card's reason for refusing an access. `error` is the number of the reason in the completion. */
static const char *reason_of(int error) {
    static const char *const why[] = {
        [REASON_BOUNDS] = "no registered memory with this key contains all of these bytes",
        [REASON_RIGHTS] = "the registered memory does not allow this access",
        [REASON_OTHER] = "the card of the target has refused the access",
    };
    int number = error - NICETY_REASONS;
    return number < (int)(sizeof why / sizeof *why) && why[number] ? why[number] : "unknown";
}

static const char *queue_strerror(struct fid_cq *cq, int error, const void *data, char *text, size_t bytes) {
    (void)cq, (void)data;
    const char *why = error >= NICETY_REASONS ? reason_of(error) : strerror(error);
    if (text && bytes)
        snprintf(text, bytes, "%s", why);
    return why;
}

static int queue_signal(struct fid_cq *cq) {
    (void)cq;
    return -ENOSYS;
}

static struct fi_ops_cq queue_ops = {
    .size = sizeof(struct fi_ops_cq),
    .read = queue_read,
    .readfrom = queue_readfrom,
    .readerr = queue_readerr,
    .sread = queue_sread,
    .sreadfrom = queue_sreadfrom,
    .signal = queue_signal,
    .strerror = queue_strerror,
};

static int close_queue(struct fid *fid) {
    struct queue *queue = (struct queue *)fid;
    if (own_endpoint && (own_endpoint->sends == queue || own_endpoint->receives == queue))
        return -EBUSY;
    free(queue->kept);
    free(queue);
    return 0;
}

static struct fi_ops queue_fid_ops = FID_OPS(close_queue, no_bind, no_control);

int open_queue(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context) {
    (void)domain;
    if (!is_wait_known("a completion queue", attr->wait_obj))
        return -ENOSYS;
    struct queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return -ENOMEM;
    if (attr->format == FI_CQ_FORMAT_UNSPEC)
        attr->format = FI_CQ_FORMAT_TAGGED;
    if (!attr->size)
        attr->size = QUEUE;
    queue->format = attr->format;
    queue->cq = (struct fid_cq){.fid = {FI_CLASS_CQ, context, &queue_fid_ops}, .ops = &queue_ops};
    *cq = &queue->cq;
    return 0;
}
