//! What a program asks for, as it comes: JSON with the arguments of [`crate::Host`] under the same names.

use crate::{CardMemory, Error, MemoryKind};
use nicety_portals::{
    AckRequest, Atomic, AtomicOp, AtomicRequest, CtHandle, Datatype, FetchRequest, GetRequest, List,
    MdHandle, Me, MeOptions, Operand, PutRequest, Request, Source, User,
};
use nicety_types::NodeId;
use serde::Deserialize;

/// A part of a buffer of the program's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The buffer, as numbered by the reply to `alloc`.
    pub buffer: usize,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Memory that a program goes through: a part of a buffer, or blocks of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extent {
    /// The part.
    pub part: Part,
    /// Offsets in it and lengths; all of it where there are none.
    #[serde(default)]
    pub blocks: Option<Vec<(u64, u64)>>,
}

/// A message that a selection waits for: a direct one of so many bytes, or an indirect one into a part of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// The channel.
    pub channel: usize,
    /// Bytes of a direct message.
    #[serde(default)]
    pub bytes: u32,
    /// Where an indirect message goes.
    #[serde(default)]
    pub part: Option<Part>,
}

/// A part of a memory of the card.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardPart {
    /// `cls`, `ctm`, `imem` or `emem`.
    memory: String,
    island: usize,
    offset: u32,
    bytes: u32,
}

/// A put, as a command carries it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Put {
    md: u64,
    bytes: u64,
    to: u32,
    pt: u32,
    match_bits: u64,
    #[serde(default)]
    local_offset: u64,
    #[serde(default)]
    remote_offset: u64,
    #[serde(default)]
    hdr_data: u64,
    #[serde(default)]
    user_ptr: u64,
    /// `no_ack`, `ack`, `ct_ack` or `oc_ack`.
    #[serde(default)]
    ack: Option<String>,
}

/// A get, as a command carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Get {
    md: u64,
    bytes: u64,
    to: u32,
    pt: u32,
    match_bits: u64,
    #[serde(default)]
    local_offset: u64,
    #[serde(default)]
    remote_offset: u64,
    #[serde(default)]
    user_ptr: u64,
}

/// An atomic, as a command carries it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    put: Put,
    operator: String,
    datatype: String,
}

/// A fetch-and-atomic or a swap, as a command carries it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fetch {
    get_md: u64,
    local_get_offset: u64,
    put: Put,
    operator: String,
    datatype: String,
    #[serde(default)]
    operand: Vec<u8>,
}

/// What has an operation started by the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    /// The counter.
    pub ct: u64,
    /// The successes it must have.
    pub threshold: u64,
}

/// What a match entry, or a search, takes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    match_bits: u64,
    ignore_bits: u64,
    source: Option<u32>,
    uid: Option<u32>,
    options: Vec<String>,
    ct: Option<u64>,
    user_ptr: u64,
}

/// The name of a list: `priority` or `overflow`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct ListName(String);

