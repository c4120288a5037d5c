//! Segments in object storage: how queries get their images back.
//!
//! | module | contents |
//! |---|---|
//! | [`key`] | the keys of segments in object storage |
//! | [`scope`] | what the keys of this database begin with |
//! | [`recall`] | the image of a segment, for a backend that needs it |
//! | [`cold_cache`] | images that came back, as files |
//! | [`requests`] | the segments that backends wait for, in shared memory |
//! | [`expected`] | the check that an image is the right one |
//! | [`data_directory`] | what distinguishes a data directory from a copy of it |
//!
//! ```text
//! out   offload_list ──► segment_image ──► the gateway puts it and waits until it is durable ──► offload_commit
//! back  scan ──► recall ──► cold_cache: is it there? ──► requests: wait
//!                              ▲                            │
//!                              └── recall_supply ◄── gateway ◄── recall_next
//! log   local_rows ──► the gateway deletes entries of its log whose rows are not named
//! ```
//! The SQL functions are in [`crate::offload`].
//!
//! An object is the image of a segment as it was in data pages. No other segment ever has its
//! [`key`]. So an object is put once, or again with the same bytes, and is never changed. A reader
//! finds under a key the right object or none.
//!
//! A gateway is an ordinary client. It asks for parts that are due and for segments that are wanted;
//! PostgreSQL never calls it. A backend that wants a segment posts a request in shared memory and
//! sleeps until it finds the image in the *cold cache*: files beside those of sorts and hashes, which
//! base backups leave out and a restart removes.
//!
//! Failures, and their effects:
//! - no gateway, or one that cannot read its store: the query fails after `lanes.recall_timeout`,
//!   with an error that says what to do; local rows can still be read.
//! - a gateway ends with requests taken: the requests are offered to the next gateway.
//! - a backend ends while it waits: its request expires.
//! - an image is damaged: it is refused when it is supplied, by its length and checksum, and again
//!   when it is read.
//! - an image was changed on its way or in the store: it is refused when it is supplied, by the
//!   digest that its part keeps ([`expected`]); the waiting query gets an error.
//! - a crash after an object was put, before its part was marked: the part is listed again, and put
//!   again under the same key.
//! - a crash after its part was marked: the next VACUUM frees the blocks of the local part.

pub mod cold_cache;
pub mod data_directory;
pub mod expected;
pub mod key;
pub mod recall;
pub mod requests;
pub mod scope;
