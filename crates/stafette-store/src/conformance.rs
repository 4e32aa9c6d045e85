//! Requirements for every backend, as cases to run against an empty store.
//!
//! A backend's tests call `stafette_store::conformance!(open)`, where `open` is an async function
//! that returns a fresh `(Arc<dyn Store>, guard)`; the guard lives as long as the case.

mod append;
mod content;
mod locks;
mod read;
mod upkeep;

pub use append::*;
pub use content::{Story, run};
pub use locks::*;
pub use read::*;
pub use upkeep::*;

/// Generates one test per case.
#[macro_export]
macro_rules! conformance {
    ($open:path) => {
        $crate::conformance! { $open:
            b_01_what_was_appended_is_read_back_as_written
            b_01_a_batch_lands_only_on_the_number_it_was_made_for
            b_01_of_two_racing_writers_one_wins_each_number
            b_01_a_refused_batch_leaves_nothing_behind
            a_batch_that_contradicts_itself_is_refused
            a_batch_without_entries_may_add_a_snapshot
            bodies_of_a_mebibyte_are_kept
            a_closed_store_says_so
            rows_follow_the_events
            a_snapshot_shortens_the_load
            a_run_is_loaded_as_it_was_after_any_event
            the_feed_is_in_order_and_its_cursor_misses_nothing
            a_page_ends_at_its_limit
            the_entries_of_a_handoff_are_found
            questions_are_listed_until_they_are_answered
            runs_are_listed_the_newest_first
            a_run_is_found_by_its_first_or_last_digits
            unfinished_runs_are_listed_to_be_taken_up
            many_runs_live_side_by_side
            retention_removes_finished_runs_only
            retention_keeps_the_last_ones
            positions_are_not_given_twice_after_retention
            compaction_keeps_the_content
            a_check_up_counts_everything
            s5_04_locks_are_read_back_as_written
            s5_04_locks_change_only_from_the_version_that_was_known
            s5_04_the_fencing_number_never_falls
            s5_04_racing_writers_of_locks_lose_nothing
            s5_04_old_entries_of_locks_are_dropped
        }
    };
    ($open:path: $($case:ident)*) => {
        $(
            #[tokio::test]
            async fn $case() {
                let (store, _guard) = $open().await;
                $crate::conformance::$case(store).await;
            }
        )*
    };
}
