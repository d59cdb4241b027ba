//! Which paths and methods there are.

use crate::world::{World, ask};

#[test]
fn a_path_that_is_none_of_ours_is_404() {
    let world = World::new();
    let room = world.room();
    let (tenant, long) = (&room.tenant, "x".repeat(10_000));
    for path in [
        "/".to_owned(),
        "/v1".to_owned(),
        "/v1/".to_owned(),
        "/v2/admin/tenants".to_owned(),
        "/admin/tenants".to_owned(),
        "/V1/admin/tenants".to_owned(),
        "/v1/Admin/tenants".to_owned(),
        "/v1/admin/tenants/".to_owned(),
        "/v1//admin/tenants".to_owned(),
        "//v1/admin/tenants".to_owned(),
        "/v1/admin//tenants".to_owned(),
        "/v1/admin/ten%61nts".to_owned(),
        "/v1/admin/tenants/%".to_owned(),
        "/v1/admin/tenants/%ff".to_owned(),
        "/v1/admin/./tenants".to_owned(),
        "/v1/admin/x/../tenants".to_owned(),
        format!("/v1/tenants/{tenant}/nonsense"),
        format!("/v1/tenants/{tenant}/messages/"),
        format!("/v1/tenants/{tenant}/iam/messages"),
        format!("/v1/admin/tenants/{tenant}/jobs/j1/steps"),
        format!("/v1/admin/tenants/{long}"),
        format!("/v1/{}", "a/".repeat(4000)),
        "/healthz".to_owned(),
    ] {
        let answer = world.send(ask("POST", &path).of(&world.operator));
        answer.is_refused(404, "route.not_found");
        assert_eq!(answer.outcome.route, None, "{path}");
    }
}

#[test]
fn an_id_may_be_percent_encoded() {
    let world = World::new();
    let tenant = world.tenant();
    let encoded: String = tenant.bytes().map(|b| format!("%{b:02x}")).collect();
    let answer = world.operate("GET", &format!("/v1/admin/tenants/{encoded}"), None);
    assert_eq!(answer.is_ok().text("/tenant"), tenant);
    for other in ["w%2F1", "w%00", "%C3%A9", "w%20", "no-such", "w-no-such"] {
        world
            .operate("GET", &format!("/v1/admin/tenants/{other}"), None)
            .is_refused(404, "tenant.not_found");
    }
}

#[test]
fn a_method_that_a_path_has_not_is_405_with_those_that_it_has() {
    let world = World::new();
    let room = world.room();
    for (method, path, allow) in [
        ("GET", "/v1/oauth/token".to_owned(), "POST"),
        ("POST", "/v1/.well-known/jwks.json".to_owned(), "GET"),
        ("HEAD", "/v1/.well-known/jwks.json".to_owned(), "GET"),
        ("PUT", room.publish(), "POST"),
        ("GET", room.publish(), "POST"),
        ("HEAD", room.pull("messages"), "GET"),
        ("GET", room.pull("ack"), "POST"),
        ("PUT", "/v1/admin/tenants".to_owned(), "POST, GET"),
        (
            "OPTIONS",
            format!("/v1/admin/tenants/{}", room.tenant),
            "GET, PATCH, DELETE",
        ),
        ("BREW", "/v1/admin/audit".to_owned(), "GET"),
    ] {
        let answer = world.send(ask(method, &path));
        answer.is_refused(405, "method.not_allowed");
        assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
    }
}
