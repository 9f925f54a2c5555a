//! Tests of schedules and of the LogGOPS network.

mod binary;
mod cards;
mod crowds;
mod damage;
mod files;
mod memory;
mod noise;
mod offload;
mod patterns;
mod processes;
mod reference;
mod rules;
mod same;
mod schedules;
mod text;
mod trace;
