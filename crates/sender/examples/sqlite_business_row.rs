//! A business row and the message that tells of it, in one transaction on SQLite: neither exists without the other.
//!
//! Run it with the path of a database: `cargo run --example sqlite_business_row -- newsroom.db`. Then send what is in the outbox:
//! `storybus relay --outbox newsroom.db`.

use sqlx::{Connection as _, SqliteConnection};
use storybus_sender::message::{Key, Message, Target};
use storybus_sender::outbox::{Outbox, enqueue};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| String::from("newsroom.db"));
    // Once, at the start of the program: the outbox's table, in the program's own database.
    Outbox::open(&path)?.migrate().await?;

    let mut newsroom = SqliteConnection::connect(&format!("sqlite:{path}")).await?;
    sqlx::query("CREATE TABLE IF NOT EXISTS invoice (id INTEGER PRIMARY KEY, partner TEXT NOT NULL)")
        .execute(&mut newsroom)
        .await?;

    // IMMEDIATE: it is going to write, and so waits for its turn here rather than failing later.
    let mut transaction = newsroom.begin_with("BEGIN IMMEDIATE").await?;
    let invoice: i64 = sqlx::query_scalar("INSERT INTO invoice (partner) VALUES ('acme') RETURNING id")
        .fetch_one(&mut *transaction)
        .await?;
    let message = Message {
        target: Target::new("acme")?,
        key: Key::new(format!("send-{invoice}-to-acme"))?,
        group: None,
        body: format!(r#"{{"invoice": {invoice}}}"#).into_bytes(),
        content_type: Some(String::from("application/json")),
    };
    enqueue(&mut *transaction, &message).await?;
    // A crash before this line leaves neither the invoice nor the message, one after it leaves both.
    transaction.commit().await?;
    Ok(())
}
