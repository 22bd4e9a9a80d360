//! The sockets of a kernel, on a thread of their own: the only place that is asynchronous.

use super::answers;
use crate::repl::interrupts::Interrupts;
use jupyter_protocol::messaging::{
    Header, InterruptReply, JupyterMessage, JupyterMessageContent as Content, ShutdownReply, Status, StreamContent,
    UnknownMessage,
};
use jupyter_protocol::{ConnectionInfo, Transport};
use jupyter_zmq_client::{
    Connection, KernelHeartbeatConnection, KernelIoPubConnection, RawMessage, RouterRecvConnection,
    RouterSendConnection, RuntimeError, create_kernel_control_connection, create_kernel_heartbeat_connection,
    create_kernel_iopub_connection, create_kernel_shell_connection, create_kernel_stdin_connection,
};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use zeromq::{SocketRecv, SocketSend};

/// Who is to get a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    /// All clients.
    All,
    /// The one that asked, on the shell channel.
    Shell,
    /// The same on the control channel.
    Control,
    /// Nobody: it was the last one.
    Nobody,
}

/// What the session is asked.
#[derive(Debug)]
pub enum Asked {
    Message(Box<JupyterMessage>),
    /// What is signed and no request that can be answered, with the reason.
    Wrong(Box<JupyterMessage>, String),
    Shutdown,
}

/// A session that was told to end and does not within this time is ended.
const PATIENCE: Duration = Duration::from_secs(3);
/// After an error of a socket: a client that is gone for good must not keep a core busy.
const PAUSE: Duration = Duration::from_millis(10);

/// Reads the file that says where to listen.
///
/// # Errors
/// In words, for what is no such file, and for places that other machines reach.
pub fn connection(path: &Path) -> Result<ConnectionInfo, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
    let info: ConnectionInfo =
        serde_json::from_str(&text).map_err(|e| format!("{} is no connection file: {e}", path.display()))?;
    if info.signature_scheme != "hmac-sha256" {
        return Err(format!("messages are signed with hmac-sha256, not with `{}`", info.signature_scheme));
    }
    let ip = info.ip.parse::<IpAddr>();
    if info.transport == Transport::TCP && !ip.is_ok_and(|ip| ip.is_loopback()) {
        return Err(format!("a kernel listens on this machine only (127.0.0.1), not on `{}`", info.ip));
    }
    Ok(info)
}

/// Listens, on a thread of its own. Returns when all sockets are there.
///
/// # Errors
/// In words, where a port is taken.
pub fn listen(
    info: ConnectionInfo,
    asked: mpsc::Sender<Asked>,
    answers: UnboundedReceiver<(To, JupyterMessage)>,
    own: UnboundedSender<(To, JupyterMessage)>,
    interrupts: Interrupts,
) -> Result<std::thread::JoinHandle<()>, String> {
    let (ready, is_ready) = mpsc::channel();
    let work = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(e) => return drop(ready.send(Err(e.to_string()))),
        };
        runtime.block_on(async {
            match Sockets::bind(&info).await {
                Ok(sockets) => {
                    let _ = ready.send(Ok(()));
                    sockets.serve(&asked, answers, &own, &interrupts).await;
                }
                Err(e) => _ = ready.send(Err(e.to_string())),
            }
        });
    };
    let thread = std::thread::Builder::new().name("sockets".into()).spawn(work);
    let thread = thread.map_err(|e| format!("a thread cannot be had: {e}"))?;
    match is_ready.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(why)) => Err(format!("the kernel cannot listen where the connection file says: {why}")),
        Err(_) => Err("the thread of the sockets ended".into()),
    }
}

struct Sockets {
    shell: (RouterSendConnection, RouterRecvConnection),
    control: (RouterSendConnection, RouterRecvConnection),
    iopub: KernelIoPubConnection,
    stdin: jupyter_zmq_client::KernelStdinConnection,
    heartbeat: KernelHeartbeatConnection,
}

impl Sockets {
    async fn bind(info: &ConnectionInfo) -> Result<Sockets, RuntimeError> {
        let session = JupyterMessage::new(Status::starting(), None).header.session;
        Ok(Sockets {
            shell: create_kernel_shell_connection(info, &session).await?.split(),
            control: create_kernel_control_connection(info, &session).await?.split(),
            iopub: create_kernel_iopub_connection(info, &session).await?,
            stdin: create_kernel_stdin_connection(info, &session).await?,
            heartbeat: create_kernel_heartbeat_connection(info).await?,
        })
    }

