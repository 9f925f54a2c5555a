//! Specs as users meet them: what is read, what is refused, and the error texts.

mod card;
mod damage;
mod errors;
mod files;
mod reading;
mod shipped;
