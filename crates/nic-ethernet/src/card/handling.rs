//! Handlers on frames: rules select their frames before the host gets them, and handlers decide the destination.

use crate::card::Card;
use crate::card::disposition::Disposition;
use crate::card::joining::Arriving;
use crate::rules::{Rule, Word};
use crate::spec::HandlersSpec;
use crate::wire;
use crate::xdp::Came;
use nicety_kernel::{Channel, Needed, Sim};
use nicety_nic_core::{Log, ProgramFailure, RefusedCommand};
use nicety_nic_processors::{
    Attachment, Busy, Frame, FrameAction, FrameLimits, FrameOwner, Frames, Handled, HandlerError, Handlers,
    HpuSpec, stages,
};
use nicety_types::{Buffer, MessageId, NodeId, Occupancy, Path, Payload, Recorder, Starter, Time};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// Bytes of the shortest frame that a handler may send: an Ethernet header. The card pads it on the wire.
const SHORTEST: u32 = 14;

/// Disposition of the frames of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "RuleReport")]
pub struct RuleReport {
    /// The rule.
    pub rule: String,
    /// Frames that matched it.
    pub frames: u64,
    /// Of these, frames that handlers sent to the host.
    pub to_host: u64,
    /// Frames that handlers sent on the wire.
    pub to_wire: u64,
    /// Frames that handlers dropped.
    pub dropped: u64,
    /// Frames with failed handlers.
    pub failed: u64,
}

