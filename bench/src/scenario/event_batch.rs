//! Batches of events in each format, as distinct requests, and the sums of their values.
//!
//! An event is (ts, service, duration, is_error): a time, one of ten names, a float4, a boolean.
//! The batch of request `n` with `rows` events has the times `START + n * rows + i` microseconds,
//! so no two events of a load have the same time. The first event's duration encodes the number
//! (modulo [`NUMBERS`]), so the sum of all durations distinguishes a request that was stored twice
//! from one that was lost. All durations are multiples of 1/64, so their sums in float8 are exact.
//! Everything else is equal in all batches, which are encoded once: a request is a copy in which
//! the times and the first duration are overwritten.

use crate::load::{Source, encode};
use arrow_array::types::UInt8Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float32Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt8Array,
};
use lanes_support::error::{Error, Result};
use lanes_wire::{ColumnSource, ItemsSource, ValuesSource};
use serde::Deserialize;
use std::sync::Arc;

/// The names of services. An event's name depends on its place in the batch.
pub const SERVICES: [&str; 10] = [
    "api",
    "auth",
    "billing",
    "cart",
    "checkout",
    "gateway",
    "inventory",
    "payments",
    "search",
    "shipping",
];
/// 2026-01-01 00:00 UTC in microseconds since 1970.
pub const START: i64 = 1_767_225_600_000_000;
/// The start as a literal of SQL.
pub const START_TEXT: &str = "2026-01-01 00:00:00Z";
/// The columns of the table of events.
pub const COLUMNS: &str = "ts timestamptz NOT NULL, service text NOT NULL, duration float4 NOT NULL, is_error bool NOT NULL";
/// First durations encode the request's number modulo this.
const NUMBERS: u64 = 1 << 16;
const MICROSECONDS_A_DAY: i64 = 86_400_000_000;
/// Durations are multiples of one over this number.
const FRACTION: f32 = 64.0;

/// The format of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A FlatBuffer of `lanes-wire`.
    FlatBuffer,
    /// An array of objects.
    Json,
    /// An Arrow IPC stream.
    Arrow,
}

impl Format {
    /// Returns the media type of a request.
    pub fn content_type(&self) -> &'static str {
        match self {
            Format::FlatBuffer => "application/x-flatbuffers",
            Format::Json => "application/json",
            Format::Arrow => "application/vnd.apache.arrow.stream",
        }
    }

    /// Returns the name for people.
    pub fn name(&self) -> &'static str {
        match self {
            Format::FlatBuffer => "FlatBuffer",
            Format::Json => "JSON",
            Format::Arrow => "Arrow",
        }
    }
}

/// Returns an event's duration by its place in the batch. The first event's duration encodes the
/// request instead.
fn duration(place: usize) -> f32 {
    (place * 37 % 1000) as f32 / FRACTION
}

fn first_duration(number: u64) -> f32 {
    (number % NUMBERS) as f32 / FRACTION
}

fn is_error(place: usize) -> bool {
    place % 16 == 3
}

/// Requests that contain batches.
#[derive(Debug, Clone)]
pub struct EventRequests {
    format: Format,
    rows: usize,
    /// A complete request.
    template: Vec<u8>,
    /// The position of each event's time; one position for formats whose times are adjacent.
    times: Vec<usize>,
    /// The position of the first event's duration.
    duration: usize,
}

/// The sums of stored events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sums {
    /// The number of events.
    pub rows: u64,
    /// The sum of the durations.
    pub durations: f64,
    /// The number of events with an error.
    pub errors: u64,
}

