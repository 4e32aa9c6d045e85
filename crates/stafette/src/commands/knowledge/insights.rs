//! `insights` and `params`: lists what was learned, and the parameters in use because of it.

use serde_json::{Value, json};

use super::{Context, list, moment, text};
use crate::cli::{self, InsightsCommand, ParamsCommand};
use crate::commands::{daemon, segment};
use crate::exit::{Exit, Failure};
use crate::output::short;

pub(crate) async fn run(context: &Context, arguments: cli::Insights) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let output = context.output;
    let (answer, said): (Value, String) = match arguments.command {
        None => return all(context).await,
        Some(InsightsCommand::Reflect) => {
            let found: Value = client.post("/v1/insights/reflect", &json!({})).await?;
            let count = list(&found, "/insights").len();
            let said = format!("{count} patterns in {} observations", found["observations"]);
            (found, said)
        }
        Some(InsightsCommand::Accept { id }) => {
            let path = format!("/v1/insights/{}/accept", segment(&id));
            let version: Value = client.post(&path, &json!({})).await?;
            let said = format!("version {} is in force", version["number"]);
            (version, said)
        }
        Some(InsightsCommand::Evidence { id }) => {
            let path = format!("/v1/insights/{}/evidence", segment(&id));
            let found: Value = client.get(&path).await?;
            let way = |way: &Value| {
                let steps = way.as_array().into_iter().flatten().filter_map(Value::as_str);
                steps.collect::<Vec<_>>().join(" → ")
            };
            let said = list(&found, "/ways").iter().map(way).collect::<Vec<_>>().join("\n");
            (found, said)
        }
    };
    match output.json {
        true => output.data(&answer),
        false => output.line(&said),
    }
    Ok(Exit::Ok)
}

async fn all(context: &Context) -> Result<Exit, Failure> {
    let output = context.output;
    let found: Value = daemon(context).await?.get("/v1/insights").await?;
    if output.json {
        output.data(&found);
        return Ok(Exit::Ok);
    }
    let insights = list(&found, "/insights");
    if insights.is_empty() {
        output.say("Nothing was learned yet. Look again with `stafette insights reflect`.");
        return Ok(Exit::Ok);
    }
    let rows = insights.iter().map(|insight| {
        let force = match insight["in_force"].as_u64() {
            Some(version) => format!("version {version}"),
            None if insight["change"].is_null() => "good to know".to_owned(),
            None => "not accepted".to_owned(),
        };
        let sure = insight["confidence"].as_f64().unwrap_or(0.0) * 100.0;
        vec![
            text(insight, "/id"),
            format!("{sure:.0} %"),
            force,
            short(&text(insight, "/pattern"), 90),
        ]
    });
    output.table(&["insight", "sure", "counts", "pattern"], rows.collect());
    Ok(Exit::Ok)
}

pub(crate) async fn params(context: &Context, arguments: cli::Params) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let output = context.output;
    if let Some(ParamsCommand::Rollback { to: version }) = arguments.command {
        let made: Value = client.post("/v1/parameters/rollback", &json!({ "to": version })).await?;
        match output.json {
            true => output.data(&made),
            false => output.line(format!("version {} is as version {version} was", made["number"])),
        }
        return Ok(Exit::Ok);
    }
    let found: Value = client.get("/v1/parameters").await?;
    if output.json {
        output.data(&found);
        return Ok(Exit::Ok);
    }
    let rows = list(&found, "/versions").iter().map(|version| {
        let why = match text(version, "/why").as_str() {
            "accepted" => format!("accepted {}", text(version, "/insight")),
            "rolled_back" => format!("back to version {}", version["to"]),
            _ => "start".to_owned(),
        };
        let (weights, estimates) =
            (&version["parameters"]["weights"], &version["parameters"]["estimates"]);
        let fields = weights.as_object().into_iter().flatten();
        let weights: Vec<String> = fields.map(|(name, value)| format!("{name} {value}")).collect();
        vec![
            version["number"].to_string(),
            moment(&version["at"]),
            why,
            estimates.to_string(),
            weights.join(", "),
        ]
    });
    output.table(&["version", "since", "because", "estimates", "weights"], rows.collect());
    Ok(Exit::Ok)
}
