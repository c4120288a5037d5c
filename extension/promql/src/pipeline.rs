//! Reading on one thread, evaluation on another.
//!
//! ```text
//! calling thread (owns the source)              second thread (owns the evaluation)
//!   wait for a selection  ◄──── selections ────   a selector needs its series
//!   read a batch          ───── batches ───────►  evaluate the batch
//!   read the next one     ◄──── used batches ──   give its memory back
//!   end of the selection  ───── End ───────────►  go on
//!   join                  ◄──── answer ────────   end
//! ```
//! A source that only one thread may use, such as a backend of PostgreSQL, reads the next batch
//! while the batch before it is evaluated. The answer does not depend on which of the two is
//! faster, because batches keep their order.
//!
//! Invariants:
//! - The second thread touches neither the source nor the interrupt.
//! - At most [`BATCHES_MAX`] batches exist. Before it reads one more, the calling thread waits for a
//!   used one.
//! - A selection is read to its end before the next one is asked for. The evaluation never reads
//!   one within another; it would be an error.
//! - The second thread ends when the calling thread leaves, by whatever way. The calling thread
//!   then drops its ends of the channels and raises a flag that the evaluation looks at every few
//!   milliseconds. So a panic of the source or of the interrupt, as which PostgreSQL's errors come,
//!   passes on after a moment.
//!
//! Failure cases. If no thread can be started, the calling thread does everything. An error of the
//! source ends the evaluation with this error. A panic of the evaluation goes on in the calling
//! thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, Builder, ScopedJoinHandle};
use std::time::Duration;

use crate::batches::{BatchSource, OneThread, SeriesBatch};
use crate::engine::{Answer, Engine, Options};
use crate::error::Error;
use crate::matcher::Matcher;
use crate::prepared::Prepared;
use crate::source::{Selection, SeriesSink, Source};

/// The largest number of batches that exist at a time: one is read, one evaluated, one waits.
pub const BATCHES_MAX: usize = 3;
/// The time between two calls of the interrupt while the calling thread waits.
const INTERRUPT_TIME: Duration = Duration::from_millis(10);
/// The stack of the second thread. Only what the evaluation uses takes memory.
const STACK_BYTES: usize = 8 << 20;

/// A selection that the evaluation needs.
struct OwnedSelection {
    matchers: Vec<Matcher>,
    start: i64,
    end: i64,
}

/// An item of the channel of batches.
enum Item<B> {
    Batch(B),
    /// The selection has been read, or could not be read.
    End(Result<(), Error>),
}

/// Evaluates a query on a second thread, and reads its series on this one. `started` is called
/// once the second thread runs, or could not be started. `interrupt` is called every few
/// milliseconds on this thread; its error ends the evaluation.
///
/// # Errors
/// Why there is no answer.
///
/// # Panics
/// With the panic of the second thread, if it panics.
pub fn evaluate<S: BatchSource>(
    source: &S,
    prepared: &Prepared,
    options: Options,
    interrupt: &dyn Fn() -> Result<(), Error>,
    started: impl FnOnce(),
) -> Result<Answer, Error> {
    let is_left = AtomicBool::new(false);
    let is_left = &is_left;
    thread::scope(|scope| {
        // Declared first, so that it is dropped last: after the ends of the channels.
        let leaving = Leaving(is_left);
        let (selections, wanted) = channel();
        let (batches, received) = channel();
        let (used, returned) = channel();
        let remote = RemoteSource {
            selections,
            batches: received,
            used,
            is_reading: Cell::new(false),
        };
        let evaluation = Builder::new()
            .name("promql".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, move || {
                let interrupt = || match is_left.load(Ordering::Relaxed) {
                    true => Err(Error::Canceled),
                    false => Ok(()),
                };
                let engine = Engine::new(&remote, options).with_interrupt(&interrupt);
                engine.evaluate(prepared)
            });
        started();
        let Ok(evaluation) = evaluation else {
            let source = OneThread(source);
            let engine = Engine::new(&source, options).with_interrupt(interrupt);
            return engine.evaluate(prepared);
        };
        let reader = Reader {
            source,
            interrupt,
            wanted,
            batches,
            returned,
            sent: Cell::new(0),
        };
        reader.serve()?;
        drop(leaving);
        answer_of(evaluation)
    })
}