impl EventRequests {
    /// Creates requests of `rows` events each for a table, with a level of acknowledgement.
    ///
    /// # Errors
    /// A batch has no rows, or cannot be encoded.
    pub fn new(
        format: Format,
        rows: usize,
        host: &str,
        table: &str,
        level: &str,
    ) -> Result<EventRequests> {
        if rows == 0 {
            return Err(Error::Other("a batch has at least one event".to_owned()));
        }
        let body = match format {
            Format::FlatBuffer => flatbuffer(rows)?,
            Format::Json => json(rows),
            Format::Arrow => {
                arrow(rows).map_err(|error| Error::Other(format!("Arrow: {error}")))?
            }
        };
        let headers = [
            ("content-type", format.content_type()),
            ("x-lanes-ack", level),
        ];
        let template = encode(
            "POST",
            host,
            &format!("/api/v1/events/{table}"),
            &headers,
            &body,
        );
        let unknown = || {
            Error::Other(format!(
                "{}: the batch does not contain the encoded events",
                format.name()
            ))
        };
        let (times, duration) = match format {
            Format::Json => {
                let times: Vec<usize> = places(&template, MARK_JSON.as_bytes()).collect();
                let duration = places(&template, MARK_DURATION_JSON.as_bytes())
                    .next()
                    .ok_or_else(unknown)?;
                (times, duration)
            }
            Format::FlatBuffer | Format::Arrow => {
                let time = places(&template, &MARK_TIME.to_le_bytes())
                    .next()
                    .ok_or_else(unknown)?;
                let duration = places(&template, &MARK_DURATION.to_le_bytes())
                    .next()
                    .ok_or_else(unknown)?;
                (vec![time], duration)
            }
        };
        if format == Format::Json && times.len() != rows {
            return Err(unknown());
        }
        Ok(EventRequests {
            format,
            rows,
            template,
            times,
            duration,
        })
    }

    /// Returns the bytes of one request, head and body.
    pub fn request_bytes(&self) -> usize {
        self.template.len()
    }

    /// Returns the number of events of one request.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the sums of `requests` stored requests whose weights add up to `checksum`.
    pub fn sums(&self, requests: u64, checksum: u64) -> Sums {
        let rest: f64 = (1..self.rows).map(|place| f64::from(duration(place))).sum();
        let errors = (0..self.rows).filter(|place| is_error(*place)).count();
        Sums {
            rows: requests * self.rows as u64,
            durations: requests as f64 * rest + checksum as f64 / f64::from(FRACTION),
            errors: requests * errors as u64,
        }
    }
}

impl Source for EventRequests {
    fn request(&self, number: u64, into: &mut Vec<u8>) -> bool {
        let start = into.len();
        into.extend_from_slice(&self.template);
        let request = &mut into[start..];
        let first_time = (number * self.rows as u64) as i64;
        let duration = first_duration(number);
        match self.format {
            Format::FlatBuffer | Format::Arrow => {
                let times = &mut request[self.times[0]..self.times[0] + 8 * self.rows];
                for (place, time) in times.chunks_exact_mut(8).enumerate() {
                    time.copy_from_slice(&(START + first_time + place as i64).to_le_bytes());
                }
                request[self.duration..self.duration + 4].copy_from_slice(&duration.to_le_bytes());
            }
            Format::Json => {
                for (place, at) in self.times.iter().enumerate() {
                    write_time(
                        &mut request[*at..*at + MARK_JSON.len()],
                        first_time + place as i64,
                    );
                }
                let text = format!("{duration:0width$.6}", width = MARK_DURATION_JSON.len());
                // 0123.5 is not valid JSON, so spaces precede the number instead.
                let digits = text.trim_start_matches('0');
                let digits = if digits.starts_with('.') {
                    &text[text.len() - digits.len() - 1..]
                } else {
                    digits
                };
                let field = &mut request[self.duration..self.duration + MARK_DURATION_JSON.len()];
                field.fill(b' ');
                let from = field.len() - digits.len();
                field[from..].copy_from_slice(digits.as_bytes());
            }
        }
        true
    }

    fn weight(&self, number: u64) -> u64 {
        number % NUMBERS
    }
}

/// A placeholder for the times of a batch until they are overwritten.
const MARK_TIME: i64 = 0x0003_1a2b_3c4d_5e6f;
const MARK_JSON: &str = "9999-99-99T99:99:99.999999Z";
/// A placeholder for the first duration.
const MARK_DURATION: f32 = 123_456.79;
const MARK_DURATION_JSON: &str = "99999.999999";

