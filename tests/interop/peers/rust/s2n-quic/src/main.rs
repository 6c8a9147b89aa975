//! s2n-quic as an endpoint of quic-interop-runner. It has no HTTP/3 on the registry, and over rustls it resumes nothing.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context, Result};
use contract::{Job, Url};
use rustls::crypto::aws_lc_rs::default_provider;
use s2n_quic::client::Connect;
use s2n_quic::connection::Connection;
use s2n_quic::provider::endpoint_limits::{ConnectionAttempt, Limiter, Outcome};
use s2n_quic::provider::tls::rustls as tls;
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{Client, Server};
use tokio::io::AsyncReadExt;
use tokio::task::JoinSet;

const SERVER: &[&str] = &[
    "handshake", "transfer", "longrtt", "ipv6", "multiconnect", "retry", "chacha20", "keyupdate", "ecn",
    "connectionmigration",
];
const CLIENT: &[&str] =
    &["handshake", "transfer", "longrtt", "ipv6", "multiconnect", "retry", "chacha20", "ecn"];

struct Limits {
    retry: bool,
}

impl Limiter for Limits {
    fn on_connection_attempt(&mut self, _: &ConnectionAttempt) -> Outcome {
        if self.retry { Outcome::retry() } else { Outcome::allow() }
    }
}

async fn answer(mut stream: BidirectionalStream) -> Result<()> {
    let mut request = Vec::new();
    while let Some(part) = stream.receive().await? {
        request.extend_from_slice(&part);
    }
    match contract::path_of(&request).and_then(contract::file) {
        Some(body) => {
            stream.send(body.into()).await?;
            stream.close().await?;
        }
        None => stream.reset(1u32.into())?,
    }
    Ok(())
}

async fn serve_connection(mut connection: Connection) -> Result<()> {
    while let Some(stream) = connection.accept_bidirectional_stream().await? {
        tokio::spawn(answer(stream));
    }
    Ok(())
}

async fn serve(job: &Job) -> Result<()> {
    let config = contract::tls::server(job, default_provider())?;
    let mut server = Server::builder()
        .with_tls(tls::Server::from(config))?
        .with_endpoint_limits(Limits { retry: job.is("retry") })?
        .with_io(SocketAddr::from((Ipv6Addr::UNSPECIFIED, contract::PORT)))?
        .start()?;
    while let Some(connection) = server.accept().await {
        tokio::spawn(serve_connection(connection));
    }
    Ok(())
}

async fn get(stream: BidirectionalStream, url: Url) -> Result<()> {
    let (mut receive, mut send) = stream.split();
    send.send(contract::request_for(&url.path).into()).await?;
    send.finish()?;
    let mut body = Vec::new();
    receive.read_to_end(&mut body).await?;
    url.save(&body)
}

async fn get_all(job: &Job) -> Result<()> {
    let any: IpAddr = match job.connections[0][0].address()? {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let config = contract::tls::client(job, default_provider())?;
    let client =
        Client::builder().with_tls(tls::Client::from(config))?.with_io(SocketAddr::from((any, 0)))?.start()?;
    for urls in &job.connections {
        let first = urls.first().context("no URL")?;
        let connect = Connect::new(first.address()?).with_server_name(first.host.as_str());
        let mut connection = client.connect(connect).await?;
        let mut all = JoinSet::new();
        for url in urls {
            all.spawn(get(connection.open_bidirectional_stream().await?, url.clone()));
        }
        while let Some(done) = all.join_next().await {
            done??;
        }
        connection.close(0u32.into());
    }
    client.clone().wait_idle().await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let job = contract::job("s2n-quic", SERVER, CLIENT)?;
    if job.is_server { serve(&job).await } else { get_all(&job).await }
}
