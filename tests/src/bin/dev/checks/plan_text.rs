//! The text of plans as PostgreSQL 15 prints it, so that one expected output serves all versions.
//!
//! pg_regress starts psql through `dev plan-text psql …`, which changes lines of plans in psql's
//! output and nothing else:
//!
//! | newer versions print | here |
//! |---|---|
//! | `rows=13.00 loops=1` | `rows=13 loops=1` |
//! | lines `Buffers:`, `Planning:`, `Window:`, `Disabled:` | nothing |
//! | `(ANY (x = (hashed SubPlan 1).col1))` | `(hashed SubPlan 1)` |
//!
//! A plan is a table of one column:
//!
//! ```text
//!     QUERY PLAN
//! ------------------
//!  Seq Scan on other
//! (1 row)
//! ```

use lanes_support::error::{Error, Result};
use std::io::{Read, Write};
use std::process::{Command, ExitCode};

/// Runs psql with our input, and prints its output and errors with the plans of PostgreSQL 15.
pub fn run(words: &[String]) -> Result<ExitCode> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(Error::Other("`plan-text` takes a command".to_owned()));
    };
    let pipe_error = |source| Error::Spawn {
        program: program.clone(),
        source,
    };
    // One pipe keeps errors in their place.
    let (mut reader, writer) = std::io::pipe().map_err(pipe_error)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdout(writer.try_clone().map_err(pipe_error)?)
        .stderr(writer);
    let mut child = command.spawn().map_err(pipe_error)?;
    // The pipe ends with the last writer, and the command holds two of them.
    drop(command);
    let mut output = Vec::new();
    reader.read_to_end(&mut output).map_err(pipe_error)?;
    let output = match String::from_utf8(output) {
        Ok(text) => with_plans_of_15(&text).into_bytes(),
        Err(error) => error.into_bytes(),
    };
    std::io::stdout().write_all(&output).map_err(pipe_error)?;
    let status = child.wait().map_err(pipe_error)?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(u8::MAX)))
}

/// Returns the output with all plans changed.
fn with_plans_of_15(output: &str) -> String {
    let lines: Vec<&str> = output.split_inclusive('\n').collect();
    let (mut changed, mut place) = (String::with_capacity(output.len()), 0);
    while place < lines.len() {
        let taken = table(&lines[place..]).and_then(|(rows, length)| {
            let header = lines[place].trim();
            Some((plan_of_15(header, &rows)?, length))
        });
        match taken {
            Some((text, length)) => {
                changed.push_str(&text);
                place += length;
            }
            None => {
                changed.push_str(lines[place]);
                place += 1;
            }
        }
    }
    changed
}

/// Returns the rows of a table of one column that begins with the first line, and the number of its
/// lines.
fn table<'a>(lines: &[&'a str]) -> Option<(Vec<&'a str>, usize)> {
    let [_, ruler, rest @ ..] = lines else {
        return None;
    };
    let ruler = ruler.trim_end();
    if ruler.is_empty() || ruler.bytes().any(|byte| byte != b'-') {
        return None;
    }
    let is_end = |line: &&str| line.starts_with('(') && line.trim_end().ends_with(')');
    let count = rest.iter().position(is_end)?;
    let rows = rest[..count].iter();
    let rows: Option<Vec<&str>> = rows
        .map(|row| Some(row.strip_prefix(' ')?.trim_end_matches('\n')))
        .collect();
    Some((rows?, count + 3))
}

/// Returns a table with the plan as PostgreSQL 15 prints it; `None` if that has the same rows.
fn plan_of_15(header: &str, rows: &[&str]) -> Option<String> {
    let kept: Vec<String> = rows.iter().filter_map(|row| row_of_15(row)).collect();
    if kept == rows {
        return None;
    }
    let widest = kept.iter().map(|row| row.chars().count()).max();
    let width = widest.unwrap_or(0).max(header.chars().count());
    let space = width - header.chars().count();
    let (before, after) = (space / 2, space - space / 2);
    let mut text = format!(" {:before$}{header}{:after$} \n", "", "");
    text.push_str(&format!("{}\n", "-".repeat(width + 2)));
    for row in &kept {
        text.push_str(&format!(" {row}\n"));
    }
    let noun = if kept.len() == 1 { "row" } else { "rows" };
    text.push_str(&format!("({} {noun})\n", kept.len()));
    Some(text)
}

/// Returns a line of a plan, if PostgreSQL 15 prints it.
fn row_of_15(row: &str) -> Option<String> {
    let text = row.trim_start();
    let is_new = ["Buffers: ", "Window: ", "Disabled: "]
        .iter()
        .any(|label| text.starts_with(label));
    if is_new || text == "Planning:" {
        return None;
    }
    Some(without_any(&with_whole_rows(row)))
}

/// Rounds the number in `rows=13.00 loops=1`.
fn with_whole_rows(row: &str) -> String {
    let whole = || {
        let (before, rest) = row.split_once("rows=")?;
        let (number, after) = rest.split_once(" loops=")?;
        let number: f64 = number.contains('.').then(|| number.parse().ok())??;
        Some(format!("{before}rows={number:.0} loops={after}"))
    };
    whole().unwrap_or_else(|| row.to_owned())
}

/// Replaces `(ANY (x = (hashed SubPlan 1).col1))` by `(hashed SubPlan 1)`.
fn without_any(row: &str) -> String {
    let shorter = || {
        let (before, rest) = row.split_once("(ANY (")?;
        let (_, rest) = rest.split_once("(hashed SubPlan ")?;
        let (number, after) = rest.split_once(").col1))")?;
        Some(format!("{before}(hashed SubPlan {number}){after}"))
    };
    shorter().unwrap_or_else(|| row.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_of_a_newer_version_is_printed_as_by_15() {
        let newer = "EXPLAIN SELECT 1;
                       QUERY PLAN                       
--------------------------------------------------------
 Custom Scan (LanesScan) on l (actual rows=3.00 loops=1)
   Filter: (NOT (ANY (l.tag = (hashed SubPlan 1).col1)))
   Buffers: shared hit=4
 Planning:
   Buffers: shared hit=8
(5 rows)

SELECT 2;
";
        let older = "EXPLAIN SELECT 1;
                      QUERY PLAN                      
------------------------------------------------------
 Custom Scan (LanesScan) on l (actual rows=3 loops=1)
   Filter: (NOT (hashed SubPlan 1))
(2 rows)

SELECT 2;
";
        assert_eq!(with_plans_of_15(newer), older);
        assert_eq!(with_plans_of_15(older), older);
    }

    #[test]
    fn other_output_is_not_changed() {
        let output = " a | b \n---+---\n 1 | Buffers: x\n(1 row)\n\n n \n---\n  5\n(1 row)\n\n x \n---\n(0 rows)\n\nERROR:  rows=1.00\n";
        assert_eq!(with_plans_of_15(output), output);
        let cut = " QUERY PLAN \n------------\n Result";
        assert_eq!(with_plans_of_15(cut), cut);
    }
}
