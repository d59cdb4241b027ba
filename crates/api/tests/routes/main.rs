//! The routes from outside: every test goes through `Api::handle` alone, over the engine in memory and a clock that stands
//! still. The tree mirrors the paths.

mod admin;
mod documents;
mod jwks;
mod messages;
mod pages;
mod paths;
mod pull;
mod robustness;
mod stores;
mod token;
mod world;
