//! One run: frames at a rate, through a program in the driver of a host.

use super::request::{Request, Tested};
use crate::losses::dropped;
use crate::request::refused;
use crate::shares::due;
use nicety::record::Level;
use nicety::{
    Allowed, Capture, Cluster, ClusterConfig, Environment, Error, FlowControl, Interrupt, LoadedXdp,
    Topology, Xdp,
};
use nicety_ebpf::Object;
use nicety_ebpf::report::maps::Dumped;
use nicety_fabric::Buffering;
use nicety_nic_core::CardSpec;
use nicety_nic_core::parts::{DueTime, Offered};
use nicety_nic_ethernet::{HostWork, MARK, XdpProgress, XdpReport};
use nicety_nic_processors::Busy;
use nicety_traffic::{DueTime as TrafficDue, Stream, TrafficError};
use nicety_types::{Duration, Histogram, NodeId};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A card with a number of CPUs, and what runs there.
pub(super) struct Place<'p> {
    pub(super) request: &'p Request,
    pub(super) environment: &'p Environment<'p>,
    pub(super) card: &'p Tested,
    pub(super) object: &'p Object,
}

/// The figures of a run.
pub(super) struct Trial {
    /// The rate, relative to the traffic's.
    pub(super) times: f64,
    pub(super) offered: Offered,
    /// Frames without a buffer in a receive ring, and frames that found the card's packet buffer full.
    lost: (u64, u64),
    pub(super) counts: XdpReport,
    pub(super) progress: XdpProgress,
    pub(super) latency: Histogram,
    pub(super) busy: Busy,
    pub(super) host_work: Vec<HostWork>,
    pub(super) cpu_time: Duration,
    /// Fetches of transmit descriptors, one after another.
    pub(super) fetching: Duration,
    /// Entries of the maps that the request names.
    pub(super) maps: BTreeMap<String, Vec<Dumped>>,
}

#[derive(Default)]
struct Sender {
    offered: Offered,
    error: Option<TrafficError>,
}

impl Trial {
    /// Frames a second of the generator.
    pub(super) fn offered_pps(&self) -> f64 {
        per_second(self.offered.packets, self.offered.time)
    }

    /// Frames a second with a carried out verdict, in the middle half of them. A poll takes the frames of an interrupt at once, which
    /// is no higher rate than that of the generator.
    pub(super) fn through_pps(&self) -> f64 {
        let marks = &self.progress.marks;
        let (first, last) = (marks.len() / 4, marks.len() * 3 / 4);
        let rate = match last > first {
            true => per_second((last - first) as u64 * MARK, marks[last].since(marks[first])),
            false => per_second(self.progress.through, self.span()),
        };
        rate.min(self.offered_pps())
    }

    /// The work of parts that serve one frame after another: CPUs with frames, the bus, descriptor fetches and the link.
    pub(super) fn work(&self) -> impl Iterator<Item = (&str, Duration)> {
        let cpus = self.host_work.iter().filter(|work| work.came > 0 || !work.busy.is_zero());
        let others = [
            ("bus to host", self.busy.bus_to_host),
            ("bus to card", self.busy.bus_to_card),
            ("descriptor fetches", self.fetching),
            ("link, out", self.busy.link),
        ];
        cpus.map(|work| (work.name.as_str(), work.busy)).chain(others)
    }

    /// From the first arrival to the last verdict.
    pub(super) fn span(&self) -> Duration {
        self.progress.end.since(self.progress.first)
    }

    /// Frames that were lost before a program ran.
    pub(super) fn lost_before(&self) -> u64 {
        self.lost.0 + self.lost.1
    }

    /// Frames that were lost: also those that found a transmit ring or a queue full.
    pub(super) fn lost(&self) -> u64 {
        self.lost_before() + self.counts.transmit_full + self.counts.queue_full
    }

    /// Frames without a verdict when the last one arrives.
    pub(super) fn behind(&self) -> u64 {
        let XdpProgress { through, last, marks, .. } = &self.progress;
        through - marks.partition_point(|mark| mark <= last) as u64 * MARK
    }
}

fn per_second(frames: u64, time: Duration) -> f64 {
    frames as f64 / (time.ps().max(1) as f64 / 1e12)
}

