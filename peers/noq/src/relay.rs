//! Both sides of a relay, see docs/reference/stacks.md.
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use noq::congestion::{Bbr3Config, ControllerFactory, CubicConfig, NewRenoConfig};
use noq::{
    AsyncUdpSocket, Connection, Endpoint, EndpointConfig, IdleTimeout, PathId, RecvStream, Runtime, SendStream,
    TokioRuntime, TransportConfig, VarInt,
};
use railyard_relay::{Options, Spare, parse, record};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::OnceCell;

use crate::from_primary::FromPrimary;
use crate::{client, server, stats};

const ALPN: &[u8] = b"relay";
const CANCELLED: VarInt = VarInt::from_u32(1); // application error code of a cancelled stream
const REPORT_EVERY: Duration = Duration::from_secs(1);
const IDLE_MS: u32 = 120_000;
const ACCEPT_AGAIN: Duration = Duration::from_millis(50); // after an error

fn transport(cc: &str) -> Result<TransportConfig> {
    let controller: Arc<dyn ControllerFactory + Send + Sync> = match cc {
        "cubic" => Arc::new(CubicConfig::default()),
        "newreno" => Arc::new(NewRenoConfig::default()),
        "bbr3" => Arc::new(Bbr3Config::default()),
        _ => bail!("--cc takes cubic, newreno or bbr3, not {cc}"),
    };
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(controller);
    transport.max_concurrent_multipath_paths(stats::PATHS_MAX);
    transport.stream_receive_window(client::STREAM_WINDOW.into());
    transport.max_concurrent_bidi_streams(1000u32.into());
    transport.max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_MS))));
    Ok(transport)
}

/// Copies everything including the end.
async fn copy(from: impl AsyncRead, to: impl AsyncWrite) -> std::io::Result<()> {
    let (mut from, mut to) = (pin!(from), pin!(to));
    tokio::io::copy(&mut from, &mut to).await?;
    to.shutdown().await
}

/// Copies both directions. After an error in one, resets the stream and closes the local connection.
async fn join(local: impl AsyncRead + AsyncWrite, mut send: SendStream, mut receive: RecvStream) {
    let (read, write) = tokio::io::split(local);
    if tokio::try_join!(copy(read, &mut send), copy(&mut receive, write)).is_err() {
        let _ = send.reset(CANCELLED);
        let _ = receive.stop(CANCELLED);
    }
}

// ---- client

/// Connects from the primary path's address, and opens the other paths once the handshake is confirmed.
async fn connect(endpoint: &Endpoint, o: Arc<Options>) -> Result<Connection> {
    let server = o.server.context("--server is required")?;
    let connection = endpoint.connect(server, "localhost")?.await?;
    tokio::task::spawn_local(report(connection.clone(), o.clone()));
    let of_paths = connection.clone();
    tokio::task::spawn_local(async move {
        for (name, ip) in o.paths.iter().skip(1) {
            let opened = async {
                of_paths.handshake_confirmed().await?;
                client::open(&of_paths, server, *ip).await
            };
            if let Err(error) = opened.await {
                eprintln!("noq: path {name}: {error:#}");
            }
        }
    });
    Ok(connection)
}

/// Prints a record of each path every second and at the end of the connection, with which the relay ends.
async fn report(connection: Connection, o: Arc<Options>) {
    let mut every = tokio::time::interval(REPORT_EVERY);
    let reason = loop {
        tokio::select! {
            reason = connection.closed() => break reason,
            _ = every.tick() => report_paths(&connection, &o),
        }
    };
    report_paths(&connection, &o);
    record(json!({"event": "closed", "reason": reason.to_string()}));
    std::process::exit(1);
}

/// Prints a record of each path. Path IDs follow the order in which paths are opened.
fn report_paths(connection: &Connection, o: &Options) {
    for (id, (name, _)) in (0u32..).zip(&o.paths) {
        if let Some(s) = connection.path_stats(PathId::from(id)) {
            record(json!({"event": "path", "name": name, "state": "active", "bytes_sent": s.udp_tx.bytes,
                          "bytes_received": s.udp_rx.bytes, "srtt_us": s.rtt.as_micros() as u64}));
        }
    }
}

