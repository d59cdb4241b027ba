//! Reading a request's body, with limits on its size, its time and the memory of all together.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::limits::{FREE_BODY, Limits};

/// The memory that large bodies share, in KiB.
pub(super) struct BodyRoom(Arc<Semaphore>);

impl BodyRoom {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / 1024)))
    }

    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes.div_ceil(1024)).ok()?;
        self.0.clone().try_acquire_many_owned(kib).ok()
    }
}

/// A body that was read.
pub(super) enum Read {
    /// All of it, with its share of the memory, to be held while it is used.
    Complete(Bytes, Option<OwnedSemaphorePermit>),
    /// It is larger than the limit; the rest was not read.
    TooLarge,
}

/// A body that was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// It did not come in time.
    Slow,
    /// It is not framed as its head says, or the client is gone.
    Broken,
    /// There is no memory for it.
    NoRoom,
}

/// Reads the body.
pub(super) async fn read(body: Incoming, room: &BodyRoom, limits: &Limits) -> Result<Read, Unread> {
    if body.is_end_stream() {
        return Ok(Read::Complete(Bytes::new(), None));
    }
    if declared(&body.size_hint()) > limits.body_bytes as u64 {
        // Before a client that waits for `100 Continue` has sent any of it.
        return Ok(Read::TooLarge);
    }
    timeout(limits.body_time, collect(body, room, limits))
        .await
        .unwrap_or(Err(Unread::Slow))
}

fn declared(hint: &SizeHint) -> u64 {
    hint.exact().unwrap_or(0)
}

async fn collect(mut body: Incoming, room: &BodyRoom, limits: &Limits) -> Result<Read, Unread> {
    // A declared length is a promise that costs the client nothing: more than this is set aside only for what has come.
    let expected = usize::try_from(declared(&body.size_hint())).unwrap_or(0);
    let mut read = BytesMut::with_capacity(expected.min(FREE_BODY));
    let mut share: Option<OwnedSemaphorePermit> = None;
    let mut paid = FREE_BODY;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Err(Unread::Broken);
        };
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > limits.body_bytes {
            return Ok(Read::TooLarge);
        }
        read.extend_from_slice(&data);
        if read.capacity() > paid {
            let more = room.take(read.capacity() - paid).ok_or(Unread::NoRoom)?;
            paid = read.capacity();
            match &mut share {
                Some(share) => share.merge(more),
                None => share = Some(more),
            }
        }
    }
    Ok(Read::Complete(read.freeze(), share))
}