/// The reason why handlers cannot be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallError {
    /// The card has no handler cores.
    NoProcessors,
    /// The card's table of rules is full.
    TooMany {
        /// Its capacity.
        limit: usize,
    },
    /// The rule compares more words than the card supports.
    TooLong {
        /// The rule.
        rule: String,
        /// Its number of words.
        words: usize,
        /// The limit.
        limit: usize,
    },
    /// The rule compares a word beyond the longest frame of the card.
    Behind {
        /// The rule.
        rule: String,
        /// The word's offset.
        offset: u32,
        /// The last offset in the longest frame.
        last: u64,
    },
    /// Some frames also match another rule.
    Overlap {
        /// The rule.
        rule: String,
        /// The other rule.
        other: String,
        /// Words of such a frame.
        words: Vec<Word>,
    },
    /// A check whether some frames also match another rule takes too long.
    TooManyMasks {
        /// The rule.
        rule: String,
        /// The other rule.
        other: String,
    },
    /// There is no such rule.
    NoSuchRule {
        /// Its number.
        number: usize,
    },
    /// The program, or its state, does not fit.
    Handlers(HandlerError),
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstallError::NoProcessors => f.write_str(
                "the card has no handler cores: its spec has no section [hpu]; name a card that has one, for example spin-100g",
            ),
            InstallError::TooMany { limit } => {
                write!(
                    f,
                    "the card has {limit} rules already, which is the maximum; raise hpu.rules, or join rules by 'or'"
                )
            }
            InstallError::TooLong { rule, words, limit } => write!(
                f,
                "rule '{rule}' compares {words} words of a frame, but the card compares at most {limit}; \
                 compare fewer words, or raise hpu.words"
            ),
            InstallError::Behind { rule, offset, last } => write!(
                f,
                "rule '{rule}': offset {offset} is beyond every frame of the card; the last word is at \
                 {last}; write a smaller offset, or raise frames.mtu"
            ),
            InstallError::Overlap { rule, other, words } => {
                write!(f, "rules '{other}' and '{rule}' overlap: ")?;
                match words.is_empty() {
                    true => f.write_str("every frame matches both")?,
                    false => {
                        f.write_str("a frame with")?;
                        words.iter().try_for_each(|word| write!(f, " {word}"))?;
                        f.write_str(" matches both")?;
                    }
                }
                f.write_str(
                    "; write rules that do not overlap, such as ranges of ports, or one rule and one handler for both",
                )
            }
            InstallError::TooManyMasks { rule, other } => write!(
                f,
                "rules '{other}' and '{rule}' have too many different masks to find out whether they overlap; compare fewer words"
            ),
            InstallError::NoSuchRule { number } => write!(f, "no handlers are installed with number {number}"),
            InstallError::Handlers(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for InstallError {}

impl From<HandlerError> for InstallError {
    fn from(error: HandlerError) -> InstallError {
        InstallError::Handlers(error)
    }
}

/// A rule with its handlers.
struct Installed {
    rule: Rule,
    attachment: Rc<Attachment>,
    report: RefCell<RuleReport>,
}

impl Installed {
    fn count(&self, change: impl FnOnce(&mut RuleReport)) {
        change(&mut self.report.borrow_mut());
    }
}

/// The card's rules and handler cores.
pub struct Handling {
    spec: HandlersSpec,
    /// Bytes of the longest frame.
    longest: u64,
    frames: Rc<Frames>,
    rules: RefCell<Vec<Rc<Installed>>>,
    matching: RefCell<Occupancy>,
    /// Frames that match no rule. Each has the times of its last byte's arrival and of the end of matching.
    for_host: Channel<(Checked, Time, Time)>,
    sent: Cell<u64>,
}

impl Handling {
    pub(crate) fn new(
        sim: &Sim,
        spec: &HandlersSpec,
        (longest, channels): (u64, usize),
        log: &Log,
        recorder: &Recorder,
    ) -> Handling {
        let limits = FrameLimits {
            headroom: spec.headroom as u32,
            shortest: SHORTEST,
            longest: longest as u32,
            channels: channels as u32,
        };
        let mut matching = Occupancy::new(stages::MATCH, stages::MATCH_QUEUED);
        matching.record(recorder, nicety_nic_processors::resources::MATCHING);
        Handling {
            frames: Frames::new(sim, spec.hpu.clone(), limits, log.clone(), recorder),
            spec: spec.clone(),
            longest,
            rules: RefCell::default(),
            matching: RefCell::new(matching),
            // The packet buffer limits the number of waiting frames.
            for_host: Channel::new(sim, usize::MAX),
            sent: Cell::new(0),
        }
    }

    /// The spec of the handler cores.
    pub fn hpu(&self) -> &HpuSpec {
        &self.spec.hpu
    }

    /// The handler cores with the frames on them.
    pub const fn frames(&self) -> &Rc<Frames> {
        &self.frames
    }

    /// Gives the frames of a rule to handlers with this state. Returns the number of the handlers. This is set-up, and
    /// takes no virtual time.
    ///
    /// # Errors
    /// When the rule overlaps another one or is too long, or when program or state do not fit.
    pub fn install(&self, rule: Rule, handlers: &Handlers, state: &[u8]) -> Result<usize, InstallError> {
        let mut rules = self.rules.borrow_mut();
        if rules.len() >= self.spec.rules {
            return Err(InstallError::TooMany { limit: self.spec.rules });
        }
        check_rule(&rule, &self.spec, self.longest, rules.iter().map(|installed| &installed.rule))?;
        let attachment = self.frames.attach(handlers, state)?;
        let report = RefCell::new(RuleReport { rule: rule.to_string(), ..RuleReport::default() });
        rules.push(Rc::new(Installed { rule, attachment, report }));
        Ok(rules.len() - 1)
    }

    fn installed(&self, number: usize) -> Result<Rc<Installed>, InstallError> {
        self.rules.borrow().get(number).cloned().ok_or(InstallError::NoSuchRule { number })
    }

    /// Returns the state of these handlers.
    ///
    /// # Errors
    /// When no handlers have this number.
    pub fn state(&self, number: usize) -> Result<Vec<u8>, InstallError> {
        Ok(Frames::state(&self.installed(number)?.attachment))
    }

    /// Returns the data of the program of these handlers.
    ///
    /// # Errors
    /// When no handlers have this number.
    pub fn data(&self, number: usize) -> Result<Vec<u8>, InstallError> {
        Ok(Frames::data(&self.installed(number)?.attachment))
    }

    /// Disposition of the frames of each rule.
    pub fn reports(&self) -> Vec<RuleReport> {
        self.rules.borrow().iter().map(|installed| installed.report.borrow().clone()).collect()
    }

    /// Number of frames that handlers sent.
    pub const fn sent(&self) -> u64 {
        self.sent.get()
    }

    pub(crate) fn failures(&self) -> Vec<ProgramFailure> {
        self.frames.failures()
    }

    pub(crate) fn refused_commands(&self) -> Vec<RefusedCommand> {
        self.frames.refused_commands()
    }

    /// Returns the rule that a frame matches.
    fn chosen(&self, frame: &[u8]) -> Option<usize> {
        self.rules.borrow().iter().position(|installed| installed.rule.matches(frame))
    }
}

/// Checks a rule against others on a card with this longest frame.
///
/// # Errors
/// A rule that is too long or compares words beyond every frame, or the first other rule that shares a frame with it.
pub fn check_rule<'r>(
    rule: &Rule,
    spec: &HandlersSpec,
    longest: u64,
    others: impl IntoIterator<Item = &'r Rule>,
) -> Result<(), InstallError> {
    let (words, limit) = (rule.words(), spec.words);
    if words > limit {
        return Err(InstallError::TooLong { rule: rule.to_string(), words, limit });
    }
    let last = (longest - size_of::<u32>() as u64) / 4 * 4;
    let offsets = rule.alternatives().iter().flatten().map(|word| word.offset);
    if let Some(offset) = offsets.max().filter(|offset| u64::from(*offset) > last) {
        return Err(InstallError::Behind { rule: rule.to_string(), offset, last });
    }
    for other in others {
        let (rule_text, other_text) = (rule.to_string(), other.to_string());
        match rule.overlap(other) {
            Ok(None) => {}
            Ok(Some(words)) => {
                return Err(InstallError::Overlap { rule: rule_text, other: other_text, words });
            }
            Err(_) => return Err(InstallError::TooManyMasks { rule: rule_text, other: other_text }),
        }
    }
    Ok(())
}

