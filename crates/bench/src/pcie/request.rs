//! The request of the benchmark `pcie`.

use super::Point;
use crate::load_cards;
use nicety::Error;
use nicety::cards::Card;
use nicety_host::BusSpec;
use nicety_host::pcie::{AccessSpec, PcieSpec};
use schemars::JsonSchema;
use serde::Deserialize;

/// No transfer crosses a page of this size.
const PAGE: u64 = 4096;
/// Line of the host's cache.
const LINE: u64 = 64;
/// Maximum size of the window: the buffers of pcie-bench.
const MOST_WINDOW: u64 = 64 << 20;
const MOST_SAMPLES: u64 = 1 << 20;

/// A test of pcie-bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// A core's read by a command.
    LatencyCommandRead,
    /// A core's write and then a read of the same bytes, by commands.
    LatencyCommandWriteRead,
    /// A read by a DMA engine.
    LatencyDmaRead,
    /// A write and then a read of the same bytes, by DMA engines.
    LatencyDmaWriteRead,
    /// Reads by DMA engines.
    BandwidthRead,
    /// Writes by DMA engines.
    BandwidthWrite,
    /// Reads and writes by DMA engines, in turns.
    BandwidthReadWrite,
}

impl Test {
    const ALL: [Test; 7] = [
        Test::LatencyCommandRead,
        Test::LatencyCommandWriteRead,
        Test::LatencyDmaRead,
        Test::LatencyDmaWriteRead,
        Test::BandwidthRead,
        Test::BandwidthWrite,
        Test::BandwidthReadWrite,
    ];

    /// The name in pcie-bench.
    pub const fn name(self) -> &'static str {
        match self {
            Test::LatencyCommandRead => "LAT_CMD_RD",
            Test::LatencyCommandWriteRead => "LAT_CMD_WRRD",
            Test::LatencyDmaRead => "LAT_DMA_RD",
            Test::LatencyDmaWriteRead => "LAT_DMA_WRRD",
            Test::BandwidthRead => "BW_DMA_RD",
            Test::BandwidthWrite => "BW_DMA_WR",
            Test::BandwidthReadWrite => "BW_DMA_RW",
        }
    }

    /// Whether a core moves the bytes by commands.
    pub(super) const fn is_command(self) -> bool {
        matches!(self, Test::LatencyCommandRead | Test::LatencyCommandWriteRead)
    }

    /// Whether the test writes to host memory.
    pub(super) const fn writes(self) -> bool {
        !matches!(self, Test::LatencyCommandRead | Test::LatencyDmaRead | Test::BandwidthRead)
    }

    /// Whether the test measures bandwidth.
    pub(super) const fn is_bandwidth(self) -> bool {
        matches!(self, Test::BandwidthRead | Test::BandwidthWrite | Test::BandwidthReadWrite)
    }
}

/// The pattern of addresses in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One after another.
    Sequential,
    /// At random.
    Random,
}

impl Pattern {
    const ALL: [Pattern; 2] = [Pattern::Sequential, Pattern::Random];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Pattern::Sequential => "seq",
            Pattern::Random => "rand",
        }
    }
}

/// The state of the host's last-level cache before a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// The host has written the window.
    HostWarm,
    /// The card has written the window.
    CardWarm,
    /// The cache has nothing of the window.
    Cold,
    /// The card has written all buffers at random.
    CardThrashed,
}

impl Cache {
    const ALL: [Cache; 4] = [Cache::HostWarm, Cache::CardWarm, Cache::Cold, Cache::CardThrashed];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Cache::HostWarm => "hwarm",
            Cache::CardWarm => "dwarm",
            Cache::Cold => "cold",
            Cache::CardThrashed => "dthrash",
        }
    }
}

fn usual_tests() -> Vec<String> {
    vec!["LAT_DMA_RD".to_owned()]
}

fn usual_patterns() -> Vec<String> {
    vec!["seq".to_owned()]
}

