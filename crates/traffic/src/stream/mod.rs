//! Traffic as a stream. It returns one frame at a time, with its due time.

#[cfg(test)]
mod tests;

use crate::arrivals::Clock;
use crate::capture::{self, Capture, Packet, link_name};
use crate::error::TrafficError;
use crate::expression::{Addresses, Cut, Rate, Sizes, Source, Template, Traffic};
use crate::form::Form;
use crate::template::Maker;
use std::io::Read;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// The LINKTYPE of Ethernet.
const ETHERNET: u32 = 1;
/// Bytes of an Ethernet header.
const HEADER: usize = 14;
/// Maximum time, in picoseconds, by which a packet's recorded time may be before that of an earlier packet. In captures
/// of several queues or interfaces, packets are slightly out of order.
const DISORDER: i128 = 1_000_000_000;
/// Time, in picoseconds, between the latest allowed due time and the end of simulated time, 2^64 ps. These ten hours
/// leave room for the time of a run before and after its frames, and for sums of times.
const MARGIN: u64 = u64::MAX >> 9;

/// The due time of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueTime {
    /// The frame is due as soon as the wire is free.
    Wire,
    /// The frame is due at a time after the first frame. Both values are in picoseconds.
    At {
        /// The due time, after the first frame.
        at: u64,
        /// The duration of the traffic up to and including this frame. With a rate, it is the time that these frames
        /// take at this rate. With recorded times, it includes a mean gap after this frame.
        lasts: u64,
    },
}

/// The frames of traffic, one after another.
pub struct Stream {
    frames: Frames,
    clock: Option<Clock>,
    left: Option<u64>,
    form: Form,
    /// Maximum length of a packet in bytes.
    largest: u64,
    /// The latest allowed due time, in picoseconds after the first frame.
    latest: u64,
    /// Number of frames so far.
    frames_before: u64,
}

enum Frames {
    Made(Box<Maker>),
    Captured(Box<Captured>),
}

/// Frames of a capture.
struct Captured {
    path: PathBuf,
    looped: bool,
    cut: Cut,
    recorded: bool,
    capture: Capture<Box<dyn Read + Send>>,
    times: Times,
}

/// The reason why a packet's recorded time cannot be its due time.
enum InvalidTime {
    /// The packet was recorded too long before the latest packet. The value is this time in picoseconds.
    Earlier(i128),
    /// The packet would be due too late for a run. The value is the due time in picoseconds after the first packet.
    Beyond(i128),
}

/// Converts recorded times to due times.
#[derive(Default)]
struct Times {
    /// The time of the capture's first packet.
    first: Option<i128>,
    /// The due time of the first packet in the current pass over the capture, and the latest due time.
    begun: u64,
    latest: u64,
    /// Number of packets in the current pass, and in all passes.
    packets: u64,
    all: u64,
}

impl Times {
    /// Returns the due time of the next packet, which was recorded at `time`, and the duration of the packets up to it.
    /// The due time is never before that of the previous packet.
    ///
    /// # Errors
    /// When the packet was recorded more than [`DISORDER`] before the latest packet, or would be due after `latest`.
    fn due(&mut self, time: i128, latest: u64) -> Result<DueTime, InvalidTime> {
        let first = *self.first.get_or_insert(time);
        let before = first + i128::from(self.latest.saturating_sub(self.begun));
        if time + DISORDER < before {
            return Err(InvalidTime::Earlier(before - time));
        }
        let since = (time - first).max(0);
        let due = u64::try_from(since).ok().and_then(|since| self.begun.checked_add(since));
        let due =
            due.filter(|due| *due <= latest).ok_or(InvalidTime::Beyond(since + i128::from(self.begun)))?;
        self.latest = self.latest.max(due);
        self.packets += 1;
        self.all += 1;
        let gap = self.latest / (self.all.max(2) - 1);
        Ok(DueTime::At { at: self.latest, lasts: self.latest.saturating_add(gap).min(latest) })
    }

    /// Begins another pass over the capture, a mean gap after the last packet of the previous pass.
    fn again(&mut self) {
        let gap = (self.latest - self.begun) / (self.packets.max(2) - 1);
        (self.begun, self.packets) = (self.latest.saturating_add(gap), 0);
    }
}

impl Traffic {
    /// Returns the expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Sets the addresses of frames that a template makes, unless the expression gives addresses. `src` and `dst` have
    /// an address for each version of IP.
    #[must_use]
    pub fn addressed(mut self, src: (Ipv4Addr, Ipv6Addr), dst: (Ipv4Addr, Ipv6Addr)) -> Traffic {
        if let Source::Template(template) = &mut self.source {
            let ip6 = template.src.first.is_ipv6();
            let one = |(four, six): (Ipv4Addr, Ipv6Addr)| Addresses {
                first: if ip6 { six.into() } else { four.into() },
                bits: 0,
            };
            if !self.says.0 {
                template.src = one(src);
            }
            if !self.says.1 {
                template.dst = one(dst);
            }
        }
        self
    }

