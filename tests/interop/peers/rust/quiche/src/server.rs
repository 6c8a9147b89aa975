use std::collections::HashMap;
use std::net::{Ipv6Addr, SocketAddr};

use anyhow::Result;
use contract::{CERTIFICATE, Job, KEY};
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use quiche::h3::NameValue;
use quiche::{Connection, ConnectionId, Header, PathEvent, RecvInfo, h3};

const TOKEN_MARK: &[u8] = b"quiche";

struct Answer {
    body: Option<Vec<u8>>, // None: there is no such file
    sent: usize,
    head_sent: bool,
}

struct Session {
    connection: Connection,
    first_id: ConnectionId<'static>, // that the client chose
    http: Option<h3::Connection>,
    requests: HashMap<u64, Vec<u8>>,
    answers: HashMap<u64, Answer>,
}

impl Session {
    fn has_id(&self, id: &ConnectionId) -> bool {
        self.first_id == *id || self.connection.source_ids().any(|own| own == id)
    }

    fn answer(&mut self, stream: u64, path: Option<&str>) {
        let body = path.and_then(contract::file);
        self.answers.insert(stream, Answer { body, sent: 0, head_sent: false });
    }

    fn take_hq(&mut self) {
        let mut part = [0; 4096];
        for stream in self.connection.readable() {
            while let Ok((length, end)) = self.connection.stream_recv(stream, &mut part) {
                let request = self.requests.entry(stream).or_default();
                request.extend_from_slice(&part[..length]);
                if end {
                    let request = self.requests.remove(&stream).unwrap_or_default();
                    self.answer(stream, contract::path_of(&request));
                }
            }
        }
    }

    fn take_h3(&mut self) -> Result<()> {
        if self.http.is_none() {
            self.http = Some(h3::Connection::with_transport(&mut self.connection, &h3::Config::new()?)?);
        }
        while let Some(Ok((stream, event))) = self.http.as_mut().map(|http| http.poll(&mut self.connection)) {
            if let h3::Event::Headers { list, .. } = event {
                let path = list.iter().find(|field| field.name() == b":path").map(|field| field.value().to_vec());
                self.answer(stream, path.as_deref().and_then(|path| std::str::from_utf8(path).ok()));
            }
        }
        Ok(())
    }

    /// quiche leaves it to the application to validate a client's new address.
    fn probe_new_paths(&mut self) {
        while let Some(event) = self.connection.path_event_next() {
            if let PathEvent::New(local, peer) = event {
                let _ = self.connection.probe_path(local, peer); // without an ID for it, the path stays unused
            }
        }
    }

    /// Takes requests and sends as much of the answers as there is room for.
    fn step(&mut self) -> Result<()> {
        if !self.connection.is_established() && !self.connection.is_in_early_data() {
            return Ok(());
        }
        self.probe_new_paths();
        if self.connection.application_proto() == b"h3" { self.take_h3()? } else { self.take_hq() }
        let (connection, http) = (&mut self.connection, &mut self.http);
        self.answers.retain(|stream, answer| !send(connection, http.as_mut(), *stream, answer));
        super::offer_ids(connection);
        Ok(())
    }
}

/// True: all is sent, or the stream is gone.
fn send(connection: &mut Connection, http: Option<&mut h3::Connection>, stream: u64, answer: &mut Answer) -> bool {
    let status = if answer.body.is_some() { "200" } else { "404" };
    let body = answer.body.as_deref().unwrap_or_default();
    let sent = match http {
        None if answer.body.is_none() => {
            return connection.stream_shutdown(stream, quiche::Shutdown::Write, 1).is_ok();
        }
        None => connection.stream_send(stream, &body[answer.sent..], true).map_err(h3::Error::from),
        Some(http) => {
            if !answer.head_sent {
                let fields = [h3::Header::new(b":status", status.as_bytes())];
                match http.send_response(connection, stream, &fields, false) {
                    Ok(()) => answer.head_sent = true,
                    Err(error) => return !matches!(error, h3::Error::StreamBlocked | h3::Error::Done),
                }
            }
            http.send_body(connection, stream, &body[answer.sent..], true)
        }
    };
    match sent {
        Ok(length) => {
            answer.sent += length;
            answer.sent == body.len()
        }
        Err(error) => !matches!(error, h3::Error::Done | h3::Error::TransportError(quiche::Error::Done)),
    }
}

