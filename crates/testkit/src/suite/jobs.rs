//! The jobs: [`Jobs`](storybus_core::ports::Jobs).

use std::time::Duration;

use storybus_core::domain::archived::Position;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::job::{Job, JobError, JobState, Work};
use storybus_core::domain::time::Millis;
use storybus_core::ports::jobs::JOB_RETENTION;
use storybus_core::ports::ledger::Written;
use storybus_protocol::id::{JobId, WorkspaceId};

use super::sample;
use super::world::World;

super::behaviours![
    a_job_is_read_as_written,
    an_unknown_job_is_absent,
    an_id_is_taken_once,
    a_write_names_the_version_it_read,
    an_unknown_job_is_not_written,
    jobs_come_newest_first,
    pages_meet_without_gap_or_overlap,
    a_page_goes_on_where_nothing_is_any_more,
    workspaces_are_apart,
    the_unfinished_come_oldest_first,
    a_making_is_audited_with_it,
    a_write_is_audited_when_it_says_so,
    what_is_over_is_kept_for_thirty_days needs Time,
    what_is_not_over_is_kept needs Time,
    a_range_that_ended_before_a_job_is_closed needs Time,
    jobs_survive_a_reopening needs Reopen,
];

const MS: Duration = Duration::from_millis(1);

fn queue(workspace: &str) -> QueueKey {
    QueueKey {
        workspace: workspace.parse().unwrap(),
        consumer: "c1".parse().unwrap(),
    }
}

async fn create(world: &World, job: &Job) -> Written {
    let audit = sample::audit("job.create", &[job.id.as_str()], world.now());
    world.jobs().create(job, &audit).await.unwrap()
}

/// Makes a job of `w1`.
async fn made(world: &World, id: &str) -> Job {
    let job = sample::job(id, &queue("w1"), world.now());
    assert_eq!(create(world, &job).await, Written::Done);
    job
}

/// Ends a job now.
async fn end(world: &World, job: &Job) {
    let over = Job {
        state: JobState::Done,
        finished_at: Some(world.now()),
        version: job.version + 1,
        ..job.clone()
    };
    assert_eq!(world.jobs().update(&over, None).await.unwrap(), Written::Done);
}

async fn listed(
    world: &World,
    workspace: &str,
    after: Option<(Millis, &JobId)>,
    limit: usize,
) -> Vec<String> {
    let workspace: WorkspaceId = workspace.parse().unwrap();
    let jobs = world.jobs().list(&workspace, after, limit).await.unwrap();
    jobs.into_iter().map(|job| job.id.to_string()).collect()
}

async fn unfinished(world: &World, workspace: Option<&str>) -> Vec<String> {
    let workspace: Option<WorkspaceId> = workspace.map(|id| id.parse().unwrap());
    let ids = world.jobs().unfinished(workspace.as_ref()).await.unwrap();
    ids.iter().map(ToString::to_string).collect()
}

/// Every member, of a replay and of a redrive.
pub async fn a_job_is_read_as_written(world: &mut World) {
    let new = sample::job("j1", &queue("w1"), world.now());
    let rich = Job {
        id: "j2".parse().unwrap(),
        work: Work::Replay {
            from: Millis(-5),
            to: Millis(7),
            message_types: vec!["a.*".parse().unwrap(), "*".parse().unwrap()],
            story_ids: vec!["\"é\\ 😀".to_owned(), String::new()],
            correlation_ids: vec![sample::correlation_id(3)],
        },
        created_by: "o'\"1".to_owned(),
        ..new.clone()
    };
    let chosen = Job {
        id: "j3".parse().unwrap(),
        work: Work::Redrive {
            message_ids: Some((0..1000).map(sample::message_id).collect()),
        },
        unmet: (0..1000).map(sample::message_id).collect(),
        total: Some(1000),
        ..new.clone()
    };
    for job in [new, rich.clone(), chosen] {
        assert_eq!(create(world, &job).await, Written::Done);
        assert_eq!(world.jobs().get(&job.id).await.unwrap(), Some(job));
    }
    let over = Job {
        started_at: Some(Millis(1)),
        finished_at: Some(world.now()),
        state: JobState::Failed,
        error: Some(JobError {
            rule: "consumer.not_found".to_owned(),
            message: "gone – é".to_owned(),
        }),
        cancel_requested: true,
        scanned: u64::from(u32::MAX) + 1,
        moved: 2,
        total: Some(3),
        position: Some(Position("p".to_owned())),
        position_at: Some(Millis(4)),
        steps: 5,
        unremoved: vec![Position("q".to_owned()), Position("r".to_owned())],
        exhausted: true,
        unmet: vec![sample::message_id(1)],
        version: 2,
        ..rich
    };
    assert_eq!(world.jobs().update(&over, None).await.unwrap(), Written::Done);
    assert_eq!(world.jobs().get(&over.id).await.unwrap(), Some(over));
}