    /// Sets the form of packets. The sizes and rates of the expression then apply to packets in this form.
    #[must_use]
    pub fn formed(mut self, form: Form) -> Traffic {
        if let (Source::Template(template), Form::Packet, true) = (&mut self.source, form, self.is_imix) {
            let headers = template.protocol.headers(template.is_ip6()) - form.in_front();
            template.sizes = Sizes::imix_packets().at_least(headers);
        }
        self.form = form;
        self
    }

    /// Opens the traffic for a card with packets of at most `largest` bytes. The packets are frames without their check
    /// sequence, unless [`Traffic::formed`] has set another form.
    ///
    /// # Errors
    /// When a capture is invalid or unreadable, or a size is above `largest`.
    pub fn open(&self, seed: u64, largest: u64) -> Result<Stream, TrafficError> {
        let largest = largest.min(self.form.most());
        let frames = match &self.source {
            Source::Template(template) => {
                let (least, most) = template.sizes.extent();
                let headers = template.protocol.headers(template.is_ip6()) - self.form.in_front();
                let what = match self.form {
                    Form::Frame => "frames",
                    Form::Packet => "packets of IP",
                };
                let wrong = |message: String| TrafficError {
                    place: self.size_at.clone().map(|at| (self.text.clone(), at)),
                    message,
                };
                if least < headers {
                    return Err(wrong(format!(
                        "{what} of {least} bytes, but their headers alone have {headers}; write a size of \
                         {headers} or more"
                    )));
                }
                if most > largest {
                    return Err(wrong(format!(
                        "{what} of {most} bytes, but a packet of the card carries at most {largest}; write \
                         a size up to {largest}"
                    )));
                }
                // The template makes frames, which have more bytes than packets.
                let front = self.form.in_front();
                let sizes = template.sizes.clone().plus(front);
                Frames::Made(Box::new(Maker::new(Template { sizes, ..template.clone() }, most + front, seed)))
            }
            Source::Capture { path, looped, cut } => Frames::Captured(Box::new(Captured {
                path: path.clone(),
                looped: *looped,
                cut: *cut,
                recorded: self.rate == Rate::Recorded,
                capture: open(path)?,
                times: Times::default(),
            })),
        };
        let bytes = match &self.source {
            Source::Template(template) => Some(template.sizes.mean()),
            Source::Capture { .. } => None,
        };
        let clock = Clock::new(self.rate, self.arrivals, bytes, seed);
        let latest = (u64::MAX - MARGIN).saturating_sub(self.start_ps.unwrap_or(0));
        Ok(Stream { frames, clock, left: self.packets, form: self.form, largest, latest, frames_before: 0 })
    }
}

fn open(path: &Path) -> Result<Capture<Box<dyn Read + Send>>, TrafficError> {
    let place = path.display();
    let file = capture::open(path).map_err(|error| {
        let text = error.to_string();
        TrafficError::new(format!("{place}: {}", text.split(" (os error").next().unwrap_or(&text)))
    })?;
    Capture::new(file).map_err(|damage| TrafficError::new(format!("{place}: {}", damage.what)))
}

impl Stream {
    /// Writes the next frame to `frame`, and returns the frame's due time. `None` after the last frame.
    ///
    /// # Errors
    /// When the capture is damaged or too short. When a packet is not an Ethernet frame, is too long or incomplete, or
    /// has an impossible time. When a frame is due after the end of simulated time. The text of the error names the
    /// packet.
    pub fn next_frame(&mut self, frame: &mut Vec<u8>) -> Result<Option<DueTime>, TrafficError> {
        if self.left == Some(0) {
            return Ok(None);
        }
        let recorded = match &mut self.frames {
            Frames::Made(maker) => {
                maker.make(frame);
                self.form.take(frame);
                None
            }
            Frames::Captured(captured) => {
                match (captured.next(frame, self.form, (self.largest, self.latest))?, self.left) {
                    (Some(due), _) => due,
                    (None, None) => return Ok(None),
                    (None, Some(left)) => return Err(captured.too_few(left)),
                }
            }
        };
        self.left = self.left.map(|left| left - 1);
        self.frames_before += 1;
        Ok(Some(match (&mut self.clock, recorded) {
            (Some(clock), _) => {
                let due = clock.due(frame.len() as u64).filter(|at| *at <= self.latest);
                let at = due.ok_or_else(|| {
                    TrafficError::new(format!(
                        "frame {} is due more than 2^64 ps (213 days) after the first one, but simulated \
                         time ends there; write a higher rate, or fewer packets",
                        self.frames_before
                    ))
                })?;
                DueTime::At { at, lasts: clock.lasts().min(self.latest) }
            }
            (None, Some(due)) => due,
            (None, None) => DueTime::Wire,
        }))
    }
}

