//! The output of processes and of their launcher.
//!
//! A launcher that ends processes may lose their earlier output. MPICH's launcher loses it in one of five aborts. So processes
//! under MPICH write into pipes of the simulator (`shim/words.c`), which reads them to their ends. The output of the launcher
//! itself also goes through pipes. Its banner about a failed process is held back until the end of the run.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The rule with which Hydra's banner starts, after an empty line, and the second line of the banner.
const RULE: &[u8] = b"=====================================================";
const BANNER: &[u8] = b"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES";
/// Real time of a wait for the end of a pipe, after all processes have ended.
const DRAINS: Duration = Duration::from_secs(2);
/// Real time for which a possible start of a banner is held back.
const UNDECIDED_MS: i32 = 100;
/// The capacity of a pipe in bytes.
const PIPE_BYTES: i32 = 1 << 20;

/// The pipes of a run, and the threads that read them.
pub(crate) struct Words {
    /// The write ends of the pipes for stdout and stderr. Processes open them by their paths.
    ends: Vec<PipeWriter>,
    path: String,
    /// The channel by which each thread sends the bytes that it held back, once its pipe has ended.
    tell: Sender<Vec<u8>>,
    ended: Receiver<Vec<u8>>,
    readers: usize,
}

/// A standard stream of this process, written without a buffer.
#[derive(Clone, Copy)]
struct Stream(i32);

impl Stream {
    /// Writes all bytes. Returns whether that succeeded. If the reader is closed, the output is lost, as without a simulation.
    fn write(self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            // SAFETY: the slice is alive; a descriptor that is closed is an error.
            let written = unsafe { libc::write(self.0, bytes.as_ptr().cast(), bytes.len()) };
            match usize::try_from(written) {
                Ok(written) => bytes = &bytes[written..],
                Err(_) => match io::Error::last_os_error().kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => {
                        is_ready(self.0, libc::POLLOUT, -1);
                    }
                    _ => return false,
                },
            }
        }
        true
    }
}

/// Returns whether a file is ready within `limit_ms` milliseconds. A negative value means no limit.
fn is_ready(file: i32, events: i16, limit_ms: i32) -> bool {
    let mut look = libc::pollfd { fd: file, events, revents: 0 };
    // SAFETY: one entry, which lives as long as the call.
    unsafe { libc::poll(&raw mut look, 1, limit_ms) != 0 }
}

impl Words {
    /// Creates the pipes for the processes of a program.
    pub(crate) fn new(to_stderr: bool) -> io::Result<Words> {
        let (tell, ended) = channel();
        let (mut ends, mut paths) = (Vec::new(), Vec::new());
        for into in streams(to_stderr) {
            let (reader, writer) = io::pipe()?;
            // SAFETY: the call takes only numbers. If it fails, the pipe keeps its capacity.
            unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES) };
            paths.push(format!("/proc/{}/fd/{}", std::process::id(), writer.as_raw_fd()));
            ends.push(writer);
            forward(reader, into, false, tell.clone());
        }
        let readers = ends.len();
        Ok(Words { ends, path: paths.join(":"), tell, ended, readers })
    }

    /// Returns the value of the environment variable by which processes find their pipes.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Makes a launcher write its output into pipes.
    pub(crate) fn of_launcher(&mut self, command: &mut Command, to_stderr: bool) -> io::Result<()> {
        let [out, err] = streams(to_stderr);
        for (into, is_out) in [(out, true), (err, false)] {
            let (reader, writer) = io::pipe()?;
            let writer = Stdio::from(OwnedFd::from(writer));
            if is_out {
                command.stdout(writer)
            } else {
                command.stderr(writer)
            };
            forward(reader, into, true, self.tell.clone());
            self.readers += 1;
        }
        Ok(())
    }

    /// Reads the remaining output of processes after all have ended. Returns the launcher's output about the end of processes.
    pub(crate) fn finish(self) -> String {
        drop(self.ends);
        let until = Instant::now() + DRAINS;
        let mut kept = Vec::new();
        for _ in 0..self.readers {
            match self.ended.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(more) => kept.extend(more),
                Err(_) => break,
            }
        }
        String::from_utf8_lossy(&kept).into_owned()
    }
}

fn streams(to_stderr: bool) -> [Stream; 2] {
    [Stream(if to_stderr { 2 } else { 1 }), Stream(2)]
}

