//! The spec of the channels between host and processes.

use nicety_channels::{CardLimits, HostLimits};
use nicety_host::KernelSpec;
use nicety_nic_core::read_kernel;
use nicety_spec::{Ratio, Reader};
use nicety_types::Duration;

/// Costs and limits of the software and the managers between a host's programs and a card's processes.
#[derive(Clone, Copy, Debug)]
pub struct ChannelSpec {
    /// The host's operating system.
    pub kernel: KernelSpec,
    /// The library's work for each call.
    pub library: Duration,
    /// The driver.
    pub driver: DriverSpec,
    /// The card's managers.
    pub managers: ManagerSpec,
    /// Fraction of the DMA transfers that fail.
    pub dma_errors: Ratio,
    /// Maximum number of open channels.
    pub channels: u16,
    /// Maximum number of registered targets.
    pub targets: u16,
    /// Maximum number of concurrent calls of the host's threads.
    pub threads: u16,
    /// Maximum size of a message in bytes.
    pub message: u32,
}

/// CPU costs of the driver.
#[derive(Clone, Copy, Debug)]
pub struct DriverSpec {
    /// Time to write a mailbox and to ring the doorbell.
    pub post: Duration,
    /// Time to set up an indirect call.
    pub indirect: Duration,
    /// Time to build a list of pages.
    pub list: Duration,
    /// Maximum number of retries of a page list.
    pub retries: u8,
}

/// Costs of the card's managers, in cycles.
#[derive(Clone, Copy, Debug)]
pub struct ManagerSpec {
    /// Number of managers for messages to the card.
    pub read: u8,
    /// Number of managers for messages to the host.
    pub write: u8,
    /// Cycles to fetch a mailbox from the host.
    pub fetch: u64,
    /// Cycles to ask a process for the address and size of an indirect message.
    pub ask: u64,
    /// Cycles to move a direct message into a process's transfer registers.
    pub deliver: u64,
    /// Cycles to move a direct message, or the address and size of an indirect message, out of a process's transfer
    /// registers.
    pub collect: u64,
    /// Cycles to write a mailbox to the host.
    pub push: u64,
    /// Cycles to begin the DMA transfer of a page.
    pub dma: u64,
}

impl ChannelSpec {
    /// Returns the limits of the host's state machine.
    pub fn host_limits(&self) -> HostLimits {
        HostLimits {
            channels: self.channels,
            threads: self.threads,
            message_bytes: self.message,
            retries: self.driver.retries,
        }
    }

    /// Returns the limits of the state machine of a card with `contexts` contexts.
    pub fn card_limits(&self, contexts: u16) -> CardLimits {
        CardLimits {
            channels: self.channels,
            targets: self.targets,
            contexts,
            read_managers: self.managers.read,
            write_managers: self.managers.write,
            message_bytes: self.message,
        }
    }
}

/// Reads the sections `kernel`, `library`, `driver`, `managers`, `dma` and `limits`.
pub(super) fn read(reader: &Reader<'_>) -> ChannelSpec {
    let kernel = read_kernel(reader);
    let s = reader.section("library");
    let library = s.time("call", "CPU time of the library for a call");
    let s = reader.section("driver");
    let driver = DriverSpec {
        post: s.time("post", "time to write a mailbox and ring the card's doorbell"),
        indirect: s.time("indirect", "time to set up an indirect call, once for each message"),
        list: s.time("list", "time to build a list of six pages"),
        retries: s.count("retries", 0..=255, "number of times that a failed page list is resent") as u8,
    };
    let s = reader.section("managers");
    let cycles = |key, doc| s.count(key, 0..=10_000_000, doc);
    let managers = ManagerSpec {
        read: s.count("read", 1..=128, "managers that serve messages to the card") as u8,
        write: s.count("write", 1..=128, "managers that serve messages to the host") as u8,
        fetch: cycles("fetch", "cycles to start the fetch of a mailbox from the host"),
        ask: cycles(
            "ask",
            "cycles to ask a process for the address and size of an indirect message to the card",
        ),
        deliver: cycles("deliver", "cycles to move a direct message into a process's transfer registers"),
        collect: cycles(
            "collect",
            "cycles to move a direct message, or the address and size of an indirect message, out of a process's transfer registers",
        ),
        push: cycles("push", "cycles to start the write of a mailbox to the host"),
        dma: cycles("dma", "cycles to start the DMA of a page"),
    };
    let s = reader.section("dma");
    let dma_errors = s.ratio("errors", Ratio::ZERO..=Ratio::ONE, "the fraction of DMA transfers that fail");
    let s = reader.section("limits");
    let count = |key, doc| s.count(key, 1..=65_535, doc) as u16;
    ChannelSpec {
        kernel,
        library,
        driver,
        managers,
        dma_errors,
        channels: count("channels", "channels that are open at a time"),
        targets: count("targets", "targets that processes of the card may register"),
        threads: count("threads", "calls of the host's threads that may be pending at a time"),
        message: s.size("message", 4096..=u64::from(u32::MAX), "maximum size of a message") as u32,
    }
}
