//! The turn that a call is about, and the right to act in it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use stafette_core::lock::Holder;
use stafette_core::run::propose::Refusal;
use stafette_core::team::council::vote::Vote;
use stafette_core::trace::Traceparent;
use stafette_core::wire::phase::given;
use stafette_core::{
    AgentName, Fields, HandoffId, Offer, Party, Response, RunId, TurnKey, TurnOrder, TurnResult,
    Usage,
};
use stafette_engine::{Caller, EngineError};

use crate::ToolError;
use crate::call_context::CallContext;

/// Selects the turn that a call is about. An agent that Stafette started leaves both out.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Whose {
    /// Your turn, exactly as `accept` named it, such as `h3/1.1`. Leave it out if Stafette started
    /// you: then your turn is known.
    #[serde(default)]
    turn: Option<String>,
    /// The run that the turn belongs to: its id or the last digits of it. Only needed with `turn`
    /// if that does not begin with the run.
    #[serde(default)]
    run: Option<String>,
}

/// A turn, and the right to act in it.
#[derive(Clone, Debug)]
pub(crate) struct TurnHandle {
    pub(crate) turn: TurnKey,
    pub(crate) agent: AgentName,
    /// Session token of an agent that Stafette started; others act with the key of the turn.
    token: Option<String>,
}

impl CallContext {
    /// Returns the turn that the caller acts in.
    pub(crate) async fn handle(&self, whose: &Whose) -> Result<TurnHandle, ToolError> {
        if let Some(token) = &self.caller.token {
            let (run, agent, turn) = self.engine.sessions().turn(token, self.caller.pid).await?;
            let named = match whose.turn.as_deref() {
                Some(text) => Some(key(text, Some(run))?),
                None => None,
            };
            if named.is_some_and(|named| named != turn) {
                let what = format!("{agent} is in turn {}", short(turn));
                return Err(ToolError::new("not_yours", what)
                    .fix("Leave `turn` out: a session speaks for its own turn."));
            }
            return Ok(TurnHandle { turn, agent, token: Some(token.clone()) });
        }
        let Some(text) = whose.turn.as_deref() else {
            return Err(ToolError::new(
                "no_turn_named",
                "It is not known which turn this is about",
            )
            .fix("Take one with `wait` and `accept`, and give its `turn` here."));
        };
        let run = match whose.run.as_deref() {
            Some(run) => Some(self.run(Some(run)).await?),
            None => None,
        };
        let turn = key(text, run)?;
        let state = self.engine.state(turn.run).await?;
        let handoff = state.handoff(turn.handoff);
        let agent = handoff.and_then(|handoff| handoff.offer.to.as_str().parse().ok());
        let none = || EngineError::NoHandoff { run: turn.run, handoff: turn.handoff };
        let agent: AgentName = agent.ok_or_else(none)?;
        self.may_sit(&Party::from(&agent))?;
        self.may_see(turn.run).await?;
        Ok(TurnHandle { turn, agent, token: None })
    }

    /// Checks that the caller may act for this agent: a caller known to be an agent, by its
    /// credentials or its process, acts for no other.
    pub(crate) fn may_sit(&self, agent: &Party) -> Result<(), ToolError> {
        match self.caller.who.agent() {
            Some(own) if Party::from(own) != *agent => {
                tracing::warn!(%own, %agent, "an agent may not speak for another");
                Err(ToolError::new("not_yours", format!("{own} may not speak for {agent}"))
                    .fix("Leave the turn to its own agent."))
            }
            _ => Ok(()),
        }
    }

    /// Returns the holder of a lock: the agent with its turn, or a visitor without one.
    pub(crate) async fn holder(
        &self,
        whose: &Whose,
    ) -> Result<(Holder, Option<TurnKey>), ToolError> {
        if self.caller.token.is_none() && whose.turn.is_none() {
            let holder = match &self.caller.who {
                Caller::Agent { run, agent, .. } => Holder::session(*run, agent.clone()),
                _ => Holder::visitor(&self.caller.name),
            };
            return Ok((holder, None));
        }
        let handle = self.handle(whose).await?;
        self.order(&handle).await?;
        Ok((Holder::session(handle.turn.run, handle.agent), Some(handle.turn)))
    }

