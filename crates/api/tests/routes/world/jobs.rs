//! Jobs and what they deliver.

use serde_json::{Value, json};
use storybus_core::ops::jobs::Stepped;
use storybus_testkit::executor::run;

use super::{Room, World, ask};

impl Room {
    /// The path of the consumer in the operator API.
    pub(crate) fn operated(&self, call: &str) -> String {
        format!(
            "/v1/admin/tenants/{}/consumers/{}/{call}",
            self.tenant, self.consumer.id
        )
    }

    /// The path of a part of the workspace in the operator API.
    pub(crate) fn of_tenant(&self, part: &str) -> String {
        format!("/v1/admin/tenants/{}/{part}", self.tenant)
    }
}

impl World {
    /// Takes a job's steps to its end.
    pub(crate) fn work(&self, room: &Room, job: &Value) -> Value {
        let id = job["job_id"].as_str().expect("a job").to_owned();
        let parsed = id.parse().expect("a job's id");
        while run(self.api.bus().job_step(&parsed)).expect("a step") == Stepped::Goes {}
        self.operate("GET", &room.of_tenant(&format!("jobs/{id}")), None)
            .is_ok()
            .json
            .clone()
    }

    /// Begins a job and takes it to its end.
    pub(crate) fn job(&self, room: &Room, call: &str, members: Value) -> Value {
        let answer = self.operate("POST", &room.operated(call), Some(members));
        assert_eq!(answer.status, 202, "{}", answer.json);
        assert_eq!(answer.json["state"], "queued");
        self.work(room, &answer.json)
    }

    /// Receives all and rejects it.
    pub(crate) fn reject_all(&self, room: &Room, reason: &str) {
        let handles: Vec<Value> = self
            .receive(room, "")
            .iter()
            .map(|m| m["receipt_handle"].clone())
            .collect();
        let body = json!({"receipt_handles": handles, "reason": reason});
        let answer = self.send(ask("POST", room.pull("reject")).of(&room.consumer).json(&body));
        assert_eq!(answer.is_ok().json["failed"], json!([]));
    }

    /// The bus's time, as an operator writes it.
    pub(crate) fn time(&self) -> String {
        self.clock.now().to_rfc3339()
    }
}
