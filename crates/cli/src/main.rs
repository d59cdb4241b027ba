//! storybus
fn main() {}
