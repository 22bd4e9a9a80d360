//! What the launcher of a run says in the environment.

/// What a launcher says of this process: its number and how many there are, here and in all.
pub fn variable(names: &[&str]) -> Option<usize> {
    names.iter().find_map(|n| std::env::var(n).ok()?.trim().parse().ok())
}

/// The number that the launcher gave this process, for what is to be told once before the processes
/// can talk.
pub fn number() -> usize {
    variable(&["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"]).unwrap_or(0)
}

/// Whether the launcher is Hydra, that of MPICH and its relatives, or one that speaks as it does.
pub fn is_hydra() -> bool {
    variable(&["OMPI_COMM_WORLD_SIZE"]).is_none() && variable(&["PMI_SIZE"]).is_some()
}

/// Whether a launcher started several processes like this one.
pub fn is_launched() -> bool {
    variable(&["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]).is_some_and(|n| n > 1)
}

/// The name of the machine that this process runs on: what `TESSERA_NODE` says, or the machine itself.
pub fn node() -> String {
    let chosen = std::env::var("TESSERA_NODE").ok().map(|name| name.trim().to_owned());
    if let Some(name) = chosen.filter(|name| !name.is_empty()) {
        return name;
    }
    let mut name = vec![0u8; 256];
    // SAFETY: the buffer has as many bytes as are said.
    let code = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len()) };
    let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
    let name = String::from_utf8_lossy(&name[..end]).into_owned();
    if code != 0 || name.is_empty() { "a machine without a name".into() } else { name }
}

/// Cores for this process: those that it may run on, and no more than its share of the machine's.
pub fn cores() -> usize {
    let allowed = tessera_abi::cores();
    let beside =
        super::world().and_then(|_| variable(&["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"])).unwrap_or(1).max(1);
    // SAFETY: asks for a number.
    let all = usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(allowed);
    allowed.min((all / beside).max(1))
}
