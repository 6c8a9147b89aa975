//! A multipath QUIC peer that shares no code with libxlink: noq (RFC 10069), with the part of HTTP/3 that a download
//! needs.
//!
//!     noq-peer get SERVER URL_PATH [--local IP]... [--abandon IP] [--backup IP] [--out FILE]
//!     noq-peer serve ADDRESS FILE CERTIFICATE KEY
//!     noq-peer client|server OPTIONS
//!     noq-peer version
//!
//! `get` fetches one resource and prints one JSON line. It opens a further path from each --local address.
//! `serve` responds to every request with the file, or a range of it. It prints {"quic": ADDRESS} and, at SIGTERM, one
//! JSON line.
//! `client` and `server` are the two sides of a relay (docs/reference/stacks.md).
mod client;
mod from_primary;
mod http3;
mod relay;
mod server;
mod stats;

use anyhow::{Result, bail};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("get") => client::get(&words[1..]).await,
        Some("serve") => server::serve(&words[1..]).await,
        Some("client") => relay::run(false, &words[1..]).await,
        Some("server") => relay::run(true, &words[1..]).await,
        Some("version") => {
            println!("{}", railyard_relay::locked_version(include_str!("../Cargo.lock"), "noq")?);
            Ok(())
        }
        _ => bail!("usage: noq-peer get|serve|client|server|version ..., see the head of main.rs"),
    }
}
