//! The table of routes. To add one: a line in the table, and a handler in the module of its resource.
//!
//! A handler is an `async fn(&Bus, &Call, &mut Outcome) -> Result<Response<Bytes>, Refusal>` that checks the credentials
//! first, then reads the request, calls one operation and wraps what it gave.

mod admin;
mod credentials;
mod documents;
mod jwks;
mod messages;
mod pull;
mod token;

use std::pin::Pin;

use bytes::Bytes;
use http::{Method, Response};
use storybus_core::Bus;
use storybus_core::domain::refusal::{Refusal, RefusalKind};
use storybus_protocol::rule;

use crate::answer::Refused;
use crate::context::Outcome;
use crate::request::Call;
use crate::request::percent::decode;

/// What a handler comes back with.
type Answering<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, Refusal>> + Send + 'a>>;
type Handler = for<'a> fn(&'a Bus, &'a Call, &'a mut Outcome) -> Answering<'a>;

/// One line of the table.
pub(crate) struct Route {
    method: Method,
    /// The path below `/v1`; a segment in braces stands for any that is not empty.
    pub(crate) template: &'static str,
    pub(crate) handler: Handler,
}

macro_rules! table {
    ($($method:ident $template:literal => $($handler:ident)::+;)*) => {
        &[$(Route {
            method: Method::$method,
            template: $template,
            handler: |bus, call, outcome| Box::pin($($handler)::+(bus, call, outcome)),
        }),*]
    };
}

/// The route of signed requests: it is there only where signatures are checked, on AWS.
static SIGNED: &[Route] = table! {
    POST "/tenants/{tenant}/iam/messages" => messages::publish_by_role;
};

/// Every other route.
static TABLE: &[Route] = table! {
    POST "/oauth/token" => token::issue;
    GET "/.well-known/jwks.json" => jwks::show;
    GET "/openapi.json" => documents::openapi;
    GET "/asyncapi.json" => documents::asyncapi;

    POST "/tenants/{tenant}/messages" => messages::publish;
    POST "/jwt/messages" => messages::publish_by_token;
    POST "/tenants/{tenant}/validate" => messages::validate;
    GET "/tenants/{tenant}/messages/{message_id}" => messages::state;

    GET "/tenants/{tenant}/consumers/{consumer}/messages" => pull::receive;
    POST "/tenants/{tenant}/consumers/{consumer}/ack" => pull::acknowledge;
    POST "/tenants/{tenant}/consumers/{consumer}/nack" => pull::release;
    POST "/tenants/{tenant}/consumers/{consumer}/reject" => pull::reject;
    GET "/tenants/{tenant}/consumers/{consumer}/skills" => pull::skills;

    POST "/admin/tenants" => admin::tenants::create;
    GET "/admin/tenants" => admin::tenants::list;
    GET "/admin/tenants/{tenant}" => admin::tenants::get;
    PATCH "/admin/tenants/{tenant}" => admin::tenants::update;
    DELETE "/admin/tenants/{tenant}" => admin::tenants::delete;

    POST "/admin/tenants/{tenant}/producers" => admin::producers::create;
    GET "/admin/tenants/{tenant}/producers" => admin::producers::list;
    GET "/admin/tenants/{tenant}/producers/{producer}" => admin::producers::get;
    PATCH "/admin/tenants/{tenant}/producers/{producer}" => admin::producers::update;
    DELETE "/admin/tenants/{tenant}/producers/{producer}" => admin::producers::delete;
    POST "/admin/tenants/{tenant}/producers/{producer}/secrets" => admin::secrets::create_of_producer;
    GET "/admin/tenants/{tenant}/producers/{producer}/secrets" => admin::secrets::list_of_producer;
    DELETE "/admin/tenants/{tenant}/producers/{producer}/secrets/{secret}" => admin::secrets::delete_of_producer;

    POST "/admin/tenants/{tenant}/consumers" => admin::consumers::create;
    GET "/admin/tenants/{tenant}/consumers" => admin::consumers::list;
    GET "/admin/tenants/{tenant}/consumers/{consumer}" => admin::consumers::get;
    PATCH "/admin/tenants/{tenant}/consumers/{consumer}" => admin::consumers::update;
    DELETE "/admin/tenants/{tenant}/consumers/{consumer}" => admin::consumers::delete;
    GET "/admin/tenants/{tenant}/consumers/{consumer}/queue" => admin::consumers::queue;
    POST "/admin/tenants/{tenant}/consumers/{consumer}/purge" => admin::consumers::purge;
    GET "/admin/tenants/{tenant}/consumers/{consumer}/dead-letters" => admin::dead_letters::list;
    POST "/admin/tenants/{tenant}/consumers/{consumer}/redrives" => admin::jobs::redrive;
    POST "/admin/tenants/{tenant}/consumers/{consumer}/replays" => admin::jobs::replay;
    POST "/admin/tenants/{tenant}/consumers/{consumer}/secrets" => admin::secrets::create_of_consumer;
    GET "/admin/tenants/{tenant}/consumers/{consumer}/secrets" => admin::secrets::list_of_consumer;
    DELETE "/admin/tenants/{tenant}/consumers/{consumer}/secrets/{secret}" => admin::secrets::delete_of_consumer;

    GET "/admin/tenants/{tenant}/jobs" => admin::jobs::list;
    GET "/admin/tenants/{tenant}/jobs/{job}" => admin::jobs::get;
    DELETE "/admin/tenants/{tenant}/jobs/{job}" => admin::jobs::cancel;
    GET "/admin/tenants/{tenant}/activity" => admin::activity::list;
    GET "/admin/tenants/{tenant}/stories" => admin::stories::list;
    GET "/admin/tenants/{tenant}/stories/{story}" => admin::stories::get;
    GET "/admin/tenants/{tenant}/messages/{message}" => admin::messages::way;

    POST "/admin/operators" => admin::operators::create;
    GET "/admin/operators" => admin::operators::list;
    GET "/admin/operators/{operator}" => admin::operators::get;
    PATCH "/admin/operators/{operator}" => admin::operators::update;
    DELETE "/admin/operators/{operator}" => admin::operators::delete;
    POST "/admin/operators/{operator}/secrets" => admin::secrets::create_of_operator;
    GET "/admin/operators/{operator}/secrets" => admin::secrets::list_of_operator;
    DELETE "/admin/operators/{operator}/secrets/{secret}" => admin::secrets::delete_of_operator;

    GET "/admin/audit" => admin::audit::list;
};

