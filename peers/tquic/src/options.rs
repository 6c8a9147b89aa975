use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

#[derive(Default)]
pub struct Options {
    pub socket: PathBuf,
    pub server: Option<SocketAddr>,
    pub paths: Vec<(String, IpAddr)>,
    pub listen: Option<SocketAddr>,
    pub upstream: Option<SocketAddr>,
    pub certificate: String,
    pub key: String,
    pub scheduler: String,
    pub cc: String,
}

pub fn parse(words: &[String]) -> Result<Options> {
    let mut o = Options { scheduler: "minrtt".into(), cc: "cubic".into(), ..Options::default() };
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
            "--scheduler" => o.scheduler = value.clone(),
            "--cc" => o.cc = value.clone(),
            _ => bail!("there is no option {name}"),
        }
    }
    Ok(o)
}
