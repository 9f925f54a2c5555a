//! The arithmetic of stages that bytes stream through, such as a bus or a link: first byte, last byte and occupation.
//!
//! A packet has n bytes. Its first byte arrives at h and its last byte at t. A stage of latency l and gap r is free at
//! f. It starts to serve the packet at s = max(h, f), and is free again at s + ceil(n r). The first byte leaves the
//! stage at s + l, and the last byte at max(t, s + ceil(n r)) + l. So the latencies of a chain of free stages add up,
//! and only the largest gap counts, once per byte.

use crate::record::Probe;
use crate::{Account, Duration, Gap, MessageId, Path, Recorder, Resource, Stage, Time};

/// A packet in flight: the times of its first and last byte at this point, and the path up to the first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flight {
    /// The arrival of the first byte.
    pub head: Time,
    /// The arrival of the last byte.
    pub tail: Time,
    /// The path up to `head`.
    pub path: Path,
    /// The slowest stage so far. The time from the first byte to the last byte is accounted to this stage.
    pub slowest: Stage,
}

impl Flight {
    /// Returns a packet that lies complete in a buffer at the end of `path`.
    pub fn resting(path: Path) -> Flight {
        Flight { head: path.at(), tail: path.at(), path, slowest: Stage::LINK }
    }

    /// Returns the path up to the last byte, which completes the packet in a packet buffer at the end of the chain.
    pub fn landed(self) -> Path {
        let mut path = self.path;
        path.advance(self.slowest, self.tail);
        path
    }
}

/// The last user of a resource. It separates waits for an earlier part of the same message from waits for other messages.
#[derive(Clone, Copy, Debug)]
struct Occupant<P> {
    message: MessageId,
    path: P,
}

/// A resource that serves one user at a time, first come, first served, without cancellation. `P` accounts for the time of its
/// users.
#[derive(Clone, Debug)]
pub struct Occupancy<P = Path> {
    stage: Stage,
    queued: Stage,
    free: Time,
    last: Option<Occupant<P>>,
    busy: Duration,
    probe: Option<Probe>,
}

impl<P: Account> Occupancy<P> {
    /// Returns a free resource that accounts its service to `stage`, and the wait for it to `queued`.
    pub const fn new(stage: Stage, queued: Stage) -> Occupancy<P> {
        Occupancy { stage, queued, free: Time::ZERO, last: None, busy: Duration::ZERO, probe: None }
    }

    /// From now on, records each claim as a use of `resource`, if the recorder's level is `Everything`.
    pub fn record(&mut self, recorder: &Recorder, resource: Resource) {
        self.probe = Probe::new(recorder, resource);
    }

    /// The time at which the resource is free again.
    pub const fn free(&self) -> Time {
        self.free
    }

    /// The total time for which the resource has been occupied.
    pub const fn busy(&self) -> Duration {
        self.busy
    }

    /// Occupies the resource for `duration` from max(`from`, free) on. Advances `path` to the start, and returns the start.
    pub fn claim(&mut self, message: MessageId, from: Time, duration: Duration, path: &mut P) -> Time {
        self.claim_after(Time::ZERO, message, from, duration, path)
    }

    /// Like [`Occupancy::claim`], but not before `allowed`, such as the arrival of a credit. A wait for `allowed`
    /// is accounted to the queued stage.
    pub fn claim_after(
        &mut self,
        allowed: Time,
        message: MessageId,
        from: Time,
        duration: Duration,
        path: &mut P,
    ) -> Time {
        let start = from.max(self.free).max(allowed);
        if start > from {
            match &self.last {
                // It waited for the preceding packet of the same message: that packet's path is the critical one.
                Some(last) if last.message == message && self.free > from && last.path.leads(path) => {
                    *path = last.path.clone();
                    path.advance(self.stage, self.free);
                }
                _ => {}
            }
            path.advance(self.queued, start);
        }
        self.last = Some(Occupant { message, path: path.clone() });
        self.free = start + duration;
        self.busy += duration;
        if let Some(probe) = &self.probe {
            probe.claimed(message, start, duration, self.stage);
        }
        start
    }

    /// Occupies the resource from max(`from`, free) on, for no message and without a record. Returns the start.
    pub fn occupy(&mut self, from: Time, duration: Duration) -> Time {
        let start = from.max(self.free);
        self.last = None;
        self.free = start + duration;
        self.busy += duration;
        start
    }

