//! The states of a connection (RFC 9293, 3.3.2).

/// LISTEN is not a state here: a listener is no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    SynSent,
    SynReceived,
    Established,
    /// This end has closed, and its FIN is not acknowledged.
    FinWait1,
    /// This end has closed, and its FIN is acknowledged.
    FinWait2,
    /// The peer has closed.
    CloseWait,
    /// Both ends have closed. The peer's FIN arrived before the acknowledgement of this end's FIN.
    Closing,
    /// The peer closed first. This end has closed too, and its FIN is not acknowledged.
    LastAck,
    TimeWait,
    Closed,
}

impl State {
    /// Whether both initial sequence numbers are known and acknowledged, and the connection has not ended.
    pub fn is_synchronized(self) -> bool {
        !matches!(self, State::SynSent | State::SynReceived | State::Closed)
    }

    /// Whether the handshake is in progress.
    pub fn is_handshake(self) -> bool {
        matches!(self, State::SynSent | State::SynReceived)
    }

    /// Whether the peer's FIN has arrived.
    pub fn has_finished(self) -> bool {
        matches!(self, State::CloseWait | State::Closing | State::LastAck | State::TimeWait)
    }

    /// Whether both ends have closed. A reset in such a state loses no data.
    pub fn is_ending(self) -> bool {
        matches!(self, State::Closing | State::LastAck | State::TimeWait)
    }

    /// Returns the state after this end has closed.
    pub fn shut(self) -> State {
        match self {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        }
    }

    /// Returns the state after the peer's FIN has arrived.
    pub fn finished(self) -> State {
        match self {
            State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => State::TimeWait,
            other => other,
        }
    }

    /// Returns the state after the acknowledgement of this end's FIN.
    pub fn fin_acknowledged(self) -> State {
        match self {
            State::FinWait1 => State::FinWait2,
            State::Closing => State::TimeWait,
            State::LastAck => State::Closed,
            other => other,
        }
    }
}
