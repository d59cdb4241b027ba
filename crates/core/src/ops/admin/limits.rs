//! What members may be: each check adds one fault for each thing that is wrong, at its place.

use std::collections::HashSet;

use storybus_protocol::{Source, Violation, rule};

use super::arn::is_role_arn;
use crate::domain::connection::AwsAccount;
use crate::domain::filter::{Filter, MAX_COMBINATIONS, TypePattern};

/// The longest name, in characters.
pub const MAX_NAME: usize = 200;
/// The longest `topic_prefix`, source or `system_id`, in characters.
pub const MAX_VALUE: usize = 256;
/// The most entries of a consumer's list; the filter's own limit is stricter for several lists together.
pub const MAX_FILTER_LIST: usize = MAX_COMBINATIONS;
/// The most grants of a producer.
pub const MAX_GRANTS: usize = 150;
/// The most `system_id`s of a producer: each is an entry of its own in the registry, written in one transaction, and
/// DynamoDB's take 100. <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html>
pub const MAX_SYSTEM_IDS: usize = 50;
/// The largest `per_second` and `burst`.
pub const MAX_RATE: i64 = 1_000_000;

/// One fault.
pub(crate) fn fault(path: impl Into<String>, message: impl Into<String>) -> Violation {
    Violation::new(Source::Policy, rule::REQUEST_INVALID, message).at(path)
}

/// A name for people.
pub(super) fn name(faults: &mut Vec<Violation>, name: &str) {
    text(faults, "/name".to_owned(), name, MAX_NAME);
}

fn text(faults: &mut Vec<Violation>, path: String, value: &str, longest: usize) {
    let length = value.chars().take(longest + 1).count();
    if !(1..=longest).contains(&length) {
        faults.push(fault(path, format!("must be 1 to {longest} characters")));
    } else if value.chars().any(char::is_control) {
        faults.push(fault(path, "must not contain control characters"));
    }
}

/// A list of texts: how many, each, and that none stands twice.
pub(super) fn texts(faults: &mut Vec<Violation>, path: &str, values: &[String], most: usize) {
    list(faults, path, values, most, |faults, path, value| {
        text(faults, path, value, MAX_VALUE)
    });
}

/// A list of message types.
pub(crate) fn patterns(faults: &mut Vec<Violation>, path: &str, values: &[String], most: usize) {
    list(faults, path, values, most, |faults, path, value| {
        if value.parse::<TypePattern>().is_err() {
            faults.push(fault(
                path,
                "must be a message type (`story.context`), a family (`telling.*`) or `*`",
            ));
        }
    });
}

/// A list: how many, each, and that none stands twice.
pub(crate) fn list(
    faults: &mut Vec<Violation>,
    path: &str,
    values: &[String],
    most: usize,
    mut check: impl FnMut(&mut Vec<Violation>, String, &str),
) {
    if values.len() > most {
        // the entries of a list that is too long are not looked at: the answer stays as short as the limit
        faults.push(fault(path, format!("must have at most {most} entries")));
        return;
    }
    let mut seen = HashSet::new();
    for (n, value) in values.iter().enumerate() {
        let path = format!("{path}/{n}");
        let before = faults.len();
        check(faults, path.clone(), value);
        if faults.len() == before && !seen.insert(value) {
            faults.push(fault(path, "stands twice in the list"));
        }
    }
}

/// The patterns of texts that were checked.
pub(crate) fn parsed(values: &[String]) -> Vec<TypePattern> {
    values.iter().filter_map(|v| v.parse().ok()).collect()
}

/// A filter as a whole.
pub(super) fn combinations(faults: &mut Vec<Violation>, filter: &Filter) {
    let combinations = filter.combinations();
    if combinations > MAX_COMBINATIONS {
        let lists = [
            ("/message_types", filter.message_types.len()),
            ("/topic_prefixes", filter.topic_prefixes.len()),
            ("/sources", filter.sources.len()),
        ];
        let longest = lists
            .iter()
            .rev()
            .max_by_key(|(_, len)| *len)
            .map_or("/message_types", |(path, _)| *path);
        faults.push(fault(
            longest,
            format!("the lengths of the filter's lists multiply to {combinations}; at most {MAX_COMBINATIONS} are possible"),
        ));
    }
}

/// A whole number.
pub(super) fn number(
    faults: &mut Vec<Violation>,
    path: &str,
    value: i64,
    range: std::ops::RangeInclusive<i64>,
) {
    if !range.contains(&value) {
        faults.push(fault(
            path,
            format!("must be {} to {}", range.start(), range.end()),
        ));
    }
}

/// An IAM role.
pub(super) fn role_arn(faults: &mut Vec<Violation>, path: &str, value: &str) {
    if !is_role_arn(value) {
        faults.push(fault(
            path,
            "must be the ARN of an IAM role, such as arn:aws:iam::123456789012:role/name",
        ));
    }
}

/// An IAM role that has to lie in this account; what is no role is [`role_arn`]'s to say.
pub(super) fn role_in(faults: &mut Vec<Violation>, path: &str, value: &str, account: AwsAccount<'_>) {
    if is_role_arn(value) && !account.has_role(value) {
        let AwsAccount { partition, id } = account;
        faults.push(fault(
            path,
            format!(
                "must lie in the account of the bus, arn:{partition}:iam::{id}:role/…; a program of another account assumes such a role"
            ),
        ));
    }
}

/// A member that must be there.
pub(crate) fn missing(path: &str) -> Violation {
    fault(path, "is missing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_lies_in_the_account_of_the_bus() {
        let account = AwsAccount {
            partition: "aws",
            id: "111122223333",
        };
        let faults = |arn: &str| {
            let mut faults = Vec::new();
            role_arn(&mut faults, "/role_arn", arn);
            role_in(&mut faults, "/role_arn", arn, account);
            faults
        };
        assert_eq!(faults("arn:aws:iam::111122223333:role/desk/reader"), []);
        for elsewhere in [
            "arn:aws:iam::444455556666:role/reader",
            "arn:aws-cn:iam::111122223333:role/reader",
            "arn:aws:iam::444455556666:role/111122223333:role/reader",
        ] {
            let told = faults(elsewhere);
            assert_eq!(told.len(), 1, "{elsewhere}: {told:?}");
            assert_eq!(told[0].path.as_deref(), Some("/role_arn"));
            assert!(told[0].message.contains("111122223333"), "{told:?}");
        }
        // one fault for one mistake
        assert_eq!(faults("arn:aws:iam::444455556666:user/reader").len(), 1);
    }
}