    /// Finds a run by its id, its last digits, or `latest`; a session's own run if left out.
    pub(crate) async fn run(&self, text: Option<&str>) -> Result<RunId, ToolError> {
        if let (Some(token), None) = (&self.caller.token, text) {
            return Ok(self.engine.sessions().turn(token, self.caller.pid).await?.0);
        }
        Ok(self.engine.find(text.filter(|text| *text != "latest")).await?)
    }

    /// Returns the span that a call belongs to: the caller's turn, the turn or run that `fields`
    /// name, or none.
    pub(crate) async fn traceparent(&self, fields: &Fields) -> Option<Traceparent> {
        if let Some(token) = &self.caller.token {
            let (run, _, turn) = self.engine.sessions().turn(token, self.caller.pid).await.ok()?;
            return self.engine.state(run).await.ok()?.traceparent(turn);
        }
        let text = |name: &str| fields.get(name).and_then(|value| value.as_str());
        let run = match text("run") {
            Some(run) => Some(self.run(Some(run)).await.ok()?),
            None => None,
        };
        match text("turn") {
            Some(turn) => {
                let turn = key(turn, run).ok()?;
                self.engine.state(turn.run).await.ok()?.traceparent(turn)
            }
            None => {
                let state = self.engine.state(run?).await.ok()?;
                let told = state.workflow.telemetry.otlp.is_some();
                told.then(|| Traceparent::of_run(state.id, state.trace))
            }
        }
    }

    /// Returns the order of the turn.
    pub(crate) async fn order(&self, handle: &TurnHandle) -> Result<TurnOrder, ToolError> {
        let state = self.engine.state(handle.turn.run).await?;
        state.order(handle.turn).ok_or_else(|| {
            ToolError::new("late", format!("Turn {} is over", short(handle.turn)))
                .fix("Stop working on it; call `wait` for what is next.")
        })
    }

    async fn tell(&self, token: &str, kind: &str, payload: Value) -> Result<(), EngineError> {
        self.engine.sessions().tell(token, self.caller.pid, kind, payload).await.map(drop)
    }

