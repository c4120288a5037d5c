//! The properties of this machine that matter for the figures. A property that cannot be read is
//! left out.

use crate::bandwidth::read_bandwidth;
use serde_json::{Value, json};
use std::path::Path;

/// A data cache of the first core.
#[derive(Debug, Clone, PartialEq)]
pub struct Cache {
    /// The cache's level: 1, 2 or 3.
    pub level: u32,
    /// Its size in bytes.
    pub bytes: usize,
}

/// The machine and its read bandwidth.
#[derive(Debug, Clone)]
pub struct Machine {
    model: String,
    cores: usize,
    vectors: Vec<&'static str>,
    caches: Vec<Cache>,
    memory_bytes: u64,
    kernel: String,
    huge_pages: String,
    /// Runnable processes before the bench started any. Figures of a busy machine are of little
    /// use.
    load_average: String,
    /// The buffer's name, its bytes, and bytes per second.
    bandwidth: Vec<(&'static str, usize, f64)>,
}

const MEBIBYTE: usize = 1 << 20;
/// The size of the last cache of machines whose caches cannot be read.
const LAST_CACHE_BYTES_DEFAULT: usize = 32 * MEBIBYTE;

impl Machine {
    /// Reads the properties and measures the bandwidth, in about a second.
    pub fn examine() -> Machine {
        let processor = read("/proc/cpuinfo");
        let caches = caches();
        let last = caches
            .last()
            .map_or(LAST_CACHE_BYTES_DEFAULT, |cache| cache.bytes);
        let dram = (8 * last).clamp(256 * MEBIBYTE, 1024 * MEBIBYTE);
        let sizes = [("half of the last cache", last / 2), ("DRAM", dram)];
        Machine {
            model: field(&processor, "model name")
                .unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            vectors: vectors(&field(&processor, "flags").unwrap_or_default()),
            caches,
            memory_bytes: field(&read("/proc/meminfo"), "MemTotal")
                .and_then(|text| text.trim_end_matches(" kB").trim().parse::<u64>().ok())
                .unwrap_or_default()
                * 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            huge_pages: read("/sys/kernel/mm/transparent_hugepage/enabled")
                .trim()
                .to_owned(),
            load_average: read("/proc/loadavg")
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_owned(),
            bandwidth: sizes
                .map(|(what, bytes)| (what, bytes, read_bandwidth(bytes)))
                .to_vec(),
        }
    }

    /// Returns the number of usable cores.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Formats the machine for people.
    pub fn describe(&self) -> String {
        let caches: Vec<String> = self
            .caches
            .iter()
            .map(|cache| format!("L{} {}", cache.level, size(cache.bytes)))
            .collect();
        let mut text = format!(
            "{}, {} cores, {}, {}, {} RAM\nLinux {}, transparent huge pages {}, load average at the start {}\n",
            self.model,
            self.cores,
            self.vectors.join(" "),
            caches.join(", "),
            size(self.memory_bytes as usize),
            self.kernel,
            self.huge_pages,
            self.load_average
        );
        for (what, bytes, speed) in &self.bandwidth {
            text.push_str(&format!(
                "read bandwidth, one core, {what} ({}): {:.1} GB/s\n",
                size(*bytes),
                speed / 1e9
            ));
        }
        text
    }

    /// Formats the machine for programs.
    pub fn to_json(&self) -> Value {
        let caches: Vec<Value> = self
            .caches
            .iter()
            .map(|cache| json!({"level": cache.level, "bytes": cache.bytes}))
            .collect();
        let bandwidth: Vec<Value> = self
            .bandwidth
            .iter()
            .map(|(what, bytes, speed)| json!({"what": what, "buffer_bytes": bytes, "bytes_per_second": speed}))
            .collect();
        json!({
            "model": self.model, "cores": self.cores, "vectors": self.vectors, "caches": caches, "memory_bytes": self.memory_bytes,
            "kernel": self.kernel, "transparent_huge_pages": self.huge_pages, "load_average": self.load_average, "read_bandwidth": bandwidth,
        })
    }
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Returns the value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn vectors(flags: &str) -> Vec<&'static str> {
    let known = ["sse4_2", "avx2", "avx512f", "avx512_vbmi2"];
    known
        .into_iter()
        .filter(|name| flags.split_whitespace().any(|flag| flag == *name))
        .collect()
}

fn caches() -> Vec<Cache> {
    let folder = Path::new("/sys/devices/system/cpu/cpu0/cache");
    let mut caches: Vec<Cache> = (0..8)
        .filter_map(|index| {
            let file = |name: &str| {
                read(folder.join(format!("index{index}")).join(name))
                    .trim()
                    .to_owned()
            };
            if file("type") == "Instruction" {
                return None;
            }
            Some(Cache {
                level: file("level").parse().ok()?,
                bytes: cache_bytes(&file("size"))?,
            })
        })
        .collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

/// Converts `32K` or `32M` to bytes.
fn cache_bytes(text: &str) -> Option<usize> {
    let (number, unit) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit())?);
    let unit = match unit {
        "K" => 1 << 10,
        "M" => MEBIBYTE,
        _ => return None,
    };
    Some(number.parse::<usize>().ok()? * unit)
}

fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 30 => format!("{:.0} GiB", bytes as f64 / (1u64 << 30) as f64),
        bytes if bytes >= MEBIBYTE => format!("{} MiB", bytes / MEBIBYTE),
        bytes => format!("{} KiB", bytes >> 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_formats_are_parsed() {
        assert_eq!(cache_bytes("32768K"), Some(32 * MEBIBYTE));
        assert_eq!(
            (cache_bytes("8M"), cache_bytes(""), cache_bytes("7X")),
            (Some(8 * MEBIBYTE), None, None)
        );
        let text = "processor\t: 0\nmodel name\t: A CPU\nflags\t\t: sse4_2 avx2 avx512fp16\n";
        assert_eq!(field(text, "model name"), Some("A CPU".to_owned()));
        assert_eq!(vectors(&field(text, "flags").unwrap()), ["sse4_2", "avx2"]);
        assert_eq!(field(text, "nothing"), None);
        assert_eq!(
            (size(512 << 10), size(32 << 20), size(24 << 30)),
            ("512 KiB".into(), "32 MiB".into(), "24 GiB".into())
        );
    }
}