    /// Works until the session has no more to say.
    async fn serve(
        self,
        asked: &mpsc::Sender<Asked>,
        answers: UnboundedReceiver<(To, JupyterMessage)>,
        own: &UnboundedSender<(To, JupyterMessage)>,
        interrupts: &Interrupts,
    ) {
        let Sockets { shell, control, iopub, stdin, heartbeat } = self;
        tokio::select! {
            () = send(answers, iopub, shell.0, control.0) => {}
            () = read_shell(shell.1, asked) => {}
            () = read_control(control.1, asked, own, interrupts) => {}
            () = drop_all(stdin) => {}
            () = beat(heartbeat) => {}
            () = orphaned() => end(asked, interrupts).await,
        }
    }
}

/// A message, or one whose content is not what its type asks for, with the reason. What is wrongly signed, cut short or no JSON is
/// dropped: there is nobody to answer.
async fn message(from: &mut RouterRecvConnection) -> Result<JupyterMessage, (JupyterMessage, String)> {
    loop {
        match from.socket.recv().await {
            Ok(frames) => match RawMessage::from_multipart(frames, &from.mac).ok().and_then(read) {
                Some(read) => return read,
                None => continue,
            },
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// What frames say. What a request leaves out is as the protocol says.
fn read(raw: RawMessage) -> Option<Result<JupyterMessage, (JupyterMessage, String)>> {
    let part = |i: usize| raw.jparts.get(i);
    let header: Header = serde_json::from_slice(part(0)?).ok()?;
    let Ok(Value::Object(mut content)) = serde_json::from_slice(part(3)?) else { return None };
    let left_out = match header.msg_type.as_str() {
        "execute_request" => json!({"silent": false, "store_history": true}),
        "history_request" => {
            json!({"output": false, "raw": true, "unique": false, "n": 1000, "start": 0, "stop": i32::MAX, "pattern": "*"})
        }
        "complete_request" | "inspect_request" => {
            let end = content.get("code").and_then(Value::as_str).map_or(0, |code| code.chars().count());
            json!({"cursor_pos": end})
        }
        "shutdown_request" => json!({"restart": false}),
        _ => json!({}),
    };
    for (name, value) in left_out.as_object().into_iter().flatten() {
        let given = content.entry(name).or_insert(Value::Null);
        if given.is_null() {
            given.clone_from(value);
        }
    }
    let is_request = header.msg_type.ends_with("_request");
    let kind = header.msg_type.clone();
    let message = |content| JupyterMessage {
        zmq_identities: raw.zmq_identities,
        header,
        parent_header: None,
        metadata: json!({}),
        content,
        buffers: vec![],
        channel: None,
    };
    let unknown = || Content::UnknownMessage(UnknownMessage { msg_type: kind.clone(), content: json!({}) });
    match Content::from_type_and_content(&kind, Value::Object(content)) {
        Ok(Content::UnknownMessage(_)) if is_request => {
            Some(Err((message(unknown()), format!("this kernel knows no `{kind}`"))))
        }
        Ok(content) => Some(Ok(message(content))),
        Err(e) if is_request => Some(Err((message(unknown()), format!("this is no `{kind}`: {e}")))),
        // Nobody waits for an answer.
        Err(_) => None,
    }
}

/// The answer to a request that is none.
pub fn refusal(message: &JupyterMessage, why: &str) -> Content {
    let msg_type = message.header.msg_type.replace("_request", "_reply");
    let content = json!({"status": "error", "ename": "wrong request", "evalue": why, "traceback": []});
    Content::UnknownMessage(UnknownMessage { msg_type, content })
}

async fn read_shell(mut from: RouterRecvConnection, asked: &mpsc::Sender<Asked>) {
    let mut next = async || match message(&mut from).await {
        Ok(message) => Asked::Message(Box::new(message)),
        Err((message, why)) => Asked::Wrong(Box::new(message), why),
    };
    while asked.send(next().await).is_ok() {}
    // The session has ended; what it said last is being sent.
    std::future::pending().await
}

/// Answers on the control channel: none of it waits for a cell.
async fn read_control(
    mut from: RouterRecvConnection,
    asked: &mpsc::Sender<Asked>,
    own: &UnboundedSender<(To, JupyterMessage)>,
    interrupts: &Interrupts,
) {
    loop {
        let (message, wrong) = match message(&mut from).await {
            Ok(message) => (message, None),
            Err((message, why)) => (message, Some(why)),
        };
        let say = |to: To, content: Content| _ = own.send((to, JupyterMessage::new(content, Some(&message))));
        say(To::All, Status::busy().into());
        if let Some(why) = wrong {
            say(To::Control, refusal(&message, &why));
            say(To::All, Status::idle().into());
            continue;
        }
        let shut_down = match &message.content {
            Content::InterruptRequest(_) => {
                interrupts.interrupt();
                say(To::Control, InterruptReply::new().into());
                false
            }
            Content::ShutdownRequest(request) => {
                let reply = ShutdownReply { restart: request.restart, ..Default::default() };
                say(To::Control, reply.clone().into());
                say(To::All, reply.into());
                true
            }
            Content::KernelInfoRequest(_) => {
                say(To::Control, Content::KernelInfoReply(Box::new(answers::kernel_info())));
                false
            }
            _ => false,
        };
        say(To::All, Status::idle().into());
        if shut_down {
            end(asked, interrupts).await;
        }
    }
}

/// Ends the session, or the process where it does not end soon.
async fn end(asked: &mpsc::Sender<Asked>, interrupts: &Interrupts) {
    let _ = asked.send(Asked::Shutdown);
    interrupts.interrupt();
    tokio::time::sleep(PATIENCE).await;
    tessera_runtime::io::replace::remove_pending();
    std::process::exit(0);
}

/// Waits until whoever started the kernel is gone, where Jupyter says that this ends it.
async fn orphaned() {
    let parent = std::os::unix::process::parent_id();
    while std::env::var_os("JPY_PARENT_PID").is_none() || std::os::unix::process::parent_id() == parent {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// No cell asks for input.
async fn drop_all(mut stdin: jupyter_zmq_client::KernelStdinConnection) {
    loop {
        if stdin.socket.recv().await.is_err() {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Says back what is said, as long as the kernel lives.
async fn beat(mut heartbeat: KernelHeartbeatConnection) {
    loop {
        let answered = match heartbeat.socket.recv().await {
            Ok(message) => heartbeat.socket.send(message).await,
            Err(e) => Err(e),
        };
        if answered.is_err() {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Sends messages until there are no more. Output that waits is sent as one message.
async fn send(
    mut answers: UnboundedReceiver<(To, JupyterMessage)>,
    mut all: KernelIoPubConnection,
    mut shell: RouterSendConnection,
    mut control: RouterSendConnection,
) {
    let mut next = None;
    loop {
        let (to, mut message) = match next.take() {
            Some(waiting) => waiting,
            None => match answers.recv().await {
                Some(message) => message,
                None => break,
            },
        };
        while let Ok((then, more)) = answers.try_recv() {
            if let Some(more) = appended(&mut message, more) {
                next = Some((then, more));
                break;
            }
        }
        let sent = match to {
            To::All => say(&mut all, message).await,
            To::Shell => say(&mut shell, message).await,
            To::Control => say(&mut control, message).await,
            To::Nobody => break,
        };
        // A client that is gone needs no answer.
        drop(sent);
    }
    // What was sent is on its way when the sockets are closed.
    tokio::time::sleep(Duration::from_millis(50)).await;
}

async fn say<S: SocketSend>(to: &mut Connection<S>, message: JupyterMessage) -> Result<(), RuntimeError> {
    to.send(message).await
}

/// Puts output behind output of the same cell; gives back what is anything else.
fn appended(message: &mut JupyterMessage, more: JupyterMessage) -> Option<JupyterMessage> {
    let same = message.parent_header.as_ref().map(|h| &h.msg_id) == more.parent_header.as_ref().map(|h| &h.msg_id);
    match (&mut message.content, &more.content) {
        (Content::StreamContent(StreamContent { name, text }), Content::StreamContent(last))
            if same && std::mem::discriminant(name) == std::mem::discriminant(&last.name) =>
        {
            text.push_str(&last.text);
            None
        }
        _ => Some(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_waits_is_one_message() {
        let parent = JupyterMessage::new(Status::busy(), None);
        let out = |text: &str| JupyterMessage::new(StreamContent::stdout(text), Some(&parent));
        let mut first = out("a");
        assert!(appended(&mut first, out("b")).is_none());
        let other = JupyterMessage::new(StreamContent::stderr("c"), Some(&parent));
        assert!(appended(&mut first, other).is_some());
        assert!(appended(&mut first, JupyterMessage::new(StreamContent::stdout("d"), None)).is_some());
        let Content::StreamContent(said) = first.content else { panic!("no output") };
        assert_eq!(said.text, "ab");
    }
}
