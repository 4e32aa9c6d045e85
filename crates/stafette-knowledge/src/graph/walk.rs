//! Walks the graph in steps that every backend supports, so that both take the same path.

use std::collections::{BTreeMap, BTreeSet};

use super::{GraphError, Link, Node, NodeKey, PAGE, Picture, REACH, Relation, Reply};

/// The direction of a link, seen from a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// The link starts at the node.
    Out,
    /// The link ends at the node.
    In,
}

/// The steps that a backend provides for a walk.
pub(crate) trait Steps: Send + Sync {
    /// Returns the first links of each of these nodes, by relation and by the node at the other
    /// end; at most `each` per node.
    fn links<'a>(
        &'a self,
        of: &'a [NodeKey],
        way: Way,
        relations: &'a [Relation],
        each: usize,
    ) -> Reply<'a, Vec<Link>>;

    /// Returns those of these nodes that exist, by key.
    fn nodes<'a>(&'a self, keys: &'a [NodeKey]) -> Reply<'a, Vec<Node>>;
}

/// The longest path from evidence, in links.
const LEGS: usize = 4;

pub(crate) async fn around(
    graph: &dyn Steps,
    centre: &NodeKey,
    reach: u8,
    limit: usize,
) -> Result<Picture, GraphError> {
    let limit = limit.clamp(1, PAGE);
    if graph.nodes(std::slice::from_ref(centre)).await?.is_empty() {
        return Ok(Picture::default());
    }
    let mut seen = BTreeSet::from([centre.clone()]);
    let mut links: BTreeMap<(NodeKey, Relation, NodeKey), Link> = BTreeMap::new();
    let mut edge = vec![centre.clone()];
    let mut cut = false;
    for _ in 0..reach.min(REACH) {
        let mut found = graph.links(&edge, Way::Out, &Relation::ALL, limit).await?;
        found.extend(graph.links(&edge, Way::In, &Relation::ALL, limit).await?);
        cut |= found.len() >= limit;
        edge.clear();
        for link in found {
            for end in [&link.from, &link.to] {
                if seen.contains(end) {
                    continue;
                }
                if seen.len() == limit {
                    cut = true;
                    continue;
                }
                seen.insert(end.clone());
                edge.push(end.clone());
            }
            links.insert((link.from.clone(), link.relation, link.to.clone()), link);
        }
        if edge.is_empty() {
            break;
        }
    }
    let keys: Vec<NodeKey> = seen.iter().cloned().collect();
    let nodes = graph.nodes(&keys).await?;
    let within = |link: &Link| seen.contains(&link.from) && seen.contains(&link.to);
    Ok(Picture { nodes, links: links.into_values().filter(within).collect(), cut })
}

pub(crate) async fn evidence(
    graph: &dyn Steps,
    insight: &str,
    limit: usize,
) -> Result<Vec<Vec<NodeKey>>, GraphError> {
    let limit = limit.clamp(1, PAGE);
    let mut open = vec![vec![NodeKey::insight(insight)]];
    let mut done = Vec::new();
    let mut relations: &[Relation] = &[Relation::LearnedFrom];
    for leg in 0..LEGS {
        let ends: BTreeSet<NodeKey> = open.iter().filter_map(|way| way.last().cloned()).collect();
        let ends: Vec<NodeKey> = ends.into_iter().collect();
        let links = graph.links(&ends, Way::Out, relations, limit).await?;
        relations = &[Relation::PartOf, Relation::DecidedIn];
        let mut longer = Vec::new();
        for way in open {
            let end = way.last().cloned();
            let on: Vec<&Link> =
                links.iter().filter(|link| Some(&link.from) == end.as_ref()).collect();
            // An insight without evidence has no path at all.
            if on.is_empty() && leg > 0 {
                done.push(way);
                continue;
            }
            for link in on {
                longer.push(way.iter().cloned().chain([link.to.clone()]).collect::<Vec<_>>());
            }
        }
        longer.truncate(limit);
        open = longer;
        if open.is_empty() {
            break;
        }
    }
    done.extend(open);
    done.sort();
    done.truncate(limit);
    Ok(done)
}
