//! What is told without a session: what this kernel is.

use jupyter_protocol::{CodeMirrorMode, CommInfoReply, HelpLink, KernelInfoReply, LanguageInfo, ReplyStatus};

/// The version of the protocol.
const PROTOCOL: &str = "5.3";

/// What the kernel is.
pub fn kernel_info() -> KernelInfoReply {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    KernelInfoReply {
        status: ReplyStatus::Ok,
        protocol_version: PROTOCOL.into(),
        implementation: "tessera".into(),
        implementation_version: version.clone(),
        language_info: LanguageInfo {
            name: "tessera".into(),
            version: version.clone(),
            mimetype: Some("text/x-tessera".into()),
            file_extension: Some(".tsr".into()),
            // What is written looks like Python.
            pygments_lexer: Some("python".into()),
            codemirror_mode: Some(CodeMirrorMode::python()),
            nbconvert_exporter: None,
        },
        banner: format!("Tessera {version}. `:help` lists the commands, `?name` tells what something is."),
        help_links: Vec::<HelpLink>::new(),
        debugger: false,
        error: None,
    }
}

/// There are no widgets.
pub fn comm_info() -> CommInfoReply {
    CommInfoReply::default()
}

/// The byte of a text at which so many characters stand before it; the end where there are fewer.
pub fn byte_of(text: &str, characters: usize) -> usize {
    text.char_indices().nth(characters).map_or(text.len(), |(i, _)| i)
}

/// How many characters stand before a byte of a text.
pub fn characters(text: &str, byte: usize) -> usize {
    text.char_indices().take_while(|(i, _)| *i < byte).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_characters() {
        let text = "é = 😀.s";
        assert_eq!(byte_of(text, 6), text.len() - 1);
        assert_eq!(characters(text, text.len() - 1), 6);
        assert_eq!((byte_of(text, 99), characters("", 3)), (text.len(), 0));
    }
}
