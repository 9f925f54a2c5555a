//! The library in a process: it sends, receives, and polls doorbells in its own memory.

mod checks;
mod holds;
mod pool;
mod registration;

use crate::interface::{Command, Completed, Kind, Progress, ReceiveCommand, SendCommand, Source};
use crate::{Card, Endpoint, QnixError};
use holds::{Begun, Ending, Piece};
use nicety_host::Allocation;
use nicety_kernel::describe;
use nicety_nic_core::Tags;
use nicety_types::{Duration, MessageId, Path, Payload, Stage, Starter, Time};
use pool::BufferPool;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The transfer method of a message between its process and the card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransferMethod {
    /// The fastest method: programmed I/O for a short send, or else DMA without a copy if the buffer is in the Buffer
    /// Pool. Otherwise copy or translation, the cheaper method for the size.
    #[default]
    Auto,
    /// Programmed I/O, together with the command. Only for sends; a receive uses `Auto` instead.
    Pio,
    /// DMA from or to the buffer. The buffer must be in the Buffer Pool.
    Pool,
    /// DMA from or to the Buffer Pool, with a copy between pool and buffer.
    Copy,
    /// DMA from or to the buffer. The kernel locks and translates its pages.
    Translate,
}

impl TransferMethod {
    /// All methods.
    pub const ALL: [TransferMethod; 5] = [
        TransferMethod::Auto,
        TransferMethod::Pio,
        TransferMethod::Pool,
        TransferMethod::Copy,
        TransferMethod::Translate,
    ];

    /// Returns the method's name in programs.
    pub const fn name(self) -> &'static str {
        match self {
            TransferMethod::Auto => "auto",
            TransferMethod::Pio => "pio",
            TransferMethod::Pool => "pool",
            TransferMethod::Copy => "copy",
            TransferMethod::Translate => "translate",
        }
    }
}

/// A message to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// Address of the message's first byte.
    pub address: u64,
    /// Size of the message in bytes.
    pub bytes: u64,
    /// The receiver.
    pub to: Endpoint,
    /// The tag, which a receive compares with its own tags.
    pub tag: u64,
    /// Transfer method from the process to the card.
    pub how: TransferMethod,
}

/// A message to be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// Address of the buffer.
    pub address: u64,
    /// Size of the buffer in bytes.
    pub bytes: u64,
    /// The sender; `None` for any sender.
    pub from: Option<Endpoint>,
    /// The tags that the receive accepts. Tags have 64 bits in this interface.
    pub tags: Tags,
    /// Transfer method from the card to the process.
    pub how: TransferMethod,
}

/// A posted send or receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation(u64);

impl Operation {
    /// Returns the operation with this number. A call refuses an operation that its process does not have.
    pub const fn numbered(number: u64) -> Operation {
        Operation(number)
    }

    /// Returns the number of the operation among the operations of its process.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// The library's state of a posted operation.
pub(crate) struct Local {
    pub(crate) message: MessageId,
    /// Address of the operation's piece of the Buffer Pool.
    pub(crate) piece: Option<u64>,
    /// Destination address of the copy from the pool, and maximum number of bytes to copy.
    pub(crate) copy_to: Option<(u64, u64)>,
    /// Number of pages locked for the operation.
    pub(crate) pages: u64,
}

/// A process of a host, with its library. A process has its own memory. It has an interface of the card after
/// [`Process::open`].
pub struct Process {
    pub(crate) card: Rc<Card>,
    pub(crate) number: u32,
    /// The memory of the process: address and size in bytes of each allocation, by address.
    pub(crate) own: RefCell<Vec<(u64, u64)>>,
    pub(crate) pool: RefCell<Option<BufferPool>>,
    pub(crate) operations: RefCell<BTreeMap<u64, Local>>,
    next: Cell<u64>,
    /// Number of locked pages of ended operations. The next system call that locks pages unlocks these pages.
    pub(crate) locked: Cell<u64>,
}

impl Process {
    /// Returns a process without an interface.
    pub fn new(card: &Rc<Card>, number: u32) -> Process {
        Process {
            card: card.clone(),
            number,
            own: RefCell::default(),
            pool: RefCell::default(),
            operations: RefCell::default(),
            next: Cell::new(0),
            locked: Cell::new(0),
        }
    }

