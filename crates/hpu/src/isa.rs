//! The instruction set of a core: an [`Isa`], in the notation of compilers (`rv32imac_zicsr`).

use std::fmt;
use std::str::FromStr;

/// An extension of RV32I or RV64I.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Extension {
    /// Integer multiplication and division.
    M,
    /// Integer multiplication without division. [`M`](Extension::M) includes it.
    Zmmul,
    /// Atomics: LR, SC and AMOs.
    A,
    /// Single-precision floating point.
    F,
    /// Compressed (16-bit) instructions.
    C,
    /// Control and status registers: here the counters and `mhartid`.
    Zicsr,
    /// `fence.i`. Code runs as it was loaded, so it orders like a plain fence, and traps if the program has changed
    /// code.
    Zifencei,
    /// Address generation: shift and add.
    Zba,
    /// Basic bit manipulation: counts, minima, rotations, bytes.
    Zbb,
    /// Single bits.
    Zbs,
}

impl Extension {
    /// All extensions known, in canonical order.
    pub const ALL: &'static [Extension] = &[
        Extension::M,
        Extension::A,
        Extension::F,
        Extension::C,
        Extension::Zicsr,
        Extension::Zifencei,
        Extension::Zmmul,
        Extension::Zba,
        Extension::Zbb,
        Extension::Zbs,
    ];

    /// The name in an isa string, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Extension::M => "m",
            Extension::Zmmul => "zmmul",
            Extension::A => "a",
            Extension::F => "f",
            Extension::C => "c",
            Extension::Zicsr => "zicsr",
            Extension::Zifencei => "zifencei",
            Extension::Zba => "zba",
            Extension::Zbb => "zbb",
            Extension::Zbs => "zbs",
        }
    }

    fn from_name(name: &str) -> Option<Extension> {
        Extension::ALL.iter().copied().find(|e| e.name() == name)
    }
}

impl fmt::Display for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The instruction set of a core: RV32I or RV64I, and a set of extensions. An instruction of an extension that is not
/// in the set is illegal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Isa {
    extensions: u32,
    wide: bool,
}

impl Isa {
    /// RV32I alone.
    pub const RV32I: Isa = Isa { extensions: 0, wide: false };

    /// RV64I alone.
    pub const RV64I: Isa = Isa { extensions: 0, wide: true };

    /// RV32IMAC with Zicsr: the ISA of PsPIN's cores.
    pub const RV32IMAC: Isa =
        Isa::RV32I.with(Extension::M).with(Extension::A).with(Extension::C).with(Extension::Zicsr);

    /// RV64IMAC with Zicsr.
    pub const RV64IMAC: Isa = Isa { wide: true, ..Isa::RV32IMAC };

    /// Returns the same set with one more extension.
    pub const fn with(self, extension: Extension) -> Isa {
        Isa { extensions: self.extensions | 1 << extension as u32, ..self }
    }

    /// The bits of an integer register: 32 or 64.
    pub const fn register_bits(self) -> u32 {
        if self.wide { 64 } else { 32 }
    }

    /// Whether integer registers have 64 bits.
    pub const fn is_wide(self) -> bool {
        self.wide
    }

    /// Whether the extension is in the set.
    pub const fn has(self, extension: Extension) -> bool {
        self.extensions & 1 << extension as u32 != 0
    }
}

impl fmt::Display for Isa {
    /// The canonical isa string, as `-march` takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rv{}i", self.register_bits())?;
        for &extension in Extension::ALL.iter().filter(|&&e| self.has(e)) {
            let separator = if extension.name().len() > 1 { "_" } else { "" };
            write!(f, "{separator}{extension}")?;
        }
        Ok(())
    }
}

/// The error of an invalid isa string, and the correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsaError {
    isa: String,
    problem: String,
}

impl IsaError {
    /// The problem, as a sentence.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for IsaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "isa \"{}\": {}; write for example \"rv32imac_zicsr\"", self.isa, self.problem)
    }
}

impl std::error::Error for IsaError {}

impl FromStr for Isa {
    type Err = IsaError;

