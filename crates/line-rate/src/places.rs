//! One table of an XDP program in several places: the cores of cards, and drivers of hosts.

use super::check::{FRAMES, equal_frames, point_name};
use super::flow;
use super::hxdp;
use super::object::XdpObject;
use super::request::{Driver, Request};
use super::row::Row;
use super::xdp;
use nicety::nfp::NfpSpec;
use nicety::{Environment, Error};
use nicety_nic_hxdp::HxdpSpec;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A place of an XDP program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub enum Place {
    /// The handler cores of a card.
    #[serde(rename = "card cores")]
    CardCores,
    /// A core of the card that executes eBPF itself.
    #[serde(rename = "eBPF core")]
    EbpfCore,
    /// The microengines of a network flow processor.
    #[serde(rename = "microengines")]
    Microengines,
    /// The driver of the card's host.
    #[serde(rename = "host driver")]
    HostDriver,
}

/// An XDP program in a place.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "XdpPlace")]
pub struct PlaceRow {
    /// The card.
    pub nic: String,
    /// The place of the program.
    pub place: Place,
    /// Bytes of a frame without its check sequence; the mean of traffic.
    pub packet_bytes: u64,
    /// Cores of the card, or CPUs of the host that take frames.
    pub processors: u64,
    /// Mean cycles of a frame on a card's core; none in a driver.
    pub cycles_mean: Option<f64>,
    /// Frames offered, per second.
    pub offered_pps: f64,
    /// Frames sustained per second, at most those offered. On a card: without losses and without a growing backlog. In a driver:
    /// the highest rate without loss; 0 if every rate loses frames.
    pub sustained_pps: f64,
    /// `sustained_pps` over `offered_pps`.
    pub sustained_fraction: f64,
    /// CPU time of the host for a frame. On a card it is that of the run at the offered rate, and none on cards with a host that
    /// takes no frames. In a driver it is that of the run at `sustained_pps`.
    pub host_cpu_ns: Option<f64>,
    /// Frames by verdict, at the offered rate. On a card, the caller, which has the object, sets them.
    pub verdicts: BTreeMap<String, u64>,
    /// Frames lost at the offered rate.
    pub lost: u64,
    /// The part that limits, or that has the highest load.
    pub bottleneck: String,
    /// Its load: on a card at the offered rate, in a driver at `sustained_pps`. None if it has no load of its own.
    pub bottleneck_load: Option<f64>,
}

/// The place of a row of a card without a modelled host. Rows of the two designs have no type in common.
macro_rules! on_card {
    ($row:expr, $place:expr, $processors:expr) => {{
        let sustained_pps = $row.lossless_pps.unwrap_or(0.0);
        PlaceRow {
            nic: $row.nic.clone(),
            place: $place,
            packet_bytes: ($row.offered_bytes + $row.offered / 2) / $row.offered.max(1),
            processors: $processors,
            cycles_mean: Some($row.cycles_mean),
            offered_pps: $row.offered_pps,
            sustained_pps,
            sustained_fraction: sustained_pps / $row.offered_pps,
            host_cpu_ns: None,
            verdicts: $row.verdicts.clone(),
            lost: $row.lost,
            bottleneck: $row.bottleneck.part.clone(),
            bottleneck_load: Some($row.bottleneck.load),
        }
    }};
}

impl PlaceRow {
    /// The place of a card's row.
    fn on_cores(row: &Row) -> PlaceRow {
        let sustained_fraction = row.capacity_fraction.clamp(0.0, 1.0);
        let lost = row.traffic.as_ref().map_or(0, |traffic| {
            traffic.dropped_by_overload + traffic.dropped_at_host + traffic.dropped_at_link
        });
        let part = row.parts.iter().find(|part| part.part == row.bottleneck);
        let name = row.bottleneck.name();
        PlaceRow {
            nic: row.nic.clone(),
            place: Place::CardCores,
            packet_bytes: row.packet_bytes,
            processors: row.hpus,
            cycles_mean: row.cycles_mean,
            offered_pps: row.line_rate_packets_per_s,
            sustained_pps: sustained_fraction * row.line_rate_packets_per_s,
            sustained_fraction,
            host_cpu_ns: row.host_cpu_ns,
            verdicts: BTreeMap::new(),
            lost,
            bottleneck: match part.and_then(|part| part.name.as_ref()) {
                Some(which) => format!("{name} ({which})"),
                None => name,
            },
            bottleneck_load: part.map(|part| part.load),
        }
    }

    /// The place of a row of an eBPF core.
    fn on_ebpf_core(row: &hxdp::Row) -> PlaceRow {
        on_card!(row, Place::EbpfCore, 1)
    }

    /// The place of a row of a network flow processor.
    fn on_microengines(row: &flow::Row) -> PlaceRow {
        on_card!(row, Place::Microengines, row.microengines)
    }

    /// The place of a driver's row.
    fn in_driver(row: &xdp::Row) -> PlaceRow {
        let sustained_pps = row.lossless_pps.unwrap_or(0.0);
        PlaceRow {
            nic: row.nic.clone(),
            place: Place::HostDriver,
            packet_bytes: (row.offered_bytes + row.offered / 2) / row.offered.max(1),
            processors: row.cpus,
            cycles_mean: None,
            offered_pps: row.offered_pps,
            sustained_pps,
            sustained_fraction: sustained_pps / row.offered_pps,
            host_cpu_ns: Some(row.cpu_ns_per_frame),
            verdicts: row.by_verdict(),
            lost: row.lost,
            bottleneck: row.bottleneck.part.clone(),
            bottleneck_load: Some(row.bottleneck.load),
        }
    }
}

