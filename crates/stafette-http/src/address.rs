//! HTTP addresses, and checks of their hosts.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::time::timeout;

use crate::HttpError;

/// Maximum length of an address, in bytes.
const LONGEST: usize = 2048;

/// Time limit of a DNS lookup.
const LOOKUP: Duration = Duration::from_secs(10);

/// An `http` or `https` address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    tls: bool,
    /// In lower case, and without brackets.
    host: String,
    port: u16,
    /// With the query, and always with a leading slash.
    path: String,
}

impl Address {
    /// Parses an address.
    ///
    /// # Errors
    /// When it is not valid, or contains a user name.
    pub fn parse(url: &str) -> Result<Address, HttpError> {
        Self::parse_with(url, 80)
    }

    /// Like [`Address::parse`], with another default port for `http`.
    pub fn parse_with(url: &str, plain: u16) -> Result<Address, HttpError> {
        let wrong = |why| HttpError::Address { url: url.chars().take(200).collect(), why };
        if url.len() > LONGEST {
            return Err(wrong("it is too long"));
        }
        if !url.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err(wrong("it has characters that no address has"));
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it is not a URL"))?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("it must begin with http:// or https://")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(wrong("it names a user, which belongs in a setting of its own"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or_else(|| wrong("it has no host"))?;
                host.parse::<Ipv6Addr>().map_err(|_| wrong("it has no host"))?;
                (host, after)
            }
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().map_err(|_| wrong("its port is none"))?,
            None if port.is_empty() => usual(tls, plain),
            None => return Err(wrong("it has no host")),
        };
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Address { tls, host: host.to_ascii_lowercase(), port, path })
    }

    /// Resolves a link relative to this address: absolute, from the root, or relative.
    pub fn join(&self, to: &str) -> Result<Address, HttpError> {
        if to.contains("://") {
            return Address::parse(to);
        }
        let path = match to.starts_with('/') {
            true => to.to_owned(),
            false => {
                let folder = self.path().rsplit_once('/').map_or("", |(folder, _)| folder);
                format!("{folder}/{to}")
            }
        };
        Address::parse(&format!("{}{path}", self.origin()))
    }

    /// Returns this address with `path` appended.
    pub fn below(&self, path: &str) -> Address {
        let base = self.path().trim_end_matches('/');
        Address { path: format!("{base}{path}"), ..self.clone() }
    }

    /// Returns the server of `other` with the path of this address.
    pub fn on(&self, other: &Address) -> Address {
        Address { path: self.path.clone(), ..other.clone() }
    }

    /// Returns true if both are the same server; all names of this machine count as one.
    pub fn is_beside(&self, other: &Address) -> bool {
        let own = |address: &Address| {
            let ip = address.host.parse::<IpAddr>();
            address.host == "localhost"
                || ip.is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
        };
        (self.tls, self.port) == (other.tls, other.port)
            && (self.host == other.host || (own(self) && own(other)))
    }

    /// Returns true if data for `home` may be sent here too: to the same server, or with TLS to
    /// another host of the same domain.
    pub fn belongs_to(&self, home: &Address) -> bool {
        let domain = |host: &str| {
            let mut labels = host.rsplitn(3, '.');
            let last: Vec<&str> = labels.by_ref().take(2).collect();
            (last.len() == 2).then(|| last.join("."))
        };
        let same = (self.tls, &self.host, self.port) == (home.tls, &home.host, home.port);
        let named = home.host.parse::<IpAddr>().is_err();
        same || (self.tls && named && domain(&self.host) == domain(&home.host))
    }

    /// Returns true for `https`.
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// Returns the host name or IP address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port, also if it is the default.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path without the query.
    pub fn path(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// Returns the path with the query, as it is sent.
    pub(crate) fn target(&self) -> &str {
        &self.path
    }

    /// Returns the host, with the port if it is not the default.
    pub fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        match self.port == usual(self.tls, 80) {
            true => host,
            false => format!("{host}:{}", self.port),
        }
    }

    fn origin(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }

    /// Resolves the host name to all its addresses.
    ///
    /// # Errors
    /// When the name has none.
    pub async fn resolve(&self) -> Result<Vec<SocketAddr>, HttpError> {
        let unreachable = |why: String| HttpError::Unreachable { at: self.authority(), why };
        let found = timeout(LOOKUP, tokio::net::lookup_host((self.host.as_str(), self.port)));
        let found = found.await.map_err(|_| unreachable("its name is not found in time".into()))?;
        let found: Vec<SocketAddr> =
            found.map_err(|error| unreachable(error.to_string()))?.collect();
        match found.is_empty() {
            true => Err(unreachable("its name stands for nothing".into())),
            false => Ok(found),
        }
    }
}

