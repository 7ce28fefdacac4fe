//! Ends what a test run leaves behind, however the run ends: a process that is killed runs no destructors, and the
//! statics of one that isn't are not dropped either.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// A command that runs once this process is gone.
pub struct Minder(Child);

impl Minder {
    pub fn at_the_end(command: &[&OsStr]) -> Self {
        let child = Command::new("sh")
            // The kernel closes our end of the pipe, whatever happened to us.
            .args(["-c", "read _; exec \"$@\"", "minder"])
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // The terminal's ^C is for the tests.
            .process_group(0)
            .spawn()
            .unwrap();
        Self(child)
    }
}

/// Nothing is left to mind.
impl Drop for Minder {
    fn drop(&mut self) {
        // One that is gone can't be killed, and that is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
