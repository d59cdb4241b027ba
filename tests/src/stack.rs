//! A deployment of the bus on an emulator of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::{Value, json};
use storybus_aws::{Aws, Config};
use storybus_core::Bus;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::ops::admin::{Actor, ConsumerMembers, ProducerMembers, TenantMembers};
use storybus_core::ops::token::TokenRequest;
use storybus_lambda::metrics::Meter;
use storybus_lambda::ports::{OsRandom, WallClock};
use storybus_lambda::{Deployment, Settings, wiring};
use storybus_protocol::id::{ConnectionId, WorkspaceId};

use crate::fault::Plan;
use crate::function::{Ended, Function};
use crate::proxy::Journal;
use crate::tables;

/// The emulator's one account, and its region.
const ACCOUNT: &str = "000000000000";
const REGION: &str = "us-east-1";
/// The system that the producer speaks for.
const SYSTEM: &str = "ncs";

/// The time, in ms.
#[must_use]
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// A deployment with a workspace, a producer of everything and a consumer of everything.
pub struct Stack {
    /// Where the emulator listens.
    pub address: String,
    /// The clients of the deployment.
    pub aws: Aws,
    /// The bus in this process: what an operator does.
    pub bus: Bus,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The consumer.
    pub consumer: ConnectionId,
    /// What passed to the topics.
    pub journal: Journal,
    /// The window of the publish protocol.
    pub window: Duration,
    /// How AWS is reached from here.
    pub shared: SdkConfig,
    token: String,
    environment: Vec<(String, String)>,
    logs: tempfile::TempDir,
    /// The emulator stops when this ends, and so never outlives the process.
    _until: ChildStdin,
}

impl Stack {
    /// Starts one.
    pub async fn start(window: Duration) -> Self {
        let (address, until) = emulator();
        let shared = shared(&address);
        let environment = environment(&address, window);
        let variable = |name: &str| {
            environment
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, v)| v.clone())
        };
        let mut settings = Settings::read(variable).unwrap();
        // what a replay waits for before a range counts as archived; the archive is fed before
        settings.config.archive_settle = Duration::ZERO;
        make(&shared, &settings.config).await;
        let deployment = Deployment {
            aws: Aws::new(&shared, settings.config.clone()),
            clock: Arc::new(WallClock::default()),
            random: Arc::new(OsRandom),
            meter: Meter::new("proof", "proof", Arc::new(|_: &str| {})),
            settings,
        };
        let aws = deployment.aws.clone();
        aws.secret_keys()
            .make_first(deployment.clock.now())
            .await
            .unwrap();
        let bus = Bus::new(wiring::admin(&deployment), deployment.settings.bus());
        let tokens = Bus::new(wiring::token(&deployment), deployment.settings.bus());
        let actor = Actor::bus();
        let tenant = TenantMembers {
            name: Some("proof".to_owned()),
            ..TenantMembers::default()
        };
        let workspace = bus.tenant_create(&actor, &tenant).await.unwrap().id;
        let members = ProducerMembers {
            name: Some("producer".to_owned()),
            system_ids: Some(vec![SYSTEM.to_owned()]),
            message_types: Some(vec!["*".to_owned()]),
            ..ProducerMembers::default()
        };
        let producer = bus
            .producer_create(&actor, workspace.as_str(), &members)
            .await
            .unwrap();
        let request = TokenRequest {
            client_id: producer.connection.id.to_string(),
            client_secret: producer.secret.secret.clone(),
            scope: None,
            source: "127.0.0.1".to_owned(),
        };
        let token = tokens.token_issue(&request).await.unwrap().access_token;
        let mut stack = Self {
            address,
            aws,
            bus,
            consumer: producer.connection.id,
            workspace,
            journal: Journal::default(),
            window,
            shared,
            token,
            environment,
            logs: tempfile::tempdir().unwrap(),
            _until: until,
        };
        stack.consumer = stack.another_consumer().await;
        stack
    }

    /// One more consumer of everything.
    pub async fn another_consumer(&self) -> ConnectionId {
        let members = ConsumerMembers {
            name: Some("consumer".to_owned()),
            visibility_seconds: Some(Some(600)),
            ..ConsumerMembers::default()
        };
        let actor = Actor::bus();
        let made = self
            .bus
            .consumer_create(&actor, self.workspace.as_str(), &members);
        made.await.unwrap().written.connection.id
    }

    /// A consumer's queue.
    #[must_use]
    pub fn queue(&self, consumer: &ConnectionId) -> QueueKey {
        QueueKey {
            workspace: self.workspace.clone(),
            consumer: consumer.clone(),
        }
    }

    /// Starts a process of a function: of the binary of this name in the folder `STORYBUS_FUNCTIONS`, if there is one.
    pub async fn function(&self, binary: &str, plan: Plan) -> Function {
        self.function_told(binary, plan, &self.environment).await
    }

    /// The same with another environment.
    pub async fn function_told(
        &self,
        binary: &str,
        plan: Plan,
        environment: &[(String, String)],
    ) -> Function {
        let built = Path::new(binary);
        let chosen = match (
            std::env::var_os("STORYBUS_FUNCTIONS").filter(|f| !f.is_empty()),
            built.file_name(),
        ) {
            (Some(folder), Some(name)) => PathBuf::from(folder).join(name),
            _ => built.to_owned(),
        };
        Function::start(
            &chosen,
            environment,
            &self.address,
            plan,
            self.journal.clone(),
            self.logs.path(),
        )
        .await
    }

    /// What the functions are told.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        self.environment.clone()
    }

    /// The event of a publish.
    #[must_use]
    pub fn publish(&self, body: &str) -> String {
        let path = format!("/v1/tenants/{}/messages", self.workspace);
        json!({
            "version": "2.0",
            "routeKey": "POST /v1/tenants/{tenant}/messages",
            "rawPath": path,
            "rawQueryString": "",
            "headers": {
                "authorization": format!("Bearer {}", self.token),
                "content-length": body.len().to_string(),
                "content-type": "application/json",
                "host": "proof.execute-api.us-east-1.amazonaws.com",
            },
            "requestContext": {
                "accountId": ACCOUNT,
                "apiId": "proof",
                "domainName": "proof.execute-api.us-east-1.amazonaws.com",
                "http": { "method": "POST", "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1" },
                "stage": "$default",
            },
            "body": body,
            "isBase64Encoded": false,
        })
        .to_string()
    }

    /// The envelope of a message of the producer.
    #[must_use]
    pub fn envelope(message_id: &str, correlation_id: &str, message_type: &str, payload: &Value) -> String {
        json!({
            "som_version": "1.0.0",
            "message_id": message_id,
            "correlation_id": correlation_id,
            "message_type": message_type,
            "timestamp": "2026-09-11T16:41:00Z",
            "originating_system": { "system_id": SYSTEM, "system_type": "ncs" },
            "topic": "som.proof",
            "payload": payload,
        })
        .to_string()
    }
}

