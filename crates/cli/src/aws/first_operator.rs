//! Who runs a deployed bus: made straight in its table, since an operator can be made over the API by an operator alone.

use anyhow::{Context, anyhow};
use storybus_core::domain::refusal::Refusal;
use storybus_core::ops::admin::{Actor, Issued, OperatorMembers};
use storybus_core::{Bus, Settings};

use super::stack::Stack;
use super::{DeployCheckArgs, say};
use crate::exit::Failure;
use crate::private_file;
use crate::serve::credentials::{self, Client, Clients, Credentials};

const FIRST: &str = "first operator";
const NEW: &str = "operator made with --new-operator";

/// The operator of the file; or a new one, whose credentials are in the file then.
pub(super) async fn of(stack: &Stack, args: &DeployCheckArgs) -> Result<Client, Failure> {
    let file = &args.credentials_file;
    let known = credentials::read(file).map_err(Failure::unusable)?;
    let base_url = args.url.as_ref().unwrap_or(&stack.base_url);
    let operator = known.as_ref().and_then(|k| k.clients.operator.clone());
    if let Some(operator) = operator.filter(|o| o.client_secret.is_some() && !args.new_operator) {
        return Ok(operator);
    }
    // Before an operator is made whose secret could not be kept.
    private_file::check(file)
        .with_context(|| format!("cannot write {}", file.display()))
        .map_err(Failure::unusable)?;
    let bus = Bus::new(super::ports::of(&stack.aws), Settings::default());
    let Issued { connection, secret } = if args.new_operator {
        let members = OperatorMembers {
            name: Some(NEW.to_owned()),
            ..OperatorMembers::default()
        };
        bus.operator_create(&Actor::bus(), &members)
            .await
            .map_err(refused)?
    } else {
        bus.operator_bootstrap(FIRST).await.map_err(refused)?.ok_or_else(|| {
            Failure::unusable(format!(
                "the bus has operators, and {} holds no secret of one: give another --credentials-file, or make one more with --new-operator",
                file.display()
            ))
        })?
    };
    let operator = Client {
        client_id: connection.id.as_str().to_owned(),
        client_secret: Some(secret.secret),
        system_id: None,
    };
    let content = Credentials {
        base_url: base_url.clone(),
        clients: Clients {
            operator: Some(operator.clone()),
            ..known.map(|k| k.clients).unwrap_or_default()
        },
    };
    let text = serde_json::to_vec_pretty(&content).map_err(|e| anyhow!(e))?;
    private_file::write(file, &text).with_context(|| format!("cannot write {}", file.display()))?;
    say(&format!(
        "operator {} made; its credentials are in {}",
        operator.client_id,
        file.display()
    ))?;
    Ok(operator)
}

/// A refusal as an error of the command line.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn refused(refusal: Refusal) -> Failure {
    let why: Vec<String> = refusal
        .violations
        .iter()
        .map(|v| format!("{}: {}", v.rule, v.message))
        .collect();
    anyhow!("cannot make an operator: {}", why.join("; ")).into()
}
