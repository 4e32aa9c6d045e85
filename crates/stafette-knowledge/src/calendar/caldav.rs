//! A calendar on a CalDAV server (RFC 4791): discovered from a server's address, read by version,
//! and written only over the version that was read.

use std::collections::BTreeMap;
use std::fmt;

use stafette_http::Address;
use tokio::sync::OnceCell;

use super::{Calendar, CalendarError, Changes, Entry, LARGEST_ENTRY, MOST_ENTRIES, Reply, Seen};

mod server;
mod xml;

use server::{HttpResponse, Server};
use xml::Response;

/// The number of entries in one request.
const STEP: usize = 50;

/// The address of a calendar and the credentials for it.
#[derive(Clone)]
pub struct CalDavSettings {
    /// The URL of the server, of the user's home on it, or of the calendar itself.
    pub url: String,
    pub user: String,
    /// The user's password. It is never printed.
    pub password: String,
    /// The display name of the calendar; needed if the user has several.
    pub calendar: Option<String>,
}

impl fmt::Debug for CalDavSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CalDavSettings")
            .field("url", &self.url)
            .field("user", &self.user)
            .field("calendar", &self.calendar)
            .finish_non_exhaustive()
    }
}

/// A calendar on a CalDAV server.
#[derive(Debug)]
pub struct CalDav {
    server: Server,
    start: Address,
    wanted: Option<String>,
    found: OnceCell<Address>,
}

const PRINCIPAL: &str = r#"<propfind xmlns="DAV:"><prop><resourcetype/><displayname/><current-user-principal/></prop></propfind>"#;
const HOME: &str = r#"<propfind xmlns="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><prop><c:calendar-home-set/></prop></propfind>"#;
const LIST: &str = r#"<propfind xmlns="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><prop><resourcetype/><displayname/><c:supported-calendar-component-set/></prop></propfind>"#;
const CTAG: &str = r#"<propfind xmlns="DAV:" xmlns:s="http://calendarserver.org/ns/"><prop><s:getctag/><sync-token/></prop></propfind>"#;
const ETAGS: &str = r#"<propfind xmlns="DAV:"><prop><getetag/><resourcetype/></prop></propfind>"#;

impl CalDav {
    /// Creates a client for this address without connecting.
    ///
    /// # Errors
    /// If the address is invalid.
    pub fn new(settings: &CalDavSettings) -> Result<Self, CalendarError> {
        let start = Address::parse(&settings.url)?;
        let server = Server::new(&start, &settings.user, &settings.password);
        let wanted = settings.calendar.clone();
        Ok(CalDav { server, start, wanted, found: OnceCell::new() })
    }

    /// Returns the URL of the calendar itself.
    pub async fn address(&self) -> Result<String, CalendarError> {
        self.collection().await.map(ToString::to_string)
    }

    async fn collection(&self) -> Result<&Address, CalendarError> {
        self.found.get_or_try_init(|| self.discover()).await
    }

    async fn propfind(
        &self,
        at: &Address,
        depth: &str,
        body: &str,
    ) -> Result<Vec<Response>, CalendarError> {
        let answer = self.server.send("PROPFIND", at, &[XML, ("depth", depth)], body).await?;
        answer.multistatus()
    }

    /// Finds the principal from the given address, and the user's calendars from there.
    async fn home(&self) -> Result<Address, CalendarError> {
        let mut principal = None;
        for at in [self.start.clone(), self.start.join("/.well-known/caldav")?] {
            let found = match self.propfind(&at, "0", PRINCIPAL).await {
                Ok(found) => found,
                // If an address does not exist, the next one is tried.
                Err(CalendarError::Gone { .. } | CalendarError::Failed { .. }) => continue,
                Err(error) => return Err(error),
            };
            principal = found.iter().find_map(|one| one.href_in("current-user-principal"));
            if principal.is_some() {
                break;
            }
        }
        let none = |what: &str| CalendarError::Failed {
            why: format!("{} does not say where {what} is", self.start),
        };
        let principal = principal.ok_or_else(|| none("the user"))?;
        let principal = self.start.join(&principal)?;
        let found = self.propfind(&principal, "0", HOME).await?;
        let home = found.iter().find_map(|one| one.href_in("calendar-home-set"));
        Ok(principal.join(&home.ok_or_else(|| none("the user's calendar"))?)?)
    }