/// An answer of the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// The first rule that it names; `-` for none.
    pub rule: String,
    /// Its body.
    pub body: String,
}

impl Answer {
    /// Of an invocation; `None` when there was no answer.
    #[must_use]
    pub fn of(ended: &Ended) -> Option<Self> {
        let Ended::Answered(text) = ended else {
            return None;
        };
        let answer: Value = serde_json::from_str(text).unwrap();
        let body = answer["body"].as_str().unwrap_or_default();
        let parsed: Value = serde_json::from_str(body).unwrap_or_default();
        Some(Self {
            status: answer["statusCode"].as_u64().unwrap().try_into().unwrap(),
            rule: parsed["violations"][0]["rule"].as_str().unwrap_or("-").to_owned(),
            body: body.to_owned(),
        })
    }
}

fn environment(address: &str, window: Duration) -> Vec<(String, String)> {
    let all = [
        ("AWS_REGION", REGION),
        ("STORYBUS_ACCOUNT", ACCOUNT),
        ("STORYBUS_PREFIX", "proof"),
        ("STORYBUS_TABLE", "proof-bus"),
        ("STORYBUS_ARCHIVE_TABLE", "proof-archive"),
        ("STORYBUS_ARCHIVE_DAYS", "30"),
        ("STORYBUS_ARCHIVE_SETTLE_SECONDS", "1"),
        ("STORYBUS_SIGNING_KEYS", "proof-signing-keys"),
        ("STORYBUS_ISSUER", "https://proof.example/v1/"),
        ("STORYBUS_QUEUE_ENDPOINT", address),
        ("STORYBUS_IN_FLIGHT_SECONDS", &window.as_secs().to_string()),
    ];
    let owned = all
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect()
}

fn shared(address: &str) -> SdkConfig {
    let credentials = Credentials::new("test", "test", None, None, "tests");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(REGION))
        .endpoint_url(address)
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .build()
}

/// The tables, queues and the secret that the template makes.
async fn make(shared: &SdkConfig, config: &Config) {
    let secrets = aws_sdk_secretsmanager::Client::new(shared);
    let secret = secrets.create_secret().name(&config.signing_keys);
    secret.secret_string("{}").send().await.unwrap();
    let dynamodb = aws_sdk_dynamodb::Client::new(shared);
    tables::create(&dynamodb, &config.table, tables::OF_BUS).await;
    tables::create(&dynamodb, &config.archive_table, tables::OF_ARCHIVE).await;
    let sqs = aws_sdk_sqs::Client::new(shared);
    for name in [
        config.archive_queue_name(),
        config.archive_undelivered_name(),
        config.dead_letters_name(),
        config.job_queue_name("replay"),
        config.job_queue_name("redrive"),
    ] {
        let create = sqs.create_queue().queue_name(name);
        let create = create
            .attributes(QueueAttributeName::FifoQueue, "true")
            .attributes(QueueAttributeName::DeduplicationScope, "messageGroup")
            .attributes(QueueAttributeName::FifoThroughputLimit, "perMessageGroupId");
        create.send().await.unwrap();
    }
}

#[expect(clippy::zombie_processes, reason = "it ends with this process, not before")]
fn emulator() -> (String, ChildStdin) {
    let script: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "local-aws", "ministack"]
        .iter()
        .collect();
    let mut child = Command::new(script)
        .arg("--until-eof")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let until = child.stdin.take().unwrap();
    let mut address = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut address).unwrap();
    let address = address.trim().to_owned();
    assert!(
        address.starts_with("http://127.0.0.1:"),
        "the emulator did not start"
    );
    (address, until)
}