fn usual_caches() -> Vec<String> {
    vec!["hwarm".to_owned()]
}

fn usual_offsets() -> Vec<u64> {
    vec![0]
}

fn usual_windows() -> Vec<u64> {
    vec![8192]
}

const fn usual_samples() -> u64 {
    256
}

/// The tests of pcie-bench: a card's reads and writes of host memory over PCI Express.
///
/// The measured points are all combinations of the given values. Without costs of the card's DMA engines in its spec, the figures
/// are those of the link.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PcieOptions")]
pub struct Request {
    /// Cards to compare: names of specs, or paths of spec files.
    #[schemars(extend("example" = "nfp-6000"))]
    pub nics: Vec<String>,
    /// Tests: LAT_CMD_RD, LAT_CMD_WRRD, LAT_DMA_RD, LAT_DMA_WRRD, BW_DMA_RD, BW_DMA_WR, BW_DMA_RW.
    #[serde(default = "usual_tests")]
    #[schemars(extend("metavar" = "TEST[,TEST]"))]
    pub tests: Vec<String>,
    /// Sizes of a transfer in bytes: a list with commas, or a range. 8:2Ki is a doubling range, and 63..65 has steps of one.
    #[schemars(extend("usual" = "8:2Ki"))]
    pub sizes: Vec<u64>,
    /// Offsets from a line of the host, in bytes.
    #[serde(default = "usual_offsets")]
    pub host_offsets: Vec<u64>,
    /// Offsets from a line of the card's memory, in bytes.
    #[serde(default = "usual_offsets")]
    pub card_offsets: Vec<u64>,
    /// Windows of host memory in bytes, multiples of 64.
    #[serde(default = "usual_windows")]
    pub windows: Vec<u64>,
    /// Patterns of addresses: seq, rand.
    #[serde(default = "usual_patterns")]
    #[schemars(extend("metavar" = "PATTERN[,PATTERN]"))]
    pub patterns: Vec<String>,
    /// States of the host's cache: hwarm (written by the host), dwarm (by the card), cold, dthrash (all buffers written by the card).
    #[serde(default = "usual_caches")]
    #[schemars(extend("metavar" = "STATE[,STATE]"))]
    pub caches: Vec<String>,
    /// Number of measured transfers in a test of latency. A test of bandwidth measures 16 times this number.
    #[serde(default = "usual_samples")]
    #[schemars(range(min = 1, max = MOST_SAMPLES))]
    pub samples: u64,
    /// Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example bus.engines.count=4.
    #[serde(default)]
    pub overrides: Vec<String>,
}

/// A card with its name and its link.
pub(super) type Linked = (String, Card, PcieSpec);