/// What a program asks for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the operations and arguments of `Host`, under the same names")]
pub enum Command {
    // Answered at once.
    Alloc {
        bytes: u64,
    },
    /// Memory of a process.
    VniAlloc {
        process: u32,
        bytes: u64,
    },
    /// The memory of a buffer that there is.
    BufferMemory {
        buffer: usize,
    },
    CtAlloc,
    CtFree {
        ct: u64,
    },
    CtGet {
        ct: u64,
    },
    EqAlloc {
        depth: u32,
    },
    EqFree {
        eq: u64,
    },
    PtAlloc {
        pt: Option<u32>,
        eq: Option<u64>,
        #[serde(default)]
        options: Vec<String>,
    },
    PtFree {
        pt: u32,
    },
    MdBind {
        part: Part,
        options: Vec<String>,
        eq: Option<u64>,
        ct: Option<u64>,
    },
    MdRelease {
        md: u64,
    },
    Application {
        name: String,
        weight: u32,
        memory: Option<u64>,
        run_cycles: Option<u64>,
        total_cycles: Option<u64>,
    },
    HpuAlloc {
        application: u32,
        contents: Vec<u8>,
    },
    HpuFree {
        memory: u64,
    },
    NiLimits,
    NiStatus {
        register: String,
    },
    AtomicSync,
    HpuRead {
        memory: u64,
        offset: u64,
        bytes: u64,
    },
    HpuWrite {
        memory: u64,
        offset: u64,
        /// In hexadecimal.
        contents: String,
    },
    Attach {
        handlers: usize,
        state: Vec<u8>,
        /// HPU memory that is the state instead.
        #[serde(default)]
        shared: Option<u64>,
        memory: Option<Part>,
        #[serde(default)]
        application: u32,
    },
    Detach {
        handlers: u32,
    },
    /// Whether the card has channels.
    Open,
    /// A process on a context of a microengine of the card.
    Start {
        processes: usize,
        name: String,
        microengine: usize,
        context: usize,
        contexts: Option<usize>,
        arguments: Vec<u32>,
    },
    /// A queue of the card's port, to be opened.
    OpenQueue {
        queue: u32,
    },
    CardMemory {
        part: CardPart,
    },
    ReadCard {
        part: CardPart,
    },
    WriteCard {
        part: CardPart,
        /// Hexadecimal digits.
        contents: String,
    },
    // Answered later.
    Subscribe {
        target: u32,
    },
    /// A channel, as numbered by the reply to `subscribe`; so everywhere.
    ChannelClose {
        channel: usize,
    },
    ChannelSend {
        channel: usize,
        /// Hexadecimal digits.
        contents: String,
        timeout_ps: Option<u64>,
    },
    ChannelReceive {
        channel: usize,
        bytes: u32,
        timeout_ps: Option<u64>,
    },
    ChannelSendInd {
        channel: usize,
        part: Part,
        timeout_ps: Option<u64>,
    },
    ChannelReceiveInd {
        channel: usize,
        part: Part,
        timeout_ps: Option<u64>,
    },
    ChannelSelect {
        alternatives: Vec<Wanted>,
        timeout_ps: Option<u64>,
    },
    /// A process, as numbered by the reply to `start`.
    Finished {
        process: usize,
    },
    VniOpen {
        process: u32,
    },
    VniClose {
        process: u32,
        vni: u32,
    },
    VniPool {
        process: u32,
        vni: u32,
        bytes: u64,
    },
    VniSend {
        process: u32,
        vni: u32,
        part: Part,
        /// A rank and an interface of its card.
        peer: (u32, u32),
        tag: u64,
        how: String,
    },
    VniReceive {
        process: u32,
        vni: u32,
        part: Part,
        peer: Option<(u32, u32)>,
        tag: Option<u64>,
        how: String,
    },
    VniTest {
        process: u32,
        vni: u32,
        operation: u64,
    },
    VniWait {
        process: u32,
        vni: u32,
        operation: u64,
    },
    Send {
        part: Part,
        to: u32,
        tag: u32,
    },
    Recv {
        part: Part,
        source: Option<u32>,
        tag: Option<u32>,
    },
    PostRecv {
        part: Part,
        source: Option<u32>,
        tag: Option<u32>,
    },
    /// A receive, as numbered by the reply to `post_recv`.
    Received {
        posted: u64,
    },
    Compute {
        ps: u64,
    },
    Work {
        ps: u64,
        cycles: u64,
        reads: Vec<Extent>,
        writes: Vec<Extent>,
    },
    Copy {
        part: Part,
        into: Part,
    },
    Barrier,
    /// Further threads of the program, by numbers that it has chosen; answered when they have ended.
    Gather {
        threads: Vec<u32>,
    },
    #[serde(alias = "triggered_put")]
    Put {
        put: Put,
        trigger: Option<Trigger>,
    },
    #[serde(alias = "triggered_get")]
    Get {
        get: Get,
        trigger: Option<Trigger>,
    },
    #[serde(alias = "triggered_atomic")]
    Atomic {
        atomic: Sum,
        trigger: Option<Trigger>,
    },
    #[serde(alias = "triggered_fetch_atomic")]
    FetchAtomic {
        fetch: Fetch,
        trigger: Option<Trigger>,
    },
    #[serde(alias = "triggered_swap")]
    Swap {
        fetch: Fetch,
        trigger: Option<Trigger>,
    },
    #[serde(alias = "triggered_ct_inc")]
    CtInc {
        ct: u64,
        success: u64,
        failure: u64,
        trigger: Option<Trigger>,
    },
    #[serde(alias = "triggered_ct_set")]
    CtSet {
        ct: u64,
        success: u64,
        failure: u64,
        trigger: Option<Trigger>,
    },
    CtCancelTriggered {
        ct: u64,
    },
    MeAppend {
        part: Part,
        pt: u32,
        entry: Entry,
        list: ListName,
        min_free: u64,
        handlers: Option<u32>,
        wait: bool,
    },
    MeUnlink {
        me: u64,
    },
    MeSearch {
        pt: u32,
        entry: Entry,
        delete: bool,
    },
    PtEnable {
        pt: u32,
    },
    PtDisable {
        pt: u32,
    },
    CtWait {
        ct: u64,
        threshold: u64,
    },
    /// Counters with their thresholds.
    CtPoll {
        counters: Vec<(u64, u64)>,
        limit_ps: Option<u64>,
    },
    EqGet {
        eq: u64,
    },
    EqWait {
        eq: u64,
    },
    EqPoll {
        eqs: Vec<u64>,
        limit_ps: Option<u64>,
    },
}

