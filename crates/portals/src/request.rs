//! The initiator's requests: the arguments of puts, gets and atomics ('Data Movement Operations').

use crate::{AckRequest, Atomic, Header, HeaderKind, MdHandle, Operand};
use nicety_types::NodeId;

/// The arguments of a put (`PtlPut`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutRequest {
    /// The memory descriptor.
    pub md: MdHandle,
    /// Offset of the message in the descriptor's memory, in bytes.
    pub local_offset: u64,
    /// Length of the message in bytes.
    pub length: u64,
    /// The requested acknowledgement.
    pub ack: AckRequest,
    /// The target's rank.
    pub target: NodeId,
    /// The portal table index at the target.
    pub pt: u32,
    /// The match bits.
    pub match_bits: u64,
    /// Offset of the message in the match entry's memory, in bytes; an entry with [`crate::MeOptions::MANAGE_LOCAL`] ignores it.
    pub remote_offset: u64,
    /// The user's word (`user_ptr`) in the SEND and ACK events.
    pub user_ptr: u64,
    /// The user's word (`hdr_data`) in the target's event.
    pub hdr_data: u64,
}

impl PutRequest {
    /// Returns a put of the first `length` bytes of `md`, with everything else zero.
    pub const fn new(md: MdHandle, length: u64, target: NodeId, pt: u32, match_bits: u64) -> PutRequest {
        PutRequest {
            md,
            local_offset: 0,
            length,
            ack: AckRequest::None,
            target,
            pt,
            match_bits,
            remote_offset: 0,
            user_ptr: 0,
            hdr_data: 0,
        }
    }
}

/// The arguments of a get (`PtlGet`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetRequest {
    /// The memory descriptor into which the bytes are written.
    pub md: MdHandle,
    /// Offset of the bytes in the descriptor's memory, in bytes.
    pub local_offset: u64,
    /// Number of bytes to get.
    pub length: u64,
    /// The target's rank.
    pub target: NodeId,
    /// The portal table index at the target.
    pub pt: u32,
    /// The match bits.
    pub match_bits: u64,
    /// Offset of the bytes in the match entry's memory, in bytes; an entry with [`crate::MeOptions::MANAGE_LOCAL`]
    /// ignores it.
    pub remote_offset: u64,
    /// The user's word (`user_ptr`) in the REPLY event.
    pub user_ptr: u64,
}

impl GetRequest {
    /// Returns a get into the first `length` bytes of `md`, with everything else zero.
    pub const fn new(md: MdHandle, length: u64, target: NodeId, pt: u32, match_bits: u64) -> GetRequest {
        let (local_offset, remote_offset, user_ptr) = (0, 0, 0);
        GetRequest { md, local_offset, length, target, pt, match_bits, remote_offset, user_ptr }
    }
}

/// The arguments of an atomic (`PtlAtomic`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicRequest {
    /// Source and destination of the data. The length is a multiple of the item size.
    pub put: PutRequest,
    /// The operator, which is no swap, and the type.
    pub atomic: Atomic,
}

/// The arguments of a fetch-and-atomic (`PtlFetchAtomic`) or swap (`PtlSwap`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// The memory descriptor into which the target's previous bytes are written.
    pub get_md: MdHandle,
    /// The offset of the previous bytes in this descriptor's memory, in bytes.
    pub local_get_offset: u64,
    /// Source and destination of the data. The length is a multiple of the item size. `ack` is `None`, because the
    /// reply is the only answer.
    pub put: PutRequest,
    /// The operator and the type: a swap for [`Request::Swap`], any other for [`Request::FetchAtomic`].
    pub atomic: Atomic,
    /// The operand of a conditional or masked swap.
    pub operand: Operand,
}

/// An operation of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// `PtlPut`.
    Put(PutRequest),
    /// `PtlGet`.
    Get(GetRequest),
    /// `PtlAtomic`.
    Atomic(AtomicRequest),
    /// `PtlFetchAtomic`.
    FetchAtomic(FetchRequest),
    /// `PtlSwap`.
    Swap(FetchRequest),
}

