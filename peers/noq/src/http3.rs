//! The part of HTTP/3 (RFC 9114) and of QPACK's static table (RFC 9204) that one GET with a range needs.
use anyhow::{Context, Result, bail};
use noq::{Connection, RecvStream, SendStream};

const DATA: u64 = 0x00;
const HEADERS: u64 = 0x01;
const SETTINGS: u64 = 0x04;

pub struct Request {
    pub path: String,
    pub range: Option<(usize, usize)>,
}

/// Opens the control stream with empty SETTINGS. It must stay open as long as the connection.
pub async fn open_control(connection: &Connection) -> Result<SendStream> {
    let mut control = connection.open_uni().await?;
    control.write_all(&[0x00, SETTINGS as u8, 0x00]).await?;
    Ok(control)
}

fn put_varint(out: &mut Vec<u8>, v: u64) {
    match v {
        0..=63 => out.push(v as u8),
        64..=16383 => out.extend_from_slice(&(v as u16 | 0x4000).to_be_bytes()),
        16384..=1073741823 => out.extend_from_slice(&(v as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(v | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Writes an integer of RFC 7541 section 5.1 with a prefix of `bits` after the pattern's bits.
fn put_prefixed(out: &mut Vec<u8>, pattern: u8, bits: u32, mut v: usize) {
    let most = (1usize << bits) - 1;
    if v < most {
        out.push(pattern | v as u8);
        return;
    }
    out.push(pattern | most as u8);
    v -= most;
    while v >= 128 {
        out.push((v % 128) as u8 | 0x80);
        v /= 128;
    }
    out.push(v as u8);
}

fn get_prefixed(data: &[u8], at: &mut usize, bits: u32) -> Result<usize> {
    let most = (1usize << bits) - 1;
    let mut v = usize::from(*data.get(*at).context("field section ends early")?) & most;
    *at += 1;
    let mut shift = 0;
    while v >= most {
        let byte = usize::from(*data.get(*at).context("field section ends early")?);
        *at += 1;
        v += (byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 || shift > 28 {
            break;
        }
    }
    Ok(v)
}

fn get_string(data: &[u8], at: &mut usize, bits: u32) -> Result<Vec<u8>> {
    let is_huffman = data.get(*at).context("field section ends early")? >> bits & 1 == 1;
    let len = get_prefixed(data, at, bits)?;
    let raw = data.get(*at..*at + len).context("field section ends early")?;
    *at += len;
    if !is_huffman {
        return Ok(raw.to_vec());
    }
    let mut text = Vec::new();
    httlib_huffman::decode(raw, &mut text, httlib_huffman::DecoderSpeed::FourBits)?;
    Ok(text)
}

fn put_field(out: &mut Vec<u8>, static_name: usize, value: &str) {
    put_prefixed(out, 0x50, 4, static_name);
    put_prefixed(out, 0x00, 7, value.len());
    out.extend_from_slice(value.as_bytes());
}

fn headers_frame(fields: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    put_varint(&mut frame, HEADERS);
    put_varint(&mut frame, fields.len() as u64);
    frame.extend_from_slice(fields);
    frame
}

pub fn request(authority: &str, path: &str) -> Vec<u8> {
    let mut fields = vec![0, 0];
    put_prefixed(&mut fields, 0xc0, 6, 17); // :method GET
    put_prefixed(&mut fields, 0xc0, 6, 23); // :scheme https
    put_field(&mut fields, 0, authority);
    put_field(&mut fields, 1, path);
    headers_frame(&fields)
}

pub fn response_head(range: Option<(usize, usize)>, total: usize, len: usize) -> Vec<u8> {
    let mut fields = vec![0, 0];
    put_prefixed(&mut fields, 0xc0, 6, if range.is_some() { 65 } else { 25 }); // :status 206, 200
    put_field(&mut fields, 4, &len.to_string()); // content-length
    if let Some((first, last)) = range {
        put_prefixed(&mut fields, 0x20, 3, "content-range".len());
        fields.extend_from_slice(b"content-range");
        let value = format!("bytes {first}-{last}/{total}");
        put_prefixed(&mut fields, 0x00, 7, value.len());
        fields.extend_from_slice(value.as_bytes());
    }
    let mut head = headers_frame(&fields);
    put_varint(&mut head, DATA);
    put_varint(&mut head, len as u64);
    head
}

/// Reads frames, whose payload may come in many pieces. Keeps bytes of the last piece for the next frame.
pub struct Frames {
    stream: RecvStream,
    held: Vec<u8>,
    at: usize,
}

impl Frames {
    pub fn of(stream: RecvStream) -> Self {
        Self { stream, held: Vec::new(), at: 0 }
    }

    async fn more(&mut self) -> Result<bool> {
        if self.at < self.held.len() {
            return Ok(true);
        }
        let mut piece = vec![0; 65536];
        let Some(n) = self.stream.read(&mut piece).await? else { return Ok(false) };
        piece.truncate(n);
        (self.held, self.at) = (piece, 0);
        Ok(true)
    }

    async fn byte(&mut self) -> Result<Option<u8>> {
        while self.more().await? {
            if let Some(byte) = self.held.get(self.at) {
                self.at += 1;
                return Ok(Some(*byte));
            }
        }
        Ok(None)
    }

    async fn varint(&mut self) -> Result<Option<u64>> {
        let Some(first) = self.byte().await? else { return Ok(None) };
        let mut v = u64::from(first & 0x3f);
        for _ in 1..1 << (first >> 6) {
            v = v << 8 | u64::from(self.byte().await?.context("stream ends within a frame")?);
        }
        Ok(Some(v))
    }

    /// Returns type and length of the next frame; None: end of the stream.
    pub async fn next(&mut self) -> Result<Option<(u64, usize)>> {
        let Some(kind) = self.varint().await? else { return Ok(None) };
        let len = self.varint().await?.context("stream ends within a frame")?;
        Ok(Some((kind, usize::try_from(len)?)))
    }

    /// Returns 1 to `len` bytes of the frame's payload.
    pub async fn some(&mut self, len: usize) -> Result<Vec<u8>> {
        if !self.more().await? {
            bail!("stream ends within a frame");
        }
        let n = len.min(self.held.len() - self.at);
        let part = self.held[self.at..self.at + n].to_vec();
        self.at += n;
        Ok(part)
    }

    pub async fn whole(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        while all.len() < len {
            all.extend(self.some(len - all.len()).await?);
        }
        Ok(all)
    }

    /// Passes every piece of the response's body to `take`.
    pub async fn body(&mut self, mut take: impl FnMut(&[u8])) -> Result<()> {
        while let Some((kind, mut left)) = self.next().await? {
            while left > 0 {
                let part = self.some(left).await?;
                left -= part.len();
                if kind == DATA {
                    take(&part);
                }
            }
        }
        Ok(())
    }

    pub async fn request(&mut self) -> Result<Request> {
        while let Some((kind, len)) = self.next().await? {
            let payload = self.whole(len).await?;
            if kind == HEADERS {
                return parse_request(&payload);
            }
        }
        bail!("no HEADERS on a request stream")
    }
}

fn parse_range(text: &str) -> Option<(usize, usize)> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

fn parse_request(data: &[u8]) -> Result<Request> {
    let mut request = Request { path: "/".into(), range: None };
    let mut at = 0;
    get_prefixed(data, &mut at, 8)?;
    get_prefixed(data, &mut at, 7)?;
    while at < data.len() {
        let first = data[at];
        let (index, name) = if first & 0x80 != 0 {
            get_prefixed(data, &mut at, 6)?;
            continue;
        } else if first & 0x40 != 0 {
            (get_prefixed(data, &mut at, 4)?, Vec::new())
        } else if first & 0x20 != 0 {
            (usize::MAX, get_string(data, &mut at, 3)?)
        } else {
            bail!("a field of the dynamic table, which was never allowed");
        };
        let value = String::from_utf8_lossy(&get_string(data, &mut at, 7)?).into_owned();
        if index == 1 || name == b":path" {
            request.path = value;
        } else if index == 55 || name == b"range" {
            request.range = parse_range(&value);
        }
    }
    Ok(request)
}
