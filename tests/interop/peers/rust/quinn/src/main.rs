//! quinn as an endpoint of quic-interop-runner: HTTP/0.9 by itself, HTTP/3 by h3.
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::{Buf, Bytes};
use contract::{Job, Url};
use quinn::crypto::rustls::{HandshakeData, QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig};
use rustls::crypto::ring::default_provider;
use rustls::quic::Suite;
use tokio::task::JoinSet;

const SERVER: &[&str] = &[
    "handshake", "transfer", "longrtt", "ipv6", "http3", "multiconnect", "retry", "chacha20", "resumption", "zerortt",
    "keyupdate", "ecn", "connectionmigration", "preferredaddress",
];
/// Its client takes the connection ID of a preferred address, and stays where it is.
const CLIENT: &[&str] = &[
    "handshake", "transfer", "longrtt", "ipv6", "http3", "multiconnect", "retry", "chacha20", "resumption", "zerortt",
    "keyupdate", "ecn", "connectionmigration",
];
const LARGEST_BODY: usize = 64 << 20;
/// Keys are updated and the port is changed while a file is on its way.
const UNDER_WAY: Duration = Duration::from_millis(500);

/// Initial packets are protected by AES-128-GCM (RFC 9001 section 5.2), whatever the handshake may choose.
fn initial_suite() -> Result<Suite> {
    default_provider()
        .cipher_suites
        .iter()
        .find_map(|suite| match suite {
            rustls::SupportedCipherSuite::Tls13(tls)
                if suite.suite() == rustls::CipherSuite::TLS13_AES_128_GCM_SHA256 =>
            {
                tls.quic_suite()
            }
            _ => None,
        })
        .context("the provider has no AES-128-GCM")
}

// ---- server ----

async fn answer_hq(mut send: quinn::SendStream, mut receive: quinn::RecvStream) -> Result<()> {
    let request = receive.read_to_end(4096).await?;
    match contract::path_of(&request).and_then(contract::file) {
        Some(body) => {
            send.write_all(&body).await?;
            send.finish()?;
            send.stopped().await?;
        }
        None => send.reset(1u32.into())?,
    }
    Ok(())
}

type Resolver = h3::server::RequestResolver<h3_quinn::Connection, Bytes>;

async fn answer_h3(resolver: Resolver) -> Result<()> {
    let (request, mut stream) = resolver.resolve_request().await?;
    let body = contract::file(request.uri().path());
    let response = http::Response::builder().status(if body.is_some() { 200 } else { 404 }).body(())?;
    stream.send_response(response).await?;
    stream.send_data(body.unwrap_or_default().into()).await?;
    stream.finish().await?;
    Ok(())
}

async fn serve_connection(incoming: quinn::Incoming) -> Result<()> {
    let connection = incoming.await?;
    let data = connection.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
    if data.and_then(|data| data.protocol).as_deref() == Some(b"h3") {
        let mut http = h3::server::Connection::new(h3_quinn::Connection::new(connection)).await?;
        while let Some(resolver) = http.accept().await? {
            tokio::spawn(answer_h3(resolver));
        }
        return Ok(());
    }
    while let Ok((send, receive)) = connection.accept_bi().await {
        tokio::spawn(answer_hq(send, receive));
    }
    Ok(())
}

async fn serve(job: &Job) -> Result<()> {
    let tls = contract::tls::server(job, default_provider())?;
    let crypto = QuicServerConfig::with_initial(Arc::new(tls), initial_suite()?)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    if job.is("preferredaddress") {
        config.preferred_address_v4(Some(SocketAddrV4::new(contract::PREFERRED_ADDRESS, contract::PORT)));
    }
    let endpoint = Endpoint::server(config, SocketAddr::from((Ipv6Addr::UNSPECIFIED, contract::PORT)))?;
    while let Some(incoming) = endpoint.accept().await {
        if job.is("retry") && !incoming.remote_address_validated() {
            incoming.retry()?;
            continue;
        }
        tokio::spawn(async {
            if let Err(error) = serve_connection(incoming).await {
                eprintln!("quinn: {error:#}");
            }
        });
    }
    Ok(())
}

// ---- client ----

async fn get_hq(connection: Connection, url: Url) -> Result<()> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&contract::request_for(&url.path)).await?;
    send.finish()?;
    url.save(&receive.read_to_end(LARGEST_BODY).await?)
}

type Requests = h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>;

async fn get_h3(mut requests: Requests, url: Url) -> Result<()> {
    let uri = format!("https://{}:{}{}", url.host, url.port, url.path);
    let mut stream = requests.send_request(http::Request::get(uri).body(())?).await?;
    stream.finish().await?;
    let status = stream.recv_response().await?.status();
    ensure!(status == 200, "{}: status {status}", url.path);
    let mut body = Vec::new();
    while let Some(mut part) = stream.recv_data().await? {
        body.extend_from_slice(&part.copy_to_bytes(part.remaining()));
    }
    url.save(&body)
}

async fn get_all(connection: &Connection, job: &Job, urls: &[Url]) -> Result<()> {
    let mut all = JoinSet::new();
    if job.http3 {
        let (mut driver, requests) = h3::client::new(h3_quinn::Connection::new(connection.clone())).await?;
        tokio::spawn(async move { poll_fn(|context| driver.poll_close(context)).await });
        for url in urls {
            all.spawn(get_h3(requests.clone(), url.clone()));
        }
    } else {
        for url in urls {
            all.spawn(get_hq(connection.clone(), url.clone()));
        }
    }
    while let Some(done) = all.join_next().await {
        done??;
    }
    Ok(())
}

/// What the case asks for beside the files.
async fn also(job: &Job, endpoint: &Endpoint, connection: &Connection) -> Result<()> {
    tokio::time::sleep(UNDER_WAY).await;
    match job.testcase.as_str() {
        "keyupdate" => connection.force_key_update(),
        "connectionmigration" => endpoint.rebind(UdpSocket::bind(endpoint.local_addr()?.ip().to_string() + ":0")?)?,
        _ => {}
    }
    Ok(())
}

async fn get_in_a_connection(job: &Job, endpoint: &Endpoint, urls: &[Url]) -> Result<()> {
    let connecting = endpoint.connect(urls[0].address()?, &urls[0].host)?;
    let connection = if job.is("zerortt") {
        match connecting.into_0rtt() {
            Ok((connection, _accepted)) => connection,
            Err(connecting) => connecting.await?,
        }
    } else {
        connecting.await?
    };
    let (all, _) = tokio::try_join!(get_all(&connection, job, urls), also(job, endpoint, &connection))?;
    connection.close(if job.http3 { 0x100u32 } else { 0 }.into(), b"");
    Ok(all)
}

async fn get(job: &Job) -> Result<()> {
    let tls = contract::tls::client(job, default_provider())?;
    let crypto = QuicClientConfig::with_initial(Arc::new(tls), initial_suite()?)?;
    let config = ClientConfig::new(Arc::new(crypto));
    let any: IpAddr = match job.connections[0][0].address()? {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let mut endpoint = Endpoint::client(SocketAddr::from((any, 0)))?;
    endpoint.set_default_client_config(config);
    for urls in &job.connections {
        get_in_a_connection(job, &endpoint, urls).await?;
    }
    endpoint.wait_idle().await;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let job = contract::job("quinn", SERVER, CLIENT)?;
    if job.is_server { serve(&job).await } else { get(&job).await }
}
