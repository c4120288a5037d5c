//! The state of object storage in this gateway, for people and metrics.

/// A state. [`ObjectState::name`] is its label in metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObjectState {
    /// Object storage is not configured.
    #[default]
    Off,
    /// The database's extension lacks the functions, or the database is unavailable.
    Unsupported,
    /// The store is being opened.
    Opening,
    /// The store is open, and another gateway still has the claim. Segments are recalled.
    Waiting,
    /// Segments are offloaded, recalled and collected.
    Working,
    /// Another gateway has taken over.
    Fenced,
    /// The store belongs to another database. Segments are recalled, and nothing is written.
    Foreign,
}

impl ObjectState {
    /// All states.
    pub const ALL: [Self; 7] = [
        Self::Off,
        Self::Unsupported,
        Self::Opening,
        Self::Waiting,
        Self::Working,
        Self::Fenced,
        Self::Foreign,
    ];

    /// The state as one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Unsupported => "unsupported",
            Self::Opening => "opening",
            Self::Waiting => "waiting",
            Self::Working => "working",
            Self::Fenced => "fenced",
            Self::Foreign => "foreign",
        }
    }

    /// The meaning of the state for an operator.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::Off => "objects.url is not set",
            Self::Unsupported => {
                "the database does not answer, or its extension cannot offload segments"
            }
            Self::Opening => "the store is being opened",
            Self::Waiting => "the store is open; another gateway has not yet released the database",
            Self::Working => "segments are offloaded and recalled by this gateway",
            Self::Fenced => "another gateway has taken over; this one stands by",
            Self::Foreign => {
                "the store belongs to another database, or to the primary of this standby: segments are only recalled"
            }
        }
    }
}
