//! The producer's database, and what is put into its outbox.

use std::time::Duration;

use anyhow::{Context, Result};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection as _, Row as _};
use storybus_sender::envelope;
use storybus_sender::message::{Message, Target};
use storybus_sender::outbox::{Conn, Outbox, enqueue};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::story::{Story, assets};

/// How many messages are enqueued in one transaction.
const TOGETHER: u64 = 100;

/// Where an outbox is, for as long as this lives.
pub(crate) struct Place {
    pub(crate) url: String,
    _folder: Option<TempDir>,
}

impl Place {
    pub(crate) fn sqlite() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        Ok(Self {
            url: folder.path().join("business.db").display().to_string(),
            _folder: Some(folder),
        })
    }

    pub(crate) async fn postgres() -> Result<Self> {
        Ok(Self {
            url: storybus_testpg::durable_database().await,
            _folder: None,
        })
    }

    /// A connection of the producer's; the outbox is made.
    pub(crate) async fn open(&self) -> Result<Producer> {
        let outbox = Outbox::open(&self.url)?;
        outbox.migrate().await?;
        outbox.close().await;
        if self.url.starts_with("postgres:") {
            let mut producer = Producer::Postgres(PgConnection::connect(&self.url).await?);
            // Statistics come later than these tables grow, and a plan that looks dear would be compiled.
            producer.run("SET enable_seqscan = off; SET jit = off").await?;
            return Ok(producer);
        }
        let options = SqliteConnectOptions::new()
            .filename(&self.url)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(60));
        Ok(Producer::Sqlite(SqliteConnection::connect_with(&options).await?))
    }
}

/// A connection of the producer's.
pub(crate) enum Producer {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

macro_rules! on {
    ($producer:expr, $conn:ident => $work:expr) => {
        match $producer {
            Producer::Sqlite($conn) => $work,
            Producer::Postgres($conn) => $work,
        }
    };
}

impl Producer {
    fn conn(&mut self) -> Conn<'_> {
        on!(self, conn => conn.into())
    }

    pub(crate) async fn run(&mut self, sql: &'static str) -> Result<()> {
        on!(self, conn => sqlx::raw_sql(sql).execute(conn).await.map(drop))?;
        Ok(())
    }

    async fn begin(&mut self) -> Result<()> {
        match self {
            Self::Sqlite(_) => self.run("BEGIN IMMEDIATE").await,
            Self::Postgres(_) => self.run("BEGIN").await,
        }
    }

    /// A number that a query gives; 0 where it gives none.
    pub(crate) async fn number(&mut self, sql: &'static str) -> Result<i64> {
        let number: Option<Option<i64>> = on!(self, conn => sqlx::query(sql).fetch_optional(conn).await
            .map(|row| row.map(|row| row.get(0))))?;
        Ok(number.flatten().unwrap_or(0))
    }

    /// Whether something is pending behind this number.
    pub(crate) async fn is_pending(&mut self, behind: i64) -> Result<bool> {
        const PENDING: &str =
            "SELECT id FROM sender_log WHERE state = 'pending' AND id > $1 ORDER BY id LIMIT 1";
        Ok(
            on!(self, conn => sqlx::query(PENDING).bind(behind).fetch_optional(conn).await.map(|row| row.is_some()))?,
        )
    }

    /// Enqueues a message that is parked, and so many behind it in its line, which no relay has looked at yet. The last one's number.
    pub(crate) async fn stuck(&mut self, messages: u64) -> Result<i64> {
        self.run(
            "INSERT INTO sender_log (target, key, order_group, payload, state, turn, finished_at) VALUES ('bus', 'stuck', 'stuck', '{}', 'parked', 'first', 1)",
        )
        .await?;
        let count = i64::try_from(messages)?;
        let sql = match self {
            Self::Sqlite(_) => {
                "INSERT INTO sender_log (target, key, order_group, payload)
                 WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < $1) SELECT 'bus', 'stuck-' || n, 'stuck', '{}' FROM n"
            }
            Self::Postgres(_) => {
                "INSERT INTO sender_log (target, key, order_group, payload)
                 SELECT 'bus', 'stuck-' || n, 'stuck', '{}' FROM generate_series(1, $1) AS n"
            }
        };
        on!(self, conn => sqlx::query(sql).bind(count).execute(conn).await.map(drop))?;
        self.number("SELECT max(id) FROM sender_log").await
    }

    /// Enqueues so many snapshots, of the stories in turn, many in a transaction.
    pub(crate) async fn fill(&mut self, stories: &mut Stories, messages: u64) -> Result<()> {
        let mut left = messages;
        while left > 0 {
            self.begin().await?;
            for _ in 0..left.min(TOGETHER) {
                let message = stories.next()?;
                enqueue(self.conn(), &message).await?;
            }
            self.run("COMMIT").await?;
            left -= left.min(TOGETHER);
        }
        Ok(())
    }

    /// The processes of the server that work for the relay.
    pub(crate) async fn server_processes(&mut self) -> Result<Vec<u32>> {
        const WORK: &str = "SELECT pid FROM pg_stat_activity WHERE application_name = 'storybus' AND datname = current_database()";
        let Self::Postgres(conn) = self else {
            return Ok(Vec::new());
        };
        let rows = sqlx::query(WORK).fetch_all(conn).await?;
        Ok(rows
            .iter()
            .map(|row| row.get::<i32, _>(0).cast_unsigned())
            .collect())
    }

    /// How long the shortest statement takes.
    pub(crate) async fn ask(&mut self) -> Result<Duration> {
        let began = Instant::now();
        self.number("SELECT CAST(1 AS BIGINT)").await?;
        Ok(began.elapsed())
    }

    /// How long it takes to enqueue a message, in a transaction that writes something else, too.
    pub(crate) async fn enqueue(&mut self, message: &Message) -> Result<Duration> {
        self.begin().await?;
        self.run("UPDATE desk SET stories = stories + 1").await?;
        let began = Instant::now();
        enqueue(self.conn(), message).await?;
        let took = began.elapsed();
        self.run("COMMIT").await?;
        Ok(took)
    }
}

/// Stories that are told in turn.
pub(crate) struct Stories {
    stories: Vec<Story>,
    assets: String,
    turn: usize,
    body: String,
}

impl Stories {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            stories: (0..count.max(1)).map(Story::new).collect(),
            assets: assets(),
            turn: 0,
            body: String::new(),
        }
    }

    pub(crate) fn next(&mut self) -> Result<Message> {
        let story = self.turn % self.stories.len();
        self.turn += 1;
        self.stories[story].next(&self.assets, &mut self.body);
        let target = Target::new("bus").context("a target")?;
        Ok(envelope::for_bus(target, self.body.clone().into_bytes())?)
    }
}
