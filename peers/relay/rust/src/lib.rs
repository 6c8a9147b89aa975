//! The common part of relays in Rust: command line and records. docs/reference/stacks.md describes relays.
#[cfg(feature = "pump")]
pub mod doors;
#[cfg(feature = "pump")]
pub mod pump;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The options of both sides. Options of the other side are empty.
#[derive(Default)]
pub struct Options {
    pub socket: PathBuf,
    pub server: Option<SocketAddr>,
    pub paths: Vec<(String, IpAddr)>, // name and address; the first is the primary path
    pub listen: Option<SocketAddr>,
    pub upstream: Option<SocketAddr>,
    pub certificate: String,
    pub key: String,
    own: BTreeMap<String, String>,
}

impl Options {
    /// Returns an option of the stack; empty if it was not in `own` of `parse`.
    pub fn own(&self, name: &str) -> &str {
        self.own.get(name).map_or("", String::as_str)
    }
}

/// Parses the command line. `own`: the stack's options with their defaults.
pub fn parse(words: &[String], own: &[(&str, &str)]) -> Result<Options> {
    let own = own.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let mut o = Options { own, ..Options::default() };
    for pair in words.chunks(2) {
        let [name, value] = pair else { bail!("{} takes a value", pair[0]) };
        match name.as_str() {
            "--socket" => o.socket = value.into(),
            "--server" => o.server = Some(value.parse().context("--server takes ADDR:PORT")?),
            "--path" => {
                let (name, ip) = value.split_once(':').context("--path takes NAME:ADDR")?;
                o.paths.push((name.into(), ip.parse().context("--path takes NAME:ADDR")?));
            }
            "--listen" => o.listen = Some(value.parse().context("--listen takes ADDR:PORT")?),
            "--upstream" => o.upstream = Some(value.parse().context("--upstream takes ADDR:PORT")?),
            "--certificate" => o.certificate = value.clone(),
            "--key" => o.key = value.clone(),
            _ => match name.strip_prefix("--").and_then(|name| o.own.get_mut(name)) {
                Some(of_stack) => *of_stack = value.clone(),
                None => bail!("there is no option {name}"),
            },
        }
    }
    Ok(o)
}

const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

/// A reserved descriptor. If the process has no other left, it is used to accept and close a local connection, which
/// would otherwise keep the listening socket readable.
pub struct Spare(Option<File>);

impl Spare {
    pub fn hold() -> Self {
        Self(File::open("/dev/null").ok())
    }

    /// Call it after a failed accept. True: there was no descriptor left, and the reserved one is now closed.
    pub fn give_up(&mut self, error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(ENFILE | EMFILE)) && self.0.take().is_some()
    }

    /// Call it after a successful accept. False: the connection has taken the reserved descriptor and must be closed.
    pub fn is_held(&mut self) -> bool {
        if self.0.is_none() {
            *self = Self::hold();
        }
        self.0.is_some()
    }
}

/// Prints one record.
pub fn record(value: Value) {
    println!("{value}");
}

/// Returns name and version of a crate from the text of a lock file, such as `noq 1.4.0`.
pub fn locked_version(lock: &str, name: &str) -> Result<String> {
    let entry = format!("name = \"{name}\"\nversion = \"");
    let (_, rest) = lock.split_once(&entry).with_context(|| format!("the lock file has no {name}"))?;
    Ok(format!("{name} {}", rest.split('"').next().unwrap_or_default()))
}

/// The complete main() of NAME-relay client OPTIONS, server OPTIONS or version. `lock`: the text of the lock file.
pub fn main(name: &str, lock: &str, own: &[(&str, &str)], run: impl Fn(Options, bool) -> Result<()>) -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("client") => run(parse(&words[1..], own)?, false),
        Some("server") => run(parse(&words[1..], own)?, true),
        Some("version") => {
            println!("{}", locked_version(lock, name)?);
            Ok(())
        }
        _ => bail!("usage: {name}-relay client|server OPTIONS, or {name}-relay version"),
    }
}
