//! The loop of one thread over its connections.
//!
//! Sockets are edge-triggered and registered once. The only system calls of a request are one to
//! send it, one to receive its response, and a share of one that waits for events. Due requests go
//! to the connection that has been free for longest.

use super::clock::{thread_cpu, timespec};
use super::connection::{Broken, Connection, Sent};
use super::latency::Latencies;
use super::outcome::Tally;
use super::place::Place;
use super::plan::{Pace, Plan};
use super::response::Answer;
use super::schedule::Schedule;
use super::window::Window;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The size of a read; more bytes take another read.
const SCRATCH_BYTES: usize = 64 << 10;
const EVENTS_MAX: usize = 1024;
/// The wait before another attempt to open a connection.
const CONNECT_AGAIN: Duration = Duration::from_millis(100);
/// The wait after a refusal without `Retry-After`.
const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(1);

/// A worker with its connections.
pub struct Worker<'a> {
    plan: &'a Plan,
    /// The worker's number and the number of workers.
    place: (usize, usize),
    schedule: Option<Schedule>,
    window: Window,
    epoll: OwnedFd,
    connections: Vec<Place>,
    /// Places that may accept a request, longest free first. A place may have become full since:
    /// see `take_free`.
    free: VecDeque<usize>,
    /// Refused requests by the time of their next attempt: (time, number, intended, attempts).
    retries: BinaryHeap<Reverse<(u64, u64, u64, u32)>>,
    /// Places without a connection, by the time of their next attempt.
    to_open: VecDeque<(u64, usize)>,
    /// The number of requests that this worker has begun, which is the index of the next one.
    begun: u64,
    /// Whether the source has no more requests.
    is_exhausted: bool,
    /// The number of requests that wait for a response on some connection.
    in_flight: u64,
    /// The time up to which requests in flight are counted.
    counted_until: u64,
    tally: Tally,
}

impl<'a> Worker<'a> {
    /// Opens the worker's connections, spread over the plan's ramp. Connections that cannot be
    /// opened are tried again during the run.
    ///
    /// # Errors
    /// The system cannot create an event queue.
    pub fn new(plan: &'a Plan, place: (usize, usize)) -> Result<Worker<'a>, Errno> {
        let (worker, workers) = place;
        let window = Window::of(plan);
        let schedule = match plan.pace {
            Pace::Closed => None,
            Pace::Open(per_second) => {
                Some(Schedule::new(worker, workers, per_second, window.closes))
            }
        };
        let count = plan.connections / workers + usize::from(worker < plan.connections % workers);
        let mut this = Worker {
            plan,
            place,
            schedule,
            window,
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            connections: (0..count).map(|_| Place::default()).collect(),
            free: VecDeque::new(),
            retries: BinaryHeap::new(),
            to_open: VecDeque::new(),
            begun: 0,
            is_exhausted: false,
            in_flight: 0,
            counted_until: 0,
            tally: Tally::default(),
        };
        let pause = plan.ramp.div_f64(count.max(1) as f64);
        for index in 0..count {
            this.open(index, 0);
            std::thread::sleep(pause);
        }
        Ok(this)
    }

    /// Runs from `start` until every request has a response or is abandoned.
    ///
    /// # Errors
    /// The event queue fails.
    pub fn run(mut self, start: Instant) -> Result<Tally, Errno> {
        let mut scratch = vec![0; SCRATCH_BYTES];
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS_MAX);
        std::thread::sleep(start.saturating_duration_since(Instant::now()));
        let clock = move || start.elapsed().as_nanos() as u64;
        let mut cpu_at_open = None;
        let mut cpu_at_close = None;
        loop {
            let now = clock();
            self.abandon_backlog(now);
            self.count_population(now);
            if now >= self.window.opens && cpu_at_open.is_none() {
                cpu_at_open = Some(thread_cpu());
            }
            if now >= self.window.closes && cpu_at_close.is_none() {
                cpu_at_close = Some(thread_cpu());
            }
            self.wake(now);
            self.send_due(&clock);
            let population = self.population(now);
            let is_over =
                now >= self.window.closes && (population == 0 || now >= self.window.gives_up);
            // A source that ends before the window also ends the run, once every request has a
            // response.
            if is_over || (self.is_exhausted && population == 0) {
                break;
            }
            let timeout = timespec(self.next_time(now).saturating_sub(clock()));
            events.clear();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                Some(&timeout),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            for event in &events {
                self.serve(event.data.u64(), event.flags, &mut scratch, &clock);
            }
        }
        let end = clock();
        self.give_up(end);
        let opened = cpu_at_open.unwrap_or_default();
        self.tally.cpu_seconds = cpu_at_close.unwrap_or_else(thread_cpu) - opened;
        self.tally.ended = end;
        Ok(self.tally)
    }

    /// Returns the number of requests in flight in the sense of Little's law: due, and without a
    /// final response.
    fn population(&self, now: u64) -> u64 {
        self.in_flight + self.retries.len() as u64 + self.backlog(now)
    }