struct Endpoint {
    sockets: Vec<UdpSocket>,
    config: quiche::Config,
    retry: bool,
    sessions: Vec<Session>,
}

impl Endpoint {
    fn send_to(&self, data: &[u8], to: SocketAddr) {
        let _ = self.sockets[0].send_to(data, to); // what is not sent is lost
    }

    /// The session of a client's first packet; None: it was answered without one.
    fn open(&mut self, header: &Header, info: RecvInfo) -> Result<Option<usize>> {
        let mut out = [0; super::DATAGRAM_BYTES];
        if !quiche::version_is_supported(header.version) {
            let length = quiche::negotiate_version(&header.scid, &header.dcid, &mut out)?;
            self.send_to(&out[..length], info.from);
            return Ok(None);
        }
        if header.ty != quiche::Type::Initial {
            return Ok(None);
        }
        let token = header.token.clone().unwrap_or_default();
        if self.retry && token.is_empty() {
            let token = [TOKEN_MARK, &header.dcid].concat();
            let length =
                quiche::retry(&header.scid, &header.dcid, &super::new_id(), &token, header.version, &mut out)?;
            self.send_to(&out[..length], info.from);
            return Ok(None);
        }
        let original = token.strip_prefix(TOKEN_MARK).filter(|_| self.retry).map(ConnectionId::from_ref);
        let own = if original.is_some() { header.dcid.clone().into_owned() } else { super::new_id() };
        let mut connection = quiche::accept(&own, original.as_ref(), info.to, info.from, &mut self.config)?;
        super::log_keys(&mut connection)?;
        self.sessions.push(Session {
            connection,
            first_id: header.dcid.clone().into_owned(),
            http: None,
            requests: HashMap::new(),
            answers: HashMap::new(),
        });
        Ok(Some(self.sessions.len() - 1))
    }

    fn take(&mut self, data: &mut [u8], info: RecvInfo) -> Result<()> {
        let header = Header::from_slice(data, super::CID_BYTES)?;
        let known = self.sessions.iter().position(|session| session.has_id(&header.dcid));
        let index = if known.is_some() { known } else { self.open(&header, info)? };
        if let Some(index) = index {
            let session = &mut self.sessions[index];
            let _ = session.connection.recv(data, info); // a datagram that is not of the connection changes nothing
            session.step()?;
        }
        Ok(())
    }
}

pub fn serve(job: &Job) -> Result<()> {
    let mut config = super::config(&[b"h3", b"hq-interop"])?;
    config.load_cert_chain_from_pem_file(CERTIFICATE)?;
    config.load_priv_key_from_pem_file(KEY)?;
    let mut poll = Poll::new()?;
    let mut socket = UdpSocket::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, contract::PORT)))?;
    poll.registry().register(&mut socket, Token(0), Interest::READABLE)?;
    let mut endpoint = Endpoint { sockets: vec![socket], config, retry: job.is("retry"), sessions: Vec::new() };
    let (mut events, mut buffer) = (Events::with_capacity(16), vec![0; 65_535]);
    loop {
        poll.poll(&mut events, super::soonest(endpoint.sessions.iter().map(|s| s.connection.timeout())))?;
        while let Some((length, info)) = super::receive(&endpoint.sockets[0], &mut buffer) {
            if let Err(error) = endpoint.take(&mut buffer[..length], info) {
                eprintln!("quiche: {error:#}");
            }
        }
        for session in &mut endpoint.sessions {
            if session.connection.timeout().is_some_and(|left| left.is_zero()) {
                session.connection.on_timeout();
            }
            session.step()?;
            super::flush(&mut session.connection, &endpoint.sockets)?;
        }
        endpoint.sessions.retain(|session| !session.connection.is_closed());
    }
}
