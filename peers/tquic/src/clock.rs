//! The time for tquic, which looks at the clock hundreds of times in a row: with each packet and with each call about a
//! stream. In virtual time that costs time, and holds the links up. tquic has no hook for its clock, so this program has
//! the function by which all of its code reads it. It gets the time at which it was called, as other stacks do.
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use libc::{CLOCK_MONOTONIC, SYS_clock_gettime, c_int, clockid_t, syscall, timespec};

static SECONDS: AtomicI64 = AtomicI64::new(-1); // -1: not looked yet
static NANOSECONDS: AtomicI64 = AtomicI64::new(0);

/// Looks at the clock. The relay has one thread.
pub fn look() {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    if unsafe { syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &mut now) } == 0 {
        SECONDS.store(now.tv_sec, Relaxed);
        NANOSECONDS.store(now.tv_nsec, Relaxed);
    }
}

/// In place of the one in the system's library.
///
/// # Safety
/// As clock_gettime(3): `out` is a place for the time.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: clockid_t, out: *mut timespec) -> c_int {
    let seconds = SECONDS.load(Relaxed);
    if clock != CLOCK_MONOTONIC || seconds < 0 {
        return unsafe { syscall(SYS_clock_gettime, clock, out) } as c_int;
    }
    unsafe { *out = timespec { tv_sec: seconds, tv_nsec: NANOSECONDS.load(Relaxed) } };
    0
}