fn usual(tls: bool, plain: u16) -> u16 {
    if tls { 443 } else { plain }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path)
    }
}

/// Returns true for an IP address of the public internet: not of this machine, the local network,
/// or any other range with limited reach.
pub fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => {
            let first = ip.segments()[0];
            // Only the range allocated so far; an IPv4 address wrapped in IPv6 (6to4, Teredo) could
            // be anywhere.
            first & 0xe000 == 0x2000
                && first != 0x2002
                && !(first == 0x2001 && ip.segments()[1] < 0x200)
        }
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, ..] = ip.octets();
    let shared = a == 100 && b & 0xc0 == 64;
    let measured = a == 198 && b & 0xfe == 18;
    let special = [a, b] == [192, 0] && ip.octets()[2] == 0;
    !(ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_documentation()
        || shared
        || measured
        || special
        || a == 0
        || a >= 224)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Address {
        Address::parse(url).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn b_11_an_address_is_read_and_odd_ones_are_refused() {
        let address = parse("http://LocalHost:9/a?b=c#d");
        assert_eq!(address.to_string(), "http://localhost:9/a?b=c");
        assert_eq!((address.path(), address.target()), ("/a", "/a?b=c"));
        assert_eq!(address.below("/x").to_string(), "http://localhost:9/a/x");
        let six = parse("http://[::1]");
        assert_eq!((six.to_string().as_str(), six.port()), ("http://[::1]/", 80));
        let safe = parse("HTTPS://here.example?x");
        assert_eq!((safe.to_string().as_str(), safe.port()), ("https://here.example/?x", 443));
        assert_eq!(Address::parse_with("http://here", 4318).map(|it| it.port()).ok(), Some(4318));
        for odd in [
            "file:///etc/passwd",
            "http://me@host/",
            "http://",
            "https://:443/",
            "http://host:port/",
            "http://host:1:2/",
            "http://a b/",
            "http://a\\b/",
            "http://[::1/",
            "http://[::1]x/",
            "http://[here]/",
            "host",
        ] {
            assert!(Address::parse(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn b_11_the_names_of_this_machine_are_one_server() {
        let own = parse("http://127.0.0.1:9/");
        assert!(own.is_beside(&parse("http://localhost:9/a2a")));
        assert!(own.is_beside(&parse("http://0.0.0.0:9/a2a")));
        assert!(!own.is_beside(&parse("http://localhost:10/")));
        assert!(!own.is_beside(&parse("http://10.0.0.1:9/")));
        assert!(!own.is_beside(&parse("https://localhost:9/")), "not by TLS");
    }

    #[test]
    fn s1_14_a_word_goes_only_to_its_own_server_or_its_domain_by_tls() {
        let home = parse("https://caldav.icloud.example/");
        assert!(parse("https://p42-caldav.icloud.example/x").belongs_to(&home));
        assert!(!parse("http://caldav.icloud.example/x").belongs_to(&home));
        assert!(!parse("https://elsewhere.example/x").belongs_to(&home));
        let local = parse("http://127.0.0.1:5232/");
        assert!(!parse("https://9.9.0.1/").belongs_to(&local));
        assert!(!parse("http://127.0.0.1:80/").belongs_to(&local));
    }

    #[test]
    fn s1_14_addresses_are_put_together_as_servers_mean_them() {
        let home = parse("http://Host:5232/ada/cal/?x=a/b");
        let join = |to| home.join(to).map(|address| address.to_string()).ok();
        assert_eq!(join("x.ics").as_deref(), Some("http://host:5232/ada/cal/x.ics"));
        assert_eq!(join("/ada/").as_deref(), Some("http://host:5232/ada/"));
        assert_eq!(join("https://other/").as_deref(), Some("https://other/"));
        assert_eq!(join("ftp://other/"), None);
    }

    #[test]
    fn b_11_the_open_net_is_told_from_what_only_we_can_reach() {
        let public = |text: &str| is_public(text.parse().unwrap_or_else(|_| panic!("{text}")));
        for open in ["9.9.9.9", "172.32.0.1", "2606:4700::1111", "2001:4860:4860::8888"] {
            assert!(public(open), "{open}");
        }
        for ours in [
            "127.0.0.1",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "198.18.0.1",
            "192.0.2.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "2001::1",
        ] {
            assert!(!public(ours), "{ours}");
        }
    }
}
