//! Commands to a Portals card.

use super::calls::{calls, setups};
use super::{Outcome, Part};
use nicety_portals::{
    CtEvent, CtHandle, EqHandle, List, Md, MdHandle, MdOptions, Me, MeHandle, PtOptions, Request, SearchOp,
    StatusRegister,
};
use nicety_types::Duration;

/// The trigger of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// The counter.
    pub ct: CtHandle,
    /// The number of successes at which the counter triggers.
    pub threshold: u64,
}

setups! {
    /// The set-up functions of [`Portals`](crate::Portals), under the same names.
    enum PortalsSetup by set_up_portals(program) portals = program.0.host.portals()?;

    NiLimits => portals.ni_limits();
    NiStatus { register: StatusRegister } => portals.ni_status(register);
    CtAlloc => portals.ct_alloc()?.to_bits();
    CtFree { ct: CtHandle } => portals.ct_free(ct)?;
    CtGet { ct: CtHandle } => portals.ct_value(ct)?;
    EqAlloc { depth: u32 } => portals.eq_alloc(depth)?.to_bits();
    EqFree { eq: EqHandle } => portals.eq_free(eq)?;
    PtAlloc { pt: Option<u32>, eq: Option<EqHandle>, options: PtOptions } => portals.pt_alloc_with(pt, eq, options)?;
    PtFree { pt: u32 } => portals.pt_free(pt)?;
    MdBind { part: Part, options: MdOptions, eq: Option<EqHandle>, ct: Option<CtHandle> } => {
        let buffer = program.part(part)?;
        portals.md_bind(Md { start: buffer.address(), length: buffer.len(), options, eq, ct })?.to_bits()
    };
    MdRelease { md: MdHandle } => portals.md_release(md)?;
}

calls! {
    /// The calls of [`Portals`](crate::Portals), under the same names.
    enum PortalsCall by portals(program, host) portals = host.portals()?;

    /// Posts an operation. With a trigger, the operation starts when the counter reaches the threshold.
    Post { request: Request, trigger: Option<Trigger> } => match trigger {
        None => portals.post(&request).await?,
        Some(Trigger { ct, threshold }) => portals.triggered(request, ct, threshold).await?,
    };
    CtInc { ct: CtHandle, by: CtEvent, trigger: Option<Trigger> } => match trigger {
        None => portals.ct_inc(ct, by).await?,
        Some(on) => portals.triggered_ct_inc(ct, by, on.ct, on.threshold).await?,
    };
    CtSet { ct: CtHandle, value: CtEvent, trigger: Option<Trigger> } => match trigger {
        None => portals.ct_set(ct, value).await?,
        Some(on) => portals.triggered_ct_set(ct, value, on.ct, on.threshold).await?,
    };
    CtCancelTriggered { ct: CtHandle } => portals.ct_cancel_triggered(ct).await?;
    CtWait { ct: CtHandle, threshold: u64 } => portals.ct_wait(ct, threshold).await?.success;
    CtPoll { counters: Vec<(CtHandle, u64)>, limit: Option<Duration> } => {
        let reached = portals.ct_poll(&counters, limit).await?;
        Outcome::Reached(reached.map(|(index, value)| (counters[index].0, value)))
    };
    EqGet { eq: EqHandle } => portals.eq_get(eq).await?;
    EqWait { eq: EqHandle } => portals.eq_wait(eq, |_| true, || "an event in its queue".to_string()).await?;
    EqPoll { eqs: Vec<EqHandle>, limit: Option<Duration> } => {
        let found = portals.eq_poll(&eqs, limit).await?;
        Outcome::Polled(found.map(|(index, event)| (eqs[index], event)))
    };
    PtEnable { pt: u32, enabled: bool } => portals.pt_enable(pt, enabled).await?;
    /// Appends a match entry. `me` describes the entry, except for its memory, which is `part`.
    MeAppend {
        part: Part,
        pt: u32,
        me: Me,
        list: List,
        /// Whether to wait until the card has appended the entry. If so, the outcome is its handle.
        wait: bool,
    } => {
        let buffer = program.part(part)?;
        let me = Me { start: buffer.address(), length: buffer.len(), ..me };
        let appending = portals.me_append(pt, me, list).await?;
        if wait { Outcome::Word(portals.appended(appending).await?.to_bits()) } else { Outcome::Nothing }
    };
    MeUnlink { me: MeHandle } => portals.me_unlink(me).await?;
    MeSearch { pt: u32, me: Me, op: SearchOp } => portals.me_search(pt, me, op).await?;
    AtomicSync => portals.atomic_sync().await?;
}
