//! Programs that run elsewhere, in Python for one: they ask by [`Command`], one at a time, and are told by [`Reply`].
//!
//! [`drive`] is such a program's stand-in on its host. It hands each reply to a [`Driver`], which gives the next command;
//! while the driver thinks, virtual time stands still. A command of the first kind is answered at once, one of the
//! second kind when its virtual time is over; the driver cannot tell, and need not.

use crate::{Buffer, Error, HandlerNames, Handlers, Host};
use nicety_host::{HostBytes, Work};
use nicety_nic::spin::{Appending, ApplicationConfig, ApplicationId, Attach, HpuMemoryId, State};
use nicety_portals::{
    AckRequest, CtHandle, EqHandle, Event, List, Md, MdHandle, MdOptions, Me, MeOptions, PutRequest, Source,
};
use nicety_types::{Duration, NodeId};
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

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

/// A put, as a command carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
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
    #[serde(default)]
    ack: bool,
}

/// What a program asks for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the operations and arguments of `Host`, under the same names")]
pub enum Command {
    // Answered at once.
    Alloc {
        bytes: u64,
    },
    CtAlloc,
    CtGet {
        ct: u64,
    },
    EqAlloc {
        depth: u32,
    },
    PtAlloc {
        pt: Option<u32>,
        eq: Option<u64>,
    },
    MdBind {
        part: Part,
        options: Vec<String>,
        eq: Option<u64>,
        ct: Option<u64>,
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
    // Answered later.
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
    Put {
        put: Put,
    },
    TriggeredPut {
        put: Put,
        ct: u64,
        threshold: u64,
    },
    MeAppend {
        part: Part,
        pt: u32,
        match_bits: u64,
        ignore_bits: u64,
        source: Option<u32>,
        options: Vec<String>,
        ct: Option<u64>,
        handlers: Option<u32>,
        user_ptr: u64,
        wait: bool,
    },
    CtWait {
        ct: u64,
        threshold: u64,
    },
    EqWait {
        eq: u64,
    },
}

/// What a program is told.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The instant, in picoseconds.
    pub now_ps: u64,
    /// The result, or what went wrong.
    pub result: Result<Value, Error>,
    /// The memory of a buffer just allocated.
    pub memory: Option<Arc<HostBytes>>,
}

/// What a program does next.
#[derive(Clone, Debug)]
pub enum Next {
    /// It asks for something.
    Command(Command),
    /// It has handlers for the cluster's cards; the reply numbers them for `attach`, on any host.
    Load {
        /// The compiled program.
        elf: Vec<u8>,
        /// What its handlers are called.
        names: HandlerNames,
    },
    /// It is over.
    Finished,
    /// It failed, and says why.
    Failed(String),
}

/// Goes on with the program until it asks for something.
pub type Driver = Box<dyn FnMut(Reply) -> Next>;

/// Compiled programs that were loaded for a cluster's cards, which are all of one kind: what one host has loaded, the others
/// attach by its number. Cheap to clone; a clone is the same list.
#[derive(Clone, Default)]
pub struct Loaded(Rc<RefCell<Vec<Handlers>>>);

/// Runs a program that lives elsewhere on a host.
///
/// # Errors
/// What the program failed with.
pub async fn drive(host: Host, loaded: Loaded, mut driver: Driver) -> Result<(), Error> {
    let mut program = Program { host, loaded, buffers: Vec::new() };
    let mut reply = program.reply(Ok(Value::Null));
    loop {
        match driver(reply) {
            Next::Finished => return Ok(()),
            Next::Failed(why) => return Err(Error::Program(why)),
            Next::Command(command) => reply = program.answer(command).await,
            Next::Load { elf, names } => {
                let loaded = program.host.load_handlers(&elf, &names).map(|handlers| {
                    let mut loaded = program.loaded.0.borrow_mut();
                    loaded.push(handlers);
                    json!(loaded.len() - 1)
                });
                reply = program.reply(loaded);
            }
        }
    }
}

