//! All tests of the store from outside, in one binary.

mod suite {
    mod crash;
    mod damage;
    mod database;
    mod file;
    mod find;
    mod full;
    mod ground;
    mod group;
    mod locks;
    mod memory;
    mod outage;
    mod postgres;
    mod sqlite;
    mod witness;
}