/// A frame from the link with a valid check sequence.
pub(crate) struct Checked {
    pub(crate) message: MessageId,
    pub(crate) frame: Buffer,
    pub(crate) payload: Payload,
    pub(crate) path: Path,
    pub(crate) came: Came,
}

impl FrameOwner for Card {
    fn handled(self: Rc<Card>, handled: Handled) {
        let Handled { number, message, came, .. } = handled;
        let (source, now) = (message.source, self.sim.now());
        let handling = self.handling.as_ref().expect("it has handlers");
        let count = |change: fn(&mut RuleReport)| handling.rules.borrow()[number as usize].count(change);
        let nowhere = |disposition, what| {
            self.count_frames(source, disposition, 1);
            self.recorder.message_matched(message, now, what);
        };
        match handled.action {
            FrameAction::Host | FrameAction::Queue(_) => count(|report| report.to_host += 1),
            FrameAction::Wire => {
                count(|report| report.to_wire += 1);
                nowhere(Disposition::Wire, "sent on");
                handling.sent.set(handling.sent.get() + 1);
            }
            FrameAction::Drop => {
                count(|report| report.dropped += 1);
                nowhere(Disposition::Dropped, "dropped by handler");
            }
            FrameAction::Failed => {
                count(|report| report.failed += 1);
                nowhere(Disposition::Failed, "handler failed");
            }
        }
        if matches!(handled.action, FrameAction::Drop | FrameAction::Failed) {
            return self.left(handling, message, came);
        }
        let card = self.clone();
        self.sim.spawn(async move {
            card.take_on(handled).await;
            card.left(card.handling.as_ref().expect("it has handlers"), message, came);
        });
    }

    fn rule(&self, number: u32) -> String {
        let handling = self.handling.as_ref().expect("it has handlers");
        handling.rules.borrow()[number as usize].rule.to_string()
    }
}

