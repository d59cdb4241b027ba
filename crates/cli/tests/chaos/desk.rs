//! The producer: many connections that change stories and enqueue messages about them, in one transaction each.
//!
//! What was committed is known by tables of the producer's own, which nothing but its own transactions writes. Some transactions are rolled
//! back, and some connections end in the middle of one: of those nothing must ever be heard.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use sqlx::{Connection as _, Row as _};
use storybus_sender::envelope;
use storybus_sender::keys::Namespace;
use storybus_sender::message::Target;
use storybus_sender::outbox::{Conn, Enqueued, Outbox, enqueue};

use crate::dice::Dice;
use crate::pause;

/// A connection of the producer's.
pub(crate) enum Desk {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

/// A message that was committed: its id and its bytes.
pub(crate) type Written = (String, String);

macro_rules! on {
    ($desk:expr, $conn:ident => $work:expr) => {
        match $desk {
            Desk::Sqlite($conn) => $work,
            Desk::Postgres($conn) => $work,
        }
    };
}

impl Desk {
    pub(crate) async fn open(url: &str) -> Self {
        if url.starts_with("postgres:") {
            return Self::Postgres(PgConnection::connect(url).await.expect("a connection"));
        }
        let options = SqliteConnectOptions::new()
            .filename(url)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(Duration::from_secs(20));
        Self::Sqlite(
            SqliteConnection::connect_with(&options)
                .await
                .expect("a connection"),
        )
    }

    /// Makes the producer's tables, and the outbox beside them.
    pub(crate) async fn found(url: &str, stories: u32) -> Self {
        let mut desk = Self::open(url).await;
        Outbox::open(url)
            .expect("an address")
            .migrate()
            .await
            .expect("an outbox");
        desk.run(
            "CREATE TABLE story (id BIGINT PRIMARY KEY, messages BIGINT NOT NULL, snapshots BIGINT NOT NULL)",
        )
        .await;
        desk.run("CREATE TABLE written (story BIGINT, number BIGINT, message_id TEXT, body TEXT, PRIMARY KEY (story, number))")
            .await;
        for story in 0..stories {
            on!(&mut desk, conn => sqlx::query("INSERT INTO story VALUES ($1, 0, 0)")
                .bind(i64::from(story)).execute(conn).await.map(drop))
            .expect("a story");
        }
        desk
    }

    pub(crate) async fn run(&mut self, sql: &'static str) {
        on!(self, conn => sqlx::raw_sql(sql).execute(conn).await.map(drop)).expect("the statement");
    }

    fn conn(&mut self) -> Conn<'_> {
        on!(self, conn => conn.into())
    }

    async fn begin(&mut self) {
        match self {
            Self::Sqlite(_) => self.run("BEGIN IMMEDIATE").await,
            Self::Postgres(_) => self.run("BEGIN").await,
        }
    }

    /// Changes the story: the numbers of its next message and its last snapshot. Holds it until the transaction ends.
    async fn change(&mut self, story: i64, snapshot: bool) -> (i64, i64) {
        const CHANGE: &str = "UPDATE story SET messages = messages + 1, snapshots = snapshots + $2 WHERE id = $1 RETURNING messages, snapshots";
        let row = on!(self, conn => sqlx::query(CHANGE).bind(story).bind(i64::from(snapshot)).fetch_one(conn).await
            .map(|row| (row.get(0), row.get(1))));
        row.expect("the story")
    }

    async fn note(&mut self, story: i64, number: i64, message_id: &str, body: &str) {
        on!(self, conn => sqlx::query("INSERT INTO written VALUES ($1, $2, $3, $4)")
            .bind(story).bind(number).bind(message_id).bind(body).execute(conn).await.map(drop))
        .expect("the note");
    }

    /// What was committed, story by story, in the order of the commits.
    pub(crate) async fn written(&mut self) -> BTreeMap<String, Vec<Written>> {
        let sql = "SELECT story, message_id, body FROM written ORDER BY story, number";
        let rows: Vec<(i64, Written)> = on!(self, conn => sqlx::query(sql).fetch_all(conn).await
            .map(|rows| rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect()))
        .expect("the notes");
        let mut written: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (story, message) in rows {
            written.entry(correlation(story)).or_default().push(message);
        }
        written
    }

    /// The rows of the outbox as text, all but the payload.
    pub(crate) async fn rows(&mut self) -> Vec<String> {
        let sql = "SELECT CAST(id AS TEXT) || ' ' || target || ' ' || key || ' ' || COALESCE(order_group, '-') || ' ' || state || ' ' ||
                COALESCE(turn, '-') || ' ' || CAST(attempts AS TEXT) || ' ' || CAST(round_attempts AS TEXT) || ' ' || CAST(due_at AS TEXT) || ' ' ||
                COALESCE(CAST(first_attempt_at AS TEXT), '-') || ' ' || COALESCE(CAST(last_attempt_at AS TEXT), '-') || ' ' ||
                COALESCE(CAST(unsure_since AS TEXT), '-') || ' ' || COALESCE(CAST(finished_at AS TEXT), '-') || ' ' ||
                COALESCE(CAST(last_status AS TEXT), '-') || ' ' || COALESCE(last_outcome, '-') || ' ' || COALESCE(last_rule, '-') || ' ' ||
                COALESCE(last_detail, '-') || ' ' || COALESCE(lease_owner, '-') || ' ' || COALESCE(CAST(lease_until AS TEXT), '-') || ' ' ||
                CAST(fence AS TEXT)
            FROM sender_log ORDER BY id";
        on!(self, conn => sqlx::query(sql).fetch_all(conn).await
            .map(|rows| rows.iter().map(|row| row.get(0)).collect()))
        .expect("the outbox")
    }

