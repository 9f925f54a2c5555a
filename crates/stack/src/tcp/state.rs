//! The states of a connection (RFC 9293, 3.3.2).

/// LISTEN is not among them: a listener is no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    SynSent,
    SynReceived,
    Established,
    /// This end has closed, and its FIN is not acknowledged.
    FinWait1,
    /// This end has closed, and the peer knows it.
    FinWait2,
    /// The peer has closed.
    CloseWait,
    /// Both have closed, and neither FIN was acknowledged before the other came.
    Closing,
    /// The peer has closed first, and this end's FIN is not acknowledged.
    LastAck,
    TimeWait,
    Closed,
}

impl State {
    /// Whether both ends' first sequence numbers are known and acknowledged, and the connection is not over.
    pub fn is_synchronized(self) -> bool {
        !matches!(self, State::SynSent | State::SynReceived | State::Closed)
    }

    /// Whether the handshake goes on.
    pub fn is_handshake(self) -> bool {
        matches!(self, State::SynSent | State::SynReceived)
    }

    /// Whether the peer's end has come.
    pub fn has_finished(self) -> bool {
        matches!(self, State::CloseWait | State::Closing | State::LastAck | State::TimeWait)
    }

    /// Whether both ends have closed: a reset is no loss then.
    pub fn is_ending(self) -> bool {
        matches!(self, State::Closing | State::LastAck | State::TimeWait)
    }

    /// After this end has closed.
    pub fn shut(self) -> State {
        match self {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        }
    }

    /// After the peer's FIN.
    pub fn finished(self) -> State {
        match self {
            State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => State::TimeWait,
            other => other,
        }
    }

    /// After this end's FIN was acknowledged.
    pub fn fin_acknowledged(self) -> State {
        match self {
            State::FinWait1 => State::FinWait2,
            State::Closing => State::TimeWait,
            State::LastAck => State::Closed,
            other => other,
        }
    }
}
