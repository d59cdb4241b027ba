//! The path of a request, as its client sent it, from what an HTTP API makes of it.
//!
//! An HTTP API hands the path on decoded, but for `%25`; so a `/` in an id has become a separator, and what cannot stand in a path
//! has to be encoded again. (It cuts a decoded `?` off with all that follows; that is lost.) The stage stands before the path unless
//! it is `$default`, and so does the base path of a custom domain.

use std::borrow::Cow;

use super::event::RequestContext;

/// The path below the deployment's own root: it begins with `/v1` if it is one of the bus's.
pub(super) fn path(raw: &str, context: &RequestContext<'_>) -> String {
    let path = encoded(without_root(raw, context));
    match story(&path) {
        Some((before, id)) if id.contains('/') => format!("{before}{}", id.replace('/', "%2F")),
        _ => path.into_owned(),
    }
}

fn without_root<'a>(raw: &'a str, context: &RequestContext<'_>) -> &'a str {
    let below = |prefix: &str| {
        raw.strip_prefix('/')?
            .strip_prefix(prefix)
            .filter(|p| p.starts_with('/'))
    };
    if context.stage != "$default"
        && !context.stage.is_empty()
        && let Some(path) = below(&context.stage)
    {
        return path;
    }
    let own_domain = context
        .domain_name
        .strip_prefix(&*context.api_id)
        .is_some_and(|rest| rest.starts_with(".execute-api."));
    if !own_domain && !raw.starts_with("/v1/") {
        // A base path that an operator has chosen.
        if let Some(at) = raw.find("/v1/") {
            return &raw[at..];
        }
    }
    raw
}

/// A story's id is what newsrooms make it, and the last that stands in its path.
fn story(path: &str) -> Option<(&str, &str)> {
    let (tenant, _) = path.strip_prefix("/v1/admin/tenants/")?.split_once('/')?;
    let before = "/v1/admin/tenants/".len() + tenant.len() + "/stories/".len();
    path.get(..before)?
        .ends_with("/stories/")
        .then(|| path.split_at(before))
}

/// Encodes what cannot stand in a path (RFC 3986 §3.3); escapes stay.
fn encoded(path: &str) -> Cow<'_, str> {
    let bytes = path.as_bytes();
    let stays = |at: usize, byte: u8| match byte {
        b'%' => bytes
            .get(at + 1..at + 3)
            .is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)),
        b'/' | b'-' | b'.' | b'_' | b'~' | b':' | b'@' => true,
        b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => true,
        other => other.is_ascii_alphanumeric(),
    };
    if bytes.iter().enumerate().all(|(at, byte)| stays(at, *byte)) {
        return Cow::Borrowed(path);
    }
    let mut whole = String::with_capacity(path.len() + 16);
    for (at, byte) in bytes.iter().enumerate() {
        if stays(at, *byte) {
            whole.push(char::from(*byte));
        } else {
            whole.push_str(&format!("%{byte:02X}"));
        }
    }
    Cow::Owned(whole)
}

#[cfg(test)]
mod tests {
    use super::super::event::Http;
    use super::*;

    fn of(raw: &str, stage: &'static str, domain: &'static str) -> String {
        let context = RequestContext {
            api_id: "abc".into(),
            domain_name: domain.into(),
            stage: stage.into(),
            http: Http {
                method: "GET".into(),
                source_ip: "".into(),
            },
            authorizer: None,
        };
        path(raw, &context)
    }

    #[test]
    fn stages_and_base_paths() {
        const OWN: &str = "abc.execute-api.eu-central-1.amazonaws.com";
        for (raw, stage, domain, path) in [
            (
                "/v1/tenants/w1/messages",
                "$default",
                OWN,
                "/v1/tenants/w1/messages",
            ),
            (
                "/live/v1/tenants/w1/messages",
                "live",
                OWN,
                "/v1/tenants/w1/messages",
            ),
            ("/v1/tenants/w1/messages", "live", OWN, "/v1/tenants/w1/messages"),
            ("/livev1/tenants", "live", OWN, "/livev1/tenants"),
            ("/live", "live", OWN, "/live"),
            ("/x/v1/tenants", "$default", OWN, "/x/v1/tenants"),
            ("/room/bus/v1/tenants", "$default", "bus.example", "/v1/tenants"),
            ("/v1/x/v1/tenants", "$default", "bus.example", "/v1/x/v1/tenants"),
            ("/else", "$default", "bus.example", "/else"),
            ("", "$default", OWN, ""),
            ("v1", "v1", OWN, "v1"),
            ("/v1/v1/tenants", "v1", OWN, "/v1/tenants"),
        ] {
            assert_eq!(of(raw, stage, domain), path, "{raw} {stage} {domain}");
        }
    }

    #[test]
    fn what_was_decoded_is_encoded_again() {
        for (raw, path) in [
            ("/v1/a b\"é\u{0}", "/v1/a%20b%22%C3%A9%00"),
            ("/v1/a%25b%2", "/v1/a%25b%252"),
            ("/v1/a#b[c]", "/v1/a%23b%5Bc%5D"),
            (
                "/v1/admin/tenants/w1/stories/desk/2026/x y",
                "/v1/admin/tenants/w1/stories/desk%2F2026%2Fx%20y",
            ),
            ("/v1/admin/tenants/w1/stories/a", "/v1/admin/tenants/w1/stories/a"),
            ("/v1/admin/tenants/w1/stories", "/v1/admin/tenants/w1/stories"),
            (
                "/v1/admin/tenants/w1/consumers/c/queue",
                "/v1/admin/tenants/w1/consumers/c/queue",
            ),
        ] {
            assert_eq!(of(raw, "$default", "abc.execute-api.x"), path, "{raw}");
        }
    }
}
