//! The interface for programs that are not written in Rust, for example in Python. Commands are plain typed data, each defined
//! once.
//!
//! A [`Setup`] takes no virtual time, and [`Program::set_up`] returns its outcome at once. A [`Call`] takes virtual
//! time. [`drive`] runs a [`Thread`] of the program until the thread makes a call. When the call has ended in virtual
//! time, `drive` resumes the thread with the call's [`Outcome`]. Virtual time does not advance while a thread runs.
//! Commands refer to objects, such as buffers, by the numbers in earlier outcomes.
//!
//! Each file has the commands of one subject, and executes them on a [`Host`]: `messages.rs`, `portals.rs`, `handlers.rs`,
//! `frames.rs`, `processes.rs`, `channels.rs`, `interfaces.rs`, `rdma.rs`, `sockets.rs` and `xdp.rs`. `calls.rs` declares them.
//! `names.rs` parses the names of options and operators. `table.rs` lists the Portals calls of C processes.

mod calls;
mod channels;
mod frames;
mod handlers;
mod interfaces;
mod messages;
pub mod names;
mod portals;
mod processes;
mod rdma;
mod sockets;
mod table;
mod xdp;

pub use channels::{ChannelCall, Wanted};
pub use frames::FrameSetup;
pub use handlers::{HandlerCall, HandlerSetup};
pub use interfaces::{InterfaceCall, InterfaceSetup};
pub use messages::{Extent, MessageCall};
pub use portals::{PortalsCall, PortalsSetup, Trigger};
pub use processes::{ProcessCall, ProcessSetup};
pub use rdma::{RdmaCall, RdmaSetup};
pub use sockets::{SocketCall, SocketSetup};
pub use xdp::{XdpCall, XdpSetup};

use crate::{
    Buffer, Channel, Error, HandlerNames, Handlers, Host, PendingRecv, Process, Processes, Received,
};
use nicety_host::HostBytes;
use nicety_nic_apenet::{self as apenet, Region};
use nicety_nic_qnix::Completed;
use nicety_portals::{CtEvent, CtHandle, EqHandle, Event, Limits};
use nicety_types::Time;
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

/// A command that takes no virtual time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setup {
    /// Allocates memory of the host. The outcome is an [`Outcome::Buffer`].
    Alloc {
        /// Length in bytes.
        bytes: u64,
    },
    /// Set-up of a Portals card.
    Portals(PortalsSetup),
    /// Set-up of handlers.
    Handlers(HandlerSetup),
    /// Set-up of processes on a card.
    Processes {
        /// The number of the card in the host.
        card: u32,
        /// The set-up.
        setup: ProcessSetup,
    },
    /// Set-up of a host's processes with virtual network interfaces.
    Interfaces(InterfaceSetup),
    /// Set-up of RDMA, and memory of a graphics processor.
    Rdma(RdmaSetup),
    /// Set-up of sockets.
    Sockets(SocketSetup),
    /// Set-up of handlers on frames.
    Frames(FrameSetup),
    /// Set-up of XDP programs in the driver.
    Xdp(XdpSetup),
    /// Checks that the host's card has this interface. The outcome is [`Outcome::Nothing`].
    Has(Api),
}

/// The interface of one card design. [`Host`] has a function for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the functions of `Host` that give them")]
pub enum Api {
    Portals,
    Channels,
    Vni,
    Rdma,
    Gpu,
    Socket,
    Frames,
    Xdp,
}

