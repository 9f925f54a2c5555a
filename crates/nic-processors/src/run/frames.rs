//! Handlers of frames. One runs for each frame, sees all of it, may change its length, and decides its destination.
//!
//! A frame lies in a larger place of the packet buffer: headroom precedes it, and room up to the longest frame
//! follows it. A handler reaches only the parts of these that it has added to the frame.

use crate::Processors;
use crate::commands::codes::{Stop, number};
use crate::hpus::Thread;
use crate::programs::application::ApplicationId;
use crate::programs::attachments::Attachment;
use crate::programs::program::{FRAME_HANDLER, HandlerError, HandlerNames, Handlers, Kind, map};
use crate::pspin::ports::Ports;
use crate::ready::Run;
use crate::run::Starting;
use crate::running::Ended;
use crate::running::{Commands, RunMemory, Running};
use crate::spec::HpuSpec;
use nicety_hpu::{DeviceAccess, Image};
use nicety_kernel::Sim;
use nicety_nic_core::FailureKind;
use nicety_types::{Buffer, Duration, MessageId, Path, Recorder, Time};
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::{Deref, Range};
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// Return codes of frame handlers, as in frame.h.
mod returned {
    pub const DROP: u32 = 0;
    pub const HOST: u32 = 1;
    pub const WIRE: u32 = 2;
    pub const FAIL: u32 = -1i32 as u32;
    /// Plus the number of the receive channel.
    pub const QUEUE: u32 = 0x100;
    pub const LAST_QUEUE: u32 = QUEUE + 0xff;
    /// Up to here: channel numbers that no card has.
    pub const NO_QUEUE: u32 = QUEUE + 0xffff;
}

const SERVED: &str =
    "the card serves the functions of frame.h, and those of nicety.h on a handler's own memory";

/// The lengths of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// Bytes of headroom before a frame.
    pub headroom: u32,
    /// The shortest frame to send, in bytes.
    pub shortest: u32,
    /// The longest frame to send, in bytes.
    pub longest: u32,
    /// Number of the host's receive channels.
    pub channels: u32,
}

impl FrameLimits {
    /// Returns the bytes of a frame's place.
    const fn place(self) -> u32 {
        self.headroom + self.longest
    }
}

/// A frame for a handler.
pub struct Frame<'f> {
    /// The handlers.
    pub attachment: Rc<Attachment>,
    /// The number of their rule.
    pub number: u32,
    /// The frame's message.
    pub message: MessageId,
    /// Arrival time of its last byte.
    pub came: Time,
    /// Its bytes.
    pub bytes: &'f [u8],
    /// The receive channel that the card would choose.
    pub channel: u32,
    /// The path up to the time at which the frame was ready for its handler.
    pub path: Path,
}

/// The destination of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameAction {
    /// Dropped.
    Drop,
    /// The host, on the receive channel that the card chooses.
    Host,
    /// The host, on this receive channel.
    Queue(u32),
    /// The wire.
    Wire,
    /// Dropped because its handler failed.
    Failed,
}

impl FrameAction {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            FrameAction::Drop => "DROP",
            FrameAction::Host => "HOST",
            FrameAction::Queue(_) => "QUEUE",
            FrameAction::Wire => "WIRE",
            FrameAction::Failed => "FAIL",
        }
    }
}

/// A frame after its handler.
pub struct Handled {
    /// The number of its rule.
    pub number: u32,
    /// Its message.
    pub message: MessageId,
    /// Arrival time of its last byte.
    pub came: Time,
    /// Its destination.
    pub action: FrameAction,
    /// Its bytes, which the handler may have changed.
    pub bytes: Buffer,
    /// The path up to the end of the handler.
    pub path: Path,
}

/// A card with handlers for frames.
pub trait Owner {
    /// Takes a frame after its handler.
    fn handled(self: Rc<Self>, handled: Handled);