/// None is not an error.
pub async fn an_unknown_job_is_absent(world: &mut World) {
    made(world, "j1").await;
    assert_eq!(world.jobs().get(&"j2".parse().unwrap()).await.unwrap(), None);
    assert!(listed(world, "w2", None, 9).await.is_empty());
}

/// A second job of the same id is lost, whatever workspace it is of, and leaves no trace.
pub async fn an_id_is_taken_once(world: &mut World) {
    let first = made(world, "j1").await;
    for workspace in ["w1", "w2"] {
        let second = sample::job("j1", &queue(workspace), world.now().plus(MS));
        assert_eq!(create(world, &second).await, Written::Lost);
    }
    assert_eq!(world.jobs().get(&first.id).await.unwrap(), Some(first));
    assert!(listed(world, "w2", None, 9).await.is_empty());
    let (entries, _) = world.audit().list(None, 9).await.unwrap().unwrap();
    assert_eq!(entries.len(), 1);
}

/// Of two that read the same version, one writes.
pub async fn a_write_names_the_version_it_read(world: &mut World) {
    let job = made(world, "j1").await;
    let written = |version, moved| Job {
        version,
        moved,
        ..job.clone()
    };
    let jobs = world.jobs();
    assert_eq!(jobs.update(&written(2, 1), None).await.unwrap(), Written::Done);
    for stale in [0, 1, 2, 4] {
        assert_eq!(
            jobs.update(&written(stale, 9), None).await.unwrap(),
            Written::Lost
        );
    }
    assert_eq!(jobs.get(&job.id).await.unwrap(), Some(written(2, 1)));
    assert_eq!(jobs.update(&written(3, 2), None).await.unwrap(), Written::Done);
}

/// An update makes no job.
pub async fn an_unknown_job_is_not_written(world: &mut World) {
    for version in [1, 2] {
        let job = Job {
            version,
            ..sample::job("j1", &queue("w1"), world.now())
        };
        assert_eq!(world.jobs().update(&job, None).await.unwrap(), Written::Lost);
        assert_eq!(world.jobs().get(&job.id).await.unwrap(), None);
    }
}

/// Of one instant, the greater id first.
pub async fn jobs_come_newest_first(world: &mut World) {
    made(world, "j5").await;
    made(world, "j7").await;
    made(world, "j6").await;
    world.clock.advance(MS);
    made(world, "j1").await;
    assert_eq!(listed(world, "w1", None, 9).await, ["j1", "j7", "j6", "j5"]);
    assert_eq!(listed(world, "w1", None, 2).await, ["j1", "j7"]);
}

/// Page by page, each comes once, over or not.
pub async fn pages_meet_without_gap_or_overlap(world: &mut World) {
    for n in 0..7 {
        let job = made(world, &format!("j{n}")).await;
        if n % 2 == 0 {
            world.clock.advance(MS);
        } else {
            end(world, &job).await;
        }
    }
    let workspace: WorkspaceId = "w1".parse().unwrap();
    let expected = listed(world, "w1", None, 9).await;
    assert_eq!(expected.len(), 7);
    for limit in 1..=8 {
        let mut all: Vec<Job> = Vec::new();
        loop {
            let after = all.last().map(|job| (job.created_at, job.id.clone()));
            let after = after.as_ref().map(|(at, id)| (*at, id));
            let page = world.jobs().list(&workspace, after, limit).await.unwrap();
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            all.extend(page);
        }
        let ids: Vec<String> = all.iter().map(|job| job.id.to_string()).collect();
        assert_eq!(ids, expected, "{limit} a page");
    }
}

/// A place is a time and an id, whatever is there.
pub async fn a_page_goes_on_where_nothing_is_any_more(world: &mut World) {
    made(world, "j2").await;
    made(world, "j4").await;
    let now = world.now();
    let id = |text: &str| -> JobId { text.parse().unwrap() };
    assert_eq!(listed(world, "w1", Some((now, &id("j3"))), 9).await, ["j2"]);
    assert_eq!(
        listed(world, "w1", Some((now.plus(MS), &id("j0"))), 9).await,
        ["j4", "j2"]
    );
    assert!(
        listed(world, "w1", Some((now.minus(MS), &id("j9"))), 9)
            .await
            .is_empty()
    );
    assert!(
        listed(world, "w1", Some((Millis(i64::MIN), &id("j9"))), 9)
            .await
            .is_empty()
    );
}

/// No workspace sees another's jobs.
pub async fn workspaces_are_apart(world: &mut World) {
    made(world, "j1").await;
    create(world, &sample::job("j2", &queue("w2"), world.now())).await;
    assert_eq!(listed(world, "w1", None, 9).await, ["j1"]);
    assert_eq!(listed(world, "w2", None, 9).await, ["j2"]);
    assert_eq!(unfinished(world, Some("w1")).await, ["j1"]);
    assert_eq!(unfinished(world, Some("w2")).await, ["j2"]);
    assert_eq!(unfinished(world, None).await, ["j1", "j2"]);
}

