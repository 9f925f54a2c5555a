//! Captures: the packets of a run's links, in a pcapng file.
//!
//! Each direction of a link that carried anything is an interface, and so is each node that dropped any packets, and its packets have the time at which their first byte went
//! out: in nanoseconds, and in a comment to the picosecond. Several runs may go into one file, each with interfaces of its own,
//! one behind the other. Packets of a run are in the order of their times, and of those at the same instant that of the
//! first interface is first, so a seed makes one file, to the byte.
//!
//! - `header.rs`: the bytes of a packet
//! - `pcapng.rs`: the blocks of the file

mod header;
mod pcapng;

use crate::{Error, VERSION};
use header::{bytes_of, link_type};
use nicety_fabric::{Captured, CapturedLink, Cause, Fate, Pause};
use nicety_nic::LinkLayer;
use nicety_types::Time;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Memory for the packets of a run, in bytes, unless said otherwise.
const MEMORY: u64 = 1 << 30;
/// Most bytes of a packet in a file, which is the most that tools read.
const LONGEST: usize = 1 << 18;

/// A file to which the packets of runs are written, one run after the other. Clones write to the same file.
#[derive(Clone, Debug)]
pub struct Capture {
    file: Arc<Mutex<Appended>>,
    memory: u64,
    label: String,
}

/// A file, once there is something in it.
#[derive(Debug)]
struct Appended {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    interfaces: u32,
    left_out: u64,
    packets: u64,
}

/// A run whose packets are written.
pub struct CapturedRun<'r> {
    /// A text for the descriptions of its interfaces: cards, network, seed.
    pub description: String,
    /// The format of its packets.
    pub layer: LinkLayer,
    /// The time of its last event.
    pub end: Time,
    /// The packets of its links.
    pub links: &'r [CapturedLink],
}

impl Capture {
    /// A capture in this file, which the first run makes, or makes anew.
    pub fn to(path: impl AsRef<Path>) -> Capture {
        let path = path.as_ref().to_owned();
        let file =
            Arc::new(Mutex::new(Appended { path, file: None, interfaces: 0, left_out: 0, packets: 0 }));
        Capture { file, memory: MEMORY, label: String::new() }
    }

    /// The same file, for runs whose packets take at most so many bytes of memory, in equal shares of all nodes; the
    /// packets that do not fit are counted. Otherwise 1 GiB.
    #[must_use]
    pub fn within(self, memory: u64) -> Capture {
        Capture { memory, ..self }
    }

    /// The same file, for a run whose interfaces say this of it, too.
    #[must_use]
    pub fn labelled(&self, label: impl Into<String>) -> Capture {
        Capture { label: label.into(), ..self.clone() }
    }

    /// Memory for the packets of a run, in bytes.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// How many packets did not fit so far, in all runs.
    pub fn left_out(&self) -> u64 {
        self.lock().left_out
    }

    /// How many packets were on a link so far, in all runs.
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
        if self.file.is_none() {
            let mut file = BufWriter::new(File::create(&self.path)?);
            file.write_all(&pcapng::section(&format!("nicety {VERSION}")))?;
            self.file = Some(file);
        }
        let file = self.file.as_mut().expect("it has been opened");
        let CapturedRun { layer, end, links, .. } = *run;
        for (link, name) in links.iter().zip(names(links)) {
            debug_assert!(!link.is_empty());
            file.write_all(&pcapng::interface(link_type(layer), LONGEST as u32, &name, description))?;
        }
        let numbers = |(link, of): (usize, &CapturedLink)| {
            (0..of.len()).map(|number| (of.time(number), link as u32, number)).collect::<Vec<_>>()
        };
        let mut packets: Vec<(Time, u32, usize)> = links.iter().enumerate().flat_map(numbers).collect();
        packets.sort_unstable();
        for (time, link, number) in packets {
            let packet = links[link as usize].packet(number);
            let (bytes, length) = bytes_of(layer, &packet);
            let bytes = &bytes[..bytes.len().min(LONGEST)];
            let interface = self.interfaces + link;
            let comment = comment(&packet);
            file.write_all(&pcapng::packet(interface, time.ps() / 1000, length, bytes, &comment))?;
        }
        for (interface, link) in (self.interfaces..).zip(links) {
            file.write_all(&pcapng::statistics(interface, end.ps() / 1000, link.packets(), link.left_out))?;
        }
        self.interfaces += links.len() as u32;
        file.flush()
    }
}

/// The links' names, each different: several may be between the same two nodes.
fn names(links: &[CapturedLink]) -> Vec<String> {
    let mut known = BTreeMap::new();
    let name = |link: &CapturedLink| {
        let name = match link.dropped {
            true => format!("dropped by {}", link.from),
            false => format!("{} -> {}", link.from, link.to),
        };
        let times = known.entry(name.clone()).and_modify(|times| *times += 1).or_insert(1);
        if *times == 1 { name } else { format!("{name} ({times})") }
    };
    links.iter().map(name).collect()
}

/// A packet's exact time, and what became of it.
fn comment(packet: &Captured<'_>) -> String {
    let Fate { lost, dropped, damaged, again, late } = packet.fate;
    let mut text = format!("{} ps", packet.time.ps());
    for (word, is) in [("lost", lost), ("damaged", damaged), ("again", again)] {
        if is {
            text += ", ";
            text += word;
        }
    }
    match dropped {
        Some(Cause::QueueFull(port)) => text += &format!(", dropped: no room before port {port}"),
        Some(Cause::NoHeadroom(port)) => text += &format!(", dropped: no headroom at port {port}"),
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
