//! Installs the headers and the library for C programs with Portals. The library is the one that is loaded into processes. It has
//! the name that the linker expects.

use crate::launch::install;
use nicety::Error;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

const HEADERS: [(&str, &str); 3] = [
    ("portals4.h", nicety_shim::PORTALS4_H),
    ("portals4_spin.h", nicety_shim::PORTALS4_SPIN_H),
    ("nicety_exec.h", nicety_shim::NICETY_EXEC_H),
];
const NAME: &str = "libportals.so";

/// Installs the headers in subfolder `include`, and the library in subfolder `lib`. Existing files stay.
///
/// # Errors
/// When the folder cannot be written.
pub fn install_for_programs(folder: &Path) -> Result<(), Error> {
    put(folder).map_err(|error| Error::Input(format!("{}: {error}", folder.display())))
}

fn put(folder: &Path) -> io::Result<()> {
    let (include, lib) = (folder.join("include"), folder.join("lib"));
    fs::create_dir_all(&include)?;
    for (name, text) in HEADERS {
        let path = include.join(name);
        if !fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            let beside = include.join(format!("{name}.{}.new", std::process::id()));
            fs::write(&beside, text)?;
            fs::rename(&beside, &path)?;
        }
    }
    let library = install(&lib)?;
    match symlink(library.file_name().expect("it is a file"), lib.join(NAME)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
