//! What the suite's tests are written with.

pub(crate) mod clock;
pub(crate) mod partner;
pub(crate) mod recorder;

use std::sync::Arc;
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _, SqliteConnection};
use storybus_sender::message::{Group, Key, Message, Target};
use storybus_sender::outbox::{Conn, Enqueued, Entry, Outbox, State};
use storybus_sender::relay::{Policy, Relay};
use tempfile::TempDir;

pub(crate) use clock::{HandClock, Seed};
pub(crate) use partner::Partner;
pub(crate) use recorder::Recorder;

/// So long a test waits for something that must come; it never waits for something that must not.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// Each test in it once on SQLite and once on PostgreSQL.
macro_rules! on_both {
    ($($(#[$meta:meta])* async fn $name:ident($db:ident) $body:block)*) => {
        $(
            async fn $name($db: $crate::support::Db) $body
        )*
        mod sqlite {
            $(
                $(#[$meta])*
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name($crate::support::Db::sqlite().await).await;
                }
            )*
        }
        mod postgres {
            $(
                $(#[$meta])*
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name($crate::support::Db::postgres().await).await;
                }
            )*
        }
    };
}
pub(crate) use on_both;

/// A database with an outbox in it.
pub(crate) struct Db {
    pub(crate) url: String,
    pub(crate) outbox: Outbox,
    pub(crate) clock: HandClock,
    _dir: Option<TempDir>,
}

/// A connection as a caller has it.
pub(crate) enum Caller {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Caller {
    pub(crate) async fn connect(url: &str) -> Self {
        if url.starts_with("postgres") {
            Self::Postgres(PgConnection::connect(url).await.expect("a connection"))
        } else {
            Self::Sqlite(SqliteConnection::connect(url).await.expect("a connection"))
        }
    }

    pub(crate) fn conn(&mut self) -> Conn<'_> {
        match self {
            Self::Sqlite(conn) => conn.into(),
            Self::Postgres(conn) => conn.into(),
        }
    }

    pub(crate) async fn run(&mut self, sql: &str) {
        self.try_run(sql).await.expect("the statement");
    }

    pub(crate) async fn try_run(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::Sqlite(conn) => sqlx::raw_sql(sql).execute(conn).await.map(drop),
            Self::Postgres(conn) => sqlx::raw_sql(sql).execute(conn).await.map(drop),
        }
    }

    pub(crate) async fn int(&mut self, sql: &str) -> i64 {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::Sqlite(conn) => sqlx::query(sql).fetch_one(conn).await.expect("a row").get(0),
            Self::Postgres(conn) => sqlx::query(sql).fetch_one(conn).await.expect("a row").get(0),
        }
    }

    /// The first column of each row, as text.
    pub(crate) async fn texts(&mut self, sql: &str) -> Vec<String> {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::Sqlite(conn) => sqlx::query(sql)
                .fetch_all(conn)
                .await
                .expect("rows")
                .iter()
                .map(|row| row.get(0))
                .collect(),
            Self::Postgres(conn) => sqlx::query(sql)
                .fetch_all(conn)
                .await
                .expect("rows")
                .iter()
                .map(|row| row.get(0))
                .collect(),
        }
    }

    pub(crate) async fn begin(&mut self) {
        match self {
            Self::Sqlite(_) => self.run("BEGIN IMMEDIATE").await,
            Self::Postgres(_) => self.run("BEGIN").await,
        }
    }

    pub(crate) async fn enqueue(&mut self, message: &Message) -> Enqueued {
        storybus_sender::outbox::enqueue(self.conn(), message)
            .await
            .expect("enqueued")
    }
}

impl Db {
    pub(crate) async fn sqlite() -> Self {
        let dir = TempDir::new().expect("a directory");
        let url = format!("sqlite:{}", dir.path().join("business.db").display());
        Self::at(url, Some(dir)).await
    }

    pub(crate) async fn postgres() -> Self {
        Self::at(storybus_testpg::database().await, None).await
    }

    async fn at(url: String, dir: Option<TempDir>) -> Self {
        let outbox = Outbox::open(&url).expect("an address");
        outbox.migrate().await.expect("migrated");
        Self {
            url,
            outbox,
            clock: HandClock::default(),
            _dir: dir,
        }
    }

    /// The same database from another node.
    pub(crate) fn node(&self, outbox: Outbox, clock: HandClock) -> Self {
        Self {
            url: self.url.clone(),
            outbox,
            clock,
            _dir: None,
        }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        self.url.starts_with("postgres")
    }

    pub(crate) async fn caller(&self) -> Caller {
        if self.is_postgres() {
            Caller::Postgres(PgConnection::connect(&self.url).await.expect("a connection"))
        } else {
            Caller::Sqlite(SqliteConnection::connect(&self.url).await.expect("a connection"))
        }
    }

    /// A relay that tells the recorder what it does.
    pub(crate) fn relay(&self, partner: &Arc<Partner>, recorder: &Arc<Recorder>) -> Relay {
        self.relay_on(&self.outbox, partner, recorder)
    }

    /// One on another node.
    pub(crate) fn relay_on(
        &self,
        outbox: &Outbox,
        partner: &Arc<Partner>,
        recorder: &Arc<Recorder>,
    ) -> Relay {
        Relay::new(
            outbox.clone(),
            Arc::new(self.clock.clone()),
            Arc::new(Seed::new()),
        )
        .transport(target(), Arc::clone(partner) as _)
        .observer(Arc::clone(recorder) as _)
        .policy(Policy::default())
    }

    /// Time passes: at the database, and at the relay, which looks then. The relay's own clock, which tells it how long a step or a pause lasts,
    /// moves by less than would make it give up a step that happens to be under way.
    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by.min(Duration::from_secs(40)));
        self.outbox.advance(by);
    }

    /// Lets the relays' time go on, a little with each look at the outbox, while something else is waited for: for what pauses of their own come before.
    pub(crate) async fn while_time_passes<T>(&self, work: impl Future<Output = T>) -> T {
        let passing = async {
            loop {
                self.outbox.probe().await.expect("the outbox is there");
                self.clock.advance(Duration::from_millis(5));
            }
        };
        tokio::select! {
            done = work => done,
            () = passing => unreachable!("time does not end"),
        }
    }

    pub(crate) async fn show(&self, name: &str) -> Entry {
        self.outbox
            .show(&target(), &key(name))
            .await
            .expect("it is there")
    }

    pub(crate) async fn state(&self, name: &str) -> State {
        self.show(name).await.state
    }

    pub(crate) async fn enqueue(&self, message: &Message) -> i64 {
        self.outbox.enqueue(message).await.expect("enqueued").id()
    }
}

pub(crate) fn target() -> Target {
    Target::new("bus").expect("a target")
}

pub(crate) fn key(name: &str) -> Key {
    Key::new(name).expect("a key")
}

/// A message of no line.
pub(crate) fn message(name: &str) -> Message {
    Message {
        target: target(),
        key: key(name),
        group: None,
        body: format!("the bytes of {name}").into_bytes(),
        content_type: None,
    }
}

/// A message of a line.
pub(crate) fn of_group(group: &str, name: &str) -> Message {
    Message {
        group: Some(Group::new(group).expect("a group")),
        ..message(name)
    }
}
