//! The modes of runs on cards: whether hosts or handlers execute messages. Also finds the handlers.

use nicety::cards::Card;
use nicety::spin::SpinSpec;
use nicety::{Compiled, Error, HandlerNames, Handlers};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Says where messages are matched, copied and fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "MessageMode")]
pub enum Mode {
    /// On the host: the message library of the card's design executes messages, in part on a CPU.
    #[default]
    Host,
    /// On the card: handlers execute messages.
    Card,
}

impl Mode {
    /// Returns the name of the mode on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Host => "host",
            Mode::Card => "card",
        }
    }

    /// Returns the modes with these names. Without names, returns only the mode `host`.
    ///
    /// # Errors
    /// When a name is unknown.
    pub(super) fn all_of(names: Option<&[String]>) -> Result<Vec<Mode>, Error> {
        let Some(names) = names else { return Ok(vec![Mode::Host]) };
        let mut modes = Vec::new();
        for name in names {
            let mode = [Mode::Host, Mode::Card].into_iter().find(|mode| mode.name() == name);
            let mode = mode.ok_or_else(|| {
                Error::Input(format!("--mode: there is no mode {name}; the modes are host and card"))
            })?;
            if !modes.contains(&mode) {
                modes.push(mode);
            }
        }
        match modes.is_empty() {
            true => Err(Error::Input("--mode: name host or card, or leave the option out".to_owned())),
            false => Ok(modes),
        }
    }

    /// Returns the handlers that a card needs in this mode, from the compiled programs.
    ///
    /// # Errors
    /// When the card cannot run handlers, or none were compiled for it.
    pub(super) fn handlers(
        self,
        (name, card): (&str, &Card),
        compiled: &Compiled,
    ) -> Result<Option<Handlers>, Error> {
        if self == Mode::Host {
            return Ok(None);
        }
        let spec = with_handlers(name, card)?;
        let elf = compiled.get(name).ok_or_else(|| {
            Error::Input(format!("{name}: no compiled handlers; compile {SOURCE} as planned"))
        })?;
        let own = |error| Error::Input(format!("{name}: {SOURCE}: {error}"));
        let handlers = Handlers::load(elf, &HandlerNames::default(), &spec.hpu).map_err(own)?;
        handlers.check(&spec.hpu).map_err(own)?;
        Ok(Some(handlers))
    }
}

/// The source file of the handlers for messages, in the library of handlers.
pub(super) const SOURCE: &str = "matching.c";

/// Returns the specification of a card that can run handlers.
pub(super) fn with_handlers<'c>(name: &str, card: &'c Card) -> Result<&'c SpinSpec, Error> {
    card.spec.of::<SpinSpec>().map_err(|error| {
        Error::Input(format!(
            "--mode card: {name} has no handlers: {error}; leave --mode out, since this card handles \
             messages in one way only"
        ))
    })
}
