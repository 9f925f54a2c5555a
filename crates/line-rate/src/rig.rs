//! The set-up of a line-rate check: a generator on rank 0, the card with the handlers on rank 1.

use super::load::{Input, Interval, Load};
use super::measured::Measured;
use super::profiler::Profiler;
use super::request::{Messages, Request};
use super::row::Row;
use super::tested::{OnHost, Tested};
use super::unmodelled::SharedBefore;
use nicety::cards::Card;
use nicety::record::{Level, Recording};
use nicety::{
    Allowed, Buffer, Cluster, ClusterConfig, Environment, Error, Failure, Handlers, Interrupt, Run,
    failure_lines,
};
use nicety_nic_processors::Processors;
use nicety_nic_spin::{Generated, SpinSpec};
use nicety_portals::{List, Me, MeOptions};
use nicety_traffic::{Form, core_order_header};
use nicety_types::NodeId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The phrase for an access outside all memory of the handler.
const OUTSIDE: &str = "outside its memory";
pub(super) const PT: u32 = 1;
pub(super) const DATA: u64 = 1;
/// Maximum rows of one kind for a packet in the measured part: runs of three handlers. A timeline of more packets shows their
/// beginning.
const ROWS_A_PACKET: u64 = 8;

/// One packet size on one card.
pub(super) struct Rig<'r> {
    pub(super) request: &'r Request,
    pub(super) environment: &'r Environment<'r>,
    pub(super) card: &'r Card,
    pub(super) handlers: &'r Handlers,
    pub(super) packet_bytes: u64,
    /// The name of the measurement, for progress.
    pub(super) place: &'r str,
    /// Takes the profile of the handlers in its first run.
    pub(super) profiler: Option<&'r Profiler>,
    /// Whether its figures are only compared with those of other cards, without confirmation.
    pub(super) rough: bool,
}

impl Rig<'_> {
    /// Reports progress.
    pub(super) fn tell(&self, what: &str) {
        (self.environment.news)(&format!("{}: {what}", self.place));
    }

    /// Returns the environment of a further run, without output: the first run has reported it.
    pub(super) fn quiet(&self) -> Environment<'_> {
        let (compiled, interrupt) = (self.environment.compiled, self.environment.interrupt.clone());
        Environment { compiled, interrupt, ..Environment::default() }
    }

    /// Returns a flag that ends only this run, and an interrupt by the flag or of everything.
    pub(super) fn stop(&self) -> (Arc<AtomicBool>, Interrupt) {
        let own = Arc::new(AtomicBool::new(false));
        let (flag, all) = (own.clone(), self.environment.interrupt.clone());
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        (own, Interrupt::new(move || is_set(&flag) || all.as_deref().is_some_and(is_set)))
    }

    /// Measures equal packets, from a sender with its own card, or with the same one.
    pub(super) fn send_equal(
        &self,
        spec: &SpinSpec,
        sender: Option<&Card>,
        recorded: Option<&dyn Fn(Recording)>,
    ) -> Result<(Row, Vec<Failure>), Error> {
        let messages = self.request.messages();
        let (stop, interrupt) = self.stop();
        let packets = messages.total() * messages.packets_each;
        let mut cluster = Cluster::new(ClusterConfig {
            seed: self.request.seed,
            interrupt: Some(interrupt),
            log: self.environment.log.clone(),
            capture: self.environment.capture_of(format_args!("packets of {} B", self.packet_bytes)),
            allowed: Allowed::ALL,
            recording: if recorded.is_some() { Level::Everything } else { Level::Packets },
            recorded_rows: (packets * ROWS_A_PACKET) as usize,
            cards: vec![sender.unwrap_or(self.card).clone(), self.card.clone()],
            ..ClusterConfig::new(2, self.card.clone())
        })?;
        let interval = cluster.host(0).portals()?.card().wire_interval(self.packet_bytes);
        self.generate(&mut cluster, Tested::Messages(spec).form(false), messages);
        // The memory lives as long as the run.
        let _memory = self.receive(&mut cluster, self.packet_bytes * messages.packets_each)?;
        let card = OnHost::Messages(cluster.host(1).portals()?.card().clone());
        let before = SharedBefore::of(card.processors(), &spec.hpu);
        let run = self.run_profiled(&mut cluster, card.processors(), stop)?;
        let interval = Interval::of_each(interval);
        let input = Input { packet_bytes: self.packet_bytes, messages, interval };
        let mut load = Load::of(input, &Tested::Messages(spec), (&card, &before), self.handlers);
        let measured = Measured::of(&load, &run.recording)?;
        if measured.is_at_rate(&load) {
            load.without_queues();
        }
        let row = measured.row(&load, None);
        let failures = run.failures();
        if let Some(recorded) = recorded {
            recorded(run.recording);
        }
        Ok((row, failures))
    }

    /// Returns a cluster in which rank 0 sends equal packets of messages, and the memory that it needs. Nothing is measured.
    pub(super) fn unmeasured_equal(
        &self,
        tested: &Tested<'_>,
        messages: Messages,
        interrupt: Interrupt,
    ) -> Result<(Cluster, [Buffer; 2]), Error> {
        let mut cluster = Cluster::new(ClusterConfig {
            seed: self.request.seed,
            interrupt: Some(interrupt),
            log: self.environment.log.clone(),
            allowed: Allowed::ALL,
            recording: Level::Summary,
            ..ClusterConfig::new(2, self.card.clone())
        })?;
        self.generate(&mut cluster, tested.form(false), messages);
        let memory = self.receive(&mut cluster, self.packet_bytes * messages.packets_each)?;
        Ok((cluster, memory))
    }

    /// Makes rank 0 send at line rate.
    pub(super) fn generate(&self, cluster: &mut Cluster, form: Form, messages: Messages) {
        let what = Generated {
            target: NodeId(1),
            pt: PT,
            match_bits: DATA,
            packet_bytes: self.packet_bytes,
            message_packets: messages.packets_each,
            messages: messages.total(),
        };
        let user_header = self.request.user_header.clone();
        // The headers of PsPIN packets contain their length.
        let header = match form {
            Form::Frame => Vec::new(),
            Form::Packet => core_order_header(self.packet_bytes).to_vec(),
        };
        cluster.program(0, move |host| async move {
            host.barrier().await;
            let mut rng = host.rng("line-rate payload");
            let fill = |offset: u64, bytes: &mut [u8]| {
                rng.fill(bytes);
                let length = header.len().min(bytes.len());
                bytes[..length].copy_from_slice(&header[..length]);
                let rest = user_header.get(offset as usize..).unwrap_or_default();
                let length = rest.len().min(bytes.len());
                bytes[..length].copy_from_slice(&rest[..length]);
            };
            host.portals()?.card().generate(&what, fill).await;
            Ok(())
        });
    }

    /// Gives rank 1 a match entry with the handlers, for messages of at most `message_bytes` bytes. Returns the memory that the
    /// run needs.
    pub(super) fn receive(&self, cluster: &mut Cluster, message_bytes: u64) -> Result<[Buffer; 2], Error> {
        let host = cluster.host(1);
        let portals = host.portals()?;
        let memory = host.alloc(message_bytes)?;
        let of_handlers = host.alloc(self.request.handler_memory)?;
        let mut state = self.request.state.clone();
        state.resize(self.request.state_bytes() as usize, 0);
        let attached = portals.attach(self.handlers, &state, Some(&of_handlers))?;
        let counter = portals.ct_alloc()?;
        portals.pt_alloc(Some(PT), None)?;
        let me = Me {
            start: memory.address(),
            length: memory.len(),
            match_bits: DATA,
            options: MeOptions::OP_PUT
                | MeOptions::EVENT_LINK_DISABLE
                | MeOptions::EVENT_COMM_DISABLE
                | MeOptions::EVENT_CT_COMM,
            ct: Some(counter),
            handlers: Some(attached),
            ..Me::default()
        };
        cluster.program(1, move |host| async move {
            let portals = host.portals()?;
            let appending = portals.me_append(PT, me, List::Priority).await?;
            portals.appended(appending).await?;
            host.barrier().await;
            Ok(())
        });
        Ok([memory, of_handlers])
    }
}