    /// Parses `rv32i` or `rv64i`, single-letter extensions, and further ones after underscores, in any case and order. `b` is Zba,
    /// Zbb and Zbs. `f` includes Zicsr, which its rounding mode and flags need.
    fn from_str(text: &str) -> Result<Isa, IsaError> {
        let fail = |problem: String| IsaError { isa: text.to_owned(), problem };
        let lower = text.to_ascii_lowercase();
        let bases = [("rv32", Isa::RV32I), ("rv64", Isa::RV64I)];
        let found = bases.iter().find_map(|(base, isa)| Some((lower.strip_prefix(base)?, *isa)));
        let Some((rest, base)) = found else {
            return Err(fail("it does not begin with rv32 or rv64".to_owned()));
        };
        let Some(rest) = rest.strip_prefix('i') else {
            return Err(fail("the base must be i (e and g are not modelled)".to_owned()));
        };
        let mut isa = base;
        let mut all_bits = false;
        let mut add = |name: &str| {
            let twice = || fail(format!("extension \"{name}\" appears twice"));
            if name == "b" {
                return if std::mem::replace(&mut all_bits, true) { Err(twice()) } else { Ok(()) };
            }
            let Some(extension) = Extension::from_name(name) else {
                let known: Vec<_> = Extension::ALL.iter().map(|e| e.name()).collect();
                let known = known.join(", ");
                return Err(fail(format!(
                    "extension \"{name}\" is not modelled (known: {known}; b is zba, zbb and zbs)"
                )));
            };
            if isa.has(extension) {
                return Err(twice());
            }
            isa = isa.with(extension);
            Ok(())
        };
        for (position, part) in rest.split('_').enumerate() {
            if part.is_empty() {
                if position > 0 {
                    return Err(fail("an underscore without an extension after it".to_owned()));
                }
            } else if position > 0 && part.starts_with(['z', 's', 'x']) {
                add(part)?;
            } else {
                for letter in part.chars() {
                    add(letter.encode_utf8(&mut [0; 4]))?;
                }
            }
        }
        let implied: &[(bool, &[Extension])] = &[
            (all_bits, &[Extension::Zba, Extension::Zbb, Extension::Zbs]),
            (isa.has(Extension::F), &[Extension::Zicsr]),
        ];
        let implied = implied.iter().filter(|(holds, _)| *holds).flat_map(|(_, extensions)| *extensions);
        Ok(implied.fold(isa, |isa, &extension| isa.with(extension)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isa_strings_are_read_and_written() {
        assert_eq!("rv32imac_zicsr".parse(), Ok(Isa::RV32IMAC));
        assert_eq!("RV32ICAM_Zicsr".parse(), Ok(Isa::RV32IMAC));
        assert_eq!("rv32i_m_a_c_zicsr".parse(), Ok(Isa::RV32IMAC));
        assert_eq!("rv32i".parse(), Ok(Isa::RV32I));
        let bits = Isa::RV32IMAC.with(Extension::Zba).with(Extension::Zbb).with(Extension::Zbs);
        for text in ["rv32imac_zicsr_zba_zbb_zbs", "rv32imacb_zicsr", "rv32imac_b_zbb_zicsr"] {
            assert_eq!(text.parse(), Ok(bits), "{text}");
        }
        assert_eq!(bits.to_string(), "rv32imac_zicsr_zba_zbb_zbs");
        for text in ["rv32imafc", "rv32imafc_zicsr"] {
            assert_eq!(text.parse(), Ok(Isa::RV32IMAC.with(Extension::F)), "{text}");
        }
        assert_eq!(Isa::RV32IMAC.with(Extension::F).to_string(), "rv32imafc_zicsr");
        assert_eq!(Isa::RV32IMAC.to_string(), "rv32imac_zicsr");
        assert_eq!(Isa::RV32I.with(Extension::Zifencei).to_string(), "rv32i_zifencei");
        assert_eq!("RV64imac_zicsr".parse(), Ok(Isa::RV64IMAC));
        assert_eq!(Isa::RV64IMAC.to_string(), "rv64imac_zicsr");
        assert_eq!((Isa::RV64I.register_bits(), Isa::RV32I.register_bits()), (64, 32));
        assert_ne!(Isa::RV64IMAC, Isa::RV32IMAC);
        assert_eq!("rv32ia_zmmul".parse(), Ok(Isa::RV32I.with(Extension::A).with(Extension::Zmmul)));
    }

    #[test]
    fn wrong_isa_strings_say_what_to_write() {
        for (text, problem) in [
            ("rv128i", "does not begin with rv32 or rv64"),
            ("rv64e", "the base must be i"),
            ("rv32e", "the base must be i"),
            (
                "rv32imv",
                "extension \"v\" is not modelled (known: m, a, f, c, zicsr, zifencei, zmmul, zba, zbb, zbs; b is",
            ),
            ("rv32ibb", "extension \"b\" appears twice"),
            ("rv32imm", "extension \"m\" appears twice"),
            ("rv32i_zvfoo", "extension \"zvfoo\" is not modelled"),
            ("rv32i__zicsr", "an underscore without an extension"),
            ("rv32i_ä", "extension \"ä\" is not modelled"),
        ] {
            let error = text.parse::<Isa>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("rv32imac_zicsr"), "{error}");
        }
    }
}
