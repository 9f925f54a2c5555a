//! Reads capture files that are plain, or compressed by gzip or zstd. The first bytes of a file determine its format.

use super::pcap;
use super::reader::is_capture;
use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Number of bytes per read of a file.
const CHUNK: usize = 256 << 10;

/// Opens a file, and decompresses it if necessary.
///
/// # Errors
/// When the file cannot be read.
pub fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    if path.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    reading(File::open(path)?, Arc::default())
}

/// Does the same as [`open`] for an open file. `read` counts the bytes that have been read from the file.
///
/// # Errors
/// When the file cannot be read.
pub fn reading(file: File, read: Arc<AtomicU64>) -> io::Result<Box<dyn Read + Send>> {
    decompressed(BufReader::with_capacity(CHUNK, CountingReader { file, read }))
}

/// Does the same as [`open`] for the bytes of a file.
///
/// # Errors
/// When they cannot be decompressed.
pub fn in_memory(bytes: Vec<u8>) -> io::Result<Box<dyn Read + Send>> {
    decompressed(Cursor::new(bytes))
}

/// Whether bytes begin as a capture, or as a file of another program that captures, or compressed.
pub fn begins_as_file(bytes: &[u8]) -> bool {
    let deflated = bytes.starts_with(&GZIP) && bytes.get(2) == Some(&8);
    deflated || bytes.starts_with(&ZSTD) || is_capture(bytes) || pcap::other_format(bytes).is_some()
}

/// A file with a counter of the bytes that have been read.
struct CountingReader {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Returns the decompressed bytes, or the same bytes if they are not compressed.
pub(super) fn decompressed(mut bytes: impl BufRead + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    // If the file has at least four bytes, its first read returns at least four.
    let head = bytes.fill_buf()?;
    let (gzip, zstd) = (head.starts_with(&GZIP), head.starts_with(&ZSTD));
    if !gzip && !zstd {
        return Ok(Box::new(bytes));
    }
    let place = Arc::new(Place::default());
    let counted = Counted { bytes, place: place.clone() };
    if gzip {
        let inner = MultiGzDecoder::new(counted);
        return Ok(Box::new(BufReader::with_capacity(CHUNK, Placed { inner, format: "gzip", place })));
    }
    let inner = Frames { bytes: Some(counted), frame: None };
    Ok(Box::new(Placed { inner, format: "zstd", place }))
}

/// The read position in a compressed file.
#[derive(Default)]
struct Place {
    byte: AtomicU64,
    ended: AtomicBool,
}

/// The bytes of a compressed file, with a counter of the bytes that the decompressor has taken.
struct Counted<R> {
    bytes: R,
    place: Arc<Place>,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let there = self.bytes.fill_buf()?;
        self.place.ended.store(there.is_empty(), Ordering::Relaxed);
        Ok(there)
    }

    fn consume(&mut self, count: usize) {
        self.place.byte.fetch_add(count as u64, Ordering::Relaxed);
        self.bytes.consume(count);
    }
}

/// The decompressed bytes. It adds the position in the file to errors, because errors of decompressors lack it.
struct Placed<R> {
    inner: R,
    format: &'static str,
    place: Arc<Place>,
}

impl<R: Read> Read for Placed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| {
            // An error of the operating system has an error number, and keeps its text.
            if error.kind() == io::ErrorKind::Interrupted || error.raw_os_error().is_some() {
                return error;
            }
            let (format, byte) = (self.format, self.place.byte.load(Ordering::Relaxed));
            let text = match self.place.ended.load(Ordering::Relaxed) {
                true => format!("the file ends at byte {byte}, within its {format} data"),
                false => format!("its {format} data are damaged before byte {byte} of the file"),
            };
            io::Error::new(error.kind(), text)
        })
    }
}

/// The decompressed bytes of consecutive zstd frames.
struct Frames<R: BufRead> {
    /// The compressed bytes, while no frame is being decompressed.
    bytes: Option<R>,
    frame: Option<StreamingDecoder<R, FrameDecoder>>,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let count = frame.read(buffer)?;
                if count > 0 || buffer.is_empty() {
                    return Ok(count);
                }
                self.bytes = self.frame.take().map(StreamingDecoder::into_inner);
            }
            let Some(mut bytes) = self.bytes.take() else { return Ok(0) };
            if bytes.fill_buf()?.is_empty() {
                self.bytes = Some(bytes);
                return Ok(0);
            }
            let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{error}"));
            self.frame = Some(StreamingDecoder::new(bytes).map_err(invalid)?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::{Cursor, Write};

    fn zipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        decompressed(Cursor::new(bytes))?.read_to_end(&mut all)?;
        Ok(all)
    }

    #[test]
    fn an_error_says_where_it_is() {
        let bytes: Vec<u8> = (0..9000u32).map(|at| ((at * at) >> 5) as u8).collect();
        let packed =
            [("gzip", zipped(&bytes)), ("zstd", compress_to_vec(&bytes[..], CompressionLevel::Fastest))];
        for (format, whole) in packed {
            for cut in [5, whole.len() / 2, whole.len() - 1] {
                let error = read(whole[..cut].to_vec()).unwrap_err().to_string();
                assert_eq!(error, format!("the file ends at byte {cut}, within its {format} data"));
            }
        }
        let mut damaged = [zipped(&bytes), zipped(&bytes)].concat();
        let half = damaged.len() / 2;
        // The first gzip member states a length that differs from that of its contents.
        damaged[half - 1] ^= 1;
        let error = read(damaged).unwrap_err().to_string();
        assert_eq!(error, format!("its gzip data are damaged before byte {half} of the file"));
    }

    proptest! {
        #[test]
        fn compressed_files_are_read(bytes in prop::collection::vec(any::<u8>(), 5..3000), more in prop::collection::vec(any::<u8>(), 0..900)) {
            let both = [&bytes[..], &more].concat();
            let zstd = |bytes: &[u8]| compress_to_vec(bytes, CompressionLevel::Fastest);
            prop_assert_eq!(&read([zipped(&bytes), zipped(&more)].concat()).unwrap(), &both);
            prop_assert_eq!(&read([zstd(&bytes), zstd(&more)].concat()).unwrap(), &both);
        }

        #[test]
        fn damaged_files_are_errors_and_no_more(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            at: prop::sample::Index,
            change: u8,
            zstd: bool,
        ) {
            let mut packed = match zstd {
                true => compress_to_vec(&bytes[..], CompressionLevel::Fastest),
                false => zipped(&bytes),
            };
            let at = at.index(packed.len());
            packed[at] ^= change;
            let _ = read(packed.clone());
            packed.truncate(at);
            let _ = read(packed);
        }
    }
}
