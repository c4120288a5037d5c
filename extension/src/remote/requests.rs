//! The segments that backends wait for: a table in shared memory.
//!
//! ```text
//! free → checked → wanted → taken ─┬→ free     supplied: the image is in the cold cache; or nobody wants it any more
//!           │        ▲        │    └→ failed   with a reason; checked again when it is asked for again
//!           ▼        └────────┘  not answered for TAKEN_MAX
//!          free    the image had come in the meantime
//! ```
//!
//! The backend that posts a request looks into the cold cache once more before gateways see the
//! request. The answer to an earlier request may have come between its first look and its post. Without
//! the second look the segment would be fetched twice.
//!
//! Each request has an expiry time, which the backends that wait for it extend while they wait. So a
//! request expires when all of them are gone, for whatever reason, and nobody has to withdraw it.
//! While no place of the table is free or expired, other backends try again later.
//!
//! The image of an expired request is not kept. One lightweight lock guards the table; it is held
//! only while memory is read or written. Each place has a condition variable for the backends that wait
//! for its answer, and the table has one for gateways that wait for requests.

use super::expected::Expected;
use super::key::Key;
use crate::pg::shmem::Area;
use crate::pg::shmem::{self, ConditionVariable};
use crate::pg::transaction::now;

/// The number of requests at a time.
pub const PLACES: usize = 256;
/// A request that was taken and not answered for so many microseconds is offered again.
const TAKEN_MAX: i64 = 10_000_000;
/// The bytes of a reason.
const REASON_BYTES_MAX: usize = 240;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum State {
    Free,
    /// The backend that posted it looks into the cold cache once more.
    Checked,
    Wanted,
    Taken,
    Failed,
}

impl State {
    /// Whether somebody waits for an answer.
    fn is_open(self) -> bool {
        matches!(self, State::Checked | State::Wanted | State::Taken)
    }
}

/// Why there is no image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Cause {
    /// It could not be fetched or not be kept.
    Delivery,
    /// The supplied bytes are not the image.
    Image,
}

/// One request.
#[repr(C)]
#[derive(Clone, Copy)]
struct Place {
    key: Key,
    wanted_until: i64,
    /// When its backend began to look, when it was taken, or when it failed.
    since: i64,
    state: State,
    cause: Cause,
    /// What is known about the image, because the supplier cannot look at the table.
    expected: Expected,
    reason_bytes: u32,
    reason: [u8; REASON_BYTES_MAX],
}

impl Place {
    /// Whether it belongs to this database and may be taken. It may also be taken when the backend
    /// that looks, or the gateway that took it, has been silent for too long.
    fn is_due(&self, database: u32, now: i64) -> bool {
        let is_open = match self.state {
            State::Wanted => true,
            State::Checked | State::Taken => self.since + TAKEN_MAX < now,
            State::Free | State::Failed => false,
        };
        is_open && self.key.database == database && self.wanted_until >= now
    }

    /// Notes why there will be no image, unless a reason is known already. The reason is not too
    /// long.
    fn fail(&mut self, reason: &[u8], cause: Cause, now: i64) {
        if self.state != State::Failed {
            self.state = State::Failed;
            self.since = now;
            self.cause = cause;
            self.reason_bytes = reason.len() as u32;
            self.reason[..reason.len()].copy_from_slice(reason);
        }
    }
}

const FREE: Place = Place {
    key: Key {
        storage_id: 0,
        first_row: 0,
        database: 0,
        origin: 0,
    },
    wanted_until: 0,
    since: 0,
    state: State::Free,
    cause: Cause::Delivery,
    expected: Expected {
        bytes: 0,
        digest: None,
    },
    reason_bytes: 0,
    reason: [0; REASON_BYTES_MAX],
};

/// The condition variables of those who wait.
struct Waiters {
    /// For gateways that wait for requests, and backends that wait for a free place.
    posted: ConditionVariable,
    /// For backends that wait for an answer, by place.
    answered: [ConditionVariable; PLACES],
}