    /// Returns the number of the process on its host.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the card of the process's host.
    pub fn card(&self) -> &Rc<Card> {
        &self.card
    }

    /// Allocates memory for the process. This is set-up: it takes no virtual time.
    ///
    /// # Errors
    /// When the host has no more memory.
    pub fn alloc(&self, bytes: u64) -> Result<Allocation, QnixError> {
        let memory = self.card.dma.memory().allocate(bytes)?;
        self.adopt(&memory);
        Ok(memory)
    }

    /// Adds an allocation of host memory to the process's own memory.
    pub fn adopt(&self, memory: &Allocation) {
        let mut own = self.own.borrow_mut();
        let at = own.partition_point(|&(begin, _)| begin < memory.address());
        own.insert(at, (memory.address(), memory.len()));
    }

    /// Posts a send, and returns its operation. The send completes when the bytes are on the card and the buffer may be
    /// reused. A call that is dropped before it has posted the send has no effect.
    ///
    /// # Errors
    /// When a limit is reached, or a resource does not belong to the process.
    pub async fn send(&self, vni: u32, send: Send, path: &mut Path) -> Result<Operation, QnixError> {
        let card = &self.card;
        self.check(vni)?;
        self.check_peer(send.to)?;
        self.check_bytes(send.address, send.bytes)?;
        let limit = card.spec.limits.sends;
        if card.interface(vni, |interface| interface.pending(Kind::Send)) >= Some(limit as usize) {
            return Err(QnixError::Sends { limit });
        }
        let how = self.choose(send.how, send.address, send.bytes, Kind::Send)?;
        let mut begun = self.begin(vni, Kind::Send, how, send.bytes)?;
        let message = begun.message();
        card.recorder.sent(message, send.to.node, send.bytes, "send", Starter::Host, path);

        let source = match how {
            // An empty message has no bytes to fetch.
            _ if send.bytes == 0 => Source::Card(Payload::empty()),
            TransferMethod::Pio => Source::Card(card.dma.memory().read(send.address, send.bytes)?),
            TransferMethod::Translate => {
                begun.lock(self.translate(message, send.address, send.bytes, path).await);
                Source::Host(send.address)
            }
            _ => {
                if let Some(to) = begun.piece() {
                    self.copy(send.address, to, send.bytes, path).await?;
                }
                Source::Host(begun.piece().unwrap_or(send.address))
            }
        };
        let with = if how == TransferMethod::Pio { send.bytes } else { 0 };
        let visible = self.write_command(message, with, path).await;
        let (to, tag, bytes) = (send.to, send.tag, send.bytes);
        let (path, operation) = (path.clone(), begun.posted(None));
        let command = SendCommand { operation, message, to, tag, bytes, source, staged: 0, path };
        self.post(vni, Command::Send(command), visible);
        Ok(Operation(operation))
    }

    /// Posts a receive, and returns its operation. The receive completes when a message is in its buffer. A call that
    /// is dropped before it has posted the receive has no effect.
    ///
    /// # Errors
    /// When a limit is reached, or a resource does not belong to the process.
    pub async fn receive(&self, vni: u32, receive: Receive, path: &mut Path) -> Result<Operation, QnixError> {
        let card = &self.card;
        self.check(vni)?;
        if let Some(from) = receive.from {
            self.check_peer(from)?;
        }
        self.check_bytes(receive.address, receive.bytes)?;
        let limit = card.spec.limits.receives;
        if card.interface(vni, |interface| interface.pending(Kind::Receive)) >= Some(limit as usize) {
            return Err(QnixError::Receives { limit });
        }
        let how = self.choose(receive.how, receive.address, receive.bytes, Kind::Receive)?;
        let mut begun = self.begin(vni, Kind::Receive, how, receive.bytes)?;
        let message = begun.message();
        if how == TransferMethod::Translate {
            begun.lock(self.translate(message, receive.address, receive.bytes, path).await);
        }
        let visible = self.write_command(message, 0, path).await;
        let copy_to = begun.piece().map(|_| (receive.address, receive.bytes));
        let address = begun.piece().unwrap_or(receive.address);
        let (from, tags, room, path) = (receive.from, receive.tags, receive.bytes, path.clone());
        let operation = begun.posted(copy_to);
        self.post(
            vni,
            Command::Receive(ReceiveCommand { operation, from, tags, address, room, path }),
            visible,
        );
        Ok(Operation(operation))
    }

