//! Read-ahead of traffic: a thread reads or makes frames while the run uses earlier frames.

use crate::error::TrafficError;
use crate::stream::{DueTime, Stream};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// Maximum number of frames in a group. The two threads exchange groups of frames.
const FRAMES: usize = 256;
/// Maximum number of groups that the thread reads ahead of the run.
const GROUPS: usize = 4;

/// A group of consecutive frames.
#[derive(Default)]
struct Group {
    bytes: Vec<u8>,
    /// The end of each frame in `bytes`, and its due time.
    frames: Vec<(usize, DueTime)>,
    /// Set if the traffic ends after these frames, either normally or with an error.
    end: Option<Result<(), TrafficError>>,
}

/// Iterates over the frames of a [`Stream`]. A background thread reads the frames ahead of their use.
pub struct Ahead {
    groups: Receiver<Group>,
    /// Returns used groups to the thread, which uses their memory again.
    used: Sender<Group>,
    group: Group,
    next: usize,
}

impl Stream {
    /// Starts a thread that reads this stream ahead. Returns the same frames. The thread ends when the returned value
    /// is dropped.
    ///
    /// # Errors
    /// When the system cannot start a thread.
    pub fn ahead(self) -> Result<Ahead, TrafficError> {
        let (ready, groups) = sync_channel(GROUPS);
        let (used, back) = channel();
        let reads = move || read(self, &ready, &back);
        let started = thread::Builder::new().name("traffic".to_owned()).spawn(reads);
        started.map_err(|error| {
            TrafficError::new(format!("cannot start the thread that reads traffic ahead: {error}"))
        })?;
        Ok(Ahead { groups, used, group: Group::default(), next: 0 })
    }
}

/// Fills groups until the traffic ends or the receiver is gone.
fn read(mut stream: Stream, ready: &SyncSender<Group>, back: &Receiver<Group>) {
    let mut frame = Vec::new();
    loop {
        let mut group = back.try_recv().unwrap_or_default();
        group.bytes.clear();
        group.frames.clear();
        while group.frames.len() < FRAMES {
            match stream.next_frame(&mut frame) {
                Ok(Some(due)) => {
                    group.bytes.extend_from_slice(&frame);
                    group.frames.push((group.bytes.len(), due));
                }
                Ok(None) => group.end = Some(Ok(())),
                Err(error) => group.end = Some(Err(error)),
            }
            if group.end.is_some() {
                break;
            }
        }
        let ends = group.end.is_some();
        if ready.send(group).is_err() || ends {
            return;
        }
    }
}

impl Ahead {
    /// Returns the next frame, as [`Stream::next_frame`] does.
    ///
    /// # Errors
    /// Those of [`Stream::next_frame`].
    pub fn next_frame(&mut self, frame: &mut Vec<u8>) -> Result<Option<DueTime>, TrafficError> {
        while self.next == self.group.frames.len() {
            if let Some(end) = &self.group.end {
                return end.clone().map(|()| None);
            }
            let group = self
                .groups
                .recv()
                .map_err(|_| TrafficError::new("the thread that reads traffic has failed".to_owned()))?;
            // An error means that the thread has ended, which is allowed.
            let _ = self.used.send(std::mem::replace(&mut self.group, group));
            self.next = 0;
        }
        let begin = self.next.checked_sub(1).map_or(0, |before| self.group.frames[before].0);
        let (end, due) = self.group.frames[self.next];
        self.next += 1;
        frame.clear();
        frame.extend_from_slice(&self.group.bytes[begin..end]);
        Ok(Some(due))
    }
}

#[cfg(test)]
mod tests {
    use crate::{DueTime, Traffic, TrafficError};

    type Frames = Vec<(Vec<u8>, DueTime)>;

    fn all(
        mut next: impl FnMut(&mut Vec<u8>) -> Result<Option<DueTime>, TrafficError>,
    ) -> (Frames, Option<TrafficError>) {
        let (mut frame, mut frames) = (Vec::new(), Vec::new());
        loop {
            match next(&mut frame) {
                Ok(Some(due)) => frames.push((frame.clone(), due)),
                Ok(None) => return (frames, None),
                Err(error) => return (frames, Some(error)),
            }
        }
    }

    #[test]
    fn frames_are_those_of_the_stream() {
        for packets in [1, 255, 256, 257, 512, 3000] {
            let text =
                format!("udp src=10.0.0.0/8 zipf=1.1 imix rate=1Mpps arrivals=poisson packets={packets}");
            let traffic = Traffic::parse(&text).unwrap();
            let mut stream = traffic.open(7, 1518).unwrap();
            let mut ahead = traffic.open(7, 1518).unwrap().ahead().unwrap();
            let (frames, error) = all(|frame| ahead.next_frame(frame));
            assert_eq!(frames.len(), packets);
            assert_eq!((frames, error), all(|frame| stream.next_frame(frame)));
            // No frame follows the end.
            assert_eq!(ahead.next_frame(&mut Vec::new()), Ok(None));
        }
    }

    #[test]
    fn an_error_comes_behind_the_frames_before_it() {
        // A pcap header, packets of 20 bytes, and a packet of 3 bytes with a stated length of 20.
        let mut capture = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 1].map(u32::to_le_bytes).concat();
        for bytes in [[0; 20].as_slice(); 300].into_iter().chain([[0; 3].as_slice()]) {
            capture.extend([0, 0, 20, 20].map(u32::to_le_bytes).concat());
            capture.extend(bytes);
        }
        let path = std::env::temp_dir().join(format!("nicety-ahead-{}.pcap", std::process::id()));
        std::fs::write(&path, capture).unwrap();
        let traffic = Traffic::parse(&format!("capture={} rate=wire", path.display())).unwrap();
        let mut ahead = traffic.open(1, 1518).unwrap().ahead().unwrap();
        let (frames, error) = all(|frame| ahead.next_frame(frame));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(frames.len(), 300);
        let text = error.expect("it is cut short").to_string();
        assert!(text.contains("packet 301"), "{text}");
    }

    #[test]
    fn nobody_has_to_take_them_all() {
        let traffic = Traffic::parse("udp size=64 packets=1M").unwrap();
        let mut ahead = traffic.open(1, 1518).unwrap().ahead().unwrap();
        assert!(ahead.next_frame(&mut Vec::new()).unwrap().is_some());
    }
}
