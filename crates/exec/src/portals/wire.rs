//! The calls and outcomes of the table of calls, encoded in words.

use super::Words;

macro_rules! wire {
    (
        outcomes: { $($outcome:ident { $($word:ident),* })* }
        calls: { $($op:ident $call:ident { $($field:ident: $_type:ident),* } -> $_told:ident [$($_functions:tt)*];)* }
    ) => {
        /// The calls by name. Their values are their numbers.
        enum Op {
            $($call),*
        }

        /// The numbers of calls.
        pub(crate) mod op {
            $(pub(crate) const $op: u32 = super::Op::$call as u32 + 1;)*
        }

        $(
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub(crate) struct $call {
                $(pub(crate) $field: u64),*
            }
        )*

        /// A call with its arguments.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Call {
            $($call($call)),*
        }

        impl Call {
            /// Returns the call with this number; `None` if there is no such call.
            pub(crate) fn of(number: u32, words: &Words) -> Option<Call> {
                let mut words = words.iter().copied();
                let mut word = || words.next().expect("a call has fewer words");
                $(if number == op::$op {
                    return Some(Call::$call($call { $($field: word()),* }));
                })*
                let _ = word();
                None
            }
        }

        $(
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub(crate) struct $outcome {
                $(pub(crate) $word: u64),*
            }

            impl From<$outcome> for Words {
                fn from(outcome: $outcome) -> Words {
                    let $outcome { $($word),* } = outcome;
                    let mut words = [0; super::WORDS];
                    words.iter_mut().zip([$($word),*] as [u64; _]).for_each(|(word, value)| *word = value);
                    words
                }
            }
        )*
    };
}

nicety::portals_calls!(wire);

/// Returns whether a call checks for something that may not be there.
pub(crate) const fn is_look(number: u32) -> bool {
    matches!(number, op::CT_GET | op::EQ_GET | op::CT_POLL | op::EQ_POLL)
}
