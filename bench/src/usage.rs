//! CPU and memory of process trees, from `/proc`. The figures of a system include every one of its
//! processes.
//!
//! A parent's figures include its children that have ended and were waited for. The CPU time of a
//! tree is the sum, over the running processes, of their own time and that of such children;
//! nothing is lost when PostgreSQL ends a backend between two readings. Memory is the proportional
//! set size, which counts a shared page once however many processes map it. Resident sizes of
//! PostgreSQL's processes would count its shared memory several times.

use std::collections::BTreeMap;

/// The kernel's clock ticks per second in `/proc/<pid>/stat`, a constant of its interface.
const TICKS_PER_SECOND: f64 = 100.0;

/// The usage of a tree so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// CPU seconds, user and system.
    pub cpu_seconds: f64,
    /// The proportional set size in bytes, or the resident size if the kernel does not report it.
    pub memory_bytes: u64,
    /// The number of processes.
    pub processes: usize,
}

/// The processes of a system, given by their roots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// The system's name.
    pub name: String,
    /// The ids of the root processes. Their descendants belong to the system.
    pub roots: Vec<u32>,
}

impl Tree {
    /// Creates a tree with these roots.
    pub fn new(name: &str, roots: impl IntoIterator<Item = u32>) -> Tree {
        Tree {
            name: name.to_owned(),
            roots: roots.into_iter().collect(),
        }
    }

    /// Reads the usage of all processes. A process that has ended counts as nothing.
    pub fn usage(&self) -> Usage {
        self.look(memory_bytes)
    }

    /// Returns CPU seconds without reading memory, which takes milliseconds for large processes.
    pub fn cpu_seconds(&self) -> f64 {
        self.look(|_| 0).cpu_seconds
    }

    /// Returns CPU seconds by kind of [`Work`]. They add up to [`Tree::cpu_seconds`].
    pub fn cpu_by_work(&self) -> BTreeMap<Work, f64> {
        let processes = processes();
        let mut seconds = BTreeMap::new();
        for id in descendants(&processes, &self.roots) {
            let command = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            let work = work(&String::from_utf8_lossy(&command));
            *seconds.entry(work).or_default() += processes[&id].ticks as f64 / TICKS_PER_SECOND;
        }
        seconds
    }

    /// Reads the CPU time of each process to the nanosecond: see [`Clock`].
    pub fn clock(&self) -> Clock {
        let ids = descendants(&processes(), &self.roots);
        Clock(ids.into_iter().map(|id| (id, nanoseconds(id))).collect())
    }

    fn look(&self, memory_bytes: impl Fn(u32) -> u64) -> Usage {
        let processes = processes();
        let mut usage = Usage::default();
        for id in descendants(&processes, &self.roots) {
            usage.cpu_seconds += processes[&id].ticks as f64 / TICKS_PER_SECOND;
            usage.memory_bytes += memory_bytes(id);
            usage.processes += 1;
        }
        usage
    }
}

/// The kind of work of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// A process that is not PostgreSQL's.
    Gateway,
    /// A process that serves a session of PostgreSQL.
    Sessions,
    /// A process that seals, or the postmaster, which inherits the time of workers that have ended,
    /// nearly all of which sealed.
    Sealing,
    /// Another process of PostgreSQL: WAL writer, checkpointer, autovacuum.
    Server,
}

impl Work {
    /// Returns the name for people.
    pub fn name(self) -> &'static str {
        match self {
            Work::Gateway => "gateway",
            Work::Sessions => "sessions",
            Work::Sealing => "sealing",
            Work::Server => "PostgreSQL's own",
        }
    }
}

/// Returns the kind of work of a process by its command line, which PostgreSQL's processes
/// overwrite with their titles.
fn work(command: &str) -> Work {
    const OWN: [&str; 8] = [
        "archiver",
        "autovacuum",
        "background writer",
        "checkpointer",
        "logger",
        "logical replication",
        "startup",
        "walwriter",
    ];
    let program = command.split('\0').next().unwrap_or_default();
    match command.strip_prefix("postgres: ") {
        Some(title) if title.starts_with("lanes seal") => Work::Sealing,
        Some(title) if OWN.iter().any(|own| title.starts_with(own)) => Work::Server,
        Some(_) => Work::Sessions,
        None if program.ends_with("/postgres") => Work::Sealing,
        None => Work::Gateway,
    }
}

/// The CPU time of each process of a tree, from the scheduler's count. It suits work of
/// milliseconds, which the clock ticks of [`Usage`] cannot resolve. The time of a process that ends
/// between two readings is lost, so none should.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clock(BTreeMap<u32, u64>);

impl Clock {
    /// Returns the CPU seconds of the processes of this reading since an earlier one.
    pub fn seconds_since(&self, earlier: &Clock) -> f64 {
        let used = self.0.iter().map(|(id, now)| {
            let before = earlier.0.get(id).copied().unwrap_or_default();
            now.saturating_sub(before)
        });
        used.sum::<u64>() as f64 / 1e9
    }
}

/// Returns the CPU nanoseconds of all threads of a process, or 0 once it has ended.
fn nanoseconds(id: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{id}/task"));
    let of_thread = |thread: std::fs::DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    threads
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(of_thread)
        .sum()
}

/// The time of all processors in clock ticks, and the part that the host of a virtual machine used
/// for others (steal). A measurement with much steal says little about the system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Processors {
    all: u64,
    stolen: u64,
}

impl Processors {
    /// Reads the times. They are zero if the kernel does not report them.
    pub fn now() -> Processors {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        Processors::read(&text).unwrap_or_default()
    }

    /// Returns the share of the time since an earlier reading that was stolen.
    pub fn stolen_since(&self, earlier: &Processors) -> f64 {
        let all = self.all.saturating_sub(earlier.all).max(1);
        self.stolen.saturating_sub(earlier.stolen) as f64 / all as f64
    }

