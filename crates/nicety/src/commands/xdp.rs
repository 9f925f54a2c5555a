//! Commands on XDP programs. Entries of maps are JSON, as `nicety xdp run` reads and prints them.

use super::calls::{calls, setups};
use super::numbered;
use crate::{Error, LoadedXdp};
use nicety_ebpf::Object;
use nicety_nic_ethernet::XdpMode;

setups! {
    /// [`Xdp`](crate::Xdp)'s functions, under the same names.
    enum XdpSetup by set_up_xdp(program) xdp = program.0.host.xdp()?;

    /// Loads a program of an object. Its number is valid on this host.
    Load {
        object: Vec<u8>,
        name: Option<String>,
        /// Names of maps, with entries as JSON.
        maps: Vec<(String, String)>,
        generic: bool,
    } => {
        let object = Object::read(&object).map_err(|error| Error::Input(error.to_string()))?;
        let mode = if generic { XdpMode::Generic } else { XdpMode::Native };
        numbered(&program.0.programs, xdp.load(&object, name.as_deref(), &maps, mode)?)
    };
    /// The names of the program, and of its maps: JSON, as bytes.
    Names { number: u64 } => program.xdp_program(number)?.names().into_bytes();
}

calls! {
    /// The calls of [`Xdp`](crate::Xdp), under the same names.
    enum XdpCall by xdp(program, host) xdp = host.xdp()?;

    Attach { number: u64 } => xdp.attach(&program.xdp_program(number)?).await?;
    Detach => u64::from(xdp.detach().await?);
    /// The entry as JSON, as bytes, or `null`.
    Get { number: u64, map: String, key: String } => {
        xdp.get(&program.xdp_program(number)?, &map, &key).await?.into_bytes()
    };
    Set { number: u64, map: String, entry: String } => {
        xdp.set(&program.xdp_program(number)?, &map, &entry).await?
    };
    /// Whether there was an entry.
    Delete { number: u64, map: String, key: String } => {
        u64::from(xdp.delete(&program.xdp_program(number)?, &map, &key).await?)
    };
    /// All entries as JSON, as bytes.
    Items { number: u64, map: String } => {
        xdp.items(&program.xdp_program(number)?, &map).await?.into_bytes()
    };
}

impl super::Program {
    fn xdp_program(&self, number: u64) -> Result<LoadedXdp, Error> {
        let programs = self.0.programs.borrow();
        let unknown = || Error::Program(format!("there is no XDP program {number} on this host"));
        programs.get(number as usize).cloned().ok_or_else(unknown)
    }
}
