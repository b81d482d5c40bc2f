//! The session over HTTP, against servers of every kind.
