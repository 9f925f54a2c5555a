//! The stages of a message that only this design has.

nicety_types::stages! {
    /// All of them.
    pub const STAGES;

    /// A socket's call: its checks, its queues.
    pub const SOCKET = 47, "socket";
    /// Bytes between kernel and user.
    pub const COPY = 48, "socket copy";
    /// The protocols on the way out.
    pub const STACK_OUT = 55, "stack, out";
    /// A timer of TCP runs: until a segment is sent again, a probe is, or an acknowledgement that was delayed.
    pub const TCP_TIMER = 56, "tcp timer";
    /// The driver makes a descriptor of a frame, and rings the doorbell.
    pub const DRIVER_OUT = 57, "driver, out";
    /// Waiting for a free descriptor of the transmit ring.
    pub const RING_QUEUED = 58, "transmit ring, queued";
    /// The card fetches descriptors from the transmit ring.
    pub const DESCRIPTOR = 120, "transmit descriptors";
    /// Waiting until the card fetches descriptors.
    pub const DESCRIPTOR_QUEUED = 130, "transmit descriptors, queued";
    /// A frame waits on the card for others to be joined with.
    pub const JOINING = 389, "joining";
    /// The card writes a frame's completion to host memory.
    pub const COMPLETION = 395, "completion";
    /// A frame in host memory waits for the interrupt that tells of it, which the card delays.
    pub const COALESCED = 400, "coalesced";
    /// From the card's interrupt to its handler, and what the handler does before it takes frames.
    pub const HANDLER = 402, "interrupt handler";
    /// The driver takes a frame.
    pub const DRIVER_IN = 404, "driver, in";
    /// A frame waits for the kernel thread of its soft ring.
    pub const SOFT_RING = 406, "soft ring, queued";
    /// The protocols on the way in.
    pub const STACK_IN = 408, "stack, in";
    /// Bytes wait in the socket for more, or until their time is over.
    pub const PUSH_TIMER = 426, "push timer";
    /// Bytes wait in the socket for their program.
    pub const SOCKET_QUEUED = 428, "socket, queued";
}
