//! Responses that are more than one JSON document.

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as Described, StatusCode as Status};
use axum::Json;
use axum::http::HeaderValue;
use axum::http::header::LINK;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

/// A page of a list; the header `Link` names the next page.
#[derive(Debug)]
pub(crate) struct Listed<T> {
    pub(crate) items: Vec<T>,
    pub(crate) next: Option<String>,
}

impl<T: Serialize> IntoResponse for Listed<T> {
    fn into_response(self) -> Response {
        let mut response = Json(self.items).into_response();
        let link = self.next.map(|next| HeaderValue::from_str(&format!("<{next}>; rel=\"next\"")));
        if let Some(Ok(link)) = link {
            response.headers_mut().insert(LINK, link);
        }
        response
    }
}

impl<T: JsonSchema> OperationOutput for Listed<T> {
    type Inner = Vec<T>;

    fn operation_response(context: &mut GenContext, op: &mut Operation) -> Option<Described> {
        let mut described = Json::<Vec<T>>::operation_response(context, op)?;
        described.description =
            "A page of the list. The header `Link` tells where the next one is.".to_owned();
        Some(described)
    }

    fn inferred_responses(
        context: &mut GenContext,
        op: &mut Operation,
    ) -> Vec<(Option<Status>, Described)> {
        Self::operation_response(context, op)
            .map(|answer| (Some(Status::Code(200)), answer))
            .into_iter()
            .collect()
    }
}

/// A response that is not one JSON document; `K` describes its media types.
#[derive(Debug)]
pub(crate) struct Raw<K>(pub(crate) Response, pub(crate) std::marker::PhantomData<K>);

impl<K> From<Response> for Raw<K> {
    fn from(response: Response) -> Self {
        Raw(response, std::marker::PhantomData)
    }
}

/// Description of a [`Raw`] response for the API document.
pub(crate) trait Form {
    /// Status code and description.
    const MEANS: (u16, &'static str);
    /// Media types of the body.
    const TYPES: &'static [&'static str];
    /// Registers the schemas of the types that the body consists of.
    fn parts(_: &mut GenContext) {}
}

impl<K> IntoResponse for Raw<K> {
    fn into_response(self) -> Response {
        self.0
    }
}

impl<K: Form> OperationOutput for Raw<K> {
    type Inner = ();

    fn operation_response(context: &mut GenContext, _: &mut Operation) -> Option<Described> {
        K::parts(context);
        let types = K::TYPES.iter().map(|kind| ((*kind).to_owned(), MediaType::default()));
        Some(Described {
            description: K::MEANS.1.to_owned(),
            content: types.collect(),
            ..Described::default()
        })
    }

    fn inferred_responses(
        context: &mut GenContext,
        op: &mut Operation,
    ) -> Vec<(Option<Status>, Described)> {
        let answer = Self::operation_response(context, op);
        answer.map(|answer| (Some(Status::Code(K::MEANS.0)), answer)).into_iter().collect()
    }
}