/// One table of all places, in this order of cards.
pub(super) fn places(
    rows: &[Row],
    (drivers, ebpf_cores, flow_processors): (&[xdp::Row], &[hxdp::Row], &[flow::Row]),
    order: &[String],
) -> Vec<PlaceRow> {
    let mut places: Vec<PlaceRow> = rows.iter().map(PlaceRow::on_cores).collect();
    places.extend(drivers.iter().map(PlaceRow::in_driver));
    places.extend(ebpf_cores.iter().map(PlaceRow::on_ebpf_core));
    places.extend(flow_processors.iter().map(PlaceRow::on_microengines));
    places.sort_by_key(|place| order.iter().position(|nic| *nic == place.nic));
    places
}

/// The card of a program that runs in no host's driver.
enum OnCard {
    /// Its core executes eBPF.
    EbpfCore(Box<HxdpSpec>),
    /// Its microengines execute the compiled program.
    FlowProcessor(Box<NfpSpec>),
}

/// The program in a host's driver, on an eBPF core or on microengines, with frames of one size or with traffic.
pub(super) struct InDriver<'r> {
    request: xdp::Request,
    program: &'r XdpObject,
    /// The card's name, and the card where the program runs on it.
    nic: String,
    card: Option<OnCard>,
    /// The object, or the compiled program for microengines.
    object: &'r [u8],
    /// The name of the measurement.
    pub(super) point: String,
}

/// The result of such a program.
pub(super) enum Placed {
    InDriver(Box<xdp::Row>),
    OnEbpfCore(Box<hxdp::Row>),
    OnFlowProcessor(Box<flow::Row>),
}

/// The programs of a request that run in no handler, checked.
///
/// # Errors
/// The environment has no object for a card, or program, maps or traffic are wrong for it.
pub(super) fn in_drivers<'r>(
    request: &'r Request,
    environment: &Environment<'r>,
    drivers: &[Driver],
    packet_sizes: &[u64],
) -> Result<Vec<InDriver<'r>>, Error> {
    let Some(object) = &request.xdp else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for driver in drivers {
        for &packet_bytes in packet_sizes {
            let program = InDriver::of(request, object, environment, (driver, packet_bytes))?;
            program.check(environment)?;
            all.push(program);
        }
    }
    Ok(all)
}

impl<'r> InDriver<'r> {
    fn of(
        request: &Request,
        object: &'r XdpObject,
        environment: &Environment<'r>,
        (driver, packet_bytes): (&Driver, u64),
    ) -> Result<InDriver<'r>, Error> {
        let (nic, (name, card)) = driver;
        let bytes = environment.compiled.get(name).ok_or_else(|| {
            Error::Input(format!("no program for {name}; give the one that the plan names"))
        })?;
        let traffic =
            request.traffic.first().cloned().unwrap_or_else(|| equal_frames(request, packet_bytes, FRAMES));
        let point = format!("{name}, {}", point_name(request, packet_bytes));
        let request = xdp::Request {
            nics: vec![nic.clone()],
            program: object.program.clone(),
            mode: request.xdp_mode,
            traffic,
            cpus: None,
            lossy: true,
            overrides: request.overrides.clone(),
            maps: object.maps.clone(),
            dumps: object.dumps.clone(),
            seed: request.seed,
        };
        let core = card.spec.of::<HxdpSpec>().ok().map(|spec| OnCard::EbpfCore(Box::new(spec.clone())));
        let flow =
            || card.spec.of::<NfpSpec>().ok().map(|spec| OnCard::FlowProcessor(Box::new(spec.clone())));
        Ok(InDriver {
            request,
            program: object,
            nic: name.clone(),
            card: core.or_else(flow),
            object: bytes,
            point,
        })
    }

    fn check(&self, environment: &Environment<'_>) -> Result<(), Error> {
        match &self.card {
            Some(OnCard::EbpfCore(spec)) => hxdp::check(&self.on_core(spec, environment)),
            Some(OnCard::FlowProcessor(spec)) => flow::check(&self.on_microengines(spec, environment)),
            None => xdp::check(self.object, &self.request, environment),
        }
    }

    fn on_core<'g>(&'g self, spec: &'g HxdpSpec, environment: &'g Environment<'g>) -> hxdp::Given<'g> {
        hxdp::Given {
            nic: &self.nic,
            spec,
            object: self.object,
            program: self.program,
            traffic: &self.request.traffic,
            seed: self.request.seed,
            environment,
        }
    }

    fn on_microengines<'g>(&'g self, spec: &'g NfpSpec, environment: &'g Environment<'g>) -> flow::Given<'g> {
        let (traffic, seed) = (&self.request.traffic, self.request.seed);
        flow::Given { nic: &self.nic, spec, elf: self.object, traffic, seed, environment }
    }

    /// Measures the program.
    ///
    /// # Errors
    /// A run fails, as by a trap.
    pub(super) fn measure(&self, environment: &Environment<'_>) -> Result<Placed, Error> {
        match &self.card {
            Some(OnCard::EbpfCore(spec)) => {
                let row = hxdp::measure(&self.on_core(spec, environment))?;
                return Ok(Placed::OnEbpfCore(Box::new(row)));
            }
            Some(OnCard::FlowProcessor(spec)) => {
                let row = flow::measure(&self.on_microengines(spec, environment))?;
                return Ok(Placed::OnFlowProcessor(Box::new(row)));
            }
            None => {}
        }
        let quiet = Environment { progress: &|_, _| (), ..environment.clone() };
        let report = xdp::run(self.object, &self.request, &quiet)?;
        let row = report.rows.into_iter().next().expect("one card with one number of CPUs");
        Ok(Placed::InDriver(Box::new(row)))
    }
}
