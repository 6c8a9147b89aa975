//! A relay over quiche: QUIC v1 on the primary path. With `--migrate on` it moves to the next path when the current one
//! is silent. docs/reference/stacks.md describes relays.
mod peer;

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use peer::{CID_BYTES, Peer, patience, random_cid};
use quiche::{Config, ConnectionId, Header, RecvInfo, Type};
use railyard_relay::doors::{Doors, Sockets};
use railyard_relay::pump::{Local, Pumped, Streams};
use railyard_relay::{Options, record};
use serde_json::json;

const ALPN: &[u8] = b"relay";
const IDLE_MS: u64 = 120_000;
const OWN: &[(&str, &str)] = &[("cc", "cubic"), ("initial-window", "10"), ("migrate", "off")];
const REPORT_EVERY: Duration = Duration::from_secs(1);
const STREAM_BYTES: u64 = 16 << 20; // flow control window of a stream; the connection's is twice that
const STREAMS_MAX: u64 = 1 << 20;
const CIDS_MAX: u64 = 4;

fn config(o: &Options, is_server: bool) -> Result<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(&[ALPN])?;
    config.set_max_idle_timeout(IDLE_MS);
    config.set_initial_max_data(2 * STREAM_BYTES);
    config.set_initial_max_stream_data_bidi_local(STREAM_BYTES);
    config.set_initial_max_stream_data_bidi_remote(STREAM_BYTES);
    config.set_initial_max_streams_bidi(STREAMS_MAX);
    config.set_active_connection_id_limit(CIDS_MAX);
    config.set_cc_algorithm_name(o.own("cc"))?;
    let window = o.own("initial-window").parse().context("--initial-window takes a number of packets")?;
    config.set_initial_congestion_window_packets(window);
    config.verify_peer(false);
    if std::env::var_os("SSLKEYLOGFILE").is_some() {
        config.log_keys();
    }
    if is_server {
        config.load_cert_chain_from_pem_file(&o.certificate)?;
        config.load_priv_key_from_pem_file(&o.key)?;
    }
    Ok(config)
}

struct Relay {
    o: Options,
    is_server: bool,
    doors: Doors,
    config: Config,
    peers: HashMap<u64, Peer>,
    of_cid: HashMap<ConnectionId<'static>, u64>, // server
    next_peer: u64,
    next_stream: u64, // client
    path: usize,      // client: the path in use
    moved_at: Instant,
    locals: Vec<Local>,
}

impl Relay {
    fn new(o: Options, is_server: bool) -> Result<Self> {
        let doors = Doors::open(&o, is_server)?;
        let config = config(&o, is_server)?;
        Ok(Self {
            o,
            is_server,
            doors,
            config,
            peers: HashMap::new(),
            of_cid: HashMap::new(),
            next_peer: 0,
            next_stream: 0,
            path: 0,
            moved_at: Instant::now(),
            locals: Vec::new(),
        })
    }

    fn run(&mut self) -> Result<()> {
        record(json!({"event": "ready", "listen": self.doors.sockets.bound(0).to_string()}));
        let mut report_at = Instant::now();
        loop {
            let wake_at = self.peers.values().filter_map(Peer::wake_at).chain(self.patience_ends()).min();
            let timeout = wake_at.map(|at| at.saturating_duration_since(Instant::now()));
            if !self.doors.wait(timeout)? {
                self.report();
                record(json!({"event": "closed", "reason": "signal"}));
                return Ok(());
            }
            self.receive()?;
            self.peers.values_mut().for_each(Peer::on_timeout);
            self.accept()?;
            self.move_on();
            loop {
                self.take_streams()?;
                if !self.pump() {
                    break;
                }
            }
            self.peers.values_mut().for_each(|peer| peer.flush(&self.doors.sockets));
            self.bury()?;
            if Instant::now() >= report_at {
                self.report();
                report_at = Instant::now() + REPORT_EVERY;
            }
        }
    }

    fn receive(&mut self) -> Result<()> {
        let Self { doors, peers, of_cid, config, next_peer, is_server, .. } = self;
        doors.sockets.receive(|datagram, from, to| {
            let info = RecvInfo { from, to };
            if !*is_server {
                peers.values_mut().for_each(|peer| peer.receive(datagram, info));
                return;
            }
            let Ok(header) = Header::from_slice(datagram, CID_BYTES) else { return };
            let number = match of_cid.get(&header.dcid) {
                Some(number) => *number,
                None => {
                    let Some((id, peer)) = new_peer(&doors.sockets, config, &header, info) else { return };
                    *next_peer += 1;
                    of_cid.insert(id, *next_peer);
                    of_cid.insert(header.dcid.into_owned(), *next_peer);
                    peers.insert(*next_peer, peer);
                    *next_peer
                }
            };
            if let Some(peer) = peers.get_mut(&number) {
                peer.receive(datagram, info);
            }
        })?;
        for (number, peer) in peers {
            for id in peer.issue_cids() {
                of_cid.insert(id, *number);
            }
        }
        Ok(())
    }

    /// The first local connection starts the handshake, so that it is part of the first request.
    fn accept(&mut self) -> Result<()> {
        while let Some(socket) = self.doors.next_local()? {
            if self.peers.is_empty() {
                let server = self.o.server.context("--server is required")?;
                let from = self.doors.sockets.bound(0);
                let mut connection = quiche::connect(Some("localhost"), &random_cid(), from, server, &mut self.config)?;
                if let Some(name) = std::env::var_os("SSLKEYLOGFILE") {
                    if let Ok(file) = OpenOptions::new().create(true).append(true).open(name) {
                        connection.set_keylog(Box::new(file));
                    }
                }
                self.peers.insert(0, Peer::new(connection));
            }
            self.locals.push(Local::new(0, None, socket));
        }
        Ok(())
    }

