//! The test machine: QEMU and a kernel, or a kernel that is a process, with an archive, a console and a time limit.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::{console, kernel};
use crate::workspace::{self, Workspace};

const QEMU: &str = "qemu-system-x86_64";

/// The kind of the machine's processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Processors {
    /// Emulated: available everywhere, with every protection feature that a processor may have.
    Emulated,
    /// Emulated, one instruction per nanosecond: elapsed time counts instructions.
    Counted,
    /// KVM on this host, which was found to work.
    Kvm,
    /// None: the kernel is a process of the host, and its programs are processes whose system calls it intercepts.
    Process,
}

/// A machine to boot.
pub(crate) struct Machine<'a> {
    pub(crate) image: &'a Path,
    pub(crate) archive: &'a Path,
    pub(crate) processors: Processors,
    pub(crate) count: u32,
    /// Memory nodes, of which a kernel that is a process has one.
    pub(crate) nodes: u32,
    /// Memory.
    pub(crate) gibibytes: u32,
    /// Additional parameters for the kernel's command line.
    pub(crate) parameters: &'a str,
    /// The file that gets the console output.
    pub(crate) log: PathBuf,
    pub(crate) limit: Duration,
}

impl Machine<'_> {
    /// Boots, waits until the machine turns itself off, and returns its console output. After the time limit the
    /// machine is killed, and the output lacks its last lines.
    pub(crate) fn run(&self, workspace: &Workspace) -> Result<String, String> {
        let mut command = match self.processors {
            // QEMU 7.2 loses flags when an interrupt meets cmpxchg16b, and a newer kernel then stops in its allocator.
            Processors::Emulated => self.qemu(workspace, "tcg,thread=multi", "max,-cx16"),
            // Copies by words: a copy by one instruction for all its bytes would count as one for each of them.
            Processors::Counted => self.qemu(workspace, "tcg,thread=single", "max,-erms,-fsrm"),
            Processors::Kvm => self.qemu(workspace, "kvm", "host"),
            Processors::Process => {
                kernel::remove(&self.process_folder())?;
                self.process(workspace)
            }
        };
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        println!("$ {}", workspace::line(&command));
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
        let (text, complaints) = listen(child, self.limit)?;
        fs::write(&self.log, &text).map_err(|error| format!("{}: {error}", self.log.display()))?;
        if text.is_empty() && !complaints.is_empty() {
            return Err(format!("{name}: {}", complaints.trim()));
        }
        Ok(text)
    }

    /// The folder in which a kernel that is a process records its process ID. A killed kernel leaves it there.
    fn process_folder(&self) -> PathBuf {
        self.log.with_extension("process")
    }

    fn qemu(&self, workspace: &Workspace, accelerator: &str, model: &str) -> Command {
        let mut qemu = workspace.command(QEMU);
        qemu.args([
            "-M",
            "pc",
            "-accel",
            accelerator,
            "-cpu",
            model,
            "-smp",
            // Processors of one socket are on one memory node.
            &format!("{0},sockets={0}", self.count),
            "-m",
            &format!("{}G", self.gibibytes),
        ]);
        for node in (0..self.nodes).filter(|_| self.nodes > 1) {
            let bytes = (u64::from(self.gibibytes) << 30) / u64::from(self.nodes);
            qemu.args(["-object", &format!("memory-backend-ram,id=node{node},size={bytes}")]);
            qemu.args(["-numa", &format!("node,nodeid={node},cpus={node},memdev=node{node}")]);
        }
        if self.processors == Processors::Counted {
            qemu.args(["-icount", "shift=0,sleep=off"]);
        }
        qemu.arg("-kernel").arg(self.image).arg("-initrd").arg(self.archive);
        // A kernel that stumbles stops at once. Its log is long enough that nothing of it is lost.
        let fixed = "console=ttyS0 panic=-1 oops=panic loglevel=4 log_buf_len=4M";
        qemu.args(["-append", &format!("{fixed} {}", self.parameters)]);
        qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot"]);
        qemu.args(["-serial", "stdio"]);
        qemu
    }

    /// A kernel as a process: its first console is where this one writes, and its memory a file that has no name.
    fn process(&self, workspace: &Workspace) -> Command {
        let mut kernel = workspace.command(self.image);
        kernel.args([&*format!("mem={}G", self.gibibytes), "con=null", "con0=null,fd:1", "ssl=null"]);
        kernel.args(["panic=-1", "oops=panic", "loglevel=5"]);
        kernel.arg(format!("initrd={}", self.archive.display()));
        kernel.arg(format!("uml_dir={}/", self.process_folder().display()));
        kernel.args(self.parameters.split_whitespace());
        kernel
    }
}

