//! Who is calling: from a bearer token to a connection that may do what the operation does.
//!
//! A token says who the client is; the registry says, each time, whether it may still act.

use std::sync::Arc;

use storybus_protocol::id::{ConnectionKind, WorkspaceId};
use storybus_protocol::rule;

use super::token::Claims;
use super::{Caller, refused_by_store};
use crate::bus::Bus;
use crate::domain::connection::Connection;
use crate::domain::refusal::{Refusal, RefusalKind};

/// The rules of one kind of caller.
struct Rules {
    kind: ConnectionKind,
    unauthenticated: &'static str,
    not_registered: &'static str,
}

const PRODUCER: Rules = Rules {
    kind: ConnectionKind::Producer,
    unauthenticated: rule::PRODUCER_UNAUTHENTICATED,
    not_registered: rule::PRODUCER_NOT_REGISTERED,
};
const CONSUMER: Rules = Rules {
    kind: ConnectionKind::Consumer,
    unauthenticated: rule::CONSUMER_UNAUTHENTICATED,
    not_registered: rule::CONSUMER_NOT_REGISTERED,
};
const OPERATOR: Rules = Rules {
    kind: ConnectionKind::Operator,
    unauthenticated: rule::OPERATOR_UNAUTHENTICATED,
    not_registered: rule::OPERATOR_NOT_REGISTERED,
};

impl Rules {
    fn forbidden(&self, message: &str) -> Refusal {
        Refusal::policy(RefusalKind::Forbidden, self.not_registered, message)
    }
}

impl Bus {
    /// A producer of the workspace that the path names, or of its token's own when the path names none.
    ///
    /// # Errors
    ///
    /// `401 producer.unauthenticated`, `403 producer.not_registered`.
    pub async fn producer(&self, bearer: Option<&str>, tenant: Option<&str>) -> Result<Caller, Refusal> {
        let claims = self.claims(bearer, &PRODUCER).await?;
        self.member(&claims, tenant, &PRODUCER).await
    }

    /// The producer of a workspace whose AWS role signed the request; `None` stands for one that is not signed.
    ///
    /// A role's session names the role without its path, so account and name alone decide.
    ///
    /// # Errors
    ///
    /// `401 producer.unauthenticated`, `403 producer.not_registered`.
    pub async fn producer_by_role(&self, signer: Option<&str>, tenant: &str) -> Result<Caller, Refusal> {
        let Some(signer) = signer else {
            return Err(Refusal::policy(
                RefusalKind::Unauthenticated,
                PRODUCER.unauthenticated,
                "the request is not signed: sign it with the AWS credentials of the producer's registered role (Signature Version 4)",
            ));
        };
        let unknown = || {
            PRODUCER.forbidden(
                "no producer of this workspace is registered with the AWS role that signed the request",
            )
        };
        let (account, role) = assumed_role(signer).ok_or_else(unknown)?;
        let workspace: WorkspaceId = tenant.parse().map_err(|_| unknown())?;
        let found = self
            .ports
            .connections
            .producer_of_role(&workspace, account, role)
            .await;
        let connection = found
            .map_err(|e| refused_by_store("connections.producer_of_role", &e))?
            .filter(|c| c.kind() == PRODUCER.kind && c.workspace.as_ref() == Some(&workspace))
            .ok_or_else(unknown)?;
        if connection.disabled {
            return Err(PRODUCER.forbidden("this client is disabled; an operator can enable it"));
        }
        let workspace = self.ports.workspaces.get(&workspace).await;
        let workspace = workspace
            .map_err(|e| refused_by_store("workspaces.get", &e))?
            .ok_or_else(unknown)?;
        Ok(Caller {
            workspace,
            connection,
        })
    }

    /// The consumer that the path names.
    ///
    /// # Errors
    ///
    /// `401 consumer.unauthenticated`, `403 consumer.not_registered`.
    pub async fn consumer(
        &self,
        bearer: Option<&str>,
        tenant: &str,
        consumer: &str,
    ) -> Result<Caller, Refusal> {
        let claims = self.claims(bearer, &CONSUMER).await?;
        if claims.sub.as_str() != consumer {
            return Err(CONSUMER
                .forbidden("this token is not that consumer's; a queue is read by its own consumer alone"));
        }
        self.member(&claims, Some(tenant), &CONSUMER).await
    }

