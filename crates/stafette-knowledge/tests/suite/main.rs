//! What keeps something, tried as it is: real files, real servers.

mod calendar;
mod cases;
mod exchange;
mod graph;
mod history;
mod mirror;
mod neo4j;
mod proposals;
mod radicale;
mod story;
mod versions;