    /// Parses the first line: user, nice, system, idle, iowait, irq, softirq, steal. Guests' time
    /// is contained in the first two.
    fn read(text: &str) -> Option<Processors> {
        let fields = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks = fields.split_whitespace().take(8).map(str::parse);
        let ticks = ticks.collect::<Result<Vec<u64>, _>>().ok()?;
        Some(Processors {
            all: ticks.iter().sum(),
            stolen: *ticks.get(7)?,
        })
    }
}

/// The content of `/proc/<pid>/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    parent: u32,
    /// The process's own time and that of the children it has waited for.
    ticks: u64,
}

fn processes() -> BTreeMap<u32, Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            let text = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            Some((id, stat(&text)?))
        })
        .collect()
}

/// Parses a line of `stat`. The name in parentheses may contain anything, so fields count from the
/// last parenthesis.
fn stat(text: &str) -> Option<Process> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let ticks = (11..=14).map(number).sum::<Option<u64>>()?;
    Some(Process {
        parent: u32::try_from(number(1)?).ok()?,
        ticks,
    })
}

/// Returns the running roots and all their descendants.
fn descendants(processes: &BTreeMap<u32, Process>, roots: &[u32]) -> Vec<u32> {
    let belongs = |id: &u32| {
        let mut next = *id;
        // No chain of parents is longer than the number of processes.
        for _ in 0..=processes.len() {
            if roots.contains(&next) {
                return true;
            }
            match processes.get(&next) {
                Some(process) => next = process.parent,
                None => return false,
            }
        }
        false
    };
    processes.keys().copied().filter(belongs).collect()
}

/// Returns the greatest resident size of a process, in bytes.
pub fn peak_bytes(id: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn memory_bytes(id: u32) -> u64 {
    let kilobytes = |file: &str, name: &str| -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{id}/{file}")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches("kB").trim().parse().ok()
    };
    let size = kilobytes("smaps_rollup", "Pss:").or_else(|| kilobytes("status", "VmRSS:"));
    size.unwrap_or_default() * 1024
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn process_names_may_contain_spaces_and_parentheses() {
        let text = "7 (a) b (c)) S 3 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 55";
        assert_eq!(
            stat(text),
            Some(Process {
                parent: 3,
                ticks: 100
            })
        );
        assert_eq!(stat("7 (x) S 3"), None);
    }

    #[test]
    fn stolen_time_is_a_share_of_all_time() {
        let read = |line: &str| Processors::read(line).unwrap();
        let before = read("cpu  100 0 50 800 10 0 0 40 7 0\ncpu0 1 2 3 4 5 6 7 8");
        let after = read("cpu  130 0 60 820 10 0 0 80 9 0");
        assert_eq!(after.stolen_since(&before), 0.4);
        assert_eq!(before.stolen_since(&before), 0.0);
        assert_eq!(Processors::read("cpu  1 2 3"), None);
        assert!(Processors::now().all > 0);
    }

    #[test]
    fn only_descendants_are_found() {
        let process = |parent| Process { parent, ticks: 0 };
        let processes = BTreeMap::from([
            (1, process(0)),
            (5, process(1)),
            (6, process(5)),
            (7, process(6)),
            (8, process(1)),
        ]);
        assert_eq!(descendants(&processes, &[5]), [5, 6, 7]);
        assert_eq!(descendants(&processes, &[9]), [] as [u32; 0]);
    }

    #[test]
    fn the_kind_of_work_follows_from_the_title() {
        for (command, does) in [
            (
                "/usr/lib/postgresql/15/bin/postgres\0-D\0data",
                Work::Sealing,
            ),
            ("postgres: lanes sealer lanes\0", Work::Sealing),
            ("postgres: lanes sealing launcher ", Work::Sealing),
            (
                "postgres: lanes_gateway lanes 127.0.0.1(4242) idle",
                Work::Sessions,
            ),
            ("postgres: checkpointer ", Work::Server),
            (
                "target/release/lanes-gateway\0--config\0postgres",
                Work::Gateway,
            ),
        ] {
            assert_eq!(work(command), does, "{command}");
        }
        let this = Tree::new("this", [std::process::id()]);
        assert_eq!(
            this.cpu_by_work().into_keys().collect::<Vec<_>>(),
            [Work::Gateway]
        );
    }

    #[test]
    fn a_clock_counts_the_cpu_time_between_two_readings() {
        let clock = |looks: &[(u32, u64)]| Clock(looks.iter().copied().collect());
        let before = clock(&[(1, 1_000_000_000), (2, 5)]);
        let after = clock(&[(1, 1_500_000_000), (3, 250_000_000)]);
        assert_eq!(after.seconds_since(&before), 0.75);
        let this = Tree::new("this", [std::process::id()]);
        let before = this.clock();
        let mut sum = 0u64;
        for number in 0..3_000_000u64 {
            sum = std::hint::black_box(sum.wrapping_mul(31) ^ number);
        }
        assert!(this.clock().seconds_since(&before) > 0.0, "{sum}");
    }

    #[test]
    fn a_childs_cpu_time_counts_while_it_runs_and_afterwards() {
        // The shell waits for a child that works, and then runs until its standard input closes.
        let mut shell = Command::new("sh")
            .args([
                "-c",
                "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; echo done; read line",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0; 4];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut line).unwrap();
        let usage = Tree::new("shell", [shell.id()]).usage();
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(usage.processes, 1);
        assert!(
            usage.cpu_seconds > 0.0 && usage.memory_bytes > 0,
            "{usage:?}"
        );
        assert_eq!(Tree::new("shell", [shell.id()]).usage(), Usage::default());
    }
}
