//! A file that contains only complete runs. If a write fails, the file keeps its earlier contents.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file that is being written. It has a temporary name in the same folder until its first run is complete.
#[derive(Debug)]
pub(super) struct Whole {
    path: PathBuf,
    /// The temporary path, until the file is renamed.
    beside: Option<PathBuf>,
    file: BufWriter<File>,
    /// The length of the complete runs, in bytes.
    bytes: u64,
}

impl Whole {
    /// Creates a file at this path. A path that is not a regular file, such as a pipe, is written directly.
    pub(super) fn create(path: &Path) -> io::Result<Whole> {
        // If the path is a symbolic link, the link stays.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_plain = path.metadata().map_or(true, |about| about.is_file());
        let beside = is_plain.then(|| {
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(format!(".{}.part", std::process::id()));
            path.with_file_name(name)
        });
        let direct = || File::options().write(true).truncate(is_plain).open(&path);
        let (beside, file) = match beside.as_ref().map(File::create) {
            Some(Ok(file)) => (beside, file),
            // The user may not create files in the folder, but may be able to write the existing file.
            Some(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                (None, direct().map_err(|_| error)?)
            }
            Some(Err(error)) => return Err(error),
            None => (None, direct()?),
        };
        Ok(Whole { path, beside, file: BufWriter::new(file), bytes: 0 })
    }

    /// Appends the bytes that `write` writes. If `write` fails, the file has none of these bytes.
    pub(super) fn append(
        &mut self,
        write: impl FnOnce(&mut Counted<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut counted = Counted { file: &mut self.file, bytes: self.bytes };
        let done = write(&mut counted).and_then(|()| counted.file.flush());
        let bytes = counted.bytes;
        let done = done.and_then(|()| match self.beside.take() {
            None => Ok(()),
            Some(beside) => fs::rename(&beside, &self.path).inspect_err(|_| self.beside = Some(beside)),
        });
        match done {
            Ok(()) => self.bytes = bytes,
            Err(_) => self.take_back(),
        }
        done
    }

    /// Truncates the file to its complete runs. Errors are ignored, because nothing can be done about them.
    fn take_back(&mut self) {
        let Ok(file) = self.file.get_ref().try_clone() else { return };
        // The old writer is dropped together with its buffered bytes.
        let (mut file, _) = std::mem::replace(&mut self.file, BufWriter::new(file)).into_parts();
        let _ = file.set_len(self.bytes);
        let _ = file.seek(SeekFrom::Start(self.bytes));
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            let _ = fs::remove_file(beside);
        }
    }
}

/// A writer of one run, which tracks the length of the file.
pub(super) struct Counted<'w> {
    file: &'w mut BufWriter<File>,
    bytes: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of one test, which is removed at the end of the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let folder = std::env::temp_dir().join(format!("nicety-whole-{}-{name}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Scratch(folder)
        }

        /// Returns the names and contents of the folder's files.
        fn files(&self) -> Vec<(String, String)> {
            let mut files: Vec<_> = fs::read_dir(&self.0)
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .map(|path| {
                    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                    (name, fs::read_to_string(path).unwrap())
                })
                .collect();
            files.sort();
            files
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Writes a text to a disk that is full after `bytes` bytes.
    fn full_behind(bytes: usize, text: &str) -> impl FnOnce(&mut Counted<'_>) -> io::Result<()> + '_ {
        move |file| {
            file.write_all(&text.as_bytes()[..bytes])?;
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn a_file_has_whole_runs_alone() {
        let scratch = Scratch::new("runs");
        let path = scratch.0.join("x.pcapng");
        let named = |text: &str| vec![("x.pcapng".to_owned(), text.to_owned())];
        fs::write(&path, "before").unwrap();
        let long = "b".repeat(100_000);
        {
            let mut file = Whole::create(&path).unwrap();
            file.append(full_behind(long.len(), &long)).unwrap_err();
            assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        }
        assert_eq!(scratch.files(), named("before"));
        let mut file = Whole::create(&path).unwrap();
        file.append(|file| file.write_all(b"one ")).unwrap();
        assert_eq!(scratch.files(), named("one "));
        // One text is shorter than the writer's buffer, the other longer.
        for text in ["two ", &long] {
            file.append(full_behind(text.len(), text)).unwrap_err();
            assert_eq!(scratch.files(), named("one "));
        }
        file.append(|file| file.write_all(b"three")).unwrap();
        drop(file);
        assert_eq!(scratch.files(), named("one three"));
    }

    #[test]
    fn a_link_stays_one() {
        let scratch = Scratch::new("link");
        let (path, link) = (scratch.0.join("x.pcapng"), scratch.0.join("y.pcapng"));
        fs::write(&path, "before").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        Whole::create(&link).unwrap().append(|file| file.write_all(b"new")).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }
}
