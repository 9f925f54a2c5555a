//! XDP programs in the driver of a host's card: [`Xdp`], on cards below the kernel's protocols.

use super::Host;
use crate::Error;
use nicety_ebpf::report::maps::{dump, find, put, remove};
use nicety_ebpf::report::prepare;
use nicety_ebpf::{Errno, Limits, Machine, Object};
use nicety_nic_core::parts::{DueTime, Offered};
use nicety_nic_ethernet::{HostWork, Node, Xdp as Driver, XdpError, XdpMode, XdpProgram};
use nicety_nic_processors::Busy;
use nicety_types::{Duration, NodeId};
use serde::Serialize;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The XDP programs of a host's driver, for one thread of its program. Cheap to clone.
#[derive(Clone)]
pub struct Xdp {
    host: Host,
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
            Some(_) => Ok(Xdp { host: self.clone(), node }),
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

    /// Time of the card's fetches of transmit descriptors so far. A fetch of few descriptors counts as its part.
    pub fn fetching(&self) -> Duration {
        self.node.fetching()
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
    /// The names of the program and of its maps, as JSON.
    pub(crate) fn names(&self) -> String {
        let machine = self.program.machine.borrow();
        let maps: Vec<&str> = machine.maps.iter().map(|map| map.definition.name.as_str()).collect();
        json!({"program": self.program.name, "maps": maps}).to_string()
    }

    /// The number of a map.
    fn map(&self, name: &str) -> Result<usize, Error> {
        let machine = self.program.machine.borrow();
        machine.map_named(name).ok_or_else(|| wrong(name, "the object has no such map"))
    }
}

impl Xdp {
    /// Attaches a program, or replaces the attached one, by a system call.
    ///
    /// # Errors
    /// The host cannot run it.
    pub async fn attach(&self, loaded: &LoadedXdp) -> Result<(), Error> {
        self.system_calls("xdp attach", 1).await;
        self.install(loaded)
    }

    /// Detaches the program by a system call. Returns whether there was one.
    ///
    /// # Errors
    /// None at present.
    pub async fn detach(&self) -> Result<bool, Error> {
        self.system_calls("xdp detach", 1).await;
        Ok(self.node.xdp().detach())
    }

    /// Looks an entry of a map up by a system call: the entry as JSON, or `null`.
    ///
    /// # Errors
    /// There is no such map, or the key is wrong.
    pub async fn get(&self, loaded: &LoadedXdp, map: &str, key: &str) -> Result<String, Error> {
        let (number, key) = (loaded.map(map)?, parsed(key)?);
        self.system_calls("xdp map lookup", 1).await;
        let machine = loaded.program.machine.borrow();
        let found =
            find(&machine, number, &loaded.object.btf, &key).map_err(|problem| wrong(map, &problem))?;
        Ok(text(&found))
    }

    /// Changes an entry of a map by a system call. `entry` is JSON with a key, and a value or values.
    ///
    /// # Errors
    /// There is no such map, or it does not take the entry.
    pub async fn set(&self, loaded: &LoadedXdp, map: &str, entry: &str) -> Result<(), Error> {
        let (number, entry) = (loaded.map(map)?, parsed(entry)?);
        self.system_calls("xdp map update", 1).await;
        let mut machine = loaded.program.machine.borrow_mut();
        let mut program = |machine: &mut Machine, name: &str| {
            let entry = loaded.object.program(Some(name)).map_err(|error| error.to_string())?;
            machine.add(&loaded.object, entry).map_err(|error| error.to_string())
        };
        put(&mut machine, number, &loaded.object.btf, &entry, &mut program)
            .map_err(|problem| wrong(map, &problem))
    }

    /// Removes an entry of a map by a system call. Returns whether there was one.
    ///
    /// # Errors
    /// There is no such map, it has no entries that can be removed, or the key is wrong.
    pub async fn delete(&self, loaded: &LoadedXdp, map: &str, key: &str) -> Result<bool, Error> {
        let (number, key) = (loaded.map(map)?, parsed(key)?);
        self.system_calls("xdp map delete", 1).await;
        let mut machine = loaded.program.machine.borrow_mut();
        match remove(&mut machine, number, &loaded.object.btf, &key)
            .map_err(|problem| wrong(map, &problem))?
        {
            Ok(()) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(error) => Err(wrong(map, &format!("no entry can be removed ({error})"))),
        }
    }

    /// Reads all entries of a map, by two system calls for each and one for the end: the next key, and its value.
    ///
    /// # Errors
    /// There is no such map.
    pub async fn items(&self, loaded: &LoadedXdp, map: &str) -> Result<String, Error> {
        let number = loaded.map(map)?;
        let entries = dump(&loaded.program.machine.borrow(), number, &loaded.object.btf).len();
        self.system_calls("xdp map items", 2 * entries as u64 + 1).await;
        Ok(text(&dump(&loaded.program.machine.borrow(), number, &loaded.object.btf)))
    }

    async fn system_calls(&self, what: &'static str, number: u64) {
        let (node, thread) = (&self.node, self.host.thread);
        let calls = async |path: &mut _| {
            for _ in 0..number {
                node.system_call(thread, path).await;
            }
        };
        self.host.timed(what, calls).await;
    }
}

fn parsed(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|error| Error::Input(format!("an entry of a map: {error}")))
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("entries are JSON")
}

fn wrong(map: &str, problem: &str) -> Error {
    Error::Input(format!("map {map}: {problem}"))
}

impl From<XdpError> for Error {
    fn from(error: XdpError) -> Error {
        Error::Input(error.to_string())
    }
}
