//! Programs that run elsewhere, in Python for one: they ask by [`Command`], one at a time, and are told by [`Reply`].
//!
//! [`drive`] is such a program's stand-in on its host. It hands each reply to a [`Driver`], which gives the next command;
//! while the driver thinks, virtual time stands still. A command of the first kind is answered at once, one of the
//! second kind when its virtual time is over; the driver cannot tell, and need not. A program may have several threads, each
//! with a driver of its own; they share buffers and whatever else has a number.

mod channels;
mod command;
mod interfaces;
mod processes;

pub use command::{CardPart, Command, Entry, Extent, Fetch, Get, ListName, Part, Put, Sum, Trigger, Wanted};

use crate::{
    Buffer, Channel, Error, HandlerNames, Handlers, Host, PendingRecv, Process, Processes, Received,
};
use command::named;
use nicety_host::{HostBytes, Work};
use nicety_nic::spin::{ApplicationConfig, ApplicationId, Attach, HpuMemoryId, State};
use nicety_portals::{
    Atomic, CtEvent, CtHandle, EqHandle, Event, Limits, List, Md, MdHandle, MdOptions, Me, MeHandle,
    PtOptions, Request, SearchOp, StatusRegister,
};
use nicety_types::Duration;
use processes::{from_hexadecimal, hexadecimal};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

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
    /// It has processes for the cluster's cards; the reply numbers them for `start`, on any host.
    LoadProcesses {
        /// The compiled program.
        elf: Vec<u8>,
    },
    /// It is over.
    Finished,
    /// It failed, and says why.
    Failed(String),
}

/// Goes on with a thread of a program until it asks for something.
pub type Driver = Box<dyn FnMut(Reply) -> Next>;

/// Gives the driver of a thread of the program, by its number, which the program chooses; the first is 0.
pub type Drivers = Rc<dyn Fn(u32) -> Driver>;

/// Compiled programs that were loaded for a cluster's cards, which are all of one kind: what one host has loaded, the others
/// attach by its number. Cheap to clone; a clone is the same list.
#[derive(Clone, Default)]
pub struct Loaded {
    handlers: Rc<RefCell<Vec<Handlers>>>,
    processes: Rc<RefCell<Vec<Processes>>>,
}

/// Runs a program that lives elsewhere on a host.
///
/// # Errors
/// What the program failed with.
pub async fn drive(host: Host, loaded: Loaded, drivers: Drivers) -> Result<(), Error> {
    let shared = Shared {
        loaded,
        drivers,
        buffers: RefCell::default(),
        receives: RefCell::default(),
        started: RefCell::default(),
        channels: RefCell::default(),
    };
    Program { host, shared: Rc::new(shared) }.run(0).await
}

/// A thread of a program.
struct Program {
    host: Host,
    shared: Rc<Shared>,
}

/// What the threads of a program share.
struct Shared {
    loaded: Loaded,
    drivers: Drivers,
    buffers: RefCell<Vec<Buffer>>,
    receives: RefCell<Receives>,
    /// Processes that it has started.
    started: RefCell<Vec<Process>>,
    channels: RefCell<Vec<Channel>>,
}

/// Receives that nobody has waited for, by their numbers.
#[derive(Default)]
struct Receives {
    waiting: HashMap<u64, PendingRecv>,
    posted: u64,
}

impl Program {
    async fn run(self, thread: u32) -> Result<(), Error> {
        let mut driver = (self.shared.drivers)(thread);
        let mut reply = self.reply(Ok(Value::Null));
        loop {
            match driver(reply) {
                Next::Finished => return Ok(()),
                Next::Failed(why) => return Err(Error::Program(why)),
                Next::Command(command) => reply = self.answer(command).await,
                Next::Load { elf, names } => {
                    let loaded = self.host.load_handlers(&elf, &names).map(|handlers| {
                        let mut loaded = self.shared.loaded.handlers.borrow_mut();
                        loaded.push(handlers);
                        json!(loaded.len() - 1)
                    });
                    reply = self.reply(loaded);
                }
                Next::LoadProcesses { elf } => reply = self.reply(self.load_processes(&elf)),
            }
        }
    }