static REQUESTS: Area<Waiters, [Place; PLACES]> = Area::new(c"lanes recall requests", || {
    let waiters = Waiters {
        posted: ConditionVariable::new(),
        answered: std::array::from_fn(|_| ConditionVariable::new()),
    };
    (waiters, [FREE; PLACES])
});

/// Requests the shared memory. Called from `_PG_init`.
pub fn register() {
    REQUESTS.add();
}

/// The next step of a backend that has posted or joined a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Look into the cold cache once more, then offer the request.
    Look,
    /// Wake the gateways, which may have slept while nobody wanted the request.
    Wake,
    /// None: another backend has offered it.
    Wait,
}

/// The outcome of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// Look into the cold cache again, and ask again if the image is not there.
    Look,
    /// There is no image; the reason in words.
    Failed(String, Cause),
}

fn find(places: &[Place], key: &Key) -> Option<usize> {
    places
        .iter()
        .position(|place| place.state != State::Free && place.key == *key)
}

/// Posts a request or joins an existing one. Returns its place and the next step of the caller;
/// `None`: no place is free. A failure from before `asked_at` is dropped.
fn want(
    places: &mut [Place],
    key: &Key,
    expected: &Expected,
    now: i64,
    (asked_at, until): (i64, i64),
) -> Option<(usize, Next)> {
    let (index, is_new) = match find(places, key) {
        Some(index) => {
            let place = &mut places[index];
            let is_again = place.state == State::Failed && place.since < asked_at;
            if is_again {
                place.state = State::Checked;
                place.since = now;
            }
            (index, is_again)
        }
        None => {
            let has_run_out =
                |place: &Place| place.state == State::Free || place.wanted_until < now;
            let index = places.iter().position(has_run_out)?;
            places[index] = Place {
                key: *key,
                expected: *expected,
                state: State::Checked,
                since: now,
                ..FREE
            };
            (index, true)
        }
    };
    let place = &mut places[index];
    // While nobody wanted the request, gateways may have gone to sleep.
    let has_run_out = place.wanted_until < now;
    place.wanted_until = place.wanted_until.max(until);
    let next = match (is_new, has_run_out) {
        (true, _) => Next::Look,
        (false, true) => Next::Wake,
        (false, false) => Next::Wait,
    };
    Some((index, next))
}

/// Offers a request to gateways, after its backend has looked in vain.
fn offer(places: &mut [Place], key: &Key) {
    if let Some(index) = find(places, key)
        && places[index].state == State::Checked
    {
        places[index].state = State::Wanted;
    }
}

/// Takes requests of a database that nobody has taken, or whose gateway has not answered.
fn take(places: &mut [Place], database: u32, now: i64) -> Vec<Key> {
    let mut keys = Vec::new();
    for place in places {
        if place.is_due(database, now) {
            place.state = State::Taken;
            place.since = now;
            keys.push(place.key);
        }
    }
    keys
}

/// Posts a request that is wanted until `until`, without waiting. `is_there` looks into the cold
/// cache, as in [`ask`].
pub fn post(key: &Key, expected: &Expected, until: i64, is_there: impl FnOnce() -> bool) {
    let now = now();
    let posted = with_places(|places| want(places, key, expected, now, (now, until)));
    if let Some((_, next)) = posted {
        go_on(key, next, is_there);
    }
}

/// Takes the step that [`want`] returned. False: the image is in the cold cache, and the request is
/// withdrawn.
fn go_on(key: &Key, next: Next, is_there: impl FnOnce() -> bool) -> bool {
    match next {
        Next::Look if is_there() => {
            supplied(key);
            return false;
        }
        Next::Look => {
            with_places(|places| offer(places, key));
            wake_gateways();
        }
        Next::Wake => wake_gateways(),
        Next::Wait => {}
    }
    true
}

