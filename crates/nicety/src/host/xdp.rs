//! XDP programs in the driver of a host's card: [`Xdp`], on cards below the kernel's protocols.

use super::Host;
use crate::Error;
use nicety_ebpf::report::maps::{Dumped, dump, find, put, remove};
use nicety_ebpf::report::prepare;
use nicety_ebpf::{Errno, Limits, Machine, MapKind, Object};
use nicety_nic_core::parts::{DueTime, Offered};
use nicety_nic_ethernet::{HostWork, Node, Xdp as Driver, XdpError, XdpMode, XdpProgram, XskOptions};
use nicety_nic_processors::Busy;
use nicety_types::{Duration, NodeId};
use serde::Serialize;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The interface to the XDP programs of a host's driver, for one thread of the host's program. Cheap to clone.
#[derive(Clone)]
pub struct Xdp {
    host: Host,
    node: Rc<Node>,
}

/// A loaded XDP program with its maps. The maps persist when the program is detached.
#[derive(Clone, Debug)]
pub struct LoadedXdp {
    object: Rc<Object>,
    program: XdpProgram,
}

impl Host {
    /// Returns the interface to the XDP programs of this host's driver.
    ///
    /// # Errors
    /// When the card is of another design, or its spec lacks the costs of XDP.
    pub fn xdp(&self) -> Result<Xdp, Error> {
        let node = self.inner.card.of::<Node>()?;
        match node.spec().xdp {
            Some(_) => Ok(Xdp { host: self.clone(), node }),
            None => Err(XdpError::NoCosts.into()),
        }
    }
}

impl Xdp {
    /// Loads the program `name` of an object, or its only program if `name` is `None`. Fills the program's maps with
    /// entries in JSON. This is set-up: it takes no virtual time.
    ///
    /// # Errors
    /// When the object, the program or the entries are invalid.
    pub fn load(
        &self,
        object: &Object,
        name: Option<&str>,
        entries: &[(String, String)],
        mode: XdpMode,
    ) -> Result<LoadedXdp, Error> {
        let input = |error: &dyn std::fmt::Display| Error::Input(error.to_string());
        let entry = object.device_program(name).map_err(|error| input(&error))?;
        let limits = Limits { cpus: self.node.spec().cpus as u32, ..Limits::default() };
        let mut machine = Machine::new(object, limits).map_err(|error| input(&error))?;
        let program = machine.add(object, entry).map_err(|error| input(&error))?;
        prepare(object, &mut machine, entries).map_err(|error| input(&error))?;
        let machine = Rc::new(RefCell::new(machine));
        let program = XdpProgram::new(&entry.name, machine, program, (entry.fragments, mode));
        Ok(LoadedXdp { object: Rc::new(object.clone()), program })
    }

    /// Attaches a program, or replaces the attached program. This is set-up: it takes no virtual time.
    ///
    /// # Errors
    /// When the host cannot run the program.
    pub fn install(&self, loaded: &LoadedXdp) -> Result<(), Error> {
        Ok(self.node.attach_xdp(loaded.program.clone())?)
    }

    /// Binds an AF_XDP socket to an entry of a map and to a receive queue. This is set-up: it takes no virtual time.
    ///
    /// # Errors
    /// When the map does not exist, or the driver cannot bind the socket.
    pub fn bind(&self, loaded: &LoadedXdp, map: &str, key: u32, options: XskOptions) -> Result<(), Error> {
        let number = loaded.map(map)?;
        let bound = loaded.program.bind((number, key), options, self.node.spec());
        bound.map_err(|error| wrong(map, &error.to_string()))
    }

    /// The driver's attached program and its counters.
    pub fn driver(&self) -> &Driver {
        self.node.xdp()
    }

    /// CPU time of all CPUs of the host so far.
    pub fn cpu_time(&self) -> Duration {
        Duration::from_ps(self.node.report().busy_ps)
    }

    /// Number of frames dropped because the host had no free receive buffer, or no buffer of their length.
    pub fn lost(&self) -> u64 {
        let card = self.node.report().card;
        card.ring_full + card.too_long
    }

    /// The work that each CPU or soft ring of the host has done for frames so far.
    pub fn host_work(&self) -> Vec<HostWork> {
        self.node.host_work()
    }

    /// The busy time of each part of the card so far.
    pub fn busy(&self) -> Busy {
        self.node.busy()
    }

    /// Time of the card's fetches of transmit descriptors so far. A fetch of few descriptors counts as its part.
    pub fn fetching(&self) -> Duration {
        self.node.fetching()
    }

    /// Starts separate counts for the frames of a generator. From then on, frames of programs to unknown stations go to
    /// this generator.
    pub fn watch_generator(&self, node: NodeId) {
        self.node.watch_generator(node);
    }

    /// The time for which a frame of `bytes` bytes occupies the card's link.
    pub fn wire_interval(&self, bytes: u64) -> Duration {
        self.node.wire_interval(bytes)
    }