fn answer_of(evaluation: ScopedJoinHandle<'_, Result<Answer, Error>>) -> Result<Answer, Error> {
    match evaluation.join() {
        Ok(answer) => answer,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Tells the evaluation that the calling thread leaves.
struct Leaving<'l>(&'l AtomicBool);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The part of the calling thread.
struct Reader<'r, S: BatchSource> {
    source: &'r S,
    interrupt: &'r dyn Fn() -> Result<(), Error>,
    wanted: Receiver<OwnedSelection>,
    batches: Sender<Item<S::Batch>>,
    returned: Receiver<S::Batch>,
    /// The number of batches that were sent and have not been received again.
    sent: Cell<usize>,
}

impl<S: BatchSource> Reader<'_, S> {
    /// Reads one selection after the other, until the evaluation has ended.
    fn serve(self) -> Result<(), Error> {
        while let Some(selection) = self.wait_for(&self.wanted)? {
            self.read(&selection);
        }
        Ok(())
    }

    fn read(&self, selection: &OwnedSelection) {
        // All batches of the selection before have been evaluated. The source makes the first batch
        // of this one itself.
        self.returned.try_iter().for_each(drop);
        self.sent.set(0);
        let selection = Selection {
            matchers: &selection.matchers,
            start: selection.start,
            end: selection.end,
        };
        let end = self.source.read_batches(&selection, &mut |batch| {
            (self.interrupt)()?;
            // Nobody receives it if the evaluation has ended, which then says why.
            let sent = self.batches.send(Item::Batch(batch));
            sent.map_err(|_| Error::Canceled)?;
            self.sent.set(self.sent.get() + 1);
            self.next_batch()
        });
        let _ = self.batches.send(Item::End(end));
    }

    /// A batch whose memory is used next: one that was returned, or a new one.
    fn next_batch(&self) -> Result<S::Batch, Error> {
        let batch = match self.sent.get() < BATCHES_MAX {
            true => self.returned.try_recv().ok(),
            false => Some(self.wait_for(&self.returned)?.ok_or(Error::Canceled)?),
        };
        let received = usize::from(batch.is_some());
        self.sent.set(self.sent.get() - received);
        Ok(batch.unwrap_or_default())
    }

    /// Waits for the next item of a channel, and calls the interrupt meanwhile. `None`: the
    /// evaluation has ended.
    fn wait_for<T>(&self, channel: &Receiver<T>) -> Result<Option<T>, Error> {
        loop {
            match channel.recv_timeout(INTERRUPT_TIME) {
                Ok(item) => return Ok(Some(item)),
                Err(RecvTimeoutError::Timeout) => (self.interrupt)()?,
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }
}

/// The source of the second thread: it asks the calling thread for each selection.
struct RemoteSource<B> {
    selections: Sender<OwnedSelection>,
    batches: Receiver<Item<B>>,
    used: Sender<B>,
    is_reading: Cell<bool>,
}

impl<B: SeriesBatch> Source for RemoteSource<B> {
    fn read(&self, selection: &Selection<'_>, each: SeriesSink<'_>) -> Result<(), Error> {
        // The batches of two selections could not be told apart.
        if self.is_reading.replace(true) {
            return Err(Error::Source(
                "a selection is read within another one".to_owned(),
            ));
        }
        let wanted = OwnedSelection {
            matchers: selection.matchers.to_vec(),
            start: selection.start,
            end: selection.end,
        };
        self.selections.send(wanted).map_err(|_| Error::Canceled)?;
        loop {
            match self.batches.recv().map_err(|_| Error::Canceled)? {
                Item::Batch(batch) => {
                    batch.each(each)?;
                    // If the selection has been read, nobody uses the memory any more.
                    let _ = self.used.send(batch);
                }
                Item::End(end) => {
                    self.is_reading.set(false);
                    return end;
                }
            }
        }
    }
}
