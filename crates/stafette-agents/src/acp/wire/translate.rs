//! Translates the updates of an agent into our own types.

use agent_client_protocol_schema::v1::{
    ContentBlock, Cost, PermissionOption, PermissionOptionKind, Plan, PlanEntryStatus,
    RequestPermissionRequest, SessionUpdate, ToolCallContent, ToolCallUpdateFields, ToolKind,
};
use stafette_core::{Usage, Usd};

use super::{Choice, Event, PermissionDecision, Responder};
use crate::output::plain;
use crate::permission::{self, Deed};

/// The longest line that is shown to people, in characters.
const LINE: usize = 200;

/// The maximum number of lines that describe a question.
const LINES: usize = 40;

/// Translates an update; `None` when it means nothing to us.
pub(super) fn update(update: SessionUpdate) -> Option<Event> {
    match update {
        SessionUpdate::AgentMessageChunk(chunk) => match chunk.content {
            ContentBlock::Text(content) => Some(Event::Text {
                message: chunk.message_id.map(|id| id.0.to_string()),
                text: content.text,
            }),
            _ => Some(Event::Note(None)),
        },
        SessionUpdate::ToolCall(call) => Some(Event::Note(plain(&call.title, LINE))),
        SessionUpdate::ToolCallUpdate(update) => {
            Some(Event::Note(update.fields.title.and_then(|title| plain(&title, LINE))))
        }
        SessionUpdate::Plan(plan) => Some(Event::Note(step(&plan))),
        SessionUpdate::Notice(notice) => Some(Event::Note(plain(&notice.title, LINE))),
        SessionUpdate::UsageUpdate(update) => update.cost.and_then(cost).map(Event::Cost),
        // Any other update shows that the agent is alive.
        SessionUpdate::AgentThoughtChunk(_) => Some(Event::Note(None)),
        _ => None,
    }
}

/// The step of a plan that is in progress.
fn step(plan: &Plan) -> Option<String> {
    let done = plan.entries.iter().filter(|entry| entry.status == PlanEntryStatus::Completed);
    let done = done.count();
    let at = plan.entries.iter().find(|entry| entry.status == PlanEntryStatus::InProgress);
    let at = at.or_else(|| plan.entries.iter().find(|e| e.status == PlanEntryStatus::Pending))?;
    plain(&format!("{}/{}: {}", done + 1, plan.entries.len(), at.content), LINE)
}

fn cost(cost: Cost) -> Option<Usage> {
    let dollars = cost.currency.eq_ignore_ascii_case("usd").then_some(cost.amount)?;
    Some(Usage::exactly(0, Usd::from_dollars(dollars)?))
}

/// Translates a question to the user.
pub(super) fn ask(asked: RequestPermissionRequest, answer: Responder<PermissionDecision>) -> Event {
    let fields = asked.tool_call.fields;
    let deed = deed(fields.kind);
    // Qwen Code has the input for a title, and the name of the tool beside it.
    let meta = asked.tool_call.meta.as_ref();
    let named = meta.and_then(|meta| meta.get("toolName")?.as_str());
    let named = named.filter(|name| permission::is_own_tool(name));
    let title = named.or(fields.title.as_deref()).or(fields.name.as_deref());
    let title = title.and_then(|title| plain(title, LINE));
    let choices = asked.options.into_iter().map(choice).collect();
    Event::Ask {
        title: title.unwrap_or_else(|| "something that it does not name".to_owned()),
        detail: detail(&fields),
        deed,
        choices,
        answer,
    }
}

fn deed(kind: Option<ToolKind>) -> Deed {
    match kind {
        Some(ToolKind::Read | ToolKind::Search | ToolKind::Think) => Deed::Read,
        Some(ToolKind::Edit | ToolKind::Delete | ToolKind::Move) => Deed::Edit,
        Some(ToolKind::Execute) => Deed::Execute,
        Some(ToolKind::Fetch) => Deed::Fetch,
        Some(_) | None => Deed::Other,
    }
}

fn choice(option: PermissionOption) -> Choice {
    let (yes, always) = match option.kind {
        PermissionOptionKind::AllowOnce => (true, false),
        PermissionOptionKind::AllowAlways => (true, true),
        PermissionOptionKind::RejectAlways => (false, true),
        _ => (false, false),
    };
    let name = plain(&option.name, LINE).unwrap_or_else(|| option.option_id.to_string());
    Choice { id: option.option_id.to_string(), name, yes, always }
}

/// The details that a person needs for a decision: the places, the input, the change.
fn detail(fields: &ToolCallUpdateFields) -> String {
    let mut text = String::new();
    for location in fields.locations.iter().flatten() {
        text += &format!("{}\n", location.path.display());
    }
    if let Some(input) = &fields.raw_input {
        text += &serde_json::to_string_pretty(input).unwrap_or_default();
        text.push('\n');
    }
    for content in fields.content.iter().flatten() {
        match content {
            ToolCallContent::Content(content) => {
                if let ContentBlock::Text(content) = &content.content {
                    text += &content.text;
                    text.push('\n');
                }
            }
            ToolCallContent::Diff(diff) => {
                text += &format!("{}:\n{}\n", diff.path.display(), diff.new_text);
            }
            _ => {}
        }
    }
    let mut lines: Vec<String> =
        text.lines().filter_map(|line| plain(line, LINE)).take(LINES + 1).collect();
    if lines.len() > LINES {
        lines[LINES] = "…".to_owned();
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn b_13_our_own_tool_is_known_by_the_name_beside_its_title() {
        let title = |name: &str| {
            let call = json!({
                "toolCallId": "1", "title": "{}", "kind": "other", "_meta": { "toolName": name },
            });
            let asked = json!({ "sessionId": "s", "toolCall": call, "options": [] });
            let asked = serde_json::from_value(asked).expect("a question");
            match ask(asked, Responder(Box::new(|_| ()))) {
                Event::Ask { title, .. } => title,
                event => panic!("{event:?}"),
            }
        };
        assert_eq!(title("mcp__stafette__handoff"), "mcp__stafette__handoff");
        assert_eq!(title("mcp__mail__send"), "{}", "others keep what they show");
    }
}
