//! The messages of a stream, checked before the library reads them.
//!
//! | bytes | meaning |
//! |---|---|
//! | 4 | `FF FF FF FF`; streams older than Arrow 0.15 lack it |
//! | 4 | length of the metadata, `i32`; 0 ends the stream |
//! | that many | metadata: a FlatBuffers table `Message`, padded |
//! | `bodyLength` | buffers of a record batch |

use arrow_ipc::{CompressionType, Endianness, MessageHeader, RecordBatch, root_as_message};

use crate::events::format::Malformed;

const CONTINUATION: [u8; 4] = [0xff; 4];
/// How a file of the same name of format begins.
const FILE_MAGIC: &[u8] = b"ARROW1";

/// Checks every message: it lies within the body; its buffers lie within it, and together are no longer than it; record batches have
/// at most `rows_max` rows together, and no column of any other length; nothing is compressed, and nothing follows the end.
pub(super) fn check(body: &[u8], rows_max: usize) -> Result<(), Malformed> {
    if body.starts_with(FILE_MAGIC) {
        return Err(Malformed::Stream {
            problem: "it is an Arrow file; send the stream format".to_owned(),
        });
    }
    let mut rest = body;
    let mut message = 0;
    let mut rows = 0;
    while !rest.is_empty() {
        message += 1;
        let broken = |problem: String| Malformed::Message { message, problem };
        let mut length = take::<4>(&mut rest).map_err(broken)?;
        if length == CONTINUATION {
            length = take::<4>(&mut rest).map_err(broken)?;
        }
        let length = i32::from_le_bytes(length);
        if length == 0 {
            if rest.is_empty() {
                break;
            }
            let problem = format!("{} bytes follow the end of the stream", rest.len());
            return Err(broken(problem));
        }
        let metadata = part(&mut rest, i64::from(length), "metadata").map_err(broken)?;
        let header = root_as_message(metadata)
            .map_err(|error| broken(format!("metadata: {error}").replace('\n', " ")))?;
        let content = part(&mut rest, header.bodyLength(), "body").map_err(broken)?;
        match header.header_type() {
            MessageHeader::Schema if message == 1 => {
                let schema = header
                    .header_as_schema()
                    .ok_or_else(|| broken("no schema".to_owned()))?;
                if schema.endianness() != Endianness::Little {
                    return Err(broken("values are big-endian".to_owned()));
                }
            }
            _ if message == 1 => {
                return Err(broken("the first message is not a schema".to_owned()));
            }
            MessageHeader::RecordBatch => {
                let batch = header
                    .header_as_record_batch()
                    .ok_or_else(|| broken("no record batch".to_owned()))?;
                rows += check_batch(&batch, content, message)?;
                if rows > rows_max {
                    return Err(Malformed::TooManyRows { rows_max });
                }
            }
            MessageHeader::DictionaryBatch => {
                let dictionary = header
                    .header_as_dictionary_batch()
                    .ok_or_else(|| broken("no dictionary batch".to_owned()))?;
                // Each delta would copy the dictionary so far.
                if dictionary.isDelta() {
                    return Err(broken(
                        "delta dictionaries are not supported; send the whole dictionary"
                            .to_owned(),
                    ));
                }
                let batch = dictionary
                    .data()
                    .ok_or_else(|| broken("no dictionary".to_owned()))?;
                let items = check_batch(&batch, content, message)?;
                // Each item has an offset or a view.
                if items > content.len() {
                    return Err(broken(format!("{items} items in {} bytes", content.len())));
                }
            }
            other => {
                let name = other.variant_name().unwrap_or("unknown");
                return Err(broken(format!("a message of type {name} is not expected")));
            }
        }
    }
    match message {
        0 => Err(Malformed::Stream {
            problem: "it is empty".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Gives the rows.
fn check_batch(
    batch: &RecordBatch<'_>,
    content: &[u8],
    message: usize,
) -> Result<usize, Malformed> {
    let broken = |problem: String| Malformed::Message { message, problem };
    if let Some(compression) = batch.compression() {
        let codec = match compression.codec() {
            CompressionType::LZ4_FRAME => "lz4",
            CompressionType::ZSTD => "zstd",
            _ => "unknown codec",
        };
        return Err(Malformed::Compressed { message, codec });
    }
    let rows =
        usize::try_from(batch.length()).map_err(|_| broken(format!("{} rows", batch.length())))?;
    for node in batch.nodes().iter().flatten() {
        if node.length() != batch.length() {
            let problem = format!("a column has {} rows of {rows}", node.length());
            return Err(broken(problem));
        }
        if !(0..=node.length()).contains(&node.null_count()) {
            let problem = format!("a column has {} NULLs in {rows} rows", node.null_count());
            return Err(broken(problem));
        }
    }
    let mut bytes_left = content.len() as i64;
    for buffer in batch.buffers().iter().flatten() {
        let (offset, length) = (buffer.offset(), buffer.length());
        let is_inside = offset >= 0
            && length >= 0
            && offset
                .checked_add(length)
                .is_some_and(|end| end <= content.len() as i64);
        if !is_inside {
            let problem = format!(
                "a buffer of {length} bytes at {offset} leaves the body of {} bytes",
                content.len()
            );
            return Err(broken(problem));
        }
        // Shared buffers would let a short body say much.
        bytes_left -= length;
        if bytes_left < 0 {
            return Err(broken(
                "buffers overlap: together they are longer than the body".to_owned(),
            ));
        }
    }
    Ok(rows)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], String> {
    match rest.split_first_chunk() {
        Some((taken, after)) => {
            *rest = after;
            Ok(*taken)
        }
        None => Err(format!("cut off: {} bytes are left", rest.len())),
    }
}

fn part<'b>(rest: &mut &'b [u8], length: i64, noun: &str) -> Result<&'b [u8], String> {
    let taken = usize::try_from(length)
        .ok()
        .and_then(|length| rest.split_at_checked(length));
    match taken {
        Some((taken, after)) => {
            *rest = after;
            Ok(taken)
        }
        None => Err(format!(
            "{noun} of {length} bytes where {} are left",
            rest.len()
        )),
    }
}
