//! Triggers that let the later of two versions of a record win at every site.
//!
//! Two sites that write one record while the link between them is cut, or at the same moment, receive each other's
//! change afterwards: without more, each would end up with the other's value. The thread that applies what other
//! sites have written runs these triggers, which leave a record as it is when its version is later than the one that
//! arrives. A deletion wins over a change of the same moment.
//!
//! The server has to be told to run triggers for what it receives (`slave_run_triggers_for_rbr = ENFORCE`), and to let
//! a user create them without `SUPER` (`log_bin_trust_function_creators = ON`); `deploy/two-sites` has both. The triggers
//! are created where the first is set. What this program writes has a later version than what is stored
//! ([`Version::beyond`](crate::Version)), so the triggers change nothing of it; its connections set [`LOCAL`], which
//! spares them a look-up for each insertion.

use std::collections::HashMap;

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;

use super::migrate::at;
use super::sql::{SIDE_VERSION, SqlTable};
use crate::error::Error;

/// A variable of connections that are not replication.
pub(super) const LOCAL: &str = "@signalbox_local";

/// Creates the triggers that are absent or of another list of columns.
pub(super) async fn create(conn: &mut Conn, tables: &[SqlTable]) -> Result<(), Error> {
    if !are_run(conn).await {
        return Ok(());
    }
    let select = "SELECT trigger_name, action_statement FROM information_schema.triggers WHERE trigger_schema = DATABASE()";
    let found: Vec<(String, String)> = conn.query(select).await.map_err(at("triggers"))?;
    let found: HashMap<String, String> = found.into_iter().collect();
    for trigger in tables.iter().flat_map(wanted) {
        if found.get(&trigger.name) == Some(&trigger.body) {
            continue;
        }
        let create = format!(
            "CREATE OR REPLACE TRIGGER `{}` BEFORE {} ON `{}` FOR EACH ROW {}",
            trigger.name, trigger.event, trigger.table, trigger.body
        );
        if let Err(error) = conn.query_drop(create).await {
            tracing::warn!(
                trigger = trigger.name,
                %error,
                "cannot create a trigger: conflicts between sites are not settled; the user needs the privilege TRIGGER, and the server log_bin_trust_function_creators = ON"
            );
            return Ok(());
        }
        tracing::info!(
            trigger = trigger.name,
            "a trigger that settles conflicts between sites is created"
        );
    }
    Ok(())
}

/// Whether the server runs triggers for what it receives from other sites.
pub(super) async fn are_run(conn: &mut Conn) -> bool {
    // Servers of another make do not know the variable.
    let variable: Result<Option<(String, String)>, _> = conn
        .query_first("SHOW GLOBAL VARIABLES LIKE 'slave_run_triggers_for_rbr'")
        .await;
    matches!(variable, Ok(Some((_, value))) if value.eq_ignore_ascii_case("ENFORCE"))
}

struct Trigger {
    name: String,
    event: &'static str,
    table: String,
    body: String,
}

fn wanted(table: &SqlTable) -> Vec<Trigger> {
    let id = table.id.name;
    let columns = table.columns();
    let mut triggers = of(table.name, id, table.version, &columns)
        .into_iter()
        .collect::<Vec<_>>();
    // A key that one record may have: sites may have given it to two.
    for (_, index, side) in table.side_tables().filter(|(_, index, _)| index.unique) {
        let columns = [index.column.clone(), id.to_owned(), SIDE_VERSION.to_owned()];
        triggers.extend(of(side, &index.column, SIDE_VERSION, &columns));
    }
    triggers
}

fn of(table: &str, primary: &str, version: &str, columns: &[String]) -> [Trigger; 2] {
    let others = || columns.iter().filter(|column| *column != primary);
    let stay: Vec<String> = others()
        .map(|column| format!("NEW.`{column}` = OLD.`{column}`"))
        .collect();
    let stored = |column: &String| {
        format!(
            "NEW.`{column}` = (SELECT t.`{column}` FROM `{table}` t WHERE t.`{primary}` = NEW.`{primary}`)"
        )
    };
    let take: Vec<String> = others().map(stored).collect();
    let trigger = |event: &'static str, body| Trigger {
        name: format!("signalbox_{table}_{}", event.to_lowercase()),
        event,
        table: table.to_owned(),
        body,
    };
    [
        trigger(
            "UPDATE",
            format!(
                "BEGIN IF NEW.`{version}` < OLD.`{version}` THEN SET {}; END IF; END",
                stay.join(", ")
            ),
        ),
        // An insertion of what is there already replaces it (slave_exec_mode = IDEMPOTENT): by itself then.
        trigger(
            "INSERT",
            format!(
                "BEGIN IF {LOCAL} IS NULL AND EXISTS (SELECT 1 FROM `{table}` t WHERE t.`{primary}` = NEW.`{primary}` \
                 AND t.`{version}` > NEW.`{version}`) THEN SET {}; END IF; END",
                take.join(", ")
            ),
        ),
    ]
}
