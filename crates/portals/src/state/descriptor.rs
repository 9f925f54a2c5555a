//! Memory descriptors ('Memory Descriptors').

use crate::handle::Slab;
use crate::{CtHandle, EqHandle, MdHandle, MdOptions};

/// A memory descriptor: source memory of messages and destination of replies (`ptl_md_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Md {
    /// Host address of the first byte.
    pub start: u64,
    /// Length in bytes.
    pub length: u64,
    /// Options.
    pub options: MdOptions,
    /// The event queue, if any.
    pub eq: Option<EqHandle>,
    /// The counter, if any.
    pub ct: Option<CtHandle>,
}

pub(crate) struct Descriptor {
    pub md: Md,
    /// Number of operations that use the descriptor and have not ended.
    pub users: u32,
}

pub(crate) type Descriptors = Slab<MdHandle, Descriptor>;
