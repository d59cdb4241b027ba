//! `…/{id}/secrets` of producers, consumers and operators: how a path names the connection is all that differs.

use bytes::Bytes;
use http::{Response, StatusCode};
use storybus_core::Bus;
use storybus_core::domain::refusal::Refusal;
use storybus_core::ops::admin::ConnectionPath;
use storybus_protocol::id::ConnectionKind;

use crate::answer::registry::{LiveSecret, ShownSecret, list};
use crate::answer::{json, no_content};
use crate::context::Outcome;
use crate::request::{Call, optional_object, refuse_all};
use crate::routes::credentials::operator;

/// The connection that the path names, and the secret behind it if the path goes on.
fn named(call: &Call, kind: ConnectionKind) -> (ConnectionPath<'_>, &str) {
    match kind {
        ConnectionKind::Operator => {
            let [id, secret] = call.path();
            (
                ConnectionPath {
                    kind,
                    tenant: None,
                    id,
                },
                secret,
            )
        }
        ConnectionKind::Producer | ConnectionKind::Consumer => {
            let [tenant, id, secret] = call.path();
            (
                ConnectionPath {
                    kind,
                    tenant: Some(tenant),
                    id,
                },
                secret,
            )
        }
    }
}

async fn create(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
    kind: ConnectionKind,
) -> Result<Response<Bytes>, Refusal> {
    let actor = operator(bus, call, outcome).await?;
    // nothing is asked for, so the body may be left out
    let ((), shape) = optional_object(call, |_| ())?;
    refuse_all(shape, Vec::new())?;
    let new = bus.secret_create(&actor, &named(call, kind).0).await?;
    json(StatusCode::CREATED, &ShownSecret::from(&new))
}

async fn show(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
    kind: ConnectionKind,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let secrets = bus.secret_list(&named(call, kind).0).await?;
    json(
        StatusCode::OK,
        &list::<_, LiveSecret<'_>>("secrets", &secrets, None),
    )
}

async fn delete(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
    kind: ConnectionKind,
) -> Result<Response<Bytes>, Refusal> {
    let actor = operator(bus, call, outcome).await?;
    let (path, secret) = named(call, kind);
    bus.secret_delete(&actor, &path, secret).await?;
    Ok(no_content())
}

macro_rules! handlers {
    ($($handler:ident = $verb:ident $kind:ident;)*) => {
        $(pub(in crate::routes) async fn $handler(
            bus: &Bus,
            call: &Call,
            outcome: &mut Outcome,
        ) -> Result<Response<Bytes>, Refusal> {
            $verb(bus, call, outcome, ConnectionKind::$kind).await
        })*
    };
}

handlers! {
    create_of_producer = create Producer;
    list_of_producer = show Producer;
    delete_of_producer = delete Producer;
    create_of_consumer = create Consumer;
    list_of_consumer = show Consumer;
    delete_of_consumer = delete Consumer;
    create_of_operator = create Operator;
    list_of_operator = show Operator;
    delete_of_operator = delete Operator;
}
