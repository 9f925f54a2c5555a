/* Address tables. */

#include "provider.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int table_insert(struct fid_av *av, const void *addresses, size_t count, fi_addr_t *numbers, uint64_t flags,
                        void *context) {
    (void)flags, (void)context;
    struct table *table = (struct table *)av;
    if (table->count + count > table->room) {
        size_t room = 2 * (table->count + count);
        uint64_t *ranks = realloc(table->ranks, room * sizeof *ranks);
        if (!ranks)
            return -ENOMEM;
        table->ranks = ranks;
        table->room = room;
    }
    int inserted = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t rank;
        memcpy(&rank, (const char *)addresses + i * sizeof rank, sizeof rank);
        int exists = rank < nicety_shared->ranks;
        if (numbers)
            numbers[i] = exists ? table->count : FI_ADDR_UNSPEC;
        if (exists)
            table->ranks[table->count++] = rank, inserted++;
    }
    return inserted;
}

static int table_remove(struct fid_av *av, fi_addr_t *numbers, size_t count, uint64_t flags) {
    (void)av, (void)numbers, (void)count, (void)flags;
    return 0;
}

static int table_lookup(struct fid_av *av, fi_addr_t number, void *address, size_t *bytes) {
    struct table *table = (struct table *)av;
    if (number >= table->count)
        return -EINVAL;
    size_t room = *bytes;
    *bytes = sizeof(uint64_t);
    memcpy(address, &table->ranks[number], room < *bytes ? room : *bytes);
    return 0;
}

static const char *table_text(struct fid_av *av, const void *address, char *text, size_t *bytes) {
    (void)av;
    uint64_t rank;
    memcpy(&rank, address, sizeof rank);
    size_t room = *bytes;
    *bytes = 1 + (size_t)snprintf(text, room, "nicety:%llu", (unsigned long long)rank);
    return text;
}

static int table_close(struct fid *fid) {
    struct table *table = (struct table *)fid;
    free(table->ranks);
    free(table);
    return 0;
}

static struct fi_ops table_fid_ops = FID_OPS(table_close, no_bind, no_control);
static struct fi_ops_av table_ops = {
    .size = sizeof(struct fi_ops_av),
    .insert = table_insert,
    .insertsvc = no_insertsvc,
    .insertsym = no_insertsym,
    .av_set = no_av_set,
    .insert_auth_key = no_insert_auth_key,
    .lookup_auth_key = no_lookup_auth_key,
    .set_user_id = no_set_user_id,
    .remove = table_remove,
    .lookup = table_lookup,
    .straddr = table_text,
};

int open_table(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context) {
    (void)domain;
    if (attr->name || attr->rx_ctx_bits)
        return -ENOSYS;
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        return -ENOMEM;
    if (attr->type == FI_AV_UNSPEC)
        attr->type = FI_AV_TABLE;
    table->av = (struct fid_av){.fid = {FI_CLASS_AV, context, &table_fid_ops}, .ops = &table_ops};
    *av = &table->av;
    return 0;
}

int rank_of(const struct endpoint *endpoint, fi_addr_t address, uint64_t *rank) {
    if (!endpoint->table || address >= endpoint->table->count)
        return -EINVAL;
    *rank = endpoint->table->ranks[address];
    return 0;
}

fi_addr_t address_of(const struct table *table, uint64_t rank) {
    if (table && rank < table->count && table->ranks[rank] == rank)
        return rank;
    for (size_t i = 0; table && i < table->count; i++)
        if (table->ranks[i] == rank)
            return i;
    return FI_ADDR_UNSPEC;
}
