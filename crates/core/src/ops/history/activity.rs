//! What was accepted and refused lately: the archive's messages and the log of refusals, merged by time.

use std::collections::VecDeque;

use crate::bus::Bus;
use crate::domain::activity::RefusedPublish;
use crate::domain::archived::{Head, Position};
use crate::domain::refusal::Refusal;
use crate::domain::time::Millis;
use crate::ops::refused_by_store;

/// How many entries of a source are looked at for one page when only some of them are wanted.
const MOST_LOOKED_AT: usize = 1000;

/// Which part of the activity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActivityQuery<'a> {
    /// The place that a page before gave as `next`.
    pub before: Option<&'a str>,
    /// Refusals with this rule alone.
    pub rule: Option<&'a str>,
    /// What this producer sent alone.
    pub producer: Option<&'a str>,
    /// At most so many.
    pub limit: usize,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// A message was published.
    Published(Box<Head>),
    /// A publish was refused.
    Refused(Box<RefusedPublish>),
}

impl Activity {
    /// When.
    #[must_use]
    pub fn at(&self) -> Millis {
        match self {
            Self::Published(head) => head.published_at,
            Self::Refused(refused) => refused.at,
        }
    }

    fn is_wanted(&self, query: &ActivityQuery<'_>) -> bool {
        let (producer, rules): (_, &[String]) = match self {
            Self::Published(head) => (&head.attributes.producer_id, &[]),
            Self::Refused(refused) => (&refused.producer, &refused.rules),
        };
        query.producer.is_none_or(|wanted| producer.as_str() == wanted)
            && query
                .rule
                .is_none_or(|wanted| rules.iter().any(|rule| rule == wanted))
    }
}

/// Some of what happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityPage {
    /// Newest first.
    pub entries: Vec<Activity>,
    /// Give it back as `before` to read on; `None` when there is no more.
    pub next: Option<String>,
}

/// Where a page ends: the time of the last entry, and the last entry of each source, if one was passed. What is newer than
/// that time and came since is not on a later page.
#[derive(Default)]
struct Cursor {
    at: Option<Millis>,
    published: Option<Position>,
    refused: Option<Position>,
}

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('~');
        let at = Millis(parts.next()?.parse().ok()?);
        let mut place = || {
            let text = parts.next()?;
            Some((!text.is_empty()).then(|| Position(text.to_owned())))
        };
        let cursor = Self {
            at: Some(at),
            published: place()?,
            refused: place()?,
        };
        parts.next().is_none().then_some(cursor)
    }

    fn text(&self) -> String {
        let place = |p: &Option<Position>| p.as_ref().map_or(String::new(), |p| p.0.clone());
        format!(
            "{}~{}~{}",
            self.at.unwrap_or_default().0,
            place(&self.published),
            place(&self.refused)
        )
    }
}

/// What was read of one source.
struct Source {
    entries: VecDeque<(Position, Activity)>,
    /// Whether there may be more behind.
    more: bool,
}

impl Source {
    fn of(entries: impl IntoIterator<Item = (Position, Activity)>, wanted: usize) -> Self {
        let entries: VecDeque<_> = entries.into_iter().collect();
        Self {
            more: entries.len() >= wanted,
            entries,
        }
    }

    fn next_at(&self) -> Option<Millis> {
        self.entries.front().map(|(_, entry)| entry.at())
    }

    /// Whether it cannot say what comes next.
    fn is_dry(&self) -> bool {
        self.entries.is_empty() && self.more
    }
}

impl Bus {
    /// What was accepted and refused lately.
    ///
    /// # Errors
    ///
    /// `404 tenant.not_found`; `400 request.invalid` at `/before`.
    pub async fn activity_list(
        &self,
        tenant: &str,
        query: &ActivityQuery<'_>,
    ) -> Result<ActivityPage, Refusal> {
        let workspace = self.tenant_get(tenant).await?.id;
        let cursor = match query.before {
            None => Cursor::default(),
            Some(text) => self.cursor(text)?,
        };
        let filtered = query.rule.is_some() || query.producer.is_some();
        let wanted = if filtered {
            query.limit.max(MOST_LOOKED_AT)
        } else {
            query.limit.saturating_add(1)
        };
        let published = if query.rule.is_some() {
            Vec::new() // what was published broke no rule
        } else {
            let latest = self
                .ports
                .archive
                .latest(&workspace, cursor.published.as_ref(), wanted)
                .await;
            latest.map_err(|e| refused_by_store("activity_list", &e))?
        };
        let refused = self
            .ports
            .activity
            .list(&workspace, cursor.refused.as_ref(), wanted)
            .await
            .map_err(|e| refused_by_store("activity_list", &e))?;
        let published = published
            .into_iter()
            .map(|head| (head.position.clone(), Activity::Published(Box::new(head))));
        let refused = refused
            .into_iter()
            .map(|(position, refused)| (position, Activity::Refused(Box::new(refused))));
        Ok(merge(
            Source::of(published, wanted),
            Source::of(refused, wanted),
            cursor,
            query,
        ))
    }

    fn cursor(&self, text: &str) -> Result<Cursor, Refusal> {
        Cursor::parse(text)
            .filter(|cursor| {
                let (archive, log) = (&self.ports.archive, &self.ports.activity);
                cursor.published.as_ref().is_none_or(|p| archive.is_position(p))
                    && cursor.refused.as_ref().is_none_or(|p| log.is_position(p))
            })
            .ok_or_else(|| {
                Refusal::request_invalid(
                    "/before",
                    "not a place in the activity; give back what `next` said, or leave it out",
                )
            })
    }
}

fn merge(
    mut published: Source,
    mut refused: Source,
    mut cursor: Cursor,
    query: &ActivityQuery<'_>,
) -> ActivityPage {
    let newest = cursor.at;
    let mut entries = Vec::new();
    let more = loop {
        if published.is_dry() || refused.is_dry() {
            break true;
        }
        let (from_published, from_refused) = (published.next_at(), refused.next_at());
        if from_published.is_none() && from_refused.is_none() {
            break false;
        }
        if entries.len() >= query.limit {
            break true;
        }
        let (source, place) = if from_published >= from_refused {
            (&mut published, &mut cursor.published)
        } else {
            (&mut refused, &mut cursor.refused)
        };
        if let Some((position, entry)) = source.entries.pop_front() {
            *place = Some(position);
            if newest.is_some_and(|newest| entry.at() > newest) {
                continue;
            }
            cursor.at = Some(entry.at());
            if entry.is_wanted(query) {
                entries.push(entry);
            }
        }
    };
    ActivityPage {
        entries,
        next: more.then(|| cursor.text()),
    }
}
