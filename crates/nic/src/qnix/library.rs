//! What a process calls: it opens an interface, sends, receives, and looks at doorbells in its own memory.

use super::interface::{Command, Interface, Kind, Progress, ReceiveCommand, SendCommand, Source};
use super::pool::BufferPool;
use super::{Card, Endpoint, QnixError};
use nicety_host::{Allocation, MemoryError};
use nicety_kernel::{Signal, describe};
use nicety_types::{Duration, MessageId, Path, Payload, Segment, Stage, Starter, Time};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// How the bytes of a message get between a process and its card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum How {
    /// What takes least time: as it is where the buffer lies in the Buffer Pool; programmed I/O for a short message that
    /// is sent; otherwise a copy or a translation, whichever its size makes cheaper.
    #[default]
    Auto,
    /// By programmed I/O, with the command. Only for what is sent.
    Pio,
    /// By DMA from or to the Buffer Pool, where the buffer lies.
    Pool,
    /// By DMA from or to the Buffer Pool, and a copy between it and the buffer.
    Copy,
    /// By DMA from or to the buffer itself, whose pages the kernel locks and translates.
    Translate,
}

impl How {
    /// All ways.
    pub const ALL: [How; 5] = [How::Auto, How::Pio, How::Pool, How::Copy, How::Translate];

    /// The name in programs.
    pub const fn name(self) -> &'static str {
        match self {
            How::Auto => "auto",
            How::Pio => "pio",
            How::Pool => "pool",
            How::Copy => "copy",
            How::Translate => "translate",
        }
    }
}

/// A message to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// Address of the first byte.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// Who is to get it.
    pub to: Endpoint,
    /// What receives tell messages of one sender apart by.
    pub tag: u64,
    /// How it gets to the card.
    pub how: How,
}

/// A message to be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// Where the first byte is to be.
    pub address: u64,
    /// Bytes that there is room for.
    pub bytes: u64,
    /// Whose message; anybody's where there is none.
    pub from: Option<Endpoint>,
    /// Its tag; any where there is none.
    pub tag: Option<u64>,
    /// How it gets from the card.
    pub how: How,
}

/// A send or receive that has been posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation(u64);

impl Operation {
    /// The operation of this number, of whatever process; one that there is not is refused where it is used.
    pub const fn numbered(number: u64) -> Operation {
        Operation(number)
    }

    /// Its number among those of its process.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// A send or receive that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The other end.
    pub peer: Endpoint,
    /// The message's tag.
    pub tag: u64,
    /// The message's bytes.
    pub bytes: u64,
    /// Whether the receive had no room for all of them.
    pub truncated: bool,
}

/// What the library keeps of an operation.
struct Local {
    message: MessageId,
    /// The piece of the Buffer Pool that it uses.
    piece: Option<u64>,
    /// Where what was received goes, and how much of it at most.
    copy_to: Option<(u64, u64)>,
    /// Pages that are locked for it.
    pages: u64,
}

/// A process of a host, with the library in it. Each has memory of its own, and an interface of the card once it has opened
/// one.
pub struct Process {
    card: Rc<Card>,
    number: u32,
    /// What it may touch: addresses and lengths, in order.
    own: RefCell<Vec<(u64, u64)>>,
    pool: RefCell<Option<BufferPool>>,
    operations: RefCell<BTreeMap<u64, Local>>,
    next: Cell<u64>,
    /// Pages of operations that have ended, which the next system call that locks others gives free.
    locked: Cell<u64>,
}

impl Process {
    /// A process that has no interface yet.
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

    /// Its number on its host.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The card of its host.
    pub fn card(&self) -> &Rc<Card> {
        &self.card
    }

    /// Allocates memory for the process; set-up, takes no virtual time.
    ///
    /// # Errors
    /// When the host has no more.
    pub fn alloc(&self, bytes: u64) -> Result<Allocation, QnixError> {
        let memory = self.card.memory.allocate(bytes)?;
        self.adopt(&memory);
        Ok(memory)
    }