    /// Ends the relays' connections to the database, as a restart of it does. On SQLite there are none.
    pub(crate) async fn cut_relays_off(&mut self) {
        if let Self::Postgres(_) = self {
            self.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'storybus'",
            )
            .await;
        }
    }

    /// A number that a query gives.
    pub(crate) async fn number(&mut self, sql: &'static str) -> i64 {
        on!(self, conn => sqlx::query(sql).fetch_one(conn).await.map(|row| row.get(0))).expect("a number")
    }

    /// Writes one message of a story down, in the transaction that is open.
    pub(crate) async fn tell(&mut self, story: i64, dice: &mut Dice) {
        // The story is held before anything is decided about it. It begins with a snapshot; later one message in five is an event.
        let (messages, _) = self.change(story, false).await;
        let snapshot = messages == 1 || dice.percent(80);
        let (number, snapshots) = if snapshot {
            let (_, snapshots) = self.change(story, true).await;
            (messages + 1, snapshots)
        } else {
            (messages, 0)
        };
        let message_id = namespace()
            .message_id(&[&story.to_string(), &number.to_string()])
            .to_string();
        let body = if snapshot {
            snapshot_of(story, &message_id, snapshots, dice)
        } else {
            event_of(story, &message_id)
        };
        self.note(story, number, &message_id, &body).await;
        let target = Target::new("bus").expect("a target");
        let message = envelope::for_bus(target, body.into_bytes()).expect("an envelope");
        let enqueued = enqueue(self.conn(), &message).await.expect("enqueued");
        assert!(matches!(enqueued, Enqueued::New { .. }), "{enqueued:?}");
        if dice.percent(5) {
            let again = enqueue(self.conn(), &message).await.expect("enqueued");
            assert!(matches!(again, Enqueued::Known { .. }), "{again:?}");
        }
    }
}

/// Commits so many messages of random stories, over about so long.
pub(crate) async fn write(url: String, mut messages: u32, stories: u32, over: Duration, mut dice: Dice) {
    let mut desk = Desk::open(&url).await;
    let between = over * 2 / messages.max(1);
    while messages > 0 {
        pause(dice.span(between)).await;
        let story = i64::try_from(dice.below(u64::from(stories))).unwrap_or(0);
        let together = if messages > 1 && dice.percent(15) { 2 } else { 1 };
        desk.begin().await;
        for _ in 0..together {
            desk.tell(story, &mut dice).await;
        }
        match dice.below(100) {
            0..8 => desk.run("ROLLBACK").await,
            // The program dies.
            8..10 => desk = Desk::open(&url).await,
            _ => {
                desk.run("COMMIT").await;
                messages -= together;
            }
        }
    }
}

fn namespace() -> Namespace {
    Namespace::of_domain("chaos.example")
}

fn correlation(story: i64) -> String {
    namespace().correlation_id(&[&story.to_string()]).to_string()
}

/// A snapshot, written in a way that no serialiser would: whoever writes it anew changes its bytes.
fn snapshot_of(story: i64, message_id: &str, sequence: i64, dice: &mut Dice) -> String {
    let correlation = correlation(story);
    let filler = "Fähre \\u00fc \\/ 1.50e1 ".repeat(1 + usize::try_from(dice.below(60)).unwrap_or(0));
    let (hour, minute, second) = (sequence / 3600 % 24, sequence / 60 % 60, sequence % 60);
    format!(
        "{{ \"som_version\":\"1.0.0\", \"message_id\" : \"{message_id}\",\n\t\"correlation_id\":\"{correlation}\",\"message_type\":\"story.context\",
\"timestamp\":\"2026-10-05T06:30:00.120000Z\",\"originating_system\":{{\"system_id\":\"demo-ncs\",\"system_type\":\"ncs\"}},\"topic\":\"som.story.context\",
\"payload\":{{\"story_id\":\"chaos-{story}\",\"slug\":\"FERRY\",\"headline\":\"{filler}\",\"story_type\":\"PLANNED\",
\"sequence_number\":{sequence},\"updated_at\":\"2026-10-05T{hour:02}:{minute:02}:{second:02}Z\"}}}}"
    )
}

fn event_of(story: i64, message_id: &str) -> String {
    let correlation = correlation(story);
    format!(
        "{{\"payload\":{{\"message_type\":\"telling.started\",\"telling_id\":\"{message_id}\",\"link_id\":\"{correlation}\",
\"exposure_start\":\"2026-10-05T07:05:00Z\"}},  \"som_version\":\"1.0.0\",\"message_id\":\"{message_id}\",\"correlation_id\":\"{correlation}\",
\"message_type\":\"telling.started\",\"timestamp\":\"2026-10-05T07:05:00.010000Z\",\"originating_system\":{{\"system_id\":\"demo-ncs\",\"system_type\":\"ncs\"}},
\"topic\":\"som.telling.started\"}}"
    )
}