    /// Accounts the time of the last user until `begin`, the start of its last transmission, to `stage`. Occupies the
    /// resource until `until`.
    pub fn resend(&mut self, stage: Stage, begin: Time, until: Time) {
        if let Some(last) = &mut self.last {
            last.path.advance(stage, begin);
            if let Some(probe) = self.probe.as_ref().filter(|_| until > self.free) {
                probe.claimed(last.message, self.free, until.since(self.free), stage);
            }
        }
        self.hold(until);
    }

    /// Keeps the resource occupied until at least `until`, because its user has not finished.
    pub fn hold(&mut self, until: Time) {
        if until > self.free {
            self.busy += until.since(self.free);
            self.free = until;
        }
    }
}

/// A stage with a latency and a gap per byte.
#[derive(Clone, Debug)]
pub struct Stream {
    latency: Duration,
    gap: Gap,
    occupancy: Occupancy,
}

impl Stream {
    /// Returns a free stage.
    pub const fn new(latency: Duration, gap: Gap, stage: Stage, queued: Stage) -> Stream {
        Stream { latency, gap, occupancy: Occupancy::new(stage, queued) }
    }

    /// From now on, records each packet's use of this stage as a use of `resource`, if the recorder's level is `Everything`.
    pub fn record(&mut self, recorder: &Recorder, resource: Resource) {
        self.occupancy.record(recorder, resource);
    }

    /// The latency.
    pub const fn latency(&self) -> Duration {
        self.latency
    }

    /// The gap per byte.
    pub const fn gap(&self) -> Gap {
        self.gap
    }

    /// The time at which the stage is free again.
    pub const fn free(&self) -> Time {
        self.occupancy.free
    }

    /// The total time for which the stage has been occupied.
    pub const fn busy(&self) -> Duration {
        self.occupancy.busy
    }

    /// Streams a packet through, and accounts its time to this stage.
    pub fn cross(&mut self, message: MessageId, bytes: u64, flight: Flight) -> Flight {
        self.cross_as(message, bytes, flight, self.occupancy.stage, self.occupancy.queued)
    }

    /// Streams a packet through, and accounts its time to `stage` and `queued` instead of this stream's own stages. A
    /// bus uses this, because it carries transfers of several kinds.
    pub fn cross_as(
        &mut self,
        message: MessageId,
        bytes: u64,
        flight: Flight,
        stage: Stage,
        queued: Stage,
    ) -> Flight {
        self.occupancy.stage = stage;
        self.occupancy.queued = queued;
        self.cross_after(Time::ZERO, message, bytes, flight).0
    }

    /// Like [`Stream::cross`], but not before `allowed`, such as the arrival of a credit. Also returns the path
    /// up to the handover of the last byte.
    pub fn cross_after(
        &mut self,
        allowed: Time,
        message: MessageId,
        bytes: u64,
        flight: Flight,
    ) -> (Flight, Path) {
        let stage = self.occupancy.stage;
        let occupied = self.gap.cover(bytes);
        let mut path = flight.path;
        let start = self.occupancy.claim_after(allowed, message, flight.head, occupied, &mut path);
        let own_tail = start + occupied;
        let slowest = if flight.tail > own_tail { flight.slowest } else { stage };
        let last = flight.tail.max(own_tail);
        let mut handed = path.clone();
        handed.advance(slowest, last);
        path.advance(stage, start + self.latency);
        (Flight { head: start + self.latency, tail: last + self.latency, path, slowest }, handed)
    }

    /// Like [`Occupancy::occupy`].
    pub fn occupy(&mut self, from: Time, duration: Duration) -> Time {
        self.occupancy.occupy(from, duration)
    }

    /// Like [`Occupancy::resend`].
    pub fn resend(&mut self, stage: Stage, begin: Time, until: Time) {
        self.occupancy.resend(stage, begin, until);
    }

    /// Takes bytes that lie complete in a buffer. The buffer is free as soon as the last byte has been handed over.
    pub fn hand_over(
        &mut self,
        message: MessageId,
        bytes: u64,
        mut path: Path,
        stage: Stage,
        queued: Stage,
    ) -> Handover {
        self.occupancy.stage = stage;
        self.occupancy.queued = queued;
        let occupied = self.gap.cover(bytes);
        let start = self.occupancy.claim(message, path.at(), occupied, &mut path);
        path.advance(stage, start + occupied);
        Handover { path, landed: start + occupied + self.latency }
    }

