//! Captures: the packets of a run's links, in a pcapng file.
//!
//! The file has one interface for each direction of a link with traffic, and one for each node that dropped packets. The
//! timestamp of a packet is the virtual time of its first byte on the link, in nanoseconds. The packet's comment gives that time
//! in picoseconds.
//!
//! Several runs may go into one file. Each has its own interfaces and its own TCP connections. From the second run on, the
//! interface names give the run. The packets of a run are sorted by time, then by interface. So the same seed gives the same
//! file, byte for byte.
//!
//! - `header.rs`: the bytes of a packet
//! - `connections.rs`: ports of connections, run by run
//! - `pcapng.rs`: the blocks of the file
//! - `whole.rs`: a file that contains complete runs only

mod connections;
mod header;
mod pcapng;
mod whole;

use crate::{Error, VERSION};
use connections::{Connections, OfRun};
use header::{bytes_of, link_type};
use nicety_fabric::{Captured, CapturedLink, CardPort, Cause, Disposition, Pause, Place};
use nicety_nic_core::LinkLayer;
use nicety_types::Time;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use whole::Whole;

/// Default memory for the packets of a run, in bytes.
const MEMORY: u64 = 1 << 30;
/// Maximum length of a packet in a file, in bytes. Capture tools do not read longer packets.
const LONGEST: usize = 1 << 18;

/// A file for the packets of runs, one run after the other. Clones write to the same file.
#[derive(Clone, Debug)]
pub struct Capture {
    file: Arc<Mutex<Appended>>,
    memory: u64,
    label: String,
}

/// A capture file and the state of its contents.
#[derive(Debug)]
struct Appended {
    path: PathBuf,
    file: Option<Whole>,
    /// Number of runs with packets in the file.
    runs: u32,
    interfaces: u32,
    connections: Connections,
    left_out: u64,
    packets: u64,
}

/// A run to write to a capture.
pub struct CapturedRun<'r> {
    /// The description of this run for its interfaces: cards, network, seed.
    pub description: String,
    /// The link layer of the run's packets.
    pub layer: LinkLayer,
    /// The time of the run's last event.
    pub end: Time,
    /// The packets of the run's links.
    pub links: &'r [CapturedLink],
}

impl Capture {
    /// Returns a capture in this file. The first run creates or overwrites the file.
    pub fn to(path: impl AsRef<Path>) -> Capture {
        let appended = Appended {
            path: path.as_ref().to_owned(),
            file: None,
            runs: 0,
            interfaces: 0,
            connections: Connections::default(),
            left_out: 0,
            packets: 0,
        };
        Capture { file: Arc::new(Mutex::new(appended)), memory: MEMORY, label: String::new() }
    }

    /// Sets the memory for the packets of a run, in bytes. The default is 1 GiB. Each node has an equal share. Packets
    /// that do not fit into this memory are counted, but not written.
    #[must_use]
    pub fn within(self, memory: u64) -> Capture {
        Capture { memory, ..self }
    }

    /// Returns a capture to the same file with a label. The label is in the interface descriptions of all runs that are
    /// written through the returned capture.
    #[must_use]
    pub fn labelled(&self, label: impl Into<String>) -> Capture {
        Capture { label: label.into(), ..self.clone() }
    }

    /// Memory for the packets of a run, in bytes.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// The number of packets that did not fit the memory, in all runs so far.
    pub fn left_out(&self) -> u64 {
        self.lock().left_out
    }

    /// The number of packets in all runs so far.
    pub fn packets(&self) -> u64 {
        self.lock().packets
    }