    /// Makes memory of the host the process's own.
    pub fn adopt(&self, memory: &Allocation) {
        let mut own = self.own.borrow_mut();
        let at = own.partition_point(|&(begin, _)| begin < memory.address());
        own.insert(at, (memory.address(), memory.len()));
    }

    /// Has the kernel register the process with the card. Returns the number of its interface, the lowest that is free.
    ///
    /// # Errors
    /// When it has one, or none is left.
    pub async fn open(&self, path: &mut Path) -> Result<u32, QnixError> {
        self.card.kernel.call(path).await;
        self.register()
    }

    /// Registers the process and a Buffer Pool of so many bytes before anything runs, which takes no virtual time and is not
    /// counted. Returns the number of its interface.
    ///
    /// # Errors
    /// As [`Process::open`] and [`Process::register_pool`].
    pub fn set_up(&self, pool: u64) -> Result<u32, QnixError> {
        let vni = self.register()?;
        self.take_pool(vni, pool)?;
        Ok(vni)
    }

    fn register(&self) -> Result<u32, QnixError> {
        let card = &self.card;
        if let Some(&(vni, _)) = card.interfaces().iter().find(|(_, owner)| *owner == self.number) {
            return Err(QnixError::Open { vni });
        }
        let mut interfaces = card.interfaces.borrow_mut();
        let limit = card.spec.limits.vnis;
        let free = interfaces.iter().position(Option::is_none).ok_or(QnixError::NoInterface { limit })?;
        interfaces[free] = Some(Interface::new(self.number, Signal::new(&card.sim)));
        let vni = free as u32;
        let mut open = card.open.borrow_mut();
        let at = open.partition_point(|&other| other < vni);
        open.insert(at, vni);
        card.changed.notify_all();
        Ok(vni)
    }

    /// Has the kernel take the interface away again, and the Buffer Pool with it. Messages that nobody received are dropped,
    /// and counted as strays.
    ///
    /// # Errors
    /// When it is not the process's, or operations have not ended.
    pub async fn close(&self, vni: u32, path: &mut Path) -> Result<(), QnixError> {
        self.check(vni)?;
        let operations = self.operations.borrow().len();
        if operations > 0 {
            return Err(QnixError::Pending { operations });
        }
        let card = &self.card;
        card.kernel.call(path).await;
        let pool = self.pool.take().map_or(0, |pool| self.pages(pool.memory.address(), pool.memory.len()));
        let pages = self.locked.take() + pool;
        if pages > 0 {
            card.kernel.unpin(pages, path).await;
        }
        card.open.borrow_mut().retain(|&other| other != vni);
        let closed = card.interfaces.borrow_mut()[vni as usize].take();
        if let Some(Interface { waiting, receiving, pool_memory, .. }) = closed {
            card.card_memory.borrow_mut().give_back(pool_memory);
            debug_assert!(receiving.is_empty(), "a receive that has not ended is an operation");
            let strays = card.forget(waiting);
            card.count(|counted| counted.strays += strays);
        }
        card.let_on();
        Ok(())
    }

    /// Registers a Buffer Pool: the kernel locks and translates its pages once, and the card gets their descriptors.
    /// Returns where it lies.
    ///
    /// # Errors
    /// When the interface is not the process's, there is a pool already, or it is too large for the paper's limit, the host
    /// or the card.
    pub async fn register_pool(
        &self,
        vni: u32,
        bytes: u64,
        path: &mut Path,
    ) -> Result<Allocation, QnixError> {
        let memory = self.take_pool(vni, bytes)?;
        let card = &self.card;
        let pages = self.pages(memory.address(), bytes);
        card.kernel.call(path).await;
        card.kernel.pin(pages, path).await;
        self.describe_pages(card.next_message(), pages, path).await;
        Ok(memory)
    }

