//! The answer of a statement as a client sees it, and the comparison of two answers.

use super::generate::Statement;
use postgres::error::SqlState;
use postgres::{Client, SimpleQueryMessage};
use std::io::Read;

/// The number of rows of a difference in a message.
const SHOWN_ROWS: usize = 20;

/// The answer of a statement as a client sees it: sorted lines, or an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Rows as text, and the counts of command tags, sorted.
    Lines(Vec<String>),
    Bytes(Vec<u8>),
    Error(String),
    /// An error of lanes alone: the statement uses row numbers from before the table was sealed.
    Stale,
    /// The connection to the server is lost.
    Lost(String),
}

/// Which of several errors a statement meets first depends on the order of rows. Here one error is
/// a row that another transaction has locked or changed.
pub fn both_serve(heap: &Answer, lanes: &Answer) -> bool {
    let concurrent = |answer: &Answer| matches!(answer, Answer::Error(state) if state == SqlState::LOCK_NOT_AVAILABLE.code() || state == SqlState::T_R_SERIALIZATION_FAILURE.code());
    let error = |answer: &Answer| matches!(answer, Answer::Error(_));
    error(heap) && error(lanes) && (concurrent(heap) || concurrent(lanes))
}

fn is_stale(error: &postgres::Error) -> bool {
    let message = error.as_db_error().map_or("", |error| error.message());
    message.starts_with("could not go by the row's number")
}

/// Runs a statement whose text `place` first transforms.
pub fn answer(
    client: &mut Client,
    statement: &Statement,
    place: impl Fn(&str) -> String,
) -> Answer {
    let outcome = match statement {
        Statement::Sql(sql) | Statement::CopyIn(sql, _) => {
            client.simple_query(&place(sql)).map(|messages| {
                let mut lines: Vec<String> = messages.iter().filter_map(line).collect();
                lines.sort();
                Answer::Lines(lines)
            })
        }
        Statement::CopyOut(sql) => copy_out(client, sql),
    };
    outcome.unwrap_or_else(|error| match error.code() {
        Some(_) if is_stale(&error) => Answer::Stale,
        Some(state) => Answer::Error(state.code().to_owned()),
        None => Answer::Lost(format!("{error:?}")),
    })
}

fn line(message: &SimpleQueryMessage) -> Option<String> {
    match message {
        SimpleQueryMessage::Row(row) => {
            let fields: Vec<&str> = (0..row.len())
                .map(|column| row.get(column).unwrap_or("<NULL>"))
                .collect();
            Some(fields.join("|"))
        }
        SimpleQueryMessage::CommandComplete(rows) => Some(format!("<{rows} rows>")),
        _ => None,
    }
}

fn copy_out(client: &mut Client, sql: &str) -> Result<Answer, postgres::Error> {
    let mut bytes = Vec::new();
    let mut reader = client.copy_out(sql)?;
    match reader.read_to_end(&mut bytes) {
        Ok(_) => Ok(Answer::Bytes(bytes)),
        Err(error) => Err(inner(error)),
    }
}

/// Returns the PostgreSQL error in an I/O error of COPY.
fn inner(error: std::io::Error) -> postgres::Error {
    match error
        .into_inner()
        .map(|inner| inner.downcast::<postgres::Error>())
    {
        Some(Ok(error)) => *error,
        other => panic!("COPY failed without an error of PostgreSQL: {other:?}"),
    }
}

/// Returns the lines that only one of the answers has.
pub fn difference(heap: &Answer, lanes: &Answer) -> String {
    let (Answer::Lines(heap), Answer::Lines(lanes)) = (heap, lanes) else {
        return format!("heap:  {}\nlanes: {}", brief(heap), brief(lanes));
    };
    let only = |of: &[String], not_in: &[String]| -> String {
        let mut rest = not_in.to_vec();
        let mut only = of.to_vec();
        only.retain(|line| match rest.iter().position(|other| other == line) {
            Some(place) => {
                rest.swap_remove(place);
                false
            }
            None => true,
        });
        only.truncate(SHOWN_ROWS);
        only.join("\n  ")
    };
    format!(
        "only heap:\n  {}\nonly lanes:\n  {}",
        only(heap, lanes),
        only(lanes, heap)
    )
}

fn brief(answer: &Answer) -> String {
    match answer {
        Answer::Lines(lines) => format!(
            "{} lines: {:?}",
            lines.len(),
            &lines[..lines.len().min(SHOWN_ROWS)]
        ),
        Answer::Bytes(bytes) => format!(
            "{} bytes: {}",
            bytes.len(),
            String::from_utf8_lossy(&bytes[..bytes.len().min(2000)])
        ),
        Answer::Error(state) => format!("error {state}"),
        Answer::Stale => "error: sealed since a scan began".to_owned(),
        Answer::Lost(reason) => format!("connection lost: {reason}"),
    }
}