impl Request {
    /// Returns the target's rank.
    pub const fn target(&self) -> NodeId {
        match self {
            Request::Put(put) => put.target,
            Request::Get(get) => get.target,
            Request::Atomic(atomic) => atomic.put.target,
            Request::FetchAtomic(fetch) | Request::Swap(fetch) => fetch.put.target,
        }
    }

    /// Returns the name of the kind of operation.
    pub const fn name(&self) -> &'static str {
        match self {
            Request::Put(_) => "put",
            Request::Get(_) => "get",
            Request::Atomic(_) => "atomic",
            Request::FetchAtomic(_) => "fetch atomic",
            Request::Swap(_) => "swap",
        }
    }

    /// Returns the name of the triggered form of the operation.
    pub const fn triggered_name(&self) -> &'static str {
        match self {
            Request::Put(_) => "triggered put",
            Request::Get(_) => "triggered get",
            Request::Atomic(_) => "triggered atomic",
            Request::FetchAtomic(_) => "triggered fetch atomic",
            Request::Swap(_) => "triggered swap",
        }
    }
}

impl From<PutRequest> for Request {
    fn from(put: PutRequest) -> Request {
        Request::Put(put)
    }
}

impl From<GetRequest> for Request {
    fn from(get: GetRequest) -> Request {
        Request::Get(get)
    }
}

impl From<AtomicRequest> for Request {
    fn from(atomic: AtomicRequest) -> Request {
        Request::Atomic(atomic)
    }
}

/// The common form of all requests. In the header, the operation's handle is not set yet.
pub(crate) struct Draft {
    pub header: Header,
    /// Source of the data: descriptor and offset.
    pub from: Option<(MdHandle, u64)>,
    /// Destination of the reply: descriptor and offset.
    pub to: Option<(MdHandle, u64)>,
    pub operand: Operand,
    pub user_ptr: u64,
}

impl From<&PutRequest> for Draft {
    fn from(put: &PutRequest) -> Draft {
        let PutRequest { target, pt, match_bits, length, ack, remote_offset, hdr_data, .. } = *put;
        // The interface sets the source when it prepares the operation.
        let header = Header::put(target, target, pt, match_bits, length);
        Draft {
            header: Header { ack, remote_offset, hdr_data, ..header },
            from: Some((put.md, put.local_offset)),
            to: None,
            operand: Operand::NONE,
            user_ptr: put.user_ptr,
        }
    }
}

impl From<&GetRequest> for Draft {
    fn from(get: &GetRequest) -> Draft {
        let GetRequest { target, pt, match_bits, length, remote_offset, user_ptr, .. } = *get;
        let header = Header::put(target, target, pt, match_bits, length);
        Draft {
            header: Header { kind: HeaderKind::Get, remote_offset, ..header },
            from: None,
            to: Some((get.md, get.local_offset)),
            operand: Operand::NONE,
            user_ptr,
        }
    }
}

impl From<&Request> for Draft {
    fn from(request: &Request) -> Draft {
        match request {
            Request::Put(put) => put.into(),
            Request::Get(get) => get.into(),
            Request::Atomic(AtomicRequest { put, atomic }) => Draft::atomic(HeaderKind::Atomic, put, *atomic),
            Request::FetchAtomic(fetch) => Draft::fetch(HeaderKind::FetchAtomic, fetch),
            Request::Swap(fetch) => Draft::fetch(HeaderKind::Swap, fetch),
        }
    }
}

impl Draft {
    fn atomic(kind: HeaderKind, put: &PutRequest, atomic: Atomic) -> Draft {
        let draft = Draft::from(put);
        Draft { header: Header { kind, atomic: Some(atomic), ..draft.header }, ..draft }
    }

    /// Returns the draft of a fetch-and-atomic or a swap.
    fn fetch(kind: HeaderKind, request: &FetchRequest) -> Draft {
        Draft {
            to: Some((request.get_md, request.local_get_offset)),
            operand: request.operand,
            ..Draft::atomic(kind, &request.put, request.atomic)
        }
    }
}
