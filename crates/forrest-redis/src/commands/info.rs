//! `INFO`, in the sections and names that Redis's clients look for.

use super::{Context, VERSION, is};
use crate::fault::{Done, Fault};
use crate::keys;
use std::fmt::Write as _;

const SECTIONS: [&str; 7] =
    ["server", "clients", "memory", "persistence", "stats", "replication", "keyspace"];

pub(crate) fn info(context: &mut Context, args: &[&[u8]]) -> Done {
    let all = ["all", "everything", "default"];
    let wants = |section: &str| {
        args.len() == 1
            || args[1..].iter().any(|arg| is(arg, section) || all.iter().any(|word| is(arg, word)))
    };
    let mut text = String::new();
    for section in SECTIONS.into_iter().filter(|section| wants(section)) {
        let mut name = section.to_owned();
        name[..1].make_ascii_uppercase();
        if !text.is_empty() {
            text += "\r\n";
        }
        text += &format!("# {name}\r\n");
        self::section(context, section, &mut text)?;
    }
    context.reply.verbatim(&text);
    Ok(())
}

fn section(context: &mut Context, section: &str, text: &mut String) -> Result<(), Fault> {
    let server = &mut *context.server;
    let counts = &server.counts;
    let lines: Vec<(&str, String)> = match section {
        "server" => vec![
            ("redis_version", VERSION.to_owned()),
            ("server_name", "forrest".to_owned()),
            ("forrest_version", env!("CARGO_PKG_VERSION").to_owned()),
            ("redis_mode", "standalone".to_owned()),
            ("process_id", std::process::id().to_string()),
            ("tcp_port", server.port.to_string()),
            ("uptime_in_seconds", server.started.elapsed().as_secs().to_string()),
        ],
        "clients" => vec![
            ("connected_clients", server.clients.len().to_string()),
            ("maxclients", server.settings.connections.to_string()),
            ("blocked_clients", server.waiting.clients().to_string()),
        ],
        "memory" => vec![
            ("used_memory", server.used_bytes().to_string()),
            ("maxmemory", server.settings.memory_bytes_max.to_string()),
            ("maxmemory_policy", "noeviction".to_owned()),
            ("mem_clients_normal", server.buffers_bytes.to_string()),
            ("mem_allocator", "forrest".to_owned()),
        ],
        "persistence" => vec![
            ("loading", "0".to_owned()),
            ("rdb_bgsave_in_progress", "0".to_owned()),
            ("aof_enabled", i64::from(server.is_on_disk).to_string()),
            ("aof_rewrite_in_progress", "0".to_owned()),
        ],
        "stats" => vec![
            ("total_connections_received", counts.connections.to_string()),
            ("total_commands_processed", counts.commands.to_string()),
            ("rejected_connections", counts.refused.to_string()),
            ("expired_keys", counts.expired.to_string()),
            ("evicted_clients", counts.ended_for_memory.to_string()),
            ("clients_ended_for_time", counts.ended_for_time.to_string()),
            ("keyspace_hits", counts.hits.to_string()),
            ("keyspace_misses", counts.misses.to_string()),
            ("total_forks", "0".to_owned()),
            ("syncs", counts.syncs.to_string()),
        ],
        "replication" => vec![
            ("role", "master".to_owned()),
            ("connected_slaves", "0".to_owned()),
            ("master_repl_offset", "0".to_owned()),
        ],
        _ => Vec::new(),
    };
    for (name, value) in lines {
        let _infallible = write!(text, "{name}:{value}\r\n");
    }
    if section == "keyspace" {
        for database in 0..server.settings.databases {
            let slot = server.data.slot(database);
            let records = keys::records(slot);
            let count = server.data.count_about(&records, &keys::after(records))?;
            if count > 0 {
                let (start, end) = (keys::expiry(slot, 0, &[]), [slot, 3]);
                let expires = server.data.count_about(&start, &end)?;
                let _infallible = write!(text, "db{database}:keys={count},expires={expires},avg_ttl=0\r\n");
            }
        }
    }
    Ok(())
}
