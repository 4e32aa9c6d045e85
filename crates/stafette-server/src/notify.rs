//! Test of the notification channels.

use axum::Json;
use axum::extract::State;
use stafette_hooks::Tried;

use crate::openapi::operations;
use crate::triggers::unavailable;
use crate::{Edge, Problem};

operations! {
    pub(crate) fn routes() in "triggers";
    POST "/v1/notify/test" => test, Decide, "testNotifications",
        "Send a test message by every channel for news";
}

async fn test(State(edge): State<Edge>) -> Result<Json<Vec<Tried>>, Problem> {
    let (_, notifier) = edge.around.as_ref().ok_or_else(unavailable)?;
    let title = "No news can be sent";
    let tried = notifier.test().await;
    tried.map(Json).map_err(|why| Problem::new(409, "usage_notify", title).because(why))
}
