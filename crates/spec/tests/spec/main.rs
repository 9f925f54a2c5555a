//! Specs from the user's side: values read, values refused, and error texts.

mod card;
mod damage;
mod errors;
mod files;
mod reading;
mod shipped;