    /// Polls an operation's doorbell. The poll takes the time to notice a doorbell. If the doorbell is set, ends the
    /// operation and returns its completion.
    ///
    /// # Errors
    /// When the interface does not belong to the process, or it has no such operation.
    pub async fn test(
        &self,
        vni: u32,
        operation: Operation,
        path: &mut Path,
    ) -> Result<Option<Completed>, QnixError> {
        self.check_operation(vni, operation)?;
        let message = self.message(operation);
        let done = self.done(vni, operation);
        if let Some((_, its, _)) = &done {
            path.follow(its);
        }
        self.card.kernel.cpus().notice(path, message).await;
        match done {
            Some((completed, _, come)) => {
                self.card.recorder.message_noticed(come, self.card.sim.now());
                Ok(Some(self.finish(vni, operation, completed, path).await?))
            }
            None => Ok(None),
        }
    }

    /// Waits for an operation's doorbell. Then ends the operation and returns its completion.
    ///
    /// # Errors
    /// When the interface does not belong to the process, or it has no such operation.
    pub async fn wait(
        &self,
        vni: u32,
        operation: Operation,
        path: &mut Path,
    ) -> Result<Completed, QnixError> {
        let kind = self.check_operation(vni, operation)?;
        let rung = self.card.interface(vni, |interface| interface.rung.clone());
        if let Some(rung) = rung {
            let (process, what) = (self.number, if kind == Kind::Send { "send" } else { "receive" });
            let text = move || format!("the doorbell of a {what} (process {process}, interface {vni})");
            describe(text, rung.wait_until(|| self.done(vni, operation).is_some())).await;
        }
        let (completed, its, come) =
            self.done(vni, operation).ok_or(QnixError::NoOperation { operation: operation.0 })?;
        path.follow(&its);
        self.card.kernel.cpus().notice(path, self.message(operation)).await;
        self.card.recorder.message_noticed(come, self.card.sim.now());
        self.finish(vni, operation, completed, path).await
    }

    /// Returns the path up to an operation's doorbell. `None` if the doorbell is not set.
    pub(crate) fn rung(&self, vni: u32, operation: Operation) -> Option<Path> {
        self.done(vni, operation).map(|(_, path, _)| path)
    }

    fn message(&self, operation: Operation) -> Option<MessageId> {
        self.operations.borrow().get(&operation.0).map(|local| local.message)
    }

    fn done(&self, vni: u32, operation: Operation) -> Option<(Completed, Path, MessageId)> {
        let done = self.card.interface(vni, |interface| match interface.operations.get(&operation.0) {
            Some((_, Progress::Done(completed, path, message))) => Some((*completed, path.clone(), *message)),
            _ => None,
        });
        done.flatten()
    }

    /// Processes a completion: copies received bytes to their buffer, and frees the operation's resources. If this call
    /// is dropped, another call can wait for the operation.
    async fn finish(
        &self,
        vni: u32,
        operation: Operation,
        completed: Completed,
        path: &mut Path,
    ) -> Result<Completed, QnixError> {
        let ending = Ending::of(self, vni, operation.0);
        let mut copied = Ok(());
        if let Some((from, to, room)) = ending.copy() {
            copied = self.copy(from, to, completed.bytes.min(room), path).await;
        }
        ending.end();
        Ok(copied.map(|()| completed)?)
    }

    /// Returns the time to copy a buffer, and the time to lock and translate it. Both times are calculated from the
    /// specification.
    pub fn costs(&self, address: u64, bytes: u64) -> (Duration, Duration) {
        let spec = self.card.spec();
        let pages = self.pages(address, bytes);
        let kernel = spec.kernel.call + spec.kernel.pin + spec.kernel.pin_page * pages;
        let descriptors = spec.library.context + spec.bus.store_time(pages * spec.memory.descriptor);
        (spec.library.copy.cover(bytes), kernel + descriptors)
    }

