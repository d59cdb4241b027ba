//! The template's roles beside what their functions ask: each is allowed what its ports do, and nothing more.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};

use storybus_aws::grants::On;
use storybus_lambda::policies::PARTS;
use storybus_lambda::wiring::PORTS;

const TEMPLATE: &str = include_str!("../../../template.yaml");
/// The functions' own logs, which every one of them writes.
const LOGS: [&str; 2] = ["logs:CreateLogStream", "logs:PutLogEvents"];

/// Actions, each on a resource as the template writes it.
type Allowed = BTreeSet<(String, String)>;

/// A resource as the template writes it.
fn written(on: On) -> &'static str {
    match on {
        On::BusTable => "!GetAtt BusTable.Arn",
        On::BusList => "!Sub ${BusTable.Arn}/index/by_list",
        On::ArchiveTable => "!GetAtt ArchiveTable.Arn",
        On::ArchiveByMessage => "!Sub ${ArchiveTable.Arn}/index/by_message",
        On::ArchiveByStory => "!Sub ${ArchiveTable.Arn}/index/by_story",
        On::ArchiveByCorrelation => "!Sub ${ArchiveTable.Arn}/index/by_correlation",
        On::SigningKeys => "!GetAtt SigningKeys.Id",
        On::ConsumerQueues => {
            r#"!Sub "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${AWS::StackName}-c*.fifo""#
        }
        On::ArchiveQueue => "!GetAtt ArchiveQueue.Arn",
        On::DeadLettersQueue => "!GetAtt DeadLetters.Arn",
        On::ReplayQueue => "!GetAtt ReplayQueue.Arn",
        On::RedriveQueue => "!GetAtt RedriveQueue.Arn",
        On::Topics => {
            r#"!Sub "arn:${AWS::Partition}:sns:${AWS::Region}:${AWS::AccountId}:${AWS::StackName}-w*.fifo""#
        }
        On::ConsumerAlarms => {
            r#"!Sub "arn:${AWS::Partition}:cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:${AWS::StackName}-c*""#
        }
        On::Everything => r#""*""#,
    }
}

/// A function's name as the template's resources begin with it.
fn resource_name(function: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    function.split('-').map(capital).collect()
}

fn wanted(function: &str) -> Allowed {
    let (_, parts) = PARTS.iter().find(|(name, _)| *name == function).unwrap();
    let grants = parts.iter().flat_map(|(_, grants)| grants.iter());
    let of_parts = grants.flat_map(|(on, actions)| actions.iter().map(|action| (*action, written(*on))));
    let logs = format!("!GetAtt {}Logs.Arn", resource_name(function));
    let of_logs = LOGS.iter().map(|action| (*action, logs.as_str()));
    let all = of_parts.chain(of_logs);
    all.map(|(action, on)| (action.to_owned(), on.to_owned()))
        .collect()
}

/// The lines of a resource of the template, without comments.
fn block(name: &str) -> Vec<&'static str> {
    let head = format!("  {name}:");
    let lines = TEMPLATE.lines().skip_while(|line| *line != head).skip(1);
    lines
        .take_while(|line| line.is_empty() || line.starts_with("    ") || line.trim_start().starts_with('#'))
        .filter(|line| !line.trim_start().starts_with('#') && !line.is_empty())
        .collect()
}

/// What a role of the template allows. It is written in one way only, and anything else is a mistake.
fn allowed(role: &str) -> Allowed {
    let lines = block(role);
    let policies = lines.iter().filter(|line| line.contains("PolicyName:")).count();
    assert_eq!(policies, 1, "{role}");
    let mut statements = lines.into_iter().skip_while(|line| !line.contains("PolicyName:"));
    let mut all = Allowed::new();
    let mut actions: Vec<&str> = Vec::new();
    for line in statements.by_ref().skip(4) {
        let text = line.trim();
        if let Some(list) = text.strip_prefix("Action: [").and_then(|t| t.strip_suffix(']')) {
            actions = list.split(", ").collect();
        } else if let Some(on) = text
            .strip_prefix("Resource: ")
            .or(text.strip_prefix("- !").map(|_| &text[2..]))
        {
            assert!(!actions.is_empty(), "{role}: {line}");
            for action in &actions {
                let new = all.insert(((*action).to_owned(), on.to_owned()));
                assert!(new, "{role} is granted {action} on {on} twice");
            }
        } else {
            assert!(matches!(text, "- Effect: Allow" | "Resource:"), "{role}: {line}");
        }
    }
    all
}

/// The names of the resources that are roles, but for the schedule's.
fn roles() -> Vec<&'static str> {
    let lines: Vec<&str> = TEMPLATE.lines().collect();
    let pairs = lines.windows(2);
    let roles = pairs.filter(|pair| pair[1].trim() == "Type: AWS::IAM::Role");
    roles
        .map(|pair| pair[0].trim().trim_end_matches(':'))
        .filter(|name| *name != "SweepRole")
        .collect()
}

#[test]
fn a_role_allows_what_its_function_asks_and_nothing_more() {
    let mut differences = Vec::new();
    for (function, _) in PARTS {
        let (wanted, allowed) = (
            wanted(function),
            allowed(&format!("{}Role", resource_name(function))),
        );
        for (action, on) in wanted.difference(&allowed) {
            differences.push(format!("{function} lacks {action} on {on}"));
        }
        for (action, on) in allowed.difference(&wanted) {
            differences.push(format!("{function} needs no {action} on {on}"));
        }
    }
    assert_eq!(differences, [""; 0]);
}

#[test]
fn every_role_is_a_functions() {
    let named: BTreeSet<String> = PARTS
        .iter()
        .map(|(function, _)| format!("{}Role", resource_name(function)))
        .collect();
    let roles: BTreeSet<String> = roles().into_iter().map(str::to_owned).collect();
    assert_eq!(roles, named);
}

#[test]
fn the_parts_of_a_function_are_its_ports() {
    let all: BTreeSet<&str> = PORTS
        .iter()
        .flat_map(|(_, ports)| ports.iter().copied())
        .collect();
    let ports: BTreeMap<&str, &[&str]> = PORTS.iter().copied().collect();
    for (function, parts) in PARTS {
        let of_ports = parts
            .iter()
            .map(|(part, _)| *part)
            .filter(|part| all.contains(part));
        let of_ports: Vec<&str> = of_ports.collect();
        assert_eq!(
            of_ports,
            ports.get(function).copied().unwrap_or_default(),
            "{function}"
        );
    }
    assert!(
        ports
            .keys()
            .all(|port| PARTS.iter().any(|(name, _)| name == port))
    );
}

/// The reader of the template would not pass over a statement.
#[test]
fn a_statement_too_many_or_too_few_is_found() {
    let publish = allowed("PublishRole");
    let may = |action: &str, on: On| publish.contains(&(action.to_owned(), written(on).to_owned()));
    assert!(may("dynamodb:PutItem", On::BusTable) && may("sns:Publish", On::Topics));
    assert!(!may("sns:Publish", On::BusTable) && !may("dynamodb:Query", On::BusTable));
    let lists = allowed("AdminRole");
    let on_index = lists.iter().filter(|(_, on)| on == written(On::ArchiveByStory));
    assert_eq!(on_index.count(), 1);
}