    /// Makes the card generate frames; see [`Node::offer`].
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
    /// Returns the names of the program and of its maps, as JSON.
    pub(crate) fn names(&self) -> String {
        let machine = self.program.machine.borrow();
        let maps: Vec<&str> = machine.maps.iter().map(|map| map.definition.name.as_str()).collect();
        json!({"program": self.program.name, "maps": maps}).to_string()
    }

    /// Returns the present entries of a map. Takes no virtual time.
    ///
    /// # Errors
    /// When the map does not exist.
    pub fn entries(&self, map: &str) -> Result<Vec<Dumped>, Error> {
        Ok(dump(&self.program.machine.borrow(), self.map(map)?, &self.object.btf))
    }

    /// Returns the number of the map with this name.
    fn map(&self, name: &str) -> Result<usize, Error> {
        let machine = self.program.machine.borrow();
        machine.map_named(name).ok_or_else(|| {
            let names: Vec<&str> = machine.maps.iter().map(|map| map.definition.name.as_str()).collect();
            wrong(name, &format!("the object has no such map; it has {}", names.join(", ")))
        })
    }
}

impl Xdp {
    /// Attaches a program by a system call, or replaces the attached program.
    ///
    /// # Errors
    /// When the host cannot run the program.
    pub async fn attach(&self, loaded: &LoadedXdp) -> Result<(), Error> {
        self.system_calls("xdp attach", 1).await;
        self.install(loaded)
    }

    /// Detaches the attached program by a system call. Returns whether a program was attached.
    ///
    /// # Errors
    /// The call has no errors at present.
    pub async fn detach(&self) -> Result<bool, Error> {
        self.system_calls("xdp detach", 1).await;
        Ok(self.node.xdp().detach())
    }

    /// Looks up an entry of a map by a system call. Returns the entry as JSON, or `null` if there is none.
    ///
    /// # Errors
    /// When the map does not exist, or the key is invalid.
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
    /// When the map does not exist, or does not accept the entry.
    pub async fn set(&self, loaded: &LoadedXdp, map: &str, entry: &str) -> Result<(), Error> {
        let (number, entry) = (loaded.map(map)?, parsed(entry)?);
        self.system_calls("xdp map update", 1).await;
        let mut machine = loaded.program.machine.borrow_mut();
        if machine.maps[number].definition.is_constant() {
            return Err(wrong(map, "a loader freezes constants; give them when the program is loaded"));
        }
        let mut program = |machine: &mut Machine, name: &str| {
            let entry = loaded.object.program(Some(name)).map_err(|error| error.to_string())?;
            machine.add(&loaded.object, entry).map_err(|error| error.to_string())
        };
        put(&mut machine, number, &loaded.object.btf, &entry, &mut program)
            .map_err(|problem| wrong(map, &problem))
    }

    /// Removes an entry of a map by a system call. Returns whether the entry existed.
    ///
    /// # Errors
    /// When the map does not exist, its entries cannot be removed, or the key is invalid.
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

    /// Waits for records of a ring buffer, or samples of perf events, and takes them. It costs a system call, and a wake-up
    /// if there are no records yet. Reads of the records cost nothing here.
    ///
    /// # Errors
    /// When the map does not exist, or is of a type without records.
    pub async fn records(&self, loaded: &LoadedXdp, map: &str) -> Result<Vec<Vec<u8>>, Error> {
        let number = loaded.map(map)?;
        let kind = loaded.program.machine.borrow().maps[number].kind;
        if !matches!(kind, MapKind::Ring | MapKind::PerfEvents) {
            return Err(wrong(map, "it has no records; name a ring buffer or perf events"));
        }
        let (node, thread) = (&self.node, self.host.thread);
        let wait = async |path: &mut _| node.xdp_records(thread, &loaded.program, (number, map), path).await;
        Ok(self.host.timed("xdp records", wait).await)
    }

    /// Takes at most `most` frames of an AF_XDP socket. The frames of this thread's last call give their buffers back, as they do at
    /// its end. It waits by a system call while there are none. Reads of the frames cost nothing here.
    ///
    /// # Errors
    /// When the map does not exist, or has no socket at the key.
    pub async fn frames(
        &self,
        loaded: &LoadedXdp,
        (map, key): (&str, u32),
        most: usize,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let entry = (loaded.map(map)?, key);
        if loaded.program.buffers_of(entry).is_none() {
            return Err(wrong(map, &format!("key {key} has no socket; bind one first")));
        }
        let (node, thread) = (&self.node, self.host.thread);
        let reader = self.host.inner.xsk_readers.borrow_mut().entry(thread).or_default().clone();
        let wait = async |path: &mut _| {
            node.xdp_frames((thread, &reader), &loaded.program, (entry, most), path).await
        };
        let frames = self.host.timed("xdp frames", wait).await;
        Ok(frames.iter().map(|frame| frame.to_vec()).collect())
    }

    /// Returns all entries of a map as JSON. For each entry, one system call reads the next key, and another its value.
    /// A last system call detects the end.
    ///
    /// # Errors
    /// When the map does not exist.
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
