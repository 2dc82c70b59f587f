//! What this machine offers Forrest: the findings of `forrest_machine`, and the state of the llds device.

use crate::raw;
use forrest_machine::doctor::{self, Finding, Verdict, size};

/// Examines everything. Takes some milliseconds.
pub fn examine() -> Vec<Finding> {
    let mut findings = doctor::examine();
    findings.push(device(&raw::device()));
    findings
}

fn device(found: &raw::Found) -> Finding {
    const TOPIC: &str = "llds device";
    const LOAD: &str = "Only for stores inside the kernel: load the module, once built (kernel/llds/README.md): sudo modprobe llds";
    let path = raw::DEVICE_PATH;
    let Some(node) = &found.node else {
        return match found.is_loaded {
            Some(true) => {
                Finding::new(TOPIC, Verdict::Poor, format!("the module is loaded, but there is no {path}"))
                    .advise("In a container, pass the device on (with docker: --device /dev/llds).")
            }
            Some(false) => Finding::new(TOPIC, Verdict::Absent, "the module llds is not loaded").advise(LOAD),
            None => Finding::new(TOPIC, Verdict::Absent, format!("there is no {path}")).advise(LOAD),
        };
    };
    let raw::Node { owner, group, mode, opened } = node;
    let who = format!("{path} belongs to {owner}, group {group}, mode {mode:04o}");
    let version = |version: &raw::abi::Version| {
        format!("interface {}, values up to {}", version.abi, size(version.value_bytes_max))
    };
    let let_in = if mode & 0o060 == 0o060 && group != "root" {
        format!("Become a member of its group, then log in again: sudo usermod -aG {group} $USER")
    } else {
        "Give a group access by the udev rule of kernel/llds/README.md, or this user until the module is reloaded: sudo \
         setfacl -m u:$USER:rw /dev/llds"
            .to_owned()
    };
    match opened {
        raw::Opened::ToWrite(is) => {
            Finding::new(TOPIC, Verdict::Good, format!("usable: {}; {who}", version(is)))
        }
        raw::Opened::ToRead(is) => {
            Finding::new(TOPIC, Verdict::Fair, format!("read-only: {}; {who}", version(is))).advise(let_in)
        }
        raw::Opened::Not(error) => {
            let finding = Finding::new(TOPIC, Verdict::Poor, format!("{error}; {who}"));
            match (error.cause(), error.number()) {
                (_, Some(libc::EACCES | libc::EPERM)) => finding.advise(let_in),
                (raw::Cause::Version(_), _) => finding
                    .advise("Build module and Forrest of one version; then: sudo modprobe -r llds && sudo modprobe llds"),
                (_, Some(libc::ENXIO | libc::ENODEV | libc::ENOTTY)) => finding.advise(format!(
                    "The file is not the module's device, or the module was removed: sudo rm {path}; then: sudo modprobe llds"
                )),
                _ => finding.advise(
                    "Read the module's messages: sudo dmesg | grep llds; then: sudo modprobe -r llds && sudo modprobe llds",
                ),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_is_one_of_the_findings() {
        let findings = examine();
        assert_eq!(findings.len(), doctor::examine().len() + 1);
        assert_eq!(findings.iter().filter(|finding| finding.topic == "llds device").count(), 1);
    }

    #[test]
    fn the_device_is_explained() {
        use raw::abi::Version;
        use raw::{Error, Found, Node, Opened};

        let version =
            Version { abi: 2, key_bytes_max: 4096, value_bytes_max: 16 << 20, ..Version::default() };
        let node =
            |group: &str, mode, opened| Node { owner: "root".into(), group: group.into(), mode, opened };
        let found = |node| device(&Found { is_loaded: Some(true), node: Some(node) });
        let advice = |finding: Finding| finding.advice.unwrap_or_default();

        let good = found(node("llds", 0o660, Opened::ToWrite(version)));
        assert_eq!(good.state, Verdict::Good);
        assert_eq!(
            good.what,
            "usable: interface 2, values up to 16 MiB; /dev/llds belongs to root, group llds, mode 0660"
        );
        assert_eq!(good.advice, None);
        assert_eq!(found(node("llds", 0o660, Opened::ToRead(version))).state, Verdict::Fair);

        for is_loaded in [Some(false), None] {
            let finding = device(&Found { is_loaded, node: None });
            assert_eq!(finding.state, Verdict::Absent);
            assert!(advice(finding).contains("sudo modprobe llds"));
        }
        assert!(advice(device(&Found { is_loaded: Some(true), node: None })).contains("--device /dev/llds"));

        let failed = |error: Error| found(node("llds", 0o660, Opened::Not(error)));
        let refused = Error::system("open /dev/llds", libc::EACCES);
        assert_eq!(failed(refused.clone()).state, Verdict::Poor);
        assert!(advice(failed(refused.clone())).ends_with("sudo usermod -aG llds $USER"));
        assert!(advice(found(node("root", 0o600, Opened::Not(refused)))).contains("setfacl"));
        assert!(advice(failed(Error::version("use /dev/llds", 1))).contains("of one version"));
        assert!(advice(failed(Error::system("open /dev/llds", libc::ENXIO))).contains("sudo rm /dev/llds"));
        assert!(advice(failed(Error::system("open /dev/llds", libc::EBUSY))).contains("dmesg"));
    }
}
