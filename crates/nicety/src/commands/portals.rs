//! Commands to a Portals card.

use super::{Carried, Outcome, Part, Program, nothing};
use crate::{Error, Host};
use nicety_portals::{
    CtEvent, CtHandle, EqHandle, List, Md, MdHandle, MdOptions, Me, MeHandle, PtOptions, Request, SearchOp,
    StatusRegister,
};
use nicety_types::Duration;

/// A host's resources on its card: [`Portals`](crate::Portals)'s functions, under the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the functions and arguments of `Portals`, under the same names")]
pub enum PortalsSetup {
    NiLimits,
    NiStatus { register: StatusRegister },
    CtAlloc,
    CtFree { ct: CtHandle },
    CtGet { ct: CtHandle },
    EqAlloc { depth: u32 },
    EqFree { eq: EqHandle },
    PtAlloc { pt: Option<u32>, eq: Option<EqHandle>, options: PtOptions },
    PtFree { pt: u32 },
    MdBind { part: Part, options: MdOptions, eq: Option<EqHandle>, ct: Option<CtHandle> },
    MdRelease { md: MdHandle },
}

/// [`Portals`](crate::Portals)'s calls, under the same names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the calls and arguments of `Portals`, under the same names")]
pub enum PortalsCall {
    /// An operation, posted now or triggered by a counter.
    Post {
        request: Request,
        trigger: Option<Trigger>,
    },
    CtInc {
        ct: CtHandle,
        by: CtEvent,
        trigger: Option<Trigger>,
    },
    CtSet {
        ct: CtHandle,
        value: CtEvent,
        trigger: Option<Trigger>,
    },
    CtCancelTriggered {
        ct: CtHandle,
    },
    CtWait {
        ct: CtHandle,
        threshold: u64,
    },
    CtPoll {
        counters: Vec<(CtHandle, u64)>,
        limit: Option<Duration>,
    },
    EqGet {
        eq: EqHandle,
    },
    EqWait {
        eq: EqHandle,
    },
    EqPoll {
        eqs: Vec<EqHandle>,
        limit: Option<Duration>,
    },
    PtEnable {
        pt: u32,
        enabled: bool,
    },
    /// Appends a match entry. `me` is the entry without its memory, which is `part`.
    MeAppend {
        part: Part,
        pt: u32,
        me: Me,
        list: List,
        /// Whether to wait until the card has appended it. The outcome is then its handle.
        wait: bool,
    },
    MeUnlink {
        me: MeHandle,
    },
    MeSearch {
        pt: u32,
        me: Me,
        op: SearchOp,
    },
    AtomicSync,
}

/// The trigger of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// The counter.
    pub ct: CtHandle,
    /// The threshold of its successes.
    pub threshold: u64,
}

impl Program {
    pub(super) fn set_up_portals(&self, setup: PortalsSetup) -> Result<Outcome, Error> {
        let portals = self.0.host.portals()?;
        match setup {
            PortalsSetup::NiLimits => Ok(Outcome::Limits(portals.ni_limits())),
            PortalsSetup::NiStatus { register } => Ok(Outcome::Word(portals.ni_status(register))),
            PortalsSetup::CtAlloc => Ok(Outcome::Word(portals.ct_alloc()?.to_bits())),
            PortalsSetup::CtFree { ct } => portals.ct_free(ct).map(nothing),
            PortalsSetup::CtGet { ct } => Ok(Outcome::Count(portals.ct_get(ct))),
            PortalsSetup::EqAlloc { depth } => Ok(Outcome::Word(portals.eq_alloc(depth)?.to_bits())),
            PortalsSetup::EqFree { eq } => portals.eq_free(eq).map(nothing),
            PortalsSetup::PtAlloc { pt, eq, options } => {
                Ok(Outcome::Word(portals.pt_alloc_with(pt, eq, options)?.into()))
            }
            PortalsSetup::PtFree { pt } => portals.pt_free(pt).map(nothing),
            PortalsSetup::MdBind { part, options, eq, ct } => {
                let buffer = self.part(part)?;
                let md = Md { start: buffer.address(), length: buffer.len(), options, eq, ct };
                Ok(Outcome::Word(portals.md_bind(md)?.to_bits()))
            }
            PortalsSetup::MdRelease { md } => portals.md_release(md).map(nothing),
        }
    }

