//! Commands of handlers written for PsPIN. A handler issues a command through registers of its core.
//!
//! A command reads its bytes when it is issued. Bytes from the host are in a handler's memory after the handler has
//! waited for the command, has tested it, or has ended.

use crate::Card;
use crate::handlers::commands::engines::{Command, Sending};
use nicety_hpu::{DeviceAccess, TrapKind};
use nicety_nic_processors::commands::codes::{Stop, number};
use nicety_nic_processors::commands::transfers::Arriving;
use nicety_nic_processors::pspin::arbiter::Engine;
use nicety_nic_processors::pspin::hardware::{Task, register};
use nicety_nic_processors::ready::Slots;
use nicety_nic_processors::running::Running;
use nicety_nic_processors::stages;
use nicety_nic_processors::{CommandsSpec, pspin_map as map};
use nicety_portals::Header;
use nicety_types::{NodeId, Payload};
use std::rc::Rc;

/// The kinds of commands.
const HOST_DMA: u32 = 0;
const NIC_SEND: u32 = 1;
const HOST_WRITE: u32 = 2;

/// Maximum size in bytes of a write to host memory from registers.
const DIRECT: u32 = 8;

const SERVED: &str =
    "the card serves printf, number 0x150, and with hpu.interface = \"fpspin\" cycles(), number 1";

/// Returns the stop of a handler after a refused command, with the reason.
fn refused(call: &'static str, why: &'static str) -> Stop {
    Stop::Trap(TrapKind::CallRefused { call, why })
}

