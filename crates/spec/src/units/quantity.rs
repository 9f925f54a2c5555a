//! The quantities of parameters.

/// The quantity of a parameter, such as a time or a size. It determines the allowed units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantity {
    /// A time in whole picoseconds.
    Time,
    /// A time per byte, or its inverse, a bandwidth.
    Gap,
    /// A rate in bits or packets per second.
    Rate,
    /// A clock frequency in whole hertz.
    Frequency,
    /// An amount of memory or data in whole bytes.
    Size,
    /// A number of items.
    Count,
    /// A share or factor without a unit.
    Ratio,
    /// A word from a list.
    Choice,
    /// Any text.
    Text,
    /// True or false.
    Flag,
}

impl Quantity {
    /// The quantities with units, in the order of the documentation.
    pub(super) const MEASURED: [Quantity; 6] =
        [Quantity::Time, Quantity::Size, Quantity::Count, Quantity::Gap, Quantity::Rate, Quantity::Frequency];

    /// Returns the quantity's name with its article, for sentences: 'a time'.
    pub const fn article(self) -> &'static str {
        match self {
            Quantity::Time => "a time",
            Quantity::Gap => "a gap a byte or a bandwidth",
            Quantity::Rate => "a rate",
            Quantity::Frequency => "a frequency",
            Quantity::Size => "a size",
            Quantity::Count => "a whole number",
            Quantity::Ratio => "a ratio",
            Quantity::Choice => "a choice",
            Quantity::Text => "a text",
            Quantity::Flag => "true or false",
        }
    }

    /// Returns an example of a value in TOML, without quotes.
    pub const fn example(self) -> &'static str {
        match self {
            Quantity::Time => "250 ns",
            Quantity::Gap => "15.6 ps/B",
            Quantity::Rate => "10 Gb/s",
            Quantity::Frequency => "2.5 GHz",
            Quantity::Size => "4096 B",
            Quantity::Count => "8",
            Quantity::Ratio => "0.5",
            Quantity::Choice | Quantity::Text => "text",
            Quantity::Flag => "true",
        }
    }

    /// Whether a value of this quantity is in quotes in TOML.
    pub const fn is_quoted(self) -> bool {
        !matches!(self, Quantity::Count | Quantity::Ratio | Quantity::Flag)
    }

    /// Returns the usual units, for messages.
    pub(super) const fn unit_list(self) -> &'static str {
        match self {
            Quantity::Time => "ps, ns, us, ms, s",
            Quantity::Gap => "ps/B, ns/B, or a bandwidth in Gb/s, MB/s, GB/s, GiB/s",
            Quantity::Rate => "Mb/s, Gb/s, or kpps, Mpps for packets",
            Quantity::Frequency => "Hz, kHz, MHz, GHz",
            Quantity::Size => "B, KiB, MiB, GiB",
            Quantity::Count => "k, M, G for powers of 1000, Ki, Mi, Gi for powers of 1024",
            _ => "",
        }
    }
}
