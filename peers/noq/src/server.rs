use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, bail};
use noq::crypto::rustls::QuicServerConfig;
use noq::{Connection, Endpoint, PathEvent, PathId, SendStream, ServerConfig, TransportConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio_stream::StreamExt;
use tokio::signal::unix::{SignalKind, signal};

use crate::http3::{self, Frames};
use crate::stats;

type Records = Rc<RefCell<Vec<Value>>>;

pub fn config(certificate: &str, key: &str, alpn: &[u8], transport: TransportConfig) -> Result<ServerConfig> {
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(certificate)?.collect::<Result<_, _>>()?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    tls.alpn_protocols = vec![alpn.to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

async fn answer(mut send: SendStream, mut frames: Frames, file: Rc<Vec<u8>>) -> Result<()> {
    let request = frames.request().await?;
    let last = file.len() - 1;
    let range = request.range.map(|(first, to)| (first, to.min(last))).filter(|(first, to)| first <= to);
    let (first, to) = range.unwrap_or((0, last));
    send.write_all(&http3::response_head(range, file.len(), to + 1 - first)).await?;
    send.write_all(&file[first..=to]).await?;
    send.finish()?;
    Ok(())
}

/// Records the final counts of paths that are closed before the connection.
async fn watch_paths(connection: Connection, gone: Records) {
    let mut events = connection.path_events();
    while let Some(event) = events.next().await {
        if let Ok(PathEvent::Discarded { id, path_stats, .. }) = event {
            gone.borrow_mut().push(json!({"id": id.to_string(), "sent_bytes": path_stats.udp_tx.bytes,
                                          "received_bytes": path_stats.udp_rx.bytes, "discarded": true}));
        }
    }
}

async fn accept(connection: Connection, file: Rc<Vec<u8>>, records: Records) -> Result<()> {
    let gone = Records::default();
    let watcher = tokio::task::spawn_local(watch_paths(connection.clone(), gone.clone()));
    let _control = http3::open_control(&connection).await?;
    let mut requests = 0;
    while let Ok((send, receive)) = connection.accept_bi().await {
        requests += 1;
        tokio::task::spawn_local(answer(send, Frames::of(receive), file.clone()));
    }
    watcher.abort();
    let ids = (0..stats::PATHS_MAX).map(PathId::from);
    let paths: Vec<Value> = stats::of_paths(&connection, ids).into_iter().chain(gone.take()).collect();
    let reason = connection.close_reason().map(|r| r.to_string());
    records.borrow_mut().push(json!({"multipath": connection.is_multipath_enabled(), "requests": requests,
                                     "closed": reason, "paths": paths}));
    Ok(())
}

async fn run(endpoint: Endpoint, file: Rc<Vec<u8>>, records: Records) -> Result<()> {
    let mut stop = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            _ = stop.recv() => return Ok(()),
            incoming = endpoint.accept() => {
                let Some(incoming) = incoming else { return Ok(()) };
                let (file, records) = (file.clone(), records.clone());
                tokio::task::spawn_local(async move {
                    match incoming.await {
                        Ok(connection) => accept(connection, file, records).await,
                        Err(error) => Err(error.into()),
                    }
                });
            }
        }
    }
}

pub async fn serve(words: &[String]) -> Result<()> {
    let [address, file, certificate, key] = words else { bail!("serve takes ADDRESS FILE CERTIFICATE KEY") };
    let file = Rc::new(std::fs::read(file)?);
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(stats::PATHS_MAX);
    let endpoint = Endpoint::server(config(certificate, key, b"h3", transport)?, address.parse::<SocketAddr>()?)?;
    println!("{}", json!({"quic": endpoint.local_addr()?.to_string()}));
    let records = Records::default();
    tokio::task::LocalSet::new().run_until(run(endpoint, file, records.clone())).await?;
    println!("{}", json!({"connections": *records.borrow()}));
    Ok(())
}
