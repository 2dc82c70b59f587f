//! Acting for another user: a call with the effective user and group of another one.
//!
//! The ids of a thread are its own (credentials(7)), so the call is made in a thread that ends with it. The system then
//! takes the process for one that has changed its user: it writes no core dump and cannot be traced by others.

use super::error::{Error, Result, system};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, getegid, geteuid};
use std::thread;

const ACT: &str = "act for the owner of the store";

/// Makes `call` with the effective user and group of `owner`.
///
/// # Errors
/// Those of `call`; [`Cause::Owner`](super::Cause::Owner) if this process may not act for the owner; the system's, if
/// it has no other thread.
pub(super) fn act_for<T: Send>(owner: (u32, u32), call: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if (geteuid().as_raw(), getegid().as_raw()) == owner {
        return call();
    }
    thread::scope(|scope| {
        // The user comes last, because only root may take any group.
        let act = || set_gid(owner.1).and_then(|()| set_uid(owner.0)).and_then(|()| call());
        let thread = thread::Builder::new().spawn_scoped(scope, act);
        let thread =
            thread.map_err(|error| Error::system(ACT, error.raw_os_error().unwrap_or(libc::EAGAIN)))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Sets the effective user of this thread.
fn set_uid(uid: u32) -> Result<()> {
    // The kernel takes this number for "do not change".
    let set = if uid == u32::MAX { Err(Errno::PERM) } else { ids::set_uid(Uid::from_raw(uid)) };
    denied(set, "user", uid)
}

/// Likewise the group.
fn set_gid(gid: u32) -> Result<()> {
    let set = if gid == u32::MAX { Err(Errno::PERM) } else { ids::set_gid(Gid::from_raw(gid)) };
    denied(set, "group", gid)
}

fn denied(set: rustix::io::Result<()>, kind: &'static str, number: u32) -> Result<()> {
    match set {
        Err(Errno::PERM) => Err(Error::owner(ACT, kind, number)),
        other => other.map_err(system(ACT)),
    }
}

#[cfg(target_os = "linux")]
mod ids {
    use rustix::io::Result;
    use rustix::process::{Gid, Uid};
    use rustix::thread::{set_thread_res_gid, set_thread_res_uid};

    pub(super) fn set_uid(uid: Uid) -> Result<()> {
        set_thread_res_uid(None, uid, None)
    }

    pub(super) fn set_gid(gid: Gid) -> Result<()> {
        set_thread_res_gid(None, gid, None)
    }
}

/// Other systems have no module, and no ids for each thread.
#[cfg(not(target_os = "linux"))]
mod ids {
    use rustix::io::{Errno, Result};
    use rustix::process::{Gid, Uid};

    pub(super) fn set_uid(_: Uid) -> Result<()> {
        Err(Errno::PERM)
    }

    pub(super) fn set_gid(_: Gid) -> Result<()> {
        Err(Errno::PERM)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cause;
    use super::*;

    fn own() -> (u32, u32) {
        (geteuid().as_raw(), getegid().as_raw())
    }

    #[test]
    fn it_acts_for_another_only_during_the_call() {
        let before = own();
        assert_eq!(act_for(before, || Ok(own())), Ok(before));
        let other = (54_321, 65_432);
        match act_for(other, || Ok(own())) {
            Ok(during) => assert_eq!(during, other),
            // Not root.
            Err(error) => assert!(matches!(error.cause(), Cause::Owner(..)), "{error}"),
        }
        assert_eq!(own(), before);
        let failed: Result<()> = act_for(other, || Err(Error::system("do it", libc::EEXIST)));
        assert!(failed.is_err());
        assert_eq!(own(), before);
    }

    #[test]
    fn nobody_acts_for_a_user_that_cannot_be() {
        let (uid, gid) = own();
        for owner in [(u32::MAX, gid), (uid, u32::MAX), (u32::MAX, u32::MAX)] {
            let cause = act_for(owner, || Ok(())).expect_err("there is no such user").cause();
            assert!(matches!(cause, Cause::Owner(_, u32::MAX)), "{cause:?}");
            assert_eq!(own(), (uid, gid));
        }
    }
}