/// The longest path that is looked up.
const MAX_PATH: usize = 4096;

/// A route and what the path says for its parameters.
pub(crate) struct Found {
    pub(crate) route: &'static Route,
    pub(crate) parameters: Vec<String>,
}

/// The route of a request: `404 route.not_found` for a path that no route has, `405 method.not_allowed` for a method that
/// its path has not.
pub(crate) fn find(method: &Method, path: &str, signed: bool) -> Result<Found, Refused> {
    let below = path.strip_prefix("/v1").filter(|_| path.len() <= MAX_PATH);
    let Some(below) = below else {
        return Err(not_found().into());
    };
    let mut allow: Vec<&str> = Vec::new();
    for route in TABLE.iter().chain(SIGNED.iter().filter(|_| signed)) {
        let Some(parameters) = matched(route.template, below) else {
            continue;
        };
        if route.method == *method {
            return Ok(Found { route, parameters });
        }
        allow.push(route.method.as_str());
    }
    if allow.is_empty() {
        return Err(not_found().into());
    }
    let allow = allow.join(", ");
    let refusal = Refusal::policy(
        RefusalKind::MethodNotAllowed,
        rule::METHOD_NOT_ALLOWED,
        format!("this path knows another method: {allow}"),
    );
    Err(Refused::method(refusal, allow))
}

fn not_found() -> Refusal {
    Refusal::policy(
        RefusalKind::NotFound,
        rule::ROUTE_NOT_FOUND,
        "there is no such path; all are below /v1",
    )
}

/// The parameters, if the path is one of the template's.
fn matched(template: &str, path: &str) -> Option<Vec<String>> {
    let mut parameters = Vec::new();
    let mut segments = path.split('/');
    for expected in template.split('/') {
        let segment = segments.next()?;
        if expected.starts_with('{') {
            parameters.push(decode(segment, false).filter(|s| !s.is_empty())?);
        } else if segment != expected {
            return None;
        }
    }
    segments.next().is_none().then_some(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates() {
        let template = "/tenants/{t}/messages/{m}";
        assert_eq!(
            matched(template, "/tenants/w1/messages/x%2Fy"),
            Some(vec!["w1".to_owned(), "x/y".to_owned()])
        );
        for other in [
            "",
            "/",
            "/tenants",
            "/tenants/w1/messages",
            "/tenants/w1/messages/",
            "/tenants//messages/m",
            "/tenants/w1/messages/m/",
            "//tenants/w1/messages/m",
            "/tenants/w1/messages/%",
            "/tenants/w1/messages/%ff",
            "/%74enants/w1/messages/m",
            "tenants/w1/messages/m",
        ] {
            assert_eq!(matched(template, other), None, "{other}");
        }
    }

    #[test]
    fn no_two_lines_take_the_same_request() {
        let all: Vec<&Route> = TABLE.iter().chain(SIGNED).collect();
        for (n, one) in all.iter().enumerate() {
            assert!(one.template.starts_with('/'), "{}", one.template);
            for two in &all[n + 1..] {
                let same = one.method == two.method && matched(one.template, two.template).is_some();
                assert!(!same, "{} {} and {}", one.method, one.template, two.template);
            }
        }
    }
}
