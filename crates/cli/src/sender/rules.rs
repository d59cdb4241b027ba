//! Rules that are not the bus's own: why the sender kept, parked or refused something by itself, and what stands between it and a bus.

/// Each rule with what it means and what to do.
const PAGES: &[(&str, &str)] = &[
    (
        "sender.key_mismatch",
        "The row's key is not the message_id of its envelope. Nothing was sent: the outbox would know the message by one name and the bus by
another, and neither would recognise it when it comes again.

Whose fault: the program's that wrote the row.
What to do: enqueue the envelope again with its message_id, in lower case, as the key, and correct the program. The refused row stays as it is.",
    ),
    (
        "sender.partner_may_have_forgotten",
        "The message may have arrived, was not answered, and that is so long ago that the partner may have forgotten its key (a bus remembers it
for 7 days). Sent again it might be taken a second time, so it is parked instead.

Whose fault: nobody's; the partner, or every relay, was away for too long.
What to do: look whether it has arrived (an operator: storybus message show ID; or the consumers). If it has, storybus outbox drop KEY; if
it has not, storybus outbox resend KEY --yes.",
    ),
    (
        "sender.relays_ended",
        "Relay after relay ended while it was sending this message, and the time for it is over: it is parked, lest it end the next one too.

Whose fault: this program's, or that of the machines it runs on.
What to do: look into the logs of the relays at that time, then storybus outbox resend KEY, or drop it.",
    ),
    (
        "operator.dropped",
        "An operator gave the message up with storybus outbox drop. It is refused in the operator's name, and its order group went on.

What to do: nothing. If it was a mistake: its key is never sent again, so enqueue the content under a new message_id
(storybus outbox show --payload KEY prints it).",
    ),
    (
        "outbox.key_reused",
        "A file of the spool has the message_id of a message in the outbox, and other content. It was not enqueued.

Whose fault: the program's that wrote the file.
What to do: give the changed message a message_id of its own. The same content under the same message_id is taken at any time.",
    ),
    (
        "outbox.forgotten",
        "The outbox no longer knows the message of a file in sending/: its row was deleted, or the relay runs with another outbox.

What to do: look whether the relay has the right outbox, and whether the message has arrived (storybus message show ID). If it has
not, put the file into the spool again.",
    ),
    (
        "spool.unreadable",
        "A file of the spool could not be read.

What to do: look at its owner and mode (the relay's user has to be allowed to read it), then put it into the spool again.",
    ),
    (
        "spool.not_an_envelope",
        "A file of the spool is no SOM envelope with a message_id and a correlation_id, or it is larger than a bus takes.

Whose fault: the program's that wrote the file.
What to do: the detail says what is missing. Write it anew, under a hidden name, and rename it into the spool when it is whole.",
    ),
    (
        "invalid_client",
        "The bus gave no access token: it does not know the client id, the secret is wrong, or an operator has disabled the producer.
No message is refused or parked for it by a single round: they stay pending.

Whose fault: the settings of this sender.
What to do: compare the client id and the secret with what the bus's operator gave you; with a new secret from them replace the file that
--client-secret-file names (a relay reads it again by itself), or start again with the new STORYBUS_CLIENT_SECRET.",
    ),
    (
        "unauthorized_client",
        "The bus gave no access token: this client may not ask for one in this way. Is it a producer's client id?

What to do: as for invalid_client.",
    ),
    (
        "invalid_scope",
        "The bus gave no access token: this client may not publish. Is it a producer's client id, and not a consumer's or an operator's?

What to do: give the producer's --client-id and secret.",
    ),
    (
        "slow_down",
        "The bus makes log-ins wait: too many have failed lately, or come at once. It passes by itself.

What to do: if it lasts, look for a program that logs in with a wrong secret.",
    ),
];

/// A rule's page.
pub(crate) fn page(rule: &str) -> Option<String> {
    if let Some((rule, text)) = PAGES.iter().find(|(known, _)| *known == rule) {
        return Some(format!("# {rule}\n\n{text}\n"));
    }
    let status: u16 = rule
        .strip_prefix("http.")?
        .parse()
        .ok()
        .filter(|s| (100..1000).contains(s))?;
    Some(format!(
        "# http.{status}\n\nThe answer {status} was not the bus's own: a gateway, a proxy, a log-in page or another service stands between, or the URL is wrong.
A yes is believed, and a message refused for good, only by the bus's own word (but for 413: something on the way carries no message so large).

What to do: compare the URL with what the bus's operator gave you, and ask whoever runs what stands between. A 5xx may pass by itself.\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_of_the_sender_has_a_page() {
        for rule in [
            storybus_sender::transport::bus::KEY_MISMATCH,
            "sender.partner_may_have_forgotten",
            "sender.relays_ended",
            "operator.dropped",
            "outbox.key_reused",
            "outbox.forgotten",
            "spool.unreadable",
            "spool.not_an_envelope",
            "invalid_client",
            "http.503",
        ] {
            let text = page(rule).unwrap_or_default();
            assert!(
                text.starts_with(&format!("# {rule}\n")) && text.contains("What to do"),
                "{rule}"
            );
        }
        for rule in ["http.", "http.x", "http.99999", "sender.", ""] {
            assert_eq!(page(rule), None, "{rule}");
        }
    }
}