    /// Memory for a Buffer Pool, on the host and for its descriptors on the card.
    fn take_pool(&self, vni: u32, bytes: u64) -> Result<Allocation, QnixError> {
        self.check(vni)?;
        let (card, limit) = (&self.card, self.card.spec.limits.pool);
        if bytes == 0 || bytes > limit {
            return Err(QnixError::Pool { bytes, limit });
        }
        if self.pool.borrow().is_some() {
            return Err(QnixError::PoolThere);
        }
        let wanted = bytes.div_ceil(card.spec.kernel.page) * card.spec.memory.descriptor;
        let left = card.memory().left();
        if !card.card_memory.borrow_mut().take(wanted) {
            return Err(QnixError::CardMemory { wanted, left });
        }
        let memory = match card.memory.allocate(bytes) {
            Ok(memory) => memory,
            Err(error) => {
                card.card_memory.borrow_mut().give_back(wanted);
                return Err(error.into());
            }
        };
        card.interface(vni, |interface| interface.pool_memory = wanted);
        self.adopt(&memory);
        self.pool.replace(Some(BufferPool::new(memory.clone())));
        Ok(memory)
    }

    /// Takes a piece out of the Buffer Pool for the process's own use: the pool, and where in it the piece begins. Set-up,
    /// takes no virtual time; it stays taken until the interface is closed.
    ///
    /// # Errors
    /// When the pool has no piece of that length free.
    pub fn pool_piece(&self, bytes: u64) -> Result<(Allocation, u64), QnixError> {
        let mut pool = self.pool.borrow_mut();
        let free = pool.as_ref().map_or(0, BufferPool::longest);
        let pool = pool.as_mut().ok_or(QnixError::PoolFull { bytes, free })?;
        let at = pool.take(bytes).ok_or(QnixError::PoolFull { bytes, free })?;
        Ok((pool.memory.clone(), at - pool.memory.address()))
    }

    /// A CPU copies a buffer into a piece of the Buffer Pool, which is free again afterwards.
    ///
    /// # Errors
    /// When the buffer is not the process's, or the pool has no piece of that length free.
    pub async fn copy_to_pool(&self, address: u64, bytes: u64, path: &mut Path) -> Result<(), QnixError> {
        self.check_bytes(address, bytes)?;
        let piece = self.take_piece(How::Copy, bytes)?;
        if let Some(to) = piece {
            self.copy(address, to, bytes, path).await?;
        }
        if let (Some(piece), Some(pool)) = (piece, &mut *self.pool.borrow_mut()) {
            pool.give_back(piece);
        }
        Ok(())
    }

    /// Has the kernel lock and translate a buffer, and writes the descriptors of its pages into a Context Region. Returns how
    /// many there are; the next call that locks others gives them free.
    ///
    /// # Errors
    /// When the buffer is not the process's, or lies in more pages than a Context Region has descriptors for.
    pub async fn lock_and_translate(
        &self,
        address: u64,
        bytes: u64,
        path: &mut Path,
    ) -> Result<u64, QnixError> {
        self.check_bytes(address, bytes)?;
        self.choose(How::Translate, address, bytes, Kind::Send)?;
        let pages = self.translate(self.card.next_message(), address, bytes, path).await;
        self.locked.set(self.locked.get() + pages);
        Ok(pages)
    }

    /// Posts a send. It ends when the bytes are on the card, and the buffer may be used again.
    ///
    /// # Errors
    /// When a limit is reached, or something is not the process's.
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
        let piece = self.take_piece(how, send.bytes)?;
        let (operation, message) = self.begin(vni, Kind::Send);
        card.recorder.sent(message, send.to.node, send.bytes, "send", Starter::Host, path);