    /// Writes the packets of a run.
    ///
    /// # Errors
    /// [`Error::Input`] when the file cannot be written.
    pub fn append(&self, run: &CapturedRun<'_>) -> Result<(), Error> {
        let mut appended = self.lock();
        appended.left_out += run.links.iter().map(|link| link.left_out).sum::<u64>();
        appended.packets += run.links.iter().map(CapturedLink::packets).sum::<u64>();
        let description = match self.label.as_str() {
            "" => run.description.clone(),
            label => format!("{label}; {}", run.description),
        };
        appended
            .append(run, &description)
            .map_err(|error| Error::Input(format!("{}: cannot write it ({error})", appended.path.display())))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Appended> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Appended {
    fn append(&mut self, run: &CapturedRun<'_>, description: &str) -> std::io::Result<()> {
        let CapturedRun { layer, end, links, .. } = *run;
        let (number, first) = (self.runs + u32::from(!links.is_empty()), self.interfaces);
        let (packets, mut of_run) = (in_order(links), OfRun::default());
        let packet = |(link, number): (u32, usize)| links[link as usize].packet(number);
        if number > 1 {
            // Interfaces come before packets, and their descriptions give the ports.
            for (_, link, number) in &packets {
                frame_of(layer, &packet((*link, *number)), (&mut self.connections, &mut of_run));
            }
        }
        let description = match of_run.described() {
            Some(ports) => format!("{description}; {ports}"),
            None => description.to_owned(),
        };
        let begins = self.file.is_none();
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(Whole::create(&self.path)?),
        };
        let done = file.append(|file| {
            if begins {
                file.write_all(&pcapng::section(&format!("nicety {VERSION}")))?;
            }
            for (link, name) in links.iter().zip(names(links, number)) {
                debug_assert!(!link.is_empty());
                file.write_all(&pcapng::interface(link_type(layer), LONGEST as u32, &name, &description))?;
            }
            for (time, link, number) in packets {
                let packet = packet((link, number));
                let (bytes, length) = frame_of(layer, &packet, (&mut self.connections, &mut of_run));
                let (ns, comment) = (time.ps() / 1000, comment(&packet, links[link as usize].port));
                file.write_all(&pcapng::packet(first + link, ns, length, &bytes, &comment))?;
            }
            for (interface, link) in (first..).zip(links) {
                let (packets, left_out) = (link.packets(), link.left_out);
                file.write_all(&pcapng::statistics(interface, end.ps() / 1000, packets, left_out))?;
            }
            Ok(())
        });
        if done.is_err() && begins {
            self.file = None;
        }
        done?;
        self.connections.end(of_run);
        self.runs = number;
        self.interfaces += links.len() as u32;
        Ok(())
    }
}

/// Returns the packets of all links, sorted by time. Each item is the time, the index of the link, and the packet's index on that
/// link.
fn in_order(links: &[CapturedLink]) -> Vec<(Time, u32, usize)> {
    let numbers = |(link, of): (usize, &CapturedLink)| {
        (0..of.len()).map(|number| (of.time(number), link as u32, number)).collect::<Vec<_>>()
    };
    let mut packets: Vec<_> = links.iter().enumerate().flat_map(numbers).collect();
    packets.sort_unstable();
    packets
}

/// Returns a packet's bytes in the file, and the length of the whole packet.
fn frame_of(
    layer: LinkLayer,
    packet: &Captured<'_>,
    (connections, run): (&mut Connections, &mut OfRun),
) -> (Vec<u8>, u64) {
    let (mut bytes, length) = bytes_of(layer, packet);
    bytes.truncate(LONGEST);
    if matches!(layer, LinkLayer::Ethernet { .. }) {
        connections.place(run, &mut bytes);
    }
    (bytes, length)
}

/// Returns unique names for the links of a run, even if several links connect two nodes. The names of later runs end with the
/// number of the run.
fn names(links: &[CapturedLink], run: u32) -> Vec<String> {
    let mut known = BTreeMap::new();
    let of_run = if run > 1 { format!(", run {run}") } else { String::new() };
    let name = |link: &CapturedLink| {
        let end = |place: Place| match link.port {
            Some(port) if port.card == place => format!("{place} port {}", port.number),
            _ => place.to_string(),
        };
        let name = match link.dropped {
            true => format!("dropped by {}", end(link.from)),
            false => format!("{} -> {}", end(link.from), end(link.to)),
        };
        let times = known.entry(name.clone()).and_modify(|times| *times += 1).or_insert(1);
        if *times == 1 { format!("{name}{of_run}") } else { format!("{name} ({times}){of_run}") }
    };
    links.iter().map(name).collect()
}

/// Returns the comment of a packet: its time in picoseconds, and its disposition.
fn comment(packet: &Captured<'_>, of: Option<CardPort>) -> String {
    let Disposition { lost, dropped, damaged, again, late } = packet.disposition;
    let mut text = format!("{} ps", packet.time.ps());
    for (word, is) in [("lost", lost), ("damaged", damaged), ("again", again)] {
        if is {
            text += ", ";
            text += word;
        }
    }
    match dropped {
        Some(Cause::QueueFull(port)) => {
            // The text has the card's own number of the port.
            let port = of.map_or(port, |of| of.number);
            text += &format!(", dropped: no room before port {port}");
        }
        Some(Cause::NoHeadroom(port)) => {
            let port = of.map_or(port, |of| of.number);
            text += &format!(", dropped: no headroom at port {port}");
        }
        Some(_) => text += ", dropped: the card's buffer is full",
        None => {}
    }
    match packet.pause {
        Some(Pause::For(quanta)) => text += &format!(", pause for {quanta} quanta"),
        Some(Pause::UntilResumed) => text += ", pause until it is ended",
        Some(Pause::Resume) => text += ", end of the pause",
        None => {}
    }
    if !late.is_zero() {
        text += &format!(", late by {} ps", late.ps());
    }
    text
}
