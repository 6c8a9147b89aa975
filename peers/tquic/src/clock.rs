//! The clock of tquic, which reads it for each packet and each call about a stream, hundreds of times in a row. In
//! virtual time every reading takes time, which would delay the links. tquic has no hook for its clock, so this program
//! replaces clock_gettime(3). It returns the time of the last wake-up, which other stacks use too.
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use libc::{CLOCK_MONOTONIC, SYS_clock_gettime, c_int, clockid_t, syscall, timespec};

static SECONDS: AtomicI64 = AtomicI64::new(-1); // -1: not read yet
static NANOSECONDS: AtomicI64 = AtomicI64::new(0);

/// Reads the system's clock. The relay has one thread.
pub fn look() {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    if unsafe { syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &mut now) } == 0 {
        SECONDS.store(now.tv_sec, Relaxed);
        NANOSECONDS.store(now.tv_nsec, Relaxed);
    }
}

/// Replaces the function of the system's library.
///
/// # Safety
/// As for clock_gettime(3), `out` must point to a timespec.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: clockid_t, out: *mut timespec) -> c_int {
    let seconds = SECONDS.load(Relaxed);
    if clock != CLOCK_MONOTONIC || seconds < 0 {
        return unsafe { syscall(SYS_clock_gettime, clock, out) } as c_int;
    }
    unsafe { *out = timespec { tv_sec: seconds, tv_nsec: NANOSECONDS.load(Relaxed) } };
    0
}
