//! A relay over tquic: multipath QUIC by draft-ietf-quic-multipath-05. docs/reference/stacks.md describes relays.
mod clock;
mod streams;

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use railyard_relay::doors::{Doors, Sockets};
use railyard_relay::pump::{Local, Pumped, Streams};
use railyard_relay::{Options, record};
use serde_json::json;
use streams::Tquic;
use tquic::{
    Config, Connection, Endpoint, PacketInfo, PacketSendHandler, TIMER_GRANULARITY, TlsConfig, TransportHandler,
};

const ALPN: &[u8] = b"relay";
const IDLE_MS: u64 = 120_000;
const OWN: &[(&str, &str)] = &[("scheduler", "minrtt"), ("cc", "cubic"), ("initial-window", "10")];
const REPORT_EVERY: Duration = Duration::from_secs(1);
const PATHS_MAX: u64 = 8;

/// Events from tquic's callbacks. A connection is named by its index in the endpoint.
#[derive(Default)]
struct News {
    streams: Vec<(u64, u64)>, // connection, new stream of the peer
    closed: Vec<(u64, String)>,
}

struct Handler(Rc<RefCell<News>>, bool); // is_server

fn index_of(connection: &Connection) -> u64 {
    connection.index().unwrap_or_default()
}

impl TransportHandler for Handler {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        if let Some(secrets) = key_log() {
            connection.set_keylog(Box::new(secrets));
        }
    }

    fn on_conn_established(&mut self, _: &mut Connection) {}

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        let error = connection.peer_error().or(connection.local_error());
        let reason = match error {
            _ if connection.is_idle_timeout() => "idle timeout".into(),
            _ if connection.is_handshake_timeout() => "handshake timeout".into(),
            Some(error) => format!("{error:?}"),
            None => "the connection has ended".into(),
        };
        self.0.borrow_mut().closed.push((index_of(connection), reason));
    }

    fn on_stream_created(&mut self, connection: &mut Connection, stream: u64) {
        if self.1 && stream % 4 == 0 {
            self.0.borrow_mut().streams.push((index_of(connection), stream));
        }
    }

    fn on_stream_readable(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_writable(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}

/// Sends the endpoint's packets.
struct Sender(Rc<Sockets>);

impl PacketSendHandler for Sender {
    fn on_packets_send(&self, packets: &[(Vec<u8>, PacketInfo)]) -> tquic::Result<usize> {
        Ok(packets.iter().take_while(|(bytes, info)| self.0.send(bytes, info.src, info.dst)).count())
    }
}

/// Opens $SSLKEYLOGFILE, if it is set and can be written.
fn key_log() -> Option<File> {
    let name = std::env::var_os("SSLKEYLOGFILE")?;
    OpenOptions::new().create(true).append(true).open(name).ok()
}

fn config(o: &Options, is_server: bool) -> Result<Config> {
    let mut config = Config::new()?;
    config.set_max_idle_timeout(IDLE_MS);
    config.set_active_connection_id_limit(PATHS_MAX);
    config.enable_multipath(is_server || o.paths.len() > 1);
    config.set_multipath_algorithm(o.own("scheduler").replace('-', "").parse()?);
    config.set_congestion_control_algorithm(o.own("cc").parse()?);
    let window = o.own("initial-window").parse().context("--initial-window takes a number of packets")?;
    config.set_initial_congestion_window(window);
    let protocols = vec![ALPN.to_vec()];
    config.set_tls_config(if is_server {
        TlsConfig::new_server_config(&o.certificate, &o.key, protocols, false)?
    } else {
        let mut tls = TlsConfig::new_client_config(protocols, false)?;
        tls.set_verify(false);
        tls
    });
    Ok(config)
}

struct Relay {
    o: Options,
    is_server: bool,
    doors: Doors,
    endpoint: Endpoint,
    news: Rc<RefCell<News>>,
    connection: Option<u64>, // client
    paths: usize,            // number of opened paths
    locals: Vec<Local>,
}

impl Relay {
    fn new(o: Options, is_server: bool) -> Result<Self> {
        let doors = Doors::open(&o, is_server)?;
        let news = Rc::new(RefCell::new(News::default()));
        let handler = Box::new(Handler(news.clone(), is_server));
        let config = Box::new(config(&o, is_server)?);
        let endpoint = Endpoint::new(config, is_server, handler, Rc::new(Sender(doors.sockets.clone())));
        Ok(Self { o, is_server, doors, endpoint, news, connection: None, paths: 1, locals: Vec::new() })
    }

    fn run(&mut self) -> Result<()> {
        record(json!({"event": "ready", "listen": self.doors.sockets.bound(0).to_string()}));
        let mut report_at = Instant::now();
        loop {
            // After a path was silent, tquic may ask for a timeout of 0 repeatedly, for seconds.
            clock::look();
            let timeout = self.endpoint.timeout().map(|left| left.max(TIMER_GRANULARITY));
            let goes_on = self.doors.wait(timeout)?;
            clock::look();
            if !goes_on {
                self.report();
                record(json!({"event": "closed", "reason": "signal"}));
                return Ok(());
            }
            let endpoint = &mut self.endpoint;
            self.doors.sockets.receive(|datagram, src, dst| {
                // The endpoint drops invalid datagrams.
                let _ = endpoint.recv(datagram, &PacketInfo { src, dst, time: Instant::now() });
            })?;
            self.endpoint.on_timeout(Instant::now());
            self.accept()?;
            loop {
                clock::look();
                self.endpoint.process_connections()?;
                self.take_news()?;
                if !self.pump() {
                    break;
                }
            }
            if Instant::now() >= report_at {
                self.report();
                report_at = Instant::now() + REPORT_EVERY;
            }
        }
    }

    /// The first local connection starts the handshake, so that it is part of the first request.
    fn accept(&mut self) -> Result<()> {
        while let Some(socket) = self.doors.next_local()? {
            if self.connection.is_none() {
                let server = self.o.server.context("--server is required")?;
                let from = self.doors.sockets.bound(0);
                self.connection = Some(self.endpoint.connect(from, server, Some("localhost"), None, None, None)?);
            }
            self.locals.push(Local::new(self.connection.unwrap_or_default(), None, socket));
        }
        Ok(())
    }

    fn take_news(&mut self) -> Result<()> {
        let news = self.news.take();
        for (connection, stream) in news.streams {
            let upstream = self.o.upstream.context("--upstream is required")?;
            let Some(socket) = self.doors.connect(upstream)? else {
                if let Some(connection) = self.endpoint.conn_get_mut(connection) {
                    Tquic(connection).cancel(stream);
                }
                continue;
            };
            self.locals.push(Local::new(connection, Some(stream), socket));
        }
        for (connection, reason) in news.closed {
            self.locals.retain(|local| local.connection != connection);
            if !self.is_server {
                self.report();
                record(json!({"event": "closed", "reason": reason}));
                return Err(anyhow!("the connection has ended: {reason}"));
            }
        }
        Ok(())
    }

    /// Opens streams for local connections, and the other paths, as soon as the connection allows it.
    fn open(&mut self) {
        let Some(connection) = self.connection.and_then(|index| self.endpoint.conn_get_mut(index)) else { return };
        if !connection.is_established() {
            return;
        }
        for local in self.locals.iter_mut().filter(|local| local.stream.is_none()) {
            local.stream = connection.stream_bidi_new(0, true).ok();
        }
        let Some(server) = self.o.server else { return };
        while connection.is_multipath() && self.paths < self.o.paths.len() {
            // Each path needs a connection ID of the server, which may not have come yet.
            if connection.dcid_iter().count() <= self.paths {
                return;
            }
            if let Err(error) = connection.add_path(self.doors.sockets.bound(self.paths), server) {
                eprintln!("tquic: path {}: {error}", self.o.paths[self.paths].0);
            }
            self.paths += 1;
        }
    }

    /// Moves bytes of all local connections. Returns whether any moved.
    fn pump(&mut self) -> bool {
        self.open();
        let mut moved = false;
        let endpoint = &mut self.endpoint;
        self.locals.retain_mut(|local| match endpoint.conn_get_mut(local.connection) {
            None => true,
            Some(connection) => {
                let pumped = local.pump(&mut Tquic(connection));
                moved |= pumped != Pumped::Nothing;
                pumped != Pumped::Over
            }
        });
        moved
    }

    fn report(&mut self) {
        let Some(connection) = self.connection.and_then(|index| self.endpoint.conn_get_mut(index)) else { return };
        let Some(server) = self.o.server else { return };
        for (number, (name, _)) in self.o.paths.iter().enumerate() {
            if let Ok(stats) = connection.get_path_stats(self.doors.sockets.bound(number), server) {
                record(json!({"event": "path", "name": name, "state": "active", "bytes_sent": stats.sent_bytes,
                              "bytes_received": stats.recv_bytes, "srtt_us": stats.srtt}));
            }
        }
    }
}

fn main() -> Result<()> {
    let lock = include_str!("../Cargo.lock");
    railyard_relay::main("tquic", lock, OWN, |o, is_server| Relay::new(o, is_server)?.run())
}