impl Card {
    /// Writes the task of a run to the registers of its core. Returns its start address and arguments.
    pub(crate) fn begin_task(&self, running: &mut Running, handler: u32, slots: Slots) -> (u32, [u32; 3]) {
        let (queue, kept) = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(running.place);
            let bytes = running.memory.bytes();
            let kept = running.packet.map_or(0, |offset| incoming.kept(offset, bytes));
            (incoming.queue, kept as u32)
        };
        let entry = self.entry_of(running);
        let attachment = running.attachment.clone();
        let pspin = attachment.program.handlers.pspin.as_ref().expect("a card of PsPIN runs its programs");
        let state = (attachment.state_address(), attachment.state.bytes.borrow().len() as u32);
        let task = Task {
            memory: pspin.memory.unwrap_or(state),
            packet_bytes: kept,
            slots,
            host: (entry.start, u32::try_from(entry.length).unwrap_or(u32::MAX)),
            home: (queue % self.handlers.scheduler.number_of_clusters()) as u32,
            flow: (queue % u64::from(self.spec.hpu.contexts)) as u32,
        };
        let mut state = running.thread.state.borrow_mut();
        let mut hardware = state.hardware.take().expect("a thread has it between its handlers");
        hardware.begin(&task, running.memory.packet.as_deref().unwrap_or_default());
        let arguments = hardware.arguments(&mut state.stack);
        running.memory.hardware = Some(hardware);
        (pspin.dispatch, [arguments, handler, 0])
    }

    /// Executes a handler's access to a register of its core. Returns the value that a load gets. Returns `None` if
    /// this access ends the handler.
    ///
    /// # Errors
    /// The reason for which the handler must stop.
    pub(crate) async fn access_register(
        self: &Rc<Card>,
        running: &mut Running,
        access: DeviceAccess,
    ) -> Result<Option<u32>, Stop> {
        let thread = running.thread.clone();
        let Some(register) = access.address.checked_sub(map::HARDWARE) else {
            let register = access.address - map::ENGINE;
            return self.access_engine(running, register, access.write).map(Some);
        };
        match (register, access.write) {
            (register::DOORBELL, Some(_)) => return Ok(None),
            (register::ERROR, _) => {}
            (register::ISSUE, None) => return self.issue(running).await.map(|place| Some(place as u32)),
            (register::WAIT, Some(handle)) => {
                if thread.commands().is_done(handle).is_none() {
                    return Err(refused(
                        "spin_cmd_wait",
                        "there is no such handle; wait for one that a command has given",
                    ));
                }
                thread.commands().wait(handle).await;
                self.bytes_arrive(running)?;
            }
            (register::TEST, Some(handle)) => thread.commands().tested.set(handle),
            (register::TEST, None) => {
                let Some(done) = thread.commands().is_done(thread.commands().tested.get()) else {
                    return Err(refused(
                        "spin_cmd_test",
                        "there is no such handle; test one that a command has given",
                    ));
                };
                self.bytes_arrive(running)?;
                return Ok(Some(done.into()));
            }
            (0, None) => {
                return Err(refused(
                    "a load of the task's register",
                    "the runtime waits for tasks, and a handler has one",
                ));
            }
            _ => {
                return Err(refused(
                    "an access to the core's registers",
                    "there is no such register here; hwsched.h has those that handlers use",
                ));
            }
        }
        Ok(Some(0))
    }

    /// Writes bytes that have arrived from the host to the handler's memory.
    fn bytes_arrive(&self, running: &mut Running) -> Result<(), Stop> {
        let arriving = running.commands().arriving.take();
        for Arriving { local, bytes } in arriving {
            let len = bytes.len();
            let bytes = bytes.into_buffer().map_err(|_| Stop::PhantomMemory { len })?;
            self.processors().write_local(running, local, &bytes)?;
        }
        Ok(())
    }

    /// Issues the command in the registers. Returns its handle.
    async fn issue(self: &Rc<Card>, running: &mut Running) -> Result<usize, Stop> {
        let [kind, words @ ..] = running.memory.hardware.as_ref().expect("it runs").command();
        let spec = self.spec.hpu.pspin.expect("a card of PsPIN");
        let event = kind & 1 == 1;
        match kind >> 1 {
            NIC_SEND => self.send_packet(running, &spec, words).await,
            HOST_DMA => self.host_dma(running, &spec, words, event).await,
            HOST_WRITE => {
                let [low, high, bytes, data_low, data_high, ..] = words;
                let bytes = bytes >> 1;
                if bytes == 0 || bytes > DIRECT {
                    return Err(refused("spin_write_to_host", "it writes 1 to 8 bytes"));
                }
                let mut data = [0; DIRECT as usize];
                data[..4].copy_from_slice(&data_low.to_le_bytes());
                data[4..].copy_from_slice(&data_high.to_le_bytes());
                let payload = Payload::copy_of(&data[..bytes as usize]);
                let host = self.host_address(running, "spin_write_to_host", [low, high, bytes])?;
                let counter = event.then(|| self.entry_of(running).ct).flatten();
                let command = Command { counter, ..self.begin_command(running, Engine::HostDirect).await };
                let handle = command.handle;
                self.sim.spawn(self.clone().write_directly(command, host, payload, spec));
                Ok(handle)
            }
            _ => Err(refused(
                "a command",
                "its kind is unknown: 0 for DMA with the host, 2 for a packet, 4 for a write out of \
                 registers, plus 1 for an event",
            )),
        }
    }

    /// Sends a packet to the sender of the handler's message, or to the target rank of a put.
    async fn send_packet(
        self: &Rc<Card>,
        running: &mut Running,
        spec: &CommandsSpec,
        [destination, flow, low, high, length, ..]: [u32; 7],
    ) -> Result<usize, Stop> {
        let call = if flow == 0 { "spin_send_packet" } else { "spin_rdma_put" };
        if high != 0 {
            return Err(refused(call, "its bytes are in the card's memory; addresses there have 32 bits"));
        }
        // A raw send is one packet. A put becomes several packets if necessary, each with a header.
        let most = match flow {
            0 if u64::from(length) > self.spec.packet_payload => {
                return Err(refused(
                    call,
                    "it is longer than the card's packets (packet.payload); send several packets",
                ));
            }
            0 => self.spec.packet_payload,
            _ => self.spec.packet_payload.saturating_sub(spec.put_header).max(1),
        };
        let (of, header) = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(running.place);
            (incoming.message, incoming.header)
        };
        let target = match flow {
            0 => of.source,
            _ if destination < self.nodes => NodeId(destination),
            _ => return Err(refused(call, "its destination is no rank of this network")),
        };
        let payload = self.processors().take_local(running, low, length)?;
        let header = Header {
            remote_offset: running.packet.unwrap_or(0),
            hdr_data: header.hdr_data,
            ..Header::put(self.node, target, header.pt, header.match_bits, length.into())
        };
        let command = self.begin_command(running, Engine::Outbound).await;
        let (handle, sending) = (command.handle, Sending { of, header, payload, low, most });
        self.sim.spawn(self.clone().send_packets(command, sending, *spec));
        Ok(handle)
    }

    /// Takes a place for a command to an engine.
    async fn begin_command(self: &Rc<Card>, running: &mut Running, engine: Engine) -> Command {
        let (thread, issued) = (running.thread.clone(), running.commands().clone());
        let handle = thread.commands().take(&issued).await;
        running.path.advance(stages::HANDLER, self.sim.now());
        let ticket = self.handlers.scheduler.engines().push(thread.core, engine as usize, None);
        let (message, path) = (running.message, running.path.clone());
        Command { thread, issued, handle, ticket, message, path, counter: None }
    }

    /// Returns the host address of a command. All of its bytes must be in the match entry's memory or in the handlers'
    /// own region of host memory.
    fn host_address(
        &self,
        running: &Running,
        call: &'static str,
        [low, high, length]: [u32; 3],
    ) -> Result<u64, Stop> {
        let address = u64::from(low) | u64::from(high) << 32;
        let entry = self.entry_of(running);
        let regions = [Some((entry.start, entry.length)), running.attachment.handler_memory];
        let inside = |(start, size): (u64, u64)| {
            address >= start && address.checked_add(length.into()).is_some_and(|end| end <= start + size)
        };
        match regions.into_iter().flatten().any(inside) {
            true => Ok(address),
            false => Err(refused(
                call,
                "its host memory is outside that of the task (host_mem) and of the handlers",
            )),
        }
    }

    /// Issues a DMA command between the card's memory and host memory. Returns its handle.
    async fn host_dma(
        self: &Rc<Card>,
        running: &mut Running,
        spec: &CommandsSpec,
        [low, high, local, length, to_host, ..]: [u32; 7],
        event: bool,
    ) -> Result<usize, Stop> {
        let call = if to_host == 1 { "spin_dma_to_host" } else { "spin_dma_from_host" };
        let host = self.host_address(running, call, [low, high, length])?;
        let counter = event.then(|| self.entry_of(running).ct).flatten();
        if to_host == 1 {
            let payload = self.processors().take_local(running, local, length)?;
            let command = Command { counter, ..self.begin_command(running, Engine::HostDma).await };
            let handle = command.handle;
            self.sim.spawn(self.clone().copy_to_host(command, (local, host), payload, *spec));
            return Ok(handle);
        }
        if length > 0 {
            // A wrong address stops the handler now instead of when the bytes return.
            running.with_space(|space| space.write(local, length).map(|_| ()))?;
        }
        let command = Command { counter, ..self.begin_command(running, Engine::HostDma).await };
        let handle = command.handle;
        self.sim.spawn(self.clone().copy_from_host(command, (host, local), length.into(), *spec));
        Ok(handle)
    }

    /// Executes a handler's call that uses no registers of its core: `printf`, or FPsPIN's `cycles`.
    pub(crate) async fn runtime_call(
        self: &Rc<Card>,
        running: &mut Running,
        [format, values, _, _, _, _, _, number]: [u32; 8],
    ) -> Result<u32, Stop> {
        let cycle_call = self.spec.hpu.pspin.and_then(|commands| commands.cycle_call);
        match (number, cycle_call) {
            (number::PRINTF, _) => Ok(self.processors().print(running, format, values)?),
            (number::FPSPIN_CYCLES, Some(took)) => {
                // FPsPIN's cycle counter counts from the reset on, like `time` here. The runtime reads it half-way
                // through the call.
                running.busy += took;
                Ok((running.thread.state.borrow().context.time() + took / 2) as u32)
            }
            _ => Err(TrapKind::UnknownCall { number, served: SERVED }.into()),
        }
    }
}
