//! `storybus stories`.

use clap::Subcommand;

use super::api::{Api, segment};
use super::connections::more;
use super::flags::{Noun, Paging};
use super::lists::ListKind;
use super::names::Kind;
use super::out::{self, Cell, Table};
use crate::exit::Failure;

#[derive(Debug, Subcommand)]
pub enum StoriesVerb {
    /// The stories of the workspace, the one begun last first
    #[command(after_help = "Example:\n  storybus stories list --limit 20")]
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// One story, and what was published about it last, the oldest first
    #[command(after_help = "Example:\n  storybus stories show 2026-0911-harbour")]
    Show {
        /// Its story_id
        story_id: String,
        #[command(flatten)]
        paging: Paging,
    },
}

/// Runs it.
pub(super) fn run(noun: &Noun<StoriesVerb>) -> Result<(), Failure> {
    let (mut api, json) = (Api::new(&noun.common)?, noun.common.json);
    let route = format!("admin/tenants/{}/stories", segment(&api.workspace_id()?));
    match &noun.verb {
        StoriesVerb::List { paging } => {
            let all = api.gather(&route, ListKind::of("stories"), &[], paging)?;
            if json {
                return out::document(&all.document()?);
            }
            let mut table = Table::new(&[
                "STORY",
                "TYPE",
                "SEQUENCE",
                "UPDATED",
                "BEGUN",
                "CORRELATION",
                "HEAD",
            ]);
            for story in all.values()? {
                let members = [
                    "story_id",
                    "story_type",
                    "sequence_number",
                    "updated_at",
                    "begun_at",
                    "correlation_id",
                    "head",
                ];
                table.row(members.iter().map(|m| Cell::of(&story, m)).collect());
            }
            table.print("no stories yet")?;
            more(all.next.as_deref());
            Ok(())
        }
        StoriesVerb::Show { story_id, paging } => {
            let path = format!("{route}/{}", segment(story_id));
            // The bus tells a timeline from its beginning; its end is what is wanted.
            let mut all = api.gather(&path, ListKind::of("messages"), &[], &Paging::ALL)?;
            let told = all.entries.len();
            let hidden = told.saturating_sub(paging.most().unwrap_or(told));
            all.entries.drain(..hidden);
            if json {
                return out::document(&all.document()?);
            }
            let field = |member| Cell::of(&serde_json::json!({ "v": all.member(member) }), "v");
            out::fields(&[
                ("story", field("story_id")),
                ("type", field("story_type")),
                ("sequence", field("sequence_number")),
                ("updated", field("updated_at")),
                ("begun", field("begun_at")),
                ("correlation", field("correlation_id")),
                ("head", field("head")),
            ])?;
            out::text("\n")?;
            let producers = api.names(Kind::Producer);
            let mut table = Table::new(&["PUBLISHED", "TYPE", "SEQUENCE", "MESSAGE", "PRODUCER", "SYSTEM"]);
            for message in all.values()? {
                let members = [
                    "published_at",
                    "message_type",
                    "sequence_number",
                    "message_id",
                    "producer_id",
                    "system_id",
                ];
                let cell = |member: &&str| match *member {
                    "producer_id" => producers.cell(&message, member),
                    _ => Cell::of(&message, member),
                };
                table.row(members.iter().map(cell).collect());
            }
            table.print("nothing of it is in the archive any more")?;
            if hidden > 0 {
                out::note(&format!(
                    "the newest {} of {told}; all of them with --all",
                    all.entries.len()
                ));
            }
            Ok(())
        }
    }
}