    /// Runs further threads of the program, and waits for their ends.
    async fn gather(&self, threads: Vec<u32>) -> Result<(), Error> {
        let start = |thread: u32| {
            let shared = self.shared.clone();
            self.host.spawn(move |host| Program { host, shared }.run(thread))
        };
        let started: Vec<_> = threads.into_iter().map(start).collect();
        for thread in started {
            thread.join().await?;
        }
        Ok(())
    }

    fn reply(&self, result: Result<Value, Error>) -> Reply {
        Reply { now_ps: self.host.now().ps(), result, memory: None }
    }

    fn part(&self, part: Part) -> Result<Buffer, Error> {
        let unknown = || Error::Program(format!("there is no buffer {} on this host", part.buffer));
        self.shared.buffers.borrow().get(part.buffer).ok_or_else(unknown)?.slice(part.offset, part.bytes)
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

    async fn answer(&self, command: Command) -> Reply {
        if let Command::Alloc { .. } | Command::VniAlloc { .. } | Command::BufferMemory { .. } = command {
            return match self.memory_of(&command) {
                Ok((made, buffer)) => Reply { memory: buffer.shared().cloned(), ..self.reply(Ok(made)) },
                Err(error) => self.reply(Err(error)),
            };
        }
        let result = self.carry_out(command).await;
        self.reply(result)
    }

    async fn carry_out(&self, command: Command) -> Result<Value, Error> {
        let host = &self.host;
        let eq_of = |bits: Option<u64>| bits.map(EqHandle::from_bits);
        let ct_of = |bits: Option<u64>| bits.map(CtHandle::from_bits);
        Ok(match command {
            Command::Alloc { .. } | Command::VniAlloc { .. } | Command::BufferMemory { .. } => {
                unreachable!("answered above")
            }
            Command::VniOpen { .. }
            | Command::VniClose { .. }
            | Command::VniPool { .. }
            | Command::VniSend { .. }
            | Command::VniReceive { .. }
            | Command::VniTest { .. }
            | Command::VniWait { .. } => return self.about_interfaces(command).await,
            Command::CtAlloc => json!(host.ct_alloc()?.to_bits()),
            Command::CtFree { ct } => none(host.ct_free(CtHandle::from_bits(ct)))?,
            Command::CtGet { ct } => count_json(host.ct_get(CtHandle::from_bits(ct))?),
            Command::EqAlloc { depth } => json!(host.eq_alloc(depth)?.to_bits()),
            Command::EqFree { eq } => none(host.eq_free(EqHandle::from_bits(eq)))?,
            Command::PtAlloc { pt, eq, options } => {
                let options = named(&options, PtOptions::from_name, "portal table entry")?;
                json!(host.pt_alloc_with(pt, eq_of(eq), options)?)
            }
            Command::PtFree { pt } => none(host.pt_free(pt))?,
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
            Command::MdRelease { md } => none(host.md_release(MdHandle::from_bits(md)))?,
            Command::Application { name, weight, memory, run_cycles, total_cycles } => {
                let config = ApplicationConfig { name, weight, memory, run_cycles, total_cycles };
                json!(host.application(config)?.0)
            }
            Command::HpuAlloc { application, contents } => {
                json!(host.hpu_alloc(ApplicationId(application), contents)?.0)
            }
            Command::HpuFree { memory } => none(host.hpu_free(HpuMemoryId(memory)))?,
            Command::NiLimits => limits_json(&host.ni_limits()?),
            Command::NiStatus { register } => {
                let known = StatusRegister::ALL.map(StatusRegister::name).join(", ");
                let found = StatusRegister::from_name(&register).ok_or_else(|| {
                    Error::Input(format!("'{register}' is no status register; there are {known}"))
                })?;
                json!(host.ni_status(found)?)
            }
            Command::AtomicSync => none(host.atomic_sync().await)?,
            Command::HpuRead { memory, offset, bytes } => {
                json!(hexadecimal(&host.hpu_read(HpuMemoryId(memory), offset, bytes).await?))
            }
            Command::HpuWrite { memory, offset, contents } => {
                none(host.hpu_write(HpuMemoryId(memory), offset, from_hexadecimal(&contents)?).await)?
            }
            Command::Detach { handlers } => none(host.detach(handlers))?,
            Command::Attach { handlers, state, shared, memory, application } => {
                let loaded = self.shared.loaded.handlers.borrow();
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
            Command::Open => none(host.open().map(|_| ()))?,
            Command::Start { .. }
            | Command::OpenQueue { .. }
            | Command::CardMemory { .. }
            | Command::ReadCard { .. }
            | Command::WriteCard { .. }
            | Command::Finished { .. } => return self.about_processes(command).await,
            Command::Subscribe { .. }
            | Command::ChannelClose { .. }
            | Command::ChannelSend { .. }
            | Command::ChannelReceive { .. }
            | Command::ChannelSendInd { .. }
            | Command::ChannelReceiveInd { .. }
            | Command::ChannelSelect { .. } => return self.about_channels(command).await,
            Command::Send { part, to, tag } => none(host.send(&self.part(part)?, to, tag).await)?,
            Command::Recv { part, source, tag } => {
                received_json(&host.recv(&self.part(part)?, source, tag).await?)
            }
            Command::PostRecv { part, source, tag } => {
                let pending = host.post_recv(&self.part(part)?, source, tag).await?;
                let mut receives = self.shared.receives.borrow_mut();
                receives.posted += 1;
                let number = receives.posted;
                receives.waiting.insert(number, pending);
                json!(number)
            }
            Command::Received { posted } => {
                let unknown = || Error::Program(format!("no receive {posted} of this host waits"));
                let pending = self.shared.receives.borrow_mut().waiting.remove(&posted);
                let pending = pending.ok_or_else(unknown)?;
                received_json(&host.received(pending).await?)
            }
            Command::Compute { ps } => {
                host.compute(host.duration(Duration::from_ps(ps), 0)?).await;
                Value::Null
            }
            Command::Work { ps, cycles, reads, writes } => {
                let compute = host.duration(Duration::from_ps(ps), cycles)?;
                let work = Work { compute, reads: self.addresses(reads)?, writes: self.addresses(writes)? };
                none(host.work(&work).await)?
            }
            Command::Copy { part, into } => none(host.copy(&self.part(part)?, &self.part(into)?).await)?,
            Command::Gather { threads } => none(self.gather(threads).await)?,
            Command::Barrier => {
                host.barrier().await;
                Value::Null
            }
            Command::Put { put, trigger } => self.post(Request::Put(put.request()?), trigger).await?,
            Command::Get { get, trigger } => self.post(Request::Get(get.request()), trigger).await?,
            Command::Atomic { atomic, trigger } => self.post(atomic.request()?, trigger).await?,
            Command::FetchAtomic { fetch, trigger } => {
                self.post(Request::FetchAtomic(fetch.request()?), trigger).await?
            }
            Command::Swap { fetch, trigger } => self.post(Request::Swap(fetch.request()?), trigger).await?,
            Command::CtInc { ct, success, failure, trigger } => {
                let (target, by) = (CtHandle::from_bits(ct), CtEvent { success, failure });
                none(match trigger {
                    None => host.ct_inc(target, by).await,
                    Some(Trigger { ct, threshold }) => {
                        host.triggered_ct_inc(target, by, CtHandle::from_bits(ct), threshold).await
                    }
                })?
            }
            Command::CtSet { ct, success, failure, trigger } => {
                let (target, value) = (CtHandle::from_bits(ct), CtEvent { success, failure });
                none(match trigger {
                    None => host.ct_set(target, value).await,
                    Some(Trigger { ct, threshold }) => {
                        host.triggered_ct_set(target, value, CtHandle::from_bits(ct), threshold).await
                    }
                })?
            }
            Command::CtCancelTriggered { ct } => {
                none(host.ct_cancel_triggered(CtHandle::from_bits(ct)).await)?
            }
            Command::MeAppend { part, pt, entry, list, min_free, handlers, wait } => {
                let buffer = self.part(part)?;
                let me =
                    Me { start: buffer.address(), length: buffer.len(), min_free, handlers, ..entry.me()? };
                let appending = host.me_append(pt, me, list.list()?).await?;
                if wait { json!(host.appended(appending).await?.to_bits()) } else { Value::Null }
            }
            Command::MeUnlink { me } => none(host.me_unlink(MeHandle::from_bits(me)).await)?,
            Command::MeSearch { pt, entry, delete } => {
                let op = if delete { SearchOp::Delete } else { SearchOp::Only };
                none(host.me_search(pt, entry.me()?, op).await)?
            }
            Command::PtEnable { pt } => none(host.pt_enable(pt, true).await)?,
            Command::PtDisable { pt } => none(host.pt_enable(pt, false).await)?,
            Command::CtWait { ct, threshold } => {
                json!(host.ct_wait(CtHandle::from_bits(ct), threshold).await?.success)
            }
            Command::CtPoll { counters, limit_ps } => {
                let counters: Vec<_> = counters
                    .into_iter()
                    .map(|(ct, threshold)| (CtHandle::from_bits(ct), threshold))
                    .collect();
                let reached = host.ct_poll(&counters, limit_ps.map(Duration::from_ps)).await?;
                reached.map_or(Value::Null, |(index, value)| json!([index, count_json(value)]))
            }
            Command::EqGet { eq } => {
                host.eq_get(EqHandle::from_bits(eq)).await?.map_or(Value::Null, |event| event_json(&event))
            }
            Command::EqWait { eq } => {
                let what = || "an event in its queue".to_string();
                event_json(&host.eq_wait(EqHandle::from_bits(eq), |_| true, what).await?)
            }
            Command::EqPoll { eqs, limit_ps } => {
                let queues: Vec<_> = eqs.into_iter().map(EqHandle::from_bits).collect();
                let found = host.eq_poll(&queues, limit_ps.map(Duration::from_ps)).await?;
                found.map_or(Value::Null, |(index, event)| json!([index, event_json(&event)]))
            }
        })
    }

    /// Posts an operation, or has a counter trigger it.
    async fn post(&self, request: Request, trigger: Option<Trigger>) -> Result<Value, Error> {
        none(match trigger {
            None => self.host.post(&request).await,
            Some(Trigger { ct, threshold }) => {
                self.host.triggered(request, CtHandle::from_bits(ct), threshold).await
            }
        })
    }
}

/// The result of a call that has none.
fn none(result: Result<(), Error>) -> Result<Value, Error> {
    result.map(|()| Value::Null)
}

fn received_json(received: &Received) -> Value {
    json!({"source": received.source, "tag": received.tag, "length_bytes": received.length})
}

fn count_json(value: CtEvent) -> Value {
    json!({"success": value.success, "failure": value.failure})
}

/// With the names of `ptl_ni_limits_t`; features by their own.
fn limits_json(limits: &Limits) -> Value {
    let features: Vec<String> = limits.features.iter_names().map(|(name, _)| name.to_lowercase()).collect();
    json!({
        "max_entries": limits.entries,
        "max_unexpected_headers": limits.unexpected_headers,
        "max_mds": limits.descriptors,
        "max_cts": limits.counters,
        "max_eqs": limits.event_queues,
        "max_eq_depth": limits.event_queue_depth,
        "max_pt_index": limits.portal_table - 1,
        "max_list_size": limits.list_length,
        "max_triggered_ops": limits.triggered,
        "max_operations": limits.operations,
        "max_msg_size": limits.message_bytes,
        "max_atomic_size": limits.atomic_bytes,
        "max_fetch_atomic_size": limits.fetch_atomic_bytes,
        "features": features,
    })
}

fn event_json(event: &Event) -> Value {
    let atomic = |name: fn(Atomic) -> &'static str| event.atomic.map(name);
    json!({
        "kind": event.kind.name(),
        "fail": event.fail.name(),
        "initiator": event.initiator.0,
        "pt": event.pt,
        "list": match event.list {
            List::Priority => "priority",
            List::Overflow => "overflow",
        },
        "match_bits": event.match_bits,
        "hdr_data": event.hdr_data,
        "rlength_bytes": event.rlength,
        "mlength_bytes": event.mlength,
        "remote_offset_bytes": event.remote_offset,
        "start": event.start,
        "user_ptr": event.user_ptr,
        "uid": event.uid,
        "operator": atomic(|atomic| atomic.op().name()),
        "datatype": atomic(|atomic| atomic.datatype().name()),
    })
}
