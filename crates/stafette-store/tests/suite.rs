//! All tests of the store from outside, in one binary.

mod suite {
    mod crash;
    mod file;
    mod full;
    mod group;
    mod locks;
    mod memory;
    mod postgres;
    mod sqlite;
}
