//! How the bytes of a file or of a line become a message.

use storybus_sender::envelope::{MAX_BUS_MESSAGE, for_bus};
use storybus_sender::message::{Group, Key, MAX_BODY, Message, Target};

use super::{SendArgs, unusable};
use crate::exit::Failure;
use crate::sender::settings::BUS;

/// How bytes become a message.
#[derive(Debug, Clone)]
pub(super) struct Maker {
    pub(super) target: Target,
    pub(super) key: Option<Key>,
    pub(super) group: Option<Group>,
}

impl Maker {
    pub(super) fn new(args: &SendArgs, target: &Target) -> Result<Self, Failure> {
        let key = args.key.as_deref().map(Key::new).transpose();
        let group = args.group.as_deref().map(Group::new).transpose();
        let maker = Self {
            target: target.clone(),
            key: key.map_err(|error| unusable("--key", error))?,
            group: group.map_err(|error| unusable("--group", error))?,
        };
        if maker.is_for_bus() && maker.group.is_some() {
            return Err(unusable(
                "--group",
                "on a bus the order group is the envelope's correlation_id",
            ));
        }
        if !maker.is_for_bus() && maker.key.is_none() {
            return Err(unusable(
                "--key",
                "a partner's message needs one, derived from what it is about, such as send-1042-to-acme",
            ));
        }
        Ok(maker)
    }

    pub(super) fn is_for_bus(&self) -> bool {
        self.target.as_str() == BUS
    }

    /// The largest message.
    pub(super) fn most(&self) -> usize {
        if self.is_for_bus() {
            MAX_BUS_MESSAGE
        } else {
            MAX_BODY
        }
    }

    pub(super) fn make(&self, name: &str, bytes: Vec<u8>) -> Result<Message, Failure> {
        let too_large = || {
            let most = self.most();
            unusable(
                name,
                format_args!(
                    "it has more than {most} bytes, the most that is taken; put references into it, not content"
                ),
            )
        };
        if bytes.len() > self.most() {
            return Err(too_large());
        }
        if !self.is_for_bus() {
            let Some(key) = self.key.clone() else {
                return Err(unusable(name, "it has no key"));
            };
            return Ok(Message {
                target: self.target.clone(),
                key,
                group: self.group.clone(),
                body: bytes,
                content_type: None,
            });
        }
        let message = for_bus(self.target.clone(), bytes).map_err(|error| unusable(name, error))?;
        if let Some(key) = &self.key
            && !key.as_str().eq_ignore_ascii_case(message.key.as_str())
        {
            return Err(unusable(
                name,
                format_args!(
                    "--key is {key}, and the envelope's message_id is {}: on a bus they are the same",
                    message.key
                ),
            ));
        }
        Ok(message)
    }
}