        let mut pages = 0;
        let source = match how {
            // Nothing has to be fetched.
            _ if send.bytes == 0 => Source::Card(Payload::empty()),
            How::Pio => Source::Card(card.memory.read(send.address, send.bytes)?),
            How::Translate => {
                pages = self.translate(message, send.address, send.bytes, path).await;
                Source::Host(send.address)
            }
            _ => {
                if let Some(to) = piece {
                    self.copy(send.address, to, send.bytes, path).await?;
                }
                Source::Host(piece.unwrap_or(send.address))
            }
        };
        self.operations.borrow_mut().insert(operation, Local { message, piece, copy_to: None, pages });
        let with = if how == How::Pio { send.bytes } else { 0 };
        let visible = self.write_command(message, with, path).await;
        let (to, tag, bytes) = (send.to, send.tag, send.bytes);
        let path = *path;
        let command = SendCommand { operation, message, to, tag, bytes, source, staged: 0, path };
        self.post(vni, Command::Send(command), visible);
        Ok(Operation(operation))
    }

    /// Posts a receive. It ends when a message has come into it.
    ///
    /// # Errors
    /// When a limit is reached, or something is not the process's.
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
        let piece = self.take_piece(how, receive.bytes)?;
        let (operation, message) = self.begin(vni, Kind::Receive);
        let mut pages = 0;
        if how == How::Translate {
            pages = self.translate(message, receive.address, receive.bytes, path).await;
        }
        let copy_to = piece.map(|_| (receive.address, receive.bytes));
        self.operations.borrow_mut().insert(operation, Local { message, piece, copy_to, pages });
        let visible = self.write_command(message, 0, path).await;
        let address = piece.unwrap_or(receive.address);
        let (from, tag, room, path) = (receive.from, receive.tag, receive.bytes, *path);
        self.post(
            vni,
            Command::Receive(ReceiveCommand { operation, from, tag, address, room, path }),
            visible,
        );
        Ok(Operation(operation))
    }

    /// Looks at an operation's doorbell, which takes the time of noticing it. Says how the operation ended, once.
    ///
    /// # Errors
    /// When the interface is not the process's, or it has no such operation.
    pub async fn test(
        &self,
        vni: u32,
        operation: Operation,
        path: &mut Path,
    ) -> Result<Option<Completed>, QnixError> {
        self.check_operation(vni, operation)?;
        let message = self.message(operation);
        let done = self.done(vni, operation);
        if let Some((_, its)) = &done {
            path.follow(its);
        }
        self.card.kernel.cpus().notice(path, message).await;
        match done {
            Some((completed, _)) => Ok(Some(self.finish(vni, operation, completed, path).await?)),
            None => Ok(None),
        }
    }

    /// Waits for an operation's doorbell. Says how the operation ended.
    ///
    /// # Errors
    /// When the interface is not the process's, or it has no such operation.
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
        let (completed, its) =
            self.done(vni, operation).ok_or(QnixError::NoOperation { operation: operation.0 })?;
        path.follow(&its);
        self.card.kernel.cpus().notice(path, self.message(operation)).await;
        self.finish(vni, operation, completed, path).await
    }

    fn message(&self, operation: Operation) -> Option<MessageId> {
        self.operations.borrow().get(&operation.0).map(|local| local.message)
    }

    fn done(&self, vni: u32, operation: Operation) -> Option<(Completed, Path)> {
        let done = self.card.interface(vni, |interface| match interface.operations.get(&operation.0) {
            Some((_, Progress::Done(completed, path))) => Some((*completed, *path)),
            _ => None,
        });
        done.flatten()
    }

    /// The process has seen the doorbell: brings what came where it belongs, and frees what the operation used.
    async fn finish(
        &self,
        vni: u32,
        operation: Operation,
        completed: Completed,
        path: &mut Path,
    ) -> Result<Completed, QnixError> {
        self.card.interface(vni, |interface| interface.operations.remove(&operation.0));
        let local = self.operations.borrow_mut().remove(&operation.0);
        let Some(Local { piece, copy_to, pages, .. }) = local else { return Ok(completed) };
        self.locked.set(self.locked.get() + pages);
        if let (Some(from), Some((to, room))) = (piece, copy_to) {
            self.copy(from, to, completed.bytes.min(room), path).await?;
        }
        if let (Some(piece), Some(pool)) = (piece, &mut *self.pool.borrow_mut()) {
            pool.give_back(piece);
        }
        Ok(completed)
    }

    /// What copying takes, and what translating, from the numbers in the spec: a way to compare them without doing either.
    pub fn costs(&self, address: u64, bytes: u64) -> (Duration, Duration) {
        let spec = self.card.spec();
        let pages = self.pages(address, bytes);
        let kernel = spec.kernel.call + spec.kernel.pin + spec.kernel.pin_page * pages;
        let descriptors = spec.library.context + spec.bus.store_time(pages * spec.memory.descriptor);
        (spec.library.copy.cover(bytes), kernel + descriptors)
    }

    /// How a message gets to or from the card.
    fn choose(&self, how: How, address: u64, bytes: u64, kind: Kind) -> Result<How, QnixError> {
        let spec = self.card.spec();
        let pages = spec.kernel.pages(address, bytes);
        let most = spec.limits.message_pages(spec.kernel.page);
        let in_pool = self.pool.borrow().as_ref().is_some_and(|pool| pool.holds(address, bytes));
        let free = self.pool.borrow().as_ref().map_or(0, BufferPool::longest);
        let chosen = match how {
            // Nothing is received by programmed I/O.
            How::Pio if kind == Kind::Receive => return self.choose(How::Auto, address, bytes, kind),
            How::Auto if kind == Kind::Send && bytes <= spec.pio => How::Pio,
            // Nothing is moved, so nothing has to be locked.
            How::Auto if in_pool || bytes == 0 => How::Pool,
            How::Auto => {
                let (copy, translate) = self.costs(address, bytes);
                if free >= bytes && (copy <= translate || pages > most) { How::Copy } else { How::Translate }
            }
            given => given,
        };
        match chosen {
            How::Pio if bytes > spec.pio => Err(QnixError::TooLongForPio { bytes, limit: spec.pio }),
            How::Pool if !in_pool && bytes > 0 => Err(QnixError::NotInPool { address, bytes }),
            How::Copy if free < bytes => Err(QnixError::PoolFull { bytes, free }),
            How::Translate if pages > most => Err(QnixError::Pages { pages, limit: most }),
            chosen => Ok(chosen),
        }
    }

    fn take_piece(&self, how: How, bytes: u64) -> Result<Option<u64>, QnixError> {
        if how != How::Copy {
            return Ok(None);
        }
        let mut pool = self.pool.borrow_mut();
        let piece = pool.as_mut().and_then(|pool| pool.take(bytes));
        piece.map(Some).ok_or(QnixError::PoolFull { bytes, free: 0 })
    }

    /// Has the kernel lock and translate a buffer, and writes the descriptors of its pages. Returns how many there are.
    async fn translate(&self, message: MessageId, address: u64, bytes: u64, path: &mut Path) -> u64 {
        let (kernel, pages) = (&self.card.kernel, self.pages(address, bytes));
        kernel.call(path).await;
        match self.locked.take() {
            0 => {}
            ended => kernel.unpin(ended, path).await,
        }
        kernel.pin(pages, path).await;
        self.describe_pages(message, pages, path).await;
        pages
    }

    fn pages(&self, address: u64, bytes: u64) -> u64 {
        self.card.spec.kernel.pages(address, bytes)
    }

    /// Writes descriptors of pages to the card.
    async fn describe_pages(&self, message: MessageId, pages: u64, path: &mut Path) {
        if pages > 0 {
            let spec = &self.card.spec;
            self.card.kernel.cpus().spend(spec.library.context, Stage::Library, path).await;
            self.store(message, pages * spec.memory.descriptor, path).await;
        }
    }

    /// A CPU writes bytes to the card. Returns when they are there.
    async fn store(&self, message: MessageId, bytes: u64, path: &mut Path) -> Time {
        let cpu = self.card.kernel.cpus().hold(path).await;
        let handover = self.card.bus.store(message, bytes, *path).await;
        *path = handover.path;
        drop(cpu);
        handover.landed
    }

    /// Writes a command to the card, behind `bytes` of payload. Returns when the card can see it.
    async fn write_command(&self, message: MessageId, bytes: u64, path: &mut Path) -> Time {
        self.card.kernel.cpus().post(path, message).await;
        if bytes > 0 {
            self.store(message, bytes, path).await;
        }
        let visible = self.store(message, self.card.spec.library.command, path).await;
        // From here on the process goes on by itself; what the command waits for is the card's.
        visible
    }

    /// A command gets into the Command Queue.
    fn post(&self, vni: u32, mut command: Command, visible: Time) {
        let card = self.card.clone();
        let path = match &mut command {
            Command::Send(send) => &mut send.path,
            Command::Receive(receive) => &mut receive.path,
        };
        path.advance(Stage::Bus, visible);
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

    /// A CPU copies bytes of the process's memory.
    async fn copy(&self, from: u64, to: u64, bytes: u64, path: &mut Path) -> Result<(), MemoryError> {
        let card = &self.card;
        card.kernel.cpus().spend(card.spec.library.copy.cover(bytes), Stage::Copy, path).await;
        let payload = card.memory.read(from, bytes)?;
        let mut at = to;
        for segment in payload.segments() {
            match segment {
                Segment::Real(bytes) => card.memory.write(at, bytes)?,
                Segment::Phantom(len) => card.memory.write_phantom(at, *len)?,
            }
            at += segment.len();
        }
        Ok(())
    }

    /// A new operation.
    fn begin(&self, vni: u32, kind: Kind) -> (u64, MessageId) {
        let operation = self.next.get();
        self.next.set(operation + 1);
        self.card
            .interface(vni, |interface| interface.operations.insert(operation, (kind, Progress::Pending)));
        (operation, self.card.next_message())
    }

    /// Refuses an interface that is not the process's: its pages are not mapped.
    fn check(&self, vni: u32) -> Result<(), QnixError> {
        let owner = self.card.interface(vni, |interface| interface.owner);
        if owner == Some(self.number) {
            return Ok(());
        }
        self.card.count(|counted| counted.refused += 1);
        Err(QnixError::NotYours { vni, owner, process: self.number })
    }

    fn check_peer(&self, peer: Endpoint) -> Result<(), QnixError> {
        let (nodes, limit) = (self.card.nodes, self.card.spec.limits.vnis);
        if peer.node.0 >= nodes {
            return Err(QnixError::NoNode { node: peer.node.0, nodes });
        }
        if peer.vni >= limit {
            return Err(QnixError::NoSuchInterface { vni: peer.vni, limit });
        }
        Ok(())
    }

    /// Refuses bytes that are too many, or not the process's.
    fn check_bytes(&self, address: u64, bytes: u64) -> Result<(), QnixError> {
        let limit = self.card.spec.limits.message;
        if bytes > limit {
            return Err(QnixError::Message { bytes, limit });
        }
        let own = self.own.borrow();
        let last = own[..own.partition_point(|&(begin, _)| begin <= address)].last();
        if bytes == 0
            || last.is_some_and(|&(begin, len)| address - begin <= len && bytes <= len - (address - begin))
        {
            return Ok(());
        }
        self.card.count(|counted| counted.refused += 1);
        Err(QnixError::NotYourMemory { address, len: bytes, process: self.number })
    }

    fn check_operation(&self, vni: u32, operation: Operation) -> Result<Kind, QnixError> {
        self.check(vni)?;
        let kind = self.card.interface(vni, |interface| Some(interface.operations.get(&operation.0)?.0));
        kind.flatten().ok_or(QnixError::NoOperation { operation: operation.0 })
    }
}
