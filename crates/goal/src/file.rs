//! Schedules in files. The format of a file to read follows from its first bytes, and the format of a file to write from its
//! name.

use crate::error::{Place, ReadError};
use crate::schedule::Schedule;
use crate::text::DuplicateLabels;
use crate::{binary, text};
use nicety::Error;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
#[cfg(unix)]
use std::os::{fd::AsFd, unix::fs::MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A format of schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text.
    Text,
    /// Binary.
    Binary,
}

impl Format {
    /// Returns the format that a name stands for: binary for `.bin`, and text for `.goal` and `.txt`.
    pub fn of_name(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "bin" => Some(Format::Binary),
            "goal" | "txt" => Some(Format::Text),
            _ => None,
        }
    }

    /// Returns the other format.
    pub const fn other(self) -> Format {
        match self {
            Format::Text => Format::Binary,
            Format::Binary => Format::Text,
        }
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::ConnectionAborted => Error::Interrupted,
        _ => Error::Input(format!("{}: cannot write it ({})", path.display(), said(error))),
    }
}

pub(crate) fn unreadable(path: &str, error: &io::Error) -> Error {
    Error::Input(format!("{path}: cannot read it ({})", said(error)))
}

/// Returns the text of a system error without its number.
pub(crate) fn said(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Reads a schedule. `go_on` is called regularly with the number of bytes read and the length of the file.
///
/// # Errors
/// When the file cannot be read or is not a schedule, or `go_on` returned false.
pub fn read(
    path: &str,
    labels: DuplicateLabels,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<(Schedule, Format), Error> {
    let mut file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let length = file.metadata().map_or(0, |about| about.len());
    let mut head = Vec::new();
    (&mut file).take(8).read_to_end(&mut head).map_err(|error| unreadable(path, &error))?;
    // A binary file with another byte order has a zero byte, too.
    let is_binary = head.len() == 8 && head.contains(&0);
    // A pipe, or another source that is not a regular file, cannot be read twice.
    let again: Box<dyn Read> = match file.seek(SeekFrom::Start(0)) {
        Ok(_) => Box::new(file),
        Err(_) => Box::new(io::Cursor::new(head).chain(file)),
    };
    let counted = Counted::new(again);
    let (found, format) = if is_binary {
        let source = BufReader::with_capacity(1 << 16, &counted);
        (binary::read(source, &mut |_| go_on(counted.read(), length)), Format::Binary)
    } else {
        (text::read(&counted, labels, &mut |_| go_on(counted.read(), length)), Format::Text)
    };
    match found {
        Ok(schedule) => Ok((schedule, format)),
        Err(error) => Err(described(path, error)),
    }
}

/// Adds the file's name to an error.
pub(crate) fn described(path: &str, error: ReadError) -> Error {
    match error {
        ReadError { interrupted: true, .. } => Error::Interrupted,
        ReadError { place: Place::Text { line, column }, rank, text, .. } => {
            let rank = rank.map(|rank| format!("rank {rank}: ")).unwrap_or_default();
            Error::Input(format!("{path}:{line}:{column}: {rank}{text}"))
        }
        error => Error::Input(format!("{path}: {error}")),
    }
}

/// A source that counts the bytes read.
pub(crate) struct Counted<R> {
    source: std::cell::RefCell<R>,
    read: std::cell::Cell<u64>,
}

impl<R> Counted<R> {
    pub(crate) fn new(source: R) -> Counted<R> {
        Counted { source: source.into(), read: 0.into() }
    }

    /// Returns the bytes read so far.
    pub(crate) fn read(&self) -> u64 {
        self.read.get()
    }
}

impl<R: Read> Read for &Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.borrow_mut().read(buffer)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

/// A destination that fails when the caller requests a stop.
struct Interruptible<'i, W> {
    to: W,
    interrupt: Option<&'i AtomicBool>,
}

impl<W: Write> Write for Interruptible<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Returns whether a path is the standard output: `-`, or a link such as `/dev/stdout` to its file.
fn is_stdout(path: &Path) -> bool {
    #[cfg(unix)]
    if path.is_symlink()
        && let (Ok(named), Ok(copy)) = (path.metadata(), io::stdout().as_fd().try_clone_to_owned())
        && let Ok(own) = File::from(copy).metadata()
    {
        return (named.dev(), named.ino()) == (own.dev(), own.ino());
    }
    path == Path::new("-")
}

/// Writes a schedule to a temporary file in the same folder, and renames this file when it is complete. Devices and pipes are
/// written directly. If the path is a link, its target is written. The path `-` is the standard output.
///
/// # Errors
/// When the file cannot be written, or the caller requested a stop.
pub fn write(
    schedule: &Schedule,
    path: &Path,
    format: Format,
    interrupt: Option<&AtomicBool>,
) -> Result<(), Error> {
    let put = |to: &mut dyn Write| match format {
        Format::Text => text::write(schedule, to),
        Format::Binary => binary::write(schedule, to),
    };
    if is_stdout(path) {
        let to = Interruptible { to: io::stdout().lock(), interrupt };
        let mut to = BufWriter::with_capacity(1 << 16, to);
        return put(&mut to)
            .and_then(|()| to.flush())
            .map_err(|error| unwritable(Path::new("stdout"), &error));
    }
    // A rename would replace the link.
    let target = if path.is_symlink() { path.canonicalize().ok() } else { None };
    let path = target.as_deref().unwrap_or(path);
    let is_plain = path.metadata().map_or(true, |about| about.is_file());
    let beside = match is_plain {
        true => PathBuf::from(format!("{}.{}.part", path.display(), std::process::id())),
        false => path.to_owned(),
    };
    let wrong = |error: io::Error| {
        if is_plain {
            // The temporary file may not exist.
            let _ = std::fs::remove_file(&beside);
        }
        unwritable(path, &error)
    };
    let file = if is_plain { File::create(&beside) } else { File::options().write(true).open(path) };
    let to = Interruptible { to: file.map_err(wrong)?, interrupt };
    let mut to = BufWriter::with_capacity(1 << 16, to);
    put(&mut to).and_then(|()| to.flush()).map_err(wrong)?;
    drop(to);
    if is_plain { std::fs::rename(&beside, path).map_err(wrong) } else { Ok(()) }
}