impl Place<'_> {
    /// Checks program, maps and traffic.
    ///
    /// # Errors
    /// They are wrong for this card.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.stream()?;
        let cluster = self.cluster(None)?;
        let loaded = self.install(&cluster.host(1).xdp()?)?;
        self.dumped(&loaded).map(drop)
    }

    /// The entries of the maps that the request names.
    fn dumped(&self, loaded: &LoadedXdp) -> Result<BTreeMap<String, Vec<Dumped>>, Error> {
        let names = self.request.dumps.iter();
        names.map(|name| Ok((name.clone(), loaded.entries(name)?))).collect()
    }

    fn stream(&self) -> Result<Stream, Error> {
        let traffic = self.request.traffic()?;
        traffic.open(self.request.seed, self.card.spec().largest_packet()).map_err(|error| refused(&error))
    }

    fn cluster(&self, capture: Option<Capture>) -> Result<Cluster, Error> {
        let interrupt = self.environment.interrupt.clone();
        Cluster::new(ClusterConfig {
            seed: self.request.seed,
            interrupt: interrupt
                .map(|flag| Interrupt::new(move || flag.load(std::sync::atomic::Ordering::Relaxed))),
            log: self.environment.log.clone(),
            capture,
            allowed: Allowed::default(),
            drops_allowed: true,
            breakdown: false,
            recording: Level::Summary,
            flow_control: FlowControl::None(Buffering::default()),
            topology: Topology::Star,
            ..ClusterConfig::new(2, self.card.card.clone())
        })
    }

    fn install(&self, xdp: &Xdp) -> Result<LoadedXdp, Error> {
        let request = self.request;
        let entries: Vec<_> = request.maps.iter().map(|map| (map.map.clone(), map.json.clone())).collect();
        let loaded = xdp.load(self.object, request.program.as_deref(), &entries, request.mode.into())?;
        xdp.install(&loaded)?;
        Ok(loaded)
    }

    /// Sends the traffic at `times` its rate.
    ///
    /// # Errors
    /// A trap of the program, or a rate above that of the wire.
    pub(super) fn run(&self, times: f64) -> Result<Trial, Error> {
        // As on handler cores: a capture has the traffic as given, and no run of the search.
        let capture = self.environment.capture_of("traffic").filter(|_| times == 1.0);
        let mut cluster = self.cluster(capture)?;
        let xdp = cluster.host(1).xdp()?;
        let loaded = self.install(&xdp)?;
        xdp.watch_generator(NodeId(0));
        let sender = self.send(&mut cluster, times)?;
        cluster.program(1, |host| async move {
            host.barrier().await;
            Ok(())
        });
        let run = cluster.run()?;
        let Sender { offered, error } = sender.take();
        if let Some(error) = error {
            return Err(refused(&error));
        }
        let rate = self.request.traffic()?.rate;
        if let Some(why) = rate.above_the_wire(offered.packets, offered.bytes, offered.wire.ns() / 1e9) {
            return Err(Error::Input(format!("--traffic: {why}")));
        }
        let driver = xdp.driver();
        Ok(Trial {
            times,
            offered,
            lost: (xdp.lost(), dropped(&run.network)),
            counts: driver.report().unwrap_or_default(),
            progress: driver.progress(),
            latency: driver.latency(),
            busy: xdp.busy(),
            host_work: xdp.host_work(),
            cpu_time: xdp.cpu_time(),
            fetching: xdp.fetching(),
            maps: self.dumped(&loaded)?,
        })
    }

    fn send(&self, cluster: &mut Cluster, times: f64) -> Result<Rc<RefCell<Sender>>, Error> {
        let mut stream = self.stream()?.ahead().map_err(|error| refused(&error))?;
        let sender = Rc::new(RefCell::new(Sender::default()));
        let left = sender.clone();
        let generator = cluster.host(0).xdp()?;
        cluster.program(0, move |host| async move {
            host.barrier().await;
            let mut on_wire = 0;
            let next = |frame: &mut Vec<u8>| {
                let due_at = stream.next_frame(frame).unwrap_or_else(|error| {
                    left.borrow_mut().error = Some(error);
                    None
                })?;
                Some(match due_at {
                    // Slower than the wire, a frame takes a longer time on it.
                    TrafficDue::Wire if times < 1.0 => {
                        let at = on_wire;
                        on_wire += generator.wire_interval(frame.len() as u64).ps();
                        let slower = |ps: u64| (ps as f64 / times).round() as u64;
                        DueTime::after(slower(at), slower(on_wire))
                    }
                    other => due(other, times, Duration::ZERO),
                })
            };
            let offered = host.xdp()?.offer(1, next, &Cell::new(false)).await;
            left.borrow_mut().offered = offered;
            Ok(())
        });
        Ok(sender)
    }
}
