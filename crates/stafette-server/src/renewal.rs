//! Deploys new code to the team's own program.

use axum::Json;
use axum::extract::State;
use stafette_engine::{Renewal, RenewalError, renewal_code};

use crate::changes::{ApplyRequest, TheChange, hand};
use crate::openapi::operations;
use crate::principal::Principal;
use crate::problem::causes;
use crate::request::{Body, Named};
use crate::{Edge, Problem};

operations! {
    pub(crate) fn routes() in "changes";
    POST "/v1/changes/{change}/renew" => renew, Decide, "renewProgram",
        "Give the team's own program the code of a change, and restart it or bring it back";
}

async fn renew(
    State(edge): State<Edge>,
    principal: Principal,
    Named(the): Named<TheChange>,
    Body(ApplyRequest { by, as_it_is }): Body<ApplyRequest>,
) -> Result<Json<Renewal>, Problem> {
    let id = the.id()?;
    let workflow = (edge.workflow)()?;
    let rules = workflow.change_rules();
    let own = workflow.own.ok_or_else(|| {
        Problem::new(409, "no_program", "The team has no program of its own")
            .because("stafette.toml has no `[self]`")
    })?;
    let (by, changes) = (hand(&principal, by), edge.engine.changes());
    Ok(Json(changes.renew(id, as_it_is, &own, &rules, &by).await?))
}

impl From<RenewalError> for Problem {
    fn from(error: RenewalError) -> Self {
        if let RenewalError::Change(error) = error {
            return error.into();
        }
        let (status, code) = renewal_code(&error);
        Problem::new(status, code, error.to_string()).because(causes(&error))
    }
}