impl CardPart {
    pub(super) fn memory(&self) -> Result<CardMemory, Error> {
        let kinds = MemoryKind::ALL.map(|kind| (kind.key(), kind));
        let kind = one_of(&self.memory, kinds, "memory of the card")?;
        Ok(CardMemory { kind, island: self.island, offset: self.offset, bytes: self.bytes })
    }
}

impl Put {
    pub(super) fn request(&self) -> Result<PutRequest, Error> {
        let names = [
            ("no_ack", AckRequest::None),
            ("ack", AckRequest::Full),
            ("ct_ack", AckRequest::Counting),
            ("oc_ack", AckRequest::OperationCompleted),
        ];
        let ack = match &self.ack {
            None => AckRequest::None,
            Some(name) => one_of(name, names, "acknowledgement")?,
        };
        let (md, target) = (MdHandle::from_bits(self.md), NodeId(self.to));
        Ok(PutRequest {
            local_offset: self.local_offset,
            remote_offset: self.remote_offset,
            hdr_data: self.hdr_data,
            user_ptr: self.user_ptr,
            ack,
            ..PutRequest::new(md, self.bytes, target, self.pt, self.match_bits)
        })
    }
}

impl Get {
    pub(super) fn request(&self) -> GetRequest {
        let (md, target) = (MdHandle::from_bits(self.md), NodeId(self.to));
        GetRequest {
            local_offset: self.local_offset,
            remote_offset: self.remote_offset,
            user_ptr: self.user_ptr,
            ..GetRequest::new(md, self.bytes, target, self.pt, self.match_bits)
        }
    }
}

impl Sum {
    pub(super) fn request(&self) -> Result<Request, Error> {
        let atomic = atomic(&self.operator, &self.datatype)?;
        Ok(Request::Atomic(AtomicRequest { put: self.put.request()?, atomic }))
    }
}

impl Fetch {
    pub(super) fn request(&self) -> Result<FetchRequest, Error> {
        let wrong = |error: nicety_portals::Error| Error::Program(error.to_string());
        Ok(FetchRequest {
            get_md: MdHandle::from_bits(self.get_md),
            local_get_offset: self.local_get_offset,
            put: self.put.request()?,
            atomic: atomic(&self.operator, &self.datatype)?,
            operand: Operand::new(&self.operand).map_err(wrong)?,
        })
    }
}

impl Entry {
    /// The entry without memory.
    pub(super) fn me(&self) -> Result<Me, Error> {
        Ok(Me {
            match_bits: self.match_bits,
            ignore_bits: self.ignore_bits,
            source: self.source.map_or(Source::Any, |rank| Source::Rank(NodeId(rank))),
            user: self.uid.map_or(User::Any, User::Id),
            options: named(&self.options, MeOptions::from_name, "match entry")?,
            ct: self.ct.map(CtHandle::from_bits),
            user_ptr: self.user_ptr,
            ..Me::default()
        })
    }
}

impl ListName {
    pub(super) fn list(&self) -> Result<List, Error> {
        one_of(&self.0, [("priority", List::Priority), ("overflow", List::Overflow)], "list")
    }
}

/// An operator on a type, by their names in the specification without `PTL_`, and of types without `_T`.
fn atomic(operator: &str, datatype: &str) -> Result<Atomic, Error> {
    let short = |name: &str| name.trim_start_matches("PTL_").trim_end_matches("_T").to_lowercase();
    let operators = AtomicOp::ALL.iter().map(|&op| (short(op.name()), op));
    let datatypes = Datatype::ALL.iter().map(|&datatype| (short(datatype.name()), datatype));
    let (op, datatype) =
        (one_of(operator, operators, "atomic operator")?, one_of(datatype, datatypes, "type of items")?);
    Atomic::new(op, datatype).map_err(|error| Error::Program(error.to_string()))
}

/// What has this name.
fn one_of<N: AsRef<str>, T>(
    name: &str,
    known: impl IntoIterator<Item = (N, T)>,
    what: &str,
) -> Result<T, Error> {
    let mut others = Vec::new();
    for (own, value) in known {
        if own.as_ref() == name {
            return Ok(value);
        }
        others.push(own.as_ref().to_owned());
    }
    Err(Error::Input(format!("'{name}' is no {what}; there are {}", others.join(", "))))
}

/// A set of options by their names in the specification.
pub(super) fn named<O: bitflags::Flags>(
    names: &[String],
    find: impl Fn(&str) -> Option<O>,
    of: &str,
) -> Result<O, Error> {
    let mut options = O::empty();
    for name in names {
        let option = find(&name.to_uppercase()).ok_or_else(|| {
            let known: Vec<String> = O::all().iter_names().map(|(n, _)| n.to_lowercase()).collect();
            Error::Input(format!("'{name}' is no option of a {of}; there are {}", known.join(", ")))
        })?;
        options.insert(option);
    }
    Ok(options)
}