/// A command that takes virtual time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Calls for messages between hosts, and for work on a host's own CPUs and memory.
    Messages(MessageCall),
    /// Calls to a Portals card.
    Portals(PortalsCall),
    /// Calls for handlers: access to HPU memory.
    Handlers(HandlerCall),
    /// Calls for processes on a card.
    Processes {
        /// The number of the card in the host.
        card: u32,
        /// The call.
        call: ProcessCall,
    },
    /// Calls on channels to processes on a card.
    Channels {
        /// The number of the card in the host.
        card: u32,
        /// The call.
        call: ChannelCall,
    },
    /// Calls of a host's process on its virtual network interface.
    Interfaces {
        /// The number of the host's process.
        process: u32,
        /// The call.
        call: InterfaceCall,
    },
    /// RDMA calls of a host's process.
    Rdma {
        /// The number of the host's process.
        process: u32,
        /// The call.
        call: RdmaCall,
    },
    /// Calls on a socket.
    Sockets {
        /// The number of the socket.
        socket: u32,
        /// The call.
        call: SocketCall,
    },
    /// Calls for XDP programs in the driver.
    Xdp(XdpCall),
}

/// A part of a buffer of the program's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of the buffer, from [`Outcome::Buffer`].
    pub buffer: u32,
    /// Offset of the first byte in the buffer.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The command succeeded, and has no value.
    Nothing,
    /// A number, such as a handle, a count, or the number of a new object.
    Word(u64),
    /// Bytes that were read.
    Bytes(Vec<u8>),
    /// Allocated memory. [`Program::memory`] returns its bytes.
    Buffer {
        /// The number of the buffer, for later commands.
        number: u32,
        /// The buffer's address in host memory.
        address: u64,
        /// The buffer's length in bytes.
        bytes: u64,
    },
    /// A received message.
    Received(Received),
    /// The value of a counter.
    Count(CtEvent),
    /// The counter that reached its threshold, and its value. `None` after the timeout.
    Reached(Option<(CtHandle, CtEvent)>),
    /// The next event of a queue. `None` if the queue is empty.
    Event(Option<Event>),
    /// The first event in several queues, and its queue. `None` after the timeout.
    Polled(Option<(EqHandle, Event)>),
    /// The index of the alternative that received a message, and the bytes of the message if it was direct.
    Selected(u32, Vec<u8>),
    /// The completion of a send or receive on an interface. `None` if the operation is pending.
    Completed(Option<Completed>),
    /// A registered region.
    Region(Region),
    /// An event of a process with RDMA. `None` if there is no event.
    RdmaEvent(Option<apenet::Event>),
    /// A datagram, and its sender.
    Datagram(Vec<u8>, SocketAddr),
    /// The addresses of a socket and of its peer.
    Ends(Option<SocketAddr>, Option<SocketAddr>),
    /// The limits of a Portals card.
    Limits(Limits),
}

/// The next action of a program's thread.
pub enum Next {
    /// The thread waits for this call.
    Call(Call),
    /// The thread starts further threads, and waits until all of them have ended.
    Gather(Vec<Box<dyn Thread>>),
    /// The thread has ended.
    Finished,
    /// The run must end. Its [interrupt](crate::ClusterConfig::interrupt) is already set.
    Stop,
}

/// A thread of a program that is not written in Rust.
pub trait Thread: 'static {
    /// Runs the thread until its next call or its end. `reply` is the outcome of its previous call. At the start, it is
    /// [`Outcome::Nothing`].
    fn resume(&mut self, reply: Result<Outcome, Error>) -> Next;
}

/// The future of a call. Each call has its own box of its own size, so a small call does not move the large state of another
/// kind.
type Carried<'c> = Pin<Box<dyn Future<Output = Result<Outcome, Error>> + 'c>>;

/// The compiled programs of a cluster. One host loads a program, and other hosts attach it by its number. Cheap to clone; a clone
/// is the same list.
#[derive(Clone, Default)]
pub struct Loaded {
    handlers: Shared<OnCards<(Vec<u8>, HandlerNames), Handlers>>,
    frames: Shared<OnCards<frames::Compiled, Handlers>>,
    processes: Shared<OnCards<Vec<u8>, Processes>>,
}

/// A list that all clones share.
type Shared<T> = Rc<RefCell<Vec<T>>>;