/// Posts a request, and waits until there is an answer or `wait_max` microseconds have passed.
/// `is_there` is called once more after posting, and says whether the answer has come in the
/// meantime. Interruptible.
pub fn ask(
    key: &Key,
    expected: &Expected,
    asked_at: i64,
    wait_max: i64,
    is_there: impl FnOnce() -> bool,
) -> Answer {
    /// How long a request stays wanted after its backend has looked last.
    const LEASE: i64 = 5_000_000;
    /// After so long, the backend says that it still waits.
    const LOOK_EVERY: i64 = 1_000_000;
    let posted = with_places(|places| {
        let now = now();
        want(places, key, expected, now, (asked_at, now + LEASE))
    });
    let wait = wait_max.clamp(1_000, LOOK_EVERY) / 1_000;
    let Some((index, next)) = posted else {
        // Waits until places are free.
        waiters().posted.sleep(20.min(wait));
        return Answer::Look;
    };
    if !go_on(key, next, is_there) {
        return Answer::Look;
    }
    let answered = &waiters().answered[index];
    answered.prepare_to_sleep();
    if is_unanswered(index, key) {
        answered.sleep(wait);
    }
    shmem::cancel_sleep();
    let failed = with_places(|places| {
        let place = &places[index];
        let is_failure =
            place.state == State::Failed && place.key == *key && place.since >= asked_at;
        is_failure.then_some((place.reason, place.reason_bytes as usize, place.cause))
    });
    match failed {
        Some((reason, bytes, cause)) => {
            let reason = String::from_utf8_lossy(&reason[..bytes]);
            Answer::Failed(reason.into_owned(), cause)
        }
        None => Answer::Look,
    }
}

fn is_unanswered(index: usize, key: &Key) -> bool {
    with_places(|places| {
        let place = &places[index];
        place.key == *key && place.state.is_open()
    })
}

/// The requests of this database, at once or as soon as there are some; none after `wait_max`
/// microseconds. Interruptible.
pub fn next(database: u32, wait_max: i64) -> Vec<Key> {
    let mut keys = Vec::new();
    wait_until(wait_max, |places, now| {
        keys = take(places, database, now);
        !keys.is_empty()
    });
    keys
}

/// Waits until there are requests of this database that [`next`] returns, at most `wait_max`
/// microseconds. Interruptible.
pub fn wait(database: u32, wait_max: i64) {
    wait_until(wait_max, |places, now| {
        places.iter().any(|place| place.is_due(database, now))
    });
}

/// Waits until `is_over`, which is called whenever requests may have come.
fn wait_until(wait_max: i64, mut is_over: impl FnMut(&mut [Place], i64) -> bool) {
    let until = now() + wait_max;
    loop {
        waiters().posted.prepare_to_sleep();
        let now = now();
        if !with_places(|places| is_over(places, now)) && now < until {
            // It waits no longer than until a request that was taken and not answered is offered
            // again.
            let wait = (until - now).clamp(1_000, 1_000_000) / 1_000;
            waiters().posted.sleep(wait);
            continue;
        }
        shmem::cancel_sleep();
        return;
    }
}

/// What is known about a wanted image; `None`: nobody wants it.
pub fn expected(key: &Key) -> Option<Expected> {
    with_places(|places| {
        let place = &places[find(places, key)?];
        place.state.is_open().then_some(place.expected)
    })
}

/// Notes that the image is in the cold cache.
pub fn supplied(key: &Key) {
    answer(key, |place| place.state = State::Free);
}

/// Notes that there will be no image. The first reason counts: a supplier that is refused may
/// report that in its own words too.
pub fn failed(key: &Key, reason: &str, cause: Cause) {
    let mut bytes = reason.len().min(REASON_BYTES_MAX);
    while !reason.is_char_boundary(bytes) {
        bytes -= 1;
    }
    let now = now();
    answer(key, |place| {
        place.fail(&reason.as_bytes()[..bytes], cause, now);
    });
}

fn answer(key: &Key, change: impl FnOnce(&mut Place)) {
    let index = with_places(|places| {
        let index = find(places, key)?;
        change(&mut places[index]);
        Some(index)
    });
    if let Some(index) = index {
        waiters().answered[index].broadcast();
    }
}

