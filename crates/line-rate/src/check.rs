//! The check of a card at one packet size: the first run, one behind a burst, and those at other rates.

use super::faster::Trials;
use super::request::Request;
use super::rig::Rig;
use super::row::{BurstRow, Row};
use super::speed::Speed;
use super::tested::Tested;
use super::verdict::Verdict;
use nicety::cards::Card;
use nicety::record::Recording;
use nicety::{Environment, Error, Failure, HandlerNames, Handlers};

/// Equal frames sent to a card.
pub(super) const FRAMES: u64 = 20_000;

impl Rig<'_> {
    /// Makes the first run alone.
    pub(super) fn first_run(&self) -> Result<(Row, Vec<Failure>), Error> {
        let tested = Tested::of(self.card)?;
        match (&self.request.traffic[..], &tested) {
            ([], Tested::Messages(spec)) if self.request.xdp.is_none() => self.send_equal(spec, None, None),
            ([], _) => {
                let expression = equal_frames(self.request, self.packet_bytes, FRAMES);
                let run = self.offer_at(&tested, &[expression], &Speed::as_given(), None)?;
                Ok((Row { traffic: None, ..run.row }, run.failures))
            }
            (expressions, _) => {
                let run = self.offer_at(&tested, expressions, &Speed::as_given(), None)?;
                Ok((run.row, run.failures))
            }
        }
    }

    /// Makes the first run, and the runs at other rates.
    pub(super) fn measure(&self, recorded: Option<&dyn Fn(Recording)>) -> Result<(Row, Vec<Failure>), Error> {
        match (&self.request.traffic[..], Tested::of(self.card)?) {
            ([], Tested::Messages(spec)) if self.request.xdp.is_none() => {
                let (row, failures) = self.send_equal(spec, None, recorded)?;
                self.tell_verdict(&row);
                let tries = self.try_equal(&row, &failures)?;
                Ok((row.with_trials(tries).with_verdict(), failures))
            }
            ([], tested) => {
                let expression = equal_frames(self.request, self.packet_bytes, FRAMES);
                let (row, failures) = self.offer(&tested, &[expression], recorded)?;
                Ok((Row { traffic: None, ..row }, failures))
            }
            (expressions, tested) => self.offer(&tested, expressions, recorded),
        }
    }

    /// Reports the first run's result, before the search.
    fn tell_verdict(&self, row: &Row) {
        let keeps_up = match (row.verdict, &row.unmodelled) {
            (Verdict::No, _) => "no: the card does not keep up",
            (_, None) => "yes: the card keeps up",
            (_, Some(_)) => "not judged: contention is not modelled on this card",
        };
        self.tell(&format!("{keeps_up}; searching for the sustainable rate"));
    }

    /// Measures traffic, an expression for each port, and searches the sustainable rate.
    fn offer(
        &self,
        tested: &Tested<'_>,
        expressions: &[String],
        recorded: Option<&dyn Fn(Recording)>,
    ) -> Result<(Row, Vec<Failure>), Error> {
        let judged = self.offer_at(tested, expressions, &Speed::as_given(), recorded)?;
        let mut burst = match judged.row.has_more_to_do {
            true => self.try_burst(tested, expressions, &judged)?,
            false => None,
        };
        self.tell_verdict(&judged.row);
        // Where a burst stops handlers, higher rates show nothing.
        let tries = match burst.as_ref().is_some_and(|burst| burst.stopped.is_some()) {
            true => Trials::default(),
            false => {
                let behind = burst.as_ref().and_then(BurstRow::behind);
                self.try_traffic(tested, expressions, &judged, behind)?
            }
        };
        if burst.is_none() && tries.found_waiting() && !tries.recovers() {
            burst = self.try_burst(tested, expressions, &judged)?;
        }
        Ok((judged.row.with_trials(tries).behind(burst).with_verdict(), judged.failures))
    }
}

impl Row {
    /// Returns a row without a model of contention with its verdict: a card that does not keep up even so does not keep up.
    pub(super) fn with_verdict(self) -> Row {
        match (&self.unmodelled, self.verdict) {
            (Some(_), Verdict::Yes | Verdict::Barely) => Row { verdict: Verdict::NotJudged, ..self },
            _ => self,
        }
    }
}

/// The traffic of equal frames, as fast as the wire: `usual` frames where the request has no number.
pub(super) fn equal_frames(request: &Request, bytes: u64, usual: u64) -> String {
    let frames = request.messages.unwrap_or(usual);
    format!("udp src=10.0.0.0/8 sport=1024-65535 size={bytes} packets={frames}")
}

/// Loads a card's program with handlers.
pub(super) fn handlers_of(
    request: &Request,
    environment: &Environment<'_>,
    nic: &str,
    card: &Card,
) -> Result<Handlers, Error> {
    let elf = environment.compiled.get(nic).ok_or_else(|| {
        Error::Input(format!("no compiled handlers for {nic}; compile what the plan names"))
    })?;
    Tested::of(card)?.load(elf, &HandlerNames::from(&request.names))
}

/// Returns the name of a measurement of a card.
pub(super) fn point_name(request: &Request, packet_bytes: u64) -> String {
    match request.traffic.is_empty() {
        false => "traffic".to_owned(),
        true => format!("packets of {packet_bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::unmodelled::UnmodelledRow;
    use super::*;

    #[test]
    fn no_stays_no() {
        let row = UnmodelledRow {
            word: None,
            word_accesses: 0.0,
            atomic_words: 0,
            stored_words: 1,
            levels: vec!["ideal"],
            keys: Vec::new(),
        };
        let of = |verdict, unmodelled| Row { verdict, unmodelled, ..Row::default() }.with_verdict().verdict;
        assert_eq!(of(Verdict::Yes, Some(row.clone())), Verdict::NotJudged);
        assert_eq!(of(Verdict::Barely, Some(row.clone())), Verdict::NotJudged);
        assert_eq!(of(Verdict::No, Some(row)), Verdict::No);
        assert_eq!(of(Verdict::Yes, None), Verdict::Yes);
    }
}
