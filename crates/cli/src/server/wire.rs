//! The socket as hyper sees it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::answer;
use super::watch::Watch;

/// A stream that tells the [`Watch`] what it sees, and does three things of its own:
///
/// - What hyper answers by itself, to a head that it cannot read, has no body: the bus's own answer takes its place.
/// - A client that stops sending and waits for its answer gets it: while a request is being worked on, the end of the
///   stream is held back. A receive that waits is the exception: there it means that the client is gone.
/// - At the end it reads for a while what the client still sends (see [`Watch::linger`]): else the operating system
///   would answer with a reset, and the client would never see the last answer.
pub(super) struct Wire<S> {
    stream: S,
    watch: Arc<Watch>,
    /// An answer of our own, what is left of it.
    own: Bytes,
    shut: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(super) fn new(stream: S, watch: Arc<Watch>) -> Self {
        Self {
            stream,
            watch,
            own: Bytes::new(),
            shut: false,
        }
    }

    pub(super) fn into_inner(self) -> S {
        self.stream
    }

    /// Takes what hyper says by itself and puts the bus's answer in its place.
    fn replaces(&mut self, buf: &[u8]) -> bool {
        if !self.watch.before_request() {
            return false;
        }
        let status = buf.get(9..12).and_then(|code| StatusCode::from_bytes(code).ok());
        self.own = answer::raw(&answer::unreadable(status.unwrap_or(StatusCode::BAD_REQUEST)));
        self.watch.leave_unread();
        true
    }

    fn poll_own(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.own.has_remaining() {
            let n = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.own))?;
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.own.advance(n);
        }
        Poll::Ready(Ok(()))
    }

    fn wrote(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(result, Poll::Ready(Ok(n)) if n > 0) {
            self.watch.took();
        }
        result
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.watch.came();
        } else if buf.remaining() > 0 && self.watch.holds_end() {
            // hyper reads again once the answer is out, and sees the end then.
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.replaces(buf) {
            return Poll::Ready(Ok(buf.len()));
        }
        let result = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.wrote(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if bufs.first().is_some_and(|first| self.replaces(first)) {
            return Poll::Ready(Ok(bufs.iter().map(|b| b.len()).sum()));
        }
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.wrote(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_own(cx))?;
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.watch.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.shut {
            ready!(self.poll_own(cx))?;
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.shut = true;
            if !self.watch.linger() {
                return Poll::Ready(Ok(()));
            }
        }
        // The connection's task ends this when the time is up.
        let mut scratch = [0; 16 * 1024];
        loop {
            let mut buf = ReadBuf::new(&mut scratch);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf))?;
            if buf.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