impl Request {
    /// Reads a request from its JSON text.
    ///
    /// # Errors
    /// [`Error::Input`] with the invalid JSON or fields.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        nicety::from_json(text, "the request of bench pcie")
    }

    /// Returns the cards, and the points of each.
    pub(super) fn resolve(&self) -> Result<(Vec<Linked>, Vec<Point>), Error> {
        if !(1..=MOST_SAMPLES).contains(&self.samples) {
            return Err(Error::Input(format!("--samples is 1 to {MOST_SAMPLES}, not {}", self.samples)));
        }
        let mut cards = Vec::new();
        for (name, card) in load_cards(&self.nics, &self.overrides, "nfp-6000")? {
            let Some(&BusSpec::Pcie(pcie)) = card.spec.bus() else {
                return Err(Error::Input(format!(
                    "card {name} is not on PCI Express; name one with bus.kind = \"pcie\", for example nfp-6000, or write --set \
                     bus.kind=pcie"
                )));
            };
            cards.push((name, card, pcie));
        }
        let points = self.points()?;
        for (name, _, pcie) in &cards {
            let most = pcie.access.unwrap_or_else(AccessSpec::free).most;
            let wrong = |point: &&Point| {
                point.test.is_command() && (point.size > most || !point.size.is_multiple_of(4))
            };
            if let Some(point) = points.iter().find(wrong) {
                return Err(Error::Input(format!(
                    "--sizes {}: a command of {name} moves 4 to {most} B in steps of 4 ({})",
                    point.size,
                    point.test.name()
                )));
            }
            if points.iter().any(|point| point.cache != Cache::HostWarm) && pcie.root.is_none() {
                return Err(Error::Input(format!(
                    "--cache: the spec of {name} has no host cache; add [bus.memory] to it, or write \
                     --cache hwarm"
                )));
            }
        }
        Ok((cards, points))
    }

    fn points(&self) -> Result<Vec<Point>, Error> {
        let tests = named("--test", &self.tests, &Test::ALL, Test::name)?;
        let patterns = named("--pattern", &self.patterns, &Pattern::ALL, Pattern::name)?;
        let caches = named("--cache", &self.caches, &Cache::ALL, Cache::name)?;
        let numbers = [
            ("--sizes", &self.sizes),
            ("--host-offsets", &self.host_offsets),
            ("--card-offsets", &self.card_offsets),
            ("--windows", &self.windows),
        ];
        for (option, values) in numbers {
            if values.is_empty() {
                return Err(Error::Input(format!("{option}: no value; write for example {option} 64")));
            }
        }
        let first = Point {
            test: tests[0],
            pattern: patterns[0],
            cache: caches[0],
            host_offset: 0,
            card_offset: 0,
            window: 0,
            size: 0,
        };
        let points = vary(vec![first], &tests, |point, test| point.test = test);
        let points = vary(points, &patterns, |point, pattern| point.pattern = pattern);
        let points = vary(points, &caches, |point, cache| point.cache = cache);
        let points = vary(points, &self.windows, |point, window| point.window = window);
        let points = vary(points, &self.host_offsets, |point, offset| point.host_offset = offset);
        let points = vary(points, &self.card_offsets, |point, offset| point.card_offset = offset);
        let points = vary(points, &self.sizes, |point, size| point.size = size);
        points.iter().try_for_each(check)?;
        Ok(points)
    }
}

/// Returns each point with each of the values.
fn vary<T: Copy>(points: Vec<Point>, values: &[T], set: fn(&mut Point, T)) -> Vec<Point> {
    let with = |mut point: Point, value| {
        set(&mut point, value);
        point
    };
    points.iter().flat_map(|&point| values.iter().map(move |&value| with(point, value))).collect()
}

/// Checks that the transfers of a point fit their window, and their page.
fn check(point: &Point) -> Result<(), Error> {
    let &Point { host_offset, card_offset, window, size, .. } = point;
    if !window.is_multiple_of(LINE) || window == 0 || window > MOST_WINDOW {
        return Err(Error::Input(format!(
            "--windows {window}: write a multiple of {LINE} up to {MOST_WINDOW} bytes"
        )));
    }
    if card_offset > PAGE {
        return Err(Error::Input(format!("--card-offsets {card_offset}: write 0 to {PAGE} bytes")));
    }
    let most = window.min(PAGE);
    if size == 0 || size.saturating_add(host_offset) > most {
        return Err(Error::Input(format!(
            "--sizes {size}: with offset {host_offset}, a transfer has at least 1 B and ends within {most} \
             B (the window or a page)"
        )));
    }
    Ok(())
}

fn named<T: Copy>(
    option: &str,
    names: &[String],
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<Vec<T>, Error> {
    if names.is_empty() {
        return Err(Error::Input(format!("{option}: no name; write for example {option} {}", name(all[0]))));
    }
    let find = |text: &String| {
        let found = all.iter().copied().find(|&value| name(value).eq_ignore_ascii_case(text));
        found.ok_or_else(|| {
            let known: Vec<_> = all.iter().map(|&value| name(value)).collect();
            Error::Input(format!("{option} {text}: write one of {}", known.join(", ")))
        })
    };
    names.iter().map(find).collect()
}
