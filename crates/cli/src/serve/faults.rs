//! The fault switch: a bus that was built for tests and started with `--faults` obeys `x-storybus-fault`.

use http::Request;
use storybus_api::{Api, Body};
use storybus_core::Bus;
use storybus_testkit::faulty::FaultSwitch;

const HEADER: &str = "x-storybus-fault";

/// The routes with the fault that the request asks for; `None` when it asks for none.
pub(super) fn api(bus: &Bus, request: &Request<Body>) -> Option<Api> {
    let value = request.headers().get(HEADER)?;
    let Some(fault) = value
        .to_str()
        .ok()
        .and_then(|name| name.parse::<FaultSwitch>().ok())
    else {
        tracing::warn!("a request asks for a fault that there is not");
        return None;
    };
    tracing::warn!(fault = fault.name(), "a fault on purpose");
    // Nothing is flushed and nobody is told: this is as near to being killed as a process gets by itself.
    Some(Api::new(
        bus.with_ports(|ports| fault.apply(ports, || std::process::abort())),
    ))
}