    /// Returns a description of the rule with this number.
    fn rule(&self, number: u32) -> String;
}

/// A frame that waits for its handler.
struct Work {
    attachment: Rc<Attachment>,
    number: u32,
    message: MessageId,
    came: Time,
    memory: RunMemory,
}

/// Handler cores for frames.
pub struct Frames {
    processors: Processors,
    limits: FrameLimits,
    owner: OnceCell<Weak<dyn Owner>>,
    work: RefCell<Vec<Option<Work>>>,
    unused: RefCell<Vec<usize>>,
}

impl Deref for Frames {
    type Target = Processors;
    fn deref(&self) -> &Processors {
        &self.processors
    }
}

/// Loads a program with a frame handler of the given or default name.
///
/// # Errors
/// When it is not a program for these cores, or has no such handler.
pub fn load_frame_handler(elf: &[u8], name: Option<&str>, hpu: &HpuSpec) -> Result<Handlers, HandlerError> {
    let payload = Some(name.unwrap_or(FRAME_HANDLER).to_owned());
    let image = Image::load(elf, &hpu.core)?;
    let of_message = |name: &&str| image.symbol(name).is_some();
    if name.is_none()
        && image.symbol(FRAME_HANDLER).is_none()
        && let Some(found) = ["payload_handler", "header_handler"].into_iter().find(of_message)
    {
        return Err(HandlerError::OfMessages { found });
    }
    let handlers = Handlers::from_image(image, &HandlerNames { payload, ..HandlerNames::default() })?;
    Ok(Handlers { of_frames: true, ..handlers })
}

impl Frames {
    /// Processors without handlers.
    pub fn new(
        sim: &Sim,
        hpu: Arc<HpuSpec>,
        limits: FrameLimits,
        log: nicety_nic_core::Log,
        recorder: &Recorder,
    ) -> Rc<Frames> {
        Rc::new(Frames {
            processors: Processors::new(sim, hpu, limits.place().into(), log, recorder),
            limits,
            owner: OnceCell::new(),
            work: RefCell::default(),
            unused: RefCell::default(),
        })
    }

    /// Sets the card of these processors. Called once, before the first frame.
    pub fn belong_to(&self, owner: Weak<dyn Owner>) {
        assert!(self.owner.set(owner).is_ok(), "they have a card already");
    }

    fn owner(&self) -> Rc<dyn Owner> {
        self.owner.get().and_then(Weak::upgrade).expect("a card outlives its frames")
    }

    /// Attaches a frame handler with its initial state. Set-up: it takes no simulated time.
    pub fn attach(&self, handlers: &Handlers, state: &[u8]) -> Result<Rc<Attachment>, HandlerError> {
        let own = &self.attachments;
        let application = own.application(ApplicationId::default()).expect("the one of unnamed programs");
        let program = own.program(&application, handlers, &self.hpu)?;
        let state = Rc::new(own.take(&application, state.to_vec())?);
        let cookie = own.attach(Attachment { program, state, handler_memory: None, appending: Cell::new(0) });
        Ok(own.get(cookie).expect("just attached"))
    }

    /// Returns the bytes of a handler's state.
    pub fn state(attachment: &Attachment) -> Vec<u8> {
        attachment.state.bytes.borrow().clone()
    }

    /// Returns the data of a handler's program.
    pub fn data(attachment: &Attachment) -> Vec<u8> {
        attachment.program.data.bytes.borrow().clone()
    }

