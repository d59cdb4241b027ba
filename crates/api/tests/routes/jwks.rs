//! `GET /.well-known/jwks.json`.

use insta::assert_json_snapshot;

use crate::world::{World, ask};

#[test]
fn shows_the_public_keys_to_anybody_for_five_minutes() {
    let answer = World::new().send(ask("GET", "/v1/.well-known/jwks.json"));
    assert_eq!(answer.header("cache-control"), Some("public, max-age=300"));
    assert_json_snapshot!(answer.is_ok().json, @r#"
    {
      "keys": [
        {
          "alg": "EdDSA",
          "crv": "Ed25519",
          "kid": "test-1",
          "kty": "OKP",
          "use": "sig",
          "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
        }
      ]
    }
    "#);
}
