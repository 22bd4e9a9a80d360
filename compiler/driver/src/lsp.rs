//! The language server (`tessera lsp`): the protocol over standard input and output, in front of `tessera_ide`.
//!
//! One thread has the texts and answers requests in the order in which they come. What is wrong with programs is found by
//! another, on a picture of the same database: an edit ends what it does, and it begins anew. A request that goes down is
//! answered with an error, and the server lives on.

mod transport;
mod documents;
mod known;
mod world;
mod kernels;
mod checking;
mod edits;
mod language;
mod navigation;
mod commands;
mod actions;
mod server;

use crate::program::Setup;

/// Serves one client until it leaves; returns the exit code.
pub fn serve(setup: &Setup) -> u8 {
    let (connection, writer) = match transport::stdio() {
        Ok(ends) => ends,
        Err(e) => {
            eprintln!("error[E0706]: no thread could be started: {e}");
            return 1;
        }
    };
    let code = match server::Server::start(&connection, setup) {
        Ok(mut server) => server.run(),
        Err(e) if e.channel_is_disconnected() => {
            eprintln!("error[E0706]: the client went away before it greeted the server");
            1
        }
        Err(e) => {
            eprintln!("error[E0706]: the client does not speak the language server protocol: {e}");
            1
        }
    };
    drop(connection);
    // What is answered last is written; a client that went away without a word reads nothing more.
    let _ = writer.join();
    code
}
