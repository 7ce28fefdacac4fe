//! What the index makes of events.
