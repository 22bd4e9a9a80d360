//! The language server (`tessera lsp`): the protocol over standard input and output, in front of `tessera_ide`.
//!
//! One thread has the texts and answers requests in the order in which they come. What is wrong with programs is found by
//! another, on a picture of the same database: an edit ends what it does, and it begins anew. A request that goes down is
//! answered with an error, and the server lives on.

mod documents;
mod world;
mod checking;
mod edits;
mod language;
mod navigation;
mod commands;
mod actions;
mod server;

use crate::program::Setup;
use lsp_server::Connection;

/// Serves one client until it leaves; returns the exit code.
pub fn serve(setup: &Setup) -> u8 {
    let (connection, threads) = Connection::stdio();
    let code = match server::Server::start(&connection, setup) {
        Ok(mut server) => server.run(),
        Err(e) => {
            eprintln!("error[E0706]: the client does not speak the language server protocol: {e}");
            1
        }
    };
    drop(connection);
    // A client that went away without a word has closed the other ends.
    let _ = threads.join();
    code
}
