//! Address of a database: a URL that is shown without its secrets.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::ConnectError;

/// Default schema that holds the tables.
const SCHEMA: &str = "stafette";

/// A database, and the schema in it.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) schema: String,
    shown: String,
}

impl Address {
    /// Parses a URL such as `postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME&…`.
    pub(super) fn parse(url: &str) -> Result<Self, ConnectError> {
        let flaw = |flaw: String| ConnectError::Address { flaw };
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(flaw("it does not begin with postgres://".to_owned()));
        }
        let (rest, schema) = without_schema(url);
        let schema = schema.unwrap_or_else(|| SCHEMA.to_owned());
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let begins = schema.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        if !begins || !schema.chars().all(letters) || schema.len() > 63 || schema.starts_with("pg_")
        {
            return Err(flaw("a schema is named by small letters, digits and _".to_owned()));
        }
        // The message comes from the parser, which never repeats the password.
        let mut config: Config = rest.parse().map_err(|error: tokio_postgres::Error| {
            flaw(std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string))
        })?;
        let shown = shown(&config, &schema);
        config.ssl_mode(protection(&config));
        config.application_name("stafette").keepalives_idle(Duration::from_secs(10));
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(5));
        }
        Ok(Address { config, schema, shown })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Splits our own parameter `schema` off the URL.
fn without_schema(url: &str) -> (String, Option<String>) {
    let Some((place, words)) = url.split_once('?') else { return (url.to_owned(), None) };
    let (ours, others): (Vec<&str>, Vec<&str>) = words
        .split('&')
        .filter(|word| !word.is_empty())
        .partition(|word| word.starts_with("schema="));
    let schema = ours.last().map(|word| word.trim_start_matches("schema=").to_owned());
    match others.is_empty() {
        true => (place.to_owned(), schema),
        false => (format!("{place}?{}", others.join("&")), schema),
    }
}

fn shown(config: &Config, schema: &str) -> String {
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let hosts = config.get_hosts().iter().enumerate().map(|(n, host)| {
        let port = config.get_ports().get(n).or_else(|| config.get_ports().first());
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        match host {
            Host::Tcp(name) => format!("{name}{port}"),
            Host::Unix(folder) => format!("{}{port}", folder.display()),
        }
    });
    let hosts = hosts.collect::<Vec<_>>().join(",");
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    let schema = if schema == SCHEMA { String::new() } else { format!("?schema={schema}") };
    format!("postgres://{user}{hosts}/{database}{schema}")
}

/// Chooses the TLS mode. On this machine nobody can eavesdrop, and local servers have self-signed
/// certificates. Other connections use TLS, unless the address says otherwise.
fn protection(config: &Config) -> SslMode {
    let near = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
    };
    match config.get_ssl_mode() {
        SslMode::Prefer if config.get_hosts().iter().all(near) => SslMode::Disable,
        SslMode::Prefer => SslMode::Require,
        said => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_shown_without_its_password() {
        let address = Address::parse("postgres://ada:s3cret@localhost:5433/work?schema=team_1");
        let address = address.expect("an address");
        assert_eq!(address.to_string(), "postgres://ada@localhost:5433/work?schema=team_1");
        assert!(!format!("{address:?}").contains("s3cret"));
        assert_eq!(address.schema, "team_1");
        let address =
            Address::parse("postgresql://ada@%2Frun%2Fpostgresql/work").expect("a socket");
        assert_eq!(address.to_string(), "postgres://ada@/run/postgresql:5432/work");
        assert_eq!(address.schema, "stafette");
    }

    #[test]
    fn what_cannot_be_an_address_is_refused_without_repeating_a_password() {
        for bad in [
            "mysql://ada:s3cret@localhost/work",
            "postgres://ada:s3cret@localhost:none/work",
            "postgres://ada:s3cret@localhost/work?no_such=1",
            "postgres://ada:s3cret@localhost/work?schema=a\"b",
            "postgres://ada:s3cret@localhost/work?schema=pg_catalog",
        ] {
            let refused = Address::parse(bad).expect_err(bad);
            assert!(matches!(refused, ConnectError::Address { .. }), "{bad}: {refused:?}");
            assert!(!refused.to_string().contains("s3cret"), "{refused}");
        }
    }

    #[test]
    fn nothing_leaves_the_machine_in_the_open_unasked() {
        let mode = |url| Address::parse(url).expect("an address").config.get_ssl_mode();
        for far in [
            "postgres://ada@db.example/work",
            "postgres://ada@192.0.2.7/work",
            "postgres://ada@localhost,db.example/work",
            "postgres://ada@localhost/work?sslmode=require",
        ] {
            assert_eq!(mode(far), SslMode::Require, "{far}");
        }
        for plain in [
            "postgres://ada@db.example/work?sslmode=disable",
            "postgres://ada@[::1]/work",
            "postgres://ada@%2Frun%2Fpostgresql/work",
        ] {
            assert_eq!(mode(plain), SslMode::Disable, "{plain}");
        }
    }
}