/// Returns the next local connection for which there is a descriptor.
async fn accept(listener: &UnixListener, spare: &mut Spare) -> UnixStream {
    loop {
        match listener.accept().await {
            Ok((local, _)) if spare.is_held() => return local,
            Ok(_) => {}
            Err(error) if spare.give_up(&error) => {}
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    }
}

/// `connection` is set after the first local connection.
async fn run_client(o: Arc<Options>, connection: Arc<OnceCell<Connection>>) -> Result<()> {
    let (_, primary) = o.paths.first().context("--path is required")?;
    let udp = std::net::UdpSocket::bind("0.0.0.0:0")?;
    let socket: Box<dyn AsyncUdpSocket> = Box::new(FromPrimary::new(TokioRuntime.wrap_udp_socket(udp)?, *primary));
    let endpoint =
        Endpoint::new_with_abstract_socket(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime))?;
    endpoint.set_default_client_config(client::config(ALPN, transport(o.own("cc"))?)?);
    let listener = UnixListener::bind(&o.socket)?;
    record(json!({"event": "ready"}));
    let mut spare = Spare::hold();
    loop {
        let local = accept(&listener, &mut spare).await;
        let (endpoint, o, connection) = (endpoint.clone(), o.clone(), connection.clone());
        tokio::task::spawn_local(async move {
            // The first local connection starts the handshake, so that it is part of the first request.
            let opened = async {
                let connection = connection.get_or_try_init(|| connect(&endpoint, o)).await?;
                anyhow::Ok(connection.open_bi().await?)
            };
            match opened.await {
                Ok((send, receive)) => join(local, send, receive).await,
                Err(error) => {
                    record(json!({"event": "closed", "reason": format!("{error:#}")}));
                    std::process::exit(1);
                }
            }
        });
    }
}

// ---- server

async fn forward(upstream: SocketAddr, mut send: SendStream, mut receive: RecvStream) {
    match TcpStream::connect(upstream).await {
        Ok(local) => join(local, send, receive).await,
        Err(_) => {
            let _ = send.reset(CANCELLED);
            let _ = receive.stop(CANCELLED);
        }
    }
}

async fn run_server(o: Arc<Options>) -> Result<()> {
    let upstream = o.upstream.context("--upstream is required")?;
    let config = server::config(&o.certificate, &o.key, ALPN, transport(o.own("cc"))?)?;
    let endpoint = Endpoint::server(config, o.listen.context("--listen is required")?)?;
    record(json!({"event": "ready", "listen": endpoint.local_addr()?.to_string()}));
    while let Some(incoming) = endpoint.accept().await {
        tokio::task::spawn_local(async move {
            let Ok(connection) = incoming.await else { return };
            while let Ok((send, receive)) = connection.accept_bi().await {
                tokio::task::spawn_local(forward(upstream, send, receive));
            }
            record(json!({"event": "closed", "reason": connection.close_reason().map(|r| r.to_string())}));
        });
    }
    Ok(())
}

pub async fn run(is_server: bool, words: &[String]) -> Result<()> {
    let o = Arc::new(parse(words, &[("cc", "cubic")])?);
    let connection = Arc::new(OnceCell::new());
    let mut stop = signal(SignalKind::terminate())?;
    let both = async {
        if is_server { run_server(o.clone()).await } else { run_client(o.clone(), connection.clone()).await }
    };
    tokio::task::LocalSet::new()
        .run_until(async {
            tokio::select! {
                _ = stop.recv() => {
                    if let Some(connection) = connection.get() {
                        report_paths(connection, &o);
                    }
                    record(json!({"event": "closed", "reason": "signal"}));
                    Ok(())
                }
                done = both => done,
            }
        })
        .await
}
