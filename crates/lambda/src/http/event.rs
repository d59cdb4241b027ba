//! The event of an HTTP API, payload format 2.0, as far as the bus reads it.
//!
//! <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html>

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;

/// One request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event<'a> {
    #[serde(borrow)]
    pub(super) raw_path: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) raw_query_string: Cow<'a, str>,
    /// Names in lower case; what was sent more than once is joined by commas.
    #[serde(borrow, default)]
    pub(super) headers: HashMap<Cow<'a, str>, Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) request_context: RequestContext<'a>,
    #[serde(borrow, default)]
    pub(super) body: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) is_base64_encoded: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestContext<'a> {
    #[serde(borrow, default)]
    pub(super) api_id: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) domain_name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) stage: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) http: Http<'a>,
    #[serde(borrow, default)]
    pub(super) authorizer: Option<Authorizer<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Http<'a> {
    #[serde(borrow)]
    pub(super) method: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) source_ip: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Authorizer<'a> {
    #[serde(borrow, default)]
    pub(super) iam: Option<Signer<'a>>,
}

/// Who signed, once the gateway has checked the signature.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Signer<'a> {
    #[serde(borrow, default)]
    pub(super) user_arn: Option<Cow<'a, str>>,
}
