//! What quic-interop-runner tells an endpoint: `PROGRAM server` or `PROGRAM client URL...`, the test case in TESTCASE,
//! HTTP3 for HTTP/3 in place of HTTP/0.9, and the folders /www, /downloads and /certs. `PROGRAM version` is of ours.
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;

use anyhow::{Context, Result, bail};

#[cfg(feature = "rustls")]
pub mod tls;

pub const CERTIFICATE: &str = "/certs/cert.pem";
pub const KEY: &str = "/certs/priv.key";
pub const PORT: u16 = 443;
/// That the server has beside its first one, in the case preferredaddress.
pub const PREFERRED_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const UNSUPPORTED: i32 = 127;

#[derive(Clone, Debug)]
pub struct Url {
    pub host: String,
    pub port: u16,
    pub path: String,
}

impl Url {
    fn parse(text: &str) -> Result<Self> {
        let rest = text.strip_prefix("https://").with_context(|| format!("{text} is no URL of https"))?;
        let (authority, path) = rest.split_once('/').with_context(|| format!("{text} has no path"))?;
        let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "443"));
        Ok(Self { host: host.into(), port: port.parse()?, path: format!("/{path}") })
    }

    pub fn address(&self) -> Result<SocketAddr> {
        (self.host.as_str(), self.port).to_socket_addrs()?.next().context("the name has no address")
    }

    pub fn save(&self, body: &[u8]) -> Result<()> {
        let name = Path::new(&self.path).file_name().context("the path has no name")?;
        Ok(std::fs::write(Path::new("/downloads").join(name), body)?)
    }
}

pub struct Job {
    pub testcase: String,
    pub http3: bool,
    pub is_server: bool,
    /// Client: the URLs of each connection, one connection after the other.
    pub connections: Vec<Vec<Url>>,
}

impl Job {
    pub fn is(&self, testcase: &str) -> bool {
        self.testcase == testcase
    }

    pub fn alpn(&self) -> &'static str {
        if self.http3 { "h3" } else { "hq-interop" }
    }
}

/// The version of a crate by the lock file.
fn version_of(stack: &str) -> &'static str {
    let lock = include_str!("../../Cargo.lock");
    let start = format!("name = \"{stack}\"\nversion = \"");
    lock.split_once(&start).and_then(|(_, rest)| rest.split('"').next()).unwrap_or_default()
}

/// The job; the process ends here if it is to tell its version, and with status 127 if the test case is not among those known in its role.
pub fn job(stack: &str, server: &[&str], client: &[&str]) -> Result<Job> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words == ["version"] {
        println!("{}", version_of(stack));
        std::process::exit(0);
    }
    let testcase = std::env::var("TESTCASE").unwrap_or_default();
    let (role, urls) = words.split_first().context("the first argument is server or client")?;
    let known = match role.as_str() {
        "server" => server,
        "client" => client,
        _ => bail!("the first argument is server or client"),
    };
    if !known.contains(&testcase.as_str()) {
        std::process::exit(UNSUPPORTED);
    }
    let urls = urls.iter().map(|text| Url::parse(text)).collect::<Result<Vec<_>>>()?;
    let connections = match testcase.as_str() {
        "multiconnect" => urls.into_iter().map(|url| vec![url]).collect(),
        "resumption" | "zerortt" if urls.len() > 1 => vec![urls[..1].to_vec(), urls[1..].to_vec()],
        _ => vec![urls],
    };
    let http3 = std::env::var("HTTP3").is_ok_and(|value| !value.is_empty());
    Ok(Job { testcase, http3, is_server: role == "server", connections })
}

/// The file that a request names; only those directly in /www.
pub fn file(path: &str) -> Option<Vec<u8>> {
    std::fs::read(Path::new("/www").join(Path::new(path).file_name()?)).ok()
}

/// The path of a request of HTTP/0.9: `GET /path\r\n`.
pub fn path_of(request: &[u8]) -> Option<&str> {
    std::str::from_utf8(request).ok()?.trim_end().strip_prefix("GET ")
}

pub fn request_for(path: &str) -> Vec<u8> {
    format!("GET {path}\r\n").into_bytes()
}