    /// Runs a handler on a frame. The frame goes to the [`Owner`] when the handler has ended.
    pub fn handle(self: &Rc<Frames>, frame: Frame<'_>) {
        let Frame { attachment, number, message, came, bytes, channel, path } = frame;
        let (start, len) = (self.limits.headroom, bytes.len() as u32);
        // The room behind the frame is allocated on demand: few handlers need it.
        let place = Buffer::filled_by((start + len) as usize, |place| {
            let (before, frame) = place.split_at_mut(start as usize);
            before.fill(0);
            frame.copy_from_slice(bytes);
        });
        let mut memory = RunMemory::empty();
        memory.hold_part(place, start as usize..(start + len) as usize);
        let behind = memory.put_pointer(0, map::PACKET + start, &self.hpu.core.isa);
        for (at, word) in [len, number, channel].into_iter().enumerate() {
            memory.arguments[behind + 4 * at..][..4].copy_from_slice(&word.to_le_bytes());
        }
        let index = self.unused.borrow_mut().pop().unwrap_or_else(|| {
            self.work.borrow_mut().push(None);
            self.work.borrow().len() - 1
        });
        self.work.borrow_mut()[index] = Some(Work { attachment, number, message, came, memory });
        self.ready(Run::new(index, Kind::Payload, None, path));
    }

    pub(crate) fn ready(self: &Rc<Frames>, run: Run) {
        let new = self.hpus.ready(None, run, self.sim.now(), |run| {
            let work = self.work.borrow();
            work[run.place].as_ref().expect("it is ready").attachment.application().clone()
        });
        if let Some(thread) = new {
            let frames = self.clone();
            self.sim.spawn(async move {
                loop {
                    let run = thread.next().await;
                    frames.run(&thread, run).await;
                }
            });
        }
    }

    async fn run(self: &Rc<Frames>, thread: &Rc<Thread>, run: Run) {
        let Run { place, kind, path, .. } = run;
        let (now, ready) = (self.sim.now(), path.at());
        let work = self.work.borrow_mut()[place].take().expect("it runs once");
        let Work { attachment, number, message, came, memory } = work;
        self.unused.borrow_mut().push(place);
        let entry = attachment.program.handlers.payload.expect("frame handlers are loaded as these");
        let arguments = [map::ARGUMENTS, attachment.state_address(), 0];
        let starting = Starting { kind, place, packet: Some(0), message, attachment, memory, path };
        let mut running = self.start(thread, starting);
        let ended = self.execute(self, thread, &mut running, entry, arguments).await;
        self.end(&mut running);
        let outcome = match &ended {
            Ended::Returned(value) => {
                let fits = |action: &FrameAction| self.fits(*action, running.memory.part().len());
                self.wanted(*value).filter(fits).map_or("invalid", FrameAction::name)
            }
            ended => ended.name(),
        };
        self.record_run(&running, [ready, now], Duration::ZERO, outcome);
        if outcome == "invalid" || outcome == "FAIL" || !matches!(ended, Ended::Returned(_)) {
            running.application().count(|statistics| statistics.failed += 1);
        }
        // The core is released first, because the card may run another handler on it.
        self.hpus.release(thread, self.sim.now());
        let Running { memory, path, .. } = running;
        let (bytes, range) = memory.into_part();
        let owner = self.owner();
        let action = self.action(&ended, || owner.rule(number), &range);
        let bytes = match action {
            FrameAction::Drop | FrameAction::Failed => Buffer::empty(),
            _ => bytes.part(range),
        };
        owner.handled(Handled { number, message, came, action, bytes, path });
    }

    /// Returns the destination that a handler's return code names. None for an invalid code.
    fn wanted(&self, value: u32) -> Option<FrameAction> {
        Some(match value {
            returned::DROP => FrameAction::Drop,
            returned::HOST => FrameAction::Host,
            returned::WIRE => FrameAction::Wire,
            returned::FAIL => FrameAction::Failed,
            returned::QUEUE..=returned::LAST_QUEUE if value - returned::QUEUE < self.limits.channels => {
                FrameAction::Queue(value - returned::QUEUE)
            }
            _ => return None,
        })
    }

    /// Returns whether a frame of this length can go to this destination.
    fn fits(&self, action: FrameAction, length: usize) -> bool {
        let FrameLimits { shortest, longest, .. } = self.limits;
        matches!(action, FrameAction::Drop | FrameAction::Failed)
            || (shortest..=longest).contains(&(length as u32))
    }

