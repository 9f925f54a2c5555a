//! The calls of host and card. Each file adds the methods of one subject to [`Interface`](crate::Interface).
//!
//! A file calls only methods of files above it in this table:
//!
//! | files | content |
//! |---|---|
//! | `queues` | event queues: allocation, events |
//! | `descriptors` | memory descriptors, and the operations that use them |
//! | `counters` | counters: allocation, counts, triggered operations |
//! | `start`, `ending` | the initiator: operations, now or triggered; SEND, ACK and REPLY |
//! | `portals` | the portal table, and flow control on its entries |
//! | `entries` | match entries: creation, holds, unlinking, counts |
//! | `unexpected`, `append` | unexpected headers; appends of match entries, and searches of those headers |
//! | `complete`, `late`, `arrive` | the target: the end of a message; the redelivery of an early one; the arrival of a header |
//! | `waiting` | reasons for a waiting program |

mod append;
mod arrive;
mod complete;
mod counters;
mod descriptors;
mod ending;
mod entries;
mod late;
mod portals;
mod queues;
mod start;
mod unexpected;
pub(crate) mod waiting;
