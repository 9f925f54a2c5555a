//! XDP programs in the driver of a host's card: [`Xdp`], on cards below the kernel's protocols.

use super::Host;
use crate::Error;
use nicety_ebpf::report::maps::{Dumped, dump};
use nicety_ebpf::report::prepare;
use nicety_ebpf::{Limits, Machine, Object};
use nicety_nic_core::parts::{DueTime, Offered};
use nicety_nic_ethernet::{HostWork, Node, Xdp as Driver, XdpError, XdpMode, XdpProgram};
use nicety_nic_processors::Busy;
use nicety_types::{Duration, NodeId};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The XDP programs of a host's driver. Cheap to clone.
#[derive(Clone)]
pub struct Xdp {
    node: Rc<Node>,
}

/// A loaded program with its maps, which outlive its attachment.
#[derive(Clone, Debug)]
pub struct LoadedXdp {
    object: Rc<Object>,
    program: XdpProgram,
}

impl Host {
    /// Returns the XDP programs of this host's driver.
    ///
    /// # Errors
    /// When the card is of another design, or its spec has no costs of XDP.
    pub fn xdp(&self) -> Result<Xdp, Error> {
        let node = self.inner.card.of::<Node>()?;
        match node.spec().xdp {
            Some(_) => Ok(Xdp { node }),
            None => Err(XdpError::NoCosts.into()),
        }
    }
}

impl Xdp {
    /// Loads a program of an object, the only one without a name, and fills its maps with entries as JSON; set-up, takes no
    /// virtual time.
    ///
    /// # Errors
    /// The object, the program or the entries are wrong.
    pub fn load(
        &self,
        object: &Object,
        name: Option<&str>,
        entries: &[(String, String)],
        mode: XdpMode,
    ) -> Result<LoadedXdp, Error> {
        let input = |error: &dyn std::fmt::Display| Error::Input(error.to_string());
        let entry = object.program(name).map_err(|error| input(&error))?;
        let limits = Limits { cpus: self.node.spec().cpus as u32, ..Limits::default() };
        let mut machine = Machine::new(object, limits).map_err(|error| input(&error))?;
        let program = machine.add(object, entry).map_err(|error| input(&error))?;
        prepare(object, &mut machine, entries).map_err(|error| input(&error))?;
        let machine = Rc::new(RefCell::new(machine));
        let (name, fragments) = (entry.name.clone(), entry.fragments);
        let program = XdpProgram { name, machine, program, fragments, mode };
        Ok(LoadedXdp { object: Rc::new(object.clone()), program })
    }

    /// Attaches a program, or replaces the attached one; set-up, takes no virtual time.
    ///
    /// # Errors
    /// The host cannot run it.
    pub fn install(&self, loaded: &LoadedXdp) -> Result<(), Error> {
        Ok(self.node.attach_xdp(loaded.program.clone())?)
    }

    /// The driver's program and its counters.
    pub fn driver(&self) -> &Driver {
        self.node.xdp()
    }

    /// CPU time of the whole host so far.
    pub fn cpu_time(&self) -> Duration {
        Duration::from_ps(self.node.report().busy_ps)
    }

    /// Frames that the host had no buffer for, or none of their length.
    pub fn lost(&self) -> u64 {
        let card = self.node.report().card;
        card.ring_full + card.too_long
    }

    /// Work of each part of the host for frames so far.
    pub fn host_work(&self) -> Vec<HostWork> {
        self.node.host_work()
    }

    /// Busy times of parts of the card so far.
    pub fn busy(&self) -> Busy {
        self.node.busy()
    }

    /// Starts to count the frames of a generator separately. It takes all frames that programs send to unknown stations.
    pub fn watch_generator(&self, node: NodeId) {
        self.node.watch_generator(node);
    }

    /// The time for which a frame of `bytes` bytes occupies the card's link.
    pub fn wire_interval(&self, bytes: u64) -> Duration {
        self.node.wire_interval(bytes)
    }

    /// Makes the card generate frames, as [`Node::offer`].
    pub async fn offer(
        &self,
        target: u32,
        next: impl FnMut(&mut Vec<u8>) -> Option<DueTime>,
        over: &Cell<bool>,
    ) -> Offered {
        self.node.offer(NodeId(target), next, over).await
    }
}

impl LoadedXdp {
    /// The program's name.
    pub fn name(&self) -> &str {
        &self.program.name
    }

    /// The entries of each map, by its name.
    pub fn maps(&self) -> BTreeMap<String, Vec<Dumped>> {
        let machine = self.program.machine.borrow();
        let entries = |number| dump(&machine, number, &self.object.btf);
        let named = machine.maps.iter().enumerate();
        named.map(|(number, map)| (map.definition.name.clone(), entries(number))).collect()
    }
}

impl From<XdpError> for Error {
    fn from(error: XdpError) -> Error {
        Error::Input(error.to_string())
    }
}