impl Rig<'_> {
    /// As [`run`](Rig::run), and takes the profile of the handlers on this card.
    pub(super) fn run_profiled(
        &self,
        cluster: &mut Cluster,
        card: &Processors,
        stop: Arc<AtomicBool>,
    ) -> Result<Run, Error> {
        let Some(profiler) = self.profiler else { return self.run(cluster, card, stop) };
        card.profile();
        let run = self.run(cluster, card, stop)?;
        profiler.take(card);
        Ok(run)
    }

    /// Runs a cluster until its end, or until a handler of this card is stopped. Otherwise a stop could repeat for every packet,
    /// each time after the longest allowed run.
    pub(super) fn run(
        &self,
        cluster: &mut Cluster,
        card: &Processors,
        stop: Arc<AtomicBool>,
    ) -> Result<Run, Error> {
        card.on_stop(stop);
        let run = cluster.run();
        if !card.has_stopped_one() {
            return run;
        }
        let mut lines = failure_lines(&card.failures());
        if self.request.state_bytes.is_none() && lines.lines().any(state_may_be_short) {
            let bytes = self.request.state_bytes();
            lines += &format!(
                "\n(the state has {bytes} bytes here; if the handlers need more, write for example --state-bytes 64Ki)"
            );
        }
        Err(Error::HandlerTrap(lines))
    }
}

/// Whether a failure is an access behind the state, or to an unknown place.
fn state_may_be_short(failure: &str) -> bool {
    let Some((_, place)) = failure.split_once(OUTSIDE) else { return false };
    let elsewhere = place.starts_with(" (a null pointer") || place.contains(" bytes at 0x");
    place.contains("the end of the state (") || !elsewhere
}

#[cfg(test)]
mod tests {
    use super::state_may_be_short;

    #[test]
    fn only_what_lies_behind_a_state_may_be_its_size() {
        for (place, short) in [
            (
                "store of 1 byte to 0x14000400 outside its memory, 0 bytes past the end of the state (1024 bytes at 0x14000000)",
                true,
            ),
            (
                "store of 4 bytes to 0x140003fe outside its memory, over the end of the state (1024 bytes at 0x14000000)",
                true,
            ),
            ("store of 1 byte to 0x14100000 outside its memory, in frame_handler at a.c:3", true),
            (
                "load of 1 byte from 0x13ffffff outside its memory, 1 bytes before the state (1024 bytes at 0x14000000)",
                false,
            ),
            (
                "load of 1 byte from 0x1c40007c outside its memory, 0 bytes past the end of the packet (60 bytes at 0x1c400040)",
                false,
            ),
            (
                "store of 4 bytes to 0x0 outside its memory (a null pointer?), in frame_handler at a.c:3",
                false,
            ),
            ("invalid return code 9", false),
        ] {
            assert_eq!(state_may_be_short(place), short, "{place}");
        }
    }
}