    /// Streams a whole message through, with its packets back to back. The whole message is ready at `flight.head`.
    pub fn burst(
        &mut self,
        message: MessageId,
        bytes: u64,
        packet_bytes: u64,
        flight: Flight,
        stage: Stage,
        queued: Stage,
    ) -> Burst {
        assert!(packet_bytes > 0, "a packet carries at least one byte");
        self.occupancy.stage = stage;
        self.occupancy.queued = queued;
        let full = self.gap.cover(packet_bytes);
        let (packets, rest) = (bytes / packet_bytes, bytes % packet_bytes);
        let occupied = full * packets + self.gap.cover(rest);
        let mut path = flight.path;
        let start = self.occupancy.claim(message, flight.head, occupied, &mut path);
        Burst { start, path, latency: self.latency, gap: self.gap, bytes, packet_bytes, full, stage }
    }
}

/// A handover of a buffer's bytes to a stage.
#[derive(Clone, Debug)]
pub struct Handover {
    /// The path up to the handover of the last byte. The buffer is free from then on.
    pub path: Path,
    /// The time at which the last byte leaves the stage at its other end.
    pub landed: Time,
}

/// A message that streams through a stage, with its packets back to back.
#[derive(Clone, Debug)]
pub struct Burst {
    start: Time,
    path: Path,
    latency: Duration,
    gap: Gap,
    bytes: u64,
    packet_bytes: u64,
    full: Duration,
    stage: Stage,
}