/// Reads both streams of a process until it ends, or ends it when its time is up.
fn listen(mut child: Child, limit: Duration) -> Result<(String, String), String> {
    let (send, receive) = mpsc::channel();
    let mut streams: Vec<(bool, Box<dyn std::io::Read + Send>)> = Vec::new();
    if let Some(stream) = child.stdout.take() {
        streams.push((true, Box::new(stream)));
    }
    if let Some(stream) = child.stderr.take() {
        streams.push((false, Box::new(stream)));
    }
    let readers: Vec<_> = streams
        .into_iter()
        .map(|(is_console, mut stream)| {
            let send = send.clone();
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut bytes) {
                    if send.send((is_console, bytes[..length].to_vec())).is_err() {
                        break;
                    }
                }
            })
        })
        .collect();
    drop(send);
    let end = Instant::now() + limit;
    let (mut console, mut complaints) = (Vec::new(), Vec::new());
    let late = loop {
        match receive.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok((true, bytes)) => console.extend(bytes),
            Ok((false, bytes)) => complaints.extend(bytes),
            Err(mpsc::RecvTimeoutError::Disconnected) => break false,
            Err(mpsc::RecvTimeoutError::Timeout) => break true,
        }
    };
    if late {
        child.kill().map_err(|error| format!("the machine cannot be ended: {error}"))?;
    }
    child.wait().map_err(|error| format!("the machine: {error}"))?;
    for reader in readers {
        // It ends with the process; what it read is here.
        let _: std::thread::Result<()> = reader.join();
    }
    while let Ok((true, bytes)) = receive.try_recv() {
        console.extend(bytes);
    }
    let mut text = String::from_utf8_lossy(&console).into_owned();
    if late {
        text += &format!("\n(turned off after {} s)\n", limit.as_secs());
    }
    Ok((text, String::from_utf8_lossy(&complaints).into_owned()))
}

/// Checks whether KVM works, by booting a machine: `/dev/kvm` may exist and still not work. The error says why not.
pub(crate) fn kvm(workspace: &Workspace, image: &Path, archive: &Path, log: PathBuf) -> Result<(), String> {
    let device = Path::new("/dev/kvm");
    fs::File::options().read(true).write(true).open(device).map_err(|error| format!("/dev/kvm: {error}"))?;
    let probe = Machine {
        image,
        archive,
        processors: Processors::Kvm,
        count: 1,
        nodes: 1,
        gibibytes: 1,
        parameters: "probe=1",
        log,
        limit: Duration::from_secs(5),
    };
    let text = probe.run(workspace)?;
    if text.lines().any(|line| line.starts_with(console::UP)) {
        Ok(())
    } else {
        Err("a machine on it does not boot".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> (String, String) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped());
        listen(command.spawn().expect("there is a shell"), limit).expect("it can be listened to")
    }

    #[test]
    fn both_streams_are_heard_to_the_end() {
        let (text, complaints) = shell("echo a; echo b >&2; echo c", Duration::from_secs(60));
        assert_eq!((text.as_str(), complaints.as_str()), ("a\nc\n", "b\n"));
    }

    #[test]
    fn what_does_not_end_is_ended() {
        let (text, _) = shell("echo a; exec tail -f /dev/null", Duration::from_millis(300));
        assert!(text.starts_with("a\n") && text.contains("turned off after"), "{text}");
    }
}