    /// Adds the requests in flight since the last call. Requests that became due meanwhile are
    /// assumed to be evenly spread.
    fn count_population(&mut self, now: u64) {
        let from = self.counted_until.max(self.window.opens);
        let to = now.min(self.window.closes);
        let twice = self.population(from) + self.population(to.max(from));
        self.tally.count_population(twice as f64 / 2.0, from, to);
        self.counted_until = now;
    }

    /// Returns the number of requests that are due but not begun.
    fn backlog(&self, now: u64) -> u64 {
        match &self.schedule {
            Some(schedule) if !self.is_exhausted => schedule.due(now).saturating_sub(self.begun),
            _ => 0,
        }
    }

    /// Abandons the requests that were not begun before the window closed, if the plan says so.
    fn abandon_backlog(&mut self, now: u64) {
        if self.plan.abandons_backlog && now >= self.window.closes && !self.is_exhausted {
            self.give_up_unsent(now);
            self.is_exhausted = true;
        }
    }

    /// Returns the time of the next action that does not depend on a socket.
    fn next_time(&self, now: u64) -> u64 {
        let mut next = match now {
            now if now < self.window.opens => self.window.opens,
            now if now < self.window.closes => self.window.closes,
            _ => self.window.gives_up,
        };
        if let Some((time, _)) = self.to_open.front() {
            next = next.min(*time);
        }
        // A retry that is already due waits for a connection, and a response on it is an event.
        if let Some(Reverse((time, ..))) = self.retries.peek()
            && *time > now
        {
            next = next.min(*time);
        }
        // With a backlog the worker waits for a response, not for the schedule.
        if let Some(time) = self
            .schedule
            .as_ref()
            .and_then(|schedule| schedule.time(self.begun))
            && time > now
            && !self.is_exhausted
        {
            next = next.min(time);
        }
        next
    }

    /// Performs the actions that are due.
    fn wake(&mut self, now: u64) {
        while let Some((_, index)) = self.to_open.pop_front_if(|(time, _)| *time <= now) {
            self.open(index, now);
        }
        while let Some(Reverse((time, number, intended, attempts))) = self.retries.peek().copied() {
            if time > now {
                break;
            }
            let Some(index) = self.take_free() else { break };
            self.retries.pop();
            self.tally.retries += 1;
            self.begin(
                index,
                Sent {
                    number,
                    intended,
                    attempts,
                },
            );
            self.flush(index, now);
        }
    }

    /// Sends the requests that are due by the schedule or the closed loop, as far as connections
    /// are free.
    fn send_due(&mut self, clock: &impl Fn() -> u64) {
        let now = clock();
        let mut due = match &self.schedule {
            Some(schedule) => schedule.due(now).saturating_sub(self.begun),
            None if now < self.window.closes => u64::MAX,
            None => 0,
        };
        while due > 0 && !self.is_exhausted {
            let Some(index) = self.take_free() else {
                return;
            };
            // A request of a closed loop begins when it is sent, not when the first of many was.
            let now = clock();
            let room = self.plan.depth
                - self.connections[index]
                    .connection
                    .as_ref()
                    .map_or(0, Connection::waiting);
            for _ in 0..(room as u64).min(due) {
                let (number, intended) = match &self.schedule {
                    Some(schedule) => (
                        schedule.number(self.begun),
                        schedule.time(self.begun).unwrap_or(now),
                    ),
                    None => (self.place.0 as u64 + self.begun * self.place.1 as u64, now),
                };
                if self.window.has(intended) {
                    self.tally.lateness.add(now - intended);
                }
                self.begin(
                    index,
                    Sent {
                        number,
                        intended,
                        attempts: 0,
                    },
                );
                if self.is_exhausted {
                    break;
                }
                self.begun += 1;
                due -= 1;
            }
            self.flush(index, now);
        }
    }

    /// Returns a connection that is open and has room. It leaves the list until it is freed again.
    fn take_free(&mut self) -> Option<usize> {
        while let Some(index) = self.free.pop_front() {
            let place = &mut self.connections[index];
            place.is_listed = false;
            let has_room = place.connection.as_ref().is_some_and(|connection| {
                connection.is_open() && connection.waiting() < self.plan.depth
            });
            if has_room {
                return Some(index);
            }
        }
        None
    }

    fn set_free(&mut self, index: usize) {
        if !std::mem::replace(&mut self.connections[index].is_listed, true) {
            self.free.push_back(index);
        }
    }

    fn begin(&mut self, index: usize, request: Sent) {
        let source = &self.plan.source;
        let Some(connection) = self.connections[index].connection.as_mut() else {
            return;
        };
        match connection.add(request, |into| source.request(request.number, into)) {
            true => self.in_flight += 1,
            false => self.is_exhausted = true,
        }
    }

    fn flush(&mut self, index: usize, now: u64) {
        let Some(connection) = self.connections[index].connection.as_mut() else {
            return;
        };
        match connection.flush() {
            Ok(()) if connection.waiting() < self.plan.depth => self.set_free(index),
            Ok(()) => {}
            Err(broken) => self.break_off(index, broken, now),
        }
    }

