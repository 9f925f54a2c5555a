//! Tests specs through the public functions: accepted values, refused values, and error texts.

mod card;
mod damage;
mod errors;
mod files;
mod reading;
mod shipped;