/// Forwards the output of a pipe, in a thread of its own. If the writer is a launcher, output from its banner on is held back.
fn forward(reader: PipeReader, into: Stream, is_launcher: bool, ended: Sender<Vec<u8>>) {
    thread::spawn(move || {
        let mut file = File::from(OwnedFd::from(reader));
        let (mut held, mut some, mut is_open) = (Held::default(), vec![0; 1 << 16], true);
        loop {
            if held.is_undecided() && !is_ready(file.as_raw_fd(), libc::POLLIN, UNDECIDED_MS) {
                is_open = is_open && into.write(&held.give_up());
            }
            match file.read(&mut some) {
                Ok(0) => break,
                Ok(bytes) if is_launcher => {
                    let passed = held.take(&some[..bytes]);
                    is_open = is_open && into.write(&passed);
                }
                Ok(bytes) => is_open = is_open && into.write(&some[..bytes]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        if !held.is_banner {
            let rest = held.give_up();
            let _ = is_open && into.write(&rest);
        }
        // The run may be over.
        let _ = ended.send(held.bytes);
    });
}

/// The output of a launcher that is a banner, or may become one.
///
/// The end of a line is forwarded at once. Otherwise a line of another stream could come between the line and its end.
#[derive(Default)]
struct Held {
    /// The bytes that are held back, from the start of a line on.
    bytes: Vec<u8>,
    is_banner: bool,
    /// Whether a part of the current line has been forwarded.
    is_within_line: bool,
}

impl Held {
    fn is_undecided(&self) -> bool {
        !self.is_banner && !self.bytes.is_empty()
    }

    /// Returns the bytes that were held back, because they are not a banner.
    fn give_up(&mut self) -> Vec<u8> {
        self.is_within_line = self.bytes.last().map_or(self.is_within_line, |byte| *byte != b'\n');
        std::mem::take(&mut self.bytes)
    }

    /// Buffers output, and returns the bytes that can be forwarded.
    fn take(&mut self, more: &[u8]) -> Vec<u8> {
        self.bytes.extend_from_slice(more);
        if self.is_banner {
            return Vec::new();
        }
        let mut from = 0;
        loop {
            if !self.is_within_line {
                match begins(&self.bytes[from..]) {
                    Some(false) => {}
                    whether => {
                        self.is_banner = whether.is_some();
                        return self.bytes.drain(..from).collect();
                    }
                }
            }
            let Some(end) = self.bytes[from..].iter().position(|byte| *byte == b'\n') else {
                return self.give_up();
            };
            self.is_within_line = false;
            from += end + 1;
        }
    }
}

/// Returns whether a banner begins at the start of this line, with or without the empty line before it; `None` if more bytes are
/// needed.
fn begins(bytes: &[u8]) -> Option<bool> {
    let bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
    let compared = bytes.len().min(RULE.len());
    if bytes[..compared] != RULE[..compared] {
        return Some(false);
    }
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return bytes.iter().any(|byte| *byte != b'=').then_some(false);
    };
    let second = &bytes[end + 1..];
    let compared = second.len().min(BANNER.len());
    if second[..compared] != BANNER[..compared] {
        return Some(false);
    }
    (second.len() >= BANNER.len()).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "\n===================================================================================\n\
        =   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   EXIT CODE: 11\n";

    fn split(text: &str, pieces: usize) -> (String, String, bool) {
        let (mut held, mut passed) = (Held::default(), Vec::new());
        for piece in text.as_bytes().chunks(pieces) {
            passed.extend(held.take(piece));
        }
        if !held.is_banner {
            passed.extend(held.give_up());
        }
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(passed), text(held.bytes), held.is_banner)
    }

    #[test]
    fn a_banner_is_kept_and_nothing_else_however_it_comes() {
        let rule = "=".repeat(83);
        for pieces in [1, 2, 7, 64, 4096] {
            for before in ["", "words\n", "\n\n", "===\n", "\n==\n=   BAD\n"] {
                let (passed, kept, is_banner) = split(&format!("{before}{WHOLE}more\n"), pieces);
                assert_eq!((passed.as_str(), kept, is_banner), (before, format!("{WHOLE}more\n"), true));
            }
            for text in
                [format!("\n{rule}\n= of the program\n"), format!("\n{rule}"), "\n".to_owned(), rule.clone()]
            {
                assert_eq!(split(&text, pieces), (text, String::new(), false));
            }
        }
    }

    #[test]
    fn a_start_of_a_banner_waits_for_more() {
        let mut held = Held::default();
        assert_eq!(held.take(b"a\n===="), b"a\n");
        assert!(held.is_undecided());
        assert_eq!(held.take(b"x\n"), b"====x\n");
        assert!(!held.is_undecided(), "the end of a line is not kept");
        assert_eq!(held.take(b"\n"), b"");
        assert!(held.is_undecided(), "the empty line before a banner");
        assert_eq!(held.give_up(), b"\n");
        assert_eq!(held.take(b"y"), b"y");
        assert_eq!(held.take(WHOLE.as_bytes()), b"\n", "a banner within a line ends that line");
        assert!(held.is_banner);
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost(text in "[=\nB ]{0,80}(\n={50,60}\n=   BAD TERM)?[=\n]{0,9}", pieces in 1_usize..9) {
            let (passed, kept, _) = split(&text, pieces);
            proptest::prop_assert_eq!(passed + &kept, text);
        }
    }
}
