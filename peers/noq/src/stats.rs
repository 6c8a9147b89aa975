//! A connection's byte counts per path, as JSON.
use noq::{Connection, PathId};
use serde_json::{Value, json};

pub const PATHS_MAX: u32 = 8;

pub fn of_paths(connection: &Connection, ids: impl Iterator<Item = PathId>) -> Vec<Value> {
    ids.filter_map(|id| {
        let s = connection.path_stats(id)?;
        Some(json!({"id": id.to_string(), "sent_bytes": s.udp_tx.bytes, "received_bytes": s.udp_rx.bytes}))
    })
    .collect()
}