/// Overwrites a placeholder with a time of the first day, in microseconds after its start.
fn write_time(field: &mut [u8], microseconds: i64) {
    field.copy_from_slice(b"2026-01-01T00:00:00.000000Z");
    let within = microseconds.rem_euclid(MICROSECONDS_A_DAY) as u64;
    let (seconds, fraction) = (within / 1_000_000, within % 1_000_000);
    let mut digits = |from: usize, count: usize, mut number: u64| {
        for place in (from..from + count).rev() {
            field[place] = b'0' + (number % 10) as u8;
            number /= 10;
        }
    };
    digits(11, 2, seconds / 3600);
    digits(14, 2, seconds / 60 % 60);
    digits(17, 2, seconds % 60);
    digits(20, 6, fraction);
}

/// Returns the positions of a text, from left to right.
fn places<'a>(bytes: &'a [u8], wanted: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let matches = bytes.windows(wanted.len()).enumerate();
    matches
        .filter(move |(_, window)| *window == wanted)
        .map(|(place, _)| place)
}

/// Returns times and durations of the template.
fn marked(rows: usize) -> (Vec<i64>, Vec<f32>) {
    let durations = (0..rows).map(|place| {
        if place == 0 {
            MARK_DURATION
        } else {
            duration(place)
        }
    });
    (vec![MARK_TIME; rows], durations.collect())
}

fn flatbuffer(rows: usize) -> Result<Vec<u8>> {
    let (times, durations) = marked(rows);
    let codes: Vec<u32> = (0..rows)
        .map(|place| (place % SERVICES.len()) as u32)
        .collect();
    let item_ends: Vec<u32> = SERVICES
        .iter()
        .scan(0, |end, name| {
            *end += name.len() as u32;
            Some(*end)
        })
        .collect();
    let mut errors = vec![0u8; rows.div_ceil(8)];
    (0..rows)
        .filter(|place| is_error(*place))
        .for_each(|place| errors[place / 8] |= 1 << (place % 8));
    let column = |name, values| ColumnSource {
        name,
        values,
        validity: None,
    };
    let names = SERVICES.concat();
    let service = ItemsSource::Dictionary {
        codes: &codes,
        item_ends: &item_ends,
        item_bytes: names.as_bytes(),
    };
    let columns = [
        column("ts", ValuesSource::Timestamp(&times)),
        column("service", ValuesSource::Text(service)),
        column("duration", ValuesSource::Float32(&durations)),
        column("is_error", ValuesSource::Bool(&errors)),
    ];
    let mut batch = Vec::new();
    lanes_wire::encode(rows, &columns, &mut batch)
        .map_err(|error| Error::Other(format!("FlatBuffer: {error}")))?;
    Ok(batch)
}

fn json(rows: usize) -> Vec<u8> {
    let event = |place: usize| {
        let duration = match place {
            0 => MARK_DURATION_JSON.to_owned(),
            place => duration(place).to_string(),
        };
        format!(
            "{{\"ts\":\"{MARK_JSON}\",\"service\":\"{}\",\"duration\":{duration},\"is_error\":{}}}",
            SERVICES[place % SERVICES.len()],
            is_error(place)
        )
    };
    let events: Vec<String> = (0..rows).map(event).collect();
    format!("[{}]", events.join(",")).into_bytes()
}

