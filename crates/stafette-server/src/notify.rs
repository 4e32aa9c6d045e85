//! Test of the notification channels.

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use axum::Json;
use axum::extract::State;
use stafette_engine::Right;
use stafette_hooks::Tried;

use crate::openapi::named;
use crate::triggers::unavailable;
use crate::{Edge, Problem};

pub(crate) fn routes() -> ApiRouter<Edge> {
    let about = named(
        "triggers",
        Right::Decide,
        "testNotifications",
        "Send a test message by every channel for news",
    );
    ApiRouter::new().api_route("/v1/notify/test", post_with(test, about))
}

async fn test(State(edge): State<Edge>) -> Result<Json<Vec<Tried>>, Problem> {
    let (_, notifier) = edge.around.as_ref().ok_or_else(unavailable)?;
    let title = "No news can be sent";
    let tried = notifier.test().await;
    tried.map(Json).map_err(|why| Problem::new(409, "usage_notify", title).because(why))
}
