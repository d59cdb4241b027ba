//! Workspaces, on the wire `tenants`.

use serde::Serialize;
use storybus_protocol::id::WorkspaceId;
use storybus_protocol::{Violation, rule};

use super::{
    Actor, MAX_ATTEMPTS, Page, Purpose, after, details, limits, overtaken, refuse_faults,
    refused_by_registry, tenant_not_found,
};
use crate::bus::Bus;
use crate::domain::connection::Workspace;
use crate::domain::refusal::{Refusal, RefusalKind};
use crate::ops::refused_by_store;
use crate::ports::workspaces::RegistryError;

/// What an operator says of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TenantMembers {
    /// 1–200 characters; a new one must have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether types without a schema are refused; `false` when it is not given or `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_message_types: Option<Option<bool>>,
}

impl TenantMembers {
    /// Everything that is wrong with them.
    #[must_use]
    pub fn faults(&self, purpose: Purpose) -> Vec<Violation> {
        let mut faults = Vec::new();
        match &self.name {
            Some(name) => limits::name(&mut faults, name),
            None if purpose == Purpose::Create => faults.push(limits::missing("/name")),
            None => {}
        }
        faults
    }

    fn apply(&self, workspace: &mut Workspace) {
        if let Some(name) = &self.name {
            workspace.name.clone_from(name);
        }
        if let Some(strict) = self.strict_message_types {
            workspace.strict_message_types = strict.unwrap_or_default();
        }
    }
}

impl Bus {
    /// Makes a workspace.
    ///
    /// # Errors
    ///
    /// `400 request.invalid`; `409 request.invalid` when there are as many as the engine carries.
    pub async fn tenant_create(&self, actor: &Actor, members: &TenantMembers) -> Result<Workspace, Refusal> {
        refuse_faults(members.faults(Purpose::Create))?;
        for _ in 0..MAX_ATTEMPTS {
            let mut workspace = Workspace {
                id: self.fresh_id('w')?,
                name: String::new(),
                strict_message_types: false,
                created_at: self.ports.clock.now(),
                version: 1,
            };
            members.apply(&mut workspace);
            let entry = self.audit_entry(
                actor,
                "tenant.create",
                vec![workspace.id.to_string()],
                details(members),
            );
            match self.ports.workspaces.create(&workspace, &entry).await {
                Ok(()) => return Ok(workspace),
                Err(RegistryError::Changed) => {}
                Err(error) => return Err(refused_workspace("tenant_create", &error)),
            }
        }
        Err(overtaken())
    }

    /// One workspace.
    ///
    /// # Errors
    ///
    /// `404 tenant.not_found`.
    pub async fn tenant_get(&self, tenant: &str) -> Result<Workspace, Refusal> {
        let id: WorkspaceId = tenant.parse().map_err(|_| tenant_not_found())?;
        let found = self
            .ports
            .workspaces
            .get(&id)
            .await
            .map_err(|e| refused_by_store("tenant_get", &e))?;
        found.ok_or_else(tenant_not_found)
    }

    /// Up to `limit` workspaces behind the id `after`.
    ///
    /// # Errors
    ///
    /// `400 request.invalid` when `after` is not an id.
    pub async fn tenant_list(&self, from: Option<&str>, limit: usize) -> Result<Page<Workspace>, Refusal> {
        let from: Option<WorkspaceId> = after(from)?;
        let found = self
            .ports
            .workspaces
            .list(from.as_ref(), limit.saturating_add(1))
            .await;
        let found = found.map_err(|e| refused_by_store("tenant_list", &e))?;
        Ok(Page::of(found, limit, |w| w.id.to_string()))
    }

    /// Changes a workspace; what is not given stays. A change that changes nothing writes nothing.
    ///
    /// # Errors
    ///
    /// `400 request.invalid`, `404 tenant.not_found`.
    pub async fn tenant_update(
        &self,
        actor: &Actor,
        tenant: &str,
        members: &TenantMembers,
    ) -> Result<Workspace, Refusal> {
        refuse_faults(members.faults(Purpose::Change))?;
        for _ in 0..MAX_ATTEMPTS {
            let read = self.tenant_get(tenant).await?;
            let mut changed = read.clone();
            members.apply(&mut changed);
            if changed == read {
                return Ok(read);
            }
            changed.version += 1;
            let entry = self.audit_entry(
                actor,
                "tenant.update",
                vec![changed.id.to_string()],
                details(members),
            );
            match self.ports.workspaces.update(&changed, &entry).await {
                Ok(()) => return Ok(changed),
                Err(RegistryError::Changed) => {}
                Err(error) => return Err(refused_workspace("tenant_update", &error)),
            }
        }
        Err(overtaken())
    }

    /// Deletes a workspace without connections.
    ///
    /// # Errors
    ///
    /// `404 tenant.not_found`, `409 tenant.not_empty`.
    pub async fn tenant_delete(&self, actor: &Actor, tenant: &str) -> Result<(), Refusal> {
        let id: WorkspaceId = tenant.parse().map_err(|_| tenant_not_found())?;
        let entry = self.audit_entry(
            actor,
            "tenant.delete",
            vec![id.to_string()],
            serde_json::json!({}),
        );
        self.ports
            .workspaces
            .delete(&id, &entry)
            .await
            .map_err(|e| refused_workspace("tenant_delete", &e))
    }
}

fn refused_workspace(operation: &'static str, error: &RegistryError) -> Refusal {
    match error {
        RegistryError::NotFound => tenant_not_found(),
        RegistryError::NotEmpty => Refusal::policy(
            RefusalKind::Conflict,
            rule::TENANT_NOT_EMPTY,
            "the workspace still has producers or consumers; delete them first",
        ),
        RegistryError::Changed => overtaken(),
        RegistryError::Store(error) => refused_by_registry(operation, error),
        RegistryError::WorkspaceLimit => Refusal::policy(
            RefusalKind::Conflict,
            rule::REQUEST_INVALID,
            "there are as many workspaces as the bus can serve; delete one first",
        ),
        RegistryError::SystemIdTaken(_)
        | RegistryError::RoleTaken
        | RegistryError::NoSuchReader
        | RegistryError::ConsumerLimit
        | RegistryError::LastOperator => {
            tracing::error!(operation, %error, "an answer that workspaces do not give");
            Refusal::internal()
        }
    }
}
