//! The operator API.

mod access;
mod audit;
mod consumers;
mod history;
mod jobs;
mod lists;
mod operators;
mod producers;
mod races;
mod secrets;
mod tenants;
