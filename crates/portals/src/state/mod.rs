//! The parts of an interface, a file for each subject. The [calls](crate::calls) read and change them.
//!
//! A file imports only files above it in this table:
//!
//! | files | content |
//! |---|---|
//! | `queue`, `counter` | event queues; counting events, and operations that wait on them |
//! | `descriptor`, `operation` | memory descriptors; operations that have not ended |
//! | `entry`, `unexpected`, `portal` | match entries; unexpected headers; the portal table with its lists |
//! | `late` | unexpected messages in flight to the entry that found them |

pub(crate) mod counter;
pub(crate) mod descriptor;
pub(crate) mod entry;
pub(crate) mod late;
pub(crate) mod operation;
pub(crate) mod portal;
pub(crate) mod queue;
pub(crate) mod unexpected;