    pub(super) fn portals<'c>(&'c self, host: &'c Host, call: PortalsCall) -> Carried<'c> {
        match call {
            PortalsCall::Post { request, trigger: None } => {
                Box::pin(async move { host.portals()?.post(&request).await.map(nothing) })
            }
            PortalsCall::Post { request, trigger: Some(Trigger { ct, threshold }) } => {
                Box::pin(async move { host.portals()?.triggered(request, ct, threshold).await.map(nothing) })
            }
            PortalsCall::CtInc { ct, by, trigger: None } => {
                Box::pin(async move { host.portals()?.ct_inc(ct, by).await.map(nothing) })
            }
            PortalsCall::CtInc { ct: target, by, trigger: Some(Trigger { ct, threshold }) } => {
                Box::pin(async move {
                    host.portals()?.triggered_ct_inc(target, by, ct, threshold).await.map(nothing)
                })
            }
            PortalsCall::CtSet { ct, value, trigger: None } => {
                Box::pin(async move { host.portals()?.ct_set(ct, value).await.map(nothing) })
            }
            PortalsCall::CtSet { ct: target, value, trigger: Some(Trigger { ct, threshold }) } => {
                Box::pin(async move {
                    host.portals()?.triggered_ct_set(target, value, ct, threshold).await.map(nothing)
                })
            }
            PortalsCall::CtCancelTriggered { ct } => {
                Box::pin(async move { host.portals()?.ct_cancel_triggered(ct).await.map(nothing) })
            }
            PortalsCall::CtWait { ct, threshold } => {
                Box::pin(
                    async move { Ok(Outcome::Word(host.portals()?.ct_wait(ct, threshold).await?.success)) },
                )
            }
            PortalsCall::CtPoll { counters, limit } => Box::pin(async move {
                let reached = host.portals()?.ct_poll(&counters, limit).await?;
                Ok(Outcome::Reached(reached.map(|(index, value)| (counters[index].0, value))))
            }),
            PortalsCall::EqGet { eq } => {
                Box::pin(async move { host.portals()?.eq_get(eq).await.map(Outcome::Event) })
            }
            PortalsCall::EqWait { eq } => Box::pin(async move {
                let what = || "an event in its queue".to_string();
                Ok(Outcome::Event(Some(host.portals()?.eq_wait(eq, |_| true, what).await?)))
            }),
            PortalsCall::EqPoll { eqs, limit } => Box::pin(async move {
                let found = host.portals()?.eq_poll(&eqs, limit).await?;
                Ok(Outcome::Polled(found.map(|(index, event)| (eqs[index], event))))
            }),
            PortalsCall::PtEnable { pt, enabled } => {
                Box::pin(async move { host.portals()?.pt_enable(pt, enabled).await.map(nothing) })
            }
            PortalsCall::MeAppend { part, pt, me, list, wait } => Box::pin(async move {
                let buffer = self.part(part)?;
                let me = Me { start: buffer.address(), length: buffer.len(), ..me };
                let portals = host.portals()?;
                let appending = portals.me_append(pt, me, list).await?;
                if wait {
                    Ok(Outcome::Word(portals.appended(appending).await?.to_bits()))
                } else {
                    Ok(Outcome::Nothing)
                }
            }),
            PortalsCall::MeUnlink { me } => {
                Box::pin(async move { host.portals()?.me_unlink(me).await.map(nothing) })
            }
            PortalsCall::MeSearch { pt, me, op } => {
                Box::pin(async move { host.portals()?.me_search(pt, me, op).await.map(nothing) })
            }
            PortalsCall::AtomicSync => {
                Box::pin(async move { host.portals()?.atomic_sync().await.map(nothing) })
            }
        }
    }
}