impl Card {
    /// Gives a frame to its rule's handlers. Without a rule, the frame is delivered to host memory. Its last byte
    /// arrived at `came`.
    pub(crate) fn choose(self: &Rc<Card>, handling: &Handling, mut checked: Checked, came: Time) {
        let message = checked.message;
        handling.frames.watch_arrived(message, checked.frame.len() as u64);
        let (now, taken) = (self.sim.now(), handling.spec.match_);
        let matched = handling.matching.borrow_mut().claim(message, now, taken, &mut checked.path) + taken;
        checked.path.advance(stages::MATCH, matched);
        match handling.chosen(&checked.frame) {
            None => {
                let sent = handling.for_host.try_send((checked, came, matched));
                assert!(sent.is_ok(), "it takes all that the packet buffer holds");
            }
            Some(number) if self.sim.try_pass_until(matched) => self.hand(handling, number, checked, came),
            Some(number) => {
                let (card, none) = (self.clone(), [Needed::NOTHING, Needed::NOTHING]);
                self.sim.spawn_at(matched, none, || async move {
                    let handling = card.handling.as_ref().expect("it has rules");
                    card.hand(handling, number, checked, came);
                });
            }
        }
    }

    /// Gives a frame to the handlers of a rule.
    fn hand(&self, handling: &Handling, number: usize, checked: Checked, came: Time) {
        let Checked { message, frame, path, .. } = checked;
        let attachment = {
            let installed = &handling.rules.borrow()[number];
            installed.count(|report| report.frames += 1);
            installed.attachment.clone()
        };
        handling.frames.handle(Frame {
            attachment,
            number: number as u32,
            message,
            came,
            bytes: &frame,
            channel: (self.hash(&frame) % self.receive.len()) as u32,
            path,
        });
    }

    /// Delivers frames that match no rule to host memory, one after another.
    pub(crate) async fn serve_host(self: Rc<Card>) {
        let handling = self.handling.as_ref().expect("it has rules");
        loop {
            let next = handling.for_host.recv().await;
            let (checked, came, matched) = next.expect("nobody closes it");
            let message = checked.message;
            self.sim.pass_until(matched).await;
            self.accept(checked).await;
            self.left(handling, message, came);
        }
    }

    /// Forwards a frame after its handler. Returns when the frame has left the card's buffer.
    async fn take_on(self: &Rc<Card>, handled: Handled) {
        let Handled { message, bytes, path, came, .. } = handled;
        let came = Came { at: came, source: message.source, counts: true };
        let hash = match handled.action {
            FrameAction::Wire => return self.send_on(message, &bytes, path).await,
            FrameAction::Queue(channel) => channel as usize,
            _ => self.hash(&bytes),
        };
        let verified = self.verified(&bytes);
        let payload = Payload::real(bytes);
        self.write(Arriving { hash, payload, frames: 1, verified, message, path, came }).await;
    }

    /// Records that a frame has left the card's buffer. The frame's last byte arrived at `came`.
    fn left(&self, handling: &Handling, message: MessageId, came: Time) {
        handling.frames.watch_settled(message, self.sim.now());
        self.recorder.packet_settled(message, 0, self.sim.now());
        self.settle(message.source, came);
        self.port.free_slot();
    }

    /// Sends a frame of a handler. Returns when the frame has left the card's buffer.
    async fn send_on(&self, by: MessageId, frame: &[u8], path: Path) {
        let payload = crate::card::transmit::whole(frame);
        // A switch does not return a frame to its source.
        let other = |node: &NodeId| *node != self.node;
        let destination = match wire::destination(frame, self.nodes).filter(other) {
            Some(station) => station,
            None => {
                self.count_frames(by.source, Disposition::UnknownDestination, 1);
                // The device at the end of a generator's wire takes all frames.
                if !self.testers.takes_all(by.source) {
                    self.launch_to_nobody(payload.len(), path).await;
                    return;
                }
                by.source
            }
        };
        let message = self.next_message();
        self.recorder.sent(message, destination, payload.len(), "frame", Starter::Handler(by), &path);
        self.put_on_wire(destination, message, payload, path).await;
    }

    /// Busy times of the card's parts so far.
    pub(crate) fn busy(&self) -> Busy {
        let (bus_to_card, bus_to_host) = self.dma.bus().busy();
        let matching = self.handling.as_ref().map(|handling| handling.matching.borrow().busy());
        let (matching, link) = (matching.unwrap_or_default(), self.port.busy());
        Busy { matching, link, bus_to_card, bus_to_host, ..Busy::default() }
    }
}