fn arrow(rows: usize) -> std::result::Result<Vec<u8>, arrow_schema::ArrowError> {
    let (times, durations) = marked(rows);
    let codes = UInt8Array::from_iter_values((0..rows).map(|place| (place % SERVICES.len()) as u8));
    let services = DictionaryArray::<UInt8Type>::try_new(
        codes,
        Arc::new(StringArray::from_iter_values(SERVICES)),
    )?;
    let columns: [(&str, ArrayRef); 4] = [
        (
            "ts",
            Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC")),
        ),
        ("service", Arc::new(services)),
        ("duration", Arc::new(Float32Array::from(durations))),
        (
            "is_error",
            Arc::new(
                (0..rows)
                    .map(|place| Some(is_error(place)))
                    .collect::<BooleanArray>(),
            ),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns)?;
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), batch.schema_ref())?;
    writer.write(&batch)?;
    writer.finish()?;
    writer.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float32Type, TimestampMicrosecondType};
    use lanes_wire::BatchView;

    /// Returns times and durations of a request's body.
    fn events(format: Format, rows: usize, number: u64) -> (Vec<i64>, Vec<f32>) {
        let requests = EventRequests::new(format, rows, "h", "events", "memory").unwrap();
        let mut bytes = b"before".to_vec();
        assert!(requests.request(number, &mut bytes));
        let head =
            b"before".len() + places(&bytes, b"\r\n\r\n").next().unwrap() + 4 - b"before".len();
        let body = &bytes[head..];
        match format {
            Format::FlatBuffer => {
                let view = BatchView::verify(body).unwrap();
                let (times, durations) = (view.columns()[0].values(), view.columns()[2].values());
                let times = times
                    .arrays()
                    .unwrap()
                    .iter()
                    .map(|bytes| i64::from_le_bytes(*bytes));
                let durations = durations
                    .arrays()
                    .unwrap()
                    .iter()
                    .map(|bytes| f32::from_le_bytes(*bytes));
                (times.collect(), durations.collect())
            }
            Format::Json => {
                let events: Vec<serde_json::Value> = serde_json::from_slice(body).unwrap();
                let time = |event: &serde_json::Value| {
                    let text = event["ts"].as_str().unwrap();
                    let number =
                        |range: std::ops::Range<usize>| text[range].parse::<i64>().unwrap();
                    START
                        + ((number(11..13) * 60 + number(14..16)) * 60 + number(17..19)) * 1_000_000
                        + number(20..26)
                };
                (
                    events.iter().map(time).collect(),
                    events
                        .iter()
                        .map(|event| event["duration"].as_f64().unwrap() as f32)
                        .collect(),
                )
            }
            Format::Arrow => {
                let reader = arrow_ipc::reader::StreamReader::try_new(body, None).unwrap();
                let batch = reader.into_iter().next().unwrap().unwrap();
                (
                    batch
                        .column(0)
                        .as_primitive::<TimestampMicrosecondType>()
                        .values()
                        .to_vec(),
                    batch
                        .column(2)
                        .as_primitive::<Float32Type>()
                        .values()
                        .to_vec(),
                )
            }
        }
    }

    #[test]
    fn all_formats_contain_the_same_events_and_each_request_differs() {
        for (rows, number) in [(1, 0), (100, 1), (1000, 123_456), (9, 3)] {
            let times: Vec<i64> = (0..rows)
                .map(|place| START + (number * rows + place) as i64)
                .collect();
            let mut durations: Vec<f32> = (0..rows as usize).map(duration).collect();
            durations[0] = first_duration(number);
            for format in [Format::FlatBuffer, Format::Json, Format::Arrow] {
                let found = events(format, rows as usize, number);
                assert_eq!(
                    found,
                    (times.clone(), durations.clone()),
                    "{format:?}, {rows} rows"
                );
            }
        }
    }

    #[test]
    fn sums_are_those_of_the_events() {
        let requests = EventRequests::new(Format::FlatBuffer, 100, "h", "events", "wal").unwrap();
        let numbers = [0, 5, 70_000];
        let checksum = numbers.iter().map(|number| requests.weight(*number)).sum();
        let sums = requests.sums(3, checksum);
        let all = numbers
            .iter()
            .flat_map(|number| events(Format::FlatBuffer, 100, *number).1);
        assert_eq!(sums.durations, all.map(f64::from).sum::<f64>());
        assert_eq!((sums.rows, sums.errors), (300, 18 + 3));
    }

    #[test]
    fn a_hundred_events_take_about_1700_bytes() {
        let requests = EventRequests::new(
            Format::FlatBuffer,
            100,
            "127.0.0.1:9201",
            "events",
            "memory",
        )
        .unwrap();
        assert!(
            (1500..2100).contains(&requests.request_bytes()),
            "{}",
            requests.request_bytes()
        );
    }
}
