//! The archive against a simple list: whatever is published, compacted, swept and asked.

use std::time::Duration;

use storybus_core::domain::archived::{Archived, Position, Selection, TimeRange};
use storybus_core::domain::record::story_digest;
use storybus_core::domain::time::Millis;
use storybus_core::ports::Archive as _;
use storybus_core::ports::archive::PartLimits;
use storybus_protocol::id::{CorrelationId, WorkspaceId};
use storybus_testkit::SeededRandom;
use storybus_testkit::executor::run;
use storybus_testkit::suite::sample::{self, Letter};

use crate::place::{Place, open, small};

const DAY: Duration = Duration::from_secs(24 * 3600);
const RETENTION: Duration = Duration::from_secs(3 * 24 * 3600);

struct Listed {
    workspace: WorkspaceId,
    at: Millis,
    letter: Letter,
}

/// A history, with what is to be there.
struct History {
    place: Place,
    random: SeededRandom,
    workspaces: Vec<WorkspaceId>,
    list: Vec<Listed>,
}

impl History {
    async fn new(seed: u64) -> Self {
        let place = Place::with(|options| options.archive_retention = RETENTION);
        let mut workspaces = Vec::new();
        for id in ["w1", "w2", "w3"] {
            workspaces.push(place.world().workspace(id).await);
        }
        Self {
            place,
            random: SeededRandom::new(seed),
            workspaces,
            list: Vec::new(),
        }
    }