    fn serve(
        &mut self,
        mark: u64,
        flags: EventFlags,
        scratch: &mut [u8],
        clock: &impl Fn() -> u64,
    ) {
        let index = (mark & u64::from(u32::MAX)) as usize;
        if self.connections[index].mark(index) != mark {
            return;
        }
        let Some(mut connection) = self.connections[index].connection.take() else {
            return;
        };
        let mut result = Ok(());
        let mut freed = false;
        if !connection.is_open() || flags.contains(EventFlags::OUT) {
            match connection.writable() {
                Ok(opened) => freed = opened,
                Err(broken) => result = Err(broken),
            }
        }
        if result.is_ok()
            && flags
                .intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
        {
            let now = clock();
            self.count_population(now);
            result = connection.readable(scratch, |request, answer| {
                freed = true;
                self.answered(request, answer, now);
            });
        }
        self.connections[index].connection = Some(connection);
        match result {
            // Send at once instead of after the remaining events, which would delay the waiting
            // requests.
            Ok(()) if freed => {
                self.set_free(index);
                self.send_due(clock);
            }
            Ok(()) => {}
            Err(broken) => self.break_off(index, broken, clock()),
        }
    }

    fn answered(&mut self, request: Sent, answer: Answer, now: u64) {
        self.in_flight -= 1;
        let refused = matches!(answer.status, 429 | 503);
        if refused && request.attempts < self.plan.attempts_again {
            let wait = answer.retry_after.unwrap_or(RETRY_AFTER_DEFAULT);
            let time = now + wait.as_nanos() as u64;
            self.retries.push(Reverse((
                time,
                request.number,
                request.intended,
                request.attempts + 1,
            )));
            self.tally.refused_again += 1;
            return;
        }
        let weight = self.plan.source.weight(request.number);
        self.tally.answer(answer.status, weight);
        if (200..300).contains(&answer.status) {
            self.plan.source.acknowledged(request.number);
        }
        if refused && answer.retry_after.is_none() {
            self.tally.refused_for_good += 1;
        }
        if self.window.has(now) {
            self.tally.completed += 1;
            self.tally.acknowledged_in_window += u64::from((200..300).contains(&answer.status));
        }
        if self.window.has(request.intended) {
            self.tally.latencies.add(now - request.intended);
        }
    }

    /// Abandons a connection and its requests, and opens another one in its place.
    fn break_off(&mut self, index: usize, broken: Broken, now: u64) {
        let Some(mut connection) = self.connections[index].connection.take() else {
            return;
        };
        let lost = connection.give_up().count() as u64;
        self.in_flight -= lost;
        match broken {
            Broken::Connect => self.tally.errors.connect += 1,
            Broken::Closed => self.tally.errors.closed += lost,
            Broken::Malformed => self.tally.errors.malformed += lost.max(1),
        }
        match broken {
            Broken::Connect => self.open_later(index, now),
            Broken::Closed | Broken::Malformed => self.open(index, now),
        }
    }

    fn open(&mut self, index: usize, now: u64) {
        let place = &mut self.connections[index];
        place.serial = place.serial.wrapping_add(1);
        let data = EventData::new_u64(place.mark(index));
        let opened = Connection::open(self.plan.address).and_then(|connection| {
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            epoll::add(&self.epoll, connection.socket(), data, flags)?;
            Ok(connection)
        });
        match opened {
            Ok(connection) => {
                let is_open = connection.is_open();
                place.connection = Some(connection);
                if is_open {
                    self.set_free(index);
                }
            }
            Err(_) => {
                self.tally.errors.connect += 1;
                self.open_later(index, now);
            }
        }
    }

    fn open_later(&mut self, index: usize, now: u64) {
        self.to_open
            .push_back((now + CONNECT_AGAIN.as_nanos() as u64, index));
    }

    /// Abandons requests without a response. They are counted with their waiting time, a lower
    /// bound of their latency.
    fn give_up(&mut self, end: u64) {
        let window = self.window;
        let mut waited = Latencies::default();
        let connections = self.connections.iter_mut();
        for connection in connections.filter_map(|place| place.connection.as_mut()) {
            for request in connection.give_up() {
                self.tally.unanswered += 1;
                if window.has(request.intended) {
                    waited.add(end - request.intended);
                }
            }
        }
        for Reverse((_, _, intended, _)) in self.retries.drain() {
            self.tally.unanswered += 1;
            if window.has(intended) {
                waited.add(end - intended);
            }
        }
        self.tally.latencies.add_all(&waited);
        if !self.is_exhausted {
            self.give_up_unsent(end);
        }
    }

    /// Counts requests of the schedule for which no connection was free.
    fn give_up_unsent(&mut self, end: u64) {
        let Some(schedule) = &self.schedule else {
            return;
        };
        while let Some(intended) = schedule.time(self.begun) {
            self.begun += 1;
            self.tally.unsent += 1;
            if self.window.has(intended) {
                self.tally.latencies.add(end - intended);
            }
        }
    }
}