    async fn calendars(
        &self,
        home: &Address,
    ) -> Result<Vec<(Address, Option<String>)>, CalendarError> {
        let found = self.propfind(home, "1", LIST).await?;
        let calendars = found.iter().filter(|one| one.is_calendar() && one.takes_events());
        calendars.map(|one| Ok((home.join(&one.href)?, one.text("displayname")))).collect()
    }

    async fn discover(&self) -> Result<Address, CalendarError> {
        if let Ok(found) = self.propfind(&self.start, "0", PRINCIPAL).await
            && found.first().is_some_and(Response::is_calendar)
        {
            return Ok(self.start.clone());
        }
        let home = self.home().await?;
        let calendars = self.calendars(&home).await?;
        let names = || {
            let names = calendars.iter().map(|(at, name)| name.clone().unwrap_or(at.to_string()));
            names.collect::<Vec<_>>().join(", ")
        };
        let chosen: Vec<_> = match &self.wanted {
            Some(wanted) => calendars
                .iter()
                .filter(|(at, name)| name.as_ref() == Some(wanted) || is_path(at, wanted))
                .collect(),
            None => calendars.iter().collect(),
        };
        match &chosen[..] {
            [(at, _)] => Ok(at.clone()),
            [] => Err(CalendarError::Failed {
                why: format!("there is no such calendar; there are: {}", names()),
            }),
            _ => Err(CalendarError::Failed {
                why: format!("say which calendar is meant; there are: {}", names()),
            }),
        }
    }

    async fn entry_at(&self, name: &str) -> Result<Address, CalendarError> {
        check_segment(name)?;
        Ok(self.collection().await?.join(name)?)
    }

    async fn read(&self, name: &str) -> Result<Entry, CalendarError> {
        let at = self.entry_at(name).await?;
        let answer = self.server.send("GET", &at, &[], "").await?;
        if answer.status != 200 {
            return Err(answer.trouble(name));
        }
        let etag = answer.etag.clone().ok_or_else(|| no_version(name))?;
        Ok(Entry { name: name.to_owned(), etag, text: answer.text()? })
    }

    async fn write(
        &self,
        name: &str,
        text: &str,
        etag: Option<&str>,
    ) -> Result<Entry, CalendarError> {
        if text.len() > LARGEST_ENTRY {
            let why = "it is too large".to_owned();
            return Err(CalendarError::Unusable { name: name.to_owned(), why });
        }
        let at = self.entry_at(name).await?;
        let only = match etag {
            Some(etag) => ("if-match", etag),
            None => ("if-none-match", "*"),
        };
        let kind = ("content-type", "text/calendar; charset=utf-8");
        let answer = self.server.send("PUT", &at, &[kind, only], text).await?;
        match (answer.status, answer.etag.clone()) {
            (200..=299, Some(etag)) => {
                Ok(Entry { name: name.to_owned(), etag, text: text.to_owned() })
            }
            // The server changed the entry and expects the client to read it.
            (200..=299, None) => self.read(name).await,
            _ => Err(answer.trouble(name)),
        }
    }

    async fn changed(&self, seen: &Seen) -> Result<Changes, CalendarError> {
        let collection = self.collection().await?;
        let state = self.propfind(collection, "0", CTAG).await?;
        let ctag = state.first().and_then(|one| one.text("getctag").or(one.text("sync-token")));
        if ctag.is_some() && ctag == seen.ctag {
            return Ok(Changes { seen: seen.clone(), ..Changes::default() });
        }
        let mut etags = BTreeMap::new();
        for one in self.propfind(collection, "1", ETAGS).await? {
            if let (Some(name), Some(etag)) = (one.name(), one.text("getetag"))
                && !one.is_collection()
                && etags.len() < MOST_ENTRIES
            {
                etags.insert(name, etag);
            }
        }
        let new: Vec<&String> = etags
            .iter()
            .filter(|(name, etag)| seen.etags.get(*name) != Some(*etag))
            .map(|(name, _)| name)
            .collect();
        let mut changed = Vec::new();
        for names in new.chunks(STEP) {
            changed.extend(self.several(collection, names).await?);
        }
        changed.sort_by(|a, b| a.name.cmp(&b.name));
        // An entry that changed again during the read counts as it was read.
        for entry in &changed {
            etags.insert(entry.name.clone(), entry.etag.clone());
        }
        let gone = seen.etags.keys().filter(|name| !etags.contains_key(*name));
        let removed = gone.cloned().collect();
        Ok(Changes { changed, removed, seen: Seen { ctag, etags } })
    }