impl Captured {
    /// Returns the error for a capture that ends `left` packets before the requested number of packets.
    fn too_few(&self, left: u64) -> TrafficError {
        let (place, packets) = (self.path.display(), self.capture.packets());
        let asked = packets + left;
        TrafficError::new(format!(
            "{place}: the capture has {packets} packets, but packets={asked} requests more; write loop \
             packets={asked}, which repeats the capture, or leave packets out"
        ))
    }

    /// Reads the next frame. Returns `None` after the last frame. Otherwise returns the due time, if recorded times are
    /// used.
    fn next(
        &mut self,
        frame: &mut Vec<u8>,
        form: Form,
        (largest, latest): (u64, u64),
    ) -> Result<Option<Option<DueTime>>, TrafficError> {
        loop {
            let place = self.path.display();
            let number = self.capture.packets() + 1;
            match self.capture.next_packet() {
                Some(Ok(packet)) => {
                    let wrong = |what: String| TrafficError::new(format!("{place}: packet {number} {what}"));
                    copy(&packet, self.cut, form, largest, frame).map_err(wrong)?;
                    if !self.recorded {
                        return Ok(Some(None));
                    }
                    let time = packet.time.ok_or_else(|| {
                        wrong("has no time; write rate=wire, rate=10Gbps or rate=5Mpps".into())
                    })?;
                    return match self.times.due(time, latest) {
                        Ok(due) => Ok(Some(Some(due))),
                        Err(InvalidTime::Earlier(earlier)) => Err(wrong(format!(
                            "was recorded {} s before a preceding packet; sort the capture, as by \
                             reordercap of Wireshark, or write rate=wire, rate=10Gbps or rate=5Mpps",
                            earlier as f64 / 1e12
                        ))),
                        Err(InvalidTime::Beyond(since)) => Err(wrong(format!(
                            "is due {:.0} s after the first one, but simulated time ends after 2^64 ps (213 \
                             days); cut the capture, as by editcap -A and -B of Wireshark, or write \
                             rate=wire, rate=10Gbps or rate=5Mpps",
                            since as f64 / 1e12
                        ))),
                    };
                }
                Some(Err(damage)) => return Err(TrafficError::new(format!("{place}: {damage}"))),
                None if number == 1 => {
                    return Err(TrafficError::new(format!("{place}: the capture has no packets")));
                }
                None if !self.looped => return Ok(None),
                None => {
                    self.capture = open(&self.path)?;
                    self.times.again();
                }
            }
        }
    }
}

/// Copies the frame of a packet to `frame`, in this form. The error text is the predicate of a sentence about the
/// packet.
fn copy(packet: &Packet<'_>, cut: Cut, form: Form, largest: u64, frame: &mut Vec<u8>) -> Result<(), String> {
    let Packet { link, bytes, length, fault, .. } = *packet;
    if link != ETHERNET {
        let name = link_name(link).map_or(String::new(), |name| format!(" ({name})"));
        return Err(format!(
            "has link type {link}{name}, but only frames of Ethernet, link type 1, can be sent; record the \
             capture on an interface of Ethernet, as with tcpdump -i eth0 and not -i any"
        ));
    }
    if let Some(fault) = fault {
        return Err(format!(
            "had an error on its link ({fault}, by its flags), and cards drop such frames; remove it from \
             the capture"
        ));
    }
    let front = form.in_front_of(bytes) as u64;
    if length > largest + front {
        let in_front = if front > 0 { format!(", {front} of them before its packet") } else { String::new() };
        return Err(format!(
            "has {length} bytes{in_front}, but a packet of the card carries at most {largest}; give the \
             card longer packets (frames.mtu, or packet.payload), or remove it from the capture"
        ));
    }
    let captured = bytes.len() as u64;
    if captured < length && cut == Cut::Refuse {
        return Err(format!(
            "was captured up to byte {captured} of {length}; write cut=pad to fill it up with zeros"
        ));
    }
    if length < HEADER as u64 {
        return Err(format!(
            "has {length} bytes, but the header of Ethernet alone has {HEADER}; remove it from the capture"
        ));
    }
    frame.clear();
    frame.extend_from_slice(bytes);
    frame.resize(length as usize, 0);
    form.take(frame);
    match frame.is_empty() {
        true => {
            Err("has only its header of Ethernet, but the card's packets begin after this header; remove it \
                 from the capture"
                .into())
        }
        false => Ok(()),
    }
}