    /// Proposes a handoff from within the turn.
    pub(crate) async fn propose(&self, handle: &TurnHandle, offer: Offer) -> Result<(), ToolError> {
        let told = match &handle.token {
            Some(token) => self.tell(token, "HANDOFF", told_offer(&offer)).await,
            None => {
                let offer = Offer { trace: self.within, ..offer };
                self.engine.external().propose(handle.turn, offer).await
            }
        };
        match told {
            Ok(()) => Ok(()),
            Err(EngineError::Refused { refusal }) if !matches!(refusal, Refusal::Silent { .. }) => {
                let state = self.engine.state(handle.turn.run).await?;
                let targets = state.workflow.targets(&Party::from(&handle.agent));
                Err(ToolError::refused(&refusal, &targets))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Completes the turn. An external agent's turn ends with it; that of a session ends when its
    /// agent does.
    pub(crate) async fn answer(
        &self,
        handle: &TurnHandle,
        response: Response,
        usage: Usage,
    ) -> Result<(), ToolError> {
        match &handle.token {
            Some(token) => {
                if usage != Usage::default() {
                    self.tell(token, "REPORT", told_usage(None, usage)).await?;
                }
                self.tell(token, "RESULT", told_response(&response)).await?;
            }
            None => {
                let response = Response { usage, ..response };
                let result = TurnResult { usage, ..TurnResult::new(response) };
                self.engine.external().complete(handle.turn, result).await?;
            }
        }
        Ok(())
    }

    /// Casts the vote of a council member.
    pub(crate) async fn vote(&self, handle: &TurnHandle, vote: Vote) -> Result<(), ToolError> {
        match &handle.token {
            Some(token) => self.tell(token, "SIGNAL", json!(vote)).await?,
            None => self.engine.external().vote(handle.turn, vote).await?,
        }
        Ok(())
    }

    /// Returns the turn undone.
    pub(crate) async fn give_back(
        &self,
        handle: &TurnHandle,
        why: String,
    ) -> Result<(), ToolError> {
        match &handle.token {
            Some(token) => {
                let payload = json!({ "status": "failed", "failure": why });
                self.tell(token, "RESULT", payload).await?;
            }
            None => self.engine.external().reject(handle.turn, why).await?,
        }
        Ok(())
    }

    /// Reports progress and usage of the turn.
    pub(crate) async fn report(
        &self,
        handle: &TurnHandle,
        note: Option<String>,
        usage: Usage,
    ) -> Result<(), ToolError> {
        match &handle.token {
            Some(token) => self.tell(token, "REPORT", told_usage(note, usage)).await?,
            None => self.engine.external().report(handle.turn, note, usage).await?,
        }
        Ok(())
    }
}

impl TurnHandle {
    /// Returns true if Stafette started the agent.
    pub(crate) fn is_session(&self) -> bool {
        self.token.is_some()
    }
}

/// Returns the key of a turn within its run.
pub(crate) fn short(turn: TurnKey) -> String {
    format!("{}/{}.{}", turn.handoff, turn.attempt, turn.turn)
}

/// Parses the key of a turn, in full or within `run`.
fn key(text: &str, run: Option<RunId>) -> Result<TurnKey, ToolError> {
    let whole = match run {
        Some(run) if text.matches('/').count() == 1 => format!("{run}/{text}"),
        _ => text.to_owned(),
    };
    whole.parse().map_err(|_| {
        ToolError::new("not_a_turn", format!("`{text}` is not a turn"))
            .fix("Give `turn` as `accept` named it, such as h3/1.1, together with `run`.")
    })
}

/// Parses the id of a handoff.
pub(crate) fn handoff(text: &str) -> Result<HandoffId, ToolError> {
    text.parse().map_err(|error: stafette_core::id::NotAHandoff| {
        ToolError::new("not_a_handoff", error.to_string()).fix("Give it as `wait` named it.")
    })
}

/// Converts an offer to the form that a session sends.
fn told_offer(offer: &Offer) -> Value {
    let mut value = json!(offer);
    if let Some(fields) = value.as_object_mut() {
        // The giver is known, and fields outside the short form would be passed along as outputs.
        for name in ["from", "prior_attempts", "foreign"] {
            fields.remove(name);
        }
    }
    value
}

fn told_response(response: &Response) -> Value {
    if let Some(document) = given(response) {
        return serde_json::to_value(document).unwrap_or_default();
    }
    json!({
        "status": response.outcome,
        "outputs": response.outputs,
        "summary": response.summary,
        "unresolved": response.unresolved,
        "failure": response.failure,
        "recommendations": response.recommendations,
    })
}

fn told_usage(note: Option<String>, usage: Usage) -> Value {
    let mut fields = Fields::new();
    fields.extend(note.map(|note| ("note".to_owned(), note.into())));
    fields.insert("tokens".into(), usage.tokens.into());
    fields.insert("cost_usd".into(), usage.money.dollars().into());
    fields.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_named_whole_or_within_its_run() {
        let run: RunId = "0198f2c4-7a1b-7c3d-8e5f-0123456789ab".parse().expect("an id");
        let whole = format!("{run}/h3/1.2");
        let expected = key(&whole, None).expect("a turn");
        assert_eq!(key("h3/1.2", Some(run)), Ok(expected));
        assert_eq!(key(&whole, Some(run)), Ok(expected));
        assert_eq!(short(expected), "h3/1.2");
        assert_eq!(key("h3/1.2", None).expect_err("no run").code, "not_a_turn");
    }
}
