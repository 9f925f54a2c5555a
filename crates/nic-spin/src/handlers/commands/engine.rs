//! The registers of a cluster's DMA engine, for handlers written for PsPIN. See
//! [`hardware`](nicety_nic_processors::pspin::hardware).

use crate::Card;
use nicety_hpu::TrapKind;
use nicety_nic_processors::commands::codes::Stop;
use nicety_nic_processors::pspin::hardware::engine as register;
use nicety_nic_processors::running::Running;
use std::rc::Rc;

impl Card {
    /// Executes a handler's access to a register of its cluster's engine. Returns the value that a load gets.
    ///
    /// # Errors
    /// The reason for which the handler must stop.
    /// The reason to stop the handler.
    pub(crate) fn access_engine(
        self: &Rc<Card>,
        running: &mut Running,
        register: u32,
        write: Option<u32>,
    ) -> Result<u32, Stop> {
        let cluster = self.handlers.scheduler.cluster_of(running.thread.core);
        let numbers = self.handlers.scheduler.transfers_of(cluster);
        let engine = &mut running.memory.hardware.as_mut().expect("it runs").engine;
        Ok(match (register, write) {
            (register::SOURCE, Some(value)) => store(&mut engine.source, value),
            (register::SOURCE, None) => engine.source,
            (register::DESTINATION, Some(value)) => store(&mut engine.destination, value),
            (register::DESTINATION, None) => engine.destination,
            (register::BYTES, Some(value)) => store(&mut engine.bytes, value),
            (register::BYTES, None) => engine.bytes,
            (register::START, None) => return self.start_transfer(running, cluster),
            (register::DONE, None) => numbers.done(self.sim.now()),
            (register::CONFIGURATION, Some(value)) => {
                store(&mut engine.configuration, value & register::STORED)
            }
            (register::CONFIGURATION, None) => {
                let busy = if numbers.busy(self.sim.now()) { register::BUSY } else { 0 };
                engine.configuration | busy
            }
            (0..register::END, _) => 0,
            _ => {
                return Err(Stop::Trap(TrapKind::CallRefused {
                    call: "an access to the core's registers",
                    why: "there is no such register here; libaxidma.h and hwsched.h have those that handlers use",
                }));
            }
        })
    }

    /// Starts the transfer that the registers describe. Returns its number. A transfer without bytes is not started,
    /// and the number of the next transfer is returned. The bytes are copied now, and the handler's feedback waits
    /// until the end of the transfer.
    fn start_transfer(self: &Rc<Card>, running: &mut Running, cluster: usize) -> Result<u32, Stop> {
        let told = running.memory.hardware.as_ref().expect("it runs").engine;
        let (from, to, bytes) = (told.source, told.destination, told.bytes);
        if bytes == 0 {
            return Ok(self.handlers.scheduler.transfers_of(cluster).next());
        }
        let moved = running.with_space(|space| space.read(from, bytes).map(<[u8]>::to_vec))?;
        self.processors().write_local(running, to, &moved)?;
        let done = self.handlers.scheduler.copy(cluster, bytes.into(), None);
        self.handlers.scheduler.moved(from, bytes.into(), done);
        self.handlers.scheduler.moved(to, bytes.into(), done);
        let commands = running.commands().clone();
        commands.begins();
        let sim = self.sim.clone();
        self.sim.spawn(async move {
            sim.until(done).await;
            commands.ends();
        });
        Ok(self.handlers.scheduler.transfers_of(cluster).start(self.sim.now(), done))
    }
}

fn store(register: &mut u32, value: u32) -> u32 {
    *register = value;
    0
}
