//! Every small schedule of the steps of jobs, over the real core.
//!
//! A job promises much (contract §6): nothing skipped, nothing doubled, order kept, dead letters removed when and only
//! when they have arrived, exact numbers, whatever runner dies, sleeps or is overtaken at whatever call, and whoever
//! cancels, publishes, receives, rejects or deletes meanwhile. So runners take `Bus::job_step` here on ports that stop
//! before every call, and a scheduler decides at each stop what comes next: the call is done, meets a fault, its runner is
//! stopped for good, another runner goes on instead, or something happens beside. Afterwards all is let run to its end, and
//! the queue, the dead letters and the jobs are held against what was asked for.

mod scene;
mod schedule;
mod theatre;
mod verdict;

pub use scene::{Ask, Scene};
pub use schedule::{Budget, every, some};
