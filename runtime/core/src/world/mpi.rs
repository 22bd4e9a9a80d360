//! MPI, loaded when a program is started by an `mpirun`: the few functions that are used, and messages that own their
//! memory. There are two binary interfaces ([`Interface`]): Open MPI's, and that of MPICH and what is compatible with it (Intel
//! MPI, MVAPICH, Cray MPICH).
//!
//! Calls are made one at a time, whatever thread they come from, and none of them waits: who waits
//! asks again and again whether a message is done.

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A communicator, type or request: of Open MPI the address of something of the library's; of MPICH an int, which lies in
/// the lower half of the word, where its functions look for it.
type Handle = *mut c_void;

/// Calls may come from any thread, one at a time.
const THREAD_SERIALIZED: c_int = 2;
const SUCCESS: c_int = 0;
/// Bytes of a piece of a message: a count has 31 bits.
const PIECE: usize = 1 << 30;

macro_rules! calls {
    ($($name:ident = $symbol:literal($($arg:ty),*);)*) => {
        /// The functions that are used.
        struct Calls { $($name: unsafe extern "C" fn($($arg),*) -> c_int),* }

        impl Calls {
            /// # Safety
            /// The library is one of those with an [`Interface`], whose functions have these types.
            unsafe fn of(library: &Library) -> Result<Calls, libloading::Error> {
                // SAFETY: the caller's promise.
                Ok(unsafe { Calls { $($name: *library.get($symbol)?),* } })
            }
        }
    };
}
calls! {
    init = b"MPI_Init_thread\0"(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    finalize = b"MPI_Finalize\0"();
    rank = b"MPI_Comm_rank\0"(Handle, *mut c_int);
    size = b"MPI_Comm_size\0"(Handle, *mut c_int);
    attribute = b"MPI_Comm_get_attr\0"(Handle, c_int, *mut *mut c_int, *mut c_int);
    on_error = b"MPI_Comm_set_errhandler\0"(Handle, Handle);
    error_text = b"MPI_Error_string\0"(c_int, *mut c_char, *mut c_int);
    send = b"MPI_Isend\0"(*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    receive = b"MPI_Irecv\0"(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    gather = b"MPI_Iallgather\0"(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle, *mut Handle);
    reduce = b"MPI_Iallreduce\0"(*const c_void, *mut c_void, c_int, Handle, Handle, Handle, *mut Handle);
    broadcast = b"MPI_Ibcast\0"(*mut c_void, c_int, Handle, c_int, Handle, *mut Handle);
    test = b"MPI_Test\0"(*mut Handle, *mut c_int, *mut c_void);
    probe = b"MPI_Iprobe\0"(c_int, c_int, Handle, *mut c_int, *mut c_void);
}

/// What a library calls things.
struct Interface {
    everyone: Handle,
    byte: Handle,
    /// The operation that keeps the bits which all have set.
    bits_of_all: Handle,
    /// Failures are told to who calls, and end nothing.
    errors_return: Handle,
    /// The key of the attribute that says how large a tag may be.
    tag_max: c_int,
    any_source: c_int,
    /// Where no status is wanted.
    no_status: *mut c_void,
}

impl Interface {
    fn of(library: &Library) -> Option<Interface> {
        if let Ok(everyone) = constant(library, b"ompi_mpi_comm_world\0") {
            return Some(Interface {
                everyone,
                byte: constant(library, b"ompi_mpi_byte\0").ok()?,
                bits_of_all: constant(library, b"ompi_mpi_op_band\0").ok()?,
                errors_return: constant(library, b"ompi_mpi_errors_return\0").ok()?,
                tag_max: 0,
                any_source: -1,
                no_status: std::ptr::null_mut(),
            });
        }
        let word = |n: usize| std::ptr::without_provenance_mut(n);
        // The common interface of MPICH 3.1 and later, Intel MPI 5 and later, and MVAPICH 2 (the "MPICH ABI compatibility
        // initiative").
        let known = ["MPICH", "Intel(R) MPI", "MVAPICH"];
        let own = library_text(library)?;
        known.iter().any(|name| own.contains(name)).then(|| Interface {
            everyone: word(0x4400_0000),
            byte: word(0x4c00_010d),
            bits_of_all: word(0x5800_0006),
            errors_return: word(0x5400_0001),
            tag_max: 0x6440_0001,
            any_source: -2,
            no_status: word(1),
        })
    }
}

/// The library, and this process's place among those that were started with it.
pub struct Mpi {
    calls: Calls,
    own: Interface,
    /// Held during each call: whether this process has left the others, so that nothing may be called.
    turn: Mutex<bool>,
    pub rank: usize,
    pub size: usize,
    /// The largest tag.
    pub tag_max: usize,
}

// SAFETY: the handles are addresses of constants of the library, which stays loaded, and calls are
// made one at a time.
unsafe impl Send for Mpi {}
// SAFETY: see `Send`.
unsafe impl Sync for Mpi {}

/// Bytes on their way. While the library may use them they are kept, even where no one waits for
/// them any more.
pub struct Message {
    /// Of pieces that are not done, the first last.
    requests: Vec<Handle>,
    sent: Vec<u8>,
    received: Vec<u8>,
}

// SAFETY: a request may be asked after by any thread, one at a time.
unsafe impl Send for Message {}

impl Message {
    /// What came; to be looked at when it is done.
    pub fn received(&self) -> &[u8] {
        &self.received
    }

    pub fn into_received(mut self) -> Vec<u8> {
        match self.requests.is_empty() {
            true => std::mem::take(&mut self.received),
            false => vec![],
        }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        if !self.requests.is_empty() {
            std::mem::forget((std::mem::take(&mut self.sent), std::mem::take(&mut self.received)));
        }
    }
}

/// Loads the library (`TESSERA_MPI`, or where the system finds that of the launcher).
fn open(hydra: bool) -> Result<(Library, Interface), String> {
    let chosen = std::env::var("TESSERA_MPI").ok().filter(|s| !s.is_empty());
    let names = match &chosen {
        Some(path) => vec![path.as_str()],
        None if hydra => vec!["libmpich.so.12", "libmpi.so.12", "libmpi.so"],
        None => vec!["libmpi.so.40", "libmpi.so"],
    };
    let mut why = String::new();
    for name in names {
        // Its parts look for its symbols, so that all are to see them.
        // SAFETY: the library's initialisers have no precondition.
        match unsafe { Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL) } {
            Ok(library) => match Interface::of(&library) {
                Some(own) => return Ok((library, own)),
                None => why = format!("`{name}` has neither the binary interface of Open MPI nor that of MPICH"),
            },
            Err(e) => why = std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string),
        }
    }
    Err(why)
}

/// The address of a constant of the library.
fn constant(library: &Library, symbol: &[u8]) -> Result<Handle, String> {
    // SAFETY: only the address is taken.
    let found = unsafe { library.get::<Handle>(symbol) };
    found.map(|s| s.as_raw_ptr()).map_err(|e| e.to_string())
}

/// What the library says of itself, without starting it.
pub fn version() -> Result<String, String> {
    let (library, _) = open(false)?;
    let text = library_text(&library).unwrap_or_default();
    std::mem::forget(library);
    let first = text.split([',', '\n']).next().unwrap_or("").replace("Version:", "");
    Ok(first.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The same of a library that may be any.
fn library_text(library: &Library) -> Option<String> {
    type Version = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    // SAFETY: every library of MPI 3 has this function with this type.
    let version = unsafe { library.get::<Version>(b"MPI_Get_library_version\0") }.ok()?;
    Some(text(|buffer, len| {
        // SAFETY: the buffer is longer than any text of the library, and this may be asked before the start.
        unsafe { version(buffer, len) };
    }))
}

/// A text that the library writes.
fn text(write: impl FnOnce(*mut c_char, &mut c_int)) -> String {
    /// No text of the library is longer.
    const TEXT_MAX: usize = 8192;
    let mut text = vec![0u8; TEXT_MAX];
    let mut len = 0;
    write(text.as_mut_ptr().cast(), &mut len);
    let len = usize::try_from(len).unwrap_or(0).min(TEXT_MAX);
    String::from_utf8_lossy(&text[..len]).into_owned()
}

impl Mpi {
    /// Loads the library and joins the others that were started with this process, by `hydra` (MPICH's launcher) or by
    /// Open MPI's.
    pub fn join(hydra: bool) -> Result<Mpi, String> {
        let (library, own) = open(hydra)?;
        // SAFETY: `open` made sure that it has one of the two interfaces, whose functions have these types.
        let calls = unsafe { Calls::of(&library) }.map_err(|e| e.to_string())?;
        // Never closed: its addresses stay valid.
        std::mem::forget(library);
        let everyone = own.everyone;
        let mut mpi = Mpi { calls, own, turn: Mutex::new(false), rank: 0, size: 1, tag_max: 0 };
        let (mut level, mut rank, mut size, mut found) = (0, 0, 0, 0);
        let mut tag: *mut c_int = std::ptr::null_mut();
        let (none, nothing) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: started once in this process; every pointer is to a local, or null where that is allowed.
        unsafe {
            mpi.check((mpi.calls.init)(none, nothing, THREAD_SERIALIZED, &mut level))?;
            mpi.check((mpi.calls.on_error)(everyone, mpi.own.errors_return))?;
            mpi.check((mpi.calls.rank)(everyone, &mut rank))?;
            mpi.check((mpi.calls.size)(everyone, &mut size))?;
            mpi.check((mpi.calls.attribute)(everyone, mpi.own.tag_max, &mut tag, &mut found))?;
        }
        if level < THREAD_SERIALIZED {
            return Err("this build of it may be called by one thread only".into());
        }
        // Every MPI has at least this many.
        mpi.tag_max = 32_767;
        if found != 0 && !tag.is_null() {
            // SAFETY: the attribute is the address of an int.
            mpi.tag_max = usize::try_from(unsafe { *tag }).unwrap_or(mpi.tag_max);
        }
        (mpi.rank, mpi.size) = (usize::try_from(rank).unwrap_or(0), usize::try_from(size).unwrap_or(1));
        Ok(mpi)
    }

    fn turn(&self) -> MutexGuard<'_, bool> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the library says of a failure.
    fn check(&self, code: c_int) -> Result<(), String> {
        if code == SUCCESS {
            return Ok(());
        }
        // SAFETY: the buffer is longer than any text of the library.
        Err(text(|buffer, len| unsafe {
            (self.calls.error_text)(code, buffer, len);
        }))
    }

    /// Starts each piece of a message with `start`: address of the piece and its bytes.
    fn started(
        &self,
        mut message: Message,
        len: usize,
        start: impl Fn(&mut Message, usize, c_int, &mut Handle) -> c_int,
    ) -> Result<Message, String> {
        let _turn = self.turn();
        for at in (0..len).step_by(PIECE) {
            let mut request: Handle = std::ptr::null_mut();
            let code = start(&mut message, at, (len - at).min(PIECE) as c_int, &mut request);
            self.check(code)?;
            message.requests.insert(0, request);
        }
        Ok(message)
    }

    /// Sends to a process.
    pub fn send(&self, to: usize, tag: usize, bytes: Vec<u8>) -> Result<Message, String> {
        let (to, tag, len) = (to as c_int, tag as c_int, bytes.len());
        let message = Message { requests: vec![], sent: bytes, received: vec![] };
        self.started(message, len, |m, at, len, request| {
            // SAFETY: the bytes belong to the message, which keeps them until the request is done.
            unsafe {
                let from = m.sent.as_ptr().add(at).cast();
                (self.calls.send)(from, len, self.own.byte, to, tag, self.own.everyone, request)
            }
        })
    }

    /// Receives at most so many bytes, from a process or from whoever sends them.
    pub fn receive(&self, from: Option<usize>, tag: usize, len: usize) -> Result<Message, String> {
        let (from, tag) = (from.map_or(self.own.any_source, |rank| rank as c_int), tag as c_int);
        let message = Message { requests: vec![], sent: vec![], received: vec![0; len] };
        self.started(message, len, |m, at, len, request| {
            // SAFETY: as for `send`.
            unsafe {
                let to = m.received.as_mut_ptr().add(at).cast();
                (self.calls.receive)(to, len, self.own.byte, from, tag, self.own.everyone, request)
            }
        })
    }

    /// The bits that all processes have set, in all. The library does it along a tree: a process sends and receives a number
    /// of messages that grows with the logarithm of theirs.
    pub fn bits_of_all(&self, bytes: Vec<u8>) -> Result<Message, String> {
        let len = bytes.len();
        let message = Message { requests: vec![], received: vec![0; len], sent: bytes };
        self.started(message, len.min(PIECE), |m, _, len, request| {
            let Interface { byte, bits_of_all, everyone, .. } = self.own;
            // SAFETY: as for `send`; both buffers have so many bytes.
            unsafe {
                let (from, to) = (m.sent.as_ptr().cast(), m.received.as_mut_ptr().cast());
                (self.calls.reduce)(from, to, len, byte, bits_of_all, everyone, request)
            }
        })
    }

    /// A few bytes of each process, the same number of all, to all. Takes a message from each to each.
    pub fn gather(&self, bytes: Vec<u8>) -> Result<Message, String> {
        let len = bytes.len();
        let message = Message { requests: vec![], received: vec![0; len * self.size], sent: bytes };
        self.started(message, len.min(PIECE), |m, _, len, request| {
            // SAFETY: as for `send`; there is room for the bytes of every process.
            unsafe {
                let (from, to) = (m.sent.as_ptr().cast(), m.received.as_mut_ptr().cast());
                (self.calls.gather)(from, len, self.own.byte, to, len, self.own.byte, self.own.everyone, request)
            }
        })
    }

    /// The first process's bytes to all; elsewhere they are written over.
    pub fn broadcast(&self, bytes: Vec<u8>) -> Result<Message, String> {
        let len = bytes.len();
        let message = Message { requests: vec![], sent: vec![], received: bytes };
        self.started(message, len, |m, at, len, request| {
            // SAFETY: as for `send`.
            unsafe {
                let at = m.received.as_mut_ptr().add(at).cast();
                (self.calls.broadcast)(at, len, self.own.byte, 0, self.own.everyone, request)
            }
        })
    }

    /// Whether a message has been sent or has come.
    pub fn is_done(&self, message: &mut Message) -> Result<bool, String> {
        let _turn = self.turn();
        while let Some(request) = message.requests.last_mut() {
            let mut done = 0;
            // SAFETY: the request is one that was started and is not done.
            let code = unsafe { (self.calls.test)(request, &mut done, self.own.no_status) };
            self.check(code)?;
            if done == 0 {
                return Ok(false);
            }
            message.requests.pop();
        }
        Ok(true)
    }

    /// Whether a message with this tag waits to be received, from anyone. May be asked by a thread that does not know that
    /// this process has left: then none does.
    pub fn has_come(&self, tag: usize) -> bool {
        let left = self.turn();
        if *left {
            return false;
        }
        let mut found = 0;
        // SAFETY: the pointer is to a local; no status is wanted.
        let Interface { any_source, everyone, no_status, .. } = self.own;
        let code = unsafe { (self.calls.probe)(any_source, tag as c_int, everyone, &mut found, no_status) };
        code == SUCCESS && found != 0
    }

    /// Leaves the others. Waits for them; nothing may be called afterwards.
    pub fn leave(&self) {
        let mut left = self.turn();
        *left = true;
        // SAFETY: started, and left once.
        unsafe { (self.calls.finalize)() };
    }
}
