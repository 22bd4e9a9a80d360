//! Messages over standard input and output: a header with a length, then JSON. What is no message is answered with an error,
//! and the next one is read; lengths are bounded before anything is set aside for them.

use lsp_server::{Connection, Message};
use serde_json::{Value, json};
use std::io::{self, BufRead, Read, Write};
use std::thread::JoinHandle;

/// The longest message, in bytes: texts of many megabytes fit.
const LONGEST: u64 = 256 << 20;
/// The longest line of a header.
const HEADER: u64 = 8 << 10;
/// JSON-RPC 2.0, 5.1.
const NO_JSON: i32 = -32700;
const NO_REQUEST: i32 = -32600;

/// The server's end of standard input and output, and the thread that writes: it ends when that end is dropped.
pub fn stdio() -> io::Result<(Connection, JoinHandle<()>)> {
    let (server, client) = Connection::memory();
    let Connection { sender, receiver } = client;
    std::thread::Builder::new().name("lsp input".into()).spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let message = match body(&mut input) {
                Ok(Some(Body::Text(text))) => message(&text),
                Ok(Some(Body::TooLong(length))) => {
                    let text = format!("a message of {length} bytes: {LONGEST} are the most");
                    Err(failure(&Value::Null, NO_REQUEST, &text))
                }
                Ok(None) => return,
                Err(e) => {
                    // Where the next message begins is not known.
                    eprintln!("error[E0706]: the client does not speak the language server protocol: {e}");
                    return;
                }
            };
            let sent = match message {
                Ok(message) => {
                    let last = matches!(&message, Message::Notification(n) if n.method == "exit");
                    sender.send(message).is_ok() && !last
                }
                Err(answer) => write(&answer).is_ok(),
            };
            if !sent {
                return;
            }
        }
    })?;
    let writer = std::thread::Builder::new().name("lsp output".into()).spawn(move || {
        for message in receiver {
            // A client that is gone has no use for it.
            if message.write(&mut io::stdout().lock()).is_err() {
                return;
            }
        }
    })?;
    Ok((server, writer))
}

enum Body {
    Text(Vec<u8>),
    /// It was passed over.
    TooLong(u64),
}

/// The next body; `None` at the end of the input.
fn body(input: &mut impl BufRead) -> io::Result<Option<Body>> {
    let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut length = None;
    let mut first = true;
    loop {
        let mut line = vec![];
        input.by_ref().take(HEADER).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return if first { Ok(None) } else { Err(wrong("the input ends in a header".into())) };
        }
        first = false;
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(wrong(format!("`{}` is no line of a header", line.chars().take(80).collect::<String>())));
        };
        if name.trim().eq_ignore_ascii_case("content-length") {
            let number = value.trim().parse::<u64>();
            length = Some(number.map_err(|_| wrong(format!("`{}` is no length", value.trim())))?);
        }
    }
    let length = length.ok_or_else(|| wrong("a header without Content-Length".into()))?;
    if length > LONGEST {
        io::copy(&mut input.take(length), &mut io::sink())?;
        return Ok(Some(Body::TooLong(length)));
    }
    let mut bytes = vec![];
    if input.take(length).read_to_end(&mut bytes)? as u64 != length {
        return Err(wrong(format!("the input ends in a message of {length} bytes")));
    }
    Ok(Some(Body::Text(bytes)))
}

/// The message of a body, or the answer to what is none.
fn message(text: &[u8]) -> Result<Message, Value> {
    let value: Value =
        serde_json::from_slice(text).map_err(|e| failure(&Value::Null, NO_JSON, &format!("no JSON: {e}")))?;
    let id = value.get("id").cloned().unwrap_or(Value::Null);
    // With another number it would pass for a notification.
    if !id.is_null() && !id.is_string() && id.as_i64().is_none_or(|n| i32::try_from(n).is_err()) {
        return Err(failure(&id, NO_REQUEST, "an id is a string or a number of 32 bits"));
    }
    serde_json::from_value(value).map_err(|e| failure(&id, NO_REQUEST, &format!("no message: {e}")))
}

fn failure(id: &Value, code: i32, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})
}

fn write(answer: &Value) -> io::Result<()> {
    let (text, mut out) = (answer.to_string(), io::stdout().lock());
    write!(out, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    out.flush()
}
