//! Checks the file of a program. The file must be complete and for this machine. It must be linked dynamically, so that it can
//! load a library, or be a Go program.

use nicety::Error;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef};
use std::fs::File;
use std::io;
use std::path::Path;

/// The length of the header up to the field of the machine, in bytes.
const SHORT_HEAD: u64 = 20;
/// Maximum bytes read of a note.
const LONGEST_NOTE: u64 = 4096;

/// Checks the file of a program. A file without an ELF header counts as a script.
///
/// # Errors
/// [`Error::Input`] when the file cannot be read, is damaged, or is for another machine. Also when it is linked statically and is
/// not a Go program.
pub fn check_executable(path: &Path) -> Result<(), Error> {
    let wrong = |problem: String| Error::Input(format!("{}: {problem}", path.display()));
    let unreadable = |error: io::Error| {
        let text = error.to_string();
        wrong(text.split(" (os error").next().unwrap_or_default().to_owned())
    };
    let file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    check(&ReadCache::new(file), length).map_err(wrong)
}

fn check<'f>(file: impl ReadRef<'f>, length: u64) -> Result<(), String> {
    const CUT: &str = "the program file is truncated or damaged; copy or compile it again";
    let cut = |_| CUT.to_owned();
    if file.read_bytes_at(0, 4) != Ok(&elf::ELFMAG[..]) {
        return Ok(());
    }
    let head = file.read_bytes_at(0, SHORT_HEAD).map_err(|()| CUT)?;
    let own = own_head().map_err(|error| format!("the running program cannot be read ({error})"))?;
    if own[4..6] != head[4..6] || own[18..20] != head[18..20] {
        let (other, this) = (machine(head), machine(&own));
        return Err(format!(
            "the program is for {other}, but this machine is {this}; compile it for this machine"
        ));
    }
    let header = FileHeader64::<Endianness>::parse(file).map_err(cut)?;
    let endian = header.endian().map_err(cut)?;
    let segments = header.program_headers(endian, file).map_err(cut)?;
    let ends = |segment: &elf::ProgramHeader64<Endianness>| {
        segment.p_offset(endian).checked_add(segment.p_filesz(endian)).filter(|end| *end <= length)
    };
    let of = |kind| segments.iter().filter(move |segment| segment.p_type(endian) == kind);
    if of(elf::PT_LOAD).chain(of(elf::PT_NOTE)).any(|segment| ends(segment).is_none()) {
        return Err(CUT.to_owned());
    }
    // The Go linker writes a note into every program.
    let is_go = of(elf::PT_NOTE).any(|note| {
        let size = note.p_filesz(endian).min(LONGEST_NOTE);
        let bytes = file.read_bytes_at(note.p_offset(endian), size).unwrap_or_default();
        bytes.windows(4).any(|name| name == b"Go\0\0")
    });
    if of(elf::PT_INTERP).next().is_none() && !is_go {
        let problem = "it is linked statically, so no library can be loaded into it";
        return Err(format!("{problem}; link it dynamically, or use go/nicety in Go"));
    }
    Ok(())
}

/// Returns the first bytes of the file of this process.
fn own_head() -> io::Result<Vec<u8>> {
    let file = ReadCache::new(File::open(std::env::current_exe()?)?);
    let head = (&file).read_bytes_at(0, SHORT_HEAD).map(<[u8]>::to_vec);
    head.map_err(|()| io::ErrorKind::UnexpectedEof.into())
}

/// Returns the name of the machine for which a program is built, from the program's header.
fn machine(head: &[u8]) -> String {
    let big = head[5] == elf::ELFDATA2MSB.0;
    let number = [head[18], head[19]];
    let number = if big { u16::from_be_bytes(number) } else { u16::from_le_bytes(number) };
    let name = match number {
        3 => "x86".to_owned(),
        40 => "ARM".to_owned(),
        62 => "x86-64".to_owned(),
        183 => "AArch64".to_owned(),
        243 => "RISC-V".to_owned(),
        other => format!("machine {other}"),
    };
    let bits = match head[4] {
        1 => "32-bit ",
        2 => "",
        _ => "another kind of ",
    };
    format!("{}{bits}{name}", if big { "big-endian " } else { "" })
}