impl Burst {
    /// Returns the flight of the packet at byte `offset` when it has left the stage. `offset` is a multiple of the
    /// packet size.
    pub fn packet(&self, offset: u64) -> Flight {
        debug_assert!(offset.is_multiple_of(self.packet_bytes) && offset <= self.bytes);
        let bytes = self.packet_bytes.min(self.bytes - offset);
        let start = self.start + self.full * (offset / self.packet_bytes);
        let mut path = self.path.clone();
        path.advance(self.stage, start + self.latency);
        let tail = start + self.gap.cover(bytes) + self.latency;
        Flight { head: start + self.latency, tail, path, slowest: self.stage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: MessageId = MessageId { source: crate::NodeId(0), sequence: 0 };
    const OTHER: MessageId = MessageId { source: crate::NodeId(1), sequence: 0 };

    fn bus() -> Stream {
        Stream::new(Duration::from_ns(250), Gap::new(156, 10), Stage::BUS, Stage::BUS_QUEUED)
    }

    fn link() -> Stream {
        Stream::new(Duration::from_ps(33_400), Gap::new(20, 1), Stage::LINK, Stage::LINK_QUEUED)
    }

    fn ps(ps: u64) -> Duration {
        Duration::from_ps(ps)
    }

    #[test]
    fn a_chain_pays_latencies_and_the_slowest_gap_once() {
        // 8 bytes on spin-discrete: the bus takes 250 ns. The link takes 0.160 ns for the bytes and 33.4 ns of latency.
        let flight = Flight::resting(Path::from(Time::ZERO));
        let landed = link().cross(MESSAGE, 8, bus().cross(MESSAGE, 8, flight)).landed();
        assert_eq!(landed.at(), Time::from_ps(283_560));
        assert_eq!(landed.total(Stage::BUS), ps(250_000));
        assert_eq!(landed.total(Stage::LINK), ps(33_560));
    }

    #[test]
    fn a_slow_first_stage_keeps_its_gap() {
        let mut slow = Stream::new(ps(1_000), Gap::new(100, 1), Stage::BUS, Stage::BUS_QUEUED);
        let flight = slow.cross(MESSAGE, 100, Flight::resting(Path::from(Time::ZERO)));
        let landed = link().cross(MESSAGE, 100, flight).landed();
        assert_eq!(landed.at(), Time::from_ps(10_000 + 1_000 + 33_400));
        assert_eq!(landed.total(Stage::BUS), ps(11_000));
        assert_eq!(landed.total(Stage::LINK), ps(33_400));
    }

    #[test]
    fn a_burst_is_one_message_on_the_critical_path() {
        // 64 KiB: the bus takes 250 ns. The link takes 1310.72 ns for the bytes and 33.4 ns of latency. Nothing queues.
        let (mut bus, mut link) = (bus(), link());
        let flight = Flight::resting(Path::from(Time::ZERO));
        let burst = bus.burst(MESSAGE, 65_536, 4096, flight, Stage::BUS, Stage::BUS_QUEUED);
        let landed =
            (0..16).map(|k| link.cross(MESSAGE, 4096, burst.packet(k * 4096))).last().unwrap().landed();
        assert_eq!(landed.at(), Time::from_ps(250_000 + 1_310_720 + 33_400));
        assert_eq!(landed.stages().count(), 2);
        assert_eq!(landed.total(Stage::LINK), ps(1_310_720 + 33_400));
        assert_eq!(bus.free(), Time::from_ps(16 * 63_898));
    }

    #[test]
    fn a_buffer_is_free_when_its_last_byte_is_handed_over() {
        let mut bus = bus();
        let path = Path::from(Time::from_ps(5));
        let deposit = bus.hand_over(MESSAGE, 8, path.clone(), Stage::DEPOSIT, Stage::DEPOSIT_QUEUED);
        assert_eq!(deposit.path.at(), Time::from_ps(130));
        assert_eq!(deposit.landed, Time::from_ps(250_130));
        let behind = bus.hand_over(OTHER, 0, path, Stage::DEPOSIT, Stage::DEPOSIT_QUEUED);
        assert_eq!(behind.path.total(Stage::DEPOSIT_QUEUED), ps(125));
    }

    #[test]
    fn waiting_after_the_resource_was_free_is_queueing() {
        let mut link = Occupancy::new(Stage::LINK, Stage::LINK_QUEUED);
        // The preceding path of the message is a clock. A path that waits for it keeps its own stages.
        let mut held = Occupancy::new(Stage::LINK, Stage::LINK_QUEUED);
        let (mut clock, mut known) = (Path::clock(Time::ZERO), Path::from(Time::ZERO));
        held.claim(MESSAGE, Time::ZERO, Duration::from_ps(50), &mut clock);
        held.claim(MESSAGE, Time::ZERO, Duration::from_ps(50), &mut known);
        assert_eq!(known.total(Stage::LINK_QUEUED), Duration::from_ps(50));

        let mut first = Path::from(Time::ZERO);
        assert_eq!(link.claim(MESSAGE, Time::ZERO, ps(100), &mut first), Time::ZERO);
        link.hold(Time::from_ps(120));
        link.hold(Time::from_ps(110)); // the resource is already occupied for longer
        // The next packet of the message arrives at 10. The link is free at 120, and a credit arrives at 150.
        let mut second = Path::from(Time::from_ps(10));
        let start = link.claim_after(Time::from_ps(150), MESSAGE, Time::from_ps(10), ps(100), &mut second);
        assert_eq!(start, Time::from_ps(150));
        assert_eq!((second.total(Stage::LINK), second.total(Stage::LINK_QUEUED)), (ps(120), ps(30)));
        // The packet of the other message has waited for both packets of the first message.
        let mut third = Path::from(Time::from_ps(10));
        assert_eq!(link.claim(OTHER, Time::from_ps(10), ps(5), &mut third), Time::from_ps(250));
        assert_eq!(third.total(Stage::LINK_QUEUED), ps(240));
        // The preceding packet of this message left long ago, so this packet has waited for the credit only.
        let mut fourth = Path::from(Time::from_ps(300));
        link.claim_after(Time::from_ps(310), OTHER, Time::from_ps(300), ps(5), &mut fourth);
        assert_eq!((fourth.total(Stage::LINK), fourth.total(Stage::LINK_QUEUED)), (ps(0), ps(10)));
        assert_eq!(link.busy(), ps(120 + 100 + 5 + 5));
    }

    #[test]
    fn waiting_for_another_message_is_queueing() {
        let mut link = link();
        link.cross(OTHER, 4096, Flight::resting(Path::from(Time::ZERO)));
        let landed = link.cross(MESSAGE, 8, Flight::resting(Path::from(Time::ZERO))).landed();
        assert_eq!(landed.total(Stage::LINK_QUEUED), ps(81_920));
        assert_eq!(landed.total(Stage::LINK), ps(160 + 33_400));
        assert_eq!(link.busy(), ps(81_920 + 160));
    }
}
