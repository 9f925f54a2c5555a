//! The stages of a message that are specific to this design.

nicety_types::stages! {
    /// All stages.
    pub const STAGES;

    /// A call on a socket: its checks and queues.
    pub const SOCKET = 47, "socket";
    /// The copy of bytes between kernel and user.
    pub const COPY = 48, "socket copy";
    /// The protocols for outgoing frames.
    pub const STACK_OUT = 55, "stack, out";
    /// A TCP timer, until it sends a retransmission, a probe or a delayed acknowledgement.
    pub const TCP_TIMER = 56, "tcp timer";
    /// The driver writes a descriptor for a frame, and rings the doorbell.
    pub const DRIVER_OUT = 57, "driver, out";
    /// A frame waits for a free descriptor of the transmit ring.
    pub const RING_QUEUED = 58, "transmit ring, queued";
    /// The card fetches descriptors from the transmit ring.
    pub const DESCRIPTOR = 120, "transmit descriptors";
    /// A descriptor waits until the card fetches it.
    pub const DESCRIPTOR_QUEUED = 130, "transmit descriptors, queued";
    /// A frame waits on the card to be joined with others.
    pub const JOINING = 389, "joining";
    /// The card writes a frame's completion to host memory.
    pub const COMPLETION = 395, "completion";
    /// A frame in host memory waits for its interrupt, which the card delays.
    pub const COALESCED = 400, "coalesced";
    /// The time from the card's interrupt to its handler, and the handler's work before it takes frames.
    pub const HANDLER = 402, "interrupt handler";
    /// The driver takes a frame.
    pub const DRIVER_IN = 404, "driver, in";
    /// An XDP program in the driver, and the driver's work for its verdict.
    pub const XDP = 405, "xdp";
    /// A frame waits for the kernel thread of its soft ring.
    pub const SOFT_RING = 406, "soft ring, queued";
    /// The protocols for incoming frames.
    pub const STACK_IN = 408, "stack, in";
    /// Bytes wait in the socket for more bytes, or until the push time is over.
    pub const PUSH_TIMER = 426, "push timer";
    /// Bytes wait in the socket until their program reads them.
    pub const SOCKET_QUEUED = 428, "socket, queued";
}
