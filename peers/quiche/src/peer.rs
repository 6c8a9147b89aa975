//! One connection of quiche: its streams, and its packets, which are sent at the times of quiche's pacer.
use std::collections::HashSet;
use std::time::{Duration, Instant};

use quiche::{Connection, ConnectionId, Error, PathStats, RecvInfo, SendInfo, Shutdown};
use railyard_relay::doors::Sockets;
use railyard_relay::pump::Streams;
use ring::rand::{SecureRandom, SystemRandom};

pub const CID_BYTES: usize = 16;
const CANCELLED: u64 = 1; // application error code of a cancelled stream
const DATAGRAM_BYTES: usize = 1350;

pub fn random_cid() -> ConnectionId<'static> {
    let mut id = [0; CID_BYTES];
    SystemRandom::new().fill(&mut id).expect("the system gives random bytes");
    ConnectionId::from_vec(id.to_vec())
}

pub struct Peer {
    pub connection: Connection,
    pub heard_at: Instant,
    waiting: Option<SendInfo>, // send time and addresses of `datagram`; None: nothing waits
    datagram: Vec<u8>,
    streams: HashSet<u64>, // of the peer, returned by new_streams()
}

impl Peer {
    pub fn new(connection: Connection) -> Self {
        Self { connection, heard_at: Instant::now(), waiting: None, datagram: Vec::new(), streams: HashSet::new() }
    }

    pub fn receive(&mut self, datagram: &mut [u8], info: RecvInfo) {
        self.heard_at = Instant::now();
        let _ = self.connection.recv(datagram, info); // quiche drops invalid packets
    }

    /// Issues as many connection IDs as the peer allows, for migration. Returns the new ones.
    pub fn issue_cids(&mut self) -> Vec<ConnectionId<'static>> {
        let mut new = Vec::new();
        while self.connection.is_established() && self.connection.scids_left() > 0 {
            let mut token = [0; 16];
            SystemRandom::new().fill(&mut token).expect("the system gives random bytes");
            let id = random_cid();
            if self.connection.new_scid(&id, u128::from_be_bytes(token), false).is_err() {
                break;
            }
            new.push(id);
        }
        new
    }

    /// Returns the streams that the peer opened since the last call.
    pub fn new_streams(&mut self) -> Vec<u64> {
        let readable = self.connection.readable().filter(|id| id % 4 == 0);
        readable.filter(|id| self.streams.insert(*id)).collect()
    }

    /// Sends all packets that are due.
    pub fn flush(&mut self, sockets: &Sockets) {
        loop {
            let info = match self.waiting.take() {
                Some(info) => info,
                None => {
                    self.datagram.resize(DATAGRAM_BYTES, 0);
                    let Ok((bytes, info)) = self.connection.send(&mut self.datagram) else { return };
                    self.datagram.truncate(bytes);
                    info
                }
            };
            if info.at > Instant::now() || !sockets.send(&self.datagram, info.from, info.to) {
                self.waiting = Some(info);
                return;
            }
        }
    }

    /// Returns the latest time for the next call.
    pub fn wake_at(&self) -> Option<Instant> {
        let pacer = self.waiting.map(|info| info.at);
        [self.connection.timeout_instant(), pacer].into_iter().flatten().min()
    }

    pub fn on_timeout(&mut self) {
        if self.connection.timeout_instant().is_some_and(|at| at <= Instant::now()) {
            self.connection.on_timeout();
        }
    }

    /// Statistics of the path in use.
    pub fn active(&self) -> Option<PathStats> {
        self.connection.path_stats().find(|path| path.active)
    }

    pub fn reason(&self) -> String {
        let error = self.connection.peer_error().or(self.connection.local_error());
        match error {
            _ if self.connection.is_timed_out() => "idle timeout".into(),
            Some(error) => format!("error {} {}", error.error_code, String::from_utf8_lossy(&error.reason)),
            None => "the connection has ended".into(),
        }
    }
}

/// Returns the silence after which a path counts as lost: three probe timeouts (RFC 9002, section 6.2.1).
pub fn patience(path: &PathStats) -> Duration {
    const ACK_DELAY: Duration = Duration::from_millis(25);
    3 * (path.rtt + 4 * path.rttvar.max(Duration::from_millis(1)) + ACK_DELAY)
}

impl Streams for Peer {
    fn room(&mut self, stream: u64) -> Result<usize, ()> {
        self.connection.stream_capacity(stream).map_err(|_| ())
    }

    fn write(&mut self, stream: u64, bytes: &[u8], fin: bool) -> Result<usize, ()> {
        match self.connection.stream_send(stream, bytes, fin) {
            Ok(n) => Ok(n),
            Err(Error::Done) => Ok(0),
            Err(_) => Err(()),
        }
    }

    fn read(&mut self, stream: u64, into: &mut [u8]) -> Result<Option<(usize, bool)>, ()> {
        if !self.connection.stream_readable(stream) {
            return Ok(None);
        }
        match self.connection.stream_recv(stream, into) {
            Ok(read) => Ok(Some(read)),
            Err(Error::Done) => Ok(None),
            Err(_) => Err(()),
        }
    }

    fn cancel(&mut self, stream: u64) {
        let _ = self.connection.stream_shutdown(stream, Shutdown::Write, CANCELLED);
        let _ = self.connection.stream_shutdown(stream, Shutdown::Read, CANCELLED);
    }
}
