//! A local connection and the stream that carries it.
use std::io::{self, Read, Write};
use std::net::Shutdown;

use bytes::Bytes;
use mio::net::{TcpStream, UnixStream};
use tquic::Connection;
use tquic::error::Error;

const BUFFER_BYTES: usize = 16384;
const CANCELLED: u64 = 1; // application error code of a stream that was given up

pub enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.read(into),
            Self::Tcp(socket) => socket.read(into),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.write(bytes),
            Self::Tcp(socket) => socket.write(bytes),
        }
    }

    fn end(&self) -> io::Result<()> {
        match self {
            Self::Unix(socket) => socket.shutdown(Shutdown::Write),
            Self::Tcp(socket) => socket.shutdown(Shutdown::Write),
        }
    }
}

/// True: waits. A TCP socket that is still connecting is not connected.
fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected | io::ErrorKind::Interrupted)
}

/// One direction.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    is_at_end: bool,   // nothing follows `bytes`
    has_passed: bool,  // the end was passed on
}

pub struct Local {
    pub connection: u64,     // index in the endpoint
    pub stream: Option<u64>, // None: waits for the handshake
    socket: Socket,
    to_stream: Buffer,
    to_socket: Buffer,
    wants: Option<(bool, bool)>, // to read, to write: as tquic was told last
}

/// Gives a stream up in both directions.
pub fn cancel(connection: &mut Connection, stream: u64) {
    let _ = connection.stream_shutdown(stream, tquic::Shutdown::Write, CANCELLED);
    let _ = connection.stream_shutdown(stream, tquic::Shutdown::Read, CANCELLED);
}

/// What became of a local connection.
#[derive(PartialEq)]
pub enum Pumped {
    Nothing,
    Something,
    Over,
}

impl Local {
    pub fn new(connection: u64, stream: Option<u64>, socket: Socket) -> Self {
        Self { connection, stream, socket, to_stream: Buffer::default(), to_socket: Buffer::default(), wants: None }
    }

    /// Moves what can be moved. After `Over` the local connection is to be dropped.
    pub fn pump(&mut self, connection: &mut Connection) -> Pumped {
        let Some(stream) = self.stream else { return Pumped::Nothing };
        match self.pump_both(connection, stream) {
            Ok(_) if self.to_stream.has_passed && self.to_socket.has_passed => Pumped::Over,
            Ok(true) => Pumped::Something,
            Ok(false) => Pumped::Nothing,
            Err(()) => {
                cancel(connection, stream);
                Pumped::Over
            }
        }
    }

    /// Whether anything moved. An error ends both directions.
    fn pump_both(&mut self, connection: &mut Connection, stream: u64) -> Result<bool, ()> {
        let moved = [
            self.read_socket()?,
            self.write_stream(connection, stream)?,
            self.read_stream(connection, stream)?,
            self.write_socket()?,
        ];
        self.tell_wants(connection, stream);
        Ok(moved.contains(&true))
    }

    /// tquic wakes up every millisecond for a stream that is wanted and ready, and after each call about a stream. So
    /// it is told only what is new, and asked only for what is there.
    fn tell_wants(&mut self, connection: &mut Connection, stream: u64) {
        let wants = (self.to_socket.bytes.len() < BUFFER_BYTES, !self.to_stream.bytes.is_empty());
        if self.wants != Some(wants) {
            let _ = connection.stream_want_read(stream, wants.0);
            let _ = connection.stream_want_write(stream, wants.1);
            self.wants = Some(wants);
        }
    }

    fn read_socket(&mut self) -> Result<bool, ()> {
        let buffer = &mut self.to_stream;
        let from = buffer.bytes.len();
        if buffer.is_at_end || from >= BUFFER_BYTES {
            return Ok(false);
        }
        buffer.bytes.resize(BUFFER_BYTES, 0);
        let read = self.socket.read(&mut buffer.bytes[from..]);
        buffer.bytes.truncate(from + read.as_ref().unwrap_or(&0));
        match read {
            Ok(n) => buffer.is_at_end = n == 0,
            Err(error) if waits(&error) => return Ok(false),
            Err(_) => return Err(()),
        }
        Ok(true)
    }

    fn write_stream(&mut self, connection: &mut Connection, stream: u64) -> Result<bool, ()> {
        let buffer = &mut self.to_stream;
        if buffer.has_passed {
            return Ok(false);
        }
        // An error: the peer has stopped the stream, which may be gone by now. A write would not tell that.
        let room = connection.stream_capacity(stream).map_err(|_| ())?;
        let all = buffer.bytes.len();
        if all == 0 && !buffer.is_at_end || all > 0 && room == 0 {
            return Ok(false);
        }
        match connection.stream_write(stream, Bytes::copy_from_slice(&buffer.bytes), buffer.is_at_end) {
            Ok(n) => {
                buffer.bytes.drain(..n);
                buffer.has_passed = buffer.is_at_end && n == all;
                Ok(n > 0 || buffer.has_passed)
            }
            Err(Error::Done) => Ok(false),
            Err(_) => Err(()),
        }
    }

    fn read_stream(&mut self, connection: &mut Connection, stream: u64) -> Result<bool, ()> {
        let buffer = &mut self.to_socket;
        let from = buffer.bytes.len();
        if buffer.is_at_end || from >= BUFFER_BYTES || !connection.stream_readable(stream) {
            return Ok(false);
        }
        buffer.bytes.resize(BUFFER_BYTES, 0);
        let read = connection.stream_read(stream, &mut buffer.bytes[from..]);
        buffer.bytes.truncate(from + read.as_ref().map_or(0, |(n, _)| *n));
        match read {
            Ok((_, fin)) => buffer.is_at_end = fin,
            Err(Error::Done) => return Ok(false),
            Err(_) => return Err(()),
        }
        Ok(true)
    }

    fn write_socket(&mut self) -> Result<bool, ()> {
        let buffer = &mut self.to_socket;
        let mut moved = false;
        while !buffer.bytes.is_empty() {
            match self.socket.write(&buffer.bytes) {
                Ok(n) => buffer.bytes.drain(..n),
                Err(error) if waits(&error) => return Ok(moved),
                Err(_) => return Err(()),
            };
            moved = true;
        }
        if buffer.is_at_end && !buffer.has_passed {
            self.socket.end().map_err(|_| ())?;
            buffer.has_passed = true;
            moved = true;
        }
        Ok(moved)
    }
}
