use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use contract::{Job, Url};
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use quiche::{Connection, h3};

/// The client changes its port while a file is on its way.
const UNDER_WAY: Duration = Duration::from_millis(500);

struct Fetch<'a> {
    job: &'a Job,
    connection: Connection,
    http: Option<h3::Connection>,
    next_stream: u64,
    waiting: Vec<Url>, // not asked for yet
    bodies: HashMap<u64, (Url, Vec<u8>)>,
}

impl Fetch<'_> {
    /// Asks for as many as the server allows streams.
    fn ask(&mut self) -> Result<()> {
        if self.job.http3 && self.http.is_none() {
            self.http = Some(h3::Connection::with_transport(&mut self.connection, &h3::Config::new()?)?);
        }
        while let Some(url) = self.waiting.last() {
            if self.connection.peer_streams_left_bidi() == 0 {
                return Ok(());
            }
            let stream = match &mut self.http {
                Some(http) => {
                    let fields = [(":method", "GET"), (":scheme", "https"), (":authority", &url.host), (":path", &url.path)]
                        .map(|(name, value)| h3::Header::new(name.as_bytes(), value.as_bytes()));
                    match http.send_request(&mut self.connection, &fields, true) {
                        Ok(stream) => stream,
                        Err(h3::Error::StreamBlocked) => return Ok(()),
                        Err(error) => return Err(error.into()),
                    }
                }
                None => {
                    let stream = self.next_stream;
                    self.next_stream += 4; // RFC 9000 section 2.1
                    self.connection.stream_send(stream, &contract::request_for(&url.path), true)?;
                    stream
                }
            };
            self.bodies.insert(stream, (self.waiting.remove(self.waiting.len() - 1), Vec::new()));
        }
        Ok(())
    }

    fn take(&mut self) -> Result<()> {
        let mut part = vec![0; 65_536];
        let mut ended = Vec::new();
        match &mut self.http {
            Some(http) => {
                while let Ok((stream, event)) = http.poll(&mut self.connection) {
                    if matches!(event, h3::Event::Data) {
                        while let Ok(length) = http.recv_body(&mut self.connection, stream, &mut part) {
                            if let Some((_, body)) = self.bodies.get_mut(&stream) {
                                body.extend_from_slice(&part[..length]);
                            }
                        }
                    } else if matches!(event, h3::Event::Finished) {
                        ended.push(stream);
                    }
                }
            }
            None => {
                for stream in self.connection.readable() {
                    while let Ok((length, end)) = self.connection.stream_recv(stream, &mut part) {
                        if let Some((_, body)) = self.bodies.get_mut(&stream) {
                            body.extend_from_slice(&part[..length]);
                        }
                        if end {
                            ended.push(stream);
                        }
                    }
                }
            }
        }
        for stream in ended {
            if let Some((url, body)) = self.bodies.remove(&stream) {
                url.save(&body)?;
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.bodies.is_empty()
    }
}

fn open_socket(poll: &Poll, sockets: &mut Vec<UdpSocket>, server: SocketAddr) -> Result<SocketAddr> {
    let any: SocketAddr =
        if server.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let mut socket = UdpSocket::bind(any)?;
    poll.registry().register(&mut socket, Token(sockets.len()), Interest::READABLE)?;
    let local = socket.local_addr()?;
    sockets.push(socket);
    Ok(local)
}

/// Fetches the files in one connection; the session, to resume it.
fn get_in_a_connection(job: &Job, urls: &[Url], session: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
    let server = urls[0].address()?;
    let mut config = super::config(&[job.alpn().as_bytes()])?;
    let mut poll = Poll::new()?;
    let mut sockets = Vec::new();
    let local = open_socket(&poll, &mut sockets, server)?;
    let connection = quiche::connect(Some(&urls[0].host), &super::new_id(), local, server, &mut config)?;
    let mut fetch = Fetch { job, connection, http: None, next_stream: 0, waiting: urls.to_vec(), bodies: HashMap::new() };
    super::log_keys(&mut fetch.connection)?;
    if let Some(session) = session {
        fetch.connection.set_session(session)?;
    }
    let (mut events, mut buffer) = (Events::with_capacity(16), vec![0; 65_535]);
    let began = Instant::now();
    while !fetch.connection.is_closed() {
        super::flush(&mut fetch.connection, &sockets)?;
        if fetch.connection.is_established() || (job.is("zerortt") && fetch.connection.is_in_early_data()) {
            super::offer_ids(&mut fetch.connection);
            fetch.ask()?;
            fetch.take()?;
            let may_move = began.elapsed() > UNDER_WAY && fetch.connection.available_dcids() > 0;
            if job.is("connectionmigration") && sockets.len() == 1 && may_move {
                let other = open_socket(&poll, &mut sockets, server)?;
                fetch.connection.migrate_source(other)?;
            }
            if fetch.is_done() && fetch.connection.is_established() {
                let _ = fetch.connection.close(true, if job.http3 { 0x100 } else { 0 }, b"");
            }
            super::flush(&mut fetch.connection, &sockets)?;
        }
        if fetch.is_done() {
            break;
        }
        poll.poll(&mut events, fetch.connection.timeout())?;
        if events.is_empty() {
            fetch.connection.on_timeout();
        }
        for socket in &sockets {
            while let Some((length, info)) = super::receive(socket, &mut buffer) {
                let _ = fetch.connection.recv(&mut buffer[..length], info);
            }
        }
    }
    ensure!(fetch.is_done(), "the connection ended with {:?}", fetch.connection.peer_error());
    ensure!(session.is_none() || fetch.connection.is_resumed(), "the session was not resumed");
    Ok(fetch.connection.session().map(<[u8]>::to_vec))
}

pub fn get(job: &Job) -> Result<()> {
    let mut session = None;
    for urls in &job.connections {
        let resumes = job.is("resumption") || job.is("zerortt");
        let fresh = get_in_a_connection(job, urls, session.as_deref().filter(|_| resumes))?;
        session = fresh;
    }
    Ok(())
}
