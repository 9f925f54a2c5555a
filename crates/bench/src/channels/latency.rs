//! Latency of consecutive messages on one channel. They are sent in a batch, as in the measurements of NFComms.

use super::rig::{Far, Load, Near};
use super::{Mode, Point, Row};
use crate::StageRow;
use crate::figures::Spread;
use nicety::{Duration, Error, MemoryKind};
use nicety_nic_nfp::NfpSpec;
use nicety_types::{Path, Stage};
use std::cell::RefCell;
use std::rc::Rc;

/// The measurements of the host's thread.
#[derive(Default)]
struct Measured {
    messages: Vec<Duration>,
    /// The path until the call of the first message, and the path until the return of the last message.
    batch: Option<(Path, Path)>,
}

pub(super) fn measure(point: &Point<'_>, messages: u64, warmup: u64) -> Result<Row, Error> {
    let nearest = point.card.spec.of::<NfpSpec>()?.memory(MemoryKind::Ctm);
    // Short messages use the memory nearest to the processor that can hold them. The card's costs were calibrated with this
    // memory.
    let near = point.mode == Mode::Indirect && point.size <= u64::from(nearest.size);
    let memory = if near { MemoryKind::Ctm } else { MemoryKind::Emem };
    let load = Load { messages: (messages + warmup) as u32, memory, ..point.load(1) };
    let mut cluster = point.cluster(point.request.seed, true)?;
    let program = cluster.host(0).channels()?.load(point.elf)?;
    let far = Far::start_all(cluster.host(0), &program, &load)?[0];
    let measured = Rc::new(RefCell::new(Measured::default()));
    let theirs = measured.clone();
    cluster.program(0, move |host| async move {
        let channel = host.channels()?.open().subscribe(far.target()).await?;
        let near = Near::new(host.clone(), channel, load, far)?;
        let mut begun = host.path();
        for message in 0..load.messages {
            if u64::from(message) == warmup {
                begun = host.path();
            }
            near.prepare(message)?;
            let start = host.now();
            near.transfer(message).await?;
            if u64::from(message) >= warmup {
                theirs.borrow_mut().messages.push(host.now().since(start));
            }
            near.check(message)?;
        }
        theirs.borrow_mut().batch = Some((begun, host.path()));
        near.finish().await
    });
    point.run(&mut cluster, true)?;
    let measured = measured.borrow();
    let spread = Spread::of(measured.messages.iter().copied(), 1);
    Ok(Row {
        latency_ns: Some(spread.mean),
        min_ns: Some(spread.min),
        p50_ns: Some(spread.p50),
        p99_ns: Some(spread.p99),
        p999_ns: Some(spread.p999),
        max_ns: Some(spread.max),
        iterations: Some(messages),
        stages: Some(stages(&measured, messages)?),
        ..point.row(&load, load.bytes.into())
    })
}

/// Returns the mean stages of a message over the batch. They are the stages at the end of the batch minus those at its beginning.
/// A process begins its next message while the thread returns from the previous one. So a path that starts at the call would lack
/// a part of the message's time.
fn stages(measured: &Measured, messages: u64) -> Result<Vec<StageRow>, Error> {
    let (begun, ended) = measured.batch.as_ref().expect("the program has ended");
    let took: Duration = measured.messages.iter().copied().sum();
    let between = ended.at().since(begun.at());
    let Some(more) = ended.since(begun).filter(|_| between == took) else {
        return Err(Error::Program(format!(
            "the messages took {took}, but the path of the batch accounts for {between}: a part of the path is missing"
        )));
    };
    let row = |(stage, more): (Stage, Duration)| StageRow {
        stage: stage.name(),
        ns: more.ps() as f64 / (1000 * messages) as f64,
    };
    Ok(more.map(row).collect())
}