/// A compiled program, and its loaded form for each card specification.
struct OnCards<S, T> {
    source: S,
    /// The loaded forms. The key is the address of the card's specification, which exists until the run ends.
    loaded: RefCell<Vec<(usize, T)>>,
}

impl<S, T: Clone> OnCards<S, T> {
    /// Returns the program `source` with one loaded form, for the card specification at address `spec`.
    fn new(source: S, spec: usize, loaded: T) -> OnCards<S, T> {
        OnCards { source, loaded: RefCell::new(vec![(spec, loaded)]) }
    }

    /// Returns the loaded form for a card specification. Loads the program first, if necessary.
    ///
    /// # Errors
    /// When the program does not fit cards of that specification.
    fn on(&self, spec: usize, load: impl FnOnce(&S) -> Result<T, Error>) -> Result<T, Error> {
        if let Some((_, loaded)) = self.loaded.borrow().iter().find(|(known, _)| *known == spec) {
            return Ok(loaded.clone());
        }
        let loaded = load(&self.source)?;
        self.loaded.borrow_mut().push((spec, loaded.clone()));
        Ok(loaded)
    }
}

/// A program on its host, and the numbered objects that all its threads share. Cheap to clone; a clone is the same program.
#[derive(Clone)]
pub struct Program(Rc<Inner>);

struct Inner {
    host: Host,
    loaded: Loaded,
    buffers: RefCell<Vec<Buffer>>,
    receives: RefCell<Receives>,
    /// The processes that the program has started on the card.
    started: RefCell<Vec<Process>>,
    channels: RefCell<Vec<Channel>>,
    pending: RefCell<channels::PendingMessages>,
    /// The XDP programs that the program has loaded.
    programs: RefCell<Vec<crate::LoadedXdp>>,
}

/// Receives that are posted and not completed, by their numbers.
#[derive(Default)]
struct Receives {
    waiting: HashMap<u64, PendingRecv>,
    posted: u64,
}

/// Runs a program on its host: its first thread, and the threads that it gathers.
///
/// # Errors
/// It returns no errors: each error becomes the outcome of a call, and the thread gets it.
pub async fn drive(program: Program, thread: Box<dyn Thread>) -> Result<(), Error> {
    let host = program.0.host.clone();
    program.run(host, thread).await
}

impl Program {
    /// Returns a program for a host of a cluster. `loaded` are the programs of that cluster.
    pub fn new(host: Host, loaded: Loaded) -> Program {
        Program(Rc::new(Inner {
            host,
            loaded,
            buffers: RefCell::default(),
            receives: RefCell::default(),
            started: RefCell::default(),
            channels: RefCell::default(),
            pending: RefCell::default(),
            programs: RefCell::default(),
        }))
    }

    /// The current virtual time.
    pub fn now(&self) -> Time {
        self.0.host.now()
    }

    /// Executes a command that takes no virtual time.
    ///
    /// # Errors
    /// Those of the corresponding function of [`Host`].
    pub fn set_up(&self, setup: Setup) -> Result<Outcome, Error> {
        match setup {
            Setup::Alloc { bytes } => Ok(self.add_buffer(self.0.host.alloc(bytes)?)),
            Setup::Portals(setup) => self.set_up_portals(setup),
            Setup::Handlers(setup) => self.set_up_handlers(setup),
            Setup::Processes { card, setup } => self.set_up_processes(card, setup),
            Setup::Interfaces(setup) => self.set_up_interfaces(setup),
            Setup::Rdma(setup) => self.set_up_rdma(setup),
            Setup::Sockets(setup) => self.set_up_sockets(setup),
            Setup::Frames(setup) => self.set_up_frames(setup),
            Setup::Xdp(setup) => self.set_up_xdp(setup),
            Setup::Has(api) => self.check(api).map(Outcome::from),
        }
    }