    fn below(&self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    fn workspace(&self) -> WorkspaceId {
        // the first has most of the traffic
        let n = [0, 0, 0, 0, 0, 1, 1, 2][usize::try_from(self.below(8)).unwrap()];
        self.workspaces[n].clone()
    }

    async fn publish(&mut self) {
        let (workspace, n) = (self.workspace(), self.list.len() as u64);
        let mut letter = Letter::new(n, self.below(6));
        if self.below(3) > 0 {
            letter = letter.about(&format!("story-{}", self.below(5)));
        }
        if self.below(5) == 0 {
            letter.attributes.correlation_id = letter.attributes.correlation_id.to_uppercase();
            letter = letter.of_type("telling.ended");
        }
        let size = [0, 10, 300, 3000][usize::try_from(self.below(4)).unwrap()];
        let letter = letter.of_size(size);
        self.place.world().send(&workspace, &letter).await;
        self.list.push(Listed {
            workspace,
            at: self.place.clock.now(),
            letter,
        });
    }

    /// What is in a workspace's archive, oldest first, by number.
    fn kept(&self, workspace: &WorkspaceId, wanted: impl Fn(&Listed) -> bool) -> Vec<usize> {
        let now = self.place.clock.now();
        let kept = |listed: &Listed| {
            listed.workspace == *workspace && now < listed.at.plus(RETENTION) && wanted(listed)
        };
        (0..self.list.len()).filter(|n| kept(&self.list[*n])).collect()
    }

    fn n_of(&self, id: storybus_protocol::id::MessageId) -> usize {
        self.list.iter().position(|l| l.letter.message_id == id).unwrap()
    }

    fn assert_is(&self, message: &Archived) {
        let listed = &self.list[self.n_of(message.head.message_id)];
        assert_eq!(message.body, listed.letter.body);
        assert_eq!(message.head.attributes, listed.letter.attributes);
        assert_eq!(message.head.about, listed.letter.about);
        assert_eq!(message.head.published_at, listed.at);
    }

    /// A range, part by part.
    async fn check_read(&self) {
        let (workspace, now) = (self.workspace(), self.place.clock.now());
        let from = now.minus(Duration::from_secs(self.below(4 * 24 * 3600)));
        let range = TimeRange {
            from,
            to: from.plus(Duration::from_secs(self.below(2 * 24 * 3600))),
        };
        let mut selection = Selection::default();
        if self.below(2) == 0 {
            selection.stories = vec![story_digest("story-1"), story_digest("story-2")];
        }
        if self.below(3) == 0 {
            selection.correlations = vec![sample::correlation_id(1), sample::correlation_id(2)];
        }
        let limits = PartLimits {
            messages: 1 + usize::try_from(self.below(9)).unwrap(),
            scanned: 1 + usize::try_from(self.below(20)).unwrap(),
            bytes: usize::try_from(self.below(5000)).unwrap(),
        };
        let (mut got, mut scanned, mut after) = (Vec::new(), 0, None);
        loop {
            let archive = self.place.store.archive();
            let part = archive
                .read(&workspace, range, after.as_ref(), &selection, limits)
                .await
                .unwrap();
            scanned += part.scanned;
            part.messages.iter().for_each(|message| self.assert_is(message));
            got.extend(part.messages.iter().map(|m| self.n_of(m.head.message_id)));
            if part.end {
                break;
            }
            assert!(part.last.is_some());
            after = part.last;
        }
        let in_range = |l: &Listed| range.from <= l.at && l.at < range.to;
        let wanted = self.kept(&workspace, |l| {
            in_range(l) && selection.matches(&l.letter.attributes, &l.letter.about)
        });
        assert_eq!(got, wanted);
        assert_eq!(scanned, self.kept(&workspace, in_range).len() as u64);
    }

    async fn check_about(&self) {
        let workspace = self.workspace();
        let story = story_digest(&format!("story-{}", self.below(6)));
        let correlation: Option<CorrelationId> =
            (self.below(2) == 0).then(|| sample::correlation_id(self.below(7)));
        let limit = 1 + usize::try_from(self.below(9)).unwrap();
        let (mut got, mut after): (Vec<usize>, Option<Position>) = (Vec::new(), None);
        loop {
            let archive = self.place.store.archive();
            let heads = archive
                .about(&workspace, &story, correlation, after.as_ref(), limit)
                .await
                .unwrap();
            got.extend(heads.iter().map(|head| self.n_of(head.message_id)));
            let Some(last) = heads.last() else { break };
            after = Some(last.position.clone());
        }
        let wanted = self.kept(&workspace, |l| {
            l.letter.about.story == Some(story) || correlation == Some(l.letter.correlation_id)
        });
        assert_eq!(got, wanted);
    }

    async fn check_latest(&self) {
        let workspace = self.workspace();
        let limit = 1 + usize::try_from(self.below(9)).unwrap();
        let (mut got, mut before): (Vec<usize>, Option<Position>) = (Vec::new(), None);
        loop {
            let archive = self.place.store.archive();
            let heads = archive.latest(&workspace, before.as_ref(), limit).await.unwrap();
            got.extend(heads.iter().map(|head| self.n_of(head.message_id)));
            let Some(last) = heads.last() else { break };
            before = Some(last.position.clone());
        }
        got.reverse();
        assert_eq!(got, self.kept(&workspace, |_| true));
    }

    async fn check_find(&self) {
        if self.list.is_empty() {
            return;
        }
        let n = usize::try_from(self.below(self.list.len() as u64)).unwrap();
        let (workspace, id) = (self.workspace(), self.list[n].letter.message_id);
        let found = self.place.store.archive().find(&workspace, id).await.unwrap();
        let got: Vec<usize> = found.iter().map(|head| self.n_of(head.message_id)).collect();
        assert_eq!(got, self.kept(&workspace, |l| l.letter.message_id == id));
    }

    async fn step(&mut self) {
        match self.below(20) {
            0..10 => self.publish().await,
            10 => self
                .place
                .clock
                .advance(Duration::from_secs(self.below(6 * 3600))),
            11 if self.below(8) == 0 => self.place.clock.advance(DAY * 15),
            12 => self.place.store.compact().await.unwrap(),
            13 => self.place.store.sweep().await.unwrap(),
            14 if self.below(10) == 0 => {
                self.place.store.close().await;
                self.place.store = open(self.place.directory.path(), &self.place.clock, |options| {
                    options.archive_retention = RETENTION;
                    options.archive = small();
                });
            }
            15 | 16 => self.check_read().await,
            17 => self.check_about().await,
            18 => self.check_latest().await,
            _ => self.check_find().await,
        }
    }
}

#[test]
fn the_archive_is_as_a_simple_list_would_be() {
    for seed in 0..8 {
        run(async {
            let mut history = History::new(seed).await;
            for _ in 0..500 {
                history.step().await;
            }
            history.place.store.close().await;
        });
    }
}
