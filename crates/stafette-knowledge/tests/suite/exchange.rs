//! Out of one graph and into another.

use stafette_knowledge::graph::{Cursor, Exchanged, Record, check};

use crate::story::{records, sqlite, told};

#[tokio::test]
async fn s1_12_an_export_read_by_another_graph_is_the_same_graph() {
    let (one, _, _folder) = sqlite();
    told(&*one).await;
    let first = records(&*one).await;
    assert_eq!(Exchanged::of(&first), Exchanged { nodes: 7, links: 7 });
    check(&first).expect("sound");

    let (other, _, _folder) = sqlite();
    for _ in 0..2 {
        other.restore(&first).await.expect("a second time changes nothing");
    }
    assert_eq!(records(&*other).await, first);
}

#[tokio::test]
async fn s1_12_an_export_goes_on_from_the_place_that_its_page_tells() {
    let (graph, _, _folder) = sqlite();
    told(&*graph).await;
    let whole = |all: &[Record]| {
        all.iter().filter(|one| matches!(one, Record::Node(_))).count() == 7 && all.len() == 14
    };
    for limit in [1, 3, 7, 1000] {
        let (mut all, mut next) = (Vec::new(), Some(String::new()));
        while let Some(place) = next {
            // As a text, which is how others keep it.
            let cursor: Cursor = place.parse().expect("a place");
            let page = graph.page(&cursor, limit).await.expect("a page");
            next = cursor.next(&page).map(|next| next.to_string());
            all.extend(page);
        }
        assert!(whole(&all), "{limit}: {all:?}");
    }
    for wrong in ["task:t1", "{}", "[1]", r#"["t1"]"#, r#"["task:a","EATS","task:b"]"#] {
        assert!(wrong.parse::<Cursor>().is_err(), "{wrong}");
    }
}

#[test]
fn s1_12_a_link_between_the_wrong_nodes_is_refused() {
    let link = serde_json::json!({"link": {
        "from": "goal:a", "relation": "PART_OF", "to": "goal:b", "made": {"by": "human", "at": 1},
    }});
    let odd: Record = serde_json::from_value(link).expect("a record");
    let error = check(&[odd]).expect_err("no such link");
    assert!(error.to_string().contains("PART_OF cannot join goal:a and goal:b"), "{error}");
}