struct Program {
    host: Host,
    loaded: Loaded,
    buffers: Vec<Buffer>,
}

impl Program {
    fn reply(&self, result: Result<Value, Error>) -> Reply {
        Reply { now_ps: self.host.now().ps(), result, memory: None }
    }

    fn part(&self, part: Part) -> Result<Buffer, Error> {
        let unknown = || Error::Program(format!("there is no buffer {} on this host", part.buffer));
        self.buffers.get(part.buffer).ok_or_else(unknown)?.slice(part.offset, part.bytes)
    }

    fn addresses(&self, extents: Vec<Extent>) -> Result<Vec<Range<u64>>, Error> {
        let mut found = Vec::new();
        for Extent { part, blocks } in extents {
            let buffer = self.part(part)?;
            match blocks {
                None => found.push(buffer.addresses()),
                Some(blocks) => {
                    for (offset, bytes) in blocks {
                        found.push(buffer.slice(offset, bytes)?.addresses());
                    }
                }
            }
        }
        Ok(found)
    }

    async fn answer(&mut self, command: Command) -> Reply {
        if let Command::Alloc { bytes } = command {
            let allocated = self.host.alloc(bytes).map(|buffer| {
                self.buffers.push(buffer);
                json!(self.buffers.len() - 1)
            });
            let memory = self.buffers.last().and_then(|buffer| buffer.shared().cloned());
            return Reply { memory, ..self.reply(allocated) };
        }
        let result = self.carry_out(command).await;
        self.reply(result)
    }