    fn check(&self, api: Api) -> Result<(), Error> {
        let host = &self.0.host;
        match api {
            Api::Portals => host.portals().map(drop),
            Api::Channels => host.channels().map(drop),
            Api::Vni => host.vni().map(drop),
            Api::Rdma => host.rdma().map(drop),
            Api::Socket => host.socket().map(drop),
            Api::Frames => host.frames().map(drop),
            Api::Xdp => host.xdp().map(drop),
            Api::Gpu => host.gpu().map(drop),
        }
    }

    /// Returns the bytes of a buffer; `None` if the buffer is phantom.
    ///
    /// # Errors
    /// When the buffer does not exist.
    pub fn memory(&self, number: u32) -> Result<Option<Arc<HostBytes>>, Error> {
        self.with_buffer(number, |buffer| buffer.shared().cloned())
    }

    /// Runs a thread on `host` until it ends.
    async fn run(self, host: Host, mut thread: Box<dyn Thread>) -> Result<(), Error> {
        let mut reply = Ok(Outcome::Nothing);
        loop {
            reply = match thread.resume(reply) {
                Next::Call(call) => self.carry_out(&host, call).await,
                Next::Gather(threads) => self.gather(&host, threads).await,
                Next::Finished => return Ok(()),
                Next::Stop => {
                    host.check_interrupt();
                    std::future::pending().await
                }
            };
        }
    }

    /// Executes a call of a thread, for a caller that resumes threads itself. `host` is the host of that thread.
    ///
    /// # Errors
    /// Those of the function of [`Host`] with the call's name. Also when a number names no object.
    pub async fn call(&self, host: &Host, call: Call) -> Result<Outcome, Error> {
        self.carry_out(host, call).await
    }

    fn carry_out<'c>(&'c self, host: &'c Host, call: Call) -> Carried<'c> {
        match call {
            Call::Messages(call) => self.message(host, call),
            Call::Portals(call) => self.portals(host, call),
            Call::Handlers(call) => self.handlers(host, call),
            Call::Processes { card, call } => self.processes(host, card, call),
            Call::Channels { card, call } => self.channels(host, card, call),
            Call::Interfaces { process, call } => self.interfaces(host, process, call),
            Call::Rdma { process, call } => self.rdma(host, process, call),
            Call::Sockets { socket, call } => self.sockets(host, socket, call),
            Call::Xdp(call) => self.xdp(host, call),
        }
    }

    async fn gather(&self, host: &Host, threads: Vec<Box<dyn Thread>>) -> Result<Outcome, Error> {
        let start = |thread| {
            let program = self.clone();
            host.spawn(move |host| program.run(host, thread))
        };
        let started: Vec<_> = threads.into_iter().map(start).collect();
        for thread in started {
            thread.join().await?;
        }
        Ok(Outcome::Nothing)
    }

    fn add_buffer(&self, buffer: Buffer) -> Outcome {
        let mut buffers = self.0.buffers.borrow_mut();
        let number = u32::try_from(buffers.len()).expect("fewer than 2^32 buffers");
        let outcome = Outcome::Buffer { number, address: buffer.address(), bytes: buffer.len() };
        buffers.push(buffer);
        outcome
    }

    fn with_buffer<T>(&self, number: u32, what: impl FnOnce(&Buffer) -> T) -> Result<T, Error> {
        let unknown = || Error::Program(format!("there is no buffer {number} on this host"));
        Ok(what(self.0.buffers.borrow().get(number as usize).ok_or_else(unknown)?))
    }

    fn part(&self, part: Part) -> Result<Buffer, Error> {
        self.with_buffer(part.buffer, |buffer| buffer.slice(part.offset, part.bytes))?
    }
}

/// Adds an object to a list, and returns its number as an outcome.
fn numbered<T>(list: &RefCell<Vec<T>>, item: T) -> Outcome {
    let mut list = list.borrow_mut();
    list.push(item);
    Outcome::Word(list.len() as u64 - 1)
}
