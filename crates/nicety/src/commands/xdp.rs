//! Commands for XDP programs. Entries of maps are in the JSON form that `nicety xdp run` reads and prints.

use super::calls::{calls, setups};
use super::numbered;
use crate::{Error, LoadedXdp};
use nicety_ebpf::Object;
use nicety_ebpf::report::maps::set_sizes;
use nicety_nic_ethernet::{XdpMode, XskOptions};

setups! {
    /// The set-up functions of [`Xdp`](crate::Xdp), under the same names.
    enum XdpSetup by set_up_xdp(program) xdp = program.0.host.xdp()?;

    /// Loads a program of an object. The outcome is the program's number, which is valid on this host.
    Load {
        object: Vec<u8>,
        name: Option<String>,
        /// Pairs of a map's name and its entries as JSON.
        maps: Vec<(String, String)>,
        generic: bool,
    } => {
        let mut object = Object::read(&object).map_err(|error| Error::Input(error.to_string()))?;
        set_sizes(&mut object, &maps)
            .map_err(|(name, problem)| Error::Input(format!("map {name}: {problem}")))?;
        let mode = if generic { XdpMode::Generic } else { XdpMode::Native };
        numbered(&program.0.programs, xdp.load(&object, name.as_deref(), &maps, mode)?)
    };
    /// Binds an AF_XDP socket to an entry of a map and to a receive queue.
    Bind { number: u64, map: String, key: u32, queue: u64, buffers: u64, zero_copy: bool } => {
        let options = XskOptions { queue: queue as usize, buffers, zero_copy };
        xdp.bind(&program.xdp_program(number)?, &map, key, options)?
    };
    /// The outcome is the names of the program and of its maps, as the bytes of a JSON text.
    Names { number: u64 } => program.xdp_program(number)?.names().into_bytes();
}

calls! {
    /// The calls of [`Xdp`](crate::Xdp), under the same names.
    enum XdpCall by xdp(program, host) xdp = host.xdp()?;

    Attach { number: u64 } => xdp.attach(&program.xdp_program(number)?).await?;
    Detach => u64::from(xdp.detach().await?);
    /// The outcome is the entry as the bytes of a JSON text, or `null`.
    Get { number: u64, map: String, key: String } => {
        xdp.get(&program.xdp_program(number)?, &map, &key).await?.into_bytes()
    };
    Set { number: u64, map: String, entry: String } => {
        xdp.set(&program.xdp_program(number)?, &map, &entry).await?
    };
    /// The outcome is 1 if the entry existed, or else 0.
    Delete { number: u64, map: String, key: String } => {
        u64::from(xdp.delete(&program.xdp_program(number)?, &map, &key).await?)
    };
    /// The outcome is the records as bytes: for each record its length in four bytes, little endian, and then its bytes.
    Records { number: u64, map: String } => {
        joined(&xdp.records(&program.xdp_program(number)?, &map).await?)
    };
    /// The outcome is the frames of a socket in the form of records.
    Frames { number: u64, map: String, key: u32, most: u64 } => {
        joined(&xdp.frames(&program.xdp_program(number)?, (&map, key), most as usize).await?)
    };
    /// The outcome is all entries, as the bytes of a JSON text.
    Items { number: u64, map: String } => {
        xdp.items(&program.xdp_program(number)?, &map).await?.into_bytes()
    };
}

/// Records behind one another, each with its length in front.
fn joined(records: &[Vec<u8>]) -> Vec<u8> {
    records.iter().flat_map(|each| [&(each.len() as u32).to_le_bytes()[..], each].concat()).collect()
}

impl super::Program {
    fn xdp_program(&self, number: u64) -> Result<LoadedXdp, Error> {
        let programs = self.0.programs.borrow();
        let unknown = || Error::Program(format!("there is no XDP program {number} on this host"));
        programs.get(number as usize).cloned().ok_or_else(unknown)
    }
}