    async fn carry_out(&self, command: Command) -> Result<Value, Error> {
        let host = &self.host;
        let eq_of = |bits: Option<u64>| bits.map(EqHandle::from_bits);
        let ct_of = |bits: Option<u64>| bits.map(CtHandle::from_bits);
        Ok(match command {
            Command::Alloc { .. } => unreachable!("answered above"),
            Command::CtAlloc => json!(host.ct_alloc()?.to_bits()),
            Command::CtGet { ct } => {
                let value = host.ct_get(CtHandle::from_bits(ct));
                json!({"success": value.success, "failure": value.failure})
            }
            Command::EqAlloc { depth } => json!(host.eq_alloc(depth)?.to_bits()),
            Command::PtAlloc { pt, eq } => json!(host.pt_alloc(pt, eq_of(eq))?),
            Command::MdBind { part, options, eq, ct } => {
                let buffer = self.part(part)?;
                let md = Md {
                    start: buffer.address(),
                    length: buffer.len(),
                    options: named(&options, MdOptions::from_name, "memory descriptor")?,
                    eq: eq_of(eq),
                    ct: ct_of(ct),
                };
                json!(host.md_bind(md)?.to_bits())
            }
            Command::Application { name, weight, memory, run_cycles, total_cycles } => {
                let config = ApplicationConfig { name, weight, memory, run_cycles, total_cycles };
                json!(host.application(config)?.0)
            }
            Command::HpuAlloc { application, contents } => {
                json!(host.hpu_alloc(ApplicationId(application), contents)?.0)
            }
            Command::HpuFree { memory } => {
                host.hpu_free(HpuMemoryId(memory))?;
                Value::Null
            }
            Command::Detach { handlers } => {
                host.detach(handlers)?;
                Value::Null
            }
            Command::Attach { handlers, state, shared, memory, application } => {
                let loaded = self.loaded.0.borrow();
                let handlers = loaded
                    .get(handlers)
                    .ok_or_else(|| Error::Program(format!("there are no handlers {handlers}")))?;
                let memory = memory.map(|part| self.part(part)).transpose()?;
                let state = match shared {
                    None => State::Own(&state),
                    Some(memory) => State::Shared(HpuMemoryId(memory)),
                };
                let memory = memory.map(|buffer| (buffer.address(), buffer.len()));
                let application = ApplicationId(application);
                json!(host.attach_as(&Attach { handlers, application, state, memory })?)
            }
            Command::Send { part, to, tag } => {
                host.send(&self.part(part)?, to, tag).await?;
                Value::Null
            }
            Command::Recv { part, source, tag } => {
                let received = host.recv(&self.part(part)?, source, tag).await?;
                json!({"source": received.source, "tag": received.tag, "length_bytes": received.length})
            }
            Command::Compute { ps } => {
                host.compute(Duration::from_ps(ps)).await;
                Value::Null
            }
            Command::Work { ps, cycles, reads, writes } => {
                let compute = host.duration(Duration::from_ps(ps), cycles)?;
                let work = Work { compute, reads: self.addresses(reads)?, writes: self.addresses(writes)? };
                host.work(&work).await?;
                Value::Null
            }
            Command::Copy { part, into } => {
                host.copy(&self.part(part)?, &self.part(into)?).await?;
                Value::Null
            }
            Command::Barrier => {
                host.barrier().await;
                Value::Null
            }
            Command::Put { put } => {
                host.put(&request(put)).await?;
                Value::Null
            }
            Command::TriggeredPut { put, ct, threshold } => {
                host.triggered_put(request(put), CtHandle::from_bits(ct), threshold).await?;
                Value::Null
            }
            Command::MeAppend {
                part,
                pt,
                match_bits,
                ignore_bits,
                source,
                options,
                ct,
                handlers,
                user_ptr,
                wait,
            } => {
                let buffer = self.part(part)?;
                let me = Me {
                    start: buffer.address(),
                    length: buffer.len(),
                    match_bits,
                    ignore_bits,
                    source: source.map_or(Source::Any, |rank| Source::Rank(NodeId(rank))),
                    options: named(&options, MeOptions::from_name, "match entry")?,
                    ct: ct_of(ct),
                    handlers,
                    user_ptr,
                    ..Me::default()
                };
                let appending: Appending = host.me_append(pt, me, List::Priority).await?;
                if wait {
                    host.appended(appending).await?;
                }
                Value::Null
            }
            Command::CtWait { ct, threshold } => {
                json!(host.ct_wait(CtHandle::from_bits(ct), threshold).await?.success)
            }
            Command::EqWait { eq } => {
                let what = || "an event in its queue".to_string();
                event_json(&host.eq_wait(EqHandle::from_bits(eq), |_| true, what).await?)
            }
        })
    }
}

fn request(put: Put) -> PutRequest {
    PutRequest {
        local_offset: put.local_offset,
        remote_offset: put.remote_offset,
        hdr_data: put.hdr_data,
        user_ptr: put.user_ptr,
        ack: if put.ack { AckRequest::Full } else { AckRequest::None },
        ..PutRequest::new(MdHandle::from_bits(put.md), put.bytes, NodeId(put.to), put.pt, put.match_bits)
    }
}

/// A set of options by their names in the specification.
fn named<O: bitflags::Flags>(
    names: &[String],
    find: impl Fn(&str) -> Option<O>,
    of: &str,
) -> Result<O, Error> {
    let mut options = O::empty();
    for name in names {
        let option = find(&name.to_uppercase()).ok_or_else(|| {
            let known: Vec<String> = O::all().iter_names().map(|(n, _)| n.to_lowercase()).collect();
            Error::Program(format!("'{name}' is no option of a {of}; there are {}", known.join(", ")))
        })?;
        options.insert(option);
    }
    Ok(options)
}

fn event_json(event: &Event) -> Value {
    json!({
        "kind": event.kind.name(),
        "fail": event.fail.name(),
        "initiator": event.initiator.0,
        "pt": event.pt,
        "match_bits": event.match_bits,
        "hdr_data": event.hdr_data,
        "rlength_bytes": event.rlength,
        "mlength_bytes": event.mlength,
        "remote_offset_bytes": event.remote_offset,
        "user_ptr": event.user_ptr,
    })
}