fn wake_gateways() {
    waiters().posted.broadcast();
}

fn waiters() -> &'static Waiters {
    REQUESTS.shared()
}

fn with_places<R>(body: impl FnOnce(&mut [Place]) -> R) -> R {
    REQUESTS.locked(|places| body(places))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NINE: Expected = Expected {
        bytes: 9,
        digest: None,
    };

    fn key(first_row: u64) -> Key {
        Key {
            first_row,
            database: 5,
            ..Key::default()
        }
    }

    #[test]
    fn a_request_is_taken_once_and_offered_again_when_it_is_not_answered() {
        let mut places = [FREE; 4];
        assert_eq!(
            want(&mut places, &key(1), &NINE, 100, (100, 20_000_000)),
            Some((0, Next::Look))
        );
        assert_eq!(
            want(&mut places, &key(1), &NINE, 100, (100, 20_000_000)),
            Some((0, Next::Wait))
        );
        offer(&mut places, &key(1));
        assert_eq!(take(&mut places, 6, 100), []);
        assert_eq!(take(&mut places, 5, 100), [key(1)]);
        assert_eq!(take(&mut places, 5, 100 + TAKEN_MAX), []);
        assert_eq!(take(&mut places, 5, 101 + TAKEN_MAX), [key(1)]);
    }

    #[test]
    fn requests_run_out_and_leave_their_places() {
        let mut places = [FREE; 1];
        want(&mut places, &key(1), &NINE, 100, (100, 200));
        assert_eq!(want(&mut places, &key(2), &NINE, 150, (150, 300)), None);
        assert_eq!(take(&mut places, 5, 201), []);
        assert_eq!(
            want(&mut places, &key(2), &NINE, 201, (201, 300)),
            Some((0, Next::Look))
        );
    }

    #[test]
    fn gateways_see_a_request_after_its_asker_has_looked() {
        let mut places = [FREE; 2];
        want(&mut places, &key(1), &NINE, 100, (100, 90_000_000));
        assert_eq!(take(&mut places, 5, 100), []);
        offer(&mut places, &key(1));
        assert_eq!(take(&mut places, 5, 100), [key(1)]);
        // A backend that is gone delays nobody for long.
        want(&mut places, &key(2), &NINE, 100, (100, 90_000_000));
        assert_eq!(take(&mut places, 5, 100 + TAKEN_MAX), []);
        places[0].state = State::Free;
        assert_eq!(take(&mut places, 5, 101 + TAKEN_MAX), [key(2)]);
    }

    #[test]
    fn the_first_reason_counts_until_it_is_wanted_again() {
        let mut places = [FREE; 1];
        want(&mut places, &key(1), &NINE, 100, (100, 500));
        places[0].fail(b"changed", Cause::Image, 110);
        places[0].fail(b"so it was refused", Cause::Delivery, 120);
        let first = places[0];
        assert_eq!((first.cause, first.since), (Cause::Image, 110));
        assert_eq!(&first.reason[..first.reason_bytes as usize], b"changed");
        want(&mut places, &key(1), &NINE, 160, (160, 500));
        places[0].fail(b"gone", Cause::Delivery, 170);
        let second = places[0];
        assert_eq!((second.cause, second.since), (Cause::Delivery, 170));
        assert_eq!(&second.reason[..second.reason_bytes as usize], b"gone");
    }

    #[test]
    fn a_failure_is_forgotten_by_whoever_asks_after_it() {
        let mut places = [FREE; 1];
        want(&mut places, &key(1), &NINE, 100, (100, 500));
        places[0].state = State::Failed;
        places[0].since = 150;
        assert_eq!(
            want(&mut places, &key(1), &NINE, 160, (100, 500)),
            Some((0, Next::Wait))
        );
        assert_eq!(places[0].state, State::Failed);
        assert_eq!(
            want(&mut places, &key(1), &NINE, 160, (160, 500)),
            Some((0, Next::Look))
        );
        assert_eq!(places[0].state, State::Checked);
    }
}
