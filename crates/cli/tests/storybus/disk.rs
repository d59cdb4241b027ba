//! A disk without room.

use std::process::Command;

use crate::bus::{BINARY, Home};
use crate::client::snapshot;

#[test]
fn without_room_it_refuses_and_keeps_what_it_has() {
    let home = Home::new();
    // First without a limit, so that the directory is complete.
    let bus = home.serve();
    let first = bus.credentials.clone();
    assert!(bus.stop().success());
    std::fs::remove_file(home.path("given.json")).unwrap();
    // No file may grow over 1 MiB (blocks of 512 bytes); the signal that tells so is ignored, as for a full disk.
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg("trap '' XFSZ; ulimit -f 2048; exec \"$@\"")
        .arg("sh")
        .arg(BINARY);
    command
        .args(["serve", "--addr", "127.0.0.1:0", "--demo", "--data"])
        .arg(home.path("data"));
    command.arg("--credentials-file").arg(home.path("given.json"));
    home.logged(&mut command);
    let mut bus = home.started(command);
    let mut client = bus.log_in(&first, "producer");
    let (mut accepted, mut refused) = (Vec::new(), 0);
    for n in 1..=400 {
        let mut message = snapshot("full", 1 + u32::try_from(accepted.len()).unwrap());
        message["payload"]["description"] = serde_json::Value::Null;
        message["payload"].as_object_mut().unwrap().remove("description");
        message["extensions"] = serde_json::json!({"com.example.filler": "x".repeat(20_000)});
        let Some(answer) = client.try_post("/v1/jwt/messages", &message, "") else {
            break;
        };
        match answer.status {
            202 => accepted.push(message["message_id"].as_str().unwrap().to_owned()),
            503 => {
                assert!(answer.head.contains("retry-after: "), "{answer:?}");
                refused += 1;
            }
            409 if answer.rule() == "commit.contention" => refused += 1,
            _ => panic!("{n}: {answer:?}"),
        }
        if refused >= 5 {
            break;
        }
    }
    assert!(
        refused > 0 && accepted.len() > 5,
        "{} accepted, {refused} refused",
        accepted.len()
    );
    crate::bus::wait_for("bad health", || {
        (bus.connect().get("/healthz").status == 503).then_some(())
    });
    let ended = bus.child.try_wait().unwrap();
    assert!(ended.is_none(), "it goes on: {ended:?} {}", home.read("err"));
    bus.kill();
    let bus = home.serve();
    let (tenant, consumer) = (
        first["tenant"].as_str().unwrap(),
        first["consumer"]["client_id"].as_str().unwrap(),
    );
    let got = bus.log_in(&first, "consumer").drain(tenant, consumer);
    assert_eq!(got, accepted, "what was accepted, and nothing that was refused");
    assert_eq!(bus.connect().get("/healthz").status, 200);
    let mut producer = bus.log_in(&first, "producer");
    assert_eq!(producer.publish(&snapshot("room again", 1)).status, 202);
}
