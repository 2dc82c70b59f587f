//! Each verdict from invented facts, and the whole examination on this machine.

use super::*;
use crate::pages::TRANSPARENT_PATH;

fn memory(available_bytes: u64) -> Option<Memory> {
    Some(Memory { total_bytes: 8 << 30, available_bytes, limit_bytes: None })
}

fn pool(page_bytes: usize, reserved: u64, free: u64) -> Explicit {
    Explicit { page_bytes, reserved, free, promised: 0, overcommit: 0 }
}

#[test]
fn the_examination_covers_each_topic_once() {
    let findings = examine();
    for (at, finding) in findings.iter().enumerate() {
        println!("{:<11}  {:<6}  {}  {:?}", finding.topic, finding.state, finding.what, finding.advice);
        assert!(finding.topic.len() <= 11, "{finding:?}");
        assert!(!finding.what.is_empty() && !finding.what.contains('\n'), "{finding:?}");
        assert!(findings[..at].iter().all(|before| before.topic != finding.topic), "{finding:?}");
        assert!(finding.state != Verdict::Good || finding.advice.is_none(), "{finding:?}");
    }
    assert_eq!(findings.len(), 7);
}

#[test]
fn explicit_pages_are_judged_by_what_is_free() {
    assert_eq!(explicit_pages(&[], None).state, Verdict::Absent);
    let good = explicit_pages(&[pool(1 << 30, 0, 0), pool(2 << 20, 10, 4)], None);
    assert_eq!((good.state, good.what.as_str()), (Verdict::Good, "4 of 10 pages of 2 MiB free"));
    let used = explicit_pages(&[pool(2 << 20, 10, 0)], None);
    assert_eq!((used.state, used.what.as_str()), (Verdict::Fair, "0 of 10 pages of 2 MiB free"));
    let none = explicit_pages(&[pool(1 << 30, 0, 0), pool(2 << 20, 0, 0)], memory(4 << 30));
    let advice = none.advice.expect("pages can be set aside");
    assert_eq!(none.state, Verdict::Absent);
    assert!(advice.contains("\nsudo sysctl vm.nr_hugepages=1024 "), "{advice}");
    let giant = "\necho 2 | sudo tee /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages ";
    assert!(advice.contains(giant), "{advice}");
    let scarce = explicit_pages(&[pool(2 << 20, 0, 0)], memory(1 << 20));
    assert!(scarce.advice.is_some_and(|advice| advice.contains("too little")));
}

#[test]
fn transparent_pages_are_judged_by_setting_and_trial() {
    let setting = |mode, page_bytes, disabled_here| Transparent {
        mode,
        page_bytes: Some(page_bytes),
        disabled_here,
        setting_path: TRANSPARENT_PATH.to_owned(),
    };
    let trial = |transparent_bytes| {
        Some(Coverage { resident_bytes: 8 << 20, transparent_bytes, ..Coverage::default() })
    };
    let judge = |setting: Transparent, trial| transparent_pages(Some(&setting), trial);
    let asked = || setting(TransparentMode::Madvise, 2 << 20, false);
    assert_eq!(judge(asked(), None).state, Verdict::Good);
    assert_eq!(judge(asked(), trial(8 << 20)).state, Verdict::Good);
    let little = judge(asked(), trial(2 << 20));
    assert_eq!(little.state, Verdict::Fair);
    assert!(little.what.ends_with("a trial had 2 MiB of 8 MiB"), "{}", little.what);
    let never = judge(setting(TransparentMode::Never, 2 << 20, false), None);
    assert_eq!(never.state, Verdict::Poor);
    assert_eq!(never.advice, Some(format!("echo madvise | sudo tee {TRANSPARENT_PATH}")));
    assert_eq!(judge(setting(TransparentMode::Always, 2 << 20, true), None).state, Verdict::Poor);
    assert_eq!(judge(setting(TransparentMode::Always, 512 << 20, false), None).state, Verdict::Absent);
    assert_eq!(transparent_pages(None, None).state, Verdict::Absent);
}

#[test]
fn processors_are_told_in_one_line() {
    let finding = processor(Some("Fast 9000"), Some(4), 2, &["sse4.2", "avx2"], &[]);
    assert_eq!(finding.what, "Fast 9000, 4 processors allowed (a quota lets 2 run at once), avx2");
    assert_eq!(finding.state, Verdict::Good);
    assert_eq!(processor(None, None, 1, &["sse4.2"], &[]).state, Verdict::Fair);
    assert_eq!(processor(None, None, 1, &[], &[]).state, Verdict::Fair);
    assert_eq!(processor(None, None, 1, &["neon"], &[]).what, "unknown model, 1 processor allowed, neon");
}

#[test]
fn little_memory_is_said() {
    assert_eq!(main_memory(None, 1).state, Verdict::Fair);
    assert_eq!(main_memory(memory(2 << 30), 2).what, "8 GiB, 2 GiB available, on 2 nodes");
    assert_eq!(main_memory(memory(2 << 30), 1).state, Verdict::Good);
    let scarce = main_memory(memory(100 << 20), 1);
    assert_eq!(scarce.state, Verdict::Fair);
    assert!(scarce.advice.is_some());
}

#[test]
fn counters_are_explained() {
    let support = |level, errno, paranoid| counters::Support { level, errno, paranoid };
    let advice = |support| performance_counters(support).advice.unwrap_or_default();
    assert_eq!(performance_counters(support(counters::Level::Hardware, None, None)).state, Verdict::Good);
    let refused = support(counters::Level::Nothing, Some(libc::EACCES), Some(4));
    assert_eq!(advice(refused), "sudo sysctl kernel.perf_event_paranoid=2");
    let boxed = support(counters::Level::Nothing, Some(libc::EPERM), Some(1));
    assert!(advice(boxed).contains("perf_event_open"));
    let virtual_machine = support(counters::Level::Software, Some(libc::ENOENT), Some(2));
    assert_eq!(performance_counters(virtual_machine).state, Verdict::Fair);
    assert!(advice(virtual_machine).contains("pmu=on"));
}

#[test]
fn files_are_judged_by_the_limit_in_force() {
    let limit = |soft, hard| open_files(files::Limit { soft, hard });
    assert_eq!(limit(None, None).state, Verdict::Good);
    assert_eq!(limit(Some(4096), Some(4096)).state, Verdict::Good);
    assert_eq!(limit(Some(1024), Some(1 << 20)).state, Verdict::Fair);
    assert!(limit(Some(1024), Some(1 << 20)).advice.is_some_and(|text| text.starts_with("ulimit -n 65536")));
    assert!(limit(Some(1024), Some(5000)).advice.is_some_and(|text| text.starts_with("ulimit -n 5000")));
    assert!(limit(Some(100), Some(100)).advice.is_some_and(|text| text.contains("LimitNOFILE")));
    assert_eq!(limit(Some(100), Some(100)).state, Verdict::Poor);
}

#[test]
fn sizes_read_well() {
    assert_eq!(size(0), "0 bytes");
    assert_eq!(size(1023), "1023 bytes");
    assert_eq!(size(2 << 20), "2 MiB");
    assert_eq!(size((3 << 30) + (1 << 29)), "3.5 GiB");
    assert_eq!(size(u64::MAX), "16777216.0 TiB");
}