    /// Returns the client's connection and the server's address, if it may migrate and has local connections.
    fn mobile(&self) -> Option<(&Peer, std::net::SocketAddr)> {
        let peer = self.peers.get(&0).filter(|peer| peer.connection.is_established())?;
        let may = !self.is_server && self.o.own("migrate") == "on" && self.o.paths.len() > 1;
        if may && !self.locals.is_empty() { Some((peer, self.o.server?)) } else { None }
    }

    /// Returns when the client migrates if it receives nothing before.
    fn patience_ends(&self) -> Option<Instant> {
        let (peer, _) = self.mobile()?;
        Some(peer.heard_at.max(self.moved_at) + patience(&peer.active()?))
    }

    /// Migrates to the next path if the current one is silent.
    fn move_on(&mut self) {
        if self.patience_ends().is_none_or(|end| Instant::now() < end) {
            return;
        }
        let Some((_, server)) = self.mobile() else { return };
        let next = (self.path + 1) % self.o.paths.len();
        self.moved_at = Instant::now();
        let Some(peer) = self.peers.get_mut(&0) else { return };
        let from = self.doors.sockets.bound(next);
        match peer.connection.migrate(from, server) {
            Ok(_) => {
                self.path = next;
                // The server migrates at a non-probing packet (RFC 9000, section 9.2), which a client that only
                // receives would not send.
                let _ = peer.connection.send_ack_eliciting();
                // Packets are padded until the path is validated.
                let _ = peer.connection.probe_path(from, server);
                record(json!({"event": "migration", "path": self.o.paths[next].0}));
            }
            Err(error) => eprintln!("quiche: migration to {}: {error}", self.o.paths[next].0),
        }
    }

    /// Connects to the upstream server for each new stream.
    fn take_streams(&mut self) -> Result<()> {
        if !self.is_server {
            return Ok(());
        }
        let upstream = self.o.upstream.context("--upstream is required")?;
        for (number, peer) in &mut self.peers {
            for stream in peer.new_streams() {
                let Some(socket) = self.doors.connect(upstream)? else {
                    peer.cancel(stream);
                    continue;
                };
                self.locals.push(Local::new(*number, Some(stream), socket));
            }
        }
        Ok(())
    }

    /// Moves bytes of all local connections. Returns whether any moved.
    fn pump(&mut self) -> bool {
        let mut moved = false;
        let Self { peers, locals, next_stream, is_server, .. } = self;
        locals.retain_mut(|local| {
            let Some(peer) = peers.get_mut(&local.connection) else { return true };
            if !peer.connection.is_established() && !peer.connection.is_in_early_data() {
                return true;
            }
            if !*is_server && local.stream.is_none() {
                // The first write, which may be empty, opens a stream.
                if peer.connection.stream_send(*next_stream, &[], false).is_err() {
                    return true;
                }
                local.stream = Some(*next_stream);
                *next_stream += 4;
            }
            let pumped = local.pump(peer);
            moved |= pumped != Pumped::Nothing;
            pumped != Pumped::Over
        });
        moved
    }

    /// Drops closed connections and their streams. The client ends with its connection.
    fn bury(&mut self) -> Result<()> {
        let closed: Vec<u64> = self.peers.iter().filter(|(_, peer)| peer.connection.is_closed()).map(|(n, _)| *n).collect();
        for number in closed {
            self.report();
            let reason = self.peers.remove(&number).map(|peer| peer.reason()).unwrap_or_default();
            self.of_cid.retain(|_, of| *of != number);
            self.locals.retain(|local| local.connection != number);
            if !self.is_server {
                record(json!({"event": "closed", "reason": reason}));
                bail!("the connection has ended: {reason}");
            }
        }
        Ok(())
    }

    fn report(&self) {
        let Some(peer) = self.peers.get(&0) else { return };
        for stats in peer.connection.path_stats() {
            let number = (0..self.o.paths.len()).find(|number| self.doors.sockets.bound(*number) == stats.local_addr);
            let Some(number) = number else { continue };
            // The crate does not export the type of this state.
            let state = match format!("{:?}", stats.validation_state).as_str() {
                _ if stats.active => "active",
                "Validated" => "standby",
                _ => "not validated",
            };
            record(json!({"event": "path", "name": self.o.paths[number].0, "state": state,
                          "bytes_sent": stats.sent_bytes, "bytes_received": stats.recv_bytes,
                          "srtt_us": stats.rtt.as_micros() as u64}));
        }
    }
}

/// Returns a connection for a client's first packet, and its connection ID. To an unsupported version, sends Version
/// Negotiation.
fn new_peer(
    sockets: &Sockets,
    config: &mut Config,
    header: &Header,
    info: RecvInfo,
) -> Option<(ConnectionId<'static>, Peer)> {
    if header.ty != Type::Initial {
        return None;
    }
    if !quiche::version_is_supported(header.version) {
        let mut out = [0; 256];
        let bytes = quiche::negotiate_version(&header.scid, &header.dcid, &mut out).ok()?;
        sockets.send(&out[..bytes], info.to, info.from);
        return None;
    }
    let id = random_cid();
    let connection = quiche::accept(&id, None, info.to, info.from, config).ok()?;
    Some((id, Peer::new(connection)))
}

fn main() -> Result<()> {
    let lock = include_str!("../Cargo.lock");
    railyard_relay::main("quiche", lock, OWN, |o, is_server| Relay::new(o, is_server)?.run())
}