    /// An operator.
    ///
    /// # Errors
    ///
    /// `401 operator.unauthenticated`, `403 operator.not_registered`.
    pub async fn operator(&self, bearer: Option<&str>) -> Result<Connection, Refusal> {
        let claims = self.claims(bearer, &OPERATOR).await?;
        self.live(&claims, &OPERATOR).await
    }

    async fn claims(&self, bearer: Option<&str>, rules: &Rules) -> Result<Arc<Claims>, Refusal> {
        let claims = match bearer {
            Some(token) => self
                .token_check(token)
                .await
                .map_err(|e| refused_by_store("token_check", &e))?,
            None => None,
        };
        claims.ok_or_else(|| {
            Refusal::policy(
                RefusalKind::Unauthenticated,
                rules.unauthenticated,
                "no access token, or one that does not hold (any more): get a new one from /v1/oauth/token and send it as `Authorization: Bearer …`",
            )
        })
    }

    async fn live(&self, claims: &Claims, rules: &Rules) -> Result<Connection, Refusal> {
        if claims.kind != rules.kind {
            return Err(rules.forbidden("this client is of another kind"));
        }
        let connection = self
            .ports
            .connections
            .get(&claims.sub)
            .await
            .map_err(|e| refused_by_store("connections.get", &e))?;
        match connection {
            Some(c) if !c.disabled && c.kind() == rules.kind && c.workspace == claims.tenant => Ok(c),
            _ => Err(rules.forbidden("this client is disabled or was deleted; an operator can enable it")),
        }
    }

    async fn member(&self, claims: &Claims, tenant: Option<&str>, rules: &Rules) -> Result<Caller, Refusal> {
        let connection = self.live(claims, rules).await?;
        let own: &WorkspaceId = connection
            .workspace
            .as_ref()
            .ok_or_else(|| rules.forbidden("this client has no workspace"))?;
        if tenant.is_some_and(|t| t != own.as_str()) {
            return Err(rules.forbidden("this client belongs to another workspace"));
        }
        let workspace = self
            .ports
            .workspaces
            .get(own)
            .await
            .map_err(|e| refused_by_store("workspaces.get", &e))?;
        let workspace =
            workspace.ok_or_else(|| rules.forbidden("the workspace of this client was deleted"))?;
        Ok(Caller {
            workspace,
            connection,
        })
    }
}

/// Account and name of the role in the ARN of a role's session.
/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html>
fn assumed_role(arn: &str) -> Option<(&str, &str)> {
    let (_, rest) = arn.strip_prefix("arn:")?.split_once(":sts::")?;
    let (account, session) = rest.split_once(":assumed-role/")?;
    let (role, name) = session.split_once('/')?;
    let whole = account.len() == 12
        && account.bytes().all(|b| b.is_ascii_digit())
        && !role.is_empty()
        && !name.is_empty()
        && !name.contains('/');
    whole.then_some((account, role))
}

#[cfg(test)]
mod tests {
    use super::assumed_role;

    #[test]
    fn the_role_of_a_session() {
        assert_eq!(
            assumed_role("arn:aws:sts::123456789012:assumed-role/newsroom/i-0abc"),
            Some(("123456789012", "newsroom"))
        );
        assert_eq!(
            assumed_role("arn:aws-us-gov:sts::123456789012:assumed-role/a+b@c/x"),
            Some(("123456789012", "a+b@c"))
        );
        for other in [
            "",
            "arn:aws:iam::123456789012:user/newsroom",
            "arn:aws:iam::123456789012:role/newsroom",
            "arn:aws:iam::123456789012:root",
            "arn:aws:sts::123456789012:assumed-role/newsroom",
            "arn:aws:sts::123456789012:assumed-role//x",
            "arn:aws:sts::123456789012:assumed-role/desk/newsroom/x",
            "arn:aws:sts::12345678901:assumed-role/newsroom/x",
            "arn:aws:sts::123456789012:federated-user/newsroom",
        ] {
            assert_eq!(assumed_role(other), None, "{other}");
        }
    }
}