    async fn several(
        &self,
        collection: &Address,
        names: &[&String],
    ) -> Result<Vec<Entry>, CalendarError> {
        let mut body = String::from(
            r#"<c:calendar-multiget xmlns="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><prop><getetag/><c:calendar-data/></prop>"#,
        );
        for name in names {
            let at = collection.join(name)?;
            body.push_str(&format!("<href>{}</href>", xml::escape(at.path())));
        }
        body.push_str("</c:calendar-multiget>");
        let answer = self.server.send("REPORT", collection, &[XML, ("depth", "1")], body).await?;
        let entry = |one: Response| {
            let (name, etag) = (one.name()?, one.text("getetag")?);
            Some(Entry { name, etag, text: one.text("calendar-data")? })
        };
        Ok(answer.multistatus()?.into_iter().filter_map(entry).collect())
    }
}

const XML: (&str, &str) = ("content-type", "application/xml; charset=utf-8");

fn is_path(at: &Address, path: &str) -> bool {
    at.path().trim_matches('/') == path.trim_matches('/')
}

fn no_version(name: &str) -> CalendarError {
    let why = "the server gives it no version".to_owned();
    CalendarError::Unusable { name: name.to_owned(), why }
}

/// Accepts one part of a URL from any source, if it cannot lead anywhere else.
fn check_segment(name: &str) -> Result<(), CalendarError> {
    let fits = (1..=500).contains(&name.len()) && name != "." && name != "..";
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"/\\?#\"<>^`{|}".contains(&byte);
    if fits && name.bytes().all(plain) {
        return Ok(());
    }
    let why = "it cannot be a part of an address".to_owned();
    Err(CalendarError::Unusable { name: name.to_owned(), why })
}

impl HttpResponse {
    fn multistatus(self) -> Result<Vec<Response>, CalendarError> {
        match self.status {
            207 => xml::multistatus(&self.text()?),
            _ => Err(self.trouble("calendar")),
        }
    }

    /// Translates an unexpected status into an error.
    fn trouble(&self, name: &str) -> CalendarError {
        let name = name.to_owned();
        let why = format!("the server answered {}", self.status);
        match self.status {
            401 | 403 => CalendarError::Refused { why },
            404 | 410 => CalendarError::Gone { name },
            409 | 412 => CalendarError::Conflict { name },
            408 | 429 | 500..=599 => CalendarError::Away { why },
            _ => CalendarError::Failed { why },
        }
    }
}

impl Calendar for CalDav {
    fn changes<'a>(&'a self, seen: &'a Seen) -> Reply<'a, Changes> {
        Box::pin(self.changed(seen))
    }

    fn get<'a>(&'a self, name: &'a str) -> Reply<'a, Entry> {
        Box::pin(self.read(name))
    }

    fn put<'a>(&'a self, name: &'a str, text: &'a str, etag: Option<&'a str>) -> Reply<'a, Entry> {
        Box::pin(self.write(name, text, etag))
    }

    fn remove<'a>(&'a self, name: &'a str, etag: &'a str) -> Reply<'a, ()> {
        Box::pin(async move {
            let at = self.entry_at(name).await?;
            let answer = self.server.send("DELETE", &at, &[("if-match", etag)], "").await?;
            match answer.status {
                200..=299 => Ok(()),
                _ => Err(answer.trouble(name)),
            }
        })
    }
}