    /// Returns the destination of a frame. `range` is the frame's range in its place after its handler.
    fn action(&self, ended: &Ended, rule: impl Fn() -> String, range: &Range<usize>) -> FrameAction {
        let failed = |kind, why: String| {
            self.report_failure(kind, None, format!("rule '{}': frame handler {why}", rule()));
            FrameAction::Failed
        };
        let value = match ended {
            Ended::Stopped(why) => return failed(FailureKind::Trap, format!("stopped: {why}")),
            Ended::OutOfBudget(why) => return failed(FailureKind::Budget, format!("stopped: {why}")),
            Ended::Returned(value) => *value,
        };
        let FrameLimits { shortest, longest, channels, .. } = self.limits;
        let Some(action) = self.wanted(value) else {
            let why = match value {
                returned::QUEUE..=returned::NO_QUEUE => format!(
                    "returned FRAME_QUEUE({}), and the host has receive channels 0 to {}",
                    value - returned::QUEUE,
                    channels - 1
                ),
                _ => format!(
                    "returned {}, which is none of FRAME_DROP, FRAME_HOST, FRAME_WIRE, FRAME_QUEUE(n) and FRAME_FAIL",
                    value as i32
                ),
            };
            return failed(FailureKind::Fail, why);
        };
        let length = range.len() as u32;
        match action {
            FrameAction::Failed => failed(FailureKind::Fail, "returned FRAME_FAIL".to_owned()),
            action if !self.fits(action, range.len()) => failed(
                FailureKind::Fail,
                format!(
                    "sent a frame of {length} bytes on; frames have {shortest} to {longest} (frames.mtu)"
                ),
            ),
            action => action,
        }
    }
}

impl Commands for Frames {
    async fn command(self: &Rc<Frames>, running: &mut Running, registers: [u32; 8]) -> Result<u32, Stop> {
        let [bytes, .., number] = registers;
        let range = running.memory.part();
        let (start, end) = (range.start as u32, range.end as u32);
        let (start, end) = match number {
            number::FRAME_PUSH => match start.checked_sub(bytes) {
                Some(start) => (start, end),
                None => {
                    return Err(Stop::BeyondFrame(format!(
                        "frame_push of {bytes} bytes, but {start} are left before the frame (hpu.headroom is {})",
                        self.limits.headroom
                    )));
                }
            },
            number::FRAME_PULL if bytes < end - start => (start + bytes, end),
            number::FRAME_RESIZE if bytes > 0 && bytes <= self.limits.place() - start => {
                (start, start + bytes)
            }
            number::FRAME_PULL => {
                let length = end - start;
                return Err(Stop::BeyondFrame(format!(
                    "frame_pull of {bytes} bytes from a frame of {length}"
                )));
            }
            number::FRAME_RESIZE => {
                let room = self.limits.place() - start;
                return Err(Stop::BeyondFrame(format!(
                    "frame_resize to {bytes} bytes; the frame has room for 1 to {room}"
                )));
            }
            _ => return self.common_command(running, registers, SERVED),
        };
        running.memory.set_part(start as usize..end as usize, self.limits.place() as usize);
        let behind = running.memory.put_pointer(0, map::PACKET + start, &self.hpu.core.isa);
        running.memory.arguments[behind..behind + 4].copy_from_slice(&(end - start).to_le_bytes());
        Ok(0)
    }

    async fn register(
        self: &Rc<Frames>,
        _running: &mut Running,
        _access: DeviceAccess,
    ) -> Result<Option<u32>, Stop> {
        unreachable!("specs of Ethernet cards refuse PsPIN's interface and its registers")
    }

    fn ports(&self, _core: usize) -> Option<&Ports> {
        None
    }

    fn leave(&self, _running: &mut Running) -> Result<(), Stop> {
        Ok(())
    }
}