    /// Chooses the transfer method of a message, and checks its limits.
    pub(crate) fn choose(
        &self,
        how: TransferMethod,
        address: u64,
        bytes: u64,
        kind: Kind,
    ) -> Result<TransferMethod, QnixError> {
        let spec = self.card.spec();
        let pages = spec.kernel.pages(address, bytes);
        let most = spec.limits.message_pages(spec.kernel.page);
        let in_pool = self.pool.borrow().as_ref().is_some_and(|pool| pool.holds(address, bytes));
        let free = self.pool.borrow().as_ref().map_or(0, BufferPool::longest);
        let chosen = match how {
            // Receives do not use programmed I/O, so the library chooses the method.
            TransferMethod::Pio if kind == Kind::Receive => {
                return self.choose(TransferMethod::Auto, address, bytes, kind);
            }
            TransferMethod::Auto if kind == Kind::Send && bytes <= spec.pio => TransferMethod::Pio,
            // Without bytes to move, there are no pages to lock.
            TransferMethod::Auto if in_pool || bytes == 0 => TransferMethod::Pool,
            TransferMethod::Auto => {
                let (copy, translate) = self.costs(address, bytes);
                if free >= bytes && (copy <= translate || pages > most) {
                    TransferMethod::Copy
                } else {
                    TransferMethod::Translate
                }
            }
            given => given,
        };
        match chosen {
            TransferMethod::Pio if bytes > spec.pio => {
                Err(QnixError::TooLongForPio { bytes, limit: spec.pio })
            }
            TransferMethod::Pool if !in_pool && bytes > 0 => Err(QnixError::NotInPool { address, bytes }),
            TransferMethod::Copy if free < bytes => Err(QnixError::PoolFull { bytes, free }),
            TransferMethod::Translate if pages > most => Err(QnixError::Pages { pages, limit: most }),
            chosen => Ok(chosen),
        }
    }

    /// Takes a piece of the Buffer Pool.
    pub(crate) fn take_piece(&self, bytes: u64) -> Result<Piece<'_>, QnixError> {
        let free = self.pool.borrow().as_ref().map_or(0, BufferPool::longest);
        Piece::take(self, bytes).ok_or(QnixError::PoolFull { bytes, free })
    }

    /// Writes bytes from a CPU to the card. Returns the time at which they arrive at the card.
    pub(crate) async fn store(&self, message: MessageId, bytes: u64, path: &mut Path) -> Time {
        let cpu = self.card.kernel.cpus().hold(path).await;
        let handover = self.card.dma.bus().store(message, bytes, path.clone()).await;
        *path = handover.path;
        drop(cpu);
        handover.landed
    }

    /// Writes `bytes` bytes of payload and then a command to the card. Returns the time at which the card can see the
    /// command.
    async fn write_command(&self, message: MessageId, bytes: u64, path: &mut Path) -> Time {
        self.card.kernel.cpus().post(path, message).await;
        if bytes > 0 {
            self.store(message, bytes, path).await;
        }
        let visible = self.store(message, self.card.spec.library.command, path).await;
        // The process continues from here on. Only the card waits until the command is visible.
        visible
    }

    /// Puts a command into the Command Queue at the time `visible`.
    fn post(&self, vni: u32, mut command: Command, visible: Time) {
        let card = self.card.clone();
        let path = match &mut command {
            Command::Send(send) => &mut send.path,
            Command::Receive(receive) => &mut receive.path,
        };
        path.advance(Stage::BUS, visible);
        let arrive = move |card: &Card| {
            card.interface(vni, |interface| interface.commands.push_back(command));
            card.changed.notify_all();
        };
        if visible <= card.sim.now() {
            return arrive(&card);
        }
        card.sim.clone().spawn(async move {
            card.sim.until(visible).await;
            arrive(&card);
        });
    }

    /// Begins an operation. Takes a piece of the Buffer Pool if the transfer method needs one.
    fn begin(&self, vni: u32, kind: Kind, how: TransferMethod, bytes: u64) -> Result<Begun<'_>, QnixError> {
        let piece = if how == TransferMethod::Copy { Some(self.take_piece(bytes)?) } else { None };
        let operation = self.next.get();
        self.next.set(operation + 1);
        Ok(Begun::new(self, vni, operation, kind, piece))
    }
}