/// Whoever runs jobs finds them in the order of their making, until they are over.
pub async fn the_unfinished_come_oldest_first(world: &mut World) {
    let mut jobs = Vec::new();
    for id in ["j9", "j3", "j5", "j1"] {
        jobs.push(made(world, id).await);
        world.clock.advance(MS);
    }
    let running = Job {
        state: JobState::Running,
        version: 2,
        ..jobs[1].clone()
    };
    world.jobs().update(&running, None).await.unwrap();
    assert_eq!(unfinished(world, None).await, ["j9", "j3", "j5", "j1"]);
    for (n, state) in [JobState::Done, JobState::Failed, JobState::Cancelled]
        .into_iter()
        .enumerate()
    {
        let job = &jobs[[0, 2, 3][n]];
        let over = Job {
            state,
            finished_at: Some(world.now()),
            version: 2,
            ..job.clone()
        };
        world.jobs().update(&over, None).await.unwrap();
    }
    assert_eq!(unfinished(world, None).await, ["j3"]);
    assert_eq!(listed(world, "w1", None, 9).await.len(), 4);
}

/// A job and its entry are written together.
pub async fn a_making_is_audited_with_it(world: &mut World) {
    let job = made(world, "j1").await;
    let (entries, _) = world.audit().list(None, 9).await.unwrap().unwrap();
    assert_eq!(entries, [sample::audit("job.create", &["j1"], job.created_at)]);
}

/// With an entry, with it; without one, none; lost, none.
pub async fn a_write_is_audited_when_it_says_so(world: &mut World) {
    let job = made(world, "j1").await;
    let audit = sample::audit("job.cancel", &["j1"], world.now());
    let mut next = Job {
        version: 2,
        ..job.clone()
    };
    world.jobs().update(&next, Some(&audit)).await.unwrap();
    let lost = world.jobs().update(&next, Some(&audit)).await.unwrap();
    assert_eq!(lost, Written::Lost);
    next.version = 3;
    world.jobs().update(&next, None).await.unwrap();
    let (entries, _) = world.audit().list(None, 9).await.unwrap().unwrap();
    let actions: Vec<&str> = entries.iter().map(|e| e.action.as_str()).collect();
    assert_eq!(actions, ["job.cancel", "job.create"]);
}

/// From its end, until its age is 30 days, to the millisecond.
pub async fn what_is_over_is_kept_for_thirty_days(world: &mut World) {
    let job = made(world, "j1").await;
    world.clock.advance(JOB_RETENTION);
    end(world, &job).await;
    world.clock.advance(JOB_RETENTION - MS);
    assert_eq!(listed(world, "w1", None, 9).await, ["j1"]);
    assert!(world.jobs().get(&job.id).await.unwrap().is_some());
    world.clock.advance(MS);
    assert!(listed(world, "w1", None, 9).await.is_empty());
    assert!(world.jobs().get(&job.id).await.unwrap().is_none());
}

/// However old it is.
pub async fn what_is_not_over_is_kept(world: &mut World) {
    let job = made(world, "j1").await;
    world.clock.advance(JOB_RETENTION * 3);
    assert_eq!(listed(world, "w1", None, 9).await, ["j1"]);
    assert_eq!(unfinished(world, None).await, ["j1"]);
    assert_eq!(world.jobs().get(&job.id).await.unwrap(), Some(job));
}

/// What is published after a job was made has no earlier time than what was published before: nothing comes into its range.
pub async fn a_range_that_ended_before_a_job_is_closed(world: &mut World) {
    let queue = world.queue().await;
    let mut published = 0;
    for n in 0..10 {
        let at = world.now();
        let job = sample::job(&format!("j{n}"), &queue, at);
        create(world, &job).await;
        world.send_to(&queue, n, 1).await;
        world.file().await;
        let latest = world.archive().latest(&queue.workspace, None, 100).await.unwrap();
        let inside = latest.iter().filter(|head| head.published_at < at).count();
        assert!(inside <= published, "nothing came into a range that was closed");
        assert!(latest[0].published_at >= at);
        published = latest.len();
        if n % 3 == 0 {
            world.clock.advance(MS);
        }
    }
}

/// Closed and opened again, jobs are what they were.
pub async fn jobs_survive_a_reopening(world: &mut World) {
    let job = made(world, "j1").await;
    let over = made(world, "j2").await;
    end(world, &over).await;
    world.reopen().await;
    assert_eq!(world.jobs().get(&job.id).await.unwrap(), Some(job));
    assert_eq!(listed(world, "w1", None, 9).await, ["j2", "j1"]);
    assert_eq!(unfinished(world, None).await, ["j1"]);
}
