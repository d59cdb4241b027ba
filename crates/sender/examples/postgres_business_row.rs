//! A business row and the message that tells of it, in one transaction on PostgreSQL: neither exists without the other.
//!
//! Run it with the URL of a database: `cargo run --example postgres_business_row -- postgres://me@localhost/newsroom`. Then send what is in the outbox:
//! `storybus relay --outbox postgres://me@localhost/newsroom`.

use sqlx::{Connection as _, PgConnection};
use storybus_sender::message::{Key, Message, Target};
use storybus_sender::outbox::{Outbox, enqueue};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("which database?")?;
    // Once, at the start of the program: the outbox's table, in the program's own database.
    Outbox::open(&url)?.migrate().await?;

    let mut newsroom = PgConnection::connect(&url).await?;
    sqlx::query("CREATE TABLE IF NOT EXISTS invoice (id BIGSERIAL PRIMARY KEY, partner TEXT NOT NULL)")
        .execute(&mut newsroom)
        .await?;

    let mut transaction = newsroom.begin().await?;
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
